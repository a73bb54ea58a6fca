//! Somebody who writes to the tables while they are copied: seen, and said.

use super::scene::{Scene, assert_ends, wait_for_keys};

/// A slow run of 60 sessions; `meanwhile` is called when a part of it is in Redis.
fn disturbed(more: &[&str], meanwhile: impl FnOnce(&Scene)) -> crate::support::tool::Outcome {
    let scene = Scene::empty();
    scene.add_sessions("a", 60);
    let mut running = scene.migrate().args(["--max-rate", "500"]).args(more).spawn();
    wait_for_keys(&scene, &mut running, 12);
    meanwhile(&scene);
    assert!(running.is_running(), "over before anything changed");
    running.wait()
}

#[test]
fn rows_that_change_during_a_run_are_told_in_the_report_with_what_to_do() {
    let write = |scene: &Scene| {
        scene.sql("delete from device_publish_msg where client_id = 'a-01' and serial_number = 3");
    };
    let outcome = disturbed(&["--json"], write);
    assert_ends(&outcome, 0, &[]);
    let report = outcome.json();
    assert_eq!(report["source_changed"], true, "{report:#}");
    let steps = report["next_steps"].to_string();
    assert!(steps.contains("run again with --on-existing replace") && steps.contains("dual-write"), "{steps}");
    assert!(!steps.contains("keep the 1.x brokers stopped"), "{steps}");

    let outcome = disturbed(&[], write);
    let line = outcome.stdout.lines().find(|line| line.starts_with("rows changed meanwhile")).unwrap_or_else(|| panic!("{outcome:#?}"));
    assert!(line.ends_with(" yes"), "{line}");
    assert!(outcome.stdout.contains("\nnext: rows changed while they were read"), "{outcome:#?}");
}

#[test]
fn a_write_that_is_not_committed_yet_is_seen_by_its_lock() {
    let scene = Scene::empty();
    scene.add_sessions("a", 30);
    let mut running = scene.migrate().args(["--max-rate", "300", "--json"]).spawn();
    wait_for_keys(&scene, &mut running, 12);
    let url = scene.database.url.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let open = runtime.block_on(async {
        let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
        sqlx::raw_sql("begin; delete from device_publish_msg where client_id = 'a-01' and serial_number = 3").execute(&mut connection).await.unwrap();
        connection
    });
    assert!(running.is_running(), "over before anything changed");
    let outcome = running.wait();
    drop(open);
    assert_ends(&outcome, 0, &[]);
    assert_eq!(outcome.json()["source_changed"], true, "{outcome:#?}");
}

#[test]
fn the_last_write_of_a_session_that_stays_open_is_seen() {
    let scene = Scene::empty();
    scene.add_sessions("a", 30);
    let url = scene.database.url.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut writer = runtime.block_on(async { <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap() });
    let mut send = |sql: &'static str| runtime.block_on(async { sqlx::raw_sql(sql).execute(&mut writer).await.unwrap() });
    let mut running = scene.migrate().args(["--max-rate", "600", "--json"]).spawn();
    wait_for_keys(&scene, &mut running, 12);
    // The server adds up what a session did at most once a second, and of an idle one ten seconds later: the first
    // statement uses that second up.
    send("select count(*) from device_publish_msg");
    send("delete from device_publish_msg where client_id = 'a-01' and serial_number = 3");
    assert!(running.is_running(), "over before anything changed");
    let outcome = running.wait();
    assert_ends(&outcome, 0, &[]);
    assert_eq!(outcome.json()["source_changed"], true, "{outcome:#?}");
}

#[test]
fn a_quiet_run_says_that_nothing_changed_and_to_keep_it_so() {
    let outcome = disturbed(&["--json"], |_| {});
    assert_ends(&outcome, 0, &[]);
    let report = outcome.json();
    assert_eq!(report["source_changed"], false, "{report:#}");
    let steps = report["next_steps"].to_string();
    assert!(steps.contains("keep the 1.x brokers stopped") && steps.contains("before TBMQ's own upgrade runs"), "{steps}");
    let outcome = disturbed(&[], |_| {});
    assert!(!outcome.stdout.contains("rows changed meanwhile"), "{outcome:#?}");
}

#[test]
fn where_the_server_does_not_count_the_answer_is_unknown() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    scene.sql(&format!("alter database {} set track_counts = off", scene.database.name));
    let outcome = scene.migrate().arg("--json").run();
    assert_ends(&outcome, 0, &[]);
    let report = outcome.json();
    assert_eq!(report["source_changed"], serde_json::Value::Null, "{report:#}");
    assert!(report["next_steps"].to_string().contains("track_counts"), "{report:#}");
}
