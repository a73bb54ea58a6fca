//! What the real scripts of a 2.x broker did, scenario by scenario, ours must do too.

use redis::{Connection, Value};
use serde_json::Value as Json;

use super::Call;
use crate::support::keyspace::{Keyspace, Value as Stored};
use crate::support::redis::Redis;

const RECORDED: &str = include_str!("../data/broker-scripts.json");
/// Ours differs here: an interval of 0 means "never expires" and takes the default TTL.
const ZERO_INTERVAL: &str = "an expiry interval of zero stops the script half way";
/// The shortest TTL in the scenarios is one second: a slower run proves nothing and is repeated.
const LONGEST_RUN_MS: i64 = 900;

fn scenarios() -> Vec<Json> {
    serde_json::from_str(RECORDED).unwrap()
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap()
}

fn texts(value: &Json) -> Vec<String> {
    value.as_array().unwrap().iter().map(|item| text(item).to_owned()).collect()
}

fn script(name: &str) -> &'static str {
    match name {
        "add_messages" => super::ADD_MESSAGES,
        "get_messages" => super::GET_MESSAGES,
        "remove_message" => super::REMOVE_MESSAGE,
        "remove_messages" => super::REMOVE_MESSAGES,
        "update_packet_type" => super::UPDATE_PACKET_TYPE,
        other => panic!("a script of another name: {other}"),
    }
}

fn call_of(step: &Json) -> Call {
    let mut call = Call::new(script(text(&step["script"])));
    call.keys = texts(&step["keys"]).into_iter().map(String::into_bytes).collect();
    call.values = texts(&step["args"]).into_iter().map(String::into_bytes).collect();
    call
}

/// A reply in the form of the recording: messages as parsed JSON, all other strings as they are.
fn as_json(reply: &Value) -> Json {
    match reply {
        Value::Int(number) => Json::from(*number),
        Value::BulkString(bytes) => {
            let text = String::from_utf8(bytes.clone()).unwrap();
            if text.starts_with('{') { serde_json::from_str(&text).unwrap() } else { Json::from(text) }
        }
        Value::SimpleString(text) => Json::from(text.as_str()),
        Value::Okay => Json::from("OK"),
        Value::Array(items) => items.iter().map(as_json).collect(),
        other => panic!("an unexpected reply: {other:?}"),
    }
}

fn server_time_ms(connection: &mut Connection) -> i64 {
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(connection).unwrap();
    seconds * 1000 + micros / 1000
}

/// Runs the steps and compares each reply; gives the keyspace and the moments before and after, in Unix ms.
fn play(server: &Redis, scenario: &Json) -> (Keyspace, i64, i64) {
    let mut connection = server.connection();
    for _ in 0..20 {
        redis::cmd("FLUSHALL").exec(&mut connection).unwrap();
        let before = server_time_ms(&mut connection);
        let mut replies = Vec::new();
        for step in scenario["steps"].as_array().unwrap() {
            if let Some(command) = step.get("command") {
                let words = texts(command);
                redis::cmd(&words[0]).arg(&words[1..]).exec(&mut connection).unwrap();
            } else {
                replies.push((step, call_of(step).send(&mut connection).unwrap()));
            }
        }
        let keys = server.keyspace();
        let after = server_time_ms(&mut connection);
        if after - before > LONGEST_RUN_MS {
            continue;
        }
        for (step, reply) in replies {
            let expected = step.get("reply").cloned().unwrap_or_else(|| {
                assert_eq!(scenario["name"], ZERO_INTERVAL, "only there ours succeeds where the broker's failed");
                Json::from(0)
            });
            assert_eq!(as_json(&reply), expected, "{}: {step}", scenario["name"]);
        }
        return (keys, before, after);
    }
    panic!("the machine is too slow for TTLs of a second");
}

/// The default TTL, in seconds, of the call that added a message; `time` tells the messages of a scenario apart.
fn default_ttl(scenario: &Json, message: &Json) -> i64 {
    let added = |step: &&Json| {
        let messages: Vec<Json> = serde_json::from_str(text(&step["args"][1])).unwrap();
        messages.iter().any(|added| added["time"] == message["time"])
    };
    let steps = scenario["steps"].as_array().unwrap();
    let calls: Vec<&Json> = steps.iter().filter(|step| step["script"] == "add_messages").filter(added).collect();
    assert_eq!(calls.len(), 1, "{message}");
    text(&calls[0]["args"][2]).parse().unwrap()
}

/// The state to expect of ours: the recorded one, but an update of the packet type kept the TTL.
fn expected_state(scenario: &Json) -> Json {
    let mut state = scenario["state"].clone();
    for (key, entry) in state.as_object_mut().unwrap() {
        if entry["json"].is_object() && entry["ttl_s"].is_null() {
            assert_eq!(entry["json"]["packetType"], "PUBREL", "{key}: only an update forgets the TTL");
            let interval = entry["json"]["msgExpiryInterval"].as_i64();
            entry["ttl_s"] = Json::from(interval.unwrap_or_else(|| default_ttl(scenario, &entry["json"])));
        }
    }
    state
}

fn assert_entry(key: &str, stored: &Stored, expected: &Json, before: i64, after: i64) {
    match stored {
        Stored::ZSet(members) => {
            assert_eq!(expected["type"], "zset", "{key}");
            let wanted = expected["members"].as_array().unwrap();
            let wanted: Vec<(&str, f64)> = wanted.iter().map(|pair| (text(&pair[0]), pair[1].as_f64().unwrap())).collect();
            let found: Vec<(&str, f64)> = members.iter().map(|(member, score)| (std::str::from_utf8(member).unwrap(), *score)).collect();
            assert_eq!(found, wanted, "{key}");
        }
        Stored::Str { bytes, pexpiretime_ms } => {
            assert_eq!(expected["type"], "string", "{key}");
            match expected.get("json") {
                Some(json) => assert_eq!(&serde_json::from_slice::<Json>(bytes).unwrap(), json, "{key}"),
                None => assert_eq!(bytes, text(&expected["text"]).as_bytes(), "{key}"),
            }
            match expected["ttl_s"].as_i64() {
                None => assert_eq!(*pexpiretime_ms, None, "{key}"),
                Some(seconds) => {
                    let deadline = pexpiretime_ms.unwrap_or_else(|| panic!("{key} has no deadline"));
                    let range = before + seconds * 1000 - 50..=after + seconds * 1000 + 50;
                    assert!(range.contains(&deadline), "{key}: {deadline} is not in {range:?}");
                }
            }
        }
        Stored::Other(kind) => panic!("{key} is a {kind}"),
    }
}

#[test]
fn our_scripts_do_what_the_brokers_did_in_every_recorded_scenario() {
    let server = Redis::start();
    let mut compared = 0;
    for scenario in scenarios().iter().filter(|scenario| scenario["name"] != ZERO_INTERVAL) {
        let (keys, before, after) = play(&server, scenario);
        let expected = expected_state(scenario);
        let expected = expected.as_object().unwrap();
        let found: Vec<String> = keys.0.keys().map(|key| String::from_utf8(key.clone()).unwrap()).collect();
        let mut wanted: Vec<&String> = expected.keys().collect();
        wanted.sort();
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{}", scenario["name"]);
        for (key, stored) in found.iter().zip(keys.0.values()) {
            let place = format!("{}: {key}", scenario["name"]);
            assert_entry(&place, stored, &expected[key], before, after);
        }
        compared += 1;
    }
    assert_eq!(compared, 69);
}

#[test]
fn an_interval_of_zero_takes_the_default_ttl_where_the_brokers_script_stopped_half_way() {
    let server = Redis::start();
    let all = scenarios();
    let scenario = all.iter().find(|scenario| scenario["name"] == ZERO_INTERVAL).unwrap();
    let (keys, before, after) = play(&server, scenario);
    let members = [1, 2, 3].map(|id| (format!("{{c}}_messages_{id}"), f64::from(id)));
    assert_eq!(keys.members("{c}_messages"), members);
    assert_eq!(keys.text("{c}_last_packet_id").as_deref(), Some("3"));
    for (id, seconds, interval) in [(1, 60, 60), (2, 604_800, 0), (3, 3600, 3600)] {
        let key = format!("{{c}}_messages_{id}");
        let stored = keys.get(&key).unwrap();
        let json: Json = serde_json::from_str(&keys.text(&key).unwrap()).unwrap();
        assert_eq!(json["msgExpiryInterval"], interval, "{key} keeps its own interval");
        let expected = serde_json::json!({"type": "string", "json": json, "ttl_s": seconds});
        assert_entry(&key, stored, &expected, before, after);
    }
}
