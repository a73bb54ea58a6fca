//! Sessions whose every value follows from arithmetic, and calls of the tool about them.

use std::path::PathBuf;

use crate::runs::scene::Scene;
use crate::support::tool::{Outcome, Tool};

/// The life of a message without an interval of its own, in ms: the default of a week.
const WEEK_MS: i64 = 604_800_000;

/// Both sides, equal at first, and a file for findings.
pub struct Sides {
    pub scene: Scene,
    pub report: PathBuf,
}

impl Sides {
    /// Sessions `a-01` to `a-06` of ten rows each, copied.
    pub fn copied() -> Self {
        let scene = Scene::empty();
        scene.add_sessions("a", 6);
        assert_eq!(scene.migrate().run().code, Some(0));
        let report = scene.redis.directory().join("findings.jsonl");
        Self { scene, report }
    }

    /// A command with both places.
    pub fn tool(&self, command: &str) -> Tool {
        Tool::new().args([command, "--postgres-url", &self.scene.database.url, "--redis-url", &self.scene.redis.url()])
    }

    pub fn verify(&self) -> Outcome {
        self.tool("verify").arg("--json").arg("--report").arg(&self.report).run()
    }

    pub fn repair(&self) -> Tool {
        self.tool("repair").arg("--json").arg("--report").arg(&self.report)
    }

    /// Commands for Redis, words separated by one space.
    pub fn redis(&self, lines: &[&str]) {
        lines.iter().for_each(|line| drop(self.scene.redis.cli(&line.split(' ').collect::<Vec<_>>())));
    }

    /// Asserts that a session has ten messages that end a week after the time of their rows, with score serial + 1.
    pub fn assert_original(&self, client: &str) {
        let keys = self.scene.redis.keyspace();
        let members = keys.members(format!("{{{client}}}_messages"));
        let expected: Vec<(String, f64)> = (0..10).map(|s| (format!("{{{client}}}_messages_{}", s + 1), f64::from(s + 1))).collect();
        assert_eq!(members, expected, "{client}");
        assert_eq!(keys.text(format!("{{{client}}}_last_packet_id")).as_deref(), Some("10"));
        for serial in 0..10 {
            let time: i64 = self
                .scene
                .sql(&format!("select time from device_publish_msg where client_id = '{client}' and serial_number = {serial}"))
                .parse()
                .unwrap();
            let deadline = self.scene.redis.cli(&["PEXPIRETIME", &format!("{{{client}}}_messages_{}", serial + 1)]);
            assert_eq!(deadline, (time + WEEK_MS).to_string(), "{client} {serial}");
        }
    }
}
