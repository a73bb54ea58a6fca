//! One server: its databases and the broker's prefix.

use super::assert_refused;
use crate::sessions::{Sessions, migrate};
use crate::support::keyspace::Keyspace;
use crate::support::redis::Redis;

#[test]
fn a_database_index_in_the_address_is_where_the_sessions_go() {
    let (redis, sessions) = (Redis::start(), Sessions::new(3, 4).with_lone_contexts(2));
    sessions.assert_all_migrated(&migrate(&sessions.load(), &format!("{}/5", redis.url())).run());
    assert!(redis.keyspace().0.is_empty(), "database 0 stays empty");
    let mut connection = redis.connection();
    redis::cmd("SELECT").arg(5).exec(&mut connection).unwrap();
    sessions.assert_stand_in(&Keyspace::read(&mut connection), "");
}

#[test]
fn a_database_that_the_server_does_not_have_is_named() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 1));
    let outcome = migrate(&sessions.load(), &format!("{}/99", redis.url())).run();
    assert_refused(&outcome, 4, &["DB index is out of range", "hint: check the database"]);
}

#[test]
fn every_key_begins_with_the_prefix_and_another_prefix_is_others() {
    let (redis, sessions) = (Redis::start(), Sessions::new(3, 4).with_lone_contexts(2));
    redis.cli(&["SET", "{c-0000}_last_packet_id", "9"]);
    let outcome = migrate(&sessions.load(), &redis.url()).args(["--key-prefix", "tb*:"]).run();
    sessions.assert_all_migrated(&outcome);
    assert_eq!(redis.cli(&["GET", "{c-0000}_last_packet_id"]), "9");
    redis.cli(&["DEL", "{c-0000}_last_packet_id"]);
    sessions.assert_stand_in(&redis.keyspace(), "tb*:");
}

#[test]
fn a_server_that_is_not_what_the_mode_says_is_refused() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 1));
    let outcome = migrate(&sessions.load(), &redis.url()).args(["--redis-mode", "cluster"]).run();
    assert_refused(&outcome, 4, &["runs in standalone mode, not in cluster mode", "--redis-mode"]);
}

#[test]
fn two_servers_that_form_nothing_together_are_refused() {
    let (first, second, sessions) = (Redis::start(), Redis::start(), Sessions::new(1, 1));
    let outcome = migrate(&sessions.load(), &format!("{},{}", first.url(), second.url())).run();
    assert_refused(&outcome, 4, &["a standalone server, and 2 addresses are given", "hint: give one address"]);
    assert!(first.keyspace().0.is_empty() && second.keyspace().0.is_empty());
}

#[test]
fn a_replica_is_refused_and_the_way_out_named() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 1));
    let port = redis.port.to_string();
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &port]);
    let outcome = migrate(&sessions.load(), &replica.url()).run();
    assert_refused(&outcome, 4, &["is a replica", "--redis-mode sentinel"]);
}

#[test]
fn an_address_where_nobody_listens_is_named() {
    let sessions = Sessions::new(1, 1);
    let port = crate::support::poll::free_port();
    let outcome = migrate(&sessions.load(), &format!("redis://user:s3cret@127.0.0.1:{port}")).run();
    assert_refused(&outcome, 4, &[&format!("cannot connect to Redis at redis://user@127.0.0.1:{port}/0"), "check host and port"]);
}
