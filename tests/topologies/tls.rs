//! TLS: whom the tool trusts, and what it says when the two sides do not agree.

use super::assert_refused;
use crate::sessions::{Sessions, migrate};
use crate::support::redis::Redis;

/// Everything in database 0 of a TLS server, by a second, plain port.
fn with_a_plain_port(arguments: &[&str]) -> (Redis, u16) {
    let port = crate::support::poll::free_port();
    let text = port.to_string();
    let mut all = vec!["--port", text.as_str()];
    all.extend(arguments);
    (Redis::start_tls(&all), port)
}

fn keyspace(port: u16) -> crate::support::keyspace::Keyspace {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    crate::support::keyspace::Keyspace::read(&mut client.get_connection().unwrap())
}

#[test]
fn a_server_under_an_authority_of_its_own_is_trusted_by_the_file() {
    let ((redis, plain), sessions) = (with_a_plain_port(&[]), Sessions::new(3, 4));
    let outcome = migrate(&sessions.load(), &redis.url()).arg("--redis-ca-cert").arg(redis.authority()).run();
    sessions.assert_all_migrated(&outcome);
    sessions.assert_stand_in(&keyspace(plain), "");
}

#[test]
fn without_the_file_an_unknown_authority_is_refused_and_the_option_named() {
    let (redis, sessions) = (Redis::start_tls(&[]), Sessions::new(1, 1));
    assert_refused(&migrate(&sessions.load(), &redis.url()).run(), 4, &["cannot connect to Redis", "certificate", "--redis-ca-cert"]);
}

#[test]
fn plain_text_to_a_tls_port_is_refused_and_rediss_named() {
    let (redis, sessions) = (Redis::start_tls(&[]), Sessions::new(1, 1));
    let outcome = migrate(&sessions.load(), &redis.url().replace("rediss:", "redis:")).run();
    assert_refused(&outcome, 4, &["cannot connect to Redis", "(rediss:// is for TLS)"]);
}

#[test]
fn tls_to_a_plain_port_is_refused_and_redis_named() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 1));
    let outcome = migrate(&sessions.load(), &redis.url().replace("redis:", "rediss:")).run();
    assert_refused(&outcome, 4, &["cannot connect to Redis", "(redis:// is for plain text)"]);
}

#[test]
fn a_server_that_wants_a_certificate_gets_one() {
    let ((redis, plain), sessions) = (with_a_plain_port(&["--tls-auth-clients", "yes"]), Sessions::new(2, 3));
    let database = sessions.load();
    let call = || migrate(&database, &redis.url()).arg("--redis-ca-cert").arg(redis.authority());
    assert_refused(&call().run(), 4, &["cannot connect to Redis", "--redis-client-cert"]);
    let [certificate, key] = ["server.crt", "server.key"].map(|name| redis.directory().join(name));
    let outcome = call().arg("--redis-client-cert").arg(certificate).arg("--redis-client-key").arg(key).run();
    sessions.assert_all_migrated(&outcome);
    sessions.assert_stand_in(&keyspace(plain), "");
}
