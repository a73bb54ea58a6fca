use super::scene::Sides;

/// Commands that plant one kind of finding in `a-01`, and what `verify` calls it.
const PLANTED: [(&str, &[&str]); 9] = [
    ("missing_message", &["DEL {a-01}_messages_3"]),
    ("extra_message", &["SET {a-01}_messages_77 {} EX 3600", "ZADD {a-01}_messages 77 {a-01}_messages_77"]),
    ("extra_message", &["SET {a-01}_messages_78 {} EX 3600"]),
    ("unreadable_message", &["SET {a-01}_messages_4 junk KEEPTTL"]),
    ("wrong_score", &["ZADD {a-01}_messages 10.5 {a-01}_messages_10"]),
    ("wrong_deadline", &["EXPIRE {a-01}_messages_5 3600"]),
    ("missing_last_packet_id", &["DEL {a-01}_last_packet_id"]),
    ("wrong_last_packet_id", &["SET {a-01}_last_packet_id 4"]),
    ("last_packet_id_expires", &["EXPIRE {a-01}_last_packet_id 3600"]),
];

#[test]
fn each_planted_difference_is_repaired_with_the_original_deadlines() {
    let sides = Sides::copied();
    for (kind, lines) in PLANTED {
        sides.redis(lines);
        let found = sides.verify();
        assert_eq!(found.code, Some(5), "{kind}: {found:#?}");
        assert!(std::fs::read_to_string(&sides.report).unwrap().contains(kind), "{kind}");
        let outcome = sides.repair().arg("--execute").run();
        assert_eq!(outcome.code, Some(0), "{kind}: {outcome:#?}");
        let report = outcome.json();
        assert_eq!((report["sessions_named"].as_u64(), report["sessions_repaired"].as_u64()), (Some(1), Some(1)), "{kind}: {report:#}");
        let clean = sides.verify();
        assert_eq!(clean.code, Some(0), "{kind}: {clean:#?}");
        sides.assert_original("a-01");
        assert_eq!(sides.scene.keys(), 6 * 12, "{kind}");
    }
}

#[test]
fn an_unknown_session_goes_only_when_it_is_said_and_with_all_that_nothing_refers_to() {
    let sides = Sides::copied();
    let extra = ["SET {x}_messages_1 {} EX 3600", "ZADD {x}_messages 1 {x}_messages_1", "SET {x}_last_packet_id 1", "SET {x}_messages_9 {} EX 3600"];
    sides.redis(&extra);
    assert_eq!(sides.verify().code, Some(5));
    let before = sides.scene.redis.keyspace();
    let left = sides.repair().arg("--execute").run();
    assert_eq!(left.code, Some(5), "{left:#?}");
    assert_eq!(left.json()["left_alone"], serde_json::json!([{"client_id": "x", "reason": "needs_delete_extra"}]));
    assert_eq!(sides.scene.redis.keyspace(), before);

    let removed = sides.repair().args(["--execute", "--delete-extra"]).run();
    assert_eq!(removed.code, Some(0), "{removed:#?}");
    assert_eq!(removed.json()["sessions_removed"], 1);
    assert_eq!(sides.scene.keys(), 6 * 12);
    assert_eq!(sides.verify().code, Some(0));
}

#[test]
fn an_unknown_session_that_postgresql_knows_by_then_is_copied_and_not_removed() {
    let sides = Sides::copied();
    sides.redis(&["SET {b-01}_last_packet_id 1"]);
    assert_eq!(sides.verify().code, Some(5));
    sides.scene.add_sessions("b", 1);
    let outcome = sides.repair().args(["--execute", "--delete-extra"]).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(outcome.json()["sessions_removed"], 0);
    sides.assert_original("b-01");
}

#[test]
fn a_session_that_went_from_postgresql_after_the_report_is_never_removed() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3"]);
    assert_eq!(sides.verify().code, Some(5));
    sides.scene.sql("delete from device_publish_msg where client_id = 'a-01'; delete from device_session_ctx where client_id = 'a-01'");
    let before = sides.scene.redis.keyspace();
    let outcome = sides.repair().args(["--execute", "--delete-extra"]).run();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["left_alone"][0]["reason"], "gone_from_postgresql");
    assert_eq!(sides.scene.redis.keyspace(), before);
}

#[test]
fn a_key_of_another_type_is_left_as_it_is() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages", "HSET {a-01}_messages f v", "HSET {x}_messages f v", "SET {x}_last_packet_id 1"]);
    assert_eq!(sides.verify().code, Some(5));
    let before = sides.scene.redis.keyspace();
    let outcome = sides.repair().args(["--execute", "--delete-extra"]).run();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["left_alone"][0], serde_json::json!({"client_id": "a-01", "reason": "other_type"}));
    assert_eq!(sides.scene.redis.keyspace(), before);
}

#[test]
fn a_session_that_changed_after_the_report_gets_its_state_of_now() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3"]);
    assert_eq!(sides.verify().code, Some(5));
    sides.scene.sql("delete from device_publish_msg where client_id = 'a-01' and serial_number < 9");
    let outcome = sides.repair().arg("--execute").run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(outcome.json()["messages_migrated"], 1);
    assert_eq!(sides.scene.redis.keyspace().members("{a-01}_messages"), [("{a-01}_messages_10".to_owned(), 10.0)]);
    assert_eq!(sides.scene.keys(), 5 * 12 + 3);
}
