//! Everything that a Redis holds, for comparisons.

use std::collections::BTreeMap;
use std::fmt;

/// The value of one key.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// A string and its deadline in Unix ms (none: it stays for ever).
    Str { bytes: Vec<u8>, pexpiretime_ms: Option<i64> },
    /// A sorted set in its own order.
    ZSet(Vec<(Vec<u8>, f64)>),
    /// Any other type, by name.
    Other(String),
}

/// All keys of a server, or of all masters of a cluster.
#[derive(Clone, PartialEq, Default)]
pub struct Keyspace(pub BTreeMap<Vec<u8>, Value>);

impl Keyspace {
    /// Reads the selected database of a server. Keys that expire meanwhile are left out.
    pub fn read(connection: &mut redis::Connection) -> Self {
        Self::read_with(connection, &[])
    }

    /// Reads a node of a cluster, the keys included that have arrived of a slot on its way here.
    pub fn read_node(connection: &mut redis::Connection) -> Self {
        Self::read_with(connection, &["ASKING"])
    }

    fn read_with(connection: &mut redis::Connection, before: &[&str]) -> Self {
        let mut keys = Self::default();
        let mut cursor = 0_u64;
        loop {
            let (next, page): (u64, Vec<Vec<u8>>) = redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(1000).query(connection).unwrap();
            for key in page {
                if let Some(value) = read_value(connection, &key, before) {
                    keys.0.insert(key, value);
                }
            }
            cursor = next;
            if cursor == 0 {
                return keys;
            }
        }
    }

    /// Adds the keys of another server.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The value of one key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&Value> {
        self.0.get(key.as_ref())
    }

    /// The content of a string key.
    pub fn text(&self, key: impl AsRef<[u8]>) -> Option<String> {
        match self.get(key)? {
            Value::Str { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
            other => panic!("not a string: {other:?}"),
        }
    }

    /// The members of a sorted set as text, in order; none when the key is absent.
    pub fn members(&self, key: impl AsRef<[u8]>) -> Vec<(String, f64)> {
        match self.get(key) {
            None => Vec::new(),
            Some(Value::ZSet(members)) => members.iter().map(|(member, score)| (String::from_utf8_lossy(member).into_owned(), *score)).collect(),
            Some(other) => panic!("not a sorted set: {other:?}"),
        }
    }
}

fn read_value(connection: &mut redis::Connection, key: &[u8], before: &[&str]) -> Option<Value> {
    let mut ask = |line: &[&str]| {
        let mut pipe = redis::pipe();
        for word in before {
            pipe.cmd(word).ignore();
        }
        pipe.cmd(line[0]).arg(key).arg(&line[1..]).query::<(redis::Value,)>(connection).unwrap().0
    };
    let kind: String = redis::from_redis_value(ask(&["TYPE"])).unwrap();
    match kind.as_str() {
        "none" => None,
        "string" => {
            let bytes: Option<Vec<u8>> = redis::from_redis_value(ask(&["GET"])).unwrap();
            let deadline: i64 = redis::from_redis_value(ask(&["PEXPIRETIME"])).unwrap();
            Some(Value::Str { bytes: bytes?, pexpiretime_ms: (deadline >= 0).then_some(deadline) })
        }
        "zset" => {
            let range = ask(&["ZRANGE", "0", "-1", "WITHSCORES"]);
            Some(Value::ZSet(redis::from_redis_value(range).unwrap()))
        }
        _ => Some(Value::Other(kind)),
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Str { bytes, pexpiretime_ms: None } => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Self::Str { bytes, pexpiretime_ms: Some(deadline) } => {
                write!(f, "{:?} until {deadline}", String::from_utf8_lossy(bytes))
            }
            Self::ZSet(members) => f.debug_map().entries(members.iter().map(|(member, score)| (String::from_utf8_lossy(member), score))).finish(),
            Self::Other(kind) => write!(f, "a {kind}"),
        }
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (String::from_utf8_lossy(key), value))).finish()
    }
}
