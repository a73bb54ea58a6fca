//! Sessions of which every value follows from arithmetic: their rows, and what Redis must hold for them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value as Json, json};

use crate::support::keyspace::{Keyspace, Value};
use crate::support::postgres::{Database, Postgres};
use crate::support::tool::{Outcome, Tool};

const TTL_MS: i64 = 604_800_000;

/// What stands in the two tables.
pub struct Sessions {
    /// Of each session, by its client id: how many messages, and the last packet id of its context.
    by_client: BTreeMap<String, (u32, u32)>,
    /// `time` of every message: a minute before the rows were made.
    time_ms: i64,
}

/// One key as the contract wants it.
#[derive(Debug, PartialEq)]
enum Wanted {
    Text(String),
    Message(Json, i64),
    References(Vec<(String, f64)>),
}

impl Sessions {
    /// `count` sessions with `messages` each, named `c-0000` and so on.
    pub fn new(count: u32, messages: u32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let empty = Self { by_client: BTreeMap::new(), time_ms: i64::try_from(now).unwrap() - 60_000 };
        (0..count).fold(empty, |all, number| all.with(&format!("c-{number:04}"), messages))
    }

    /// One more session with its serial numbers from 0 on.
    pub fn with(mut self, client: &str, messages: u32) -> Self {
        assert!(messages < 65_535, "a packet id is serial number + 1 here");
        self.by_client.insert(client.to_owned(), (messages, messages));
        self
    }

    /// `count` contexts without messages, named `lone-0000` and so on.
    pub fn with_lone_contexts(mut self, count: u32) -> Self {
        self.by_client.extend((0..count).map(|number| (format!("lone-{number:04}"), (0, number + 1))));
        self
    }

    /// All client ids.
    pub fn clients(&self) -> impl Iterator<Item = &str> {
        self.by_client.keys().map(String::as_str)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.by_client.len() as u64
    }

    /// All messages.
    pub fn messages(&self) -> u64 {
        self.by_client.values().map(|(messages, _)| u64::from(*messages)).sum()
    }

    /// A database of the shared server that holds them.
    pub fn load(&self) -> Database {
        let database = Postgres::shared().database();
        self.load_into(&database);
        database
    }

    /// Makes the tables and their rows.
    pub fn load_into(&self, database: &Database) {
        database.create_tables();
        let mut values: Vec<String> = Vec::new();
        for (client, (messages, last)) in &self.by_client {
            let client = client.replace('\'', "''");
            values.push(format!("('{client}', {messages}, {last})"));
        }
        let time = self.time_ms;
        database.psql(&format!(
            "create table wanted (client_id varchar(255), messages int, last int);
             insert into wanted values {};
             insert into device_session_ctx select client_id, {time}, last - 1, last from wanted;
             insert into device_publish_msg
             select client_id, n, 't/' || n, {time}, n + 1, 'PUBLISH', 1, convert_to(client_id || '/' || n, 'UTF8'), null, false
             from wanted, generate_series(0, messages - 1) n;
             drop table wanted;
             analyze device_session_ctx, device_publish_msg",
            values.join(", ")
        ));
    }

    /// Fails unless the run did all of the sessions.
    pub fn assert_all_migrated(&self, outcome: &Outcome) {
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let report = outcome.json();
        let found = ["sessions", "rows_read", "messages_migrated"].map(|name| report[name].as_u64());
        assert_eq!(found, [self.count(), self.messages(), self.messages()].map(Some), "{report:#}");
    }

    /// Fails unless exactly these sessions stand there, and nothing else.
    pub fn assert_stand_in(&self, keys: &Keyspace, prefix: &str) {
        let mut left: Vec<String> = keys.0.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        for client in self.clients() {
            let wanted = self.wanted(client, prefix);
            let found: BTreeMap<&String, Option<Wanted>> = wanted.keys().map(|key| (key, found(keys, key))).collect();
            let wrong = wanted.iter().find(|(key, value)| found[key].as_ref() != Some(value));
            assert!(wrong.is_none(), "{client}: wanted {wrong:?}, found {:?}", wrong.map(|(key, _)| &found[key]));
            left.retain(|key| !wanted.contains_key(key));
        }
        assert!(left.is_empty(), "nobody's keys: {left:?}");
    }

    /// Fails unless each session stands there as a whole or not at all; gives the number of whole ones.
    pub fn assert_none_is_half_written(&self, keys: &Keyspace) -> u64 {
        let mut whole = 0;
        for client in self.clients() {
            let wanted = self.wanted(client, "");
            let right = wanted.iter().filter(|(key, value)| found(keys, key).as_ref() == Some(value)).count();
            assert!(right == 0 || right == wanted.len(), "{client}: {right} of {} keys are right", wanted.len());
            let strays = keys.0.keys().filter(|key| key.starts_with(format!("{{{client}}}").as_bytes())).count();
            assert_eq!(strays, right, "{client}");
            whole += u64::from(right > 0);
        }
        whole
    }

    fn wanted(&self, client: &str, prefix: &str) -> BTreeMap<String, Wanted> {
        let (messages, last) = self.by_client[client];
        let set = format!("{prefix}{{{client}}}_messages");
        let mut wanted = BTreeMap::from([(format!("{prefix}{{{client}}}_last_packet_id"), Wanted::Text(last.to_string()))]);
        let mut references = Vec::new();
        for packet_id in 1..=messages {
            let serial = packet_id - 1;
            let json = json!({
                "clientId": client, "topicName": format!("t/{serial}"), "time": self.time_ms, "packetId": packet_id, "packetType": "PUBLISH",
                "qos": 1, "payload": BASE64.encode(format!("{client}/{serial}")), "retained": false,
            });
            let key = format!("{set}_{packet_id}");
            references.push((key.clone(), f64::from(packet_id)));
            wanted.insert(key, Wanted::Message(json, self.time_ms + TTL_MS));
        }
        if messages > 0 {
            references.sort_by(|a, b| a.1.total_cmp(&b.1));
            wanted.insert(set, Wanted::References(references));
        }
        wanted
    }
}

fn found(keys: &Keyspace, key: &str) -> Option<Wanted> {
    Some(match keys.get(key)? {
        Value::ZSet(_) => Wanted::References(keys.members(key)),
        Value::Str { bytes, pexpiretime_ms: Some(deadline) } => Wanted::Message(serde_json::from_slice(bytes).unwrap_or(Json::Null), *deadline),
        Value::Str { pexpiretime_ms: None, .. } => Wanted::Text(keys.text(key)?),
        Value::Other(kind) => Wanted::Text(format!("a {kind}")),
    })
}

/// `migrate` from a database to an address, with its result as JSON.
pub fn migrate(database: &Database, redis_url: &str) -> Tool {
    Tool::new().args(["migrate", "--json", "--postgres-url", &database.url, "--redis-url", redis_url])
}
