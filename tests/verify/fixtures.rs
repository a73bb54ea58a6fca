//! Rows that a real 1.4.0 broker kept: against their copy, and against what that broker's own upgrade made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value as Json, json};

use super::{Found, Verified, found, restore, verify};
use crate::real_rows::wanted::{NEWEST_ROW_MS, Row, Wanted, WantedValue, file, number, table};
use crate::sessions::migrate;
use crate::support::keyspace::{Keyspace, Value};
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;

/// How old the newest row is. The upgrade was looked at 97 s after that row was written.
const AGE_MS: i64 = 120_000;
const TTL_MS: i64 = 604_800_000;

/// The rows, moved so that the newest is as old as said; by how much, and the time of that.
fn load() -> (Database, i64, i64) {
    let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let shift_ms = now_ms - AGE_MS - NEWEST_ROW_MS;
    let database = Postgres::shared().database();
    database.create_tables();
    database.load_csv("device_session_ctx", file("device_session_ctx.csv"));
    database.load_csv("device_publish_msg", file("device_publish_msg.csv"));
    database.psql(&format!("update device_publish_msg set time = time + {shift_ms}"));
    (database, shift_ms, now_ms)
}

#[test]
fn the_copy_of_a_real_brokers_rows_is_equal_at_every_limit() {
    for limit in ["1000", "10000", "65535"] {
        let (database, redis) = (load().0, Redis::start());
        let outcome = migrate(&database, &redis.url()).args(["--message-limit", limit]).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let verified = verify(&database, &redis.url(), &["--message-limit", limit]);
        assert_eq!(verified.findings(), [], "{limit}");
        // By hand from the files: 41 contexts, one group without; 1,601 rows, two expired, 200 of `big-1200` beyond 1,000.
        let messages = if limit == "1000" { 1399 } else { 1599 };
        assert_eq!((verified.figure("sessions_compared"), verified.figure("messages_compared")), (42, messages), "{limit}");
    }
}

/// What the official upgrade left, moved in time like the rows.
fn upgraded(shift_ms: i64) -> Keyspace {
    let mut keys = Keyspace::default();
    for line in std::fs::read_to_string(file("redis-after-official-upgrade.jsonl")).unwrap().lines() {
        let entry: Json = serde_json::from_str(line).unwrap();
        let (pttl, now) = (entry["pttl"].as_i64().unwrap(), entry["now"].as_i64().unwrap());
        let value = match &entry["members"] {
            Json::Array(members) => Value::ZSet(members.iter().map(|pair| (pair[0].as_str().unwrap().into(), pair[1].as_f64().unwrap())).collect()),
            _ => {
                let text = entry["value"].as_str().unwrap();
                let bytes = match serde_json::from_str::<Map<String, Json>>(text) {
                    Ok(mut message) => {
                        let time = message["time"].as_i64().unwrap() + shift_ms;
                        message.insert("time".to_owned(), json!(time));
                        serde_json::to_vec(&message).unwrap()
                    }
                    Err(_) => text.into(),
                };
                Value::Str { bytes, pexpiretime_ms: (pttl >= 0).then_some(now + pttl + shift_ms) }
            }
        };
        keys.0.insert(entry["key"].as_str().unwrap().into(), value);
    }
    keys
}

/// One message of a session on both sides.
struct Both<'a> {
    serial: i64,
    packet_id: i64,
    wanted: Option<(&'a Json, i64)>,
    deadline: i64,
    string: Option<(Json, Option<i64>)>,
    score: Option<f64>,
}

impl Both<'_> {
    fn kinds(&self) -> Vec<&'static str> {
        let late = |deadline: Option<i64>| deadline.is_none_or(|deadline| deadline > self.deadline + 1000);
        match (&self.wanted, &self.string) {
            (None, None) => vec![],
            // Expired, and it stands there.
            (None, Some((_, deadline))) => late(*deadline).then_some("wrong_deadline").into_iter().collect(),
            (Some(_), None) => vec!["missing_message"],
            (Some(_), Some(_)) if self.score.is_none() => vec!["missing_message"],
            (Some((json, wanted)), Some((stored, deadline))) => {
                let off = deadline.is_none_or(|deadline| (deadline - wanted).abs() > 1000);
                [(*json != stored).then_some("different_field"), off.then_some("wrong_deadline")].into_iter().flatten().collect()
            }
        }
    }
}

/// The differences, from both files alone and by the words of the contract. In these rows every packet id is valid and no
/// two rows of a session share one.
fn expected(shift_ms: i64, now_ms: i64, keys: &Keyspace) -> Vec<Found> {
    let wanted = Wanted::read(10_000, shift_ms, now_ms);
    let mut rows: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for context in table("device_session_ctx.csv") {
        rows.entry(context["client_id"].clone().unwrap()).or_default();
    }
    table("device_publish_msg.csv").into_iter().for_each(|row| rows.entry(row["client_id"].clone().unwrap()).or_default().push(row));
    let mut all = Vec::new();
    let mut explained: BTreeSet<String> = BTreeSet::new();
    for (client, mut rows) in rows {
        rows.sort_by_key(|row| number(row, "serial_number"));
        let set = format!("{{{client}}}_messages");
        let scores: BTreeMap<String, f64> = keys.members(&set).into_iter().collect();
        let last = format!("{{{client}}}_last_packet_id");
        let (should, is) = (wanted.keys.get(&last), keys.get(&last).map(WantedValue::from));
        match (should, &is) {
            (Some(_), None) => all.push(found(&client, "missing_last_packet_id", None, None)),
            (should, is) if should != is.as_ref() => all.push(found(&client, "wrong_last_packet_id", None, None)),
            _ => {}
        }
        let mut messages = Vec::new();
        for row in &rows {
            let (serial, packet_id) = (number(row, "serial_number").unwrap(), number(row, "packet_id").unwrap());
            let key = format!("{set}_{packet_id}");
            let interval = number(row, "msg_expiry_interval").filter(|seconds| *seconds > 0 && row["packet_type"].as_deref() == Some("PUBLISH"));
            let string = match keys.get(&key) {
                Some(Value::Str { bytes, pexpiretime_ms }) => Some((serde_json::from_slice(bytes).unwrap(), *pexpiretime_ms)),
                _ => None,
            };
            messages.push(Both {
                wanted: match wanted.keys.get(&key) {
                    Some(WantedValue::Message(json, deadline)) => Some((json, *deadline)),
                    _ => None,
                },
                deadline: number(row, "time").unwrap() + shift_ms + interval.map_or(TTL_MS, |seconds| seconds * 1000),
                score: scores.get(&key).copied(),
                string: string.filter(|(_, deadline)| deadline.is_none_or(|deadline| deadline > now_ms)),
                serial,
                packet_id,
            });
            explained.insert(key);
        }
        explained.extend([set, last]);
        let tell = |kind: &str, message: &Both<'_>| found(&client, kind, message.packet_id, message.serial);
        messages.iter().for_each(|message| all.extend(message.kinds().into_iter().map(|kind| tell(kind, message))));
        let standing: Vec<(&Both<'_>, f64)> =
            messages.iter().filter(|message| message.wanted.is_some()).filter_map(|message| Some((message, message.score?))).collect();
        assert!(standing.windows(2).all(|pair| pair[0].1 < pair[1].1), "{client}: the upgrade kept the order");
        #[allow(clippy::cast_precision_loss)]
        let wrong = standing.iter().filter(|(message, score)| *score != (message.serial + 1) as f64);
        all.extend(wrong.map(|(message, _)| tell("wrong_score", message)));
    }
    let strange: Vec<_> = keys.0.keys().map(|key| String::from_utf8_lossy(key)).filter(|key| !explained.contains(&**key)).collect();
    assert!(strange.is_empty(), "no row explains {strange:?}");
    all.sort();
    all
}

#[test]
fn every_fault_of_the_official_upgrade_is_found_and_nothing_else() {
    let (database, shift_ms, now_ms) = load();
    let keys = upgraded(shift_ms);
    let redis = Redis::start();
    restore(&redis, &keys);
    let verified = verify(&database, &redis.url(), &[]);
    let (findings, expected) = (verified.findings(), expected(shift_ms, now_ms, &keys));
    let only = |these: &[Found], others: &[Found]| these.iter().filter(|one| !others.contains(one)).take(20).cloned().collect::<Vec<_>>();
    let (more, less) = (only(&findings, &expected), only(&expected, &findings));
    assert!(findings == expected, "not expected: {more:#?}\nnot found: {less:#?}");
    assert_faults_are_told(&verified, &findings);
}

/// Each known fault by a session or a field that shows it.
fn assert_faults_are_told(verified: &Verified, findings: &[Found]) {
    let rows = table("device_publish_msg.csv");
    let serials = |condition: &dyn Fn(&Row) -> bool| {
        rows.iter().filter(|row| condition(row)).map(|row| (row["client_id"].clone().unwrap(), number(row, "serial_number"))).collect::<Vec<_>>()
    };
    let has = |kind: &str, (client, serial): &(String, Option<i64>)| {
        findings.iter().any(|finding| finding.0 == *client && finding.1 == kind && finding.3 == *serial)
    };
    // An interval of 0 or -1 ends the import of its session; -1 itself is never delivered.
    let zero = serials(&|row| number(row, "msg_expiry_interval") == Some(0));
    assert!(!zero.is_empty() && zero.iter().all(|row| has("missing_message", row)), "{zero:?}");
    // Orphans are dropped, with their last packet id.
    let orphans = serials(&|row| row["client_id"].as_deref() == Some("ss_g5_sh/five"));
    assert!(orphans.len() == 4 && orphans.iter().all(|row| has("missing_message", row)));
    assert!(findings.contains(&found("ss_g5_sh/five", "missing_last_packet_id", None, None)));
    // An absent interval becomes one, an empty content type nothing.
    let details = |text: &str| verified.lines.iter().filter(|line| line["detail"].as_str().unwrap().contains(text)).count();
    assert!(details("msgExpiryInterval is 604800 instead of absent") > 1000);
    assert!(details("contentType is absent instead of \"\"") > 0);
    // Deadlines begin again, scores from 1.
    let kinds: BTreeSet<&str> = findings.iter().map(|(_, kind, ..)| kind.as_str()).collect();
    for kind in ["missing_message", "different_field", "wrong_score", "wrong_deadline", "missing_last_packet_id"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
}
