//! What is planted in the rows.

use super::{look, look_by, of, ready};
use crate::runs::scene::{FIGURES, LIMIT, Scene};

const NOW: &str = "(extract(epoch from now()) * 1000)::bigint";

#[test]
fn the_forecast_of_tables_that_are_read_to_the_end_is_what_a_copy_then_counts() {
    let scene = Scene::stocked();
    let page = look_by(&scene, of(&scene).args(["--message-limit", LIMIT]));
    assert_eq!(page.document["forecast"]["exact"], true);
    for (name, count) in FIGURES.into_iter().filter(|(name, _)| !matches!(*name, "rows_read" | "orphan_messages")) {
        assert_eq!(page.forecast(name), count, "{name}");
    }
    page.assert("rows", "ok", "5,422 rows of 293 sessions, of which 4,931 would be migrated; every row was looked at");
    page.assert("expired", "ok", "by their own interval: 240, by the default TTL: 240;");
    page.assert("superseded", "warning", "rows with a packet id that a newer row of their session has: 1;");
    page.assert("trimmed", "warning", "rows beyond the newest 2,990 of their session: 10;");
}

#[test]
fn the_forecast_of_a_large_table_is_near_what_there_is_and_says_that_it_is_one() {
    let scene = Scene::empty();
    // 800 sessions of 100 rows: of ten rows one has expired, one cannot be carried, one is beyond nothing.
    scene.sql(&format!(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
         select 'device-' || c, s, 't', case when s % 10 = 3 then 1 else {NOW} end, s + 1, case when s % 10 = 4 then 'PUBACK' else 'PUBLISH' end, 1, 'x'
         from generate_series(1, 800) c, generate_series(0, 99) s;
         insert into device_session_ctx select client_id, 1, 99, 100 from device_publish_msg group by 1;
         insert into device_session_ctx select 'empty-' || c, 1, 0, 1 from generate_series(1, 200) c; analyze"
    ));
    let page = look(&scene);
    assert_eq!(page.document["forecast"]["exact"], false);
    let looked_at = page.forecast("rows_looked_at");
    assert!((10_000..=20_000).contains(&looked_at), "{looked_at}");
    for (name, count) in [("rows", 80_000), ("sessions", 1000), ("messages_migrated", 64_000), ("expired_by_ttl", 8000), ("quarantined", 8000)] {
        let forecast = page.forecast(name);
        assert!((count * 85 / 100..=count * 115 / 100).contains(&forecast), "{name}: {forecast} for {count}");
    }
    page.assert("rows", "ok", "a forecast: ");
    page.assert("trimmed", "ok", "no session has more than 10,000 rows");
    page.assert("quarantined", "warning", "among those looked at: unknown_packet_type ");
}

#[test]
fn rows_that_cannot_be_carried_are_counted_by_reason_and_listed_by_the_command() {
    let scene = ready();
    scene.sql(
        "update device_publish_msg set packet_id = null where client_id = 'a-01' and serial_number < 2;
         update device_publish_msg set qos = 7 where client_id = 'a-02' and serial_number = 0;
         update device_session_ctx set last_packet_id = 70000 where client_id = 'a-01'",
    );
    let page = look(&scene);
    let mend =
        page.assert("quarantined", "warning", "rows that cannot be carried: 3; among those looked at: packet_id_out_of_range 2, qos_out_of_range 1");
    page.assert("invalid_contexts", "warning", "sessions whose context cannot be carried: 1");
    assert_eq!((page.forecast("quarantined"), page.blockers().len()), (3, 0));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("list");
    let (_, command) = mend.split_once("tbmq-migrate migrate ").unwrap();
    let words = command.split(' ').map(|word| if word == "FILE" { file.display().to_string() } else { word.to_owned() });
    assert_eq!(scene.migrate().args(words).run().code, Some(10));
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 4);
}

#[test]
fn rows_beyond_the_limit_are_told_before_they_are_trimmed() {
    let scene = ready();
    let page = look_by(&scene, of(&scene).args(["--message-limit", "7"]));
    let mend = page.assert("trimmed", "warning", "rows beyond the newest 7 of their session: 6; they would be trimmed");
    assert!(mend.contains("--message-limit"), "{mend}");
    assert_eq!(page.forecast("trimmed"), 6);
    look_by(&scene, of(&scene).args(["--message-limit", "10"])).assert("trimmed", "ok", "no session has more than 10 rows");
}

#[test]
fn a_session_near_the_end_of_its_packet_ids_is_named() {
    let scene = ready();
    scene.sql("update device_session_ctx set last_packet_id = 64535 where client_id = 'a-01'");
    look(&scene).assert("packet_id_wrap", "ok", "");
    scene.sql("update device_session_ctx set last_packet_id = 64536 where client_id = 'a-01'");
    let mend = look(&scene).assert(
        "packet_id_wrap",
        "warning",
        "sessions that have given out packet ids beyond 64535: 1 (\"a-01\"); they begin anew at 1 soon",
    );
    assert!(mend.contains("2.1.0 or later"), "{mend}");
}

#[test]
fn a_payload_over_the_limit_is_named_and_the_option_mends_it_up_to_what_the_broker_takes() {
    let scene = ready();
    scene.sql("update device_publish_msg set payload = repeat('x', 2000)::bytea where client_id = 'a-02' and serial_number = 3");
    let page = look_by(&scene, of(&scene).args(["--max-payload-bytes", "1999"]));
    let mend = page.assert("payload_size", "warning", "rows with a payload of more than 1,999 bytes: 1 (\"a-02\"); they are quarantined");
    assert_eq!(mend, "raise --max-payload-bytes, up to 15,000,000");
    page.assert("quarantined", "warning", "payload_too_large 1");
    look(&scene).assert("payload_size", "ok", "");
    scene.sql("update device_publish_msg set payload = repeat('x', 15000001)::bytea where client_id = 'a-02' and serial_number = 3");
    let mend = look(&scene).assert("payload_size", "warning", "rows with a payload of more than 15,000,000 bytes: 1");
    assert!(mend.starts_with("the broker's JSON parser takes no more"), "{mend}");
}

#[test]
fn empty_tables_are_told() {
    let scene = Scene::empty();
    let page = look(&scene);
    page.assert("rows", "warning", "both tables are empty");
    page.assert("copy_time", "ok", "there are no rows to copy");
    assert_eq!((page.forecast("rows"), page.document["ready"].as_bool()), (0, Some(true)));
}

#[test]
fn an_id_cannot_steer_the_terminal() {
    let scene = ready();
    scene.sql("insert into device_session_ctx values (E'}\\x1b[2J\\u202e', 1, 65000, 65000)");
    let outcome = of(&scene).run();
    assert!(outcome.stdout.contains("}\\\\u{1b}[2J\\\\u{202e}"), "{}", outcome.stdout);
}
