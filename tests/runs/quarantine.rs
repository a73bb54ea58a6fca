//! Rows that cannot be carried: listed, counted, and gone from the list when they are mended.

use serde_json::{Value as Json, json};

use super::scene::{Scene, assert_adds_up, assert_ends};

const ODD: &str = "a \"b\"\t\u{1b}[31m 🚀";

fn scene_with_broken_rows() -> Scene {
    let scene = Scene::empty();
    scene.add_sessions("a", 3);
    scene.sql(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
         select u&'a \"b\"\\0009\\001b[31m \\+01f680', s, 't', (extract(epoch from now()) * 1000)::bigint, s + 1, 'PUBLISH', 1, 'x' from generate_series(0, 1) s;
         update device_publish_msg set packet_id = 0 where client_id not like 'a-%' and serial_number = 1;
         update device_publish_msg set packet_type = 'PUBACK' where client_id = 'a-02' and serial_number = 9",
    );
    scene
}

fn lines(path: &std::path::Path) -> Vec<Json> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn broken_rows_are_listed_in_the_schema_and_in_a_file_and_the_run_ends_with_10() {
    let scene = scene_with_broken_rows();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("list");
    std::fs::write(&file, "what was there before\n").unwrap();
    let outcome = scene.migrate().args(["--json", "--quarantine-file"]).arg(&file).run();
    assert_ends(&outcome, 10, &[]);
    let report = outcome.json();
    assert_adds_up(&report);
    assert_eq!((&report["rows_read"], &report["messages_migrated"], &report["quarantined"]), (&32.into(), &30.into(), &2.into()));
    assert!(report["next_steps"].to_string().contains(&file.display().to_string()), "{report:#}");
    let expected = [
        json!({ "client_id": ODD, "serial_number": 1, "reason": "packet_id_out_of_range" }),
        json!({ "client_id": "a-02", "serial_number": 9, "reason": "unknown_packet_type" }),
    ];
    let found = lines(&file);
    assert!(found.len() == 2 && expected.iter().all(|line| found.contains(line)), "{found:?}");
    let listed =
        scene.sql("select run_id, client_id = u&'a \"b\"\\0009\\001b[31m \\+01f680', serial_number, reason from tbmq_migrate.quarantine order by 3");
    assert_eq!(listed, "1|t|1|packet_id_out_of_range\n1|f|9|unknown_packet_type");
    // The rest of both sessions went on.
    assert_eq!(scene.contents().members("{a-02}_messages").len(), 9);
    assert_eq!(scene.contents().members(format!("{{{ODD}}}_messages")).len(), 1);
}

#[test]
fn mended_rows_leave_the_list_with_the_next_run() {
    let scene = scene_with_broken_rows();
    let first = scene.migrate().run();
    assert_ends(&first, 10, &[]);
    assert!(
        first.stdout.contains("next: look at the rows that could not be carried: select * from tbmq_migrate.quarantine where run_id = 1;"),
        "{first:#?}"
    );
    assert!(!first.stdout.contains('\u{1b}'), "{first:#?}");
    scene.sql("update device_publish_msg set packet_id = 2 where packet_id = 0; delete from device_publish_msg where packet_type = 'PUBACK'");
    let second = scene.migrate().args(["--json", "--on-existing", "replace"]).run();
    assert_ends(&second, 0, &[]);
    assert_eq!(second.json()["quarantined"], 0);
    assert_eq!(scene.sql("select count(*) from tbmq_migrate.quarantine where run_id = 2"), "0");
    assert_eq!(scene.contents().members(format!("{{{ODD}}}_messages")).len(), 2);
}

#[test]
fn a_chunk_that_is_read_again_lists_what_is_still_broken_once() {
    let scene = scene_with_broken_rows();
    super::scene::assert_died(&scene.migrate().env("TBMQ_MIGRATE_FAILPOINT", "chunk_written").run());
    assert_eq!(scene.sql("select count(*) from tbmq_migrate.quarantine"), "2");
    scene.let_leases_run_out();
    scene.sql("update device_publish_msg set packet_type = 'PUBREL' where packet_type = 'PUBACK'");
    let outcome = scene.migrate().arg("--json").run();
    assert_ends(&outcome, 10, &[]);
    assert_eq!(outcome.json()["quarantined"], 1);
    assert_eq!(scene.sql("select reason from tbmq_migrate.quarantine"), "packet_id_out_of_range");
}
