//! `verify` while others write, while servers go away, when it is interrupted, and with no more rights than it needs.

mod faults;
mod ids;
mod interrupted;
mod moving;
mod refused;
mod rights;
mod scan;
mod soak;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::sessions::{Sessions, migrate};
use crate::support::postgres::Database;
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, Tool};

/// A finding by its client id and kind.
type Found = (String, String);

/// `verify` between two places, with its result as JSON.
fn verify(database: &Database, url: &str) -> Tool {
    Tool::new().args(["verify", "--json", "--postgres-url", &database.url, "--redis-url", url])
}

/// Sessions that stand on both sides, and a place for reports.
struct Carried {
    database: Database,
    redis: Redis,
    scratch: tempfile::TempDir,
}

impl Carried {
    /// Sessions that were copied, without a trace in PostgreSQL.
    fn new(sessions: &Sessions) -> Self {
        Self::to(sessions, Redis::start())
    }

    /// The same into a server of one's own making.
    fn to(sessions: &Sessions, redis: Redis) -> Self {
        let database = sessions.load();
        carry(&database, &redis.url(), &[]);
        Self { database, redis, scratch: tempfile::tempdir().unwrap() }
    }

    fn verify(&self) -> Tool {
        verify(&self.database, &self.redis.url())
    }

    fn report_file(&self) -> PathBuf {
        self.scratch.path().join("findings.jsonl")
    }

    fn run(&self, line: &[&str]) {
        redis::cmd(line[0]).arg(&line[1..]).exec(&mut self.redis.connection()).unwrap();
    }

    /// Plants a difference in each of three sessions of [`Sessions::new`] with at least two messages each, and a session
    /// that PostgreSQL does not know.
    fn plant(&self) -> Vec<Found> {
        self.run(&["DEL", "{c-0003}_messages_2"]);
        self.run(&["SET", "{c-0007}_last_packet_id", "999"]);
        self.run(&["ZADD", "{c-0011}_messages", "60000", "{c-0011}_messages_60000"]);
        self.run(&["SET", "{c-0011}_messages_60000", "{}", "EX", "3600"]);
        self.run(&["SET", "{nobody}_last_packet_id", "1"]);
        planted()
    }
}

/// What [`Carried::plant`] has planted.
fn planted() -> Vec<Found> {
    let all = [("c-0003", "missing_message"), ("c-0007", "wrong_last_packet_id"), ("c-0011", "extra_message"), ("nobody", "extra_session")];
    all.map(|(client, kind)| (client.to_owned(), kind.to_owned())).to_vec()
}

/// Copies without a trace in PostgreSQL.
fn carry(database: &Database, url: &str, options: &[&str]) {
    let outcome = migrate(database, url).arg("--stateless").args(options).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

/// The findings that a report lists, sorted.
fn findings(report: &PathBuf) -> Vec<Found> {
    let text = std::fs::read_to_string(report).unwrap();
    let mut findings: Vec<Found> = text
        .lines()
        .map(|line| {
            let line: Json = serde_json::from_str(line).unwrap();
            (line["client_id"].as_str().unwrap().to_owned(), line["kind"].as_str().unwrap().to_owned())
        })
        .collect();
    findings.sort();
    findings
}

/// Fails unless a comparison found exactly this, in its figures and in its report.
fn assert_found(outcome: &Outcome, report: &PathBuf, expected: &[Found]) {
    let code = if expected.is_empty() { 0 } else { 5 };
    assert_eq!(outcome.code, Some(code), "{outcome:#?}\n{}", std::fs::read_to_string(report).unwrap_or_default());
    let listed = std::fs::read_to_string(report).unwrap();
    assert_eq!(findings(report), expected, "{listed}{outcome:#?}");
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    expected.iter().for_each(|(_, kind)| *kinds.entry(kind).or_default() += 1);
    let mut clients: Vec<&String> = expected.iter().map(|(client, _)| client).collect();
    clients.dedup();
    let json = outcome.json();
    assert_eq!(json["findings"], serde_json::to_value(kinds).unwrap());
    assert_eq!((&json["differing_sessions"], &json["not_checked"]), (&clients.len().into(), &0.into()), "{json:#}");
}
