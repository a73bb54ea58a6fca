//! What keeps a comparison from beginning: each with its exit code and a text that names the thing.

use super::{Carried, verify};
use crate::runs::scene::assert_ends;
use crate::sessions::Sessions;
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;

#[test]
fn options_that_contradict_each_other_are_2() {
    let carried = Carried::new(&Sessions::new(1, 1));
    for (options, says) in [
        (&["--redis-only", "--client", "a"][..], "--redis-only"),
        (&["--sample", "5%", "--client", "a"], "--sample"),
        (&["--no-such-option"], "--no-such-option"),
    ] {
        let outcome = carried.verify().args(options).run();
        assert_ends(&outcome, 2, &["error: ", says]);
        assert_eq!(outcome.stdout, "", "{options:?}");
    }
}

#[test]
fn values_that_cannot_be_used_are_3() {
    let carried = Carried::new(&Sessions::new(1, 1));
    for (name, values) in [
        ("--sample", &["0%", "5", "101%", "0.001%", "-5%", "%", "5 %"][..]),
        ("--level", &["x", "FULL", ""]),
        ("--settle-timeout", &["soon", "-1s"]),
        ("--max-rate", &["0", "fast"]),
        ("--deadline-tolerance", &["1x"]),
    ] {
        for value in values {
            let outcome = carried.verify().arg(format!("{name}={value}")).run();
            assert_ends(&outcome, 3, &[&format!("error: {name}")]);
            assert_eq!(outcome.stdout, "", "{name}={value}");
        }
    }
    assert_ends(&crate::support::tool::Tool::new().arg("verify").run(), 3, &["error: "]);
}

#[test]
fn a_report_that_cannot_be_written_is_4_before_anything_is_read() {
    let carried = Carried::new(&Sessions::new(1, 1));
    let scratch = tempfile::tempdir().unwrap();
    for path in [scratch.path().to_owned(), scratch.path().join("no/such/place")] {
        let outcome = carried.verify().arg("--report").arg(&path).run();
        assert_ends(&outcome, 4, &[&format!("error: cannot open {}", path.display()), "hint: check the path and the rights of --report"]);
    }
}

#[test]
fn sides_that_cannot_be_compared_are_4_with_a_hint() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 1));
    let database = sessions.load();
    let nobody = crate::support::poll::free_port();
    let with = |url: String| Database { url, ..database.clone() };
    let wrong_port = with(database.url.replace(&format!(":{}/", database.port), &format!(":{nobody}/")));
    let wrong_password = with(database.url.replace("correct%20horse", "wrong"));
    let without_tables = Postgres::shared().database();
    for (database, url, says) in [
        (&wrong_port, redis.url(), "cannot connect to PostgreSQL"),
        (&wrong_password, redis.url(), "password"),
        (&without_tables, redis.url(), "device_publish_msg"),
        (&database, format!("redis://127.0.0.1:{nobody}"), "cannot connect to Redis"),
        (&database, redis.url().replace("redis://", "redis://:wrong@"), "check user and password"),
    ] {
        let outcome = verify(database, &url).run();
        assert_ends(&outcome, 4, &["error: ", "hint: ", says]);
        assert_eq!(outcome.stdout, "");
    }
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &redis.port.to_string()]);
    assert_ends(&verify(&database, &replica.url()).run(), 4, &["is a replica", "hint: name the master"]);
}

#[test]
fn a_standby_is_refused_for_what_it_lacks_may_be_on_its_way() {
    let (primary, redis, sessions) = (Postgres::start(&[]), Redis::start(), Sessions::new(1, 1));
    let database = primary.database();
    sessions.load_into(&database);
    let standby = primary.standby();
    let behind = Database { url: database.url.replace(&primary.port().to_string(), &standby.port().to_string()), port: standby.port(), ..database };
    assert_ends(&verify(&behind, &redis.url()).run(), 4, &["is a standby", "hint: name the primary in --postgres-url"]);
}
