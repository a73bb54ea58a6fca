//! Measuring messages under scratch keys: what MEMORY USAGE says, and nothing left.

use super::{Call, MEASURE_MESSAGES, run, send_and_lose_the_reply};
use crate::support::poll::wait_until;
use crate::support::redis::Redis;

fn call(kind: &str) -> Call {
    let call = Call::new(MEASURE_MESSAGES).key("{s}:0").key("{s}:1").key("{s}:2").key("{s}:3");
    let call = call.value("10000").value(kind).value("60");
    call.value("x".repeat(300)).value("{c}_messages_1").value("y".repeat(5000)).value("{c}_messages_2")
}

fn usage(server: &Redis, key: &str) -> i64 {
    server.cli(&["MEMORY", "USAGE", key, "SAMPLES", "0"]).parse().unwrap()
}

#[test]
fn messages_are_measured_as_the_server_counts_them_and_nothing_is_left_however_often() {
    let server = Redis::start();
    let mut connection = server.connection();
    for _ in 0..2 {
        let found: (i64, i64, i64) = redis::from_redis_value(call("measure").send(&mut connection).unwrap()).unwrap();
        assert!(server.keyspace().0.is_empty());
        run(&mut connection, &["SET", "{s}:1", "10000", "EX", "60"]);
        run(&mut connection, &["SET", "{s}:2", &"x".repeat(300), "EX", "60"]);
        run(&mut connection, &["SET", "{s}:3", &"y".repeat(5000), "EX", "60"]);
        run(&mut connection, &["ZADD", "{s}:0", "3", "{c}_messages_1", "4", "{c}_messages_2"]);
        assert_eq!(found, (usage(&server, "{s}:0"), usage(&server, "{s}:1"), usage(&server, "{s}:2") + usage(&server, "{s}:3")));
        run(&mut connection, &["FLUSHALL"]);
    }
}

#[test]
fn without_the_measuring_it_writes_and_removes_only_also_when_nobody_waits_for_the_reply() {
    let server = Redis::start();
    let mut connection = server.connection();
    let found: (i64, i64, i64) = redis::from_redis_value(call("").send(&mut connection).unwrap()).unwrap();
    assert_eq!(found, (0, 0, 0));
    let calls = |server: &Redis| server.cli(&["INFO", "commandstats"]).lines().any(|line| line.starts_with("cmdstat_eval:calls=2,"));
    send_and_lose_the_reply(&server, &call("measure"));
    wait_until("the lost call to be run", || calls(&server));
    assert!(server.keyspace().0.is_empty());
}

#[test]
fn a_user_who_may_not_measure_or_remove_is_refused_before_anything_is_written() {
    let server = Redis::start();
    let mut connection = server.connection();
    for lacking in ["-memory", "-del", "-set"] {
        run(&mut connection, &["ACL", "SETUSER", "tool", "reset", "on", ">pw", "~*", "+@all", lacking]);
        let mut other = redis::Client::open(format!("redis://tool:pw@127.0.0.1:{}", server.port)).unwrap().get_connection().unwrap();
        call("measure").refusal(&mut other);
        assert!(server.keyspace().0.is_empty(), "{lacking}");
    }
}
