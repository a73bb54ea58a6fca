//! Some sessions only: `--client` and `--clients-file`.

use super::scene::{Scene, assert_ends, assert_same};
use crate::support::keyspace::Keyspace;

/// The keys of some sessions among all.
fn only(keys: &Keyspace, clients: &[&str]) -> Keyspace {
    let of = |key: &[u8]| clients.iter().any(|client| key.starts_with(format!("{{{client}}}_").as_bytes()));
    Keyspace(keys.0.iter().filter(|(key, _)| of(key)).map(|(key, value)| (key.clone(), value.clone())).collect())
}

#[test]
fn only_the_named_sessions_are_copied_whatever_their_ids_are_made_of() {
    let scene = Scene::stocked();
    let all = scene.undisturbed(&[]);
    let odd = [" leading space", "{", "a{b}c", "*?[x]", "\"double\" 'single' \\back\\", "Zoë 🚀 ключ", "$SYS/%41:1"];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids");
    std::fs::write(&file, odd.join("\n") + "\nbadge-05\n").unwrap();
    let outcome = scene
        .migrate()
        .args(["--json", "--client", "device-007", "--client", "ss_audit_#", "--client", "*", "--client", "nobody", "--clients-file"])
        .arg(&file)
        .run();
    assert_ends(&outcome, 0, &[]);
    let mut named = odd.to_vec();
    named.extend(["device-007", "ss_audit_#", "badge-05"]);
    assert_same(&scene.contents(), &only(&all, &named), "named");
    let report = outcome.json();
    // Ten rows of the device, five of the group, two of each odd one.
    assert_eq!((&report["sessions"], &report["rows_read"]), (&10.into(), &(10 + 5 + 14).into()), "{report:#}");
}

#[test]
fn sessions_that_are_not_named_stay_as_they_are_and_named_ones_are_guarded() {
    let scene = Scene::empty();
    scene.add_sessions("a", 3);
    let all = scene.undisturbed(&[]);
    for client in ["a-01", "a-02", "gone", "other"] {
        scene.redis.cli(&["SET", &format!("{{{client}}}_last_packet_id"), "999"]);
        scene.redis.cli(&["ZADD", &format!("{{{client}}}_messages"), "9", &format!("{{{client}}}_messages_9")]);
        scene.redis.cli(&["SET", &format!("{{{client}}}_messages_9"), "old", "EX", "3600"]);
    }
    let before = scene.contents();
    let refused = scene.migrate().args(["--client", "a-03", "--client", "a-01"]).run();
    assert_ends(&refused, 4, &["such as that of a-01\n"]);
    assert_same(&scene.contents(), &before, "refused");

    // A session that does not stand there is copied beside those that do.
    assert_ends(&scene.migrate().args(["--client", "a-03"]).run(), 0, &[]);
    let mut expected = before.clone();
    expected.0.extend(only(&all, &["a-03"]).0);
    assert_same(&scene.contents(), &expected, "beside");

    let replace = |more: &[&str]| scene.migrate().args(["--on-existing", "replace", "--client", "a-01", "--client", "gone"]).args(more).run();
    assert_ends(&replace(&[]), 4, &["error: 1 of 2 sessions in Redis are not in PostgreSQL", "--allow-removals 1\n"]);
    assert_same(&scene.contents(), &expected, "guarded");
    assert_ends(&replace(&["--allow-removals", "1"]), 0, &[]);
    expected.0.retain(|key, _| !key.starts_with(b"{a-01}") && !key.starts_with(b"{gone}"));
    expected.0.extend(only(&all, &["a-01"]).0);
    assert_same(&scene.contents(), &expected, "replaced");
}

#[test]
fn another_list_of_sessions_is_another_run() {
    let scene = Scene::empty();
    scene.add_sessions("a", 3);
    let died = scene.migrate().args(["--client", "a-01"]).env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run();
    super::scene::assert_died(&died);
    scene.let_leases_run_out();
    assert_ends(&scene.migrate().args(["--client", "a-02"]).run(), 4, &["was interrupted and had other settings: 1 named session"]);
    assert_ends(&scene.migrate().args(["--client", "a-01"]).run(), 0, &[]);
    // What stands between braces decides the slot, but not which session is meant.
    let died = scene.migrate().args(["--client", "{x}a", "--client", "b"]).env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run();
    super::scene::assert_died(&died);
    scene.let_leases_run_out();
    assert_ends(&scene.migrate().args(["--client", "{x}c", "--client", "b"]).run(), 4, &["was interrupted and had other settings: 2 named"]);
    assert_ends(&scene.migrate().args(["--client", "b", "--client", "{x}a"]).run(), 0, &[]);
}

#[test]
fn a_thousand_named_sessions_come_in_any_order_and_repeated() {
    let scene = Scene::stocked();
    let ids = scene.sql(
        "select client_id from (select client_id from device_session_ctx union select client_id from device_publish_msg) s order by md5(client_id)",
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids");
    let nobody: String = (0..800).map(|n| format!("nobody-{n}\n")).collect();
    std::fs::write(&file, format!("{ids}\r\n{nobody}{ids}\n")).unwrap();
    let outcome = scene.migrate_stock().arg("--clients-file").arg(&file).run();
    super::scene::assert_stock_is_carried(&outcome, "all named");
    assert_same(&scene.contents(), &scene.undisturbed(&["--message-limit", super::scene::LIMIT]), "all named");
}
