//! The limit of messages, with as many rows as it takes.

use base64::Engine as _;

use super::{migrate, now_ms};
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;
use crate::support::tool::Tool;

/// A session of `count` rows from serial `first` on, inserted in no order.
fn session(first: u32, count: u32) -> Database {
    let database = Postgres::shared().database();
    database.create_tables();
    let last = first + count - 1;
    database.psql(&format!(
        "insert into device_session_ctx values ('c', 0, {last}, {last} % 65535 + 1);
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
         select 'c', n, 't', {}, n % 65535 + 1, 'PUBLISH', 1, n::text::bytea from generate_series({first}, {last}) n order by md5(n::text)",
        now_ms()
    ));
    database
}

/// Checks that Redis holds exactly the rows with these serials, without reading every message.
fn check(redis: &Redis, serials: std::ops::RangeInclusive<u32>) {
    let mut connection = redis.connection();
    let expected: Vec<_> = serials.clone().map(|serial| (format!("{{c}}_messages_{}", serial % 65_535 + 1), f64::from(serial + 1))).collect();
    let members: Vec<(String, f64)> = redis::cmd("ZRANGE").arg("{c}_messages").arg("0").arg("-1").arg("WITHSCORES").query(&mut connection).unwrap();
    assert!(members == expected, "not the rows {serials:?}");
    assert_eq!(redis::cmd("DBSIZE").query::<usize>(&mut connection).unwrap(), expected.len() + 2);
    assert_eq!(redis.cli(&["GET", "{c}_last_packet_id"]), (serials.end() % 65_535 + 1).to_string());
    for (serial, (key, _)) in
        [(serials.start(), expected.first()), (serials.end(), expected.last())].map(|(serial, member)| (serial, member.unwrap()))
    {
        let message: serde_json::Value = serde_json::from_str(&redis.cli(&["GET", key])).unwrap();
        assert_eq!(message["payload"], base64::engine::general_purpose::STANDARD.encode(serial.to_string()));
    }
}

#[test]
fn the_default_limit_keeps_the_newest_ten_thousand() {
    let redis = Redis::start();
    let report = migrate(&session(0, 10_002), &redis, &[]).0.json();
    assert_eq!((&report["messages_migrated"], &report["trimmed"], &report["rows_read"]), (&10_000.into(), &2.into(), &10_002.into()));
    check(&redis, 2..=10_001);
}

#[test]
fn four_thousand_rows_of_a_broker_with_a_high_limit_are_all_carried() {
    let redis = Redis::start();
    let report = migrate(&session(64_000, 4_000), &redis, &[]).0.json();
    assert_eq!((&report["messages_migrated"], &report["trimmed"]), (&4_000.into(), &0.into()));
    check(&redis, 64_000..=67_999);
}

#[test]
fn a_full_turn_of_packet_ids_leaves_the_newer_row_of_each() {
    let redis = Redis::start();
    let report = migrate(&session(0, 65_538), &redis, &["--message-limit=65535"]).0.json();
    assert_eq!((&report["messages_migrated"], &report["superseded"], &report["trimmed"]), (&65_535.into(), &3.into(), &0.into()));
    check(&redis, 3..=65_537);
}

#[test]
fn a_limit_beyond_the_packet_ids_or_of_none_is_refused_at_the_start() {
    for limit in ["65536", "0", "-1", "many"] {
        let option = format!("--message-limit={limit}");
        let outcome =
            Tool::new().args(["migrate", "--postgres-url", "postgres://u@127.0.0.1:1/d", "--redis-url", "redis://127.0.0.1:1", &option]).run();
        assert_eq!(outcome.code, Some(3), "{outcome:?}");
    }
}
