//! The page as a whole: what is ready, sides that cannot be reached, the two forms, the settings.

use std::collections::BTreeSet;

use super::{between, look, look_by, of, read, ready};
use crate::runs::scene::Scene;
use crate::support::poll::{free_port, wait_until};
use crate::support::tool::Tool;

#[test]
fn two_sides_that_are_ready_have_no_blocker_and_a_forecast_of_every_row() {
    let scene = ready();
    let page = look(&scene);
    assert_eq!(page.outcome.code, Some(0));
    assert_eq!(page.outcome.stderr, "");
    let warnings: Vec<&str> = page.document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["level"] == "warning")
        .map(|finding| finding["name"].as_str().unwrap())
        .collect();
    assert_eq!(warnings, ["persistence"], "the servers of the tests keep nothing on disk");
    for (name, count) in [("rows", 20), ("sessions", 2), ("messages_migrated", 20), ("quarantined", 0), ("trimmed", 0), ("rows_looked_at", 20)] {
        assert_eq!(page.forecast(name), count, "{name}");
    }
    assert_eq!(page.document["forecast"]["exact"], true);
    assert!(page.document["forecast"]["copy_seconds"].as_f64().unwrap() > 0.0);
    assert!(page.next().contains("`tbmq-migrate migrate`") && page.next().contains("--dry-run"), "{}", page.next());
    assert_eq!(scene.migrate().run().code, Some(0));
}

#[test]
fn the_document_has_the_same_fields_in_each_finding() {
    let page = look(&ready());
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&page.document), ["blockers", "findings", "forecast", "next_steps", "ready", "warnings"]);
    let mut areas = BTreeSet::new();
    for finding in page.document["findings"].as_array().unwrap() {
        assert_eq!(keys(finding), ["area", "level", "measured", "mend", "name"]);
        areas.insert(finding["area"].as_str().unwrap().to_owned());
    }
    assert_eq!(areas.into_iter().collect::<Vec<_>>(), ["data", "modes", "postgresql", "redis", "settings"]);
}

#[test]
fn the_page_fits_a_terminal_of_100_columns_and_ends_with_what_to_do() {
    let scene = ready();
    let outcome = Tool::new().args(["check", "--postgres-url", &scene.database.url, "--redis-url", &scene.redis.url()]).run();
    assert_eq!(outcome.code, Some(0));
    let page = outcome.stdout;
    assert!(page.starts_with("0 blockers, 1 warning, "), "{page}");
    for heading in ["\nPostgreSQL\n", "\nRedis\n", "\nData\n", "\nSettings\n", "\nModes\n"] {
        assert!(page.contains(heading), "{heading:?} in {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    assert!(page.lines().last().unwrap().starts_with("next: "), "{page}");
}

#[test]
fn a_source_that_is_not_there_or_refuses_the_login_is_one_blocker_and_redis_is_still_looked_at() {
    let scene = ready();
    let url = &scene.database.url;
    for (url, text, hint) in [
        (format!("postgres://tbmq:pw@127.0.0.1:{}/tbmq", free_port()), "onnection refused", "check host and port in --postgres-url"),
        (url.replace("correct%20horse", "wrong"), "password authentication failed", "check user and password in --postgres-url"),
        (url.replace(&format!("/{}", scene.database.name), "/tmbq"), "\"tmbq\" does not exist", "check the database name in --postgres-url"),
    ] {
        let page = look_by(&scene, between(&url, &scene.redis.url()));
        let mend = page.assert("connection", "blocker", text);
        assert!(mend.starts_with(hint), "{mend}");
        assert_eq!((page.blockers(), page.finding("connection")["area"].as_str()), (vec!["connection"], Some("postgresql")));
        page.assert("version", "ok", "Redis 7");
        page.assert("rights", "ok", "");
        page.assert("mode_migrate", "warning", "not ready because of connection");
        page.assert("mode_dual_write_wal", "warning", "PostgreSQL cannot be reached");
    }
}

#[test]
fn a_target_that_is_not_there_or_refuses_the_login_is_one_blocker_and_the_source_is_still_looked_at() {
    let scene = ready();
    scene.redis.cli(&["CONFIG", "SET", "requirepass", "right"]);
    let port = scene.redis.port;
    for (url, text, hint) in [
        (format!("redis://127.0.0.1:{}", free_port()), "onnection refused", "check host and port in --redis-url"),
        (format!("redis://:wrong@127.0.0.1:{port}"), "cannot connect to Redis at redis://127.0.0.1", "check user and password in --redis-url"),
        (format!("redis://:right@127.0.0.1:{port}/77"), "DB index is out of range", "check the database at the end of --redis-url"),
    ] {
        let page = read(between(&scene.database.url, &url));
        let mend = page.assert("connection", "blocker", text);
        assert!(mend.starts_with(hint), "{mend}");
        assert_eq!(page.blockers(), ["connection"]);
        assert_eq!((page.forecast("rows"), page.forecast("messages_migrated")), (20, 20));
        assert!(page.document["forecast"]["memory_bytes_per_shard"].as_array().unwrap().is_empty());
        page.assert("copy_time", "warning", "unknown");
    }
}

#[test]
fn both_sides_that_are_not_there_are_two_blockers() {
    let port = free_port();
    let page = read(between(&format!("postgres://u:s3cret@127.0.0.1:{port}/d"), &format!("redis://:s3cret@127.0.0.1:{port}")));
    assert_eq!(page.blockers(), ["connection", "connection"]);
    assert!(!format!("{:?}", page.outcome).contains("s3cret"));
}

#[test]
fn another_mode_than_the_server_is_in_and_a_value_that_cannot_be_used() {
    let scene = ready();
    let page = look_by(&scene, of(&scene).args(["--redis-mode", "cluster"]));
    page.assert("connection", "blocker", "runs in standalone mode, not in cluster mode");
    let outcome = of(&scene).args(["--message-limit", "70000"]).run();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    assert_eq!(Tool::new().arg("check").run().code, Some(3));
    assert_eq!(Tool::new().args(["check", "--jobs", "2"]).run().code, Some(2));
}

#[test]
fn settings_that_differ_from_the_brokers_own_are_named_with_both_places() {
    let scene = ready();
    let directory = tempfile::tempdir().unwrap();
    let env = directory.path().join("tbmq.env");
    let text = "CACHE_PREFIX=tb:\nMQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_LIMIT=1000\n\
                MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL=3600\nREDIS_HOST=h\nREDIS_DB=3\n";
    std::fs::write(&env, text).unwrap();
    let with_env = || of(&scene).arg("--tbmq-env").arg(&env);
    let page = look_by(&scene, with_env().args(["--message-limit", "500", "--default-ttl", "7d", "--key-prefix", ""]));
    let found: Vec<&str> = page.all("contradiction").iter().map(|finding| finding["measured"].as_str().unwrap()).collect();
    let path = env.display();
    assert_eq!(
        found,
        [
            format!("key-prefix is \"\" (option), and \"tb:\" in TBMQ env file {path}:1 (CACHE_PREFIX)"),
            format!("message-limit is 500 (option), and 1000 in TBMQ env file {path}:2 (MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_LIMIT)"),
            format!("default-ttl is 604800 s (option), and 3600 s in TBMQ env file {path}:3 (MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL)"),
            format!("redis-url is database 0 (option), and database 3 in TBMQ env file {path}:4 (REDIS_HOST)"),
        ]
    );
    assert_eq!(page.document["ready"], true);
    let by_env = Tool::new().args(["check", "--json", "--postgres-url", &scene.database.url, "--redis-url", &format!("{}/3", scene.redis.url())]);
    let page = look_by(&scene, by_env.arg("--tbmq-env").arg(&env));
    assert!(!page.has("contradiction"), "{:#}", page.document);
    page.assert("in_use", "ok", "key prefix \"tb:\", message limit 1000, default TTL 3600 s, field topicName");
    look_by(&scene, of(&scene).args(["--topic-field", "topic"])).assert("topic_field", "warning", "a target of 2.0.0 alone");
}

#[test]
fn a_run_that_was_interrupted_is_what_comes_next() {
    let scene = ready();
    let died = scene.migrate().env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run();
    assert_eq!(died.code, None, "{died:?}");
    let page = look(&scene);
    assert!(page.next().starts_with("go on with the interrupted run 1: `tbmq-migrate migrate`"), "{}", page.next());
    scene.let_leases_run_out();
    assert_eq!(scene.migrate().run().code, Some(0));
    let page = look(&scene);
    page.assert("session_keys", "warning", "sessions stand under the key prefix already (2)");
    assert!(page.next().contains("--on-existing replace"), "{}", page.next());
}

#[test]
fn a_signal_ends_it_with_its_own_code() {
    let scene = Scene::empty();
    // A server that never answers keeps it busy until the signal.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("postgres://u:p@127.0.0.1:{}/d?sslmode=disable", silent.local_addr().unwrap().port());
    let call = between(&url, &scene.redis.url()).spawn();
    let (_held, _) = silent.accept().unwrap();
    call.signal("TERM");
    let outcome = call.wait();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(130), ""));
    assert!(outcome.stderr.contains("a second signal stops at once") && outcome.stderr.ends_with("error: stopped before the end\n"), "{outcome:?}");
    wait_until("nothing to be left", || scene.keys() == 0);
}
