//! `verify --redis-only`: a Redis of a 2.x broker by itself.

mod broker;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use crate::sessions::{Sessions, migrate};
use crate::support::cluster::RedisCluster;
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, Tool};

const TTL_MS: i64 = 604_800_000;
const DAY_MS: i64 = 86_400_000;

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn verify(url: &str) -> Tool {
    Tool::new().args(["verify", "--redis-only", "--json", "--redis-url", url])
}

/// One message as a 2.x broker writes it, an hour old.
fn message(client: &str, packet_id: u16) -> Json {
    let time = now_ms() - 3_600_000;
    json!({"clientId": client, "topicName": "t", "time": time, "packetId": packet_id, "packetType": "PUBLISH", "qos": 1, "payload": "aGk=", "retained": false})
}

/// Three sessions, `one` to `three`, with packet ids 1 to 3 each, and a session without messages.
fn stocked() -> Redis {
    let redis = Redis::start();
    for client in ["one", "two", "three"] {
        for packet_id in 1..=3 {
            put(&redis, client, packet_id, &message(client, packet_id).to_string());
        }
        redis.cli(&["SET", &format!("{{{client}}}_last_packet_id"), "3"]);
    }
    redis.cli(&["SET", "{idle}_last_packet_id", "77"]);
    redis
}

/// A message with its reference, the packet id being the score.
fn put(redis: &Redis, client: &str, packet_id: u16, text: &str) {
    let key = format!("{{{client}}}_messages_{packet_id}");
    redis.cli(&["SET", &key, text, "PX", &(TTL_MS - 3_600_000).to_string()]);
    redis.cli(&["ZADD", &format!("{{{client}}}_messages"), &packet_id.to_string(), &key]);
}

/// Runs it with a report: the outcome, and client, kind and packet id of each finding.
fn findings(redis: &Redis, options: &[&str]) -> (Outcome, Vec<(String, String, Option<u64>)>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let outcome = verify(&redis.url()).args(["--report", file.path().to_str().unwrap()]).args(options).run();
    let lines = std::fs::read_to_string(file.path()).unwrap();
    let found = lines.lines().map(|line| {
        let line: Json = serde_json::from_str(line).unwrap();
        (line["client_id"].as_str().unwrap().to_owned(), line["kind"].as_str().unwrap().to_owned(), line["packet_id"].as_u64())
    });
    (outcome, found.collect())
}

#[test]
fn a_redis_without_a_fault_is_equal_and_needs_no_postgresql() {
    let redis = stocked();
    redis.cli(&["SET", "clientMqttVersion::one", "x"]);
    redis.cli(&["SADD", "{one}_subscriptions", "x"]);
    let outcome = verify(&redis.url()).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let report = outcome.json();
    let expected = [("sessions_compared", json!(4)), ("messages_compared", json!(9)), ("differing_sessions", json!(0)), ("not_checked", json!(0))];
    for (name, value) in expected.into_iter().chain([("findings", json!({})), ("level", json!("redis_only")), ("quarantined", Json::Null)]) {
        assert_eq!(report[name], value, "{name}");
    }
}

#[test]
fn every_kind_of_fault_is_found_as_exactly_that() {
    let set = "{two}_messages";
    let text = |change: fn(&mut Json)| {
        let mut message = message("two", 2);
        change(&mut message);
        message.to_string()
    };
    type Fault<'a> = (&'a str, Option<u64>, Vec<Vec<&'a str>>);
    let unknown_field = text(|message| message["serialNumber"] = json!(5));
    let other_packet = text(|message| message["packetId"] = json!(9));
    let other_client = text(|message| message["clientId"] = json!("one"));
    let faults: Vec<Fault<'_>> = vec![
        ("missing_last_packet_id", None, vec![vec!["DEL", "{two}_last_packet_id"]]),
        ("last_packet_id_expires", None, vec![vec!["EXPIRE", "{two}_last_packet_id", "1000"]]),
        ("wrong_last_packet_id", None, vec![vec!["SET", "{two}_last_packet_id", "three"]]),
        ("last_packet_id_behind", None, vec![vec!["SET", "{two}_last_packet_id", "2"]]),
        ("unreadable_message", Some(2), vec![vec!["SET", "{two}_messages_2", &unknown_field, "KEEPTTL"]]),
        ("unreadable_message", Some(2), vec![vec!["SET", "{two}_messages_2", "no JSON", "KEEPTTL"]]),
        ("different_field", Some(2), vec![vec!["SET", "{two}_messages_2", &other_packet, "KEEPTTL"]]),
        ("different_field", Some(2), vec![vec!["SET", "{two}_messages_2", &other_client, "KEEPTTL"]]),
        ("wrong_deadline", Some(2), vec![vec!["PERSIST", "{two}_messages_2"]]),
        ("dangling_reference", Some(3), vec![vec!["DEL", "{two}_messages_3"]]),
        ("dangling_reference", None, vec![vec!["ZADD", set, "2.5", "{one}_messages_1"]]),
        ("orphan_string", Some(2), vec![vec!["ZREM", set, "{two}_messages_2"]]),
        ("foreign_type", None, vec![vec!["DEL", "{two}_last_packet_id"], vec!["SADD", "{two}_last_packet_id", "x"]]),
        ("foreign_type", Some(2), vec![vec!["DEL", "{two}_messages_2"], vec!["HSET", "{two}_messages_2", "a", "b"]]),
    ];
    for (kind, packet_id, commands) in faults {
        let redis = stocked();
        commands.iter().for_each(|command| drop(redis.cli(command)));
        let (outcome, found) = findings(&redis, &[]);
        assert_eq!(found, [("two".to_owned(), kind.to_owned(), packet_id)], "{commands:?}");
        assert_eq!(outcome.code, Some(5), "{outcome:#?}");
        assert_eq!(outcome.json()["findings"], json!({kind: 1}));
    }
}

#[test]
fn a_set_of_another_type_is_foreign_and_its_messages_belong_to_nobody() {
    let redis = stocked();
    redis.cli(&["DEL", "{two}_messages"]);
    redis.cli(&["LPUSH", "{two}_messages", "x"]);
    let (outcome, mut found) = findings(&redis, &[]);
    found.sort();
    let kinds: Vec<(&str, Option<u64>)> = found.iter().map(|(_, kind, packet_id)| (kind.as_str(), *packet_id)).collect();
    let orphans = [1, 2, 3].map(|packet_id| ("orphan_string", Some(packet_id)));
    assert_eq!(kinds, [&[("foreign_type", None)][..], &orphans].concat());
    assert_eq!(outcome.code, Some(5));
}

#[test]
fn what_expiry_explains_is_no_fault() {
    let redis = stocked();
    // The oldest is gone: it may have been the first to expire by the default TTL.
    redis.cli(&["DEL", "{one}_messages_1"]);
    // Publishers of this session set intervals.
    let mut with_interval = message("two", 1);
    with_interval["msgExpiryInterval"] = json!(864_000);
    redis.cli(&["SET", "{two}_messages_1", &with_interval.to_string(), "KEEPTTL"]);
    redis.cli(&["DEL", "{two}_messages_3"]);
    // A PUBREL of a broker stays for ever.
    let mut pubrel = message("three", 2);
    pubrel["packetType"] = json!("PUBREL");
    redis.cli(&["SET", "{three}_messages_2", &pubrel.to_string()]);
    let outcome = verify(&redis.url()).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

#[test]
fn a_session_that_went_over_the_last_packet_id_is_in_order() {
    let redis = Redis::start();
    for (score, packet_id) in [(65_534, 65_534), (65_535, 65_535), (65_536, 1_u16)] {
        let key = format!("{{wrap}}_messages_{packet_id}");
        redis.cli(&["SET", &key, &message("wrap", packet_id).to_string(), "PX", &DAY_MS.to_string()]);
        redis.cli(&["ZADD", "{wrap}_messages", &score.to_string(), &key]);
    }
    redis.cli(&["SET", "{wrap}_last_packet_id", "1"]);
    assert_eq!(verify(&redis.url()).run().code, Some(0));
    redis.cli(&["SET", "{wrap}_last_packet_id", "65535"]);
    assert_eq!(findings(&redis, &[]).1, [("wrap".to_owned(), "last_packet_id_behind".to_owned(), None)]);
}

#[test]
fn a_large_session_is_looked_at_as_a_whole() {
    let redis = Redis::start();
    let mut connection = redis.connection();
    let mut pipe = redis::pipe();
    for packet_id in 1..=20_000_u16 {
        let key = format!("{{large}}_messages_{packet_id}");
        pipe.cmd("SET").arg(&key).arg(message("large", packet_id).to_string()).arg("PX").arg(DAY_MS);
        pipe.cmd("ZADD").arg("{large}_messages").arg(packet_id).arg(&key);
    }
    pipe.cmd("SET").arg("{large}_last_packet_id").arg(20_000);
    pipe.exec(&mut connection).unwrap();
    let outcome = verify(&redis.url()).run();
    assert_eq!((outcome.code, outcome.json()["messages_compared"].as_u64()), (Some(0), Some(20_000)), "{outcome:#?}");
    for packet_id in ["1", "10000", "20000"] {
        redis.cli(&["SET", &format!("{{large}}_messages_{packet_id}"), "{}", "KEEPTTL"]);
    }
    let (_, found) = findings(&redis, &[]);
    let mut packet_ids: Vec<u64> = found.iter().filter_map(|(_, kind, packet_id)| packet_id.filter(|_| kind == "unreadable_message")).collect();
    packet_ids.sort_unstable();
    assert_eq!(packet_ids, [1, 10_000, 20_000]);
}

#[test]
fn what_a_copy_has_written_is_without_fault_on_a_cluster_too() {
    let sessions = Sessions::new(20, 7).with_lone_contexts(5).with("a}b {c", 3);
    let database = sessions.load();
    let (redis, cluster) = (Redis::start(), RedisCluster::start());
    for url in [redis.url(), cluster.urls().join(",")] {
        sessions.assert_all_migrated(&migrate(&database, &url).run());
        let outcome = verify(&url).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let report = outcome.json();
        let figures = [&report["sessions_compared"], &report["messages_compared"]].map(|figure| figure.as_u64());
        assert_eq!(figures, [sessions.count(), sessions.messages()].map(Some));
    }
    cluster.cli(0, &["-c", "DEL", "{c-0003}_last_packet_id"]);
    assert_eq!(verify(&cluster.urls().join(",")).run().json()["findings"], json!({"missing_last_packet_id": 1}));
}

/// What a real 2.0.1 broker wrote, with every moment moved up to this one.
#[test]
fn what_a_real_broker_has_written_is_without_fault() {
    let redis = Redis::start();
    let mut connection = redis.connection();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tbmq-1.4.0/redis-written-by-2.0.1.jsonl");
    let (mut messages, mut pipe) = (0, redis::pipe());
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let entry: Json = serde_json::from_str(line).unwrap();
        let key = entry["key"].as_str().unwrap();
        match (entry["type"].as_str().unwrap(), &entry["value"]) {
            ("zset", _) => {
                for member in entry["members"].as_array().unwrap() {
                    pipe.cmd("ZADD").arg(key).arg(member[1].as_f64().unwrap()).arg(member[0].as_str().unwrap());
                }
            }
            ("string", Json::String(text)) => {
                let shift = now_ms() - entry["now"].as_i64().unwrap();
                let mut text = text.clone();
                if key.contains("}_messages_") {
                    let mut message: Json = serde_json::from_str(&text).unwrap();
                    message["time"] = json!(message["time"].as_i64().unwrap() + shift);
                    text = message.to_string();
                    messages += 1;
                }
                pipe.cmd("SET").arg(key).arg(text);
                if let Some(left) = entry["pttl"].as_i64().filter(|left| *left > 0) {
                    pipe.cmd("PEXPIRE").arg(key).arg(left);
                }
            }
            _ => {}
        }
    }
    pipe.exec(&mut connection).unwrap();
    let outcome = verify(&redis.url()).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(outcome.json()["messages_compared"].as_u64(), Some(messages));
    assert!(messages > 1_000);
}

#[test]
fn a_user_who_may_only_read_is_enough_and_nothing_changes() {
    let redis = stocked();
    redis.cli(&["ACL", "SETUSER", "reader", "on", ">s3cret", "%R~*", "resetchannels", "-@all", "+@read", "+info", "+time"]);
    let before = redis.keyspace();
    let outcome = verify(&redis.url().replace("redis://", "redis://reader:s3cret@")).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(redis.keyspace(), before);
    redis.cli(&["ACL", "SETUSER", "reader", "-zmscore"]);
    let outcome = verify(&redis.url().replace("redis://", "redis://reader:s3cret@")).run();
    assert_eq!(outcome.code, Some(4), "{outcome:#?}");
    assert!(outcome.stderr.contains("hint: give the Redis user"), "{}", outcome.stderr);
}

#[test]
fn it_does_not_go_with_options_that_are_about_postgresql() {
    let redis = Redis::start();
    for options in [["--client", "a"], ["--sample", "5%"], ["--level", "count"]] {
        assert_eq!(verify(&redis.url()).args(options).run().code, Some(2), "{options:?}");
    }
    assert_eq!(Tool::new().args(["verify", "--redis-only"]).run().code, Some(3));
    assert_eq!(verify("redis://127.0.0.1:1").run().code, Some(4));
}
