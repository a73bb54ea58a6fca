//! What looks different and is none: a broker delivers the same.

use serde_json::Value as Json;

use super::{Scene, base, found, restore, verify};
use crate::sessions::{Sessions, migrate};
use crate::support::redis::Redis;

const SET: &str = "{c-0000}_messages";
const THIRD: &str = "{c-0000}_messages_3";
const FULL: &str = "{full}_messages_42";

#[test]
fn a_dangling_reference_to_what_has_expired_is_no_difference() {
    let scene = base();
    scene.assert_found("its row still stands", &[&["ZADD", "{over}_messages", "1", "{over}_messages_1"]], &[]);
    scene.assert_found("its row is gone", &[&["ZADD", SET, "0", "{c-0000}_messages_77"]], &[]);
    scene.assert_found("of a session without rows", &[&["ZADD", "{lone-0000}_messages", "9", "{lone-0000}_messages_9"]], &[]);
}

#[test]
fn a_pubrel_that_the_broker_made_may_stay_for_ever() {
    let scene = base();
    scene.assert_found("a PUBREL", &[&["PERSIST", "{released}_messages_1"]], &[]);
}

#[test]
fn a_deadline_within_a_second_is_the_same() {
    let scene = base();
    for off in [1000, -1000, 1] {
        let at = (scene.deadline(THIRD) + off).to_string();
        scene.assert_found(&format!("{off} ms"), &[&["PEXPIREAT", THIRD, &at]], &[]);
    }
}

#[test]
fn the_form_of_the_json_is_free() {
    let scene = base();
    let json = scene.json(FULL);
    let sorted = serde_json::to_string(&serde_json::from_str::<std::collections::BTreeMap<String, Json>>(&json).unwrap()).unwrap();
    let third = scene.json(THIRD);
    let nulls = "\"userProperties\":null,\"msgExpiryInterval\":null,\"payloadFormatIndicator\":null,\"contentType\":null,\"responseTopic\":null";
    for (what, key, form) in [
        ("the other name of the topic", FULL, json.replace("\"topicName\"", "\"topic\"")),
        ("the order of the fields", FULL, sorted),
        ("escaped slashes", FULL, json.replace('/', "\\/")),
        ("blanks", FULL, json.replace(",\"", " ,\n \"")),
        ("numbers as texts", FULL, json.replace("\"packetId\":42", "\"packetId\":\"42\"")),
        ("explicit nulls", THIRD, third.replacen('{', &format!("{{{nulls},\"correlationData\":null,"), 1)),
        ("no properties", THIRD, third.replacen('{', "{\"userProperties\":{\"props\":[]},", 1)),
        ("an absent false", THIRD, third.replace(",\"retained\":false", "")),
    ] {
        scene.reset();
        scene.rewrite(key, &form);
        scene.assert_findings(what, &[], &[]);
    }
}

#[test]
fn keys_of_others_are_nobodys_findings() {
    let scene = base();
    let lines: [&[&str]; 9] = [
        &["SET", "plain", "1"],
        &["SET", "{c-0000}_other", "1"],
        &["HSET", "{c-0000}_messages_", "f", "v"],
        &["SET", "{c-0000}_messages_x", "1"],
        &["SET", "{c-0000}_messages_0", "1"],
        &["SET", "{c-0000}_messages_65536", "1"],
        &["SET", "{c-0000}_messages_03", "1"],
        &["SET", "c-0000_last_packet_id", "1"],
        &["HSET", "mqttClientCredentials", "f", "v"],
    ];
    scene.assert_found("beside the sessions", &lines, &[]);
}

#[test]
fn sessions_under_another_prefix_are_not_compared() {
    let sessions = Sessions::new(3, 2);
    let (database, redis) = (sessions.load(), Redis::start());
    let outcome = migrate(&database, &redis.url()).args(["--key-prefix", "p[1]:"]).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    redis.cli(&["SET", "{x}_last_packet_id", "1"]);
    redis.cli(&["SET", "q:{x}_last_packet_id", "1"]);
    redis.cli(&["SET", "p1:{x}_last_packet_id", "1"]);
    let verified = verify(&database, &redis.url(), &["--key-prefix", "p[1]:"]);
    assert_eq!((verified.findings(), verified.figure("sessions_compared")), (vec![], 3));
    redis.cli(&["SET", "p[1]:{x}_last_packet_id", "1"]);
    assert_eq!(verify(&database, &redis.url(), &["--key-prefix", "p[1]:"]).findings(), [found("x", "extra_session", None, None)]);
    let missing = verify(&database, &redis.url(), &["--key-prefix", "r:"]);
    assert_eq!(missing.figure("differing_sessions"), 3);
}

/// `many`: of its five rows the oldest is trimmed at a limit of 2, the next one superseded, the newest broken.
fn of_every_outcome() -> (Scene, &'static [&'static str]) {
    const OPTIONS: &[&str] = &["--message-limit", "2"];
    let (database, redis) = (Sessions::new(1, 1).load(), Redis::start());
    database.psql(
        "insert into device_session_ctx values ('many', 1, 4, 5);
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, retain)
         select 'many', n, 's/t', time, (array[1, 3, 2, 3, null])[n + 1], 'PUBLISH', 1, 'x', false
         from device_publish_msg, generate_series(0, 4) n where client_id = 'c-0000'",
    );
    let outcome = migrate(&database, &redis.url()).args(OPTIONS).run();
    assert_eq!(outcome.code, Some(10), "{outcome:#?}");
    let report = outcome.json();
    assert_eq!(["trimmed", "superseded", "quarantined"].map(|name| report[name].as_u64()), [Some(1); 3]);
    (Scene { base: redis.keyspace(), database, redis }, OPTIONS)
}

#[test]
fn rows_that_are_trimmed_superseded_or_quarantined_are_not_missing() {
    let (scene, options) = of_every_outcome();
    let verified = scene.verify(options);
    assert_eq!((verified.findings(), verified.outcome.code), (vec![], Some(10)));
    assert_eq!((verified.figure("messages_compared"), verified.figure("quarantined")), (3, 1));
    // One more is within this limit.
    assert_eq!(scene.verify(&[]).findings(), [found("many", "missing_message", 1, 0)]);
}

#[test]
fn a_trimmed_message_that_stands_there_is_extra() {
    let (scene, options) = of_every_outcome();
    scene.run(&["SET", "{many}_messages_1", &scene.json("{many}_messages_2"), "EX", "9000"]);
    scene.run(&["ZADD", "{many}_messages", "1", "{many}_messages_1"]);
    let verified = scene.verify(options);
    assert_eq!(verified.findings(), [found("many", "extra_message", 1, None)]);
    assert_eq!(verified.outcome.code, Some(5), "differences come before the quarantine");
}

#[test]
fn rows_that_change_after_the_copy_are_findings_of_their_kinds() {
    let scene = base();
    let of = |sql: &str| {
        let scratch = Scene { database: scene.database.clone(), redis: Redis::start(), base: scene.base.clone() };
        restore(&scratch.redis, &scene.base);
        scene.database.psql(sql);
        scratch.verify(&[]).findings()
    };
    let gone = "delete from device_publish_msg where client_id = 'c-0000' and serial_number = 2";
    assert_eq!(of(gone), [found("c-0000", "extra_message", 3, None)]);
    let renamed = "update device_publish_msg set topic = 'other' where client_id = 'full'";
    assert_eq!(of(renamed)[1..], [found("full", "different_field", 42, 41)]);
    let forgotten = "delete from device_session_ctx where client_id = 'lone-0000'";
    assert_eq!(of(forgotten)[2..], [found("lone-0000", "extra_session", None, None)]);
}
