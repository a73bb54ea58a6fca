//! The other direction when something happens to the scan.

use super::{Carried, verify};
use crate::sessions::Sessions;
use crate::support::poll::wait_until;
use crate::support::redis::Redis;

/// How often a command was called on a server.
fn calls(redis: &Redis, command: &str) -> u64 {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn a_scan_that_breaks_off_half_way_hides_no_session_that_is_too_many() {
    let carried = Carried::new(&Sessions::new(3, 2));
    let mut pipe = redis::pipe();
    for number in 0..4000 {
        pipe.set(format!("{{extra-{number}}}_last_packet_id"), "1").ignore();
    }
    pipe.exec(&mut carried.redis.connection()).unwrap();
    carried.redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut run = verify(&carried.database, &carried.redis.url()).args(["--max-rate", "2000"]).spawn();
    // One step before the start, and one of the four that follow.
    wait_until("the scan to begin", || {
        assert!(run.is_running(), "it has ended already");
        calls(&carried.redis, "scan") >= 2
    });
    carried.redis.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let outcome = run.wait();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"]["extra_session"], 4000, "{}", outcome.stdout);
}
