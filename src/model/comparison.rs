//! One session of PostgreSQL against what Redis has for it: which differences there are.
//!
//! Messages come newest first, as the law judges them, so a session of any length is compared as it streams by. What must
//! be there comes from the law; what is there is read as the broker would read it, and compared field by field.

use super::message::{Content, UserProperties};
use super::{
    ClientId, EscapedText, Finding, FindingKind, LastPacketId, Millis, PacketId, PacketType, Score, StoredMessage, WantedMessage, digest_of,
};

/// What counts as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// A deadline may be off by this much; and what ends this soon may be gone or there.
    pub deadline_ms: i64,
    /// Whether findings hold payloads.
    pub show_payload: bool,
}

/// The string of a message, or of a last packet id, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundString<'r> {
    /// There is none.
    Missing,
    /// Its bytes.
    Text(&'r [u8]),
    /// The key holds another type.
    Other(&'r str),
}

/// What Redis has for one packet id of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundMessage<'r> {
    /// Its string.
    pub string: FoundString<'r>,
    /// When that ends; `None`: never, or there is none.
    pub deadline: Option<Millis>,
    /// The score of the reference to it; `None`: nothing refers to it.
    pub score: Option<f64>,
}

/// What a session has beside its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundHead<'r> {
    /// The last packet id.
    pub last_packet_id: FoundString<'r>,
    /// When that ends, as it must not.
    pub last_packet_id_deadline: Option<Millis>,
    /// The type of the key of the sorted set, where that is another one.
    pub set_of_other_type: Option<&'r str>,
}

/// The comparison of one session.
#[derive(Debug)]
pub struct Comparison {
    client: ClientId,
    tolerance: Tolerance,
    findings: Vec<Finding>,
    unlisted: u64,
    wrong_scores: Vec<Finding>,
    order_is_wrong: bool,
    /// The message before, in the order of PostgreSQL: where it stands in Redis.
    newer: Option<(f64, PacketId)>,
}

/// What a comparison of one session came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences {
    /// Each of them, up to a bound.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub unlisted: u64,
}

/// A session of 65,535 messages that all differ need not be told message by message.
const MOST_FINDINGS: usize = 10_000;
/// Characters of a text that a finding repeats.
const SHOWN_CHARACTERS: usize = 60;

impl Comparison {
    /// Begins with a session.
    pub fn new(client: ClientId, tolerance: Tolerance) -> Self {
        Self { client, tolerance, findings: Vec::new(), unlisted: 0, wrong_scores: Vec::new(), order_is_wrong: false, newer: None }
    }

    /// Whether nothing was found so far.
    pub fn is_equal(&self) -> bool {
        self.findings.is_empty() && self.wrong_scores.is_empty()
    }

    /// What the comparison came to. Wrong scores are told only where the order is right.
    pub fn finish(mut self) -> Differences {
        if !self.order_is_wrong {
            self.findings.append(&mut self.wrong_scores);
        }
        Differences { findings: self.findings, unlisted: self.unlisted }
    }

    /// Compares the last packet id and the types of keys; `wanted` is that of the law.
    pub fn head(&mut self, wanted: Option<LastPacketId>, found: &FoundHead<'_>) {
        if let Some(other) = found.set_of_other_type {
            self.add(FindingKind::ForeignType, None, None, format!("the key of the sorted set holds a {other}"));
        }
        match (wanted, found.last_packet_id) {
            (_, FoundString::Other(other)) => {
                self.add(FindingKind::ForeignType, None, None, format!("the key of the last packet id holds a {other}"))
            }
            (None, FoundString::Missing) => {}
            (Some(wanted), FoundString::Missing) => {
                self.add(FindingKind::MissingLastPacketId, None, None, format!("it should be {}", wanted.get()));
            }
            (Some(wanted), FoundString::Text(text)) if text == wanted.get().to_string().as_bytes() => self.last_packet_id_stays(found),
            (wanted, FoundString::Text(text)) => {
                let should = wanted.map_or_else(|| "there should be none".to_owned(), |wanted| format!("it should be {}", wanted.get()));
                self.add(FindingKind::WrongLastPacketId, None, None, format!("it is {}, {should}", shown(&String::from_utf8_lossy(text))));
                self.last_packet_id_stays(found);
            }
        }
    }

    fn last_packet_id_stays(&mut self, found: &FoundHead<'_>) {
        if let Some(deadline) = found.last_packet_id_deadline {
            self.add(FindingKind::LastPacketIdExpires, None, None, format!("it ends at {} ms, and must stay", deadline.0));
        }
    }

    /// Compares a message that must be there with what is. Messages come newest first.
    pub fn message(&mut self, wanted: &WantedMessage<'_>, found: &FoundMessage<'_>, now: Millis) {
        let (packet_id, serial) = (Some(wanted.packet_id.get()), Some(wanted.score.get() - 1));
        if let Some(score) = found.score {
            self.place(wanted.packet_id, wanted.score, score);
        }
        let bytes = match found.string {
            FoundString::Other(other) => {
                return self.add(FindingKind::ForeignType, packet_id, serial, format!("the key of the message holds a {other}"));
            }
            FoundString::Missing if wanted.deadline.0 <= now.0.saturating_add(self.tolerance.deadline_ms) => return,
            FoundString::Missing => {
                let reference = if found.score.is_some() { "it is gone, though its reference stands" } else { "neither message nor reference" };
                return self.add(FindingKind::MissingMessage, packet_id, serial, format!("{reference}; its deadline is {} ms", wanted.deadline.0));
            }
            FoundString::Text(bytes) => bytes,
        };
        if found.score.is_none() {
            return self.add(FindingKind::MissingMessage, packet_id, serial, "it stands there, but nothing refers to it".to_owned());
        }
        let stored = match StoredMessage::parse(bytes) {
            Ok(stored) => stored,
            Err(problem) => return self.add(FindingKind::UnreadableMessage, packet_id, serial, problem.to_string()),
        };
        let fields = self.fields(wanted, &stored);
        if !fields.is_empty() {
            self.add(FindingKind::DifferentField, packet_id, serial, fields.join("; "));
        }
        // The broker's own script forgets the deadline of a message that it turns into a PUBREL.
        let made_by_broker = stored.packet_type == PacketType::Pubrel && found.deadline.is_none();
        if !made_by_broker {
            self.deadline(wanted, found.deadline);
        }
    }

    /// Compares a message whose deadline has passed with what is there. Its reference may dangle: the broker tolerates that.
    pub fn expired(&mut self, message: &WantedMessage<'_>, found: &FoundMessage<'_>) {
        let (packet_id, serial) = (Some(message.packet_id.get()), Some(message.score.get() - 1));
        let is_pubrel = message.content.packet_type == PacketType::Pubrel;
        match (found.string, found.deadline) {
            (FoundString::Missing, _) => {}
            (FoundString::Other(other), _) => {
                self.add(FindingKind::ForeignType, packet_id, serial, format!("the key of the message holds a {other}"))
            }
            (FoundString::Text(_), None) if is_pubrel => {}
            (FoundString::Text(_), Some(deadline)) if deadline.0 <= message.deadline.0.saturating_add(self.tolerance.deadline_ms) => {}
            (FoundString::Text(_), deadline) => {
                let until = deadline.map_or_else(|| "for ever".to_owned(), |deadline| format!("up to {} ms", deadline.0));
                let detail = format!("it lives {until}, and its deadline of {} ms has passed", message.deadline.0);
                self.add(FindingKind::WrongDeadline, packet_id, serial, detail);
            }
        }
    }

    /// A message that stands there, and no row wants it.
    pub fn extra(&mut self, packet_id: u16, score: Option<f64>) {
        let detail = match score {
            Some(score) => format!("no row wants it; its score is {score}"),
            None => "no row wants it, and nothing refers to it".to_owned(),
        };
        self.add(FindingKind::ExtraMessage, Some(packet_id), None, detail);
    }

    /// A reference to a key of the session that holds another type.
    pub fn foreign_message(&mut self, packet_id: u16, other: &str) {
        self.add(FindingKind::ForeignType, Some(packet_id), None, format!("the key of the message holds a {other}"));
    }

    /// A reference to something that is no message of the session.
    pub fn strange_reference(&mut self, member: &[u8], score: f64) {
        let member = shown(&String::from_utf8_lossy(member));
        self.add(FindingKind::ExtraMessage, None, None, format!("a reference to {member}, which is no message of the session; its score is {score}"));
    }

    /// What stands there for a session that PostgreSQL does not know.
    pub fn unknown_session(&mut self, kind: FindingKind, what: &str) {
        self.add(kind, None, None, what.to_owned());
    }

    fn place(&mut self, packet_id: PacketId, wanted: Score, score: f64) {
        // Redis orders equal scores by the text of their members, which differ in the packet id alone.
        let goes_before = |a: (f64, PacketId), b: (f64, PacketId)| a.0 < b.0 || (a.0 == b.0 && a.1.get().to_string() < b.1.get().to_string());
        let serial = Some(wanted.get() - 1);
        match self.newer {
            Some(newer) if !goes_before((score, packet_id), newer) => {
                self.order_is_wrong = true;
                let detail = format!("its score is {score}, so it comes after packet id {} with {}, which is newer", newer.1.get(), newer.0);
                self.add(FindingKind::WrongOrder, Some(packet_id.get()), serial, detail);
            }
            // A score of the law is a whole number below 2^53, exact as a double.
            #[allow(clippy::cast_precision_loss)]
            _ if score != wanted.get() as f64 => {
                let detail = format!("it is {score} instead of {}", wanted.get());
                let finding = self.finding(FindingKind::WrongScore, Some(packet_id.get()), serial, detail);
                if self.wrong_scores.len() < MOST_FINDINGS { self.wrong_scores.push(finding) } else { self.unlisted += 1 }
            }
            _ => {}
        }
        self.newer = Some((score, packet_id));
    }

    fn deadline(&mut self, wanted: &WantedMessage<'_>, found: Option<Millis>) {
        let (packet_id, serial) = (Some(wanted.packet_id.get()), Some(wanted.score.get() - 1));
        match found {
            Some(deadline) if deadline.0.abs_diff(wanted.deadline.0) <= self.tolerance.deadline_ms.unsigned_abs() => {}
            Some(deadline) => {
                // Lossless enough: a difference of times for a person.
                #[allow(clippy::cast_precision_loss)]
                let seconds = (deadline.0 - wanted.deadline.0) as f64 / 1000.0;
                let detail = format!("it is {} ms instead of {} ms: {seconds:+} s", deadline.0, wanted.deadline.0);
                self.add(FindingKind::WrongDeadline, packet_id, serial, detail);
            }
            None => self.add(FindingKind::WrongDeadline, packet_id, serial, format!("it has none, and should end at {} ms", wanted.deadline.0)),
        }
    }

    /// The fields that say something else, each in words.
    fn fields(&self, wanted: &WantedMessage<'_>, stored: &StoredMessage<'_>) -> Vec<String> {
        let content = &wanted.content;
        let Content { topic, time, packet_type, qos, payload, retained, .. } = content;
        let (client, packet_id) = (self.client.as_str(), i32::from(wanted.packet_id.get()));
        let mut differing = Vec::new();
        // Words are made only for what differs: this runs for every message.
        let mut compare = |name: &str, equal: bool, words: &dyn Fn() -> (String, String)| {
            if !equal {
                let (found, should) = words();
                differing.push(format!("{name} is {found} instead of {should}"));
            }
        };
        compare("clientId", stored.client_id.as_deref() == Some(client), &|| (text(stored.client_id.as_deref()), shown(client)));
        compare("topic", stored.topic.as_deref() == Some(topic), &|| (text(stored.topic.as_deref()), shown(topic)));
        compare("time", stored.time == *time, &|| (stored.time.to_string(), time.to_string()));
        compare("packetId", stored.packet_id == Some(packet_id), &|| (number(stored.packet_id), packet_id.to_string()));
        compare("packetType", stored.packet_type == *packet_type, &|| (stored.packet_type.name().to_owned(), packet_type.name().to_owned()));
        compare("qos", stored.qos == Some(i32::from(*qos)), &|| (number(stored.qos), qos.to_string()));
        compare("payload", stored.payload == *payload, &|| (self.bytes(Some(&stored.payload)), self.bytes(Some(payload))));
        compare("retained", stored.retained == *retained, &|| (stored.retained.to_string(), retained.to_string()));
        let (found, should) = (stored.user_properties.as_ref(), content.user_properties.as_ref());
        compare("userProperties", found == should, &|| (properties(found), properties(should)));
        for (name, found, should) in [
            ("msgExpiryInterval", stored.msg_expiry_interval, content.msg_expiry_interval),
            ("payloadFormatIndicator", stored.payload_format_indicator, content.payload_format_indicator),
        ] {
            compare(name, found == should, &|| (number(found), number(should)));
        }
        for (name, found, should) in [
            ("contentType", stored.content_type.as_deref(), content.content_type),
            ("responseTopic", stored.response_topic.as_deref(), content.response_topic),
        ] {
            compare(name, found == should, &|| (text(found), text(should)));
        }
        let (found, should) = (stored.correlation_data.as_deref(), content.correlation_data);
        compare("correlationData", found == should, &|| (self.bytes(found), self.bytes(should)));
        differing
    }

    /// Bytes by size and digest, or as they are where that was asked for.
    fn bytes(&self, bytes: Option<&[u8]>) -> String {
        match bytes {
            None => "absent".to_owned(),
            Some(bytes) if self.tolerance.show_payload => format!("\"{}\"", EscapedText(&String::from_utf8_lossy(bytes))),
            Some(bytes) => digest_of(bytes),
        }
    }

    fn finding(&self, kind: FindingKind, packet_id: Option<u16>, serial_number: Option<i64>, detail: String) -> Finding {
        Finding { client: self.client.clone(), kind, packet_id, serial_number, detail }
    }

    fn add(&mut self, kind: FindingKind, packet_id: Option<u16>, serial_number: Option<i64>, detail: String) {
        if self.findings.len() >= MOST_FINDINGS {
            self.unlisted += 1;
            return;
        }
        let finding = self.finding(kind, packet_id, serial_number, detail);
        self.findings.push(finding);
    }
}

impl Differences {
    /// One more, as far as it is listed.
    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < MOST_FINDINGS { self.findings.push(finding) } else { self.unlisted += 1 }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.findings.is_empty() && self.unlisted == 0
    }

    /// Those that both comparisons found.
    #[must_use]
    pub fn in_both(&self, other: &Self) -> Self {
        let also: std::collections::HashSet<_> = other.findings.iter().map(|finding| (finding.kind, finding.packet_id, &finding.detail)).collect();
        let findings = self.findings.iter().filter(|finding| also.contains(&(finding.kind, finding.packet_id, &finding.detail)));
        Self { findings: findings.cloned().collect(), unlisted: self.unlisted.min(other.unlisted) }
    }
}

pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARACTERS).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{end}\"", EscapedText(&short))
}

fn text(text: Option<&str>) -> String {
    text.map_or_else(|| "absent".to_owned(), shown)
}

/// Properties by their digest: they may hold what a payload holds.
fn properties(properties: Option<&UserProperties>) -> String {
    properties.map_or_else(|| "absent".to_owned(), |properties| digest_of(serde_json::to_string(properties).unwrap_or_default().as_bytes()))
}

fn number(number: Option<i32>) -> String {
    number.map_or_else(|| "absent".to_owned(), |number| number.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
