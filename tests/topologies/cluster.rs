//! A cluster of three masters.

use super::assert_refused;
use crate::sessions::{Sessions, migrate};
use crate::support::cluster::RedisCluster;

#[test]
fn one_seed_is_enough_to_find_that_it_is_a_cluster_and_all_its_nodes() {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(40, 4).with_lone_contexts(10));
    let database = sessions.load();
    sessions.assert_all_migrated(&migrate(&database, &cluster.urls()[1]).run());
    sessions.assert_stand_in(&cluster.keyspace(), "");
    // With 50 sessions, the chance that a third of the slots gets none is below one in a hundred million; the ids are fixed.
    assert!(cluster.nodes.iter().all(|node| !node.keyspace().0.is_empty()));

    // A dead seed among several is passed over, and what the mode says is what the servers are.
    let dead = format!("redis://127.0.0.1:{}", crate::support::poll::free_port());
    let seeds = [dead.as_str(), &cluster.urls()[2], &cluster.urls()[0]].join(",");
    let again = migrate(&database, &seeds).args(["--redis-mode", "cluster", "--on-existing", "replace"]).run();
    sessions.assert_all_migrated(&again);
    sessions.assert_stand_in(&cluster.keyspace(), "");

    let standalone = migrate(&database, &cluster.urls()[0]).args(["--redis-mode", "standalone"]).run();
    assert_refused(&standalone, 4, &["runs in cluster mode, not in standalone mode", "--redis-mode"]);
    let index = migrate(&database, &format!("{}/1", cluster.urls()[0])).run();
    assert_refused(&index, 4, &["a cluster has only database 0"]);
    let index = migrate(&database, &format!("{}/1", cluster.urls()[0])).args(["--redis-mode", "cluster"]).run();
    assert_refused(&index, 3, &["a cluster has only database 0"]);
}

#[test]
fn an_empty_hash_tag_in_the_prefix_is_refused_and_any_other_puts_all_sessions_on_one_node() {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(20, 4));
    let database = sessions.load();
    let refused = migrate(&database, &cluster.urls()[0]).args(["--key-prefix", "tb{}:"]).run();
    assert_refused(&refused, 4, &["the key prefix holds an empty hash tag", "hint: "]);
    assert!(cluster.keyspace().0.is_empty());

    let outcome = migrate(&database, &cluster.urls()[0]).args(["--key-prefix", "tb{x}:"]).run();
    sessions.assert_all_migrated(&outcome);
    assert!(outcome.stderr.contains("WARN") && outcome.stderr.contains("hash tag"), "{}", outcome.stderr);
    let owner = cluster.owner(cluster.slot("{x}"));
    sessions.assert_stand_in(&cluster.nodes[owner].keyspace(), "tb{x}:");
    sessions.assert_stand_in(&cluster.keyspace(), "tb{x}:");
}

#[test]
fn ids_that_no_cluster_can_hold_are_quarantined_and_the_rest_goes_on() {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(3, 4).with("{}x", 2).with("a}b", 2));
    let database = sessions.load();
    for client in ["", "}", "}x"] {
        database.psql(&format!(
            "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
             select '{client}', n, 't', 0, n + 1, 1, '' from generate_series(0, 2) n;
             insert into device_session_ctx values ('{client}', 0, 2, 3)"
        ));
    }
    let outcome = migrate(&database, &cluster.urls()[0]).run();
    assert_eq!(outcome.code, Some(10), "{outcome:#?}");
    let report = outcome.json();
    let (sum, all) = (sessions.messages() + 9, sessions.count() + 3);
    assert_eq!((&report["sessions"], &report["rows_read"]), (&all.into(), &sum.into()), "{report}");
    assert_eq!((&report["messages_migrated"], &report["quarantined"]), (&sessions.messages().into(), &9.into()), "{report}");
    sessions.assert_stand_in(&cluster.keyspace(), "");
    let named = database.psql("select client_id, count(*), min(reason) from tbmq_migrate.quarantine group by 1 order by 1");
    assert_eq!(named, "|3|spans_slots\n}|3|spans_slots\n}x|3|spans_slots");
}
