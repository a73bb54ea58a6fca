//! Values at the border of what the broker's JSON parser takes: strings of 20,000,000 characters.

use base64::Engine as _;

use super::{migrate, now_ms};
use crate::support::keyspace::Value;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::tool::Tool;

#[test]
fn a_payload_of_15_000_000_bytes_is_carried_and_one_byte_more_is_quarantined() {
    let database = Postgres::shared().database();
    database.create_tables();
    let bytes = |count: usize| format!("convert_to(repeat('x', {count}), 'UTF8')");
    database.psql(&format!(
        "insert into device_session_ctx values ('c', 0, 3, 4);
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload, correlation_data)
         select 'c', n, 't', {}, n + 1, 1, payload, correlation from (values (0, {}, null), (1, {}, null), (2, 'x', {}), (3, '', null))
         as v (n, payload, correlation)",
        now_ms(),
        bytes(15_000_000),
        bytes(15_000_001),
        bytes(15_000_001),
    ));
    let redis = Redis::start();
    let (outcome, mut quarantine) = migrate(&database, &redis, &[]);
    assert_eq!(outcome.code, Some(10), "{}", outcome.stderr);
    quarantine.sort();
    assert_eq!(quarantine, [("c".to_owned(), Some(1), "payload_too_large".to_owned()), ("c".to_owned(), Some(2), "field_too_large".to_owned())]);
    let keys = redis.keyspace();
    assert_eq!(keys.members("{c}_messages"), [("{c}_messages_1".to_owned(), 1.0), ("{c}_messages_4".to_owned(), 4.0)]);
    let Some(Value::Str { bytes, .. }) = keys.get("{c}_messages_1") else { panic!("the largest payload is missing") };
    let message: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let payload = message["payload"].as_str().unwrap();
    assert_eq!(payload.len(), 20_000_000);
    let decoded = base64::engine::general_purpose::STANDARD.decode(payload).unwrap();
    assert!(decoded.len() == 15_000_000 && decoded.iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_text_of_more_than_20_000_000_characters_is_quarantined() {
    let database = Postgres::shared().database();
    database.create_tables();
    database.psql(&format!(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
         values ('c', 0, repeat('x', 20000001), {now}, 1, 1, ''), ('c', 1, 't', {now}, 2, 1, '')",
        now = now_ms()
    ));
    let redis = Redis::start();
    let (outcome, quarantine) = migrate(&database, &redis, &[]);
    assert_eq!((outcome.code, quarantine), (Some(10), vec![("c".to_owned(), Some(0), "field_too_large".to_owned())]));
    assert_eq!(redis.keyspace().members("{c}_messages"), [("{c}_messages_2".to_owned(), 2.0)]);
}

#[test]
fn ten_thousand_user_properties_keep_their_order() {
    let database = Postgres::shared().database();
    database.create_tables();
    database.psql(&format!(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload, user_properties)
         select 'c', 0, 't', {}, 1, 1, '', '{{\"props\":[' || string_agg(format('{{\"k\":\"%s\",\"v\":\"%s\"}}', n % 7, n), ',' order by n) || ']}}'
         from generate_series(0, 9999) n",
        now_ms()
    ));
    let redis = Redis::start();
    assert_eq!(migrate(&database, &redis, &[]).0.code, Some(0));
    let message = super::json(&redis.keyspace(), "{c}_messages_1");
    let pairs = message["userProperties"]["props"].as_array().unwrap();
    assert_eq!(pairs.len(), 10_000);
    for (n, pair) in pairs.iter().enumerate() {
        assert_eq!(*pair, serde_json::json!({"k": (n % 7).to_string(), "v": n.to_string()}));
    }
}

#[test]
fn a_payload_limit_above_what_the_broker_parses_is_refused() {
    let outcome = Tool::new()
        .args(["migrate", "--postgres-url", "postgres://u@127.0.0.1:1/d", "--redis-url", "redis://127.0.0.1:1", "--max-payload-bytes=15000001"])
        .run();
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
}
