//! What a process may not do any more to a run that went on without it.

use std::time::Duration;

use secrecy::SecretString;
use tbmq_migrate::config::PostgresConfig;
use tbmq_migrate::control::{Control, ControlError};
use tbmq_migrate::source::{Server, Source};
use tokio_util::sync::CancellationToken;

use super::scene::{Scene, assert_ends};

async fn control(scene: &Scene) -> Control {
    let config = PostgresConfig { url: SecretString::from(scene.database.url.clone()), display: "the test's".to_owned(), schema: None };
    let source = Source::new(&config).unwrap();
    let server = Server::read(&mut source.connect().await.unwrap()).await.unwrap();
    Control::open(&source, &server, Duration::from_secs(5), CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn a_run_that_is_over_is_not_opened_again_by_who_came_late() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    assert_ends(&scene.migrate().run(), 0, &[]);
    let control = control(&scene).await;
    let run: i64 = scene.sql("select id from tbmq_migrate.run where state = 'finished'").parse().unwrap();
    let chunks: Vec<i64> = control.done_chunks(run).await.unwrap().into_iter().map(|(chunk, _)| chunk).collect();
    assert_eq!(chunks.len(), 1);
    control.reopen_chunks(run, &chunks).await.unwrap();
    assert_eq!(scene.sql("select state from tbmq_migrate.chunk"), "done");
    assert_eq!(scene.sql("select state from tbmq_migrate.run"), "finished");
    // Not even a chunk that is open by mistake is to be had.
    scene.sql("update tbmq_migrate.chunk set state = 'open'");
    let worker: i64 = scene.sql("select id from tbmq_migrate.worker").parse().unwrap();
    assert_eq!(control.claim(run, worker, &[]).await.unwrap(), None);
}

#[tokio::test]
async fn only_the_worker_that_took_the_last_steps_ends_a_run_and_may_say_so_twice() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    let died = scene.migrate().env("TBMQ_MIGRATE_FAILPOINT", "sessions_removed").run();
    super::scene::assert_died(&died);
    let control = control(&scene).await;
    let finisher: i64 = scene.sql("select finisher_id from tbmq_migrate.run").parse().unwrap();
    let run: i64 = scene.sql("select id from tbmq_migrate.run").parse().unwrap();
    assert!(matches!(control.finish_run(run, finisher + 1, 7).await, Err(ControlError::LeaseLost { .. })));
    assert_eq!(scene.sql("select state, sessions_removed from tbmq_migrate.run"), "finishing|0");
    for _ in 0..2 {
        control.finish_run(run, finisher, 3).await.unwrap();
        assert_eq!(scene.sql("select state, sessions_removed from tbmq_migrate.run"), "finished|3");
    }
}
