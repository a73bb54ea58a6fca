//! The harness itself: each kind of server starts, answers, and leaves nothing behind.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cluster::RedisCluster;
use super::guard::{Guard, StartError};
use super::keyspace::Value;
use super::poll::{wait_for, wait_until};
use super::postgres::Postgres;
use super::redis::Redis;
use super::sentinel::Sentinel;
use super::tool::Tool;

fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_private_postgres_keeps_its_data_over_a_stop_and_a_crash_and_is_gone_after_drop() {
    let mut server = Postgres::start(&[("max_connections", "33")]);
    let directory = server.directory().to_owned();
    let database = server.database();
    assert_eq!(database.psql("show max_connections; show wal_level; show fsync"), "33\nlogical\noff");
    database.create_tables();
    database.psql("insert into device_session_ctx values ('a', 1, 0, 1)");
    server.stop_fast();
    database.try_psql("select 1").unwrap_err();
    server.start_again();
    database.psql("insert into device_session_ctx values ('b', 1, 0, 1); checkpoint");
    server.kill9();
    server.start_again();
    assert_eq!(database.psql("select client_id from device_session_ctx order by 1"), "a\nb");
    drop(server);
    assert!(!directory.exists());
    database.try_psql("select 1").unwrap_err();
}

#[test]
fn the_shared_postgres_gives_each_test_an_empty_database_and_asks_for_the_password() {
    let first = Postgres::shared().database();
    first.create_tables();
    let second = Postgres::shared().database();
    assert_eq!(second.psql("select count(*) from pg_tables where schemaname = 'public'"), "0");
    let message = first.try_psql("select 1; select no_such_column").unwrap_err();
    assert!(message.contains("no_such_column"), "{message}");
    let mut wrong = first.clone();
    wrong.url = wrong.url.replace("correct", "incorrect");
    let message = wrong.try_psql("select 1").unwrap_err();
    assert!(message.contains("password authentication failed"), "{message}");
}

#[tokio::test]
async fn a_pool_and_a_loaded_csv_see_the_same_rows() {
    let database = Postgres::shared().database();
    database.create_tables();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.csv");
    std::fs::write(&path, "client_id,last_updated_time,last_serial_number,last_packet_id\n\"a,\"\"b\",7,,\n").unwrap();
    database.load_csv("device_session_ctx", &path);
    let row: (String, i64, Option<i64>, Option<i32>) =
        sqlx::query_as("select * from device_session_ctx").fetch_one(&database.pool().await).await.unwrap();
    assert_eq!(row, ("a,\"b".to_owned(), 7, None, None));
}

#[test]
fn a_redis_answers_shows_its_keys_and_is_gone_after_drop() {
    let mut server = Redis::start_with(&["--maxmemory", "10mb"]);
    let directory = server.directory().to_owned();
    let pid = server.pid().unwrap();
    assert_eq!(server.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n10485760");
    server.cli(&["SET", "s", "text", "PXAT", "9000000000000"]);
    server.cli(&["ZADD", "z", "2", "two", "1", "one"]);
    server.cli(&["HSET", "h", "f", "v"]);
    server.try_cli(&["INCR", "z"]).unwrap_err();
    let keys = server.keyspace();
    let text = Value::Str { bytes: b"text".to_vec(), pexpiretime_ms: Some(9_000_000_000_000) };
    assert_eq!(keys.get("s"), Some(&text));
    assert_eq!(keys.members("z"), [("one".to_owned(), 1.0), ("two".to_owned(), 2.0)]);
    assert_eq!(keys.get("h"), Some(&Value::Other("hash".to_owned())));
    assert_eq!(keys.0.len(), 3);
    server.kill9();
    server.try_cli(&["PING"]).unwrap_err();
    server.start_again();
    assert!(server.keyspace().0.is_empty());
    let second = server.pid().unwrap();
    drop(server);
    assert!(!directory.exists() && !lives(pid) && !lives(second));
}

#[test]
fn a_tls_redis_has_users_of_its_own_and_refuses_plain_text() {
    let server = Redis::start_tls(&[]);
    server.cli(&["ACL", "SETUSER", "writer", "on", ">secret", "~*", "+@all"]);
    assert_eq!(server.cli(&["--user", "writer", "--pass", "secret", "--no-auth-warning", "ACL", "WHOAMI"]), "writer");
    super::redis::cli(server.port, None, &["PING"]).unwrap_err();
}

#[test]
fn a_cluster_serves_every_slot_and_moves_one() {
    let cluster = RedisCluster::start();
    let directories: Vec<PathBuf> = cluster.nodes.iter().map(|node| node.directory().to_owned()).collect();
    let slot = cluster.slot("{a}x");
    assert_eq!(slot, 15_495);
    assert_eq!((cluster.owner(0), cluster.owner(slot)), (0, 2));
    cluster.cli(2, &["SET", "{a}x", "1"]);
    cluster.cli(2, &["SET", "{a}y", "2"]);
    cluster.begin_migration(slot, 2, 0);
    cluster.move_keys(&["{a}x"], 2, 0);
    let moved = cluster.nodes[2].try_cli(&["GET", "{a}x"]).unwrap_err();
    assert!(moved.contains("ASK"), "{moved}");
    cluster.finish_migration(slot, 2, 0);
    assert_eq!(cluster.owner(slot), 0);
    assert_eq!(cluster.cli(0, &["MGET", "{a}x", "{a}y"]), "1\n2");
    assert_eq!(cluster.keyspace().0.len(), 2);
    drop(cluster);
    assert!(directories.iter().all(|directory| !directory.exists()));
}

#[test]
fn sentinels_give_the_replica_the_masters_place() {
    let mut group = Sentinel::start();
    assert_eq!((group.master(), group.sentinel_urls().len()), (0, 3));
    group.servers[0].cli(&["SET", "k", "v"]);
    wait_until("the replica to have the key", || group.servers[1].cli(&["GET", "k"]) == "v");
    group.kill_master();
    assert_eq!(group.master(), 1);
    group.servers[1].cli(&["SET", "k", "w"]);
}

#[test]
fn the_tool_runs_without_the_settings_of_this_process() {
    let outcome = Tool::new().arg("--no-such-option").run();
    assert!(outcome.code.is_some(), "{outcome:?}");
}

/// Only a helper of the next test: starts servers, says where, and waits to be killed.
#[test]
#[ignore = "run by a_killed_test_process_leaves_no_server_behind"]
fn servers_for_a_process_that_is_killed() {
    let Some(file) = std::env::var_os("TBMQ_MIGRATE_TEST_REPORT") else {
        return;
    };
    let redis = Redis::start();
    let postgres = Postgres::shared();
    let report = format!("{}\n{}\n", redis.directory().display(), postgres.directory().display());
    std::fs::write(Path::new(&file).with_extension("draft"), report).unwrap();
    std::fs::rename(Path::new(&file).with_extension("draft"), &file).unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_killed_test_process_leaves_no_server_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let report = scratch.path().join("report");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "support::selftest::servers_for_a_process_that_is_killed"])
        .env("TBMQ_MIGRATE_TEST_REPORT", &report)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let directories = wait_for("the servers of the other process", || std::fs::read_to_string(&report).ok());
    let directories: Vec<&Path> = directories.lines().map(Path::new).collect();
    assert!(directories.len() == 2 && directories.iter().all(|directory| directory.exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the directories to be removed", || directories.iter().all(|directory| !directory.exists()));
}

#[test]
fn a_taken_port_and_a_broken_start_are_told_apart() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let command = ["redis-server", "--bind", "127.0.0.1", "--port", &port].map(str::to_owned);
    let mut guard = Guard::new("KILL");
    let refused = guard.start(&command, "Ready to accept connections");
    assert!(matches!(refused, Err(StartError::PortTaken)));
    let broken = std::panic::catch_unwind(|| Redis::start_with(&["--no-such-setting", "1"]));
    assert!(broken.is_err());
}
