use super::*;
use crate::model::{Judgement, MessageRow, Rules, SessionLaw};

const NOW: Millis = Millis(1_796_073_271_729);
const WEEK_MS: i64 = 604_800_000;
const JSON: &str =
    r#"{"clientId":"dev","topicName":"s/t","time":1796073270729,"packetId":7,"packetType":"PUBLISH","qos":1,"payload":"aGVsbG8=","retained":false}"#;
const DEADLINE: Millis = Millis(NOW.0 - 1000 + WEEK_MS);

fn row(serial_number: i64, packet_id: i32) -> MessageRow<'static> {
    MessageRow {
        serial_number,
        topic: Some(b"s/t"),
        time: Some(NOW.0 - 1000),
        packet_id: Some(packet_id),
        packet_type: Some(b"PUBLISH"),
        qos: Some(1),
        payload: Some(b"hello"),
        ..MessageRow::default()
    }
}

fn comparison() -> Comparison {
    Comparison::new(ClientId::new("dev"), Tolerance { deadline_ms: 1000, show_payload: false })
}

fn wanted<'a>(row: &MessageRow<'a>) -> WantedMessage<'a> {
    let mut law = SessionLaw::new(Rules::default());
    law.begin(true);
    match law.judge(row, NOW) {
        Judgement::Wanted(wanted) | Judgement::Expired(_, wanted) => wanted,
        Judgement::Left(outcome) => panic!("{outcome:?}"),
    }
}

fn found(json: &str) -> FoundMessage<'_> {
    FoundMessage { string: FoundString::Text(json.as_bytes()), deadline: Some(DEADLINE), score: Some(7.0) }
}

/// The one message of a session against what is found.
fn compare(row: &MessageRow<'_>, found: &FoundMessage<'_>) -> Vec<(FindingKind, String)> {
    let mut comparison = comparison();
    comparison.message(&wanted(row), found, NOW);
    kinds(comparison)
}

fn kinds(comparison: Comparison) -> Vec<(FindingKind, String)> {
    comparison.finish().findings.into_iter().map(|finding| (finding.kind, finding.detail)).collect()
}

#[test]
fn an_equal_message_is_no_finding() {
    assert_eq!(compare(&row(6, 7), &found(JSON)), []);
    assert_eq!(compare(&row(6, 7), &found(&JSON.replace("topicName", "topic"))), []);
}

#[test]
fn each_field_that_differs_is_named() {
    for (name, from, to) in [
        ("clientId", "\"dev\"", "\"dex\""),
        ("topic", "\"s/t\"", "\"s/u\""),
        ("time", "1796073270729", "1796073270730"),
        ("packetId", "\"packetId\":7", "\"packetId\":8"),
        ("packetType", "PUBLISH", "PUBREL"),
        ("qos", "\"qos\":1", "\"qos\":2"),
        ("payload", "aGVsbG8=", "d29ybGQ="),
        ("retained", "false", "true"),
        ("userProperties", "\"qos\"", "\"userProperties\":{\"props\":[{\"k\":\"a\",\"v\":\"1\"}]},\"qos\""),
        ("msgExpiryInterval", "\"qos\"", "\"msgExpiryInterval\":0,\"qos\""),
        ("payloadFormatIndicator", "\"qos\"", "\"payloadFormatIndicator\":0,\"qos\""),
        ("contentType", "\"qos\"", "\"contentType\":\"\",\"qos\""),
        ("responseTopic", "\"qos\"", "\"responseTopic\":\"\",\"qos\""),
        ("correlationData", "\"qos\"", "\"correlationData\":\"\",\"qos\""),
    ] {
        let differing = compare(&row(6, 7), &found(&JSON.replace(from, to)));
        assert_eq!(differing.len(), 1, "{name}: {differing:?}");
        assert_eq!(differing[0].0, FindingKind::DifferentField, "{name}");
        assert!(differing[0].1.starts_with(&format!("{name} is ")) && !differing[0].1.contains(';'), "{name}: {differing:?}");
    }
}

#[test]
fn a_payload_is_told_by_its_digest_unless_it_was_asked_for() {
    let detail = &compare(&row(6, 7), &found(&JSON.replace("aGVsbG8=", "d29ybGQ=")))[0].1;
    assert_eq!(detail, "payload is 5 bytes (sha256 486ea46224d1…) instead of 5 bytes (sha256 2cf24dba5fb0…)");
    let mut shown = Comparison::new(ClientId::new("dev"), Tolerance { deadline_ms: 1000, show_payload: true });
    shown.message(&wanted(&row(6, 7)), &found(&JSON.replace("aGVsbG8=", "d29ybGQ=")), NOW);
    assert_eq!(kinds(shown)[0].1, "payload is \"world\" instead of \"hello\"");
}

#[test]
fn a_deadline_may_be_off_by_the_tolerance_and_no_more() {
    let at = |ms: i64| compare(&row(6, 7), &FoundMessage { deadline: Some(Millis(DEADLINE.0 + ms)), ..found(JSON) });
    assert_eq!((at(1000), at(-1000)), (vec![], vec![]));
    for ms in [1001, -1001] {
        assert_eq!(at(ms).len(), 1);
        assert_eq!(at(ms)[0].0, FindingKind::WrongDeadline);
    }
    assert_eq!(compare(&row(6, 7), &FoundMessage { deadline: None, ..found(JSON) })[0].0, FindingKind::WrongDeadline);
}

#[test]
fn a_pubrel_of_a_broker_may_stay_for_ever() {
    let json = JSON.replace("PUBLISH", "PUBREL");
    let pubrel = MessageRow { packet_type: Some(b"PUBREL"), ..row(6, 7) };
    assert_eq!(compare(&pubrel, &FoundMessage { deadline: None, ..found(&json) }), []);
    let off = FoundMessage { deadline: Some(Millis(DEADLINE.0 + 5000)), ..found(&json) };
    assert_eq!(compare(&pubrel, &off)[0].0, FindingKind::WrongDeadline);
}

#[test]
fn a_message_that_is_gone_is_missing_unless_it_was_due() {
    let gone = FoundMessage { string: FoundString::Missing, deadline: None, score: Some(7.0) };
    assert_eq!(compare(&row(6, 7), &gone)[0].0, FindingKind::MissingMessage);
    assert_eq!(compare(&row(6, 7), &FoundMessage { score: None, ..gone })[0].0, FindingKind::MissingMessage);
    // Written a second ago with an interval of two: due in a second.
    let due = MessageRow { msg_expiry_interval: Some(2), ..row(6, 7) };
    assert_eq!(compare(&due, &gone), []);
    assert_eq!(compare(&MessageRow { msg_expiry_interval: Some(3), ..due }, &gone)[0].0, FindingKind::MissingMessage);
}

#[test]
fn a_message_without_a_reference_is_missing() {
    let findings = compare(&row(6, 7), &FoundMessage { score: None, ..found(JSON) });
    assert_eq!(findings, [(FindingKind::MissingMessage, "it stands there, but nothing refers to it".to_owned())]);
}

#[test]
fn what_the_broker_cannot_read_is_unreadable_and_nothing_else() {
    let findings = compare(&row(6, 7), &found(&JSON.replace("\"qos\"", "\"quality\"")));
    assert_eq!(findings, [(FindingKind::UnreadableMessage, "an unknown field: quality".to_owned())]);
}

#[test]
fn another_type_is_foreign() {
    let findings = compare(&row(6, 7), &FoundMessage { string: FoundString::Other("hash"), deadline: None, score: Some(7.0) });
    assert_eq!(findings, [(FindingKind::ForeignType, "the key of the message holds a hash".to_owned())]);
}

/// Scores of the packet ids 3, 2 and 1 with serial numbers 2, 1 and 0, newest first.
fn scores(scores: [f64; 3]) -> Vec<(FindingKind, Option<u16>)> {
    let mut comparison = comparison();
    for (serial, score) in [2, 1, 0].into_iter().zip(scores) {
        let packet_id = i32::try_from(serial).unwrap() + 1;
        let json = JSON.replace("\"packetId\":7", &format!("\"packetId\":{packet_id}"));
        comparison.message(&wanted(&row(serial, packet_id)), &FoundMessage { score: Some(score), ..found(&json) }, NOW);
    }
    comparison.finish().findings.into_iter().map(|finding| (finding.kind, finding.packet_id)).collect()
}

#[test]
fn scores_in_order_are_wrong_scores_and_others_a_wrong_order() {
    use FindingKind::{WrongOrder, WrongScore};
    assert_eq!(scores([3.0, 2.0, 1.0]), []);
    assert_eq!(scores([4.0, 3.0, 1.0]), [(WrongScore, Some(3)), (WrongScore, Some(2))]);
    assert_eq!(scores([3.0, 2.5, 1.0]), [(WrongScore, Some(2))]);
    assert_eq!(scores([2.0, 3.0, 1.0]), [(WrongOrder, Some(2))]);
    assert_eq!(scores([3.0, 2.0, 99.0]), [(WrongOrder, Some(1))]);
    // Equal scores stand in the order of the members' text, and 1 < 2 < 3.
    assert_eq!(scores([3.0, 1.0, 1.0]), [(WrongScore, Some(2))]);
    assert_eq!(scores([3.0, 3.0, 1.0]), [(WrongScore, Some(2))]);
}

#[test]
fn an_expired_message_may_be_gone_and_must_not_live_on() {
    let over = MessageRow { msg_expiry_interval: Some(1), ..row(6, 7) };
    let compare = |found: FoundMessage<'_>| {
        let mut comparison = comparison();
        comparison.expired(&wanted(&over), &found);
        kinds(comparison)
    };
    let gone = FoundMessage { string: FoundString::Missing, deadline: None, score: Some(7.0) };
    assert_eq!(compare(gone), []);
    assert_eq!(compare(FoundMessage { deadline: Some(Millis(NOW.0 + 1000)), ..found(JSON) }), []);
    for deadline in [Some(Millis(NOW.0 + 1001)), None] {
        assert_eq!(compare(FoundMessage { deadline, ..found(JSON) })[0].0, FindingKind::WrongDeadline);
    }
}

#[test]
fn the_last_packet_id_must_be_the_same_and_stay() {
    let head = |wanted: Option<u16>, text: FoundString<'_>, deadline: Option<i64>| {
        let mut comparison = comparison();
        let wanted = wanted.and_then(|id| LastPacketId::from_column(id.into()));
        let last_packet_id_deadline = deadline.map(Millis);
        comparison.head(wanted, &FoundHead { last_packet_id: text, last_packet_id_deadline, set_of_other_type: None });
        kinds(comparison).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
    };
    assert_eq!(head(Some(7), FoundString::Text(b"7"), None), []);
    assert_eq!(head(None, FoundString::Missing, None), []);
    assert_eq!(head(Some(7), FoundString::Missing, None), [FindingKind::MissingLastPacketId]);
    assert_eq!(head(Some(0), FoundString::Missing, None), [FindingKind::MissingLastPacketId]);
    for text in [&b"8"[..], b"07", b"7 ", b""] {
        assert_eq!(head(Some(7), FoundString::Text(text), None), [FindingKind::WrongLastPacketId]);
    }
    assert_eq!(head(None, FoundString::Text(b"7"), None), [FindingKind::WrongLastPacketId]);
    assert_eq!(head(Some(7), FoundString::Text(b"7"), Some(NOW.0)), [FindingKind::LastPacketIdExpires]);
    assert_eq!(head(Some(7), FoundString::Other("list"), None), [FindingKind::ForeignType]);
}

#[test]
fn what_stands_in_both_comparisons_stands() {
    let finding = |packet_id| Finding {
        client: ClientId::new("dev"),
        kind: FindingKind::MissingMessage,
        packet_id: Some(packet_id),
        serial_number: None,
        detail: String::new(),
    };
    let one = Differences { findings: vec![finding(1), finding(2)], unlisted: 3 };
    let other = Differences { findings: vec![finding(2), finding(4)], unlisted: 0 };
    assert_eq!(one.in_both(&other), Differences { findings: vec![finding(2)], unlisted: 0 });
    assert!(Differences::default().is_none() && !one.is_none());
}
