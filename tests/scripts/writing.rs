//! Writing messages with explicit packet ids, scores and deadlines.

use redis::Value;

use super::{Call, FAR, assert_repeatable, last_of, message_of, numbers, run, set_of};
use crate::support::keyspace::Value as Stored;
use crate::support::redis::Redis;

/// One session of a call: client, last packet id, and (packet id, JSON, score) of each message.
pub(super) type Session<'a> = (&'a str, &'a str, &'a [(u32, &'a [u8], u64)]);

pub(super) fn create(sessions: &[Session]) -> Call {
    write(super::CREATE_SESSIONS, sessions)
}

pub(super) fn replace(sessions: &[Session]) -> Call {
    write(super::REPLACE_SESSIONS, sessions)
}

fn write(script: &'static str, sessions: &[Session]) -> Call {
    let mut call = Call::new(script);
    for (client, last_packet_id, messages) in sessions {
        call = call.key(set_of(client)).key(last_of(client)).value(messages.len().to_string()).value(last_packet_id);
        for (packet_id, json, score) in *messages {
            call = call.key(message_of(client, *packet_id));
            call = call.value(json).value(FAR.to_string()).value(score.to_string());
        }
    }
    call
}

const NOTHING: Value = Value::Array(Vec::new());

fn stored(json: &[u8]) -> Option<Stored> {
    Some(Stored::Str { bytes: json.to_vec(), pexpiretime_ms: Some(FAR) })
}

#[test]
fn several_sessions_are_written_with_scores_deadlines_and_last_packet_ids() {
    let sessions: &[Session] = &[
        ("a", "2", &[(2, b"{\"n\":2}", 65_537), (1, b"{\"n\":1}", 65_536)]),
        ("empty", "0", &[]),
        ("b", "65535", &[(65_535, b"", 9_007_199_254_740_991)]),
    ];
    for call in [create(sessions), replace(sessions)] {
        let state = assert_repeatable(&call, |_| ());
        assert_eq!(state.members(set_of("a")), [(message_of("a", 1), 65_536.0), (message_of("a", 2), 65_537.0)]);
        assert_eq!(state.members(set_of("b")), [(message_of("b", 65_535), 9_007_199_254_740_991.0)]);
        assert_eq!(state.get(message_of("a", 1)).cloned(), stored(b"{\"n\":1}"));
        assert_eq!(state.get(message_of("b", 65_535)).cloned(), stored(b""));
        for (client, last) in [("a", "2"), ("empty", "0"), ("b", "65535")] {
            let expected = Stored::Str { bytes: last.into(), pexpiretime_ms: None };
            assert_eq!(state.get(last_of(client)), Some(&expected));
        }
        assert_eq!(state.0.len(), 8, "no set for a session without messages");
    }
}

#[test]
fn a_later_call_of_a_session_adds_messages_and_leaves_its_last_packet_id() {
    let server = Redis::start();
    let mut connection = server.connection();
    for call in [create(&[("c", "7", &[(7, b"x", 7)])]), create(&[("c", "", &[(6, b"y", 6)])])] {
        assert_eq!(call.send(&mut connection).unwrap(), NOTHING);
    }
    let state = server.keyspace();
    assert_eq!(state.text(last_of("c")).as_deref(), Some("7"));
    assert_eq!(state.members(set_of("c")), [(message_of("c", 6), 6.0), (message_of("c", 7), 7.0)]);
}

#[test]
fn a_session_that_somebody_else_has_is_reported_and_left_untouched() {
    let server = Redis::start();
    let mut connection = server.connection();
    let call = create(&[("a", "1", &[(1, b"a", 1)]), ("b", "1", &[(1, b"b", 1)]), ("c", "1", &[])]);
    run(&mut connection, &["SET", &last_of("b"), "9"]);
    run(&mut connection, &["SET", &last_of("c"), "01"]);
    assert_eq!(call.send(&mut connection).unwrap(), numbers(&[2, 3]));
    let state = server.keyspace();
    assert_eq!(state.text(last_of("b")).as_deref(), Some("9"));
    assert_eq!(state.members(set_of("b")), []);
    assert_eq!(state.get(message_of("b", 1)), None);
    assert_eq!(state.members(set_of("a")).len(), 1, "the others are written");
    assert_eq!(call.send(&mut connection).unwrap(), numbers(&[2, 3]), "the first one is our own now");
    assert_eq!(server.keyspace(), state);
}

#[test]
fn replace_overwrites_messages_scores_deadlines_and_the_last_packet_id() {
    let call = replace(&[("c", "5", &[(5, b"now", 70_000)])]);
    let state = assert_repeatable(&call, |connection| {
        run(connection, &["SET", &last_of("c"), "9", "EX", "1000"]);
        run(connection, &["SET", &message_of("c", 5), "old"]);
        run(connection, &["ZADD", &set_of("c"), "5", &message_of("c", 5)]);
    });
    let last = Stored::Str { bytes: b"5".to_vec(), pexpiretime_ms: None };
    assert_eq!(state.get(last_of("c")), Some(&last));
    assert_eq!(state.get(message_of("c", 5)).cloned(), stored(b"now"));
    assert_eq!(state.members(set_of("c")), [(message_of("c", 5), 70_000.0)]);
}

#[test]
fn a_key_of_another_type_is_reported_by_its_position_and_never_overwritten() {
    let sessions: &[Session] = &[
        ("message", "2", &[(1, b"x", 1), (2, b"y", 2)]),
        ("set", "1", &[(1, b"x", 1)]),
        ("last", "1", &[(1, b"x", 1)]),
        ("only", "1", &[(1, b"x", 1)]),
    ];
    // Positions: message 1..4, set 5..7, last 8..10, only 11..13.
    let call = replace(sessions);
    let foreign = |connection: &mut redis::Connection| {
        run(connection, &["HSET", &message_of("message", 1), "f", "v"]);
        run(connection, &["SET", &set_of("set"), "v"]);
        run(connection, &["SADD", &last_of("last"), "v"]);
        run(connection, &["RPUSH", &message_of("only", 1), "v"]);
    };
    let state = assert_repeatable(&call, foreign);
    assert_eq!(state.get(message_of("message", 1)), Some(&Stored::Other("hash".to_owned())));
    assert_eq!(state.members(set_of("message")), [(message_of("message", 2), 2.0)]);
    assert_eq!(state.text(set_of("set")).as_deref(), Some("v"));
    assert_eq!(state.get(last_of("set")), None, "a session with a foreign set is left untouched");
    assert_eq!(state.get(last_of("last")), Some(&Stored::Other("set".to_owned())));
    assert_eq!(state.get(message_of("last", 1)), None);
    assert_eq!(state.members(set_of("only")), []);
    assert_eq!(state.text(last_of("only")).as_deref(), Some("1"));
    let server = Redis::start();
    let mut connection = server.connection();
    foreign(&mut connection);
    assert_eq!(call.send(&mut connection).unwrap(), numbers(&[3, 5, 9, 13]));
}

#[test]
fn bytes_of_any_value_and_ids_with_braces_arrive_unchanged() {
    let every_byte: Vec<u8> = (0..=255).collect();
    for client in ["a{b}c", "{}x", "a}b", "дом 🏠\r\n\"'", "a*[b]?", "c_messages"] {
        let state = assert_repeatable(&create(&[(client, "1", &[(1, &every_byte, 1)])]), |_| ());
        assert_eq!(state.get(message_of(client, 1)).cloned(), stored(&every_byte), "{client}");
        assert_eq!(state.members(set_of(client)), [(message_of(client, 1), 1.0)]);
        assert_eq!(state.0.len(), 3);
    }
}

#[test]
fn a_bad_argument_writes_nothing_at_all() {
    let server = Redis::start();
    let mut connection = server.connection();
    let good = replace(&[("a", "1", &[(1, b"x", 1)]), ("b", "2", &[(1, b"x", 1), (2, b"y", 2)])]);
    // Values: 0 n, 1 last, 2 JSON, 3 deadline, 4 score; 5 n, 6 last, 7.. two messages of three values.
    let bad: [(usize, &[&str]); 4] = [
        (5, &["", "0", "1", "3", "-1", "1e0", "0x2", "1001", "99999999999999999999"]),
        (6, &["x", "-1", "65536", "1.5", " 1"]),
        (11, &["", "0", "-1", "1.5", "1e12", "soon", "0123", "9999999999999999"]),
        (12, &["", "-1", "1.5", "+inf", "nan", "9007199254740994", "1 "]),
    ];
    for (position, values) in bad {
        for value in values {
            let mut call = good.clone();
            call.values[position] = value.as_bytes().to_vec();
            let message = call.refusal(&mut connection);
            assert!(message.contains("in argument"), "{message}");
            assert!(server.keyspace().0.is_empty(), "{position}: {value:?}");
        }
    }
    let mut cases = vec![good.clone(), good.clone(), good.clone(), good.clone()];
    cases[0].keys.pop();
    cases[1].keys.push(b"one more".to_vec());
    cases[2].values.pop();
    cases[3].values.push(b"1".to_vec());
    for call in cases {
        call.refusal(&mut connection);
        assert!(server.keyspace().0.is_empty());
    }
    assert_eq!(good.send(&mut connection).unwrap(), NOTHING);
}

#[test]
fn a_full_memory_refuses_the_call_before_its_first_write() {
    let server = Redis::start();
    let mut connection = server.connection();
    run(&mut connection, &["CONFIG", "SET", "maxmemory", "1"]);
    for script in [super::CREATE_SESSIONS, super::REPLACE_SESSIONS] {
        for last in ["1", ""] {
            let message = write(script, &[("c", last, &[(1, b"x", 1)])]).refusal(&mut connection);
            assert!(message.contains("OOM"), "{message}");
            assert!(server.keyspace().0.is_empty());
        }
    }
}

#[test]
fn a_hundred_messages_take_one_write_each_and_one_for_the_set() {
    let server = Redis::start();
    let mut connection = server.connection();
    let messages: Vec<(u32, &[u8], u64)> = (1..=100).map(|id| (id, b"{}".as_slice(), u64::from(id))).collect();
    run(&mut connection, &["CONFIG", "RESETSTAT"]);
    create(&[("c", "100", &messages)]).send(&mut connection).unwrap();
    let statistics = server.cli(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = statistics.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")))?;
        line.split(',').next().unwrap().parse::<u32>().ok()
    };
    assert_eq!((calls("set"), calls("zadd")), (Some(101), Some(1)));
    let inside = statistics.lines().filter(|line| line.starts_with("cmdstat_")).count();
    assert_eq!(inside, 4, "nothing but these, eval itself and config: {statistics}");
}
