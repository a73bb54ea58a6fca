//! A cluster whose slots move and whose nodes die.

use super::wait_for_keys;
use crate::sessions::{Sessions, migrate};
use crate::support::cluster::RedisCluster;
use crate::support::poll::wait_until;

/// With it all sessions are in one slot.
const PREFIX: &str = "p{x}:";

/// Moves the slot of the prefix while a run writes to it, in steps; each step waits for the error that it causes.
fn move_the_slot_under_a_run(options: &[&str], stands_already: bool) {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(30, 40).with("a-long", 900));
    let database = sessions.load();
    for node in &cluster.nodes {
        // The least rights must do for a slot on its way, too.
        node.cli(&["ACL", "SETUSER", "default", "resetkeys", "allkeys", "+@all"]);
    }
    let call = || migrate(&database, &cluster.urls()[0]).args(["--key-prefix", PREFIX]);
    if stands_already {
        sessions.assert_all_migrated(&call().run());
    }
    let (slot, from) = (cluster.slot("{x}"), cluster.owner(cluster.slot("{x}")));
    let to = (from + 1) % 3;
    let mut run = call().args(["--max-rate", "700"]).args(options).spawn();
    let written = |client: &str| format!("{PREFIX}{{{client}}}_messages");
    wait_until("the run to write", || run.is_running() && cluster.cli(from, &["OBJECT", "IDLETIME", &written("c-0025")]) == "0");
    if !stands_already {
        wait_for_keys(&mut run, &cluster.nodes[from], 200);
    }
    cluster.begin_migration(slot, from, to);
    // Half of a session that is being written, or soon will be: TRYAGAIN until the rest has moved.
    let asked = || cluster.nodes[from].cli(&["INFO", "errorstats"]);
    let half: Vec<String> = (1..=20).map(|n| format!("{}_{n}", written("c-0010"))).collect();
    if stands_already {
        cluster.move_keys(&half.iter().map(String::as_str).collect::<Vec<_>>(), from, to);
        wait_until("a call to be refused", || asked().contains("errorstat_TRYAGAIN"));
    } else {
        wait_until("a call to be sent on", || asked().contains("errorstat_ASK"));
    }
    cluster.finish_migration(slot, from, to);
    sessions.assert_all_migrated(&run.wait());
    assert_eq!(cluster.owner(slot), to);
    sessions.assert_stand_in(&cluster.keyspace(), PREFIX);
}

#[test]
fn a_slot_that_moves_while_its_sessions_are_written_takes_nothing_away() {
    move_the_slot_under_a_run(&[], false);
}

#[test]
fn a_slot_that_moves_while_its_sessions_are_replaced_takes_nothing_away() {
    move_the_slot_under_a_run(&["--on-existing", "replace"], true);
}

#[test]
fn a_node_that_dies_and_comes_back_is_waited_for() {
    let (mut cluster, sessions) =
        (RedisCluster::start_with(&["--appendonly", "yes", "--appendfsync", "always"]), Sessions::new(60, 40).with_lone_contexts(20));
    let database = sessions.load();
    let mut run = migrate(&database, &cluster.urls()[0]).args(["--max-rate", "800"]).spawn();
    wait_for_keys(&mut run, &cluster.nodes[1], 100);
    cluster.nodes[1].kill9();
    wait_until("the others to call the cluster down", || cluster.cli(0, &["CLUSTER", "INFO"]).contains("cluster_state:fail"));
    assert!(run.is_running());
    cluster.nodes[1].start_again();
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&cluster.keyspace(), "");
}

#[test]
fn a_node_that_comes_back_empty_gets_its_share_again() {
    let (mut cluster, sessions) = (RedisCluster::start(), Sessions::new(60, 40).with_lone_contexts(20));
    let database = sessions.load();
    let mut run = migrate(&database, &cluster.urls()[0]).args(["--max-rate", "800"]).spawn();
    wait_for_keys(&mut run, &cluster.nodes[2], 100);
    cluster.nodes[2].kill9();
    cluster.nodes[2].start_again();
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&cluster.keyspace(), "");
}
