//! An explanation as one JSON document: texts as they are, and everything that the page abbreviates in full.

use std::collections::HashSet;

use serde::Serialize;

use super::{moment, reason};
use crate::cli::failure::Failure;
use crate::model::{Millis, Outcome, Tally};
use crate::verify::{Explanation, SeenKey, SeenPayload, SeenRow, SeenString, Standing};

#[derive(Serialize)]
struct Document<'e> {
    client_id: &'e str,
    slot: Option<u16>,
    node: Option<&'e str>,
    in_postgresql: bool,
    in_redis: bool,
    seen_at: Option<String>,
    context: Option<Context>,
    last_packet_id: LastPacketId<'e>,
    rows_in_postgresql: u64,
    references_in_redis: Option<u64>,
    /// Oldest first.
    rows: Vec<Row<'e>>,
    rows_not_shown: u64,
    redis: Vec<Key<'e>>,
    redis_without_a_row: u64,
    /// `equal`, `different`, `moving`, or `unknown`.
    result: &'static str,
    findings: Vec<Finding<'e>>,
    unlisted_findings: u64,
    outcomes: Outcomes,
    next_steps: &'e [String],
}

#[derive(Serialize)]
struct Context {
    last_serial_number: Option<i64>,
    last_packet_id: Option<i32>,
    last_updated_time: Option<i64>,
}

#[derive(Serialize)]
struct LastPacketId<'e> {
    wanted: Option<u16>,
    /// A number where it is one.
    found: Option<Number<'e>>,
    found_type: Option<&'e str>,
    expires_at: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Number<'e> {
    Number(u64),
    Text(&'e str),
}

/// A moment and how far away it is.
#[derive(Serialize)]
struct Deadline {
    /// Null where no date says it.
    deadline: Option<String>,
    deadline_ms: Option<i64>,
    /// Negative when it has passed.
    seconds_left: Option<i64>,
}

#[derive(Serialize)]
struct Payload<'e> {
    payload_bytes: Option<usize>,
    payload_digest: Option<&'e str>,
    /// Where payloads are to be shown, and it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'e str>,
    /// Where payloads are to be shown, and it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// How many bytes of it are shown, where that is not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_shown_bytes: Option<usize>,
}

#[derive(Serialize)]
struct Row<'e> {
    serial_number: i64,
    packet_id: Option<i32>,
    packet_type: &'e str,
    qos: Option<i32>,
    topic: Option<&'e str>,
    time: Option<i64>,
    msg_expiry_interval: Option<i32>,
    #[serde(flatten)]
    payload: Payload<'e>,
    outcome: &'static str,
    reason: Option<String>,
    quarantine_reason: Option<&'static str>,
    superseded_by: Option<i64>,
    #[serde(flatten)]
    deadline: Deadline,
    differs: bool,
}

#[derive(Serialize)]
struct Key<'e> {
    packet_id: Option<u16>,
    /// The row that it belongs to; null: no row explains it.
    serial_number: Option<i64>,
    /// What a reference refers to that is to no message of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'e str>,
    /// Null: nothing refers to it.
    score: Option<f64>,
    /// `message`, `missing`, `unreadable`, or the name of another type.
    holds: &'e str,
    packet_type: Option<&'static str>,
    qos: Option<i32>,
    #[serde(flatten)]
    payload: Payload<'e>,
    #[serde(flatten)]
    deadline: Deadline,
}

#[derive(Serialize)]
struct Finding<'e> {
    kind: &'static str,
    packet_id: Option<u16>,
    serial_number: Option<i64>,
    detail: &'e str,
}

#[derive(Serialize)]
struct Outcomes {
    messages_migrated: u64,
    expired_by_interval: u64,
    expired_by_ttl: u64,
    superseded: u64,
    trimmed: u64,
    quarantined: u64,
}

/// The document, with a line end.
///
/// # Errors
/// None that is known; what the serializer may say.
pub(super) fn json(explanation: &Explanation) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&Document::of(explanation)).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}

impl<'e> Document<'e> {
    fn of(explanation: &'e Explanation) -> Self {
        let now = explanation.now;
        let head = &explanation.head;
        let differing: HashSet<i64> = explanation.findings.iter().filter_map(|finding| finding.serial_number).collect();
        let explained = explanation.rows.iter().filter_map(|row| Some(Key::of(row.found.as_ref()?, Some(row.serial_number), now)));
        let listed = u64::try_from(explanation.rows.len()).unwrap_or(u64::MAX);
        Self {
            client_id: explanation.client.as_str(),
            slot: explanation.slot,
            node: explanation.node.as_deref(),
            in_postgresql: explanation.in_postgresql,
            in_redis: explanation.in_redis,
            seen_at: moment::rfc3339(now.0),
            context: explanation.context.map(|context| Context {
                last_serial_number: context.last_serial_number,
                last_packet_id: context.last_packet_id,
                last_updated_time: explanation.last_updated,
            }),
            last_packet_id: LastPacketId {
                wanted: explanation.wanted_last_packet_id,
                found: head.last_packet_id.as_deref().map(|text| text.parse().map_or(Number::Text(text), Number::Number)),
                found_type: head.last_packet_id_type.as_deref(),
                expires_at: head.last_packet_id_deadline.and_then(|deadline| moment::rfc3339(deadline.0)),
            },
            rows_in_postgresql: explanation.tally.rows_read,
            references_in_redis: explanation.references,
            rows: explanation.rows.iter().map(|row| Row::of(row, explanation, differing.contains(&row.serial_number))).collect(),
            rows_not_shown: explanation.tally.rows_read.saturating_sub(listed),
            redis: explained.chain(explanation.unexplained_keys.iter().map(|key| Key::of(key, None, now))).collect(),
            redis_without_a_row: explanation.unexplained,
            result: match explanation.standing {
                _ if !explanation.in_postgresql && !explanation.in_redis => "unknown",
                Standing::Equal => "equal",
                Standing::Different => "different",
                Standing::Moving => "moving",
            },
            findings: explanation.findings.iter().map(Finding::of).collect(),
            unlisted_findings: explanation.unlisted_findings,
            outcomes: Outcomes::of(&explanation.tally),
            next_steps: &explanation.next_steps,
        }
    }
}

impl Deadline {
    fn of(deadline: Option<Millis>, now: Millis) -> Self {
        Self {
            deadline: deadline.and_then(|deadline| moment::rfc3339(deadline.0)),
            deadline_ms: deadline.map(|deadline| deadline.0),
            seconds_left: deadline.map(|deadline| deadline.0.saturating_sub(now.0) / 1000),
        }
    }
}

impl<'e> Payload<'e> {
    fn of(payload: Option<&'e SeenPayload>) -> Self {
        use base64::Engine as _;
        let shown = payload.and_then(|payload| payload.beginning.as_deref());
        let text = shown.and_then(|shown| std::str::from_utf8(shown).ok());
        Self {
            payload_bytes: payload.map(|payload| payload.bytes),
            payload_digest: payload.map(|payload| payload.digest.as_str()),
            payload: text,
            payload_base64: shown.filter(|_| text.is_none()).map(|shown| base64::engine::general_purpose::STANDARD.encode(shown)),
            payload_shown_bytes: payload.and_then(|payload| shown.map(<[u8]>::len).filter(|length| *length < payload.bytes)),
        }
    }
}

impl<'e> Row<'e> {
    fn of(row: &'e SeenRow, explanation: &Explanation, differs: bool) -> Self {
        let quarantine_reason = match row.outcome {
            Outcome::Quarantined(reason) => Some(reason.name()),
            _ => None,
        };
        Self {
            serial_number: row.serial_number,
            packet_id: row.packet_id,
            packet_type: row.packet_type.as_deref().unwrap_or("PUBLISH"),
            qos: row.qos,
            topic: row.topic.as_deref(),
            time: row.time,
            msg_expiry_interval: row.msg_expiry_interval,
            payload: Payload::of(row.payload.as_ref()),
            outcome: outcome(row.outcome),
            reason: reason(row, explanation.message_limit),
            quarantine_reason,
            superseded_by: row.superseded_by,
            deadline: Deadline::of(row.deadline, explanation.now),
            differs,
        }
    }
}

impl<'e> Key<'e> {
    fn of(key: &'e SeenKey, serial_number: Option<i64>, now: Millis) -> Self {
        let (holds, packet_type, qos, payload) = match &key.string {
            SeenString::Missing => ("missing", None, None, None),
            SeenString::Unreadable(_) => ("unreadable", None, None, None),
            SeenString::Other(name) => (name.as_str(), None, None, None),
            SeenString::Message { packet_type, qos, payload } => ("message", Some(packet_type.name()), *qos, Some(payload)),
        };
        let (member, score, packet_id) = (key.member.as_deref(), key.score, key.packet_id);
        let (payload, deadline) = (Payload::of(payload), Deadline::of(key.deadline, now));
        Self { packet_id, serial_number, member, score, holds, packet_type, qos, payload, deadline }
    }
}

impl<'e> Finding<'e> {
    fn of(finding: &'e crate::model::Finding) -> Self {
        Self { kind: finding.kind.name(), packet_id: finding.packet_id, serial_number: finding.serial_number, detail: &finding.detail }
    }
}

impl Outcomes {
    fn of(tally: &Tally) -> Self {
        let Tally { messages_migrated, expired_by_interval, expired_by_ttl, superseded, trimmed, quarantined, .. } = *tally;
        Self { messages_migrated, expired_by_interval, expired_by_ttl, superseded, trimmed, quarantined }
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Quarantined(_) => "quarantined",
        Outcome::Superseded => "superseded",
        Outcome::Trimmed => "trimmed",
        Outcome::ExpiredByInterval => "expired_by_interval",
        Outcome::ExpiredByTtl => "expired_by_ttl",
        Outcome::Migrated => "migrated",
    }
}
