//! The other direction when something happens to the scan.

use super::{Carried, carry, verify};
use crate::sessions::Sessions;
use crate::support::cluster::RedisCluster;
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
    for number in 0..3000 {
        pipe.set(format!("{{extra-{number}}}_last_packet_id"), "1").ignore();
    }
    pipe.exec(&mut carried.redis.connection()).unwrap();
    carried.redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut run = verify(&carried.database, &carried.redis.url()).args(["--max-rate", "3000"]).spawn();
    // One step before the start, and one of the three that follow.
    wait_until("the scan to begin", || {
        assert!(run.is_running(), "it has ended already");
        calls(&carried.redis, "scan") >= 2
    });
    carried.redis.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let outcome = run.wait();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"]["extra_session"], 3000, "{}", outcome.stdout);
}

#[test]
fn a_slot_that_moves_to_a_node_that_was_scanned_already_hides_no_session_that_is_too_many() {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(60, 3));
    let database = sessions.load();
    carry(&database, &cluster.urls()[0], &[]);
    // Of a slot that no other session is in, on the node that is scanned last.
    let others: Vec<u16> = sessions.clients().map(|client| cluster.slot(client)).collect();
    let slot_of = |number: &u32| cluster.slot(&format!("extra-{number}"));
    let number = (0..).find(|number| !others.contains(&slot_of(number)) && cluster.owner(slot_of(number)) == 2).unwrap();
    cluster.cli(2, &["SET", &format!("{{extra-{number}}}_last_packet_id"), "1"]);
    let slot = slot_of(&number);
    cluster.cli(0, &["CONFIG", "RESETSTAT"]);
    cluster.cli(2, &["CONFIG", "RESETSTAT"]);
    let mut run = verify(&database, &cluster.urls()[0]).args(["--max-rate", "200"]).spawn();
    wait_until("the first node to be scanned", || {
        assert!(run.is_running(), "it has ended already");
        calls(&cluster.nodes[0], "scan") >= 2
    });
    cluster.begin_migration(slot, 2, 0);
    cluster.finish_migration(slot, 2, 0);
    assert_eq!(calls(&cluster.nodes[2], "scan"), 1, "the last node was scanned before its slot moved");
    let outcome = run.wait();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"], serde_json::json!({"extra_session": 1}), "{}", outcome.stdout);
}
