//! Where a session is, and who may ask.

use super::scene::{DEVICE, Row, Scene, explain, insert, insert_context, literal};
use crate::sessions::migrate;
use crate::support::cluster::RedisCluster;

/// What reads, and no more.
const READER: [&str; 6] = ["resetchannels", "-@all", "+@read", "+info", "+time", "+select"];

#[test]
fn a_role_and_a_user_that_can_only_read_are_enough() {
    let scene = Scene::of_every_outcome();
    scene.redis.cli(&[&["ACL", "SETUSER", "reader", "reset", "on", ">s3cret", "%R~{*"], &READER[..]].concat());
    let role = format!("reader_{}", scene.database.name);
    scene.database.psql(&format!(
        "create role {role} login password 'read only'; grant select on device_publish_msg, device_session_ctx to {role};
         alter role {role} set default_transaction_read_only = on"
    ));
    let postgres = format!("postgres://{role}:read%20only@127.0.0.1:{}/{}", scene.database.port, scene.database.name);
    let redis = scene.redis.url().replace("redis://", "redis://reader:s3cret@");
    let before = format!("{:?}", scene.redis.keyspace());
    let outcome = explain(&postgres, &redis, &[DEVICE, "--message-limit", "4"]);
    assert_eq!(outcome.code, Some(10), "{outcome:#?}");
    assert!(outcome.stdout.contains("no difference"), "{}", outcome.stdout);
    assert_eq!(format!("{:?}", scene.redis.keyspace()), before);
    assert_eq!(scene.database.psql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "1", "that of the migration alone");
}

#[test]
fn a_right_that_is_missing_is_refused_before_anything_else() {
    let scene = Scene::of_every_outcome();
    scene.redis.cli(&[&["ACL", "SETUSER", "reader", "reset", "on", ">s3cret", "%R~{*"], &READER[..], &["-zmscore"]].concat());
    let redis = scene.redis.url().replace("redis://", "redis://reader:s3cret@");
    let outcome = explain(&scene.database.url, &redis, &[DEVICE]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(4), ""), "{outcome:#?}");
    assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
}

#[test]
fn a_server_that_does_not_answer_is_refused() {
    let scene = Scene::of_every_outcome();
    let nobody = format!("redis://127.0.0.1:{}", crate::support::poll::free_port());
    assert_eq!(explain(&scene.database.url, &nobody, &[DEVICE]).code, Some(4));
    let elsewhere = scene.database.url.replace(&scene.database.name, "no_such_database");
    assert_eq!(explain(&elsewhere, &scene.redis.url(), &[DEVICE]).code, Some(4));
}

#[test]
fn on_a_cluster_the_slot_and_the_node_are_those_of_the_server() {
    let cluster = RedisCluster::start();
    let scene = Scene::empty();
    let ids = ["dev-1", "ключ😀", "{", "a}b", "", "}x"];
    for id in ids {
        insert(&scene.database, id, &[Row { serial: 4, packet_id: "5", packet_type: "PUBLISH", time: scene.now_ms, interval: "null" }]);
        insert_context(&scene.database, id, 4, 5);
    }
    let urls = cluster.urls().join(",");
    assert_eq!(migrate(&scene.database, &urls).run().code, Some(10));
    for id in &ids[..4] {
        let slot = cluster.slot(&format!("{{{id}}}_messages"));
        let node = format!("127.0.0.1:{}", cluster.nodes[cluster.owner(slot)].port);
        let outcome = explain(&scene.database.url, &urls, &[id, "--json"]);
        let document = outcome.json();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        assert_eq!((document["slot"].as_u64(), document["node"].as_str()), (Some(slot.into()), Some(node.as_str())), "{id}");
        let page = explain(&scene.database.url, &urls, &[id]);
        assert!(page.stdout.contains(&format!("place           slot {slot}, on {node}\n")), "{}", page.stdout);
    }
    for id in &ids[4..] {
        let outcome = explain(&scene.database.url, &urls, &[id]);
        assert_eq!(outcome.code, Some(10), "{}: {outcome:#?}", literal(id));
        assert!(outcome.stdout.contains("no node of a cluster can hold it"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("the client id cannot live on a cluster"), "{}", outcome.stdout);
        let document = explain(&scene.database.url, &urls, &[id, "--json"]).json();
        assert_eq!((&document["slot"], &document["node"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    }
}

#[test]
fn a_single_server_is_named() {
    let scene = Scene::of_every_outcome();
    let document = scene.explain_device(&["--json"]).json();
    assert_eq!(document["node"].as_str(), Some(format!("127.0.0.1:{}", scene.redis.port).as_str()));
}
