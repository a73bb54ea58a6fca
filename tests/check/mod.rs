//! `check` on planted states: each is found, with its weight and with what mends it, and nothing is changed by looking.

mod data;
mod postgres;
mod redis;
mod sides;

use serde_json::Value as Json;

use crate::runs::scene::{Scene, assert_same};
use crate::support::postgres::Database;
use crate::support::tool::{Outcome, Tool};

/// What one call said.
struct Page {
    outcome: Outcome,
    document: Json,
}

impl Page {
    /// The first finding of a name: the heaviest.
    fn finding(&self, name: &str) -> &Json {
        self.all(name).into_iter().next().unwrap_or_else(|| panic!("no {name} in {:#}", self.document))
    }

    fn all(&self, name: &str) -> Vec<&Json> {
        self.document["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == name).collect()
    }

    fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// Asserts how a thing stands, and that the text of it holds this; what mends it, empty for nothing.
    fn assert(&self, name: &str, level: &str, text: &str) -> String {
        let finding = self.finding(name);
        assert_eq!(finding["level"], level, "{finding:#}");
        assert!(finding["measured"].as_str().unwrap().contains(text), "no {text:?} in {finding:#}");
        finding["mend"].as_str().unwrap_or_default().to_owned()
    }

    /// The names of what blocks.
    fn blockers(&self) -> Vec<&str> {
        let findings = self.document["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["level"] == "blocker").map(|finding| finding["name"].as_str().unwrap()).collect()
    }

    fn next(&self) -> String {
        self.document["next_steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect::<Vec<_>>().join("\n")
    }

    fn forecast(&self, name: &str) -> u64 {
        self.document["forecast"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {:#}", self.document["forecast"]))
    }
}

/// `check` between two sides.
fn between(postgres_url: &str, redis_url: &str) -> Tool {
    Tool::new().args(["check", "--json", "--postgres-url", postgres_url, "--redis-url", redis_url])
}

/// `check` of a scene.
fn of(scene: &Scene) -> Tool {
    between(&scene.database.url, &scene.redis.url())
}

/// Reads what a call says, and asserts that its code and its counts are those of its findings.
fn read(call: Tool) -> Page {
    let outcome = call.run();
    let document = outcome.json();
    let page = Page { outcome, document };
    let count = |level: &str| page.document["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] == level).count();
    assert_eq!(page.document["blockers"], count("blocker"));
    assert_eq!(page.document["warnings"], count("warning"));
    assert_eq!(page.document["ready"], count("blocker") == 0);
    assert_eq!(page.outcome.code, Some(if count("blocker") == 0 { 0 } else { 4 }), "{:#?}", page.outcome);
    page
}

/// The same of a scene, and asserts that it changed neither side.
fn look(scene: &Scene) -> Page {
    look_by(scene, of(scene))
}

fn look_by(scene: &Scene, call: Tool) -> Page {
    let (keys, rows) = (scene.contents(), digest(&scene.database));
    let page = read(call);
    assert_same(&scene.contents(), &keys, "after a check");
    assert_eq!(digest(&scene.database), rows, "the source after a check");
    page
}

/// What a superuser sees of a database: its rows, and the objects that there are.
fn digest(database: &Database) -> String {
    database
        .try_psql(
            "select (select md5(string_agg(m::text, '' order by client_id, serial_number)) from device_publish_msg m),
                (select md5(string_agg(c::text, '' order by client_id)) from device_session_ctx c),
                (select md5(string_agg(oid::text || relname, '' order by oid)) from pg_class)",
        )
        .unwrap_or_default()
}

/// Two sessions of ten messages, ready to be carried.
fn ready() -> Scene {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    scene.sql("analyze");
    scene
}

/// The SQL at the end of what mends something: what follows the words of who runs it.
fn sql(mend: &str) -> &str {
    let from = [": alter ", ": grant ", ": drop ", ": select ", ": reindex ", ": rollback "].iter().find_map(|start| mend.find(start)).unwrap();
    &mend[from + 2..=mend.rfind(';').unwrap()]
}
