//! Several processes on one run, and what a lease keeps apart.

use super::scene::{LIMIT, Scene, assert_died, assert_ends, assert_same, assert_stock_is_carried, wait_for_keys};
use crate::support::poll::wait_until;
use crate::support::tool::RunningTool;

/// Chunks that `process` has in its hands.
fn claimed_by(scene: &Scene, process: &RunningTool) -> u32 {
    let pid = process.pid();
    let count = scene.sql(&format!(
        "select count(*) from tbmq_migrate.chunk c join tbmq_migrate.worker w on w.id = c.worker_id where c.state = 'claimed' and w.pid = {pid}"
    ));
    count.parse().unwrap()
}

/// Waits until a process has a chunk in its hands, and takes the moment away from it.
fn halt_with_a_chunk(scene: &Scene, process: &RunningTool) {
    wait_until("a claimed chunk", || {
        if claimed_by(scene, process) == 0 {
            return false;
        }
        process.signal("STOP");
        let held = claimed_by(scene, process) > 0;
        if !held {
            process.signal("CONT");
        }
        held
    });
}

/// As after the twenty seconds in which a process did not renew.
fn let_lease_run_out(scene: &Scene, process: &RunningTool) {
    let pid = process.pid();
    scene.sql(&format!("update tbmq_migrate.worker set expires_at = clock_timestamp() - interval '1 ms' where pid = {pid}"));
}

#[test]
fn three_processes_share_a_run_and_each_chunk_is_copied_once() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    scene.begin_in_small_chunks(scene.migrate_stock());
    let processes: Vec<RunningTool> = (0..3).map(|_| scene.migrate_stock().args(["--max-rate", "1500"]).spawn()).collect();
    for process in processes {
        assert_stock_is_carried(&process.wait(), "three processes");
    }
    assert_same(&scene.contents(), &expected, "three processes");
    assert_eq!(scene.sql("select min(attempts), max(attempts), count(*) from tbmq_migrate.chunk"), "1|1|12");
    let workers = scene.sql("select count(distinct worker_id) from tbmq_migrate.chunk");
    assert_eq!(workers, "3", "every process had a part in it");
}

#[test]
fn the_chunks_of_a_killed_process_are_taken_over_when_its_lease_is_over() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    scene.begin_in_small_chunks(scene.migrate_stock());
    let slow = || scene.migrate_stock().args(["--max-rate", "1000"]).spawn();
    let killed = slow();
    halt_with_a_chunk(&scene, &killed);
    let others = [slow(), slow()];
    killed.signal("KILL");
    let pid = killed.pid();
    assert_died(&killed.wait());
    // The others do the rest, and then wait for what the dead one holds.
    wait_until("the others to wait", || {
        let left = scene.sql(&format!(
            "select count(*), count(*) filter (where c.state = 'claimed' and w.pid = {pid})
             from tbmq_migrate.chunk c left join tbmq_migrate.worker w on w.id = c.worker_id where c.state <> 'done'"
        ));
        left.split_once('|').is_some_and(|(all, of_the_dead)| all == of_the_dead)
    });
    scene.sql(&format!("update tbmq_migrate.worker set expires_at = clock_timestamp() where pid = {pid}"));
    for process in others {
        assert_stock_is_carried(&process.wait(), "after the takeover");
    }
    assert_same(&scene.contents(), &expected, "after the takeover");
    assert_eq!(scene.sql("select max(attempts), count(*) filter (where attempts > 1) between 1 and 2 from tbmq_migrate.chunk"), "2|t");
}

#[test]
fn a_process_that_slept_past_its_lease_stops_with_9_and_harms_nothing() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    scene.begin_in_small_chunks(scene.migrate_stock());
    let sleeper = scene.migrate_stock().args(["--max-rate", "500"]).spawn();
    halt_with_a_chunk(&scene, &sleeper);
    let_lease_run_out(&scene, &sleeper);
    assert_stock_is_carried(&scene.migrate_stock().run(), "while the other one slept");
    assert_same(&scene.contents(), &expected, "while the other one slept");
    sleeper.signal("CONT");
    let outcome = sleeper.wait();
    assert_ends(&outcome, 9, &["error: the lease", "is lost", "hint:"]);
    assert_eq!(outcome.stdout, "");
    // Only PostgreSQL's clock was turned on, so its own may have let it note a chunk as done.
    let mut found = scene.contents();
    found.0.retain(|key, _| !key.starts_with(b"tbmq-migrate:"));
    assert_same(&found, &expected, "after the other one woke up");
}

#[test]
fn a_run_with_other_settings_is_refused_while_one_is_at_work_and_names_who_works() {
    let scene = Scene::stocked();
    let mut at_work = scene.migrate_stock().args(["--max-rate", "500"]).spawn();
    wait_for_keys(&scene, &mut at_work, 1);
    let host = std::fs::read_to_string("/etc/hostname").unwrap();
    let who = format!("{}:{}", host.trim(), at_work.pid());
    for other in [&["--default-ttl", "3d"][..], &["--restart"]] {
        let outcome = scene.migrate_stock().args(other).run();
        assert_ends(&outcome, 4, &["error: another run is in progress: run 1 ", &who, "hint: wait until it has ended"]);
        assert_eq!(outcome.stdout, "");
    }
    assert!(at_work.is_running());
    at_work.signal("KILL");
    assert_died(&at_work.wait());
    assert_eq!(scene.sql("select count(*), max(state) from tbmq_migrate.run"), "1|copying");
}

#[test]
fn an_interrupted_run_with_other_settings_is_refused_with_both_settings_and_forgotten_by_restart() {
    let scene = Scene::stocked();
    assert_died(&scene.migrate_stock().env("TBMQ_MIGRATE_FAILPOINT", "chunk_noted").run());
    scene.let_leases_run_out();
    let other = || scene.migrate().args(["--message-limit", "5", "--json"]);
    let outcome = other().run();
    assert_ends(&outcome, 4, &["error: run 1 was interrupted and had other settings: ", "limit 2990,", "limit 5,", "--restart"]);

    // --restart does not forget it for a run that is refused itself.
    let keys = scene.keys();
    assert_ends(&other().arg("--restart").run(), 4, &["error: sessions stand in Redis already", "--on-existing replace"]);
    assert_eq!(scene.sql("select state from tbmq_migrate.run"), "copying");
    assert_eq!(scene.keys(), keys);

    let expected = scene.undisturbed(&["--message-limit", "5"]);
    let outcome = other().args(["--restart", "--on-existing", "replace"]).run();
    assert_ends(&outcome, 0, &[]);
    // Of eight carriable rows of a device, expired ones counted, the newest five: without the one never to be delivered.
    assert_eq!(outcome.json()["rows_read"], 5422);
    assert_same(&scene.contents(), &expected, "after the restart");
    assert_eq!(scene.sql("select id, state from tbmq_migrate.run order by id"), "1|forgotten\n2|finished");
}

#[test]
fn the_same_command_after_a_finished_run_is_refused_and_told_so() {
    let scene = Scene::stocked();
    assert_stock_is_carried(&scene.migrate_stock().run(), "first");
    let before = scene.contents();
    let outcome = scene.migrate_stock().run();
    assert_ends(&outcome, 4, &["error: sessions stand in Redis already, such as that of ", "hint: run 1 with the same settings finished at "]);
    assert_eq!(outcome.stdout, "");
    assert_same(&scene.contents(), &before, "second");
}
