//! How PostgreSQL reads a chunk: backwards along the primary key, without sorting and without reading what it does not need.

use crate::sessions::{Sessions, migrate};
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;

/// The plans in the log, each as the lines of its tree, of the statements that begin like this.
fn plans(log: &str, statement: &str) -> Vec<String> {
    let texts = log.split("Query Text: ").skip(1).filter(|text| text.starts_with(statement));
    texts
        .map(|text| text.lines().take_while(|line| line.starts_with(['\t', ' ']) || line.starts_with(statement)).collect::<Vec<_>>().join("\n"))
        .collect()
}

#[test]
fn a_chunk_streams_along_the_primary_key_and_nothing_is_sorted() {
    let explain = [("shared_preload_libraries", "auto_explain"), ("auto_explain.log_min_duration", "0"), ("auto_explain.log_format", "text")];
    let (server, redis) = (Postgres::start(&explain), Redis::start());
    let database = server.database();
    // More than 40,000 rows are more than two chunks: the first and the last are open-ended, those between are not.
    let sessions = Sessions::new(1200, 40).with_lone_contexts(2000);
    sessions.load_into(&database);
    // Rows that lie in the order of their key would be read along it in any case.
    database.psql(
        "create table shuffled as select * from device_publish_msg order by md5(client_id || serial_number);
         truncate device_publish_msg;
         insert into device_publish_msg select * from shuffled;
         drop table shuffled;
         analyze device_publish_msg",
    );
    sessions.assert_all_migrated(&migrate(&database, &redis.url()).args(["--stateless"]).run());
    let (log, messages) = (server.log(), "select m.client_id::text, m.serial_number");
    let chunks = plans(&log, messages);
    assert!(chunks.len() >= 3, "{} chunks", chunks.len());
    for plan in &chunks {
        assert!(plan.contains("Index Scan Backward using device_publish_msg_pkey"), "{plan}");
        for dear in ["Sort", "Seq Scan", "Hash", "Bitmap", "Gather"] {
            assert!(!plan.contains(&format!("{dear} ")), "{dear}: {plan}");
        }
    }
    let contexts = plans(&log, "select c.client_id::text, c.last_serial_number");
    assert_eq!(contexts.len(), chunks.len());
    for plan in &contexts {
        assert!(!plan.contains("Sort ") && !plan.contains("Seq Scan on device_publish_msg"), "{plan}");
    }
}
