//! Removing old messages and whole sessions, a bounded number a call.

use super::{Call, FAR, assert_repeatable, last_of, lists, message_of, numbers, run, set_of};
use crate::support::keyspace::Value as Stored;
use crate::support::redis::Redis;
use redis::{Connection, Value};

pub(super) fn trim(budget: &str, sessions: &[(&str, &str)]) -> Call {
    let start = Call::new(super::TRIM_SESSIONS).value(budget);
    sessions.iter().fold(start, |call, (client, lowest)| call.key(set_of(client)).key(last_of(client)).value(lowest))
}

/// Messages 1 to `count`, score = packet id, and the last packet id.
pub(super) fn fill(connection: &mut Connection, client: &str, count: u32) {
    let far = FAR.to_string();
    let mut pipe = redis::pipe();
    for id in 1..=count {
        let key = message_of(client, id);
        pipe.cmd("SET").arg(&key).arg("{}").arg("PXAT").arg(&far).cmd("ZADD").arg(set_of(client)).arg(id).arg(&key);
    }
    pipe.cmd("SET").arg(last_of(client)).arg(count).exec(connection).unwrap();
}

fn answer(unfinished: i64, foreign: &[i64]) -> Value {
    Value::Array(vec![Value::Int(unfinished), numbers(foreign)])
}

#[test]
fn what_is_below_the_lowest_score_goes_with_its_string_and_the_rest_stays() {
    let call = trim("1000", &[("a", "3"), ("absent", "9"), ("b", "0")]);
    let state = assert_repeatable(&call, |connection| {
        fill(connection, "a", 4);
        fill(connection, "b", 2);
    });
    assert_eq!(state.members(set_of("a")), [(message_of("a", 3), 3.0), (message_of("a", 4), 4.0)]);
    assert_eq!(state.text(last_of("a")).as_deref(), Some("4"));
    assert_eq!(state.get(message_of("a", 2)), None);
    assert_eq!(state.0.len(), 4 + 4);
}

#[test]
fn infinity_removes_the_whole_session_and_no_other() {
    let state = assert_repeatable(&trim("1000", &[("a{b}c", "+inf")]), |connection| {
        fill(connection, "a{b}c", 3);
        fill(connection, "a", 1);
        run(connection, &["ZADD", &set_of("a{b}c"), "+inf", &message_of("a{b}c", 3)]);
    });
    assert_eq!(state.0.len(), 3);
    assert_eq!(state.members(set_of("a")).len(), 1);
}

#[test]
fn the_budget_bounds_a_call_and_the_last_packet_id_goes_when_nothing_else_is_left() {
    let server = Redis::start();
    let mut connection = server.connection();
    fill(&mut connection, "a", 3);
    fill(&mut connection, "b", 1200);
    fill(&mut connection, "c", 2);
    let whole = [("a", "+inf"), ("b", "+inf"), ("c", "+inf")];
    assert_eq!(trim("2", &whole).send(&mut connection).unwrap(), answer(1, &[]));
    let state = server.keyspace();
    assert_eq!(state.members(set_of("a")), [(message_of("a", 3), 3.0)], "the oldest go first");
    assert_eq!(state.text(last_of("a")).as_deref(), Some("3"));
    assert_eq!(trim("601", &whole).send(&mut connection).unwrap(), answer(2, &[]));
    let state = server.keyspace();
    assert_eq!((state.members(set_of("a")).len(), state.get(last_of("a"))), (0, None));
    assert_eq!(state.members(set_of("b"))[0], (message_of("b", 601), 601.0));
    assert_eq!(state.members(set_of("c")).len(), 2);
    // Exactly the rest of b: it is looked at once more, then finished.
    assert_eq!(trim("600", &whole[1..]).send(&mut connection).unwrap(), answer(1, &[]));
    assert_eq!(trim("600", &whole[1..]).send(&mut connection).unwrap(), answer(0, &[]));
    assert!(server.keyspace().0.is_empty());
}

#[test]
fn a_session_with_a_key_of_another_type_is_reported_and_left_alone() {
    let call = trim("100", &[("set", "+inf"), ("ours", "+inf"), ("last", "+inf")]);
    let prepare = |connection: &mut Connection| {
        run(connection, &["HSET", &set_of("set"), "f", "v"]);
        run(connection, &["SET", &last_of("set"), "1"]);
        fill(connection, "ours", 2);
        fill(connection, "last", 1);
        run(connection, &["DEL", &last_of("last")]);
        run(connection, &["SADD", &last_of("last"), "v"]);
    };
    let state = assert_repeatable(&call, prepare);
    assert_eq!(state.text(last_of("set")).as_deref(), Some("1"));
    assert_eq!(state.members(set_of("last")).len(), 1);
    assert_eq!(state.0.len(), 2 + 3);
    let server = Redis::start();
    prepare(&mut server.connection());
    assert_eq!(call.send(&mut server.connection()).unwrap(), answer(0, &[1, 3]));
}

#[test]
fn only_strings_under_the_sets_own_name_are_deleted() {
    let state = assert_repeatable(&trim("100", &[("c", "+inf")]), |connection| {
        fill(connection, "c", 1);
        run(connection, &["SET", "other", "kept"]);
        run(connection, &["SET", "{c}_messagesX1", "kept"]);
        run(connection, &["RPUSH", &message_of("c", 2), "kept"]);
        run(connection, &["ZADD", &set_of("c"), "2", "other", "3", "{c}_messagesX1", "4", &message_of("c", 2)]);
    });
    assert_eq!(state.text("other").as_deref(), Some("kept"));
    assert_eq!(state.text("{c}_messagesX1").as_deref(), Some("kept"));
    assert_eq!(state.get(message_of("c", 2)), Some(&Stored::Other("list".to_owned())));
    assert_eq!(state.0.len(), 3);
}

#[test]
fn a_bad_argument_removes_nothing_at_all() {
    let server = Redis::start();
    let mut connection = server.connection();
    fill(&mut connection, "a", 2);
    fill(&mut connection, "b", 2);
    let before = server.keyspace();
    for budget in ["", "0", "-1", "1.5", "100001", "many"] {
        trim(budget, &[("a", "+inf")]).refusal(&mut connection);
        assert_eq!(server.keyspace(), before, "{budget:?}");
    }
    for lowest in ["", "-1", "1.5", "inf", "-inf", "(3", "x"] {
        trim("10", &[("a", "+inf"), ("b", lowest)]).refusal(&mut connection);
        assert_eq!(server.keyspace(), before, "{lowest:?}");
    }
    trim("10", &[("a", "+inf")]).key(set_of("b")).refusal(&mut connection);
    trim("10", &[("a", "+inf")]).value("+inf").refusal(&mut connection);
    assert_eq!(server.keyspace(), before);
    assert_ne!(trim("10", &[("a", "+inf")]).send(&mut connection).unwrap(), lists(&[]));
}
