//! A Redis whose memory is full.

use super::{assert_stuck, begin_in_chunks, let_leases_run_out, wait_for_keys};
use crate::sessions::{Sessions, migrate};
use crate::support::poll::wait_until;
use crate::support::redis::Redis;

/// Less than an empty server takes.
const FULL: [&str; 4] = ["CONFIG", "SET", "maxmemory", "1kb"];
const ROOM: [&str; 4] = ["CONFIG", "SET", "maxmemory", "0"];

#[test]
fn a_full_memory_is_said_and_waited_for() {
    let (redis, sessions) = (Redis::start(), Sessions::new(30, 40).with("long", 450));
    let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1500"]).spawn();
    wait_for_keys(&mut run, &redis, 500);
    redis.cli(&FULL);
    run.wait_for_stderr("Redis is out of memory, waiting for room");
    assert!(run.is_running());
    redis.cli(&ROOM);
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn when_memory_stays_full_the_run_ends_with_every_session_whole_or_absent_and_the_next_one_completes_it() {
    // Every session is longer than a call, and its last part shares a call with the next session.
    let sessions = Sessions::new(24, 250);
    for options in [&[][..], &["--on-existing", "replace"]] {
        let (redis, database) = (Redis::start(), sessions.load());
        if !options.is_empty() {
            sessions.assert_all_migrated(&migrate(&database, &redis.url()).run());
        }
        let call = || migrate(&database, &redis.url()).args(["--jobs", "4", "--retry-timeout", "2s"]).args(options);
        begin_in_chunks(call(), &database, &["c-0006", "c-0012", "c-0018"]);
        let_leases_run_out(&database);
        redis.cli(&["CONFIG", "RESETSTAT"]);
        let mut run = call().args(["--max-rate", "4000"]).spawn();
        wait_until("some calls of the run", || run.is_running() && calls_of_zadd(&redis) > 20);
        redis.cli(&FULL);
        assert_stuck(&run.wait(), &["Redis had no memory to spare for 2 s", "hint: give Redis more memory"]);
        let whole = sessions.assert_none_is_half_written(&redis.keyspace());
        assert!((1..24).contains(&whole), "{whole} sessions are there");
        redis.cli(&ROOM);
        sessions.assert_all_migrated(&call().run());
        sessions.assert_stand_in(&redis.keyspace(), "");
    }
}

/// One or several for each call of a script that writes messages.
fn calls_of_zadd(redis: &Redis) -> u64 {
    let statistics = redis.cli(&["INFO", "commandstats"]);
    let calls = statistics.lines().find_map(|line| line.strip_prefix("cmdstat_zadd:calls=")?.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}
