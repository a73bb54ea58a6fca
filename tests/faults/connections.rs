//! Redis stays, but its scripts, its connections or its patience go.

use super::wait_for_keys;
use crate::sessions::{Sessions, migrate};
use crate::support::redis::Redis;

#[test]
fn lost_scripts_cut_connections_and_pauses_do_not_stop_a_run() {
    let (redis, sessions) = (Redis::start_with(&["--enable-debug-command", "yes"]), Sessions::new(40, 40).with("long", 800));
    let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1200"]).spawn();
    for (keys, disturbance) in [
        (100, &["SCRIPT", "FLUSH"][..]),
        (300, &["CLIENT", "KILL", "TYPE", "normal"]),
        (600, &["SCRIPT", "FLUSH"]),
        (900, &["CLIENT", "PAUSE", "300", "ALL"]),
        (1200, &["CLIENT", "PAUSE", "300", "WRITE"]),
        (1500, &["CLIENT", "KILL", "TYPE", "normal"]),
        (1700, &["DEBUG", "SLEEP", "0.5"]),
        (1800, &["SCRIPT", "FLUSH"]),
    ] {
        wait_for_keys(&mut run, &redis, keys);
        redis.cli(disturbance);
    }
    sessions.assert_all_migrated(&run.wait());
    let errors = redis.cli(&["INFO", "errorstats"]);
    assert!(errors.contains("errorstat_NOSCRIPT"), "the run met a server without its scripts: {errors}");
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn a_server_that_is_a_replica_for_a_while_is_waited_for() {
    let (redis, sessions) = (Redis::start(), Sessions::new(30, 40));
    let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1200"]).spawn();
    wait_for_keys(&mut run, &redis, 300);
    // Nobody is at that port: the data stays, and every write is refused.
    redis.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    crate::support::poll::wait_until("a write to be refused", || redis.cli(&["INFO", "errorstats"]).contains("errorstat_READONLY"));
    redis.cli(&["REPLICAOF", "NO", "ONE"]);
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn a_server_that_cannot_save_and_refuses_writes_is_waited_for() {
    let (redis, sessions) = (Redis::start(), Sessions::new(30, 40));
    let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1200"]).spawn();
    wait_for_keys(&mut run, &redis, 300);
    // A directory in the place of the file: saving in the background fails, and the server stops taking writes.
    let file = redis.directory().join("dump.rdb");
    std::fs::create_dir(&file).unwrap();
    redis.cli(&["CONFIG", "SET", "save", "86400 1000000"]);
    redis.cli(&["BGSAVE"]);
    crate::support::poll::wait_until("a write to be refused", || redis.cli(&["INFO", "errorstats"]).contains("errorstat_MISCONF"));
    std::fs::remove_dir(&file).unwrap();
    redis.cli(&["BGSAVE"]);
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&redis.keyspace(), "");
}
