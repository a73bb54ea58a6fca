//! What one side does not know, and ids of every kind.

use super::scene::{DEVICE, Row, Scene, assert_fit_for_a_terminal, assert_says, insert, insert_context, redis_side};
use crate::support::tool::Tool;

fn a_row(scene: &Scene) -> Row<'static> {
    Row { serial: 0, packet_id: "1", packet_type: "PUBLISH", time: scene.now_ms - 1000, interval: "null" }
}

#[test]
fn an_id_that_neither_side_knows_is_said_to_be_unknown_with_a_code_of_its_own() {
    let scene = Scene::of_every_outcome();
    let outcome = scene.explain(&["DEV-1"]);
    assert_eq!(outcome.code, Some(4), "{outcome:#?}");
    assert_says(&outcome, "result          neither side knows this session\n");
    assert_says(&outcome, "next: compare the id with the broker's");
    let document = scene.explain(&["DEV-1", "--json"]);
    assert_eq!((document.code, document.json()["result"].as_str()), (Some(4), Some("unknown")));
    assert_eq!(document.json()["context"], serde_json::Value::Null);
}

#[test]
fn a_session_that_redis_does_not_know_is_explained_by_its_rows() {
    let scene = Scene::of_every_outcome();
    scene.redis.cli(&["FLUSHALL"]);
    let outcome = scene.explain_device(&[]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_says(&outcome, "known           by PostgreSQL alone: no key in Redis\n");
    assert_says(&outcome, "last packet id  7 by the rows, none in Redis\n");
    assert_eq!(redis_side(&outcome, 6), ["-", "gone", "≠"]);
    assert_eq!(redis_side(&outcome, 3), ["-", "gone"], "an expired one need not be there");
}

#[test]
fn a_session_that_postgresql_does_not_know_is_explained_by_its_keys() {
    let scene = Scene::of_every_outcome();
    scene.database.psql("truncate device_session_ctx, device_publish_msg");
    let outcome = scene.explain_device(&[]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    for said in [
        "known           by Redis alone: no row in PostgreSQL\n",
        "≠ extra_session (the session): PostgreSQL has no row of it; Redis has 2 references and a last packet id\n",
        "PUBREL qos 1, 16 bytes\n",
        "--delete-extra",
    ] {
        assert_says(&outcome, said);
    }
    assert_fit_for_a_terminal(&outcome);
    let keys = scene.explain_device(&["--json"]).json()["redis"].as_array().unwrap().clone();
    assert_eq!(keys.iter().map(|key| key["packet_id"].as_u64()).collect::<Vec<_>>(), [Some(7), Some(6)]);
    scene.redis.cli(&["DEL", "{dev-1}_messages", "{dev-1}_last_packet_id"]);
    let strays = scene.explain_device(&[]);
    assert_eq!(strays.code, Some(5), "messages without anything else are found: {strays:#?}");
    assert_says(&strays, "and nothing refers to it");
}

#[test]
fn keys_of_another_type_are_named() {
    let scene = Scene::of_every_outcome();
    for key in ["{dev-1}_messages", "{dev-1}_last_packet_id", "{dev-1}_messages_7"] {
        scene.redis.cli(&["DEL", key]);
        scene.redis.cli(&["LPUSH", key, "x"]);
    }
    let outcome = scene.explain_device(&[]);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_says(&outcome, "the key of the sorted set holds a list");
    assert_says(&outcome, "last packet id  7 by the rows, a list in Redis\n");
    assert_says(&outcome, "next: a key of another type is never overwritten");
    assert_eq!(redis_side(&outcome, 6), ["-", "list"]);
}

#[test]
fn no_id_can_steer_a_terminal_or_break_the_page() {
    let scene = Scene::empty();
    let ids = [
        "😀".repeat(255),
        "\u{1b}[2J\u{1b}]0;title\u{7}\r\n\t\u{9b}31m".to_owned(),
        "a\u{202e}b\u{2066}c\u{200f}d\u{200b}e\u{61c}f".to_owned(),
        "\"'`$(rm)\\ \\u{1b}".to_owned(),
        "é\u{301}\u{301}\u{301}﷽".to_owned(),
        "\u{1b}".repeat(255),
        "w ".repeat(127),
        String::new(),
        " ".to_owned(),
    ];
    for id in &ids {
        insert(&scene.database, id, &[a_row(&scene)]);
        insert_context(&scene.database, id, 0, 1);
    }
    scene.migrate(&[]);
    for id in &ids {
        let outcome = scene.explain(&[id]);
        assert_eq!(outcome.code, Some(0), "{id:?}: {outcome:#?}");
        assert_fit_for_a_terminal(&outcome);
        assert_eq!(scene.explain(&[id, "--json"]).json()["client_id"].as_str(), Some(id.as_str()));
        let key = format!("{{{id}}}_messages");
        scene.redis.cli(&["ZADD", &key, "77", &format!("{{{id}}}_messages_77"), "78", &format!("x{id}")]);
        let differing = scene.explain(&[id]);
        assert_eq!(differing.code, Some(5), "{id:?}: {differing:#?}");
        assert_fit_for_a_terminal(&differing);
    }
    let page = scene.explain(&[&ids[0]]).stdout;
    let (whole, _) = page.split_once("\nplace ").unwrap();
    assert_eq!(whole.matches('😀').count(), 255, "the whole id, once: {whole}");
    let unknown = scene.explain(&["\u{1b}[2J unknown"]);
    assert_eq!(unknown.code, Some(4));
    assert_fit_for_a_terminal(&unknown);
}

#[test]
fn an_id_may_begin_with_a_hyphen() {
    let scene = Scene::empty();
    for id in ["-1", "-dev", "--device", "--json"] {
        insert(&scene.database, id, &[a_row(&scene)]);
        insert_context(&scene.database, id, 0, 1);
    }
    scene.migrate(&[]);
    for (arguments, id) in
        [(&["-1", "--json"][..], "-1"), (&["--json", "-dev"], "-dev"), (&["--device", "--json"], "--device"), (&["--json", "--", "--json"], "--json")]
    {
        let outcome = scene.explain(arguments);
        assert_eq!((outcome.code, outcome.json()["client_id"].as_str()), (Some(0), Some(id)), "{outcome:#?}");
    }
    assert_eq!(Tool::new().args(["explain"]).run().code, Some(2), "an id is needed");
    assert_eq!(scene.explain(&[DEVICE, "--rows", "100001"]).code, Some(2));
}

#[test]
fn a_session_that_is_never_still_is_called_moving_and_not_different() {
    let scene = Scene::empty();
    insert(&scene.database, DEVICE, &[a_row(&scene)]);
    insert_context(&scene.database, DEVICE, 0, 1);
    // A writer that does not end: what it wrote may be on its way.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let outcome = runtime.block_on(async {
        let pool = scene.database.pool().await;
        let mut writer = pool.begin().await.unwrap();
        sqlx::query("update device_session_ctx set last_packet_id = 1").execute(&mut *writer).await.unwrap();
        let outcome = tokio::task::spawn_blocking({
            let (postgres, redis) = (scene.database.url.clone(), scene.redis.url());
            move || super::scene::explain(&postgres, &redis, &[DEVICE])
        });
        let outcome = outcome.await.unwrap();
        writer.rollback().await.unwrap();
        outcome
    });
    assert_eq!(outcome.code, Some(6), "{outcome:#?}");
    assert_says(&outcome, "result          moving: it did not hold still");
    assert!(!outcome.stdout.contains('≠'), "{}", outcome.stdout);
    assert_eq!(scene.explain(&[DEVICE]).code, Some(5), "and different once it is still");
}
