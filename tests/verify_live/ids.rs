//! Ids that one side cannot hold.

use super::{carry, verify};
use crate::sessions::Sessions;
use crate::support::cluster::RedisCluster;
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;

fn database(name: &str, encoding: &str) -> Database {
    let admin = Postgres::shared().admin();
    admin.psql(&format!("create database {name} encoding '{encoding}' template template0 locale 'C'"));
    let server = admin.url.strip_suffix(&admin.name).unwrap();
    Database { url: format!("{server}{name}"), name: name.to_owned(), port: admin.port }
}

#[test]
fn a_session_whose_id_the_database_cannot_hold_is_one_too_many() {
    let (database, redis, sessions) = (database("verify_live_latin1", "LATIN1"), Redis::start(), Sessions::new(3, 2).with("caf\u{e9}", 2));
    sessions.load_into(&database);
    carry(&database, &redis.url(), &[]);
    assert_eq!(verify(&database, &redis.url()).run().code, Some(0));
    for (options, ids) in [(&[][..], &["\u{20ac}", "\u{5bb6}/1"][..]), (&["--client", "\u{20ac}", "--client", "c-0001"], &["\u{20ac}"])] {
        redis.cli(&["SET", "{\u{20ac}}_last_packet_id", "1"]);
        redis.cli(&["SET", "{\u{5bb6}/1}_messages_1", "{}"]);
        redis.cli(&["ZADD", "{\u{5bb6}/1}_messages", "1", "{\u{5bb6}/1}_messages_1"]);
        let outcome = verify(&database, &redis.url()).args(options).run();
        assert_eq!(outcome.code, Some(5), "{outcome:#?}");
        assert_eq!(outcome.json()["findings"], serde_json::json!({"extra_session": ids.len()}), "{outcome:#?}");
        assert_eq!(outcome.json()["differing_sessions"], ids.len());
    }
}

#[test]
fn a_session_whose_id_is_no_text_is_quarantined_and_the_rest_is_equal() {
    let (database, redis) = (database("verify_live_sql_ascii", "SQL_ASCII"), Redis::start());
    Sessions::new(3, 2).load_into(&database);
    carry(&database, &redis.url(), &[]);
    database.psql(
        r"insert into device_session_ctx values (e'bad\xff', 0, 1, 2);
        insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
        select e'bad\xff', n, 't', time, n + 1, 1, 'x' from device_publish_msg, generate_series(0, 1) n where client_id = 'c-0000' and serial_number = 0",
    );
    let outcome = verify(&database, &redis.url()).run();
    assert_eq!(outcome.code, Some(10), "{outcome:#?}");
    let report = outcome.json();
    assert_eq!((&report["quarantined"], &report["sessions_compared"], &report["equal_sessions"]), (&2.into(), &4.into(), &4.into()), "{report:#}");
    // A difference says more.
    redis.cli(&["DEL", "{c-0001}_last_packet_id"]);
    assert_eq!(verify(&database, &redis.url()).run().code, Some(5));
}

#[test]
fn ids_with_braces_are_compared_on_a_cluster_wherever_their_keys_are() {
    let ids = ["{}x", "a}b", "a{b}c", "{a", "x}}y", "{c}_messages", "a{b"];
    let sessions = ids.into_iter().fold(Sessions::new(2, 3), |all, id| all.with(id, 3));
    let (cluster, database) = (RedisCluster::start(), sessions.load());
    carry(&database, &cluster.urls()[0], &[]);
    let call = || verify(&database, &cluster.urls()[0]);
    let outcome = call().run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(outcome.json()["messages_compared"], sessions.messages());
    for id in ids {
        cluster.cli(0, &["-c", "SET", &format!("{{{id}}}_last_packet_id"), "65000"]);
    }
    cluster.cli(0, &["-c", "SET", "{no}body}_last_packet_id", "1"]);
    let outcome = call().run();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"], serde_json::json!({"extra_session": 1, "wrong_last_packet_id": ids.len()}), "{outcome:#?}");
}
