//! SIGINT and SIGTERM: what is in flight ends, it is recorded, and the same command goes on.

use super::scene::{LIMIT, Scene, assert_ends, assert_same, assert_stock_is_carried, wait_for_keys};
use crate::support::tool::{RunningTool, Tool};

const HINT: &str = "hint: run the same command again: it goes on where it was";

/// Runs the stock slowly until something is in Redis.
fn running(scene: &Scene, call: Tool) -> RunningTool {
    let mut running = call.args(["--max-rate", "1500"]).spawn();
    wait_for_keys(scene, &mut running, 300);
    running
}

/// Stops the Redis from answering, or lets it go on.
fn halt(scene: &Scene, signal: &str) {
    let pid = scene.redis.pid().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
}

#[test]
fn either_signal_ends_a_run_with_130_and_the_same_command_goes_on() {
    for signal in ["INT", "TERM"] {
        let scene = Scene::stocked();
        let expected = scene.undisturbed(&["--message-limit", LIMIT]);
        let first = running(&scene, scene.migrate_stock());
        first.signal(signal);
        let outcome = first.wait();
        assert_ends(&outcome, 130, &["stopping at the next session border", "error: stopped before the end", HINT]);
        assert_eq!(outcome.stdout, "");
        assert!(scene.keys() < expected.0.len() as u64, "it was over before the signal");
        // What was read is recorded: one part done, the rest open, and nobody at work.
        assert_eq!(scene.sql("select bool_or(state = 'done') and bool_or(state = 'open') and count(*) > 1 from tbmq_migrate.chunk"), "t");
        assert_eq!(scene.sql("select sum(rows_read) > 0 from tbmq_migrate.chunk where state = 'done'"), "t");
        assert_eq!(scene.sql("select count(*) from tbmq_migrate.worker where expires_at > clock_timestamp()"), "0");

        let second = scene.migrate_stock().run();
        assert_stock_is_carried(&second, signal);
        assert!(second.json()["rows_of_other_calls"].as_u64().unwrap() > 0);
        assert_same(&scene.contents(), &expected, signal);
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let scene = Scene::stocked();
    let mut first = running(&scene, scene.migrate_stock());
    halt(&scene, "STOP");
    first.signal("INT");
    first.wait_for_stderr("a second signal stops at once");
    assert!(first.is_running(), "a call to a Redis that does not answer is waited for");
    first.signal("INT");
    let outcome = first.wait();
    halt(&scene, "CONT");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(130), ""));
    assert!(!outcome.stderr.contains("error:"), "{outcome:#?}");
}

#[test]
fn a_signal_ends_a_run_whose_rate_would_make_it_wait_for_minutes() {
    let scene = Scene::stocked();
    let mut running = scene.migrate_stock().args(["--max-rate", "1"]).spawn();
    wait_for_keys(&scene, &mut running, 1);
    // Every ten seconds it says how far it is, where there is no terminal for a bar.
    running.wait_for_stderr("copying rows=");
    running.signal("TERM");
    let started = std::time::Instant::now();
    let outcome = running.wait();
    // At this rate the next call would be due a hundred seconds after the one before.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert_ends(&outcome, 130, &[HINT, "estimated_rows=5422"]);
}

#[test]
fn a_signal_ends_the_wait_for_a_redis_that_is_gone() {
    let mut scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    let first = running(&scene, scene.migrate_stock());
    scene.redis.kill9();
    first.wait_for_stderr("Redis cannot be reached; trying again");
    first.signal("INT");
    assert_ends(&first.wait(), 130, &["error: stopped before the end", HINT]);
    scene.redis.start_again();
    assert_eq!(scene.keys(), 0, "it keeps nothing over a restart");
    let second = scene.migrate_stock().run();
    assert_stock_is_carried(&second, "after the restart");
    assert_same(&scene.contents(), &expected, "after the restart");
}

#[test]
fn a_signal_ends_the_wait_for_a_redis_that_does_not_answer() {
    let scene = Scene::stocked();
    let first = running(&scene, scene.migrate_stock());
    halt(&scene, "STOP");
    first.signal("INT");
    let started = std::time::Instant::now();
    let outcome = first.wait();
    halt(&scene, "CONT");
    assert_ends(&outcome, 130, &["error: stopped before the end", HINT]);
    // A call counts as lost after 20 s only.
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
    assert_stock_is_carried(&scene.migrate_stock().run(), "after the halt");
}

#[test]
fn a_signal_ends_the_wait_for_a_postgresql_that_is_gone() {
    let mut server = crate::support::postgres::Postgres::start(&[]);
    let scene = Scene { database: server.database(), ..Scene::empty() };
    scene.database.create_tables();
    scene.add_sessions("a", 60);
    let mut first = scene.migrate().args(["--max-rate", "300"]).spawn();
    wait_for_keys(&scene, &mut first, 100);
    server.stop_fast();
    first.signal("INT");
    assert_ends(&first.wait(), 130, &["error: stopped before the end", HINT]);
    server.start_again();
    scene.let_leases_run_out();
    let second = scene.migrate().args(["--json"]).run();
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert_eq!(scene.keys(), 60 * 12);
}

#[test]
fn a_signal_before_a_run_begins_is_an_interruption_and_no_refusal() {
    let scene = Scene::empty();
    scene.add_sessions("a", 3);
    scene.redis.cli(&["SET", "filler", &"x".repeat(1000)]);
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let running = scene.migrate().spawn();
    running.wait_for_stderr("out of memory");
    running.signal("INT");
    assert_ends(&running.wait(), 130, &["error: stopped before the end", HINT]);
}
