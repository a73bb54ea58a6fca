//! What keeps a run from beginning: each with its exit code, a text that names the thing, a hint that mends it, and
//! nothing changed on either side.

mod codes;
mod postgres;
mod redis;

use crate::runs::scene::{Scene, assert_ends, assert_same};
use crate::support::tool::{Outcome, Tool};

/// Asserts that a call ends with 4, says all of this, prints no result, and leaves both sides as they are.
fn assert_refused(scene: &Scene, call: Tool, says: &[&str]) -> Outcome {
    let before = scene.contents();
    let outcome = call.run();
    assert_ends(&outcome, 4, says);
    assert_eq!(outcome.stdout, "");
    assert_same(&scene.contents(), &before, "a refused call");
    assert_eq!(scene.sql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
    outcome
}

/// Two sessions, ready to be carried.
fn ready() -> Scene {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    scene
}

/// Asserts that nothing is in the way any more.
fn assert_runs(scene: &Scene) {
    assert_ends(&scene.migrate().run(), 0, &[]);
    assert_eq!(scene.keys(), 24);
}
