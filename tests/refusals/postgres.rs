//! Refusals of the source.

use super::{assert_refused, assert_runs, ready};
use crate::runs::scene::{Scene, assert_ends};
use crate::runs::stateless::{as_role, hinted_grants};
use crate::support::poll::{free_port, wait_until};
use crate::support::postgres::{Database, Postgres};
use crate::support::tool::Tool;

fn migrate_from(scene: &Scene, postgres_url: &str) -> Tool {
    Tool::new().args(["migrate", "--postgres-url", postgres_url, "--redis-url", &scene.redis.url()])
}

#[test]
fn a_server_that_is_not_there() {
    let scene = ready();
    let port = free_port();
    let call = migrate_from(&scene, &format!("postgres://tbmq:pw@127.0.0.1:{port}/tbmq"));
    assert_refused(
        &scene,
        call,
        &[
            &format!("error: cannot connect to PostgreSQL at tbmq@127.0.0.1:{port}/tbmq\n"),
            "onnection refused",
            "hint: check host and port in --postgres-url, and that the server accepts connections from here\n",
        ],
    );
}

#[test]
fn a_wrong_password_and_a_role_that_does_not_exist() {
    let scene = ready();
    for url in [scene.database.url.replace("correct%20horse", "wrong"), scene.database.url.replace("postgres:correct", "nobody:correct")] {
        assert_refused(
            &scene,
            migrate_from(&scene, &url),
            &["error: cannot connect to PostgreSQL at ", "password authentication failed", "hint: check user and password in --postgres-url"],
        );
    }
}

#[test]
fn a_database_that_does_not_exist() {
    let scene = ready();
    let url = scene.database.url.replace(&format!("/{}", scene.database.name), "/tmbq");
    assert_refused(
        &scene,
        migrate_from(&scene, &url),
        &["/tmbq\n", "database \"tmbq\" does not exist", "hint: check the database name in --postgres-url\n"],
    );
}

#[test]
fn a_table_that_does_not_exist() {
    for table in ["device_publish_msg", "device_session_ctx"] {
        let scene = ready();
        scene.sql(&format!("drop table {table}"));
        let text = format!("error: table {table} does not exist in postgres@127.0.0.1:");
        assert_refused(&scene, scene.migrate(), &[&text, "hint: is this the database of a TBMQ 1.x broker?", "--postgres-schema"]);
    }
}

#[test]
fn a_schema_that_does_not_hold_the_tables_and_one_that_does() {
    let scene = ready();
    scene.sql("create schema \"the Broker\"");
    for schema in ["the Broker", "no such"] {
        let text = format!("error: table \"{schema}\".device_publish_msg does not exist in postgres@127.0.0.1:");
        assert_refused(&scene, scene.migrate().args(["--postgres-schema", schema]), &[&text, "--postgres-schema"]);
    }
    scene.sql("alter table device_publish_msg set schema \"the Broker\"; alter table device_session_ctx set schema \"the Broker\"");
    assert_refused(&scene, scene.migrate(), &["hint: there is one in the schema the Broker. Name another schema with --postgres-schema"]);
    assert_ends(&scene.migrate().args(["--postgres-schema", "the Broker"]).run(), 0, &[]);
    assert_eq!(scene.keys(), 24);
}

#[test]
fn a_column_that_does_not_exist() {
    let scene = ready();
    scene.sql("alter table device_session_ctx rename column last_packet_id to last_id");
    assert_refused(
        &scene,
        scene.migrate(),
        &[
            "error: table public.device_session_ctx lacks the column last_packet_id\n",
            "hint: this is not the table of a TBMQ 1.x broker; check --postgres-url",
        ],
    );
}

#[test]
fn a_view_in_place_of_a_table() {
    let scene = ready();
    scene.sql("alter table device_publish_msg rename to hidden; create view device_publish_msg as table hidden");
    assert_refused(
        &scene,
        scene.migrate(),
        &[
            "error: public.device_publish_msg is not an ordinary or partitioned table\n",
            "hint: point --postgres-schema at the schema that holds the broker's own tables\n",
        ],
    );
}

/// The scene as a role sees it that may log in and nothing else, and the owner's own view.
fn as_stranger(scene: Scene, role: &str) -> (Scene, Database) {
    let owner = scene.database.clone();
    let stranger = as_role(&owner, role);
    owner.psql(&format!("grant create on database {} to \"{role}\"", owner.name));
    (Scene { database: stranger, ..scene }, owner)
}

#[test]
fn a_table_that_the_role_may_not_read_and_the_grant_that_mends_it() {
    let scene = ready();
    let role = format!("Stranger {}", scene.database.name);
    let (scene, owner) = as_stranger(scene, &role);
    for table in ["device_publish_msg", "device_session_ctx"] {
        let outcome = assert_refused(&scene, scene.migrate(), &[&format!("error: role {role} may not read public.{table}\n")]);
        let grant = hinted_grants(&outcome.stderr);
        assert_eq!(grant, format!("grant select on public.{table} to \"{role}\";"));
        owner.psql(&grant);
    }
    assert_runs(&scene);
}

#[test]
fn a_schema_that_the_role_may_not_use_and_the_grant_that_mends_it() {
    let scene = ready();
    let role = format!("guest_{}", scene.database.name);
    let (scene, owner) = as_stranger(scene, &role);
    owner.psql(&format!(
        "create schema \"Broker\"; alter table device_publish_msg set schema \"Broker\"; alter table device_session_ctx set schema \"Broker\";
         grant select on all tables in schema \"Broker\" to {role}"
    ));
    let call = || scene.migrate().args(["--postgres-schema", "Broker"]);
    let outcome = assert_refused(&scene, call(), &[&format!("error: role {role} may not use the schema Broker\n")]);
    let grant = hinted_grants(&outcome.stderr);
    assert_eq!(grant, format!("grant usage on schema \"Broker\" to \"{role}\";"));
    owner.psql(&grant);
    assert_ends(&call().run(), 0, &[]);
}

#[test]
fn a_collation_whose_version_changed_and_the_statements_that_mend_it() {
    let server = Postgres::start(&[]);
    let admin = server.admin();
    let plain = server.database();
    admin.psql("create database \"Sorted\" template template0 encoding utf8 locale_provider icu icu_locale 'en' locale 'C.UTF-8'");
    let sorted = Database { url: plain.url.replace(&plain.name, "Sorted"), name: "Sorted".to_owned(), ..plain.clone() };
    for (database, spoil) in [
        (sorted, "update pg_database set datcollversion = '1.2.3' where datname = current_database()"),
        (
            plain,
            "alter table device_publish_msg alter client_id type varchar(255) collate \"en-x-icu\";
             alter table device_session_ctx alter client_id type varchar(255) collate \"en-x-icu\";
             update pg_collation set collversion = '1.2.3' where collname = 'en-x-icu'",
        ),
    ] {
        database.create_tables();
        let scene = Scene { database, ..Scene::empty() };
        scene.add_sessions("a", 2);
        scene.sql(spoil);
        let says =
            ["error: the collation of public.device_publish_msg.client_id changed from version 1.2.3 to ", "its index may skip rows silently\n"];
        let outcome = assert_refused(&scene, scene.migrate(), &says);
        let hint = outcome.stderr.lines().find_map(|line| line.strip_prefix("hint: as the owner: ")).unwrap();
        let statements = &hint[..hint.rfind(';').unwrap()];
        assert!(statements.contains("device_publish_msg") && statements.contains("device_session_ctx"), "{hint}");
        scene.sql(statements);
        assert_runs(&scene);
    }
}

#[test]
fn a_standby_records_nothing_but_can_be_read_without_a_state() {
    let primary = Postgres::start(&[]);
    let database = primary.database();
    database.create_tables();
    let scene = Scene { database, ..Scene::empty() };
    scene.add_sessions("a", 2);
    let standby = primary.standby();
    let on_standby = |scene: &Scene| scene.database.url.replace(&format!(":{}/", primary.port()), &format!(":{}/", standby.port()));
    let url = on_standby(&scene);
    let copy = Database { url: url.clone(), ..scene.database.clone() };
    wait_until("the rows on the standby", || copy.try_psql("select count(*) from device_publish_msg").is_ok_and(|count| count == "20"));
    assert_refused(
        &scene,
        migrate_from(&scene, &url),
        &[
            "error: postgres@127.0.0.1:",
            " is a standby, where progress cannot be recorded\n",
            "hint: name the primary in --postgres-url, or run with --stateless",
        ],
    );
    assert_ends(&migrate_from(&scene, &url).arg("--dry-run").run(), 0, &[]);
    assert_eq!(scene.keys(), 0);
    assert_ends(&migrate_from(&scene, &url).arg("--stateless").run(), 0, &[]);
    assert_eq!(scene.keys(), 24);
}

#[test]
fn a_quarantine_file_that_cannot_be_written() {
    let scene = ready();
    for more in [&[][..], &["--stateless"], &["--dry-run"]] {
        let call = scene.migrate().args(["--quarantine-file", "/no/such/place/list"]).args(more);
        assert_refused(&scene, call, &["error: cannot write /no/such/place/list\n", "hint: check the path and the rights of --quarantine-file\n"]);
    }
}

#[test]
fn a_refused_call_does_not_empty_the_list_of_an_earlier_run() {
    let scene = ready();
    scene.redis.cli(&["SET", "{x}_last_packet_id", "1"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("list");
    std::fs::write(&file, "an earlier list\n").unwrap();
    for more in [&[][..], &["--stateless"]] {
        assert_refused(&scene, scene.migrate().arg("--quarantine-file").arg(&file).args(more), &["error: sessions stand in Redis already"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "an earlier list\n");
    }
}
