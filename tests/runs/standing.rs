//! Sessions that stand in Redis before a run, and the guard before any is removed.

use super::scene::{Scene, assert_ends, assert_same};
use crate::support::keyspace::Keyspace;

/// Three keys of one session with one message.
fn put(scene: &Scene, prefix: &str, client: &str) {
    let set = format!("{prefix}{{{client}}}_messages");
    scene.redis.cli(&["SET", &format!("{set}_7"), "old", "EX", "3600"]);
    scene.redis.cli(&["ZADD", &set, "7", &format!("{set}_7")]);
    scene.redis.cli(&["SET", &format!("{prefix}{{{client}}}_last_packet_id"), "7"]);
}

fn is_there(keys: &Keyspace, client: &str) -> bool {
    keys.0.keys().any(|key| String::from_utf8_lossy(key).starts_with(&format!("{{{client}}}_")))
}

#[test]
fn a_session_that_stands_there_is_named_and_nothing_is_written() {
    let scene = Scene::empty();
    scene.add_sessions("a", 3);
    put(&scene, "", "bro\x1b[31mker");
    let before = scene.contents();
    let outcome = scene.migrate().run();
    assert_ends(
        &outcome,
        4,
        &["error: sessions stand in Redis already, such as that of bro\\u{1b}[31mker\n", "hint: a 2.x broker may own them", "--on-existing replace"],
    );
    assert!(!outcome.stderr.contains('\x1b'), "{outcome:#?}");
    assert_eq!(outcome.stdout, "");
    assert_same(&scene.contents(), &before, "refused");
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
}

#[test]
fn one_key_of_any_kind_is_a_session_that_stands_there() {
    for line in ["SET {x}_messages_1 a EX 60", "ZADD {x}_messages 1 {x}_messages_1", "SET {x}_last_packet_id 1", "HSET {x}_messages f v"] {
        let scene = Scene::empty();
        scene.redis.cli(&line.split(' ').collect::<Vec<_>>());
        assert_ends(&scene.migrate().run(), 4, &["such as that of x\n"]);
    }
}

#[test]
fn keys_under_another_prefix_and_keys_of_others_do_not_stand_in_the_way() {
    let scene = Scene::empty();
    scene.add_sessions("a", 1);
    put(&scene, "other:", "a-01");
    for line in
        ["SET clientMqttVersion::a-01 5", "SET {a-01} x", "SET {a-01}_messages_0 x", "HSET p:{a-01}_messagesx f v", "SET {a-01}_messages_70000 x"]
    {
        scene.redis.cli(&line.split(' ').collect::<Vec<_>>());
    }
    let before = scene.contents();
    assert_ends(&scene.migrate().args(["--key-prefix", "p:"]).run(), 0, &[]);
    let after = scene.contents();
    let (ours, others): (Vec<_>, Vec<_>) =
        after.0.into_iter().partition(|(key, _)| key.starts_with(b"p:{a-01}_m") && !key.ends_with(b"x") || key.starts_with(b"p:{a-01}_l"));
    assert_eq!(ours.len(), 12);
    assert_same(&Keyspace(others.into_iter().collect()), &before, "beside the run");
}

#[test]
fn replacing_takes_acknowledged_messages_and_forgotten_sessions_away_and_nothing_else() {
    let scene = Scene::empty();
    scene.add_sessions("a", 40);
    let mut expected = scene.undisturbed(&[]);
    // Of one session an acknowledged message; two sessions that PostgreSQL does not know, one of them a single string.
    put(&scene, "", "a-01");
    put(&scene, "", "gone");
    scene.redis.cli(&["SET", "{stray}_messages_5", "old", "EX", "3600"]);
    put(&scene, "other:", "gone");
    // Known to PostgreSQL, so that two of 42 are below one in twenty.
    for n in 2..=40 {
        put(&scene, "", &format!("a-{n:02}"));
    }
    for line in ["SET cache::x 1", "HSET {foreign}_messages f v", "SADD {gone}_x m"] {
        scene.redis.cli(&line.split(' ').collect::<Vec<_>>());
    }
    let foreign = scene
        .contents()
        .0
        .into_iter()
        .filter(|(key, _)| [&b"cache"[..], b"other:", b"{foreign}", b"{gone}_x"].iter().any(|start| key.starts_with(start)));
    expected.0.extend(foreign);
    let outcome = scene.migrate().args(["--on-existing", "replace", "--json"]).run();
    assert_ends(&outcome, 0, &[]);
    assert_same(&scene.contents(), &expected, "replaced");
    assert_eq!(outcome.json()["sessions_removed"], 2, "{outcome:#?}");
}

/// 20 sessions stand in Redis, `unknown` of them are not in PostgreSQL.
fn scene_with_unknown(unknown: u32) -> Scene {
    let scene = Scene::empty();
    scene.add_sessions("a", 20 - unknown);
    (1..=20 - unknown).for_each(|n| put(&scene, "", &format!("a-{n:02}")));
    (1..=unknown).for_each(|n| put(&scene, "", &format!("gone-{n:02}")));
    scene
}

#[test]
fn one_session_in_twenty_is_removed_without_a_word_and_two_are_not() {
    let scene = scene_with_unknown(1);
    let outcome = scene.migrate().args(["--on-existing", "replace", "--json"]).run();
    assert_ends(&outcome, 0, &[]);
    assert_eq!(outcome.json()["sessions_removed"], 1);
    assert!(!is_there(&scene.contents(), "gone-01"));

    let scene = scene_with_unknown(2);
    let before = scene.contents();
    let refused = scene.migrate().args(["--on-existing", "replace"]).run();
    let text = "error: 2 of 20 sessions in Redis are not in PostgreSQL and would be removed, more than 5 %\n";
    assert_ends(
        &refused,
        4,
        &[text, "hint: check --postgres-url, --redis-url and --key-prefix; if the sessions really are to go: --allow-removals 2\n"],
    );
    assert_same(&scene.contents(), &before, "refused");
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
}

#[test]
fn as_many_as_are_allowed_go_and_one_more_does_not() {
    let scene = scene_with_unknown(3);
    let before = scene.contents();
    let call = |allowed: &str| scene.migrate().args(["--on-existing", "replace", "--json", "--allow-removals", allowed]).run();
    assert_ends(
        &call("2"),
        4,
        &["error: 3 of 20 sessions in Redis are not in PostgreSQL and would be removed, more than the 2 allowed\n", "--allow-removals 3\n"],
    );
    assert_same(&scene.contents(), &before, "refused");
    let outcome = call("3");
    assert_ends(&outcome, 0, &[]);
    assert_eq!(outcome.json()["sessions_removed"], 3);
    assert_same(&scene.contents(), &scene.undisturbed(&[]), "allowed");
}

#[test]
fn an_empty_source_removes_nothing_unless_it_is_told_how_many() {
    let scene = Scene::empty();
    put(&scene, "", "last");
    let before = scene.contents();
    let refused = scene.migrate().args(["--on-existing", "replace"]).run();
    assert_ends(&refused, 4, &["error: both tables are empty, and 1 of 1 sessions in Redis would be removed\n", "--allow-removals 1\n"]);
    assert_same(&scene.contents(), &before, "refused");
    assert_ends(&scene.migrate().args(["--on-existing", "replace", "--allow-removals", "1"]).run(), 0, &[]);
    assert_eq!(scene.keys(), 0);
}

#[test]
fn sessions_that_vanish_from_postgresql_while_a_run_goes_on_are_guarded_at_its_end_too() {
    let scene = Scene::empty();
    scene.add_sessions("a", 20);
    (1..=20).for_each(|n| put(&scene, "", &format!("a-{n:02}")));
    let call = || scene.migrate().args(["--on-existing", "replace", "--json"]);
    super::scene::assert_died(&call().env("TBMQ_MIGRATE_FAILPOINT", "chunk_recorded").run());
    scene.let_leases_run_out();
    scene.sql("truncate device_publish_msg, device_session_ctx");
    let before = scene.keys();
    assert_ends(&call().run(), 9, &["error: both tables are empty, and 20 of 20 sessions in Redis would be removed\n", "--allow-removals 20\n"]);
    assert_eq!(scene.keys(), before);
}
