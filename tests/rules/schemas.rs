//! Tables of brokers before 1.4, which lack the later columns.

use serde_json::json;

use super::{DEFAULT_TTL_MS, migrate, now_ms};
use crate::support::keyspace::Value;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;

/// Migrates one row from tables without some columns. Each column that is there is filled, and gives its field.
fn check(missing: &[&str]) {
    let columns = [
        ("msg_expiry_interval", "3600", "msgExpiryInterval", json!(3600)),
        ("payload_format_indicator", "1", "payloadFormatIndicator", json!(1)),
        ("content_type", "'ct'", "contentType", json!("ct")),
        ("response_topic", "'rt'", "responseTopic", json!("rt")),
        ("correlation_data", "'\\xff'", "correlationData", json!("/w==")),
    ];
    let database = Postgres::shared().database();
    database.create_tables();
    for column in missing {
        assert!(columns.iter().any(|(name, ..)| name == column));
        database.psql(&format!("alter table device_publish_msg drop column {column}"));
    }
    let there: Vec<_> = columns.iter().filter(|(name, ..)| !missing.contains(name)).collect();
    let names: String = there.iter().map(|(name, ..)| format!(", {name}")).collect();
    let values: String = there.iter().map(|(_, value, ..)| format!(", {value}")).collect();
    let time = now_ms() - 1000;
    database.psql(&format!(
        "insert into device_session_ctx values ('c', 0, 4, 5);
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties, retain{names})
         values ('c', 4, 't', {time}, 5, 'PUBLISH', 1, 'x', '{{\"props\":[{{\"k\":\"a\",\"v\":\"b\"}}]}}', true{values})"
    ));
    let mut expected = json!({"clientId": "c", "topicName": "t", "time": time, "packetId": 5, "packetType": "PUBLISH", "qos": 1, "payload": "eA==",
        "retained": true, "userProperties": {"props": [{"k": "a", "v": "b"}]}});
    for (_, _, field, value) in there {
        expected[field] = value.clone();
    }
    let redis = Redis::start();
    let (outcome, _) = migrate(&database, &redis, &[]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let keys = redis.keyspace();
    let ttl_ms = if missing.contains(&"msg_expiry_interval") { DEFAULT_TTL_MS } else { 3_600_000 };
    let Some(Value::Str { bytes, pexpiretime_ms }) = keys.get("{c}_messages_5") else { panic!("{keys:?}") };
    assert_eq!(*pexpiretime_ms, Some(time + ttl_ms));
    assert_eq!(serde_json::from_slice::<serde_json::Value>(bytes).unwrap(), expected);
    assert_eq!(keys.members("{c}_messages"), [("{c}_messages_5".to_owned(), 5.0)]);
    assert_eq!((keys.text("{c}_last_packet_id").as_deref(), keys.0.len()), (Some("5"), 3));
}

#[test]
fn tables_of_1_0_have_neither_expiry_nor_the_properties_of_mqtt_5() {
    check(&["msg_expiry_interval", "payload_format_indicator", "content_type", "response_topic", "correlation_data"]);
}

#[test]
fn tables_of_1_1_have_the_expiry_interval() {
    check(&["payload_format_indicator", "content_type", "response_topic", "correlation_data"]);
}

#[test]
fn tables_of_1_2_1_have_the_content_type_too() {
    check(&["response_topic", "correlation_data"]);
}

#[test]
fn tables_of_1_3_have_every_column() {
    check(&[]);
}

#[test]
fn a_column_that_the_tool_does_not_know_is_passed_over() {
    let database = Postgres::shared().database();
    database.create_tables();
    database.psql(&format!(
        "alter table device_publish_msg add column note text default 'n'; alter table device_session_ctx add column note text default 'n';
         insert into device_session_ctx values ('c', 0, 0, 1);
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload) values ('c', 0, 't', {}, 1, 1, 'x')",
        now_ms()
    ));
    let redis = Redis::start();
    assert_eq!(migrate(&database, &redis, &[]).0.code, Some(0));
    assert_eq!(super::json(&redis.keyspace(), "{c}_messages_1").as_object().unwrap().len(), 8);
}
