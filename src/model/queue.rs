//! A session of a 2.x broker by itself, without PostgreSQL: what in it contradicts itself, or keeps a broker from delivering.
//!
//! References come newest first, by falling score.

use super::{ClientId, Differences, Finding, FindingKind, FoundHead, FoundMessage, FoundString, PacketType, Rules, StoredMessage};
use super::{Millis, comparison};

/// The check of one session.
#[derive(Debug)]
pub struct QueueCheck {
    client: ClientId,
    /// The life of a message without an interval of its own, ms.
    default_ttl_ms: i64,
    tolerance_ms: i64,
    differences: Differences,
    newest: Option<u16>,
    /// References to messages that are gone, newer than every message so far that can still live by the default TTL.
    dangling: Vec<(u16, f64)>,
    /// Those that are newer than a message that can.
    gone_early: Vec<(u16, f64)>,
    any_interval: bool,
    messages: u64,
}

/// Packet ids are given in a circle: 1 follows this one.
const LAST_PACKET_ID: u16 = 65_535;

impl QueueCheck {
    /// Begins with a session.
    pub fn new(client: ClientId, rules: &Rules, tolerance_ms: i64) -> Self {
        Self {
            client,
            default_ttl_ms: i64::try_from(rules.default_ttl.as_millis()).unwrap_or(i64::MAX),
            tolerance_ms,
            differences: Differences::default(),
            newest: None,
            dangling: Vec::new(),
            gone_early: Vec::new(),
            any_interval: false,
            messages: 0,
        }
    }

    /// The next reference, and what it refers to.
    pub fn reference(&mut self, packet_id: u16, score: f64, found: &FoundMessage<'_>, now: Millis) {
        self.newest.get_or_insert(packet_id);
        let bytes = match found.string {
            FoundString::Missing => return self.dangling.push((packet_id, score)),
            FoundString::Other(other) => {
                return self.add(FindingKind::ForeignType, Some(packet_id), format!("the key of the message holds a {other}"));
            }
            FoundString::Text(bytes) => bytes,
        };
        self.messages += 1;
        let stored = match StoredMessage::parse(bytes) {
            Ok(stored) => stored,
            Err(problem) => return self.add(FindingKind::UnreadableMessage, Some(packet_id), problem.to_string()),
        };
        self.any_interval |= stored.msg_expiry_interval.is_some_and(|seconds| seconds != 0);
        if stored.time.saturating_add(self.default_ttl_ms) > now.0.saturating_add(self.tolerance_ms) {
            self.gone_early.append(&mut self.dangling);
        }
        let mut fields = Vec::new();
        if stored.client_id.as_deref() != Some(self.client.as_str()) {
            fields.push("clientId is not that of the key");
        }
        if stored.packet_id != Some(i32::from(packet_id)) {
            fields.push("packetId is not that of the key");
        }
        if !fields.is_empty() {
            self.add(FindingKind::DifferentField, Some(packet_id), fields.join("; "));
        }
        if found.deadline.is_none() && stored.packet_type == PacketType::Publish {
            self.add(FindingKind::WrongDeadline, Some(packet_id), "it has none, and would stay for ever".to_owned());
        }
    }

    /// A reference to something that is no message of the session.
    pub fn strange_reference(&mut self, member: &[u8], score: f64) {
        let member = comparison::shown(&String::from_utf8_lossy(member));
        self.add(FindingKind::DanglingReference, None, format!("it refers to {member}, which is no message of the session; its score is {score}"));
    }

    /// A message that stands there, and nothing refers to it.
    pub fn orphan(&mut self, packet_id: u16) {
        self.add(FindingKind::OrphanString, Some(packet_id), "nothing refers to it: no broker would deliver it".to_owned());
    }

    /// The last packet id and the types of keys, after the last reference.
    pub fn head(&mut self, found: &FoundHead<'_>) {
        if let Some(other) = found.set_of_other_type {
            self.add(FindingKind::ForeignType, None, format!("the key of the sorted set holds a {other}"));
        }
        let text = match (found.last_packet_id, self.newest) {
            (FoundString::Missing, None) => return,
            (FoundString::Missing, Some(newest)) => {
                let detail = format!("the newest message has packet id {newest}; the next one would get packet id 1");
                return self.add(FindingKind::MissingLastPacketId, None, detail);
            }
            (FoundString::Other(other), _) => {
                return self.add(FindingKind::ForeignType, None, format!("the key of the last packet id holds a {other}"));
            }
            (FoundString::Text(text), _) => text,
        };
        if let Some(deadline) = found.last_packet_id_deadline {
            self.add(FindingKind::LastPacketIdExpires, None, format!("it ends at {} ms, and must stay", deadline.0));
        }
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u16>().ok().filter(|number| number.to_string() == text));
        match (number, self.newest) {
            (None, _) => {
                let shown = comparison::shown(&String::from_utf8_lossy(text));
                self.add(FindingKind::WrongLastPacketId, None, format!("it is {shown}, which is no packet id"));
            }
            (Some(last), Some(newest)) if is_behind(last, newest) => {
                let detail =
                    format!("it is {last}, and the newest message has packet id {newest}: the next ones would be written over live messages");
                self.add(FindingKind::LastPacketIdBehind, None, detail);
            }
            (Some(_), _) => {}
        }
    }

    /// What the check came to, and how many messages stand there.
    ///
    /// A reference whose message is gone counts when expiry does not explain it: an older message still lives by the default
    /// TTL, and no message of the session has an interval of its own, which the one that is gone may have had too.
    pub fn finish(mut self) -> (Differences, u64) {
        if !self.any_interval {
            for (packet_id, score) in std::mem::take(&mut self.gone_early) {
                let detail = format!("the message is gone before the default TTL, and older ones are not; its score is {score}");
                self.add(FindingKind::DanglingReference, Some(packet_id), detail);
            }
        }
        (self.differences, self.messages)
    }

    fn add(&mut self, kind: FindingKind, packet_id: Option<u16>, detail: String) {
        self.differences.add(Finding { client: self.client.clone(), kind, packet_id, serial_number: None, detail });
    }
}

/// Whether the circle is shorter from the last packet id to the newest message than the other way. 0 is behind all.
fn is_behind(last: u16, newest: u16) -> bool {
    let ahead = (u32::from(last) + u32::from(LAST_PACKET_ID) - u32::from(newest)) % u32::from(LAST_PACKET_ID);
    last == 0 || ahead > u32::from(LAST_PACKET_ID) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_796_073_271_729);
    const DAY_MS: i64 = 86_400_000;

    fn json(packet_id: u16, age_ms: i64, more: &str) -> String {
        let time = NOW.0 - age_ms;
        format!(
            r#"{{"clientId":"dev","topicName":"t","time":{time},"packetId":{packet_id},"packetType":"PUBLISH","qos":1,"payload":"","retained":false{more}}}"#
        )
    }

    /// Messages newest first, by packet id; `None` is gone. Then the last packet id.
    fn check(messages: &[(u16, Option<String>)], last: Option<&str>) -> Vec<(FindingKind, Option<u16>)> {
        let mut check = QueueCheck::new(ClientId::new("dev"), &Rules::default(), 1000);
        for (at, (packet_id, text)) in messages.iter().enumerate() {
            let string = text.as_ref().map_or(FoundString::Missing, |text| FoundString::Text(text.as_bytes()));
            let score = f64::from(1000 - u16::try_from(at).unwrap_or(0));
            check.reference(*packet_id, score, &FoundMessage { string, deadline: Some(Millis(NOW.0 + DAY_MS)), score: Some(score) }, NOW);
        }
        let last_packet_id = last.map_or(FoundString::Missing, |text| FoundString::Text(text.as_bytes()));
        check.head(&FoundHead { last_packet_id, last_packet_id_deadline: None, set_of_other_type: None });
        check.finish().0.findings.into_iter().map(|finding| (finding.kind, finding.packet_id)).collect()
    }

    #[test]
    fn a_queue_of_a_broker_contradicts_nothing() {
        let queue = [(2, Some(json(2, DAY_MS, ""))), (1, Some(json(1, 2 * DAY_MS, "")))];
        assert_eq!(check(&queue, Some("2")), []);
        assert_eq!(check(&queue, Some("9")), []);
        assert_eq!(check(&[], Some("9")), []);
        assert_eq!(check(&[], None), []);
    }

    #[test]
    fn a_last_packet_id_behind_the_newest_message_is_told_across_the_wrap_too() {
        let at = |newest: u16, last: &str| check(&[(newest, Some(json(newest, DAY_MS, "")))], Some(last));
        let behind = [(FindingKind::LastPacketIdBehind, None)];
        assert_eq!(at(7, "6"), behind);
        assert_eq!(at(7, "0"), behind);
        assert_eq!(at(1, "65535"), behind);
        assert_eq!(at(65_535, "1"), []);
        assert_eq!(at(7, "7"), []);
        assert_eq!(check(&[(7, Some(json(7, DAY_MS, "")))], None), [(FindingKind::MissingLastPacketId, None)]);
        for last in ["65536", "-1", "07", "x", ""] {
            assert_eq!(at(7, last), [(FindingKind::WrongLastPacketId, None)], "{last}");
        }
    }

    #[test]
    fn a_reference_dangles_beyond_expiry_only_where_an_older_message_still_lives() {
        let dangling = [(FindingKind::DanglingReference, Some(3))];
        assert_eq!(check(&[(3, None), (2, Some(json(2, DAY_MS, "")))], Some("3")), dangling);
        // Older than all that live: it may have expired by the default TTL.
        assert_eq!(check(&[(3, Some(json(3, DAY_MS, ""))), (2, None)], Some("3")), []);
        // The older one has no more than a second to live.
        assert_eq!(check(&[(3, None), (2, Some(json(2, 7 * DAY_MS - 1000, "")))], Some("3")), []);
        // Publishers of this session set intervals: it may have had one.
        assert_eq!(check(&[(3, None), (2, Some(json(2, DAY_MS, r#","msgExpiryInterval":864000"#)))], Some("3")), []);
        assert_eq!(check(&[(3, None), (2, Some(json(2, DAY_MS, r#","msgExpiryInterval":0"#)))], Some("3")), dangling);
    }

    #[test]
    fn a_message_under_anothers_key_or_that_nobody_can_read_is_told() {
        assert_eq!(check(&[(3, Some(json(4, DAY_MS, "")))], Some("3")), [(FindingKind::DifferentField, Some(3))]);
        assert_eq!(check(&[(3, Some("{".to_owned()))], Some("3")), [(FindingKind::UnreadableMessage, Some(3))]);
    }
}
