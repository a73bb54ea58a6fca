//! Reading parts of sessions back, by a script that only reads.

use redis::{Connection, Value};

use super::trim_sessions::fill;
use super::{Call, FAR, READ_SESSIONS, last_of, message_of, run, set_of};
use crate::support::redis::Redis;

/// A part of a call: which messages, what else, and the range of scores.
fn part(call: Call, client: &str, packet_ids: &[u32], what: &str, range: [&str; 2]) -> Call {
    let call = call.key(set_of(client)).key(last_of(client));
    let call = packet_ids.iter().fold(call, |call, packet_id| call.key(message_of(client, *packet_id)));
    call.value(packet_ids.len().to_string()).value(what).value(range[0]).value(range[1])
}

fn one(client: &str, packet_ids: &[u32], what: &str, range: [&str; 2]) -> Call {
    part(Call::new(READ_SESSIONS), client, packet_ids, what, range)
}

const ALL: [&str; 2] = ["-inf", "+inf"];

fn text(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

fn kind(name: &str) -> Value {
    Value::SimpleString(name.to_owned())
}

fn list(values: &[Value]) -> Value {
    Value::Array(values.to_vec())
}

/// The reply of one part.
fn reply(size: Value, last: (Value, i64), values: &[Value], ends: &[i64], scores: &[Value]) -> Value {
    list(&[size, last.0, Value::Int(last.1), list(values), super::numbers(ends), list(scores)])
}

fn ask(connection: &mut Connection, call: &Call) -> Value {
    call.send(connection).unwrap()
}

#[test]
fn a_part_has_the_size_of_its_range_the_last_packet_id_and_each_message_in_order() {
    let server = Redis::start();
    let mut connection = server.connection();
    fill(&mut connection, "a", 4);
    let before = server.keyspace();
    let call = one("a", &[4, 2], "hv", ["2", "(4"]);
    let expected = list(&[reply(Value::Int(2), (text("4"), -1), &[text("{}"), text("{}")], &[FAR, FAR], &[text("4"), text("2")])]);
    assert_eq!(ask(&mut connection, &call), expected);
    assert_eq!(ask(&mut connection, &call), expected, "the second time");
    assert_eq!(server.keyspace(), before);
    for (range, size) in [(ALL, 4), (["2", "+inf"], 3), (["-inf", "(2"], 1), (["5", "9"], 0), (["(3", "4"], 1)] {
        let expected = list(&[reply(Value::Int(size), (Value::Nil, -2), &[], &[], &[])]);
        assert_eq!(ask(&mut connection, &one("a", &[], "", range)), expected, "{range:?}");
    }
}

#[test]
fn what_is_not_there_is_nil_also_between_others() {
    let server = Redis::start();
    let mut connection = server.connection();
    fill(&mut connection, "a", 3);
    run(&mut connection, &["DEL", &message_of("a", 2)]);
    run(&mut connection, &["ZREM", &set_of("a"), &message_of("a", 3)]);
    run(&mut connection, &["PERSIST", &message_of("a", 1)]);
    run(&mut connection, &["PEXPIREAT", &last_of("a"), &FAR.to_string()]);
    let values = [Value::Nil, text("{}"), text("{}"), Value::Nil];
    let scores = [text("2"), Value::Nil, text("1"), Value::Nil];
    let expected = list(&[reply(Value::Int(2), (text("3"), FAR), &values, &[-2, FAR, -1, -2], &scores)]);
    assert_eq!(ask(&mut connection, &one("a", &[2, 3, 1, 9], "vh", ALL)), expected);
    // Values are not asked for: only whether they stand there.
    let values = [Value::Nil, Value::Int(1)];
    let expected = list(&[reply(Value::Int(2), (Value::Nil, -2), &values, &[-2, FAR], &[text("2"), Value::Nil])]);
    assert_eq!(ask(&mut connection, &one("a", &[2, 3], "", ALL)), expected);
    let nobody = list(&[reply(Value::Int(0), (Value::Nil, -2), &[Value::Nil], &[-2], &[Value::Nil])]);
    assert_eq!(ask(&mut connection, &one("nobody", &[1], "hv", ALL)), nobody);
}

#[test]
fn what_is_of_another_type_is_the_name_of_that_type() {
    for (command, values, name) in
        [("HSET", ["f", "v"].as_slice(), "hash"), ("RPUSH", &["v"], "list"), ("SADD", &["v"], "set"), ("XADD", &["*", "f", "v"], "stream")]
    {
        let server = Redis::start();
        let mut connection = server.connection();
        fill(&mut connection, "a", 1);
        let key_of = |key: &str| [&[command, key], values].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for key in [set_of("x"), last_of("x"), message_of("a", 2)] {
            let line = key_of(&key);
            run(&mut connection, &line.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let call = part(one("a", &[1, 2], "v", ALL), "x", &[1], "hv", ALL);
        let a = reply(Value::Int(1), (Value::Nil, -2), &[text("{}"), kind(name)], &[FAR, -1], &[text("1"), Value::Nil]);
        let x = reply(kind(name), (kind(name), -1), &[Value::Nil], &[-2], &[]);
        assert_eq!(ask(&mut connection, &call), list(&[a, x]), "{name}");
        let unread = reply(Value::Int(1), (Value::Nil, -2), &[Value::Int(1), kind(name)], &[FAR, -1], &[text("1"), Value::Nil]);
        assert_eq!(ask(&mut connection, &one("a", &[1, 2], "", ALL)), list(&[unread]), "{name}");
    }
    let server = Redis::start();
    let mut connection = server.connection();
    run(&mut connection, &["SET", &set_of("x"), "v"]);
    run(&mut connection, &["ZADD", &last_of("x"), "1", "v"]);
    let x = reply(kind("string"), (kind("zset"), -1), &[], &[], &[]);
    assert_eq!(ask(&mut connection, &one("x", &[], "h", ALL)), list(&[x]));
}

#[test]
fn scores_come_back_as_they_were_written() {
    let server = Redis::start();
    let mut connection = server.connection();
    for (score, back) in [("9007199254740991", "9007199254740991"), ("0.5", "0.5"), ("+inf", "inf"), ("-5", "-5")] {
        run(&mut connection, &["ZADD", &set_of("a"), score, &message_of("a", 1)]);
        let expected = list(&[reply(Value::Int(1), (Value::Nil, -2), &[Value::Nil], &[-2], &[text(back)])]);
        assert_eq!(ask(&mut connection, &one("a", &[1], "", ALL)), expected, "{score}");
    }
}

#[test]
fn a_part_of_a_thousand_messages_is_read_in_one_call() {
    let server = Redis::start();
    let mut connection = server.connection();
    fill(&mut connection, "a", 1000);
    let packet_ids: Vec<u32> = (1..=1000).collect();
    let Value::Array(parts) = ask(&mut connection, &one("a", &packet_ids, "hv", ALL)) else { panic!() };
    let Value::Array(fields) = &parts[0] else { panic!() };
    let lengths: Vec<usize> = fields[3..].iter().map(|field| if let Value::Array(list) = field { list.len() } else { 0 }).collect();
    assert_eq!((&fields[0], lengths), (&Value::Int(1000), vec![1000; 3]));
}

#[test]
fn a_user_without_any_right_to_write_may_run_it() {
    let server = Redis::start();
    let mut connection = server.connection();
    fill(&mut connection, "a", 2);
    run(&mut connection, &["ACL", "SETUSER", "reader", "on", ">secret", "~*", "-@all", "+@read", "+eval_ro", "+evalsha_ro", "+script|load"]);
    let call = one("a", &[1, 2], "hv", ALL);
    let expected = ask(&mut connection, &call);
    let url = server.url().replace("redis://", "redis://reader:secret@");
    let mut reader = redis::Client::open(url).unwrap().get_connection().unwrap();
    let digest: String = redis::cmd("SCRIPT").arg("LOAD").arg(READ_SESSIONS).query(&mut reader).unwrap();
    for (command, script) in [("EVAL_RO", READ_SESSIONS), ("EVALSHA_RO", digest.as_str())] {
        let mut line = redis::cmd(command);
        line.arg(script).arg(call.keys.len()).arg(&call.keys).arg(&call.values);
        assert_eq!(line.query::<Value>(&mut reader).unwrap(), expected, "{command}");
    }
    let denied = redis::cmd("DEL").arg(set_of("a")).exec(&mut reader).unwrap_err();
    assert!(denied.to_string().contains("permission"), "{denied}");
    let replaced = redis::cmd("EVAL_RO").arg("return redis.call('DEL', KEYS[1])").arg(1).arg(set_of("a")).exec(&mut reader).unwrap_err();
    assert!(!replaced.to_string().is_empty());
    assert_eq!(server.keyspace().members(set_of("a")).len(), 2);
}
