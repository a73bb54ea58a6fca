//! A process that dies at any durable step, and the same command again.

use super::scene::{LIMIT, Scene, assert_died, assert_same, assert_stock_is_carried};
use crate::support::keyspace::Keyspace;
use crate::support::tool::Tool;

/// A run of the stock in small chunks, begun once and set back for each death.
struct Begun<'s, F: Fn() -> Tool> {
    scene: &'s Scene,
    call: F,
}

impl<'s, F: Fn() -> Tool> Begun<'s, F> {
    fn new(scene: &'s Scene, call: F) -> Self {
        assert_died(&call().env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run());
        scene.cut_into_small_chunks();
        scene.sql(
            "create table begun_run as table tbmq_migrate.run;
             create table begun_chunk as table tbmq_migrate.chunk",
        );
        Self { scene, call }
    }

    fn set_back(&self) {
        self.scene.sql(
            "truncate tbmq_migrate.run cascade;
             insert into tbmq_migrate.run overriding system value table begun_run;
             insert into tbmq_migrate.chunk overriding system value table begun_chunk",
        );
    }

    /// Dies at a place, runs the same again, and compares what is there with `expected`.
    fn dies_and_goes_on(&self, place: &str, expected: &Keyspace, chunks: &str) {
        assert_died(&(self.call)().env("TBMQ_MIGRATE_FAILPOINT", place).run());
        self.scene.let_leases_run_out();
        let outcome = (self.call)().run();
        assert_stock_is_carried(&outcome, place);
        assert_same(&self.scene.contents(), expected, place);
        let left = self.scene.sql("select count(*) filter (where state = 'done'), count(*) from tbmq_migrate.chunk");
        assert_eq!(left, format!("{chunks}|{chunks}"), "{place}");
    }
}

#[test]
fn a_run_that_dies_at_any_step_goes_on_to_the_same_end() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    let begun = Begun::new(&scene, || scene.migrate_stock());
    for place in [
        "run_begun",
        "chunk_claimed",
        "chunk_claimed:2",
        "batch_written",
        "batch_written:25",
        "batch_written:50",
        "chunk_written:7",
        "chunk_noted",
        "chunk_recorded:5",
        "finish_taken",
        "sessions_removed",
        "run_finished",
    ] {
        scene.redis.cli(&["FLUSHALL"]);
        begun.set_back();
        begun.dies_and_goes_on(place, &expected, "12");
    }
}

#[test]
fn a_replacing_run_that_dies_at_any_step_goes_on_to_the_same_end() {
    let scene = Scene::stocked();
    let mut expected = scene.undisturbed(&["--message-limit", LIMIT]);
    let foreign = "clientMqttVersion::device-001";
    let before = [
        // Acknowledged meanwhile, gone from PostgreSQL, without any row, and somebody else's.
        "SET {device-001}_messages_9999 old EX 3600",
        "ZADD {device-001}_messages 9999 {device-001}_messages_9999 50 {device-001}_messages_102",
        "SET {device-001}_last_packet_id 9999",
        "SET {gone}_messages_1 old EX 3600",
        "ZADD {gone}_messages 1 {gone}_messages_1",
        "SET {gone}_last_packet_id 1",
        "ZADD {badge-07}_messages 1 {badge-07}_messages_1",
        &format!("SET {foreign} 5"),
    ];
    let begun = Begun::new(&scene, || scene.migrate_stock().args(["--on-existing", "replace", "--allow-removals", "1"]));
    scene.redis.cli(&["SET", foreign, "5"]);
    expected.0.extend(scene.contents().0);
    for place in [
        "chunk_claimed:2",
        "batch_written",
        "batch_written:40",
        "chunk_written",
        "chunk_noted:12",
        "chunk_recorded",
        "finish_taken",
        "sessions_removed",
        "run_finished",
    ] {
        scene.redis.cli(&["FLUSHALL"]);
        before.iter().for_each(|line| drop(scene.redis.cli(&line.split(' ').collect::<Vec<_>>())));
        begun.set_back();
        // A run that was over is not told again: to replace once more is another run, of one chunk here.
        begun.dies_and_goes_on(place, &expected, if place == "run_finished" { "13" } else { "12" });
    }
}

/// Seeded numbers for moments; the seed is printed.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = std::env::var("TBMQ_MIGRATE_TEST_SEED").map_or(now.as_nanos() as u64 | 1, |text| text.parse().unwrap());
        eprintln!("TBMQ_MIGRATE_TEST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn a_run_that_is_killed_a_dozen_times_ends_like_an_undisturbed_one() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    let call = || scene.migrate_stock().args(["--on-existing", "replace"]);
    scene.begin_in_small_chunks(call());
    let mut moments = Moments::new();
    for _ in 0..12 {
        let running = call().args(["--max-rate", "4000"]).spawn();
        std::thread::sleep(std::time::Duration::from_millis(moments.below(300)));
        running.signal("KILL");
        assert_died(&running.wait());
        scene.let_leases_run_out();
    }
    let outcome = call().run();
    assert_stock_is_carried(&outcome, "after a dozen kills");
    assert_same(&scene.contents(), &expected, "after a dozen kills");
}

#[test]
fn what_changes_between_a_death_and_the_next_call_is_carried_by_the_chunks_that_were_not_done() {
    let scene = Scene::stocked();
    let before = scene.undisturbed(&["--message-limit", LIMIT]);
    let call = || scene.migrate_stock_by("1");
    scene.begin_in_small_chunks(call());
    assert_died(&call().env("TBMQ_MIGRATE_FAILPOINT", "chunk_written:4").run());
    scene.let_leases_run_out();
    // Every device loses its newest message, and gains one with properties.
    scene.sql(
        "delete from device_publish_msg where client_id like 'device-%' and serial_number = 109;
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
         select client_id, 110, 'later', last_updated_time, 111, 'PUBLISH', 1, 'later' from device_session_ctx where client_id like 'device-%';
         update device_session_ctx set last_serial_number = 110, last_packet_id = 111 where client_id like 'device-%'",
    );
    let after = scene.undisturbed(&["--message-limit", LIMIT]);
    let done = scene.sql(
        "select client_id from device_session_ctx s where exists (select from tbmq_migrate.chunk c where c.state = 'done'
             and (c.lower_id is null or s.client_id >= c.lower_id) and (c.upper_id is null or s.client_id < c.upper_id))",
    );
    let done: std::collections::HashSet<&str> = done.lines().collect();
    assert_eq!(done.len(), 3 * 25 - 1, "three chunks, the first of which ends below its 25th session");
    let outcome = call().run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let of_done = |key: &[u8]| {
        let key = String::from_utf8_lossy(key).into_owned();
        done.iter().any(|client| key.starts_with(&format!("{{{client}}}_")))
    };
    let mut expected = Keyspace::default();
    expected.0.extend(before.0.into_iter().filter(|(key, _)| of_done(key)));
    expected.0.extend(after.0.into_iter().filter(|(key, _)| !of_done(key)));
    assert_same(&scene.contents(), &expected, "after the change");
    let report = outcome.json();
    assert_eq!(report["source_changed"], true, "{report:#}");
    assert!(report["next_steps"].to_string().contains("run again with --on-existing replace"), "{report:#}");
}

#[test]
fn nothing_of_a_run_that_died_at_its_start_is_in_the_way_of_another_one() {
    let scene = Scene::empty();
    scene.add_sessions("a", 3);
    assert_died(&scene.migrate().env("TBMQ_MIGRATE_FAILPOINT", "probe_written").run());
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
    let outcome = scene.migrate().run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(scene.keys(), 3 * 12);
}
