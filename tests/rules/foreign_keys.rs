//! Keys that stand beside the sessions, and keys of another kind in their place.

use base64::Engine as _;
use serde_json::Value as Json;

use super::{migrate, now_ms};
use crate::support::keyspace::{Keyspace, Value};
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;

/// The caches that a real broker left beside its session keys: values serialised by Java.
fn caches() -> Keyspace {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tbmq-1.4.0/redis-written-by-2.0.1.jsonl");
    let mut caches = Keyspace::default();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let entry: Json = serde_json::from_str(line).unwrap();
        if let Some(encoded) = entry["value"]["b64"].as_str() {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
            caches.0.insert(entry["key"].as_str().unwrap().into(), Value::Str { bytes, pexpiretime_ms: None });
        }
    }
    assert_eq!(caches.0.len(), 12);
    caches
}

fn session(rows: u32) -> Database {
    let database = Postgres::shared().database();
    database.create_tables();
    database.psql(&format!(
        "insert into device_session_ctx values ('c', 0, {rows} - 1, {rows});
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
         select 'c', n - 1, 't', {}, n, 1, 'x' from generate_series(1, {rows}) n",
        now_ms()
    ));
    database
}

#[test]
fn caches_of_a_broker_are_neither_counted_nor_touched() {
    let (redis, caches, database) = (Redis::start(), caches(), session(1));
    let mut connection = redis.connection();
    for (key, value) in &caches.0 {
        let Value::Str { bytes, .. } = value else { panic!("{value:?}") };
        redis::cmd("SET").arg(key).arg(bytes).exec(&mut connection).unwrap();
    }
    for options in [vec![], vec!["--on-existing=replace"]] {
        let (outcome, _) = migrate(&database, &redis, &options);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let report = outcome.json();
        assert_eq!((&report["sessions"], &report["sessions_removed"]), (&1.into(), &0.into()));
        let keys = redis.keyspace();
        assert_eq!(keys.0.len(), caches.0.len() + 3);
        assert!(caches.0.iter().all(|(key, value)| keys.get(key) == Some(value)));
    }
}

#[test]
fn a_foreign_set_keeps_a_long_session_out_as_a_whole() {
    let redis = Redis::start();
    redis.cli(&["SET", "{c}_messages", "mine"]);
    let (outcome, quarantine) = migrate(&session(350), &redis, &["--on-existing=replace"]);
    assert_eq!(outcome.code, Some(10), "{outcome:?}");
    let report = outcome.json();
    assert_eq!((&report["rows_read"], &report["messages_migrated"], &report["quarantined"]), (&350.into(), &0.into(), &350.into()));
    let mut serials: Vec<_> = quarantine.iter().filter(|row| row.2 == "foreign_type").map(|row| row.1).collect();
    serials.sort_unstable();
    assert!(serials.into_iter().eq((0..350).map(Some)));
    let keys = redis.keyspace();
    assert_eq!((keys.text("{c}_messages").as_deref(), keys.0.len()), (Some("mine"), 1));
}

#[test]
fn a_foreign_message_key_in_a_long_session_keeps_out_that_message_alone() {
    let redis = Redis::start();
    redis.cli(&["HSET", "{c}_messages_20", "f", "v"]);
    let (outcome, quarantine) = migrate(&session(350), &redis, &["--on-existing=replace"]);
    assert_eq!((outcome.code, quarantine), (Some(10), vec![("c".to_owned(), Some(19), "foreign_type".to_owned())]));
    let keys = redis.keyspace();
    assert_eq!(keys.members("{c}_messages").len(), 349);
    assert!(!keys.members("{c}_messages").iter().any(|(member, _)| member == "{c}_messages_20"));
    assert_eq!((keys.get("{c}_messages_20"), keys.0.len()), (Some(&Value::Other("hash".to_owned())), 352));
}
