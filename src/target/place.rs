//! Where Redis is: the configured addresses as connections of each of the three topologies.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisConnectionInfo, RedisResult, TlsCertificates, TlsMode,
};
use secrecy::ExposeSecret as _;

use super::TargetError;
use crate::config::{RedisConfig, RedisSeed};

/// A call that takes longer counts as lost; its outcome is unknown, and repeating it is harmless.
const RESPONSE_LIMIT: Duration = Duration::from_secs(20);
/// A server that drops packets is told from a slow one by this.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A cluster client follows redirections by itself this often; longer waits are ours to announce.
const CLUSTER_RETRIES: u32 = 3;

/// What kind of deployment the servers form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Standalone,
    /// Slots spread over masters.
    Cluster,
    /// A master that sentinels name.
    Sentinel,
}

/// How to reach the servers.
#[derive(Debug, Clone)]
pub(super) struct Place {
    config: RedisConfig,
    certificates: Option<TlsCertificates>,
    display: String,
}

/// A connection of either kind; clones share it.
#[derive(Clone)]
pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Place {
    /// Reads the certificate files.
    pub(super) fn new(config: &RedisConfig) -> Result<Self, TargetError> {
        let read = |path: &Option<std::path::PathBuf>| {
            let read =
                |path: &std::path::PathBuf| std::fs::read(path).map_err(|source| TargetError::File { path: path.display().to_string(), source });
            path.as_ref().map(read).transpose()
        };
        let client_tls = match (read(&config.client_cert)?, read(&config.client_key)?) {
            (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
            _ => None,
        };
        let certificates = config.tls.then_some(TlsCertificates { client_tls, root_cert: read(&config.ca_cert)? });
        let display = match &config.sentinel_master {
            Some(name) => format!("{} (sentinels of {name})", config.display),
            None => config.display.clone(),
        };
        Ok(Self { config: config.clone(), certificates, display })
    }

    /// The addresses and, where sentinels name it, the master: without it two masters of the same sentinels would look alike.
    pub(super) fn display(&self) -> &str {
        &self.display
    }

    pub(super) fn database(&self) -> u32 {
        self.config.database
    }

    /// The first seed that answers, asked by itself, whatever the topology.
    pub(super) async fn any_seed(&self) -> RedisResult<(String, MultiplexedConnection)> {
        let mut last = None;
        for seed in &self.config.seeds {
            match self.node(&seed.host, seed.port).await {
                Ok(connection) => return Ok((format!("{}:{}", seed.host, seed.port), connection)),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| (redis::ErrorKind::InvalidClientConfig, "no address is configured").into()))
    }

    /// A connection for commands on session keys.
    pub(super) async fn connect(&self, topology: Topology) -> RedisResult<Connection> {
        match topology {
            Topology::Standalone => Ok(Connection::Single(self.any_seed().await?.1)),
            Topology::Sentinel => Ok(Connection::Single(self.master().await?.1)),
            Topology::Cluster => {
                let infos = self.config.seeds.iter().map(|seed| self.info(seed)).collect::<RedisResult<Vec<_>>>()?;
                let mut builder = ClusterClient::builder(infos)
                    .retries(CLUSTER_RETRIES)
                    .connection_timeout(CONNECT_LIMIT)
                    .response_timeout(RESPONSE_LIMIT)
                    .overall_response_timeout(Some(RESPONSE_LIMIT * 2))
                    .tcp_settings(tcp());
                if let Some(certificates) = &self.certificates {
                    builder = builder.tls(TlsMode::Secure).certs(certificates.clone());
                }
                Ok(Connection::Cluster(builder.build()?.get_async_connection().await?))
            }
        }
    }

    /// The master as the sentinels know it at this moment: its address and a connection.
    pub(super) async fn master(&self) -> RedisResult<(String, MultiplexedConnection)> {
        let name = self.config.sentinel_master.as_deref().unwrap_or_default();
        let seeds = self.config.seeds.iter().map(|seed| self.info(seed).map(|info| info.addr().clone())).collect::<RedisResult<Vec<_>>>()?;
        let mut builder = SentinelClientBuilder::new(seeds, name, SentinelServerType::Master)?
            .set_client_to_redis_db(i64::from(self.config.database))
            .set_client_to_redis_tcp_settings(tcp())
            .set_client_to_sentinel_tcp_settings(tcp());
        if let Some(username) = &self.config.username {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(password) = &self.config.password {
            builder = builder.set_client_to_redis_password(password.expose_secret());
        }
        if let Some(password) = &self.config.sentinel_password {
            builder = builder.set_client_to_sentinel_password(password.expose_secret());
        }
        if let Some(certificates) = &self.certificates {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_certificates(certificates.clone());
        }
        let client = builder.build()?.async_get_client().await?;
        let address = client.get_connection_info().addr().to_string();
        Ok((address, client.get_multiplexed_async_connection_with_config(&limits()).await?))
    }

    /// A connection to one node alone.
    pub(super) async fn node(&self, host: &str, port: u16) -> RedisResult<MultiplexedConnection> {
        let info = self.info(&RedisSeed { host: host.to_owned(), port })?;
        let client = match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone())?,
            None => Client::open(info)?,
        };
        client.get_multiplexed_async_connection_with_config(&limits()).await
    }

    fn info(&self, seed: &RedisSeed) -> RedisResult<ConnectionInfo> {
        let mut redis =
            RedisConnectionInfo::default().set_db(i64::from(self.config.database)).set_lib_name("tbmq-migrate", env!("CARGO_PKG_VERSION"));
        if let Some(username) = &self.config.username {
            redis = redis.set_username(username);
        }
        if let Some(password) = &self.config.password {
            redis = redis.set_password(password.expose_secret());
        }
        let (host, port) = (seed.host.clone(), seed.port);
        let addr = match self.config.tls {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        };
        use redis::IntoConnectionInfo as _;
        Ok(addr.into_connection_info()?.set_redis_settings(redis).set_tcp_settings(tcp()))
    }
}

fn limits() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_LIMIT)).set_response_timeout(Some(RESPONSE_LIMIT))
}

/// Small calls wait for nobody.
fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}
