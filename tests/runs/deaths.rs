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
    fn dies_and_goes_on(&self, place: &str, expected: &Keyspace) {
        assert_died(&(self.call)().env("TBMQ_MIGRATE_FAILPOINT", place).run());
        self.scene.let_leases_run_out();
        let outcome = (self.call)().run();
        assert_stock_is_carried(&outcome, place);
        assert_same(&self.scene.contents(), expected, place);
        let left = self.scene.sql("select count(*) filter (where state = 'done'), count(*) from tbmq_migrate.chunk");
        assert_eq!(left, "12|12", "{place}");
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
        begun.dies_and_goes_on(place, &expected);
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
        begun.dies_and_goes_on(place, &expected);
    }
}
