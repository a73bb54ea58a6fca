//! The contract read once more, from the CSV files alone: what a Redis must hold, and how many rows came to what.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use base64::Engine as _;
use serde_json::{Map, Value as Json, json};

use super::csv;
use crate::support::keyspace::Value;

/// The newest row of the recorded load.
pub const NEWEST_ROW_MS: i64 = 1_796_073_271_729;
const DEFAULT_TTL_MS: i64 = 604_800_000;

/// What a run must give.
pub struct Wanted {
    /// Each key.
    pub keys: BTreeMap<String, WantedValue>,
    /// The report's figures.
    pub counts: BTreeMap<&'static str, u64>,
}

/// The value of a key.
#[derive(Debug, PartialEq)]
pub enum WantedValue {
    /// Members with scores, in order.
    Set(Vec<(String, i64)>),
    /// JSON and deadline in Unix ms.
    Message(Json, i64),
    /// A text that stays.
    LastPacketId(String),
}

/// A row: each column's text; none is NULL.
pub type Row = BTreeMap<String, Option<String>>;

/// A file of the recorded load.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tbmq-1.4.0").join(name)
}

/// The rows of a CSV file.
pub fn table(name: &str) -> Vec<Row> {
    let mut records = csv::records(&std::fs::read_to_string(file(name)).unwrap()).into_iter();
    let names: Vec<String> = records.next().unwrap().into_iter().flatten().collect();
    records.map(|fields| names.iter().cloned().zip(fields).collect()).collect()
}

/// A column as a number.
pub fn number(row: &Row, column: &str) -> Option<i64> {
    row[column].as_ref().map(|text| text.parse().unwrap())
}

/// `\x…` as base64.
fn base64_of(bytea: &str) -> String {
    let digits = bytea.strip_prefix("\\x").unwrap();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

impl Wanted {
    /// Reads the files; every `time` is moved by `shift_ms`.
    pub fn read(limit: usize, shift_ms: i64, now_ms: i64) -> Self {
        let contexts: BTreeMap<String, Row> =
            table("device_session_ctx.csv").into_iter().map(|row| (row["client_id"].clone().unwrap(), row)).collect();
        let mut sessions: BTreeMap<String, Vec<Row>> = contexts.keys().map(|client| (client.clone(), Vec::new())).collect();
        for row in table("device_publish_msg.csv") {
            sessions.entry(row["client_id"].clone().unwrap()).or_default().push(row);
        }
        let mut wanted = Self { keys: BTreeMap::new(), counts: BTreeMap::from([("sessions", sessions.len() as u64)]) };
        for (client, mut rows) in sessions {
            rows.sort_by_key(|row| -number(row, "serial_number").unwrap());
            wanted.session(&client, contexts.get(&client), &rows, limit, shift_ms, now_ms);
        }
        wanted
    }

    /// Rows newest first.
    fn session(&mut self, client: &str, context: Option<&Row>, rows: &[Row], limit: usize, shift_ms: i64, now_ms: i64) {
        let (mut seen, mut members) = (BTreeSet::new(), Vec::new());
        for row in rows {
            *self.counts.entry("rows_read").or_default() += 1;
            *self.counts.entry("orphan_messages").or_default() += u64::from(context.is_none());
            let (packet, serial) = (number(row, "packet_id").unwrap(), number(row, "serial_number").unwrap());
            let time = number(row, "time").unwrap() + shift_ms;
            let interval = number(row, "msg_expiry_interval").filter(|_| row["packet_type"].as_deref() == Some("PUBLISH"));
            let deadline = time + interval.filter(|seconds| *seconds > 0).map_or(DEFAULT_TTL_MS, |seconds| seconds * 1000);
            let outcome = if seen.contains(&packet) {
                "superseded"
            } else if seen.len() >= limit {
                seen.insert(packet);
                "trimmed"
            } else {
                seen.insert(packet);
                match interval {
                    Some(seconds) if seconds < 0 || (seconds > 0 && deadline <= now_ms) => "expired_by_interval",
                    _ if deadline <= now_ms => "expired_by_ttl",
                    _ => "messages_migrated",
                }
            };
            *self.counts.entry(outcome).or_default() += 1;
            if outcome == "messages_migrated" {
                let key = format!("{{{client}}}_messages_{packet}");
                members.push((key.clone(), serial + 1));
                self.keys.insert(key, WantedValue::Message(json_of(row, time), deadline));
            }
        }
        if !members.is_empty() {
            members.reverse();
            self.keys.insert(format!("{{{client}}}_messages"), WantedValue::Set(members));
        }
        // In these rows every packet id is valid.
        let newest = rows.first();
        let behind = |context: &&Row| {
            newest.is_some_and(|row| number(context, "last_serial_number").unwrap_or(i64::MIN) < number(row, "serial_number").unwrap())
        };
        let last = context.filter(|context| !behind(context)).and_then(|context| number(context, "last_packet_id"));
        if let Some(last) = last.or_else(|| newest.and_then(|row| number(row, "packet_id"))) {
            self.keys.insert(format!("{{{client}}}_last_packet_id"), WantedValue::LastPacketId(last.to_string()));
        }
    }
}

fn json_of(row: &Row, time: i64) -> Json {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Json>| value.map(|value| fields.insert(name.to_owned(), value));
    let text = |column: &str| row[column].clone().map(Json::String);
    let integer = |column: &str| number(row, column).map(Json::from);
    put("clientId", text("client_id"));
    put("topicName", text("topic"));
    put("time", Some(json!(time)));
    put("packetId", integer("packet_id"));
    put("packetType", text("packet_type"));
    put("qos", integer("qos"));
    put("payload", Some(json!(base64_of(row["payload"].as_ref().unwrap()))));
    put("retained", Some(json!(row["retain"].as_deref() == Some("t"))));
    put("userProperties", row["user_properties"].as_deref().map(|text| serde_json::from_str(text).unwrap()));
    put("msgExpiryInterval", integer("msg_expiry_interval"));
    put("payloadFormatIndicator", integer("payload_format_indicator"));
    put("contentType", text("content_type"));
    put("responseTopic", text("response_topic"));
    put("correlationData", row["correlation_data"].as_deref().map(|bytea| json!(base64_of(bytea))));
    Json::Object(fields)
}

impl From<&Value> for WantedValue {
    /// What a key holds, in the same words; panics at what could never be right.
    fn from(value: &Value) -> Self {
        match value {
            // Scores are whole and small.
            #[allow(clippy::cast_possible_truncation)]
            Value::ZSet(members) => {
                assert!(members.iter().all(|(_, score)| score.fract() == 0.0), "{value:?}");
                Self::Set(members.iter().map(|(member, score)| (String::from_utf8(member.clone()).unwrap(), *score as i64)).collect())
            }
            Value::Str { bytes, pexpiretime_ms: Some(deadline) } => Self::Message(serde_json::from_slice(bytes).unwrap(), *deadline),
            Value::Str { bytes, pexpiretime_ms: None } => Self::LastPacketId(String::from_utf8(bytes.clone()).unwrap()),
            Value::Other(_) => panic!("{value:?}"),
        }
    }
}
