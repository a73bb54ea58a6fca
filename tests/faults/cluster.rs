//! A cluster whose slots move and whose nodes die.

use super::wait_for_keys;
use crate::sessions::{Sessions, migrate};
use crate::support::cluster::RedisCluster;
use crate::support::poll::wait_until;
use crate::topologies::login::{CLUSTER, set_user, with_login};

/// With it all sessions are in one slot.
const PREFIX: &str = "p{x}:";

/// Moves the slot of the prefix while a run writes to it, with the least rights. On its way the slot takes no call with
/// several keys, neither on the old node nor on the new one.
fn move_the_slot_under_a_run(stands_already: bool) {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(30, 40).with("long", 900));
    let database = sessions.load();
    cluster.nodes.iter().for_each(|node| set_user(node, PREFIX, CLUSTER));
    let call = || migrate(&database, &with_login(&cluster.urls()[0])).args(["--key-prefix", PREFIX]);
    let options: &[&str] = match stands_already {
        true => &["--on-existing", "replace"],
        false => &[],
    };
    if stands_already {
        sessions.assert_all_migrated(&call().run());
    }
    let slot = cluster.slot("{x}");
    let (from, to) = (cluster.owner(slot), (cluster.owner(slot) + 1) % 3);
    let errors = || [from, to].map(|node| cluster.cli(node, &["INFO", "errorstats"])).concat();
    cluster.cli(from, &["CONFIG", "RESETSTAT"]);
    let mut run = call().args(["--max-rate", "700"]).args(options).spawn();
    let calls = || cluster.cli(from, &["INFO", "commandstats"]);
    wait_until("the run to write", || {
        run.is_running() && calls().lines().any(|line| line.starts_with("cmdstat_zadd:calls=") && !line.contains("calls=1,"))
    });
    cluster.begin_migration(slot, from, to);
    if stands_already {
        // A part of a session that is still to come: descending, the copy meets it last.
        let half: Vec<String> = (1..=20).map(|n| format!("{PREFIX}{{c-0000}}_messages_{n}")).collect();
        cluster.move_keys(&half.iter().map(String::as_str).collect::<Vec<_>>(), from, to);
    }
    // Longer than the client tries by itself.
    run.wait_for_stderr("Redis is not ready; trying again");
    assert!(errors().contains("errorstat_TRYAGAIN"));
    cluster.finish_migration(slot, from, to);
    sessions.assert_all_migrated(&run.wait());
    assert_eq!(cluster.owner(slot), to);
    sessions.assert_stand_in(&cluster.keyspace(), PREFIX);
}

#[test]
fn a_slot_that_moves_while_its_sessions_are_written_takes_nothing_away() {
    move_the_slot_under_a_run(false);
}

#[test]
fn a_slot_that_moves_while_its_sessions_are_replaced_takes_nothing_away() {
    move_the_slot_under_a_run(true);
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
