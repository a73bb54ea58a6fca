//! What is planted in PostgreSQL.

use sqlx::{Connection as _, PgConnection};

use super::{between, look, look_by, of, read, ready, sql};
use crate::runs::scene::Scene;
use crate::runs::stateless::as_role;
use crate::support::poll::wait_until;
use crate::support::pooler::Pooler;
use crate::support::postgres::{Database, Postgres};

/// The scene as a role sees it that may log in and nothing else, and the superuser's view.
fn as_stranger(scene: Scene) -> (Scene, Database, String) {
    let owner = scene.database.clone();
    let role = format!("Check {}", owner.name);
    (Scene { database: as_role(&owner, &role), ..scene }, owner, role)
}

#[test]
fn a_table_that_is_missing_blocks_and_the_rest_is_still_looked_at() {
    for table in ["device_publish_msg", "device_session_ctx"] {
        let scene = ready();
        scene.sql(&format!("drop table {table}"));
        let page = look(&scene);
        let mend = page.assert("tables", "blocker", &format!("table {table} does not exist"));
        assert!(mend.contains("is this the database of a TBMQ 1.x broker?") && mend.contains("--postgres-schema"), "{mend}");
        assert_eq!(page.blockers(), ["tables"]);
        page.assert("mode_migrate", "warning", "not ready because of tables");
        page.assert("rows", "warning", "unknown: ");
        assert!(page.document["forecast"].is_null());
        page.assert("rights", "ok", "");
        assert!(page.next().contains("mend what blocks"));
    }
}

#[test]
fn both_tables_that_are_missing_are_two_findings() {
    let scene = ready();
    scene.sql("drop table device_publish_msg, device_session_ctx");
    assert_eq!(look(&scene).blockers(), ["tables", "tables"]);
}

#[test]
fn a_column_that_every_version_has_blocks_when_missing_and_a_later_one_is_told() {
    let scene = ready();
    scene.sql("alter table device_publish_msg drop column response_topic, drop column correlation_data");
    look(&scene).assert("columns", "ok", "lacks response_topic (since 1.3), correlation_data (since 1.3)");
    scene.sql("alter table device_publish_msg drop column retain");
    let page = look(&scene);
    page.assert("tables", "blocker", "table public.device_publish_msg lacks the column retain");
    assert_eq!(page.blockers(), ["tables"]);
}

#[test]
fn rights_are_named_one_by_one_and_the_grants_mend_them() {
    let (scene, owner, role) = as_stranger(ready());
    let page = look(&scene);
    assert_eq!(page.blockers(), ["tables", "tables"]);
    for finding in page.all("tables") {
        assert!(finding["measured"].as_str().unwrap().starts_with(&format!("role {role} may not read public.device_")), "{finding}");
        owner.psql(sql(finding["mend"].as_str().unwrap()));
    }
    let page = look(&scene);
    assert_eq!(page.blockers(), [] as [&str; 0]);
    page.assert("mode_migrate", "warning", "ready with --stateless only");
    assert!(page.next().contains("`tbmq-migrate migrate --stateless`"), "{}", page.next());
    let mend = page.assert("state_schema", "warning", "the role may not create a schema in the database");
    owner.psql(sql(&mend));
    let mend = page.assert("open_transactions", "warning", "unknown: this role does not see");
    owner.psql(sql(&mend));
    let mend = page.assert("replication_right", "warning", "may not replicate");
    owner.psql(sql(&format!("{}: {}", "x", mend.rsplit_once("superuser: ").unwrap().1)));
    let trigger = page.finding("mode_dual_write_trigger")["measured"].as_str().unwrap().to_owned();
    for grant in trigger.split("as the owner: ").skip(1) {
        owner.psql(grant.split(';').next().unwrap());
    }
    let page = look(&scene);
    page.assert("state_schema", "ok", "may make the schema");
    page.assert("open_transactions", "ok", "");
    page.assert("replication_right", "ok", "");
    page.assert("mode_migrate", "ok", "mode migrate: ready");
    page.assert("mode_dual_write_trigger", "ok", "PostgreSQL is ready");
    page.assert("mode_dual_write_wal", "warning", "not ready because the role does not own both tables");
    owner.psql(&format!("alter table device_publish_msg owner to \"{role}\"; alter table device_session_ctx owner to \"{role}\""));
    look(&scene).assert("mode_dual_write_wal", "ok", "PostgreSQL is ready");
}

#[test]
fn a_schema_that_another_role_made_is_opened_by_the_grants() {
    let scene = ready();
    assert_eq!(scene.migrate().run().code, Some(0));
    scene.redis.cli(&["FLUSHALL"]);
    let (scene, owner, role) = as_stranger(scene);
    owner.psql(&format!(
        "grant select on device_publish_msg, device_session_ctx to \"{role}\"; grant create on database {} to \"{role}\"",
        owner.name
    ));
    let mend = look(&scene).assert("state_schema", "warning", "may not use the schema tbmq_migrate that another role made");
    owner.psql(sql(&mend));
    look(&scene).assert("state_schema", "ok", "may be written to");
}

#[test]
fn a_schema_that_the_role_may_not_look_into_and_the_grant_that_opens_it() {
    let (scene, owner, role) = as_stranger(ready());
    owner.psql(&format!(
        "create schema \"Broker\"; alter table device_publish_msg set schema \"Broker\"; alter table device_session_ctx set schema \"Broker\";
         grant select on all tables in schema \"Broker\" to \"{role}\""
    ));
    let mend = look(&scene).finding("tables")["mend"].as_str().unwrap().to_owned();
    assert!(mend.starts_with("there is one in the schema Broker."), "{mend}");
    let call = || of(&scene).args(["--postgres-schema", "Broker"]);
    let mend = look_by(&scene, call()).assert("tables", "blocker", &format!("role {role} may not use the schema Broker"));
    owner.psql(sql(&mend));
    assert!(look_by(&scene, call()).blockers().is_empty());
}

#[test]
fn a_role_whose_transactions_are_read_only_can_run_without_a_state() {
    let (scene, owner, role) = as_stranger(ready());
    owner.psql(&format!(
        "grant select on device_publish_msg, device_session_ctx to \"{role}\"; grant create on database {} to \"{role}\";
         alter role \"{role}\" set default_transaction_read_only = on",
        owner.name
    ));
    let page = look(&scene);
    let mend = page.assert("state_schema", "warning", "default_transaction_read_only");
    page.assert("mode_migrate", "warning", "ready with --stateless only");
    owner.psql(sql(&mend));
    look(&scene).assert("mode_migrate", "ok", "ready");
}

#[test]
fn policies_that_may_hide_rows_block() {
    let (scene, owner, role) = as_stranger(ready());
    owner.psql(&format!(
        "grant select on device_publish_msg, device_session_ctx to \"{role}\"; alter table device_publish_msg enable row level security"
    ));
    let page = look(&scene);
    let mend = page.assert("row_security", "blocker", "policies of public.device_publish_msg may hide rows");
    assert_eq!(page.blockers(), ["row_security"]);
    owner.psql(sql(&mend));
    assert!(!look(&scene).has("row_security"));
}

#[test]
fn a_text_index_of_another_collation_version_blocks_until_it_is_built_anew() {
    let scene = ready();
    scene.sql(
        "alter table device_publish_msg alter client_id type varchar(255) collate \"en-x-icu\";
         alter table device_session_ctx alter client_id type varchar(255) collate \"en-x-icu\";
         update pg_collation set collversion = '1.2.3' where collname = 'en-x-icu'",
    );
    let page = look(&scene);
    let mend = page.assert("collation", "blocker", "changed from version 1.2.3 to ");
    assert!(page.document["forecast"].is_null());
    scene.sql(sql(&mend));
    look(&scene).assert("collation", "ok", "");
}

#[test]
fn a_standby_is_no_blocker_and_is_told_for_each_mode() {
    let primary = Postgres::start(&[]);
    let database = primary.database();
    database.create_tables();
    let scene = Scene { database, ..Scene::empty() };
    scene.add_sessions("a", 2);
    let standby = primary.standby();
    let url = scene.database.url.replace(&format!(":{}/", primary.port()), &format!(":{}/", standby.port()));
    let copy = Database { url: url.clone(), ..scene.database.clone() };
    wait_until("the rows on the standby", || copy.try_psql("select count(*) from device_publish_msg").is_ok_and(|count| count == "20"));
    let page = look_by(&scene, between(&url, &scene.redis.url()));
    let mend = page.assert("standby", "warning", "is a standby, where progress cannot be recorded");
    assert!(mend.contains("--stateless"), "{mend}");
    page.assert("mode_migrate", "warning", "ready with --stateless only, which cannot go on after an interruption: the server is a standby");
    page.assert("mode_dual_write_wal", "warning", "not ready because the server is a standby");
    page.assert("mode_dual_write_trigger", "warning", "not ready because the server is a standby");
    assert_eq!((page.blockers().len(), page.forecast("rows")), (0, 20));
    assert!(page.next().contains("--stateless"));
}

#[test]
fn a_server_without_the_means_of_logical_decoding() {
    let server =
        Postgres::start(&[("wal_level", "replica"), ("max_replication_slots", "1"), ("max_wal_senders", "0"), ("max_prepared_transactions", "2")]);
    let database = server.database();
    database.create_tables();
    let scene = Scene { database, ..Scene::empty() };
    scene.add_sessions("a", 2);
    scene.sql("select pg_create_physical_replication_slot('forgotten')");
    let page = look(&scene);
    assert!(
        page.assert("wal_level", "warning", "replica: ")
            .ends_with("and then restart PostgreSQL (on a managed server: in its parameters): alter system set wal_level = 'logical';")
    );
    assert!(
        page.assert("replication_slots", "warning", "all 1 are in use; nobody reads from forgotten")
            .ends_with("alter system set max_replication_slots = 5;")
    );
    assert!(page.assert("wal_senders", "warning", "all 0 are at work").ends_with("alter system set max_wal_senders = 4;"));
    page.assert("mode_dual_write_wal", "warning", "not ready because wal_level is replica; no replication slot is free; no WAL sender is free");
    page.assert("mode_dual_write_trigger", "ok", "");
    page.assert("mode_migrate", "ok", "ready");
    scene.sql("select pg_drop_replication_slot('forgotten')");
    look(&scene).assert("replication_slots", "ok", "0 of 1 in use");

    scene.sql("begin; update device_session_ctx set last_packet_id = 11; prepare transaction 'it''s'");
    let mend = look(&scene).assert("open_transactions", "warning", "the prepared transaction it's is open for ");
    scene.sql(sql(&mend));
    look(&scene).assert("open_transactions", "ok", "none is open for long");
}

#[test]
fn tables_without_a_replica_identity_and_the_statements_that_give_it_back() {
    let scene = ready();
    scene.sql("alter table device_publish_msg replica identity nothing");
    let page = look(&scene);
    let mend = page.assert("replica_identity", "warning", "public.device_publish_msg has none");
    page.assert("mode_dual_write_wal", "warning", "a table has no replica identity");
    scene.sql(sql(&mend));
    look(&scene).assert("replica_identity", "ok", "its primary key");
    scene.sql("alter table device_session_ctx replica identity full");
    look(&scene).assert("replica_identity", "ok", "public.device_session_ctx: the full row");
}

#[test]
fn a_table_without_a_primary_key_and_the_statement_that_makes_it() {
    let scene = ready();
    scene.sql("alter table device_publish_msg drop constraint device_publish_msg_pkey; alter table device_session_ctx drop constraint device_session_ctx_pkey");
    let page = look(&scene);
    assert_eq!(page.all("primary_key").len(), 2);
    for finding in page.all("primary_key") {
        scene.sql(sql(finding["mend"].as_str().unwrap()));
    }
    page.assert("replica_identity", "warning", "public.device_publish_msg and public.device_session_ctx has none");
    let page = look(&scene);
    assert!(!page.has("primary_key"));
    page.assert("replica_identity", "ok", "");
}

#[test]
fn publications_in_the_way_are_told_by_what_they_do_and_dropped_by_the_statement() {
    let scene = ready();
    scene.sql("create publication \"Plain\" for table device_publish_msg, device_session_ctx");
    look(&scene).assert("publications", "ok", "Plain has public.device_publish_msg and public.device_session_ctx in it, as whole rows");
    scene.sql("drop publication \"Plain\"");
    for (publication, text) in [
        ("for all tables", "publishes whole schemas or all tables"),
        ("for tables in schema public", "publishes whole schemas or all tables"),
        ("for table device_publish_msg (payload)", "the server refuses the broker's own UPDATE and DELETE"),
        ("for table device_publish_msg (client_id, serial_number)", "does not see whole rows"),
        ("for table device_publish_msg where (qos > 0)", "publishes some of the rows"),
    ] {
        scene.sql(&format!("create publication \"In the way\" {publication}"));
        let page = look(&scene);
        let mend = page.assert("publications", "warning", text);
        assert!(page.finding("publications")["measured"].as_str().unwrap().starts_with("In the way "));
        scene.sql(sql(&mend));
        look(&scene).assert("publications", "ok", "no publication has the tables in it");
        scene.sql("drop publication if exists \"In the way\"");
    }
}

#[test]
fn a_transaction_that_is_held_open_is_named_and_ended_by_the_statement() {
    let scene = ready();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut idle = runtime.block_on(PgConnection::connect(&scene.database.url)).unwrap();
    runtime.block_on(sqlx::raw_sql("set application_name = 'report\x1b[2J'; begin; select 1").execute(&mut idle)).unwrap();
    let page = look(&scene);
    let mend = page.assert("sessions", "warning", "others are connected to the database: ");
    assert!(mend.contains("stop every 1.x broker"), "{mend}");
    let long = |page: &super::Page| page.finding("open_transactions")["measured"].as_str().unwrap().contains(&format!("(process {})", pid(&scene)));
    let mut page = page;
    wait_until("the transaction to be open for long", || {
        page = read(of(&scene));
        long(&page)
    });
    let mend = page.assert("open_transactions", "warning", ", idle: rows that were deleted meanwhile");
    scene.sql(sql(&mend));
    wait_until("the transaction to end", || !long(&read(of(&scene))));
}

/// The process of the one other session in the database.
fn pid(scene: &Scene) -> String {
    scene.sql("select coalesce(max(pid), 0) from pg_stat_activity where datname = current_database() and application_name like 'report%'")
}

#[test]
fn a_database_that_writes_bytea_as_escapes_and_one_without_an_encoding() {
    let scene = ready();
    scene.sql(&format!("alter database {} set bytea_output = 'escape'", scene.database.name));
    let mend = look(&scene).assert("bytea_output", "warning", "escape: ");
    scene.sql(sql(&mend));
    look(&scene).assert("bytea_output", "ok", "hex");

    let name = format!("{}_ascii", scene.database.name);
    scene.sql(&format!("create database {name} template template0 encoding 'SQL_ASCII' locale 'C'"));
    let database =
        Database { url: scene.database.url.replace(&format!("/{}", scene.database.name), &format!("/{name}")), name, ..scene.database.clone() };
    database.create_tables();
    look(&Scene { database, ..scene }).assert("encoding", "warning", "SQL_ASCII");
}

#[test]
fn tables_that_are_partitioned_or_left_out_of_the_log() {
    let scene = Scene::empty();
    scene.sql(
        "alter table device_session_ctx set unlogged; drop table device_publish_msg;
         create table device_publish_msg (client_id varchar(255), serial_number bigint, topic varchar, time bigint, packet_id int, packet_type varchar,
             qos int, payload bytea, user_properties varchar, retain boolean, primary key (client_id, serial_number)) partition by hash (client_id);
         create table part_0 partition of device_publish_msg for values with (modulus 1, remainder 0)",
    );
    scene.add_sessions("a", 2);
    let page = look(&scene);
    page.assert("partitions", "ok", "public.device_publish_msg is partitioned");
    let mend = page.assert("unlogged", "warning", "public.device_session_ctx is unlogged");
    page.assert("mode_dual_write_wal", "warning", "a table is unlogged");
    assert_eq!((page.blockers().len(), page.forecast("rows")), (0, 20));
    scene.sql(sql(&mend));
    assert!(!look(&scene).has("unlogged"));
}

#[test]
fn a_pooler_in_the_path_is_noticed() {
    let scene = ready();
    let pooler = Pooler::before(scene.database.port);
    let url = scene.database.url.replace(&format!(":{}/", scene.database.port), &format!(":{}/", pooler.port));
    let page = look_by(&scene, between(&url, &scene.redis.url()));
    let mend = page.assert("pooler", "warning", "a pooler hands out sessions of the server by the transaction");
    assert_eq!(mend, "give the server's own address in --postgres-url");
    page.assert("mode_dual_write_wal", "warning", "not ready because a pooler is in the path");
    page.assert("mode_dual_write_trigger", "warning", "not ready because a pooler is in the path");
    assert_eq!((page.blockers().len(), page.forecast("rows")), (0, 20));
}
