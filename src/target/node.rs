//! The masters, one by one: who they are, what they hold, what time it is there.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, RedisResult, Value};

use super::place::{Place, Topology};
use super::{TargetError, link};
use crate::model::{ClientId, KeyKind, KeyPrefix};

/// A connection to one master.
pub struct Node {
    /// host:port, for messages.
    pub address: String,
    /// The first slots of the ranges it serves and their ends, both inclusive; everything outside a cluster.
    pub slots: Vec<(u16, u16)>,
    pub(super) connection: MultiplexedConnection,
}

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Such as `7.0.15`.
    pub version: String,
    /// `standalone`, `cluster` or `sentinel`.
    pub mode: String,
    /// `master` or `slave`.
    pub role: String,
    /// Such as `noeviction`; `None` where the server does not say.
    pub eviction_policy: Option<String>,
    /// Bytes that its data take; this and what follows is `None` where the server does not say.
    pub used_memory: Option<u64>,
    /// Bytes that they may take; 0 is no limit.
    pub maxmemory: Option<u64>,
    /// Bytes of the machine's memory.
    pub system_memory: Option<u64>,
    /// Replicas that follow it.
    pub replicas: Option<u64>,
    /// Whether it appends each write to a file.
    pub append_only: Option<bool>,
    /// Whether its last snapshot was written.
    pub last_save_worked: Option<bool>,
}

/// A key of a session as a scan met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    /// Whose.
    pub client: ClientId,
    /// Which.
    pub kind: KeyKind,
}

/// Keys asked for in one step of a scan: some 100 µs of the server's time.
const SCAN_COUNT: u32 = 1000;

impl NodeFacts {
    pub(super) async fn read(connection: &mut MultiplexedConnection) -> RedisResult<Self> {
        let mut text = String::new();
        for section in ["server", "replication", "memory", "persistence"] {
            text += &Cmd::new().arg("INFO").arg(section).query_async::<String>(connection).await?;
        }
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_owned());
        let number = |name: &str| field(name).and_then(|text| text.parse().ok());
        Ok(Self {
            version: field("redis_version").unwrap_or_default(),
            mode: field("redis_mode").unwrap_or_else(|| "standalone".to_owned()),
            role: field("role").unwrap_or_default(),
            eviction_policy: field("maxmemory_policy"),
            used_memory: number("used_memory"),
            maxmemory: number("maxmemory"),
            system_memory: number("total_system_memory"),
            replicas: number("connected_slaves"),
            append_only: field("aof_enabled").map(|text| text == "1"),
            last_save_worked: field("rdb_last_bgsave_status").map(|text| text == "ok"),
        })
    }

    fn major_version(&self) -> u32 {
        self.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Everything that keeps a copy from being safe on this server.
    pub fn problems(&self, node: &str) -> Vec<TargetError> {
        let node = node.to_owned();
        let mut problems = Vec::new();
        if self.major_version() < 7 {
            problems.push(TargetError::TooOld { version: self.version.clone(), node: node.clone() });
        }
        if self.role == "slave" {
            problems.push(TargetError::Replica { node: node.clone() });
        }
        match self.eviction_policy.as_deref() {
            Some("noeviction") | None => {}
            Some(policy) => problems.push(TargetError::Evicts { policy: policy.to_owned(), node }),
        }
        problems
    }
}

impl Node {
    /// All masters of the deployment.
    pub(super) async fn masters(place: &Place, topology: Topology) -> RedisResult<Vec<Self>> {
        let all = vec![(0, crate::model::SLOTS - 1)];
        match topology {
            Topology::Standalone => {
                let (address, connection) = place.any_seed().await?;
                Ok(vec![Self { address, slots: all, connection }])
            }
            Topology::Sentinel => {
                let (address, connection) = place.master().await?;
                Ok(vec![Self { address, slots: all, connection }])
            }
            Topology::Cluster => {
                let (seed, mut connection) = place.any_seed().await?;
                let slots: Vec<Value> = Cmd::new().arg("CLUSTER").arg("SLOTS").query_async(&mut connection).await?;
                let seed_host = seed.rsplit_once(':').map_or(seed.as_str(), |(host, _)| host).to_owned();
                let mut nodes: Vec<Self> = Vec::new();
                for entry in slots {
                    let (range, host, port) = slot_entry(entry, &seed_host)?;
                    let address = format!("{host}:{port}");
                    match nodes.iter_mut().find(|node| node.address == address) {
                        Some(node) => node.slots.push(range),
                        None => nodes.push(Self { connection: place.node(&host, port).await?, address, slots: vec![range] }),
                    }
                }
                Ok(nodes)
            }
        }
    }

    /// The next step of a scan for keys of sessions under exactly this prefix; foreign keys are passed over. The second
    /// value is the cursor of the following step, 0 at the end.
    ///
    /// # Errors
    /// A failed command.
    pub async fn scan(&mut self, prefix: &KeyPrefix, cursor: u64) -> Result<(Vec<FoundKey>, u64), TargetError> {
        // Made of the prefix alone, never of an id, and decided by the first letters of a key: whose it is, is looked at here.
        let pattern = format!("{}{{*", glob_escaped(prefix.as_str()));
        let mut command = Cmd::new();
        command.arg("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<Vec<u8>>) = self.query("scanning for session keys", &command).await?;
        let found = keys.iter().filter_map(|key| prefix.parse(key)).map(|(client, kind)| FoundKey { client, kind }).collect();
        Ok((found, next))
    }

    /// Of the keys that one step of a scan has found, those that say something by themselves: each last packet id, each set
    /// without one, and each message that nothing refers to, or of which the node cannot tell.
    ///
    /// # Errors
    /// A failed command.
    pub async fn doubtful(&mut self, prefix: &KeyPrefix, found: Vec<FoundKey>) -> Result<Vec<FoundKey>, TargetError> {
        let question = |key: &FoundKey| {
            let (client, mut command) = (key.client.as_str(), Cmd::new());
            match key.kind {
                KeyKind::LastPacketId => return None,
                KeyKind::Messages => command.arg("EXISTS").arg(prefix.last_packet_id(client)),
                KeyKind::Message(packet_id) => {
                    let set = prefix.messages(client);
                    command.arg("ZSCORE").arg(&set).arg(KeyPrefix::message(&set, packet_id))
                }
            };
            Some(command)
        };
        let mut pipeline = redis::Pipeline::with_capacity(found.len());
        pipeline.ignore_errors();
        let asked: Vec<bool> = found.iter().map(|key| question(key).map(|command| pipeline.add_command(command)).is_some()).collect();
        let answers: Vec<RedisResult<Value>> = match asked.contains(&true) {
            true => pipeline.query_async(&mut self.connection).await.map_err(TargetError::command("looking for references"))?,
            false => Vec::new(),
        };
        let mut answers = answers.into_iter();
        let doubtful = found.into_iter().zip(asked).filter(|(key, asked)| {
            let answer = if *asked { answers.next().and_then(RedisResult::ok) } else { None };
            match (key.kind, answer) {
                (KeyKind::Messages, Some(Value::Int(1))) => false,
                // The score of its reference.
                (KeyKind::Message(_), Some(Value::BulkString(_) | Value::Double(_))) => false,
                // None, or an error: a set of another type, a slot that has moved on.
                (KeyKind::Messages | KeyKind::Message(_) | KeyKind::LastPacketId, _) => true,
            }
        });
        Ok(doubtful.map(|(key, _)| key).collect())
    }

    /// Sends one command to this node.
    pub(super) async fn query<T: FromRedisValue>(&mut self, doing: &'static str, command: &Cmd) -> Result<T, TargetError> {
        let value: Value = command.query_async(&mut self.connection).await.map_err(TargetError::command(doing))?;
        link::reply(doing, value)
    }
}

fn slot_entry(entry: Value, seed_host: &str) -> RedisResult<((u16, u16), String, u16)> {
    let unexpected = || redis::RedisError::from((redis::ErrorKind::UnexpectedReturnType, "CLUSTER SLOTS gave an unexpected reply"));
    let Value::Array(parts) = entry else { return Err(unexpected()) };
    let [first, last, Value::Array(master), ..] = parts.as_slice() else { return Err(unexpected()) };
    let number = |value: &Value| match value {
        Value::Int(number) => u16::try_from(*number).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    };
    let [host, port, ..] = master.as_slice() else { return Err(unexpected()) };
    // A node that does not know its own address leaves it out: it is the one that was asked.
    let host = match host {
        Value::BulkString(bytes) if !bytes.is_empty() => String::from_utf8_lossy(bytes).into_owned(),
        _ => seed_host.to_owned(),
    };
    Ok(((number(first)?, number(last)?), host, number(port)?))
}

/// Text as a pattern that matches only itself.
fn glob_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> NodeFacts {
        NodeFacts {
            version: "7.0.15".into(),
            mode: "standalone".into(),
            role: "master".into(),
            eviction_policy: Some("noeviction".into()),
            ..NodeFacts::default()
        }
    }

    #[test]
    fn a_server_below_7_is_too_old() {
        assert!(facts().problems("n").is_empty());
        assert!(matches!(NodeFacts { version: "6.2.14".into(), ..facts() }.problems("n")[..], [TargetError::TooOld { .. }]));
    }

    #[test]
    fn every_policy_but_noeviction_is_refused() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
            let problems = NodeFacts { eviction_policy: Some(policy.into()), ..facts() }.problems("n");
            assert!(matches!(problems[..], [TargetError::Evicts { .. }]), "{policy}");
        }
        assert!(NodeFacts { eviction_policy: None, ..facts() }.problems("n").is_empty());
    }

    #[test]
    fn a_prefix_becomes_a_pattern_of_itself() {
        assert_eq!(glob_escaped("a*[b]?\\:"), "a\\*\\[b\\]\\?\\\\:");
    }
}
