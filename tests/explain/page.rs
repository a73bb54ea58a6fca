//! What the page and the document say of each row.

use super::scene::{DEVICE, Row, SECRET, Scene, assert_fit_for_a_terminal, assert_says, insert, insert_context, line, redis_side};

#[test]
fn each_row_says_what_it_became_and_why() {
    let scene = Scene::of_every_outcome();
    let outcome = scene.explain_device(&[]);
    assert_eq!(outcome.code, Some(10), "a row is quarantined: {outcome:#?}");
    for (serial, said) in [
        (0, "trimmed       beyond the newest 4 rows"),
        (1, "superseded    by serial 6"),
        (2, "expired (ttl) "),
        (3, "expired (own) "),
        (4, "quarantined   packet id NULL or outside 1..65535"),
        (5, "PUBREL 1"),
        (6, "migrated      "),
    ] {
        let line = line(&outcome, serial);
        assert!(line.contains(said), "{said}: {line}");
        assert!(!line.contains('≠'), "{line}");
    }
    let order: Vec<_> = outcome.stdout.lines().filter_map(|line| line.split_whitespace().next()?.parse::<i64>().ok()).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    // Nine days old, of a life of seven; 60 s of two hours; 24 hours but one.
    for (serial, left) in [(2, " 2d ago "), (3, " 1h ago "), (6, " in 22h 59m ")] {
        assert!(line(&outcome, serial).contains(left), "{left}: {}", line(&outcome, serial));
    }
    assert_eq!(redis_side(&outcome, 6), ["7", "same"]);
    assert_eq!(redis_side(&outcome, 3), ["-", "gone"]);
    for said in [
        "last packet id  7 by the rows, 7 in Redis\n",
        "context         last serial 6, last packet id 7, updated 2025-12-01 00:00:00 UTC",
        "outcomes        2 migrated, 1 expired by interval, 1 expired by ttl, 1 superseded, 1 trimmed, 1 quarantined\n",
        "result          no difference",
    ] {
        assert_says(&outcome, said);
    }
    assert_fit_for_a_terminal(&outcome);
}

#[test]
fn a_planted_difference_is_marked_in_its_line_and_spelled_out() {
    let scene = Scene::of_every_outcome();
    scene.redis.cli(&["ZADD", "{dev-1}_messages", "9", "{dev-1}_messages_6"]);
    scene.redis.cli(&["DEL", "{dev-1}_messages_7"]);
    scene.redis.cli(&["SET", "{dev-1}_last_packet_id", "5"]);
    scene.redis.cli(&["ZADD", "{dev-1}_messages", "30", "{dev-1}_messages_30"]);
    scene.redis.cli(&["SET", "{dev-1}_messages_30", "{}"]);
    scene.redis.cli(&["SET", "{dev-1}_messages_31", "{}"]);
    scene.redis.cli(&["HSET", "{dev-1}_messages_32", "a", "b"]);
    scene.redis.cli(&["ZADD", "{dev-1}_messages", "33", "elsewhere"]);
    let outcome = scene.explain_device(&[]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(redis_side(&outcome, 5), ["9", "same", "≠"]);
    assert_eq!(redis_side(&outcome, 6), ["7", "gone", "≠"]);
    assert_eq!(redis_side(&outcome, 2), ["-", "gone"]);
    for said in [
        "≠ missing_message (serial 6, packet id 7): it is gone, though its reference stands",
        "≠ wrong_last_packet_id (the session): it is \"5\", it should be 7",
        "≠ extra_message (packet id 30): no row wants it; its score is 30",
        "≠ extra_message (packet id 31): no row wants it, and nothing refers to it",
        "≠ foreign_type (packet id 32): the key of the message holds a hash",
        "a reference to \"elsewhere\", no message of the session",
        "last packet id  7 by the rows, 5 in Redis\n",
        "next: write the differences down: tbmq-migrate verify --client dev-1 --report FILE\n",
    ] {
        assert_says(&outcome, said);
    }
    assert_fit_for_a_terminal(&outcome);
}

#[test]
fn a_deadline_that_is_off_is_shown_by_how_much_and_counts_beyond_the_tolerance() {
    let scene = Scene::of_every_outcome();
    let off_by = |ms: i64| (scene.now_ms - 3_600_000 + 86_400_000 + ms).to_string();
    scene.redis.cli(&["PEXPIREAT", "{dev-1}_messages_7", &off_by(65_000)]);
    let outcome = scene.explain_device(&[]);
    assert_eq!(outcome.code, Some(5));
    assert_eq!(redis_side(&outcome, 6), ["7", "+1m", "≠"]);
    assert_eq!(scene.explain_device(&["--deadline-tolerance", "70s"]).code, Some(10));
    scene.redis.cli(&["PERSIST", "{dev-1}_messages_7"]);
    assert_eq!(redis_side(&scene.explain_device(&[]), 6), ["7", "never", "≠"]);
}

#[test]
fn the_document_has_both_sides_the_findings_and_the_counts() {
    let scene = Scene::of_every_outcome();
    scene.redis.cli(&["DEL", "{dev-1}_messages_7"]);
    let outcome = scene.explain_device(&["--json"]);
    assert_eq!(outcome.code, Some(5));
    let document = outcome.json();
    assert_eq!((document["client_id"].as_str(), document["result"].as_str()), (Some(DEVICE), Some("different")));
    assert_eq!(document["context"], serde_json::json!({ "last_serial_number": 6, "last_packet_id": 7, "last_updated_time": 1_764_547_200_000_i64 }));
    assert_eq!((&document["last_packet_id"]["wanted"], &document["last_packet_id"]["found"]), (&7.into(), &7.into()));
    let outcomes: Vec<_> = document["rows"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["trimmed", "superseded", "expired_by_ttl", "expired_by_interval", "quarantined", "migrated", "migrated"]);
    let row = &document["rows"][6];
    let deadline = scene.now_ms - 3_600_000 + 86_400_000;
    assert_eq!((row["serial_number"].as_i64(), row["packet_id"].as_i64(), row["deadline_ms"].as_i64()), (Some(6), Some(7), Some(deadline)));
    let date = humantime_date(row["deadline"].as_str().unwrap());
    assert_eq!(date, deadline);
    assert_eq!((row["topic"].as_str(), row["differs"].as_bool()), (Some("home/6"), Some(true)));
    assert_eq!((&document["rows"][1]["superseded_by"], &document["rows"][4]["quarantine_reason"]), (&6.into(), &"packet_id_out_of_range".into()));
    let keys = document["redis"].as_array().unwrap();
    let key = |packet_id: u64| keys.iter().find(|key| key["packet_id"].as_u64() == Some(packet_id)).unwrap();
    assert_eq!((key(7)["holds"].as_str(), key(7)["score"].as_f64(), key(7)["serial_number"].as_i64()), (Some("missing"), Some(7.0), Some(6)));
    assert_eq!((key(6)["holds"].as_str(), key(6)["packet_type"].as_str()), (Some("message"), Some("PUBREL")));
    assert_eq!(key(6)["payload_digest"], document["rows"][5]["payload_digest"]);
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0]["kind"].as_str(), findings[0]["serial_number"].as_i64()), (Some("missing_message"), Some(6)));
    let counts =
        serde_json::json!({ "messages_migrated": 2, "expired_by_interval": 1, "expired_by_ttl": 1, "superseded": 1, "trimmed": 1, "quarantined": 1 });
    assert_eq!(document["outcomes"], counts);
    assert!(!document["next_steps"].as_array().unwrap().is_empty());
}

/// Milliseconds since the epoch of a date, by PostgreSQL.
fn humantime_date(text: &str) -> i64 {
    let admin = crate::support::postgres::Postgres::shared().admin();
    admin.psql(&format!("select (extract(epoch from '{text}'::timestamptz) * 1000)::int8")).parse().unwrap()
}

#[test]
fn payloads_are_size_and_digest_unless_they_are_asked_for() {
    let scene = Scene::of_every_outcome();
    scene.redis.cli(&["SET", "{dev-1}_messages_7", &scene.redis.cli(&["GET", "{dev-1}_messages_7"]).replace("czNjcmV0", "eDNjcmV0")]);
    for json in [&[][..], &["--json"]] {
        let plain = scene.explain_device(json);
        assert_eq!(plain.code, Some(5));
        for hidden in [SECRET, "czNjcmV0", "x3cret"] {
            assert!(!plain.stdout.contains(hidden) && !plain.stderr.contains(hidden), "{plain:#?}");
        }
        let shown = scene.explain_device(&[json, &["--show-payload"]].concat());
        for serial in 0..7 {
            assert!(shown.stdout.contains(&format!("{SECRET}-{serial}")), "{}", shown.stdout);
        }
        assert!(shown.stdout.contains("x3cret-payload-6"), "{}", shown.stdout);
        if json.is_empty() {
            assert_fit_for_a_terminal(&shown);
        }
    }
    // 16 bytes: `printf s3cret-payload-6 | sha256sum`.
    let row = &scene.explain_device(&["--json"]).json()["rows"][6];
    assert_eq!(row["payload_bytes"], 16);
    let digest = row["payload_digest"].as_str().unwrap().to_owned();
    let sql = format!("select left(encode(sha256('{SECRET}-6'::bytea), 'hex'), 12)");
    assert_eq!(digest, format!("16 bytes (sha256 {}…)", scene.database.psql(&sql)));
}

#[test]
fn a_payload_that_is_no_text_is_escaped_on_the_page_and_base64_in_the_document() {
    let scene = Scene::of_every_outcome();
    scene.database.psql(r"update device_publish_msg set payload = '\x1b5b324aff00' where serial_number = 6");
    let page = scene.explain_device(&["--show-payload"]);
    assert!(page.stdout.contains("payload \"\\u{1b}[2J"), "{}", page.stdout);
    assert_fit_for_a_terminal(&page);
    assert_eq!(scene.explain_device(&["--show-payload", "--json"]).json()["rows"][6]["payload_base64"], "G1sySv8A");
}

#[test]
fn of_a_long_session_the_newest_rows_are_listed_and_all_are_counted_and_compared() {
    let scene = Scene::empty();
    let time = scene.now_ms - 60_000;
    scene.database.psql(&format!(
        "insert into device_publish_msg select '{DEVICE}', n, 't', {time}, n % 65535 + 1, 'PUBLISH', 1, 'x', null, false from generate_series(64000, 66499) n"
    ));
    insert_context(&scene.database, DEVICE, 66_499, 965);
    scene.migrate(&["--message-limit", "1500"]);
    let limit = ["--message-limit", "1500", DEVICE];
    let outcome = scene.explain(&limit);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(outcome.stdout.contains("\n… 2,300 older rows are not shown; --rows N shows more\n"), "{}", outcome.stdout);
    let serials: Vec<i64> = outcome.stdout.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert_eq!(serials, (66_300..66_500).collect::<Vec<_>>());
    assert!(outcome.stdout.contains("outcomes        1,500 migrated, 1,000 trimmed\n"), "{}", outcome.stdout);
    // The oldest that is to be there: serial 65000, packet id 65001.
    scene.redis.cli(&["DEL", "{dev-1}_messages_65001"]);
    let outcome = scene.explain(&limit);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert!(outcome.stdout.contains("missing_message (serial 65000, packet id 65001)"), "{}", outcome.stdout);
    let all = scene.explain(&[&limit[..], &["--rows", "2500", "--json"]].concat()).json();
    assert_eq!((all["rows"].as_array().unwrap().len(), &all["rows_not_shown"]), (2500, &0.into()));
    assert_eq!((&all["rows"][999]["outcome"], &all["rows"][1000]["differs"]), (&"trimmed".into(), &true.into()));
    let none = scene.explain(&[&limit[..], &["--rows", "0"]].concat());
    assert!(none.stdout.contains("… 2,500 older rows are not shown"), "{}", none.stdout);
}

#[test]
fn the_widest_of_all_values_still_fit() {
    let scene = Scene::empty();
    let rows = [
        Row { serial: 9_007_199_254_740_990, packet_id: "65535", packet_type: "PUBLISH", time: scene.now_ms, interval: "2147483647" },
        Row { serial: 9_007_199_254_740_989, packet_id: "-2147483648", packet_type: "PUBLISH", time: -1, interval: "-1" },
        Row {
            serial: -9_223_372_036_854_775_807, packet_id: "65534", packet_type: "\u{1b}[31mRED\u{202e}ключ", time: scene.now_ms, interval: "1"
        },
        Row { serial: 5, packet_id: "65533", packet_type: "PUBREL", time: scene.now_ms - 23 * 3_600_000, interval: "null" },
        Row { serial: 4, packet_id: "65532", packet_type: "PUBLISH", time: scene.now_ms - 400 * 86_400_000, interval: "null" },
        Row { serial: 3, packet_id: "65532", packet_type: "PUBLISH", time: scene.now_ms, interval: "null" },
        Row { serial: 2, packet_id: "65531", packet_type: "PUBLISH", time: 1, interval: "5" },
    ];
    insert(&scene.database, DEVICE, &rows);
    scene.database.psql("update device_publish_msg set qos = -2147483648 where serial_number < 0");
    scene.database.psql("update device_publish_msg set payload = decode(repeat('00', 14999999), 'hex') where serial_number = 5");
    scene.migrate(&[]);
    scene.redis.cli(&["PEXPIREAT", "{dev-1}_messages_65533", "99999999999999"]);
    scene.redis.cli(&["ZADD", "{dev-1}_messages", "-1.7976931348623157e308", "{dev-1}_messages_65533", "inf", "{dev-1}_messages_9"]);
    let outcome = scene.explain(&[DEVICE]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_fit_for_a_terminal(&outcome);
    assert!(outcome.stdout.contains("…54740990"), "the last digits of a long serial: {}", outcome.stdout);
}
