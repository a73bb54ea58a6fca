//! Servers that go away, move or hang in the middle of a comparison.

use super::{Carried, assert_found, carry, planted, verify};
use crate::runs::scene::assert_ends;
use crate::sessions::Sessions;
use crate::support::cluster::RedisCluster;
use crate::support::poll::wait_until;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::sentinel::Sentinel;
use crate::support::tool::RunningTool;

/// Enough for a second at [`RATE`], both directions together.
fn some() -> Sessions {
    Sessions::new(40, 20).with("long", 300)
}

const RATE: [&str; 4] = ["--max-rate", "1500", "--chunk-time", "1s"];

/// Waits until messages were read from a server.
fn wait_for_reads(run: &mut RunningTool, redis: &Redis) {
    wait_until("messages to be read", || {
        assert!(run.is_running(), "it has ended already");
        let stats = redis.try_cli(&["INFO", "commandstats"]).unwrap_or_default();
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_mget:calls=")?.split(',').next()?.parse::<u64>().ok());
        calls.is_some_and(|calls| calls >= 2)
    });
}

fn signal(redis: &Redis, name: &str) {
    let pid = redis.pid().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

#[test]
fn a_redis_that_is_killed_and_loads_its_data_is_waited_for() {
    let slowly = ["--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];
    let mut carried = Carried::to(&some(), Redis::start_with(&slowly));
    carried.plant();
    carried.redis.cli(&["SAVE"]);
    carried.redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut run = carried.verify().args(RATE).arg("--report").arg(carried.report_file()).spawn();
    wait_for_reads(&mut run, &carried.redis);
    carried.redis.kill9();
    carried.redis.start_again();
    let outcome = run.wait();
    assert!(carried.redis.cli(&["INFO", "errorstats"]).contains("errorstat_LOADING"), "it did not meet a server that loads");
    assert_found(&outcome, &carried.report_file(), &planted());
}

#[test]
fn a_redis_that_hangs_for_a_while_is_waited_for() {
    let carried = Carried::new(&some());
    carried.plant();
    carried.redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut run = carried.verify().args(RATE).arg("--report").arg(carried.report_file()).spawn();
    wait_for_reads(&mut run, &carried.redis);
    signal(&carried.redis, "STOP");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(1);
    wait_until("a second to pass", || {
        assert!(run.is_running(), "it ended without an answer");
        std::time::Instant::now() > until
    });
    signal(&carried.redis, "CONT");
    assert_found(&run.wait(), &carried.report_file(), &planted());
}

#[test]
fn a_redis_that_stays_away_too_long_ends_the_comparison_with_9() {
    let mut carried = Carried::new(&some());
    carried.redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut run = carried.verify().args(RATE).args(["--retry-timeout", "1s"]).spawn();
    wait_for_reads(&mut run, &carried.redis);
    carried.redis.kill9();
    let outcome = run.wait();
    assert_ends(&outcome, 9, &["error: ", "hint: bring Redis back, then run the same command again: it begins again"]);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_postgresql_that_restarts_is_waited_for_and_one_that_stays_away_is_not() {
    let (mut server, redis, sessions) = (Postgres::start(&[]), Redis::start(), some());
    let database = server.database();
    sessions.load_into(&database);
    // With the control schema: what is recorded is reached again too.
    assert_eq!(crate::sessions::migrate(&database, &redis.url()).run().code, Some(0));
    redis.cli(&["DEL", "{c-0003}_messages_2"]);
    server.admin().psql("checkpoint");
    for options in [&[][..], &["--stateless"]] {
        redis.cli(&["CONFIG", "RESETSTAT"]);
        let mut run = verify(&database, &redis.url()).args(RATE).args(options).spawn();
        wait_for_reads(&mut run, &redis);
        server.stop_fast();
        server.start_again();
        let outcome = run.wait();
        assert_eq!(outcome.code, Some(5), "{options:?}: {outcome:#?}");
        let report = outcome.json();
        let figures = ["sessions_compared", "messages_compared", "differing_sessions", "not_checked"].map(|name| report[name].as_u64().unwrap());
        assert_eq!(figures, [41, 40 * 20 + 300, 1, 0], "{options:?}: {report:#}");
        assert_eq!(report["findings"], serde_json::json!({"missing_message": 1}), "{options:?}");
    }
    redis.cli(&["CONFIG", "RESETSTAT"]);
    let mut run = verify(&database, &redis.url()).args(RATE).args(["--retry-timeout", "1s"]).spawn();
    wait_for_reads(&mut run, &redis);
    server.kill9();
    assert_ends(&run.wait(), 9, &["error: ", "hint: bring PostgreSQL back, then run the same command again"]);
}

#[test]
fn a_master_that_the_sentinels_replace_is_followed() {
    let (group, sessions) = (Sentinel::start(), some());
    let (database, urls) = (sessions.load(), group.sentinel_urls().join(","));
    let master = ["--redis-sentinel-master", group.master_name()];
    carry(&database, &urls, &master);
    group.servers[0].cli(&["DEL", "{c-0003}_messages_2"]);
    group.servers[0].cli(&["SET", "{nobody}_last_packet_id", "1"]);
    wait_until("the replica to have it all", || group.servers[0].cli(&["WAIT", "1", "1000"]) == "1");
    group.servers[0].cli(&["CONFIG", "RESETSTAT"]);
    let mut run = verify(&database, &urls).args(master).args(["--max-rate", "600"]).spawn();
    wait_for_reads(&mut run, &group.servers[0]);
    group.failover();
    assert!(run.is_running(), "it was over before");
    let outcome = run.wait();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"], serde_json::json!({"extra_session": 1, "missing_message": 1}), "{outcome:#?}");
    assert_eq!(outcome.json()["messages_compared"], sessions.messages());
}

#[test]
fn slots_that_move_make_no_difference() {
    let (cluster, sessions) = (RedisCluster::start(), some());
    let database = sessions.load();
    carry(&database, &cluster.urls()[0], &[]);
    cluster.cli(0, &["-c", "DEL", "{c-0003}_messages_2"]);
    cluster.cli(0, &["-c", "SET", "{nobody}_last_packet_id", "1"]);
    let slots = ["long", "nobody"].map(|client| cluster.slot(client));
    let moves = slots.map(|slot| (slot, cluster.owner(slot), (cluster.owner(slot) + 1) % 3));
    let mut run = verify(&database, &cluster.urls()[0]).args(["--max-rate", "500"]).spawn();
    wait_for_reads(&mut run, &cluster.nodes[0]);
    for (slot, from, to) in moves {
        cluster.begin_migration(slot, from, to);
        cluster.finish_migration(slot, from, to);
    }
    assert!(run.is_running(), "it was over before");
    let outcome = run.wait();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"], serde_json::json!({"extra_session": 1, "missing_message": 1}), "{outcome:#?}");
    assert_eq!(outcome.json()["messages_compared"], sessions.messages());
}

#[test]
fn a_rate_is_not_exceeded() {
    let sessions = Sessions::new(30, 20);
    let carried = Carried::new(&sessions);
    for jobs in ["1", "4"] {
        let started = std::time::Instant::now();
        let outcome = carried.verify().args(["--max-rate", "1000", "--jobs", jobs]).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        // The messages alone, less those of the largest call: the keys of the scan come on top.
        let least = (600.0 - 100.0) / 1000.0;
        assert!(started.elapsed().as_secs_f64() >= least, "{:?} with {jobs} jobs", started.elapsed());
    }
}
