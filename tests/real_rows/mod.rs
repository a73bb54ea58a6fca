//! Rows that a real 1.4.0 broker kept, against an independent reading of the contract, against what that broker then
//! delivered, and against what a real 2.0.1 broker writes by itself.

mod csv;
mod delivered;
pub mod wanted;

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use crate::support::keyspace::{Keyspace, Value};
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;
use crate::support::tool::{FIGURES, Outcome, Tool};
use delivered::{MEMBER_WITHOUT_ROWS, MEMBERS};
use wanted::{NEWEST_ROW_MS, Wanted, WantedValue, file};

/// How old the newest row is: beyond the shortest intervals in the load, far below the others.
const AGE_MS: i64 = 60_000;

struct Migrated {
    database: Database,
    shift_ms: i64,
    now_ms: i64,
    outcome: Outcome,
    keys: Keyspace,
}

/// Loads the rows, moved so that the newest is a minute old, and migrates them.
fn migrate(options: &[&str]) -> Migrated {
    let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let shift_ms = now_ms - AGE_MS - NEWEST_ROW_MS;
    let database = Postgres::shared().database();
    database.create_tables();
    database.load_csv("device_session_ctx", file("device_session_ctx.csv"));
    database.load_csv("device_publish_msg", file("device_publish_msg.csv"));
    database.psql(&format!("update device_publish_msg set time = time + {shift_ms}"));
    let redis = Redis::start();
    let outcome = Tool::new().args(["migrate", "--postgres-url", &database.url, "--redis-url", &redis.url()]).args(options).run();
    Migrated { keys: redis.keyspace(), database, shift_ms, now_ms, outcome }
}

fn check_against_the_contract(options: &[&str], limit: usize, expected_counts: [(&str, u64); 4]) {
    let run = migrate(&[options, &["--json"]].concat());
    assert_eq!(run.outcome.code, Some(0), "{:?}", run.outcome);
    let wanted = Wanted::read(limit, run.shift_ms, run.now_ms);
    let report = run.outcome.json();
    for (name, count) in expected_counts {
        assert_eq!(wanted.counts.get(name), Some(&count), "the reading of {name}");
    }
    for name in FIGURES {
        assert_eq!(report[name], wanted.counts.get(name).copied().unwrap_or(0), "{name}");
    }
    for (key, value) in &wanted.keys {
        let found = run.keys.get(key).unwrap_or_else(|| panic!("{key} is missing"));
        assert_eq!(&WantedValue::from(found), value, "{key}");
    }
    let extra: Vec<_> = run.keys.0.keys().map(|key| String::from_utf8_lossy(key)).filter(|key| !wanted.keys.contains_key(&**key)).collect();
    assert!(extra.is_empty(), "{extra:?}");
}

// By hand from the files: 1,601 rows, of which the two of intervals 1 s and 60 s are older than that; 41 contexts and a
// group without one, with four rows.

#[test]
fn with_the_highest_limit_every_key_is_what_the_contract_says() {
    let counts = [("sessions", 42), ("messages_migrated", 1599), ("expired_by_interval", 2), ("orphan_messages", 4)];
    check_against_the_contract(&["--message-limit", "65535"], 65_535, counts);
}

#[test]
fn with_the_default_limit_every_key_is_what_the_contract_says() {
    let counts = [("sessions", 42), ("messages_migrated", 1599), ("expired_by_interval", 2), ("orphan_messages", 4)];
    check_against_the_contract(&[], 10_000, counts);
}

#[test]
fn with_the_limit_of_1_4_0_a_client_gets_in_order_all_that_1_4_0_sent_and_nothing_else() {
    let run = migrate(&["--json", "--message-limit", "1000"]);
    let report = run.outcome.json();
    assert_eq!((&report["trimmed"], &report["messages_migrated"]), (&Json::from(200), &Json::from(1399)));
    let mut clients = delivered::by_client();
    assert!(clients.remove(MEMBER_WITHOUT_ROWS).is_some());
    let groups: BTreeMap<&str, &str> = MEMBERS.into_iter().collect();
    let (mut compared, mut with_properties) = (0, 0);
    for (client, packets) in &clients {
        let session = groups.get(client.as_str()).copied().unwrap_or(client);
        let messages = delivered::stored(&run.keys, session);
        let digests = delivered::digests(&run.database, &messages);
        assert_eq!(messages.len(), packets.len(), "{client}");
        // A client of MQTT 3.1.1 gets no properties, whatever is stored.
        let mqtt_5 = packets.iter().any(|packet| packet.has_properties());
        for ((message, digest), packet) in messages.iter().zip(&digests).zip(packets) {
            assert!(packet.comes_from(message, digest, session == client, mqtt_5), "{client}: 1.4.0 sent {packet:?}, stored is {message}");
        }
        compared += packets.len();
        with_properties += usize::from(mqtt_5);
    }
    assert_eq!(with_properties, 11);
    // All but the rows of a group whose member never came back.
    let waiting = delivered::stored(&run.keys, "ss_gr-3_sh/three").len();
    assert_eq!((compared, waiting), (1387, 12));
}

#[test]
fn the_example_of_the_readme_is_what_these_rows_give() {
    const README: &str = include_str!("../../README.md");
    let run = migrate(&["--message-limit", "1000"]);
    let (_, example) = README.split_once("\n## An example\n").unwrap();
    let blocks: Vec<&str> = example.split("```").skip(1).step_by(2).take(2).collect();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The time that it takes is that of the machine.
    let timeless = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("seconds") && !line.starts_with("rows a second"));
        lines.map(words).filter(|line| !line.is_empty() && !line.starts_with('$')).collect()
    };
    let table: Vec<String> = timeless(blocks[0]);
    assert_eq!(table, timeless(&run.outcome.stdout)[..table.len()]);
    assert_eq!(table.len(), 9, "{table:?}");
    // Each line: a reference with its score, an arrow, the fields that make the message.
    for line in blocks[1].lines().filter(|line| line.contains('→')) {
        let (reference, message) = line.split_once('→').unwrap();
        let (score, key) = reference.trim().split_once(' ').unwrap();
        let session = key.trim().rsplit_once('_').unwrap().0;
        let members = run.keys.members(session);
        assert!(members.contains(&(key.trim().to_owned(), score.parse().unwrap())), "{line}: {members:?}");
        let stored: Json = serde_json::from_str(&run.keys.text(key.trim()).unwrap()).unwrap();
        let shown: Json = serde_json::from_str(message.trim()).unwrap();
        for (name, value) in shown.as_object().unwrap() {
            assert_eq!(&stored[name], value, "{line}");
        }
    }
}

/// The name and the JSON type of each field.
fn form(message: &Json) -> BTreeMap<String, &'static str> {
    let kind = |value: &Json| match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_i64() => "integer",
        Json::Number(_) => "number",
        Json::String(_) => "text",
        Json::Array(_) => "list",
        Json::Object(_) => "object",
    };
    message.as_object().unwrap().iter().map(|(name, value)| (name.clone(), kind(value))).collect()
}

#[test]
fn messages_have_the_fields_and_types_that_2_0_1_writes_by_itself() {
    let run = migrate(&[]);
    let identity = |message: &Json| ["clientId", "topicName", "payload"].map(|name| message[name].to_string());
    let mut ours = BTreeMap::new();
    for value in run.keys.0.values() {
        if let Value::Str { bytes, pexpiretime_ms: Some(_) } = value {
            let message: Json = serde_json::from_slice(bytes).unwrap();
            ours.insert(identity(&message), message);
        }
    }
    let (mut compared, mut forms) = (0, BTreeMap::new());
    for line in std::fs::read_to_string(file("redis-written-by-2.0.1.jsonl")).unwrap().lines() {
        let entry: Json = serde_json::from_str(line).unwrap();
        let (key, value) = (entry["key"].as_str().unwrap(), entry["value"].as_str());
        if key.ends_with("_last_packet_id") {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            assert!(value.is_some_and(digits) && entry["pttl"] == -1, "{line}");
        } else if let Some(theirs) = value.filter(|_| key.contains("}_messages_")).map(|text| serde_json::from_str::<Json>(text).unwrap())
            && let Some(same) = ours.get(&identity(&theirs))
        {
            assert_eq!(form(same), form(&theirs), "{key}");
            let pairs = |message: &Json| message["userProperties"].clone();
            assert_eq!(pairs(same), pairs(&theirs), "{key}");
            compared += 1;
            forms.insert(form(same), key.to_owned());
        }
    }
    assert!(compared > 200 && forms.len() >= 9, "{compared} of the same load, {} forms", forms.len());
}
