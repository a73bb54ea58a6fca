//! Comparisons that are interrupted and go on, and what makes them begin again.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::runs::scene::{FIGURES, LIMIT, Scene, assert_died, assert_ends};
use crate::support::poll::wait_until;
use crate::support::tool::{Outcome, RunningTool, Tool};

/// What the stock comes to when it is compared after [`Recorded::plant`].
const COMPARED: [(&str, u64); 6] = [
    ("sessions_compared", FIGURES[0].1 + 1),
    ("messages_compared", FIGURES[2].1),
    ("differing_sessions", 4),
    ("equal_sessions", FIGURES[0].1 + 1 - 4),
    ("not_checked", 0),
    ("unlisted_findings", 0),
];
const GOES_ON: &str = "hint: run the same command again: it goes on where it was";

/// The stock, copied by a recorded run, with differences.
struct Recorded {
    scene: Scene,
    scratch: tempfile::TempDir,
}

impl Recorded {
    fn new() -> Self {
        let scene = Scene::stocked();
        assert_ends(&scene.migrate_stock().run(), 0, &[]);
        let recorded = Self { scene, scratch: tempfile::tempdir().unwrap() };
        recorded.plant();
        recorded
    }

    /// A last packet id of three sessions far from each other, and a session too many.
    fn plant(&self) {
        for client in ["device-003", "device-120", "device-238"] {
            self.scene.redis.cli(&["SET", &format!("{{{client}}}_last_packet_id"), "65001"]);
        }
        self.scene.redis.cli(&["SET", "{nobody}_last_packet_id", "1"]);
    }

    fn report(&self) -> PathBuf {
        self.scratch.path().join("findings.jsonl")
    }

    fn verify(&self) -> Tool {
        self.verify_into(&self.report())
    }

    fn verify_into(&self, report: &Path) -> Tool {
        let sides = ["--postgres-url", &self.scene.database.url, "--redis-url", &self.scene.redis.url(), "--message-limit", LIMIT];
        Tool::new().args(["verify", "--json", "--jobs", "2"]).args(sides).arg("--report").arg(report)
    }

    /// Begins a comparison that dies at once, and cuts it into small chunks.
    fn begin_in_small_chunks(&self) {
        assert_died(&self.verify().env("TBMQ_MIGRATE_FAILPOINT", "comparison_claimed").run());
        self.let_leases_run_out();
        self.scene.sql(
            "create temporary table scan as select run_id, part from tbmq_migrate.chunk
             where part = 'target_only' and run_id = (select max(id) from tbmq_migrate.run);
             delete from tbmq_migrate.chunk where run_id in (select run_id from scan);
             insert into tbmq_migrate.chunk (run_id, lower_id, upper_id)
             select (select run_id from scan), lag(border) over (order by place), border
             from (select client_id as border, place from (select client_id, row_number() over (order by client_id) as place
                   from device_session_ctx) numbered where place % 25 = 0
                   union all select null, 1000000) borders;
             insert into tbmq_migrate.chunk (run_id, part) select run_id, part from scan",
        );
    }

    fn let_leases_run_out(&self) {
        self.scene.let_leases_run_out();
    }

    /// Starts a slow comparison, in small chunks; returns when one of them is done.
    fn running(&self) -> RunningTool {
        self.begin_in_small_chunks();
        let mut running = self.verify().args(["--max-rate", "2500"]).spawn();
        wait_until("a chunk to be done", || {
            assert!(running.is_running(), "it has ended already");
            self.scene.sql("select count(*) > 0 from tbmq_migrate.chunk c join tbmq_migrate.run r on r.id = run_id where command = 'verify' and c.state = 'done'") == "t"
        });
        running
    }

    /// Starts one and interrupts it.
    fn interrupted(&self) {
        let running = self.running();
        running.signal("INT");
        assert_ends(&running.wait(), 130, &["error: stopped before the end", GOES_ON]);
    }

    fn states(&self, command: &str) -> String {
        self.scene.sql(&format!("select string_agg(state, ' ' order by id) from tbmq_migrate.run where command = '{command}'"))
    }

    /// Fails unless a comparison found everything, whoever did it; its result.
    fn assert_whole(&self, outcome: &Outcome, when: &str) -> Json {
        assert_whole(outcome, &self.report(), when)
    }
}

fn assert_whole(outcome: &Outcome, report: &Path, when: &str) -> Json {
    assert_eq!(outcome.code, Some(5), "{when}: {outcome:#?}");
    let json = outcome.json();
    let found = COMPARED.map(|(name, _)| (name, json[name].as_u64().unwrap()));
    assert_eq!(found, COMPARED, "{when}: {json:#}");
    let wrong = |client: &str| (client.to_owned(), "wrong_last_packet_id".to_owned());
    let expected = [wrong("device-003"), wrong("device-120"), wrong("device-238"), ("nobody".to_owned(), "extra_session".to_owned())];
    assert_eq!(super::findings(&report.to_owned()), expected, "{when}");
    assert_eq!(json["findings"], serde_json::json!({"extra_session": 1, "wrong_last_packet_id": 3}), "{when}");
    json
}

#[test]
fn an_interrupted_comparison_goes_on_and_tells_everything() {
    let recorded = Recorded::new();
    recorded.interrupted();
    let outcome = recorded.verify().run();
    let json = recorded.assert_whole(&outcome, "after the interruption");
    assert!(json["begun_at"].is_string() && outcome.stderr.contains("going on with an interrupted comparison"), "{outcome:#?}");
    assert_eq!(recorded.states("verify"), "finished");
    // What is over is not gone on with.
    assert!(recorded.assert_whole(&recorded.verify().run(), "the next one")["begun_at"].is_null());
}

#[test]
fn a_comparison_that_dies_at_any_step_goes_on_to_the_same_end() {
    let recorded = Recorded::new();
    let chunks = FIGURES[0].1 / 25 + 2;
    let places = ["comparison_claimed:3", "comparison_made:2", "findings_written:4", "comparison_recorded:5"];
    let last = ["findings_written", "comparison_recorded"].map(|place| format!("{place}:{chunks}"));
    for place in places.into_iter().chain(last.iter().map(String::as_str)) {
        recorded.begin_in_small_chunks();
        assert_died(&recorded.verify().env("TBMQ_MIGRATE_FAILPOINT", place).run());
        recorded.let_leases_run_out();
        let json = recorded.assert_whole(&recorded.verify().run(), place);
        assert!(json["begun_at"].is_string(), "{place}");
    }
}

#[test]
fn a_restart_other_settings_and_a_later_copy_make_an_interrupted_comparison_begin_again() {
    let recorded = Recorded::new();
    recorded.interrupted();
    assert!(recorded.assert_whole(&recorded.verify().arg("--restart").run(), "--restart")["begun_at"].is_null());
    assert_eq!(recorded.states("verify"), "forgotten finished");

    recorded.interrupted();
    let outcome = recorded.verify().args(["--deadline-tolerance", "2s"]).run();
    assert!(recorded.assert_whole(&outcome, "other settings")["begun_at"].is_null());
    assert_eq!(recorded.states("verify"), "forgotten finished forgotten finished");

    recorded.interrupted();
    let again = recorded.scene.migrate_stock().args(["--restart", "--on-existing", "replace", "--allow-removals", "1"]).run();
    assert_ends(&again, 0, &[]);
    recorded.plant();
    assert!(recorded.assert_whole(&recorded.verify().run(), "a later copy")["begun_at"].is_null());
    assert_eq!(recorded.states("verify"), "forgotten finished forgotten finished forgotten finished");
}

#[test]
fn of_two_comparisons_at_once_both_tell_everything_and_one_is_recorded() {
    let recorded = Recorded::new();
    let running = recorded.running();
    let other = recorded.scratch.path().join("other.jsonl");
    let beside = recorded.verify_into(&other).run();
    assert!(beside.stderr.contains("another comparison is at work: this one is not recorded"), "{beside:#?}");
    assert!(assert_whole(&beside, &other, "the second")["run"].is_null());
    assert!(recorded.assert_whole(&running.wait(), "the first")["run"].is_number());
    assert_eq!(recorded.states("verify"), "finished");
}

#[test]
fn a_comparison_beside_an_interrupted_copy_neither_ends_it_nor_goes_on_with_it() {
    let scene = Scene::stocked();
    scene.begin_in_small_chunks(scene.migrate_stock());
    assert_died(&scene.migrate_stock().env("TBMQ_MIGRATE_FAILPOINT", "chunk_recorded:5").run());
    scene.let_leases_run_out();
    let verify = Tool::new().args(["verify", "--json", "--message-limit", LIMIT]);
    let outcome = verify.args(["--postgres-url", &scene.database.url, "--redis-url", &scene.redis.url()]).run();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["sessions_compared"], FIGURES[0].1);
    assert_eq!(scene.sql("select command || ' ' || state from tbmq_migrate.run order by id"), "migrate copying\nverify finished");
    assert_ends(&scene.migrate_stock().run(), 0, &[]);
    assert_eq!(scene.sql("select count(*) from tbmq_migrate.run where command = 'migrate'"), "1");
}

#[test]
fn without_the_control_schema_an_interrupted_comparison_says_that_it_begins_again() {
    let scene = Scene::stocked();
    assert_ends(&scene.migrate_stock().arg("--stateless").run(), 0, &[]);
    let verify =
        || Tool::new().args(["verify", "--json", "--message-limit", LIMIT, "--postgres-url", &scene.database.url, "--redis-url", &scene.redis.url()]);
    let mut running = verify().args(["--max-rate", "1000"]).spawn();
    running.wait_for_stderr("an interrupted comparison begins again");
    wait_until("it to read from Redis", || {
        assert!(running.is_running(), "it has ended already");
        scene.redis.cli(&["INFO", "commandstats"]).contains("cmdstat_zmscore:calls=1")
    });
    running.signal("INT");
    assert_ends(&running.wait(), 130, &["error: stopped before the end", "hint: nothing was recorded: it begins again"]);
    let outcome = verify().run();
    assert_ends(&outcome, 0, &[]);
    assert_eq!(outcome.json()["messages_compared"], FIGURES[2].1);
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
}
