//! A Redis that is killed and comes back: with everything, with a part, with nothing, or too late.

use super::{assert_died, assert_stuck, let_leases_run_out, list_of_clients, wait_for_chunks, wait_for_keys};
use crate::sessions::{Sessions, migrate};
use crate::support::redis::Redis;

#[test]
fn after_a_restart_with_all_its_data_the_run_goes_on() {
    let (mut redis, sessions) = (Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]), Sessions::new(30, 40).with("long", 450));
    let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1500"]).spawn();
    wait_for_keys(&mut run, &redis, 500);
    redis.kill9();
    redis.start_again();
    sessions.assert_all_migrated(&run.wait());
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn while_a_server_loads_its_data_the_run_waits() {
    let slowly = ["--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"];
    let (mut redis, sessions) = (Redis::start_with(&slowly), Sessions::new(30, 40));
    let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1500"]).spawn();
    wait_for_keys(&mut run, &redis, 500);
    redis.cli(&["SAVE"]);
    redis.kill9();
    redis.start_again();
    sessions.assert_all_migrated(&run.wait());
    let errors = redis.cli(&["INFO", "errorstats"]);
    assert!(errors.contains("errorstat_LOADING"), "the run met a server that loads: {errors}");
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn chunks_that_were_done_when_redis_lost_everything_are_copied_again() {
    let (mut redis, sessions) = (Redis::start(), Sessions::new(1100, 1));
    let (database, list) = (sessions.load(), list_of_clients(&sessions, &redis));
    let mut run = migrate(&database, &redis.url()).args(["--jobs", "1", "--max-rate", "600"]).arg("--clients-file").arg(list).spawn();
    wait_for_chunks(&mut run, &database, 1);
    redis.kill9();
    redis.start_again();
    let outcome = run.wait();
    sessions.assert_all_migrated(&outcome);
    sessions.assert_stand_in(&redis.keyspace(), "");
    assert!(outcome.stderr.contains("Redis lost writes that it had acknowledged"), "{}", outcome.stderr);
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn what_a_chunk_wrote_before_redis_lost_everything_in_the_middle_of_it_is_written_again() {
    for options in [&["--jobs", "1"][..], &["--jobs", "1", "--stateless"]] {
        let (mut redis, sessions) = (Redis::start(), Sessions::new(30, 40));
        let mut run = migrate(&sessions.load(), &redis.url()).args(["--max-rate", "1000"]).args(options).spawn();
        wait_for_keys(&mut run, &redis, 500);
        redis.kill9();
        redis.start_again();
        sessions.assert_all_migrated(&run.wait());
        sessions.assert_stand_in(&redis.keyspace(), "");
    }
}

#[test]
fn the_note_of_an_earlier_try_does_not_speak_for_a_later_one() {
    let (mut redis, sessions) = (Redis::start(), Sessions::new(300, 2));
    let database = sessions.load();
    database.psql(
        "create table aside as select * from device_publish_msg where serial_number = 1; delete from device_publish_msg where serial_number = 1",
    );
    let call = || migrate(&database, &redis.url()).args(["--jobs", "1", "--max-rate", "300"]);
    assert_died(&call().env("TBMQ_MIGRATE_FAILPOINT", "chunk_noted").run());
    let_leases_run_out(&database);
    database.psql("insert into device_publish_msg select * from aside");

    // The second try writes more than the first; what Redis keeps of it is a part.
    let mut run = call().env("TBMQ_MIGRATE_FAILPOINT", "chunk_recorded").spawn();
    let messages = |client: &str| redis.cli(&["ZCARD", &format!("{{{client}}}_messages")]);
    crate::support::poll::wait_until("the second try to write", || run.is_running() && messages("c-0299") == "2");
    redis.cli(&["SAVE"]);
    assert_eq!(messages("c-0000"), "1", "the second try was faster than the test");
    assert_died(&run.wait());
    let_leases_run_out(&database);
    redis.kill9();
    redis.start_again();

    let third = migrate(&database, &redis.url()).args(["--jobs", "1"]).run();
    sessions.assert_all_migrated(&third);
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn a_redis_that_stays_away_too_long_ends_the_run_and_the_next_one_completes_it() {
    let (mut redis, sessions) = (Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]), Sessions::new(30, 40));
    let database = sessions.load();
    let call = || migrate(&database, &redis.url()).args(["--retry-timeout", "2s"]);
    let mut run = call().args(["--max-rate", "1000"]).spawn();
    wait_for_keys(&mut run, &redis, 500);
    redis.kill9();
    assert_stuck(&run.wait(), &["Redis was not usable for 2 s", "hint: bring Redis back, then run the same command again"]);
    redis.start_again();
    let call = migrate(&database, &redis.url()).args(["--retry-timeout", "2s"]);
    sessions.assert_all_migrated(&call.run());
    sessions.assert_stand_in(&redis.keyspace(), "");
}
