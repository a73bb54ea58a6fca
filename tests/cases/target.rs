//! Where a case runs.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::cluster::RedisCluster;
use crate::support::keyspace::{Keyspace, Value};
use crate::support::redis::Redis;

/// A Redis for one case.
pub enum Place<'a> {
    /// A server that belongs to the case.
    Single(Redis),
    /// A cluster in which everything under a prefix belongs to the case.
    Cluster {
        /// Shared with the other cases.
        cluster: &'a RedisCluster,
        /// The case's own.
        prefix: String,
    },
}

impl Place<'_> {
    /// What stands before the case's own key prefix.
    pub fn prefix(&self) -> &str {
        match self {
            Self::Single(_) => "",
            Self::Cluster { prefix, .. } => prefix,
        }
    }

    /// The address for the tool.
    pub fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Cluster { cluster, .. } => cluster.urls().join(","),
        }
    }

    /// Runs lines as `redis-cli` reads them, with their quotes and escapes.
    pub fn commands(&self, lines: &str) {
        let mut cli = Command::new("redis-cli");
        match self {
            Self::Single(server) => cli.args(["-e", "-p", &server.port.to_string()]),
            Self::Cluster { cluster, .. } => cli.args(["-e", "-c", "-p", &cluster.nodes[0].port.to_string()]),
        };
        let mut child = cli.env_remove("REDISCLI_AUTH").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{lines}: {}", String::from_utf8_lossy(&output.stdout));
    }

    /// All keys of the case, without `prefix` in their names and in the members of sets.
    pub fn keyspace(&self, prefix: &str) -> Keyspace {
        let (all, own) = match self {
            Self::Single(server) => (server.keyspace(), ""),
            Self::Cluster { cluster, prefix } => (cluster.keyspace(), prefix.as_str()),
        };
        let keys = all.0.into_iter().filter(|(key, _)| key.starts_with(own.as_bytes()));
        let bare = |value| match value {
            Value::ZSet(members) => Value::ZSet(members.into_iter().map(|(member, score)| (without(&member, prefix), score)).collect()),
            other => other,
        };
        Keyspace(keys.map(|(key, value)| (without(&key, prefix), bare(value))).collect())
    }
}

/// A name without the prefix; one that lacks it is marked, so that it equals nothing expected by accident.
fn without(name: &[u8], prefix: &str) -> Vec<u8> {
    match name.strip_prefix(prefix.as_bytes()) {
        Some(rest) => rest.to_vec(),
        None => [b"without prefix: ", name].concat(),
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single(_) => "a single server",
            Self::Cluster { .. } => "a cluster",
        })
    }
}
