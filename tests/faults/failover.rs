//! The master dies and a sentinel gives its place to the replica.

use super::{list_of_clients, wait_for_chunks};
use crate::sessions::{Sessions, migrate};
use crate::support::sentinel::Sentinel;

#[test]
fn what_the_replica_had_not_received_when_it_took_over_is_copied_again() {
    let (mut group, sessions) = (Sentinel::start(), Sessions::new(1100, 1));
    let (database, list) = (sessions.load(), list_of_clients(&sessions, &group.servers[0]));
    let call = migrate(&database, &group.sentinel_urls().join(",")).args(["--redis-sentinel-master", group.master_name()]);
    let mut run = call.args(["--jobs", "1", "--max-rate", "600"]).arg("--clients-file").arg(list).spawn();
    super::wait_for_keys(&mut run, &group.servers[0], 100);
    // The replica looks elsewhere from here on, and keeps what it has.
    group.servers[1].cli(&["REPLICAOF", "127.0.0.1", "1"]);
    wait_for_chunks(&mut run, &database, 1);
    group.kill_master();
    let outcome = run.wait();
    sessions.assert_all_migrated(&outcome);
    assert!(outcome.stderr.contains("Redis lost writes that it had acknowledged"), "{}", outcome.stderr);
    sessions.assert_stand_in(&group.servers[1].keyspace(), "");
}

#[test]
fn a_change_of_masters_in_good_order_is_followed() {
    let (group, sessions) = (Sentinel::start(), Sessions::new(40, 40));
    let database = sessions.load();
    let call = migrate(&database, &group.sentinel_urls().join(",")).args(["--redis-sentinel-master", group.master_name()]);
    let mut run = call.args(["--max-rate", "800"]).spawn();
    super::wait_for_keys(&mut run, &group.servers[0], 300);
    group.failover();
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&group.servers[1].keyspace(), "");
}
