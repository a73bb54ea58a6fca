use super::scene::Sides;
use crate::runs::scene::{assert_died, assert_ends};
use crate::support::cluster::RedisCluster;
use crate::support::poll::wait_until;
use crate::support::tool::Tool;

#[test]
fn a_line_that_is_no_finding_is_named_and_a_missing_file_is_a_wrong_value() {
    let sides = Sides::copied();
    let finding = r#"{"client_id":"a-01","kind":"missing_message","packet_id":3,"serial_number":2,"detail":"x"}"#;
    std::fs::write(&sides.report, format!("{finding}\njunk\n")).unwrap();
    assert_ends(&sides.repair().arg("--execute").run(), 4, &["findings.jsonl:2 is no finding", "hint: "]);
    std::fs::remove_file(&sides.report).unwrap();
    assert_ends(&sides.repair().run(), 3, &["--report"]);
    std::fs::write(&sides.report, "").unwrap();
    let nothing = sides.tool("repair").arg("--report").arg(&sides.report).run();
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "nothing to repair\n"));
}

#[test]
fn an_address_that_nobody_answers_at_is_refused() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3"]);
    assert_eq!(sides.verify().code, Some(5));
    let url = format!("postgres://127.0.0.1:{}/x", crate::support::poll::free_port());
    let tool = Tool::new().args(["repair", "--execute", "--postgres-url", &url, "--redis-url", &sides.scene.redis.url(), "--report"]);
    assert_ends(&tool.arg(&sides.report).run(), 4, &[]);
}

#[test]
fn an_empty_source_removes_nothing() {
    let sides = Sides::copied();
    sides.scene.sql("truncate device_publish_msg, device_session_ctx");
    assert_eq!(sides.verify().code, Some(5));
    assert_ends(&sides.repair().args(["--execute", "--delete-extra"]).run(), 4, &["both tables are empty"]);
    assert_eq!(sides.scene.keys(), 6 * 12);
}

#[test]
fn an_interrupted_copy_has_to_be_finished_or_given_up_first() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3"]);
    assert_eq!(sides.verify().code, Some(5));
    assert_died(&sides.scene.migrate().args(["--on-existing", "replace"]).env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run());
    assert_ends(&sides.repair().arg("--execute").run(), 4, &["was interrupted and has not ended", "hint: finish it"]);
    assert_eq!(sides.repair().run().code, Some(0), "the plan writes nothing");
}

#[test]
fn a_repair_at_work_keeps_copies_and_other_repairs_out() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3"]);
    assert_eq!(sides.verify().code, Some(5));
    // Its lease holds for some seconds more.
    assert_died(&sides.repair().arg("--execute").env("TBMQ_MIGRATE_FAILPOINT", "repair_begun").run());
    assert_ends(&sides.repair().arg("--execute").run(), 4, &["is in progress (repair 1 named sessions", "hint: wait"]);
    assert_ends(&sides.scene.migrate().args(["--on-existing", "replace"]).run(), 4, &["another run is in progress"]);
    sides.scene.let_leases_run_out();
    assert_eq!(sides.repair().arg("--execute").run().code, Some(0));
}

#[test]
fn a_redis_without_room_is_told_and_a_later_repair_makes_it_whole() {
    let sides = Sides::copied();
    sides.scene.sql(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
        select 'long', s, 't', (extract(epoch from now()) * 1000)::bigint, s + 1, 'PUBLISH', 1, 'x' from generate_series(0, 2999) s",
    );
    assert_eq!(sides.verify().code, Some(5));
    let mut running = sides.repair().args(["--execute", "--max-rate", "500", "--retry-timeout", "1s"]).spawn();
    wait_until("some messages", || {
        assert!(running.is_running());
        sides.scene.keys() > 6 * 12 + 100
    });
    sides.redis(&["CONFIG SET maxmemory 1kb"]);
    assert_ends(&running.wait(), 9, &["Redis had no memory to spare", "hint: give Redis more memory"]);
    assert_eq!(sides.scene.keys(), 6 * 12, "the session in work is absent, not half");
    sides.redis(&["CONFIG SET maxmemory 0"]);
    assert_eq!(sides.repair().arg("--execute").run().code, Some(0));
    assert_eq!(sides.scene.keys(), 6 * 12 + 3002);
}

#[test]
fn a_cluster_is_repaired_like_a_single_server() {
    let sides = Sides::copied();
    let cluster = RedisCluster::start();
    let tool = |command: &str| Tool::new().args([command, "--json", "--postgres-url", &sides.scene.database.url, "--redis-url", &cluster.urls()[0]]);
    assert_eq!(tool("verify").arg("--report").arg(&sides.report).run().code, Some(5));
    let outcome = tool("repair").arg("--execute").arg("--report").arg(&sides.report).run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(outcome.json()["sessions_repaired"], 6);
    assert_eq!(cluster.keyspace().0.len(), 6 * 12);
    assert_eq!(tool("verify").run().code, Some(0));
}

#[test]
fn a_redis_that_evicts_gets_a_plan_and_nothing_written() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3", "CONFIG SET maxmemory-policy allkeys-lru"]);
    assert_eq!(sides.verify().code, Some(5));
    assert_eq!(sides.repair().run().code, Some(0));
    assert_ends(&sides.repair().arg("--execute").run(), 4, &["allkeys-lru"]);
    assert_eq!(sides.scene.keys(), 6 * 12 - 1);
}
