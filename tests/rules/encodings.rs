//! Databases whose encoding is not UTF-8.

use super::{migrate, now_ms};
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;

fn database(name: &str, encoding: &str) -> Database {
    let admin = Postgres::shared().admin();
    admin.psql(&format!("create database {name} encoding '{encoding}' template template0 locale 'C'"));
    let server = admin.url.strip_suffix(&admin.name).unwrap();
    let database = Database { url: format!("{server}{name}"), name: name.to_owned(), port: admin.port };
    database.create_tables();
    database
}

#[test]
fn text_of_a_sql_ascii_database_that_is_not_utf8_is_quarantined_and_the_rest_goes_on() {
    let database = database("rules_sql_ascii", "SQL_ASCII");
    let now = now_ms();
    database.psql(&format!(
        r#"insert into device_session_ctx values (e'bad\xff', 0, 1, 2), (e'alone\xfe', 0, 1, 2), (e'\xc3\xa9', 0, 0, 1), ('c', 0, 3, 4);
        insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload, content_type, user_properties) values
            (e'bad\xff', 0, 't', {now}, 1, 1, 'x', null, null), (e'bad\xff', 1, 't', {now}, 2, 1, 'x', null, null),
            (e'\xc3\xa9', 0, e'\xc3\xa9', {now}, 1, 1, 'x', null, null),
            ('c', 0, e't\xff', {now}, 1, 1, 'x', null, null), ('c', 1, 't', {now}, 2, 1, 'x', e'\xed\xa0\x80', null),
            ('c', 2, 't', {now}, 3, 1, 'x', null, e'{{"props":[{{"k":"\xff","v":""}}]}}'), ('c', 3, 't', {now}, 4, 1, e'\\xff', null, null);"#
    ));
    let redis = Redis::start();
    let (outcome, mut quarantine) = migrate(&database, &redis, &[]);
    assert_eq!(outcome.code, Some(10), "{outcome:?}");
    let report = outcome.json();
    assert_eq!((&report["rows_read"], &report["messages_migrated"], &report["quarantined"]), (&7.into(), &2.into(), &5.into()));
    assert_eq!(report["invalid_contexts"], 1);
    quarantine.sort();
    let row = |client: &str, serial: Option<i64>| (client.to_owned(), serial, "not_utf8".to_owned());
    assert_eq!(
        quarantine,
        [
            row("alone\u{fffd}", None),
            row("bad\u{fffd}", Some(0)),
            row("bad\u{fffd}", Some(1)),
            row("c", Some(0)),
            row("c", Some(1)),
            row("c", Some(2))
        ]
    );
    let keys = redis.keyspace();
    let names: Vec<_> = keys.0.keys().map(|key| String::from_utf8_lossy(key)).collect();
    assert_eq!(names, ["{c}_last_packet_id", "{c}_messages", "{c}_messages_4", "{é}_last_packet_id", "{é}_messages", "{é}_messages_1"]);
    assert_eq!(super::json(&keys, "{é}_messages_1")["topicName"], "é");
    assert_eq!(super::json(&keys, "{c}_messages_4")["payload"], "/w==");
}

#[test]
fn ids_that_are_no_text_are_no_borders_between_chunks() {
    let database = database("rules_sql_ascii_chunks", "SQL_ASCII");
    // 40,000 rows are at least two chunks; nine in ten ids are no text.
    database.psql(&format!(
        r"insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
        select case when n % 10 = 0 then 'good' else e'bad\xff' end || n / 100, n, 't', {now}, n % 65535 + 1, 1, '' from generate_series(0, 49999) n",
        now = now_ms()
    ));
    let redis = Redis::start();
    let (outcome, quarantine) = migrate(&database, &redis, &[]);
    assert_eq!((outcome.code, quarantine.len()), (Some(10), 45_000), "{outcome:?}");
    assert_eq!(outcome.json()["messages_migrated"], 5_000);
    assert_eq!(redis.keyspace().0.len(), 5_000 + 2 * 500);
}

#[test]
fn text_of_a_latin1_database_arrives_as_utf8() {
    let database = database("rules_latin1", "LATIN1");
    database.psql(&format!(
        r"set client_encoding = 'UTF8'; insert into device_session_ctx values ('é', 0, 0, 1);
        insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload) values ('é', 0, 'ü', {}, 1, 1, e'\\xff')",
        now_ms()
    ));
    let redis = Redis::start();
    let (outcome, _) = migrate(&database, &redis, &[]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let message = super::json(&redis.keyspace(), "{é}_messages_1");
    assert_eq!((&message["topicName"], &message["clientId"], &message["payload"]), (&"ü".into(), &"é".into(), &"/w==".into()));
}
