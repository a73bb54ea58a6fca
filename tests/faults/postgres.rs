//! A PostgreSQL that restarts, crashes, ends our sessions, or stays away.

use super::{assert_stuck, let_leases_run_out, wait_for_keys};
use crate::sessions::{Sessions, migrate};
use crate::support::poll::wait_until;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;

#[test]
fn a_restart_a_crash_and_ended_sessions_are_survived() {
    let (mut server, redis) = (Postgres::start(&[]), Redis::start());
    let sessions = Sessions::new(60, 40).with("long", 600).with_lone_contexts(30);
    let database = server.database();
    sessions.load_into(&database);
    server.admin().psql("checkpoint");
    let mut run = migrate(&database, &redis.url()).args(["--max-rate", "1000", "--chunk-time", "1s"]).spawn();
    wait_for_keys(&mut run, &redis, 300);
    server.stop_fast();
    server.start_again();
    wait_for_keys(&mut run, &redis, 1000);
    server.kill9();
    server.start_again();
    for keys in [1400, 1800] {
        wait_for_keys(&mut run, &redis, keys);
        wait_until("a session of the tool to end", || {
            let end = "select count(pg_terminate_backend(pid)) > 0 from pg_stat_activity where application_name = 'tbmq-migrate'";
            server.admin().psql(end) == "t"
        });
    }
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn a_postgresql_that_stays_away_too_long_ends_the_run_and_the_next_one_completes_it() {
    let (mut server, redis, sessions) = (Postgres::start(&[]), Redis::start(), Sessions::new(40, 40));
    let database = server.database();
    sessions.load_into(&database);
    let call = || migrate(&database, &redis.url()).args(["--retry-timeout", "2s"]);
    let mut run = call().args(["--max-rate", "600"]).spawn();
    wait_for_keys(&mut run, &redis, 300);
    server.stop_fast();
    assert_stuck(&run.wait(), &["hint: bring PostgreSQL back, then run the same command again"]);
    server.start_again();
    let_leases_run_out(&database);
    sessions.assert_all_migrated(&call().run());
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn a_postgresql_that_is_away_for_longer_than_the_lease_but_not_too_long_is_waited_for() {
    let (mut server, redis, sessions) = (Postgres::start(&[]), Redis::start(), Sessions::new(40, 40));
    let database = server.database();
    sessions.load_into(&database);
    server.admin().psql("checkpoint");
    let mut run = migrate(&database, &redis.url()).args(["--max-rate", "600"]).spawn();
    wait_for_keys(&mut run, &redis, 300);
    server.stop_fast();
    run.wait_for_stderr("the lease has run out");
    let keys = redis.cli(&["DBSIZE"]);
    assert!(run.is_running());
    assert_eq!(redis.cli(&["DBSIZE"]), keys, "nothing is written without a lease");
    server.start_again();
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&redis.keyspace(), "");
}
