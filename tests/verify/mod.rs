//! `verify`: each kind of finding is planted and found as exactly that, and what is no difference is not called one.

mod equal;
mod fixtures;
mod long;
mod planted;
mod selected;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::sessions::{Sessions, migrate};
use crate::support::keyspace::{Keyspace, Value};
use crate::support::postgres::Database;
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, Tool};

/// A finding without its words: client id, kind, packet id, serial number.
type Found = (String, String, Option<i64>, Option<i64>);

/// What one comparison came to.
struct Verified {
    outcome: Outcome,
    /// The lines of the report file.
    lines: Vec<Json>,
}

/// Sessions that were migrated, and the state that this left.
struct Scene {
    database: Database,
    redis: Redis,
    base: Keyspace,
}

fn found(client: &str, kind: &str, packet_id: impl Into<Option<i64>>, serial: impl Into<Option<i64>>) -> Found {
    (client.to_owned(), kind.to_owned(), packet_id.into(), serial.into())
}

/// A comparison of a database with what is at an address.
fn verify(database: &Database, url: &str, options: &[&str]) -> Verified {
    let scratch = tempfile::tempdir().unwrap();
    let report = scratch.path().join("findings.jsonl");
    let tool = Tool::new().args(["verify", "--json", "--postgres-url", &database.url, "--redis-url", url]).args(options);
    let outcome = tool.arg("--report").arg(&report).run();
    let lines = std::fs::read_to_string(&report).unwrap_or_default();
    Verified { outcome, lines: lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
}

impl Verified {
    /// All findings, sorted; fails unless the report's figures are those of the list and the exit code fits.
    fn findings(&self) -> Vec<Found> {
        let text = |line: &Json, name: &str| line[name].as_str().unwrap().to_owned();
        let number = |line: &Json, name: &str| line[name].as_i64();
        let mut findings: Vec<Found> = self
            .lines
            .iter()
            .map(|line| (text(line, "client_id"), text(line, "kind"), number(line, "packet_id"), number(line, "serial_number")))
            .collect();
        findings.sort();
        let report = self.outcome.json();
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        findings.iter().for_each(|(_, kind, ..)| *counts.entry(kind).or_default() += 1);
        assert_eq!(report["findings"], serde_json::to_value(&counts).unwrap(), "{:#?}", self.lines);
        let clients: BTreeSet<&str> = findings.iter().map(|(client, ..)| client.as_str()).collect();
        assert_eq!(report["differing_sessions"], clients.len(), "{findings:?}");
        assert_eq!(report["not_checked"], 0);
        assert_eq!(self.outcome.code == Some(5), !findings.is_empty(), "{:#?}", self.outcome);
        findings
    }

    /// A figure of the report.
    fn figure(&self, name: &str) -> u64 {
        self.outcome.json()[name].as_u64().unwrap_or_else(|| panic!("{name}: {:#?}", self.outcome))
    }
}

impl Scene {
    /// Migrates sessions and what `more` adds to them.
    fn new(sessions: &Sessions, more: &str) -> Self {
        let (database, redis) = (sessions.load(), Redis::start());
        database.psql(more);
        let outcome = migrate(&database, &redis.url()).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        Self { base: redis.keyspace(), database, redis }
    }

    /// Puts back what the migration left.
    fn reset(&self) {
        self.run(&["FLUSHALL"]);
        restore(&self.redis, &self.base);
    }

    fn run(&self, line: &[&str]) {
        redis::cmd(line[0]).arg(&line[1..]).exec(&mut self.redis.connection()).unwrap();
    }

    fn verify(&self, options: &[&str]) -> Verified {
        verify(&self.database, &self.redis.url(), options)
    }

    /// The JSON of a message, as it was migrated.
    fn json(&self, key: &str) -> String {
        self.base.text(key).unwrap()
    }

    /// Writes another JSON in the place of a message, with the deadline that this has.
    fn rewrite(&self, key: &str, json: &str) {
        assert_ne!(json, self.json(key), "nothing was changed");
        self.run(&["SET", key, json, "KEEPTTL"]);
    }

    /// The deadline of a migrated message in Unix ms.
    fn deadline(&self, key: &str) -> i64 {
        match self.base.get(key) {
            Some(Value::Str { pexpiretime_ms: Some(deadline), .. }) => *deadline,
            other => panic!("{key}: {other:?}"),
        }
    }

    /// Plants something on top of the base; fails unless the comparison finds exactly this and changes nothing.
    fn assert_found(&self, what: &str, lines: &[&[&str]], expected: &[Found]) {
        self.reset();
        lines.iter().for_each(|line| self.run(line));
        self.assert_findings(what, &[], expected);
    }

    fn assert_findings(&self, what: &str, options: &[&str], expected: &[Found]) {
        let before = self.redis.keyspace();
        let verified = self.verify(options);
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(verified.findings(), expected, "{what}: {:#?}\n{}", verified.lines, verified.outcome.stderr);
        let code = if expected.is_empty() { 0 } else { 5 };
        assert_eq!(verified.outcome.code, Some(code), "{what}");
        assert_eq!(self.redis.keyspace(), before, "{what}: the comparison has changed something");
    }
}

/// Writes keys as they were read.
fn restore(redis: &Redis, keys: &Keyspace) {
    let mut pipe = redis::pipe();
    for (key, value) in &keys.0 {
        let mut command = redis::Cmd::new();
        match value {
            Value::Str { bytes, pexpiretime_ms: None } => command.arg("SET").arg(key).arg(bytes),
            Value::Str { bytes, pexpiretime_ms: Some(deadline) } => command.arg("SET").arg(key).arg(bytes).arg("PXAT").arg(*deadline),
            Value::ZSet(members) => {
                command.arg("ZADD").arg(key);
                members.iter().for_each(|(member, score)| {
                    command.arg(*score).arg(member);
                });
                &mut command
            }
            Value::Other(kind) => panic!("a {kind} cannot be restored"),
        };
        pipe.add_command(command).ignore();
    }
    pipe.exec(&mut redis.connection()).unwrap();
}

/// Two sessions of twelve messages (serial numbers 0 to 11, packet ids 1 to 12), one without messages, and
///
/// * `full`: one message with every optional field, serial number 41, packet id 42;
/// * `over`: the first of its two messages has expired, a minute after its time and by its interval of 5 s;
/// * `released`: one PUBREL;
/// * `bare`: a context that has given no packet id.
fn base() -> Scene {
    let sessions = Sessions::new(2, 12).with_lone_contexts(1);
    let more = "insert into device_session_ctx values ('full', 1, 41, 42), ('over', 1, 1, 2), ('released', 1, 0, 1), ('bare', 1, null, null);
        insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties, retain,
            msg_expiry_interval, payload_format_indicator, content_type, response_topic, correlation_data)
        select 'full', 41, 's/t', time, 42, 'PUBLISH', 2, 'hello', '{\"props\":[{\"k\":\"a\",\"v\":\"1\"}]}', true, 9000, 1, 'text/plain', 'r/t', 'corr'
        from device_publish_msg where client_id = 'c-0000' and serial_number = 0;
        insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, retain, msg_expiry_interval)
        select 'over', n, 's/t', time, n + 1, 'PUBLISH', 1, 'x', false, case n when 0 then 5 end
        from device_publish_msg, generate_series(0, 1) n where client_id = 'c-0000' and serial_number = 0;
        insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, retain)
        select 'released', 0, 's/t', time, 1, 'PUBREL', 2, 'x', false from device_publish_msg where client_id = 'c-0000' and serial_number = 0";
    Scene::new(&sessions, more)
}
