//! What can go wrong with Redis, and what it means.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::model::Consequence;

/// An error of the target side.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No server can be reached, or it refuses the login.
    #[error("cannot connect to Redis at {place}")]
    Connect {
        /// The addresses, no secret.
        place: String,
        /// What the client said.
        source: RedisError,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A command failed for a reason that waiting does not mend.
    #[error("Redis: {doing}")]
    Command {
        /// What was being done, as a fragment.
        doing: &'static str,
        /// What the server said.
        source: RedisError,
    },
    /// The server did not come back in time.
    #[error("Redis was not usable for {} s while {doing}", waited.as_secs())]
    Lost {
        /// What was being done.
        doing: &'static str,
        /// For how long it was tried.
        waited: Duration,
        /// What the last try met.
        source: RedisError,
    },
    /// The memory stayed full.
    #[error("Redis had no memory to spare for {} s", waited.as_secs())]
    OutOfMemory {
        /// For how long it was tried.
        waited: Duration,
        /// What the server said.
        source: RedisError,
    },
    /// The person or the lease asked to stop while it was being tried again.
    #[error("stopped while waiting for Redis")]
    Stopped,
    /// A reply has a form that the command does not give.
    #[error("Redis gave an unexpected reply while {doing}")]
    Reply {
        /// What was being done.
        doing: &'static str,
    },
    /// Too old to read deadlines back.
    #[error("Redis {version} at {node} is too old: 7.0 or later is needed")]
    TooOld {
        /// As the server names itself.
        version: String,
        /// Which node.
        node: String,
    },
    /// The server would throw sessions away when its memory fills up.
    #[error("the eviction policy of Redis at {node} is {policy}, which deletes session keys when memory runs out")]
    Evicts {
        /// As the server names it.
        policy: String,
        /// Which node.
        node: String,
    },
    /// A replica takes no writes.
    #[error("Redis at {node} is a replica")]
    Replica {
        /// Which node.
        node: String,
    },
    /// What was asked for and what the server is differ.
    #[error("Redis at {node} runs in {found} mode, not in {wanted} mode")]
    OtherMode {
        /// Which node.
        node: String,
        /// As the server names it.
        found: String,
        /// As configured.
        wanted: &'static str,
    },
    /// Reconnecting could reach another one each time.
    #[error("Redis is a standalone server, and {count} addresses are given")]
    SeveralServers {
        /// How many.
        count: usize,
    },
    /// An empty hash tag in the prefix: every session would span slots.
    #[error("the key prefix holds an empty hash tag, so no session can live on a cluster")]
    PrefixSpansSlots,
}

/// What to do about a failed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The server does not know the script yet.
    LoadScript,
    /// Try again on the same connection.
    Retry,
    /// Try again on another connection.
    Reconnect,
    /// Wait for memory.
    WaitForRoom,
    /// A person is needed.
    GiveUp,
}

impl Remedy {
    /// The one place that reads what an error of the client or the server means.
    pub(super) fn of(error: &RedisError) -> Self {
        use ServerErrorKind as Server;
        let says = |text: &str| error.to_string().contains(text);
        match error.kind() {
            ErrorKind::Server(Server::NoScript) => Self::LoadScript,
            ErrorKind::Server(Server::BusyLoading | Server::TryAgain | Server::ClusterDown | Server::MasterDown | Server::Moved | Server::Ask) => {
                Self::Retry
            }
            // The master was demoted: another one must be found.
            ErrorKind::Server(Server::ReadOnly) => Self::Reconnect,
            ErrorKind::Server(_) | ErrorKind::Extension if says("OOM") => Self::WaitForRoom,
            // A slot left the node while a script ran on it.
            ErrorKind::Server(_) | ErrorKind::Extension if says("non local key") => Self::Retry,
            ErrorKind::Extension if matches!(error.code(), Some("BUSY" | "NOREPLICAS" | "MISCONF")) => Self::Retry,
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound | ErrorKind::MasterNameNotFoundBySentinel => Self::Reconnect,
            _ => Self::GiveUp,
        }
    }
}

impl TargetError {
    /// Whether trying again can help. For a command with patience it was tried by then.
    pub fn consequence(&self) -> Consequence {
        match self {
            Self::Connect { source, .. } | Self::Command { source, .. } => match Remedy::of(source) {
                Remedy::Retry | Remedy::Reconnect => Consequence::Retry,
                Remedy::LoadScript | Remedy::WaitForRoom | Remedy::GiveUp => Consequence::Operator,
            },
            _ => Consequence::Operator,
        }
    }

    /// Whether the server's access list is what said no.
    pub fn lacks_a_right(&self) -> bool {
        matches!(self, Self::Connect { source, .. } | Self::Command { source, .. } if lacks_a_right(source))
    }

    /// Whether it said no because of the key, and not because of the command.
    pub fn lacks_a_key(&self) -> bool {
        matches!(self, Self::Command { source, .. } if lacks_a_right(source) && source.to_string().contains("keys"))
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Connect { place, source } => connect_hint(place, source),
            Self::File { .. } => "check the file's path and rights",
            Self::Command { source, .. } if lacks_a_right(source) => RIGHTS,
            Self::Command { .. } | Self::Reply { .. } => return None,
            Self::Lost { .. } => "bring Redis back, then run the same command again: it goes on where it was",
            Self::OutOfMemory { .. } => {
                "give Redis more memory (maxmemory), or add nodes to the cluster, then run the same command again: it goes on where it was"
            }
            Self::Stopped => "run the same command again: it goes on where it was",
            Self::TooOld { .. } => "upgrade Redis; TBMQ 2.x itself is shipped with Redis 7",
            Self::Evicts { .. } => "on the server: CONFIG SET maxmemory-policy noeviction (and in its configuration file), then run again",
            Self::Replica { .. } => "name the master in --redis-url, or use --redis-mode sentinel",
            Self::OtherMode { found, .. } if found == "sentinel" => "name the master that the sentinels watch: --redis-sentinel-master NAME",
            Self::OtherMode { .. } => "set --redis-mode to what the server is, or leave it at auto",
            Self::SeveralServers { .. } => "give one address; several are the seeds of a cluster, or sentinels with --redis-sentinel-master",
            Self::PrefixSpansSlots => "use the cache prefix that the 2.x broker will use; one with {} cannot work on a cluster",
        };
        Some(text.to_owned())
    }
}

/// What a run needs, and no more.
const RIGHTS: &str = "give the Redis user these rights, PREFIX being the cache prefix (nothing without one): ~PREFIX{* ~PREFIXtbmq-migrate:* \
    +info +time +scan +type +eval +evalsha +set +del +strlen +zcard +zadd +zrange +zrem +hset +hgetall +expire; \
    +select for a database other than 0; +cluster|slots +asking on a cluster";

/// Whether the server's access list said no, to a command or to one inside a script.
fn lacks_a_right(error: &RedisError) -> bool {
    let says = |part: &str| error.to_string().contains(part);
    error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) || says("has no permissions to run") || says("The user executing the script can't")
}

fn connect_hint(place: &str, error: &RedisError) -> &'static str {
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    if lacks_a_right(error) {
        RIGHTS
    } else if error.kind() == ErrorKind::AuthenticationFailed || says("WRONGPASS") || says("NOAUTH") {
        "check user and password in --redis-url"
    } else if error.kind() == ErrorKind::MasterNameNotFoundBySentinel {
        "check --redis-sentinel-master against: redis-cli -p 26379 sentinel masters"
    } else if says("SELECT is not allowed in cluster mode") {
        "a cluster has only database 0: leave the database out of --redis-url"
    } else if says("DB index is out of range") {
        "check the database at the end of --redis-url; how many there are says the server's setting: databases"
    } else if says("CertificateRequired") {
        "the server wants to see a certificate: --redis-client-cert and --redis-client-key"
    } else if says("ertificate") || says("TLS") || says("InvalidContentType") {
        "check rediss:// or redis://, and --redis-ca-cert"
    } else if error.is_connection_refusal() || !error.is_io_error() {
        "check host and port in --redis-url, and that the server accepts connections from here"
    } else if place.starts_with("rediss://") {
        "check host and port in --redis-url, and that this port speaks TLS: one that does not never answers (redis:// is for plain text)"
    } else {
        "check host and port in --redis-url; a port that speaks TLS only hangs up like this (rediss:// is for TLS)"
    }
}
