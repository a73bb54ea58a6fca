//! Runs that record nothing: `--stateless` and `--dry-run`.

use super::scene::{FIGURES, LIMIT, Scene, assert_ends, assert_same, assert_stock_is_carried, wait_for_keys};
use crate::support::postgres::Database;

/// The same database for a fresh role that may log in, and nothing else.
pub fn as_role(database: &Database, role: &str) -> Database {
    database.psql(&format!("create role \"{role}\" login password 'secret'; revoke create on schema public from public"));
    let rest = database.url.split_once('@').unwrap().1;
    let user: String = role.bytes().map(|byte| format!("%{byte:02x}")).collect();
    Database { url: format!("postgres://{user}:secret@{rest}"), ..database.clone() }
}

/// What of the hint is SQL: from the first `grant` to the semicolon that ends it.
pub fn hinted_grants(stderr: &str) -> String {
    let hint = stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_else(|| panic!("no hint: {stderr}"));
    let from = hint.find("grant ").unwrap_or_else(|| panic!("no grant in {hint}"));
    let to = hint.rfind(';').unwrap_or_else(|| panic!("no end of the SQL in {hint}"));
    hint[from..=to].to_owned()
}

#[test]
fn a_role_that_may_only_read_the_two_tables_can_run_without_a_state() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    let name = format!("reader_{}", scene.database.name);
    let reader = as_role(&scene.database, &name);
    scene.sql(&format!("grant select on device_publish_msg, device_session_ctx to {name}"));
    let scene = Scene { database: reader, ..scene };
    let outcome = scene.migrate_stock().arg("--stateless").run();
    assert_stock_is_carried(&outcome, "stateless");
    assert_eq!(outcome.json()["run"], serde_json::Value::Null);
    assert_same(&scene.contents(), &expected, "stateless");
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
}

#[test]
fn without_the_right_to_make_a_schema_the_hint_says_which_grant_mends_it() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    let name = format!("Maker-{}", scene.database.name);
    let maker = as_role(&scene.database, &name);
    scene.sql(&format!("grant select on device_publish_msg, device_session_ctx to \"{name}\""));
    let owner = scene.database.clone();
    let scene = Scene { database: maker, ..scene };
    let outcome = scene.migrate().run();
    assert_ends(&outcome, 4, &["error: cannot prepare the schema tbmq_migrate\n", "permission denied for database", "--stateless"]);
    assert_eq!(scene.keys(), 0, "nothing is left of the probe");
    owner.psql(&hinted_grants(&outcome.stderr));
    assert_ends(&scene.migrate().run(), 0, &[]);
    assert_eq!(scene.keys(), 24);
}

#[test]
fn a_schema_that_another_role_made_is_named_with_the_grants_that_open_it() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    assert_ends(&scene.migrate().run(), 0, &[]);
    let name = format!("second_{}", scene.database.name);
    let second = as_role(&scene.database, &name);
    scene.sql(&format!("grant select on device_publish_msg, device_session_ctx to {name}"));
    let owner = scene.database.clone();
    let scene = Scene { database: second, ..scene };
    let outcome = scene.migrate().args(["--on-existing", "replace"]).run();
    assert_ends(&outcome, 4, &["error: cannot prepare the schema tbmq_migrate\n", "permission denied"]);
    owner.psql(&hinted_grants(&outcome.stderr));
    assert_ends(&scene.migrate().args(["--on-existing", "replace"]).run(), 0, &[]);
}

#[test]
fn an_interrupted_run_without_a_state_begins_again() {
    let scene = Scene::stocked();
    let expected = scene.undisturbed(&["--message-limit", LIMIT]);
    let mut first = scene.migrate_stock().args(["--stateless", "--max-rate", "1500"]).spawn();
    wait_for_keys(&scene, &mut first, 300);
    first.signal("INT");
    assert_ends(&first.wait(), 130, &["hint: nothing was recorded: run again, with --on-existing replace"]);
    assert_ends(&scene.migrate_stock().arg("--stateless").run(), 4, &["error: sessions stand in Redis already"]);
    assert_stock_is_carried(&scene.migrate_stock().args(["--stateless", "--on-existing", "replace"]).run(), "again");
    let mut found = scene.contents();
    // The note of the first call ends by itself, after 30 days.
    found
        .0
        .retain(|key, value| !(key.starts_with(b"tbmq-migrate:") && matches!(value, crate::support::keyspace::Value::Other(kind) if kind == "hash")));
    assert_same(&found, &expected, "again");
}

#[test]
fn a_dry_run_writes_nothing_and_counts_what_the_run_itself_counts() {
    let scene = Scene::stocked();
    // Two rows that cannot be carried: of a device its third, and one of the group.
    scene.sql(
        "update device_publish_msg set packet_id = null where client_id = 'device-001' and serial_number = 102;
         update device_publish_msg set qos = 3 where client_id = 'ss_audit_#' and serial_number = 4",
    );
    let directory = tempfile::tempdir().unwrap();
    let list = |name: &str| directory.path().join(name);
    scene.redis.cli(&["SET", "cache::x", "1"]);
    let before = scene.contents();
    let dry = scene.migrate_stock().args(["--dry-run", "--quarantine-file"]).arg(list("dry")).run();
    assert_ends(&dry, 10, &[]);
    assert_same(&scene.contents(), &before, "dry run");
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
    let dry = dry.json();
    assert_eq!((&dry["dry_run"], &dry["run"], &dry["quarantined"]), (&true.into(), &serde_json::Value::Null, &2.into()));

    let real = scene.migrate_stock().arg("--quarantine-file").arg(list("real")).run();
    assert_ends(&real, 10, &[]);
    let real = real.json();
    for (name, count) in FIGURES {
        let expected = match name {
            "quarantined" => 2,
            "messages_migrated" => count - 2,
            _ => count,
        };
        assert_eq!((&dry[name], &real[name]), (&expected.into(), &expected.into()), "{name}");
    }
    let lines = |name: &str| {
        let text = std::fs::read_to_string(list(name)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines("dry"), lines("real"));
    assert_eq!(lines("dry").len(), 2);

    // Sessions stand there by now: it says so, and is no refusal.
    let again = scene.migrate_stock().arg("--dry-run").run();
    assert_ends(&again, 10, &[]);
    assert!(again.json()["next_steps"].to_string().contains("will refuse without --on-existing replace"), "{again:#?}");
}
