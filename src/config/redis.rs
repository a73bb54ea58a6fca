//! Where TBMQ 2.x keeps its sessions: one server, the seeds of a cluster, or sentinels.
//!
//! Several addresses are several doors to one Redis, so user, password, database and TLS must be the same in each.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use super::address::{Address, Host, Plus, encode};
use super::error::{ConfigError, Problem};
use super::layers::Layers;
use super::setting::Setting;

/// The topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisMode {
    /// Ask the first seed.
    Auto,
    /// One server.
    Standalone,
    /// A Redis Cluster, of which the seeds are some nodes.
    Cluster,
    /// The seeds are sentinels that know the master.
    Sentinel,
}

impl RedisMode {
    /// The words of `redis-mode`, in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = &["auto", "standalone", "cluster", "sentinel"];
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Standalone, Self::Cluster, Self::Sentinel];

    const fn default_port(self) -> u16 {
        match self {
            Self::Sentinel => 26_379,
            Self::Auto | Self::Standalone | Self::Cluster => 6_379,
        }
    }
}

/// One server to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisSeed {
    /// A name or an IP address, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The checked address of the target.
#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// The topology; [`RedisMode::Sentinel`] also where only the name of the master was given.
    pub mode: RedisMode,
    /// At least one; exactly one with [`RedisMode::Standalone`].
    pub seeds: Vec<RedisSeed>,
    /// Whether every connection is made by TLS, those to sentinels included.
    pub tls: bool,
    /// The ACL user; `None`: the default user.
    pub username: Option<String>,
    /// The password of the data servers. There is none without it being non-empty.
    pub password: Option<SecretString>,
    /// The database index; 0 with [`RedisMode::Cluster`].
    pub database: u32,
    /// Present with [`RedisMode::Sentinel`], and only then.
    pub sentinel_master: Option<String>,
    /// The password of the sentinels themselves.
    pub sentinel_password: Option<SecretString>,
    /// PEM file of the authorities to trust; `None`: those of the system.
    pub ca_cert: Option<PathBuf>,
    /// PEM file of the client's certificate; comes with [`Self::client_key`].
    pub client_cert: Option<PathBuf>,
    /// PEM file of the client's key.
    pub client_key: Option<PathBuf>,
    /// The address without a secret: `rediss://user@host:port,host:port/0`.
    pub display: String,
}

/// Why an address of Redis cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum RedisProblem {
    #[error("is not an address of Redis")]
    Scheme,
    #[error("is a Unix socket, which the broker cannot use either")]
    UnixSocket,
    #[error("has no host")]
    NoHost,
    #[error("has a user and no password")]
    UserWithoutPassword,
    #[error("has a database that is not a whole number")]
    Database,
    #[error("has parameters, and none is known")]
    Parameters,
    #[error("has addresses that differ in {0}")]
    Disagree(&'static str),
    #[error("names several servers for a standalone Redis")]
    SeveralServers,
    #[error("names a database, and a cluster has only database 0")]
    DatabaseOfCluster,
}

impl RedisProblem {
    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            Self::Scheme => Some("write redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS"),
            Self::UnixSocket => Some("write redis://HOST:PORT"),
            Self::NoHost => Some("write the host, as in redis://localhost:6379"),
            Self::UserWithoutPassword => Some("a password alone is written with a colon before it: redis://:PASSWORD@HOST"),
            Self::Database => Some("write the number of the database after the host, as in redis://HOST:6379/2"),
            Self::Parameters => Some("leave out what follows the `?`"),
            Self::Disagree(_) => Some("all addresses lead to one Redis: write user, password, database and scheme the same in each"),
            Self::SeveralServers => Some("name one server, or give --redis-mode cluster or sentinel"),
            Self::DatabaseOfCluster => Some("leave the database out"),
        }
    }
}

/// What all addresses have in common, and the servers of each.
#[derive(Clone)]
struct Servers {
    hosts: Vec<Host>,
    tls: bool,
    username: Option<String>,
    password: Option<SecretString>,
    database: u32,
}

impl RedisConfig {
    pub(super) fn read(layers: &Layers) -> Result<Option<Self>, ConfigError> {
        let mode = read_mode(layers)?;
        let wrong = |problem: Problem| layers.wrong(Setting::RedisUrl, problem);
        let texts = layers.texts(Setting::RedisUrl)?;
        if texts.is_empty() {
            return Ok(None);
        }
        let servers = Servers::parse(texts).map_err(wrong)?;
        match mode {
            RedisMode::Standalone if servers.hosts.len() > 1 => return Err(wrong(RedisProblem::SeveralServers.into())),
            RedisMode::Cluster if servers.database != 0 => return Err(wrong(RedisProblem::DatabaseOfCluster.into())),
            RedisMode::Auto | RedisMode::Standalone | RedisMode::Cluster | RedisMode::Sentinel => {}
        }
        check_certificates(layers, servers.tls)?;
        Ok(Some(Self {
            mode,
            display: servers.display(mode, false),
            seeds: servers.seeds(mode),
            tls: servers.tls,
            username: servers.username,
            password: servers.password,
            database: servers.database,
            sentinel_master: layers.text(Setting::RedisSentinelMaster)?.map(Into::into),
            sentinel_password: layers.text(Setting::RedisSentinelPassword)?.map(Into::into),
            ca_cert: layers.existing_file(Setting::RedisCaCert)?,
            client_cert: layers.existing_file(Setting::RedisClientCert)?,
            client_key: layers.existing_file(Setting::RedisClientKey)?,
        }))
    }
}

/// The mode, and that the settings of sentinels go with it.
fn read_mode(layers: &Layers) -> Result<RedisMode, ConfigError> {
    let mode = layers.choice(Setting::RedisMode, &RedisMode::ALL)?;
    let has_master = layers.text(Setting::RedisSentinelMaster)?.is_some();
    match mode {
        RedisMode::Auto if has_master => Ok(RedisMode::Sentinel),
        RedisMode::Sentinel if !has_master => Err(ConfigError::NotSet(Setting::RedisSentinelMaster)),
        RedisMode::Standalone | RedisMode::Cluster if has_master => Err(ConfigError::Conflict {
            one: layers.name_of(Setting::RedisSentinelMaster),
            other: layers.name_of(Setting::RedisMode),
            hint: "only sentinels know a master by name: leave it out, or set the mode to sentinel",
        }),
        RedisMode::Auto | RedisMode::Standalone | RedisMode::Cluster | RedisMode::Sentinel => Ok(mode),
    }
}

/// Certificates are for TLS, and a certificate and its key come together.
fn check_certificates(layers: &Layers, tls: bool) -> Result<(), ConfigError> {
    if layers.get(Setting::RedisClientCert).is_some() != layers.get(Setting::RedisClientKey).is_some() {
        let missing = if layers.get(Setting::RedisClientCert).is_none() { Setting::RedisClientCert } else { Setting::RedisClientKey };
        return Err(ConfigError::NotSet(missing));
    }
    let certificate = [Setting::RedisCaCert, Setting::RedisClientCert].into_iter().find(|setting| layers.get(*setting).is_some());
    match certificate {
        Some(setting) if !tls => Err(ConfigError::Conflict {
            one: layers.name_of(setting),
            other: layers.name_of(Setting::RedisUrl),
            hint: "the address says no TLS: write rediss:// in place of redis://",
        }),
        _ => Ok(()),
    }
}

/// The addresses as they may be shown.
pub(super) fn redacted(texts: &[String], mode: RedisMode) -> Result<String, Problem> {
    Ok(Servers::parse(texts)?.display(mode, true))
}

impl Servers {
    /// Reads all addresses of all texts, which must agree.
    fn parse(texts: &[String]) -> Result<Self, Problem> {
        let mut all: Option<Self> = None;
        for text in texts.iter().flat_map(|text| split(text)) {
            let servers = Self::parse_one(text)?;
            match &mut all {
                None => all = Some(servers),
                Some(all) => all.join(servers)?,
            }
        }
        all.ok_or(Problem::Empty)
    }

    fn parse_one(text: &str) -> Result<Self, Problem> {
        if text.starts_with("unix:") || text.starts_with("redis+unix:") {
            return Err(RedisProblem::UnixSocket.into());
        }
        let address = Address::parse(text, Plus::Plus)?;
        let tls = match address.scheme.as_str() {
            "redis" => false,
            "rediss" => true,
            _ => return Err(RedisProblem::Scheme.into()),
        };
        if address.hosts.iter().any(|host| host.name.is_empty()) {
            return Err(RedisProblem::NoHost.into());
        }
        if !address.parameters.is_empty() {
            return Err(RedisProblem::Parameters.into());
        }
        if address.user.is_some() && address.password.is_none() {
            return Err(RedisProblem::UserWithoutPassword.into());
        }
        let database = match address.path.trim_end_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| RedisProblem::Database)?,
        };
        Ok(Self { hosts: address.hosts, tls, username: address.user, password: address.password.map(Into::into), database })
    }

    fn join(&mut self, other: Self) -> Result<(), RedisProblem> {
        let secret = |password: &Option<SecretString>| password.as_ref().map(|password| password.expose_secret().to_owned());
        if self.tls != other.tls {
            return Err(RedisProblem::Disagree("TLS"));
        }
        if self.username != other.username {
            return Err(RedisProblem::Disagree("the user"));
        }
        if secret(&self.password) != secret(&other.password) {
            return Err(RedisProblem::Disagree("the password"));
        }
        if self.database != other.database {
            return Err(RedisProblem::Disagree("the database"));
        }
        self.hosts.extend(other.hosts);
        Ok(())
    }

    fn seeds(&self, mode: RedisMode) -> Vec<RedisSeed> {
        let mut seeds = Vec::new();
        for host in &self.hosts {
            let seed = RedisSeed { host: host.name.clone(), port: host.port.unwrap_or(mode.default_port()) };
            if !seeds.contains(&seed) {
                seeds.push(seed);
            }
        }
        seeds
    }

    fn display(&self, mode: RedisMode, with_mask: bool) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let mask = if with_mask && self.password.is_some() { ":******" } else { "" };
        let user = self.username.as_deref().map(encode).unwrap_or_default();
        let at = if user.is_empty() && mask.is_empty() { "" } else { "@" };
        let servers: Vec<_> = self.seeds(mode).iter().map(|seed| Host::display(&seed.host, seed.port)).collect();
        format!("{scheme}://{user}{mask}{at}{}/{}", servers.join(","), self.database)
    }
}

/// Cuts a text before each address that follows a comma. A comma elsewhere belongs to a list of hosts, or to a password.
fn split(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (comma, _) in text.match_indices(',') {
        let rest = text[comma + 1..].trim_start();
        if ["redis://", "rediss://", "unix:", "redis+unix:"].iter().any(|scheme| rest.starts_with(scheme)) {
            pieces.push(text[start..comma].trim());
            start = comma + 1;
        }
    }
    pieces.push(text[start..].trim());
    pieces
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::origin::Origin;

    fn layers(settings: &[(Setting, &str)]) -> Layers {
        settings.iter().fold(Layers::defaults(), |mut layers, (setting, text)| {
            layers.set(*setting, vec![(*text).into()], Origin::Option);
            layers
        })
    }

    fn read(settings: &[(Setting, &str)]) -> RedisConfig {
        RedisConfig::read(&layers(settings)).unwrap().unwrap()
    }

    fn refusal(settings: &[(Setting, &str)]) -> (String, String) {
        let error = RedisConfig::read(&layers(settings)).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    }

    fn seeds(config: &RedisConfig) -> Vec<(&str, u16)> {
        config.seeds.iter().map(|seed| (seed.host.as_str(), seed.port)).collect()
    }

    const URL: Setting = Setting::RedisUrl;
    const MODE: Setting = Setting::RedisMode;
    const MASTER: Setting = Setting::RedisSentinelMaster;

    #[test]
    fn user_password_database_and_tls_come_out_of_the_address() {
        let config = read(&[(URL, "rediss://us%40er:p%3Aw@[::1]:7000/3")]);
        assert_eq!(seeds(&config), [("::1", 7000)]);
        assert_eq!(config.username.as_deref(), Some("us@er"));
        assert_eq!(config.password.unwrap().expose_secret(), "p:w");
        assert_eq!((config.database, config.tls, config.mode), (3, true, RedisMode::Auto));
        assert_eq!(config.display, "rediss://us%40er@[::1]:7000/3");
    }

    #[test]
    fn an_empty_password_is_none() {
        assert!(read(&[(URL, "redis://:@h")]).password.is_none());
    }

    #[test]
    fn several_addresses_are_seeds_in_any_notation() {
        let expected = [("a", 6379), ("b", 7000)];
        for text in ["redis://a,redis://b:7000", "redis://a, redis://b:7000", "redis://a,b:7000", "redis://a,b:7000,redis://a"] {
            assert_eq!(seeds(&read(&[(URL, text)])), expected, "{text}");
        }
        let mut repeated = Layers::defaults();
        repeated.set(URL, vec!["redis://a".into(), "redis://b:7000".into()], Origin::Option);
        assert_eq!(seeds(&RedisConfig::read(&repeated).unwrap().unwrap()), expected);
    }

    #[test]
    fn a_comma_in_a_password_does_not_cut_the_address() {
        let config = read(&[(URL, "redis://:a,b@h,i")]);
        assert_eq!(config.password.as_ref().unwrap().expose_secret(), "a,b");
        assert_eq!(seeds(&config), [("h", 6379), ("i", 6379)]);
    }

    #[test]
    fn the_name_of_a_master_makes_the_seeds_sentinels() {
        let config = read(&[(URL, "redis://a,b"), (MASTER, "mymaster")]);
        assert_eq!(config.mode, RedisMode::Sentinel);
        assert_eq!(seeds(&config), [("a", 26379), ("b", 26379)]);
        assert_eq!(config.sentinel_master.as_deref(), Some("mymaster"));
    }

    #[test]
    fn sentinel_mode_without_a_master_says_which_option_is_missing() {
        let (error, hint) = refusal(&[(URL, "redis://a"), (MODE, "sentinel")]);
        assert_eq!(error, "--redis-sentinel-master is not set");
        assert!(hint.contains("--redis-sentinel-master NAME") && hint.contains("REDIS_MASTER"), "{hint}");
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_way_out() {
        for (settings, text, hint) in [
            (&[(URL, "http://h")][..], "is not an address of Redis", "write redis://"),
            (&[(URL, "unix:///run/redis.sock")], "is a Unix socket", "write redis://"),
            (&[(URL, "h:6379")], "is not a URL", "begins with a scheme"),
            (&[(URL, "redis://:x@/0")], "has no host", "write the host"),
            (&[(URL, "redis://secret@h")], "has a user and no password", "redis://:PASSWORD@HOST"),
            (&[(URL, "redis://h/zero")], "has a database that is not a whole number", "redis://HOST:6379/2"),
            (&[(URL, "redis://h?protocol=resp3")], "has parameters", "leave out"),
            (&[(URL, "redis://h,rediss://i")], "differ in TLS", "the same in each"),
            (&[(URL, "redis://a:p@h,redis://b:p@i")], "differ in the user", "the same in each"),
            (&[(URL, "redis://:p@h,redis://:q@i")], "differ in the password", "the same in each"),
            (&[(URL, "redis://h/1,redis://i/2")], "differ in the database", "the same in each"),
            (&[(URL, "redis://h,i"), (MODE, "standalone")], "names several servers", "--redis-mode cluster"),
            (&[(URL, "redis://h/1"), (MODE, "cluster")], "a cluster has only database 0", "leave the database out"),
            (&[(MODE, "clusters")], "\"clusters\" is none of auto, standalone", "did you mean cluster?"),
            (&[(URL, "redis://h"), (MODE, "cluster"), (MASTER, "m")], "--redis-sentinel-master does not go with --redis-mode", "leave it out"),
            (&[(URL, "redis://h"), (Setting::RedisCaCert, "/ca")], "--redis-ca-cert does not go with --redis-url", "rediss://"),
            (&[(URL, "rediss://h"), (Setting::RedisClientCert, "/c")], "--redis-client-key is not set", "--redis-client-key FILE"),
            (&[(URL, "rediss://h"), (Setting::RedisClientKey, "/k")], "--redis-client-cert is not set", "--redis-client-cert FILE"),
        ] {
            let (error, advice) = refusal(settings);
            assert!(error.contains(text), "{settings:?}: {error}");
            assert!(advice.contains(hint), "{settings:?}: {advice}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_there_is_named() {
        let (error, _) = refusal(&[(URL, "rediss://h"), (Setting::RedisCaCert, "/no/ca.pem")]);
        assert_eq!(error, "--redis-ca-cert: cannot read /no/ca.pem: entity not found");
    }

    #[test]
    fn no_form_of_output_holds_the_password() {
        let mut layers = layers(&[(URL, "redis://u:s3cret@h"), (MASTER, "m"), (Setting::RedisSentinelPassword, "s3cret2")]);
        let config = RedisConfig::read(&layers).unwrap().unwrap();
        assert!(!format!("{config:?} {layers:?}").contains("s3cret"));
        assert_eq!(redacted(&["redis://u:s3cret@h".into()], RedisMode::Auto).unwrap(), "redis://u:******@h:6379/0");
        assert_eq!(redacted(&["redis://:s3cret@h/1".into()], RedisMode::Auto).unwrap(), "redis://:******@h:6379/1");
        for text in ["redis://:s3cret#@h", "redis://:s3cret/x@h", "s3cret@h", "redis://s3cret@h", "redis://:%s3cret@h"] {
            layers.set(URL, vec![text.into()], Origin::Option);
            let error = RedisConfig::read(&layers).unwrap_err();
            assert!(!format!("{error} {error:?} {:?}", error.hint()).contains("s3cret"), "{text}: {error}");
        }
    }
}
