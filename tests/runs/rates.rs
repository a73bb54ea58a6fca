//! `--max-rate`.

use std::time::Instant;

use super::scene::{Scene, assert_ends};

/// Messages of the largest call.
const MESSAGES_A_CALL: u32 = 100;

#[test]
fn a_rate_is_not_exceeded() {
    let scene = Scene::empty();
    scene.add_sessions("a", 60);
    for (jobs, rate) in [("1", 400), ("4", 400)] {
        scene.redis.cli(&["FLUSHALL"]);
        let started = Instant::now();
        let outcome = scene.migrate().args(["--on-existing", "replace", "--json", "--jobs", jobs, "--max-rate", &rate.to_string()]).run();
        assert_ends(&outcome, 0, &[]);
        // The last call leaves when the 600 - 100 messages before it have had their time.
        let least = f64::from(600 - MESSAGES_A_CALL) / f64::from(rate);
        assert!(started.elapsed().as_secs_f64() >= least, "{:?} with {jobs} jobs", started.elapsed());
        assert_eq!(outcome.json()["messages_migrated"], 600);
    }
}
