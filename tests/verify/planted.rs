//! One fault at a time, written into Redis behind the tool's back.

use super::{Found, base, found};

const SET: &str = "{c-0000}_messages";
const LAST: &str = "{c-0000}_last_packet_id";
const THIRD: &str = "{c-0000}_messages_3";
const FULL: &str = "{full}_messages_42";

fn missing(packet_ids: impl Iterator<Item = i64>) -> Vec<Found> {
    packet_ids.map(|packet_id| found("c-0000", "missing_message", packet_id, packet_id - 1)).collect()
}

#[test]
fn what_is_as_it_was_migrated_is_equal() {
    let scene = base();
    let verified = scene.verify(&[]);
    assert_eq!(verified.findings(), []);
    assert_eq!(verified.outcome.code, Some(0));
    // Two of twelve messages, one lone, and full, over, released, bare; of over one message is due.
    assert_eq!((verified.figure("sessions_compared"), verified.figure("messages_compared")), (7, 24 + 3));
    assert_eq!((verified.figure("equal_sessions"), verified.figure("quarantined")), (7, 0));
}

#[test]
fn a_message_that_a_broker_would_not_find_is_missing() {
    let scene = base();
    let third = missing(3..=3);
    scene.assert_found("its string", &[&["DEL", THIRD]], &third);
    scene.assert_found("its reference", &[&["ZREM", SET, THIRD]], &third);
    scene.assert_found("both", &[&["DEL", THIRD], &["ZREM", SET, THIRD]], &third);
    scene.assert_found("the whole set", &[&["DEL", SET]], &missing(1..=12));
    let mut all = missing(1..=12);
    all.push(found("c-0000", "missing_last_packet_id", None, None));
    let keys: Vec<String> = (1..=12).map(|packet_id| format!("{SET}_{packet_id}")).collect();
    let mut line = vec!["DEL", SET, LAST];
    line.extend(keys.iter().map(String::as_str));
    scene.assert_found("the whole session", &[&line], &all);
    scene.assert_found("the only message", &[&["DEL", FULL, "{full}_messages"]], &[found("full", "missing_message", 42, 41)]);
}

#[test]
fn a_message_that_no_row_wants_is_extra() {
    let scene = base();
    let json = scene.json(THIRD).replace("\"packetId\":3", "\"packetId\":77");
    let far = scene.deadline(THIRD).to_string();
    let extra = [found("c-0000", "extra_message", 77, None)];
    let (key, write): (_, &[&str]) = ("{c-0000}_messages_77", &["SET", "{c-0000}_messages_77", &json, "PXAT", &far]);
    scene.assert_found("after all others", &[write, &["ZADD", SET, "77", key]], &extra);
    scene.assert_found("before all others", &[write, &["ZADD", SET, "0", key]], &extra);
    scene.assert_found("between the others", &[write, &["ZADD", SET, "3.5", key]], &extra);
    scene.assert_found("a string that nothing refers to", &[write], &extra);
    let lone: &[&str] = &["SET", "{lone-0000}_messages_5", &json];
    let extra = [found("lone-0000", "extra_message", 5, None)];
    scene.assert_found("of a session without messages", &[lone, &["ZADD", "{lone-0000}_messages", "5", "{lone-0000}_messages_5"]], &extra);
    scene.assert_found("the same without a reference", &[lone], &extra);
    let strange = [found("c-0000", "extra_message", None, None)];
    scene.assert_found("a reference to no message", &[&["ZADD", SET, "99", "junk"]], &strange);
    scene.assert_found("a reference to another session's", &[&["ZADD", SET, "99", "{c-0001}_messages_1"]], &strange);
}

#[test]
fn each_field_is_compared() {
    let scene = base();
    let json = scene.json(FULL);
    let time = serde_json::from_str::<serde_json::Value>(&json).unwrap()["time"].to_string();
    let later = format!("{}", time.parse::<i64>().unwrap() + 1);
    for (field, from, to) in [
        ("clientId", "\"full\"", "\"fuller\""),
        ("topicName", "\"s/t\"", "\"s/T\""),
        ("time", time.as_str(), later.as_str()),
        ("packetId", "\"packetId\":42", "\"packetId\":43"),
        ("packetType", "PUBLISH", "PUBREL"),
        ("qos", "\"qos\":2", "\"qos\":1"),
        ("payload", "aGVsbG8=", "aGVsbG9v"),
        ("retained", "\"retained\":true", "\"retained\":false"),
        ("userProperties", "\"v\":\"1\"", "\"v\":\"2\""),
        ("msgExpiryInterval", "9000", "9001"),
        ("payloadFormatIndicator", "\"payloadFormatIndicator\":1", "\"payloadFormatIndicator\":0"),
        ("contentType", "text/plain", "text/html"),
        ("responseTopic", "r/t", "r/u"),
        ("correlationData", "Y29ycg==", "Y29ycmE="),
    ] {
        assert!(json.contains(from), "{field}: {json}");
        scene.reset();
        scene.rewrite(FULL, &json.replacen(from, to, 1));
        scene.assert_findings(field, &[], &[found("full", "different_field", 42, 41)]);
        let detail = scene.verify(&[]).lines[0]["detail"].as_str().unwrap().to_owned();
        let name = field.strip_suffix("Name").unwrap_or(field);
        assert!(detail.starts_with(&format!("{name} is ")) && !detail.contains(';'), "{field}: {detail}");
    }
}

#[test]
fn a_field_that_is_absent_or_too_many_is_different() {
    let scene = base();
    let mut whole: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&scene.json(FULL)).unwrap();
    for field in
        ["clientId", "topicName", "packetId", "qos", "retained", "userProperties", "msgExpiryInterval", "payloadFormatIndicator", "contentType"]
            .into_iter()
            .chain(["responseTopic", "correlationData"])
    {
        let value = whole.remove(field).unwrap();
        scene.reset();
        scene.rewrite(FULL, &serde_json::to_string(&whole).unwrap());
        scene.assert_findings(field, &[], &[found("full", "different_field", 42, 41)]);
        whole.insert(field.to_owned(), value);
    }
    // The row has NULL.
    let bare = scene.json(THIRD);
    for more in ["\"contentType\":\"\"", "\"msgExpiryInterval\":604800", "\"correlationData\":\"\"", "\"payloadFormatIndicator\":0"] {
        scene.reset();
        scene.rewrite(THIRD, &bare.replacen('{', &format!("{{{more},"), 1));
        scene.assert_findings(more, &[], &[found("c-0000", "different_field", 3, 2)]);
    }
}

#[test]
fn several_fields_of_a_message_are_one_finding() {
    let scene = base();
    scene.reset();
    scene.rewrite(FULL, &scene.json(FULL).replace("\"qos\":2", "\"qos\":1").replace("r/t", "r/u"));
    scene.assert_findings("two fields", &[], &[found("full", "different_field", 42, 41)]);
    assert_eq!(scene.verify(&[]).lines[0]["detail"], "qos is 1 instead of 2; responseTopic is \"r/u\" instead of \"r/t\"");
}

#[test]
fn messages_in_another_order_are_one_wrong_order() {
    let scene = base();
    let swapped: &[&str] = &["ZADD", SET, "2", THIRD, "3", "{c-0000}_messages_2"];
    scene.assert_found("two swapped", &[swapped], &[found("c-0000", "wrong_order", 2, 1)]);
    let first = &[found("c-0000", "wrong_order", 1, 0)];
    scene.assert_found("the oldest is delivered last", &[&["ZADD", SET, "99", "{c-0000}_messages_1"]], first);
    // 11 is newer than 10 is no more: 11 comes after the message that now stands first.
    let last = &[found("c-0000", "wrong_order", 11, 10)];
    scene.assert_found("the newest is delivered first", &[&["ZADD", SET, "0.5", "{c-0000}_messages_12"]], last);
    // Equal scores stand in the order of their members' text, in which 10 is before 9.
    let tie = &[found("c-0000", "wrong_order", 9, 8)];
    scene.assert_found("two of one score", &[&["ZADD", SET, "9", "{c-0000}_messages_10"]], tie);
}

#[test]
fn a_score_that_keeps_the_order_is_a_wrong_score() {
    let scene = base();
    scene.assert_found("a half more", &[&["ZADD", SET, "3.5", THIRD]], &[found("c-0000", "wrong_score", 3, 2)]);
    scene.assert_found("the newest one on", &[&["ZADD", SET, "13", "{c-0000}_messages_12"]], &[found("c-0000", "wrong_score", 12, 11)]);
    scene.assert_found("the oldest one off", &[&["ZADD", SET, "0", "{c-0000}_messages_1"]], &[found("c-0000", "wrong_score", 1, 0)]);
    scene.assert_found("a tie in order", &[&["ZADD", SET, "3", "{c-0000}_messages_4"]], &[found("c-0000", "wrong_score", 4, 3)]);
    scene.assert_found("without an end", &[&["ZADD", SET, "+inf", "{c-0000}_messages_12"]], &[found("c-0000", "wrong_score", 12, 11)]);
    scene.assert_found("the packet id", &[&["ZADD", "{full}_messages", "41", FULL]], &[found("full", "wrong_score", 42, 41)]);
}

#[test]
fn a_message_that_ends_at_another_time_has_a_wrong_deadline() {
    let scene = base();
    let expected = [found("c-0000", "wrong_deadline", 3, 2)];
    for off in [2000, -2000, 86_400_000] {
        let at = (scene.deadline(THIRD) + off).to_string();
        scene.assert_found(&format!("off by {off} ms"), &[&["PEXPIREAT", THIRD, &at]], &expected);
    }
    scene.assert_found("never", &[&["PERSIST", THIRD]], &expected);
    let far = scene.deadline(THIRD).to_string();
    let json = scene.json("{over}_messages_2").replace("\"packetId\":2", "\"packetId\":1");
    let alive: &[&str] = &["SET", "{over}_messages_1", &json, "PXAT", &far];
    let expected = [found("over", "wrong_deadline", 1, 0)];
    scene.assert_found("alive after its end", &[alive, &["ZADD", "{over}_messages", "1", "{over}_messages_1"]], &expected);
    scene.assert_found("alive for ever after its end", &[alive, &["PERSIST", "{over}_messages_1"]], &expected);
    let released = (scene.deadline("{released}_messages_1") + 5000).to_string();
    let expected = [found("released", "wrong_deadline", 1, 0)];
    scene.assert_found("of a PUBREL", &[&["PEXPIREAT", "{released}_messages_1", &released]], &expected);
}

#[test]
fn the_last_packet_id_is_compared() {
    let scene = base();
    for client in ["c-0000", "lone-0000"] {
        let key = format!("{{{client}}}_last_packet_id");
        scene.assert_found("deleted", &[&["DEL", &key]], &[found(client, "missing_last_packet_id", None, None)]);
        for text in ["11", "13", "012", "0", "", "x"] {
            scene.assert_found(text, &[&["SET", &key, text]], &[found(client, "wrong_last_packet_id", None, None)]);
        }
        scene.assert_found("expires", &[&["EXPIRE", &key, "9000"]], &[found(client, "last_packet_id_expires", None, None)]);
    }
    let both = [found("c-0000", "wrong_last_packet_id", None, None), found("c-0000", "last_packet_id_expires", None, None)];
    scene.assert_found("another that expires", &[&["SET", LAST, "11", "EX", "9000"]], &both);
    scene.assert_found("none was given", &[&["SET", "{bare}_last_packet_id", "1"]], &[found("bare", "wrong_last_packet_id", None, None)]);
}

#[test]
fn what_the_broker_cannot_read_is_unreadable() {
    let scene = base();
    let json = scene.json(FULL);
    let expected = [found("full", "unreadable_message", 42, 41)];
    for (what, broken) in [
        ("an unknown field", json.replacen('{', "{\"serialNumber\":41,", 1)),
        ("a text for a boolean", json.replace("\"retained\":true", "\"retained\":\"t\"")),
        ("a text for a list", json.replace("[{\"k\":\"a\",\"v\":\"1\"}]", "\"a\"")),
        ("a number out of range", json.replace("9000", "4294967295")),
        ("no payload", json.replace("\"payload\":\"aGVsbG8=\",", "")),
        ("no packet type", json.replace("\"packetType\":\"PUBLISH\",", "")),
        ("an unknown packet type", json.replace("PUBLISH", "PUBACK")),
        ("no base64", json.replace("aGVsbG8=", "aGVsbG8")),
        ("half of it", json[..json.len() / 2].to_owned()),
        ("no JSON", "hello".to_owned()),
        ("nothing", String::new()),
    ] {
        scene.reset();
        scene.rewrite(FULL, &broken);
        scene.assert_findings(what, &[], &expected);
    }
}

#[test]
fn a_session_that_postgresql_does_not_know_is_extra() {
    let scene = base();
    let extra = [found("x", "extra_session", None, None)];
    let json = scene.json(THIRD);
    let last: &[&str] = &["SET", "{x}_last_packet_id", "7"];
    let set: &[&str] = &["ZADD", "{x}_messages", "7", "{x}_messages_7"];
    let message: &[&str] = &["SET", "{x}_messages_7", &json];
    scene.assert_found("a last packet id", &[last], &extra);
    scene.assert_found("a set", &[set], &extra);
    scene.assert_found("a message", &[message], &extra);
    scene.assert_found("a set and its message", &[set, message], &extra);
    scene.assert_found("all of it", &[last, set, message], &extra);
    scene.assert_found(
        "a strange id",
        &[&["SET", "{}messages{_messages}_last_packet_id", "7"]],
        &[found("}messages{_messages", "extra_session", None, None)],
    );
    let verified = scene.verify(&[]);
    assert_eq!(verified.figure("sessions_compared"), 8, "the seven and the extra one");
}

#[test]
fn a_key_of_another_type_is_foreign() {
    let scene = base();
    let makers: [(&str, &[&str]); 3] = [("HSET", &["f", "v"]), ("RPUSH", &["v"]), ("SADD", &["v"])];
    for (command, values) in makers {
        let of = |key: &'static str| [&[command, key], values].concat();
        let foreign = |client: &str| found(client, "foreign_type", None, None);
        scene.assert_found(command, &[&["DEL", SET], &of(SET)], &[foreign("c-0000")]);
        scene.assert_found(command, &[&["DEL", LAST], &of(LAST)], &[foreign("c-0000")]);
        scene.assert_found(command, &[&["DEL", THIRD], &of(THIRD)], &[found("c-0000", "foreign_type", 3, 2)]);
        scene.assert_found(command, &[&of("{c-0000}_messages_77")], &[found("c-0000", "foreign_type", 77, None)]);
        let reference: &[&str] = &["ZADD", SET, "77", "{c-0000}_messages_77"];
        scene.assert_found(command, &[&of("{c-0000}_messages_77"), reference], &[found("c-0000", "foreign_type", 77, None)]);
        scene.assert_found(command, &[&of("{lone-0000}_messages")], &[foreign("lone-0000")]);
        scene.assert_found(command, &[&of("{x}_messages")], &[foreign("x")]);
        scene.assert_found(command, &[&of("{x}_last_packet_id")], &[foreign("x")]);
        scene.assert_found(command, &[&of("{x}_messages_7")], &[found("x", "foreign_type", 7, None)]);
        scene.assert_found(command, &[&of("{over}_messages_1")], &[found("over", "foreign_type", 1, 0)]);
    }
    let foreign = [found("c-0000", "foreign_type", None, None)];
    scene.assert_found("a string for a set", &[&["SET", SET, "v"]], &foreign);
    scene.assert_found("a set for a last packet id", &[&["DEL", LAST], &["ZADD", LAST, "1", "v"]], &foreign);
    scene.assert_found("a set for a message", &[&["DEL", THIRD], &["ZADD", THIRD, "1", "v"]], &[found("c-0000", "foreign_type", 3, 2)]);
}

#[test]
fn a_fault_of_each_kind_is_found_beside_the_others_whether_or_not_anything_is_recorded() {
    let scene = base();
    let at = (scene.deadline("{c-0001}_messages_5") + 9000).to_string();
    let lines: [&[&str]; 7] = [
        &["DEL", THIRD],
        &["ZADD", "{c-0001}_messages", "3.5", "{c-0001}_messages_3"],
        &["PEXPIREAT", "{c-0001}_messages_5", &at],
        &["DEL", "{lone-0000}_last_packet_id"],
        &["SET", "{full}_last_packet_id", "1"],
        &["SET", "{x}_last_packet_id", "1"],
        &["HSET", "{y}_messages", "f", "v"],
    ];
    let expected = [
        found("c-0000", "missing_message", 3, 2),
        found("c-0001", "wrong_score", 3, 2),
        found("c-0001", "wrong_deadline", 5, 4),
        found("lone-0000", "missing_last_packet_id", None, None),
        found("full", "wrong_last_packet_id", None, None),
        found("x", "extra_session", None, None),
        found("y", "foreign_type", None, None),
    ];
    scene.assert_found("recorded", &lines, &expected);
    scene.assert_findings("stateless", &["--stateless"], &expected);
    scene.database.psql("drop schema tbmq_migrate cascade");
    scene.assert_findings("without a control schema", &[], &expected);
    assert_eq!(scene.database.psql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
}
