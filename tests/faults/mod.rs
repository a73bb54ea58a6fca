//! What goes wrong while a run is going: with Redis, with PostgreSQL, with others who write.

mod blocking;
mod chunk_time;
mod cluster;
mod connections;
mod failover;
mod memory;
mod other_writer;
mod plan;
mod postgres;
mod redis_restart;

use std::path::PathBuf;

use crate::sessions::Sessions;
use crate::support::poll::wait_until;
use crate::support::postgres::Database;
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, RunningTool, Tool};

/// Waits until the run has written some keys; fails when it ends before.
fn wait_for_keys(run: &mut RunningTool, redis: &Redis, least: u64) {
    wait_until(&format!("{least} keys in Redis"), || {
        assert!(run.is_running(), "the run has ended already");
        redis.try_cli(&["DBSIZE"]).is_ok_and(|count| count.parse::<u64>().unwrap() >= least)
    });
}

/// Waits until the run has recorded some chunks as done; fails when it ends before.
fn wait_for_chunks(run: &mut RunningTool, database: &Database, least: u64) {
    wait_until(&format!("{least} chunks to be done"), || {
        assert!(run.is_running(), "the run has ended already");
        let count = database.try_psql("select count(*) from tbmq_migrate.chunk where state = 'done'");
        count.is_ok_and(|count| count.parse::<u64>().unwrap() >= least)
    });
}

/// A file with all client ids: a run that is given one makes a chunk of each 500 of them.
fn list_of_clients(sessions: &Sessions, redis: &Redis) -> PathBuf {
    let path = redis.directory().join("clients");
    std::fs::write(&path, sessions.clients().map(|client| format!("{client}\n")).collect::<String>()).unwrap();
    path
}

/// Begins a run that dies at once, and cuts it at these client ids; the same call goes on with it.
fn begin_in_chunks(call: Tool, database: &Database, borders: &[&str]) {
    assert_died(&call.env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run());
    let bounds: Vec<String> =
        std::iter::once("null".to_owned()).chain(borders.iter().map(|id| format!("'{id}'"))).chain(["null".to_owned()]).collect();
    let ranges: Vec<String> = bounds.windows(2).map(|pair| format!("({}, {})", pair[0], pair[1])).collect();
    database.psql(&format!(
        "delete from tbmq_migrate.chunk;
         insert into tbmq_migrate.chunk (run_id, lower_id, upper_id)
         select (select id from tbmq_migrate.run where state = 'copying'), lower, upper from (values {}) range (lower, upper);",
        ranges.join(", ")
    ));
}

/// Fails unless the run ended at a failpoint; its lease is over then, as if some time had passed.
fn assert_died(outcome: &Outcome) {
    assert_eq!(outcome.code, None, "{outcome:#?}");
}

fn let_leases_run_out(database: &Database) {
    database.psql("update tbmq_migrate.worker set expires_at = clock_timestamp() - interval '1 ms'");
}

/// Fails unless the run gave up and said these words.
fn assert_stuck(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.code, Some(9), "{outcome:#?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word:?} is missing\n{}", outcome.stderr);
    }
}
