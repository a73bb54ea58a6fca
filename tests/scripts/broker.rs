//! The scripts of the broker beyond what is recorded: bad arguments, foreign keys, repetition.

use redis::Value;
use serde_json::json;

use super::{Call, FAR, assert_repeatable, last_of, message_of, run, set_of};
use crate::support::keyspace::Value as Stored;
use crate::support::redis::Redis;

fn add(client: &str, limit: &str, messages: &str, ttl: &str) -> Call {
    Call::new(super::ADD_MESSAGES).key(set_of(client)).key(last_of(client)).value(limit).value(messages).value(ttl)
}

fn with_id(script: &'static str, packet_id: &str) -> Call {
    Call::new(script).key(set_of("c")).value(packet_id)
}

/// Two messages of client `c`, with a deadline each.
fn two_messages(connection: &mut redis::Connection) {
    let far = FAR.to_string();
    for (packet_id, score) in [(1, "1"), (2, "2")] {
        let key = message_of("c", packet_id);
        let message = json!({"packetId": packet_id, "packetType": "PUBLISH"}).to_string();
        run(connection, &["SET", &key, &message, "PXAT", &far]);
        run(connection, &["ZADD", &set_of("c"), score, &key]);
    }
    run(connection, &["SET", &last_of("c"), "2"]);
}

#[test]
fn a_bad_argument_adds_nothing_at_all() {
    let server = Redis::start();
    let mut connection = server.connection();
    let with_interval = |interval: &str| format!(r#"[{{"msgExpiryInterval":60}},{{"msgExpiryInterval":{interval}}},{{"qos":1}}]"#);
    let bad = [
        ("10", with_interval("-1"), "60"),
        ("10", with_interval("1.5"), "60"),
        ("10", with_interval("4294967296"), "60"),
        ("10", with_interval("\"7\""), "60"),
        ("10", with_interval("true"), "60"),
        ("10", "[{},7]".to_owned(), "60"),
        ("10", "{\"a\":{}}".to_owned(), "60"),
        ("10", "[{".to_owned(), "60"),
        ("10", "7".to_owned(), "60"),
        ("10", "[{}]".to_owned(), "0"),
        ("10", "[{}]".to_owned(), "-5"),
        ("10", "[{}]".to_owned(), "1.5"),
        ("10", "[{}]".to_owned(), "soon"),
        ("0", "[{}]".to_owned(), "60"),
        ("65536", "[{}]".to_owned(), "60"),
        ("", "[{}]".to_owned(), "60"),
    ];
    for (limit, messages, ttl) in bad {
        add("c", limit, &messages, ttl).refusal(&mut connection);
        assert!(server.keyspace().0.is_empty(), "{limit} {messages} {ttl}");
    }
    add("c", "10", "[{},{\"msgExpiryInterval\":null}]", "60").send(&mut connection).unwrap();
    assert_eq!(server.keyspace().0.len(), 4);
}

#[test]
fn a_session_with_a_foreign_or_broken_key_is_not_added_to() {
    let server = Redis::start();
    let mut connection = server.connection();
    for line in [
        ["SET", "{c}_messages", "x"],
        ["SADD", "{c}_last_packet_id", "x"],
        ["SET", "{c}_last_packet_id", "x"],
        ["SET", "{c}_last_packet_id", "65536"],
    ] {
        run(&mut connection, &["FLUSHALL"]);
        run(&mut connection, &line);
        let before = server.keyspace();
        add("c", "10", "[{}]", "60").refusal(&mut connection);
        assert_eq!(server.keyspace(), before, "{line:?}");
    }
}

#[test]
fn a_trim_and_a_removal_leave_members_of_other_names_their_keys() {
    let server = Redis::start();
    let mut connection = server.connection();
    run(&mut connection, &["SET", "other", "kept"]);
    run(&mut connection, &["ZADD", &set_of("c"), "0", "other"]);
    add("c", "1", "[{},{}]", "60").send(&mut connection).unwrap();
    let keys = server.keyspace();
    assert_eq!(keys.members(set_of("c")), [(message_of("c", 2), 2.0)]);
    assert_eq!(keys.text("other").as_deref(), Some("kept"));
    run(&mut connection, &["ZADD", &set_of("c"), "0", "other"]);
    Call::new(super::REMOVE_MESSAGES).key(set_of("c")).key(last_of("c")).send(&mut connection).unwrap();
    assert_eq!(server.keyspace().0.into_keys().collect::<Vec<_>>(), [b"other"]);
}

#[test]
fn releasing_a_message_twice_keeps_its_deadline() {
    let state = assert_repeatable(&with_id(super::UPDATE_PACKET_TYPE, "2"), two_messages);
    let Some(Stored::Str { bytes, pexpiretime_ms }) = state.get(message_of("c", 2)) else { panic!("{state:?}") };
    assert_eq!(*pexpiretime_ms, Some(FAR));
    let message: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(message, json!({"packetId": 2, "packetType": "PUBREL"}));
}

#[test]
fn removing_a_message_or_a_session_twice_is_removing_it_once() {
    let state = assert_repeatable(&with_id(super::REMOVE_MESSAGE, "1"), two_messages);
    assert_eq!(state.members(set_of("c")), [(message_of("c", 2), 2.0)]);
    assert_eq!(state.get(message_of("c", 1)), None);
    assert_eq!(state.text(last_of("c")).as_deref(), Some("2"));
    let clear = Call::new(super::REMOVE_MESSAGES).key(set_of("c")).key(last_of("c"));
    assert!(assert_repeatable(&clear, two_messages).0.is_empty());
}

#[test]
fn reading_twice_removes_a_dangling_reference_once() {
    let state = assert_repeatable(&with_id(super::GET_MESSAGES, "10"), |connection| {
        two_messages(connection);
        run(connection, &["DEL", &message_of("c", 1)]);
    });
    assert_eq!(state.members(set_of("c")), [(message_of("c", 2), 2.0)]);
}

/// The exception that the head of the script names.
#[test]
fn adding_twice_adds_twice() {
    let server = Redis::start();
    let mut connection = server.connection();
    let call = add("c", "10", "[{}]", "60");
    assert_eq!(call.send(&mut connection).unwrap(), Value::Int(0));
    assert_eq!(call.send(&mut connection).unwrap(), Value::Int(1));
    assert_eq!(server.keyspace().members(set_of("c")).len(), 2);
}
