//! Rules of the data for which a folder in `tests/cases/` is not enough: another schema or encoding, large values, many
//! rows, keys with bytes that are no text.

mod encodings;
mod foreign_keys;
mod limits;
mod schemas;
mod sizes;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use crate::support::keyspace::Keyspace;
use crate::support::postgres::Database;
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, Tool};

/// `--default-ttl` in ms.
const DEFAULT_TTL_MS: i64 = 604_800_000;

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Runs the copy; what it quarantined as (client id, serial, reason).
fn migrate(database: &Database, redis: &Redis, options: &[&str]) -> (Outcome, Vec<(String, Option<i64>, String)>) {
    let scratch = tempfile::tempdir().unwrap();
    let list = scratch.path().join("quarantine");
    let outcome = Tool::new()
        .args(["migrate", "--json", "--postgres-url", &database.url, "--redis-url", &redis.url(), "--quarantine-file"])
        .arg(&list)
        .args(options)
        .run();
    let rows = std::fs::read_to_string(&list).unwrap_or_default();
    let rows = rows.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let quarantine = rows.map(|row| (text(&row["client_id"]), row["serial_number"].as_i64(), text(&row["reason"]))).collect();
    (outcome, quarantine)
}

fn json(keys: &Keyspace, key: &str) -> Json {
    serde_json::from_str(&keys.text(key).unwrap_or_else(|| panic!("{key} is missing"))).unwrap()
}
