//! Chunks that end early, at the next session border after their time.

use super::{assert_died, let_leases_run_out, wait_for_chunks};
use crate::sessions::{Sessions, migrate};
use crate::support::postgres::Database;
use crate::support::redis::Redis;
use crate::support::tool::Tool;

/// Half a second for the first sessions, two for the long one, then some more, and contexts without rows.
fn sessions() -> Sessions {
    Sessions::new(30, 40).with("b-long", 2000).with("z", 500).with_lone_contexts(200)
}

fn slow(database: &Database, redis: &Redis) -> Tool {
    migrate(database, &redis.url()).args(["--max-rate", "1000", "--chunk-time", "1s", "--jobs", "1"])
}

/// Fails unless the chunks divide the sessions among them and none was cut in two.
fn assert_recorded(database: &Database, sessions: &Sessions) {
    let sums = "select sum(sessions), sum(messages_migrated) from tbmq_migrate.chunk where state = 'done'";
    assert_eq!(database.psql(sums), format!("{}|{}", sessions.count(), sessions.messages()));
    assert_eq!(database.psql("select count(*) > 2 and bool_and(state = 'done') from tbmq_migrate.chunk"), "t");
    // The long session has 2,000 rows: the chunk with it has at least those.
    assert_eq!(database.psql("select count(*) from tbmq_migrate.chunk where rows_read >= 2000"), "1");
}

#[test]
fn every_session_is_in_one_chunk_and_the_totals_are_right() {
    let (redis, sessions) = (Redis::start(), sessions());
    let database = sessions.load();
    sessions.assert_all_migrated(&slow(&database, &redis).run());
    assert_recorded(&database, &sessions);
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn a_run_that_died_between_two_of_its_chunks_or_in_one_goes_on() {
    let (redis, sessions) = (Redis::start(), sessions());
    let database = sessions.load();
    for place in ["chunk_recorded", "batch_written:8", "chunk_noted"] {
        assert_died(&slow(&database, &redis).env("TBMQ_MIGRATE_FAILPOINT", place).run());
        let_leases_run_out(&database);
    }
    sessions.assert_all_migrated(&slow(&database, &redis).run());
    assert_recorded(&database, &sessions);
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn chunks_that_are_opened_again_count_once() {
    let (mut redis, sessions) = (Redis::start(), sessions());
    let database = sessions.load();
    let mut run = slow(&database, &redis).spawn();
    wait_for_chunks(&mut run, &database, 2);
    redis.kill9();
    redis.start_again();
    sessions.assert_all_migrated(&run.wait());
    assert_recorded(&database, &sessions);
    sessions.assert_stand_in(&redis.keyspace(), "");
}

#[test]
fn what_is_left_of_a_chunk_that_was_tried_before_may_stand_in_redis_in_an_older_form() {
    let (redis, sessions) = (Redis::start(), Sessions::new(60, 40));
    let database = sessions.load();
    // The first try writes everything, with another last packet id and one message more for each session.
    database.psql(
        "update device_session_ctx set last_packet_id = 41, last_serial_number = 40;
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
         select client_id, 40, 't', last_updated_time, 41, 1, '' from device_session_ctx",
    );
    assert_died(&migrate(&database, &redis.url()).args(["--jobs", "1"]).env("TBMQ_MIGRATE_FAILPOINT", "chunk_written").run());
    let_leases_run_out(&database);
    database.psql(
        "delete from device_publish_msg where serial_number = 40;
         update device_session_ctx set last_packet_id = 40, last_serial_number = 39",
    );
    sessions.assert_all_migrated(&slow(&database, &redis).run());
    assert_eq!(database.psql("select count(*) > 1 from tbmq_migrate.chunk"), "t");
    sessions.assert_stand_in(&redis.keyspace(), "");
}
