//! A session with a row of every outcome, and how it is explained.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::sessions::migrate;
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, Tool};

/// The client id of the session with a row of every outcome.
pub const DEVICE: &str = "dev-1";
/// What stands in every payload.
pub const SECRET: &str = "s3cret-payload";
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Both servers, and when its rows were made.
pub struct Scene {
    pub database: Database,
    pub redis: Redis,
    pub now_ms: i64,
}

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A row of `device_publish_msg`, as SQL values.
pub struct Row<'r> {
    pub serial: i64,
    pub packet_id: &'r str,
    pub packet_type: &'r str,
    pub time: i64,
    pub interval: &'r str,
}

/// A text as a literal of SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Adds rows of a session.
pub fn insert(database: &Database, client: &str, rows: &[Row<'_>]) {
    let values = rows.iter().map(|row| {
        let Row { serial, packet_id, packet_type, time, interval } = row;
        let client = literal(client);
        format!("({client}, {serial}, 'home/{serial}', {time}, {packet_id}, '{packet_type}', 1, '{SECRET}-{serial}', null, false, {interval})")
    });
    database.psql(&format!("insert into device_publish_msg values {}", values.collect::<Vec<_>>().join(", ")));
}

/// Adds a context.
pub fn insert_context(database: &Database, client: &str, last_serial: i64, last_packet_id: i64) {
    database.psql(&format!("insert into device_session_ctx values ({}, 1764547200000, {last_serial}, {last_packet_id})", literal(client)));
}

impl Scene {
    /// Empty tables and an empty Redis.
    pub fn empty() -> Self {
        let database = Postgres::shared().database();
        database.create_tables();
        Self { database, redis: Redis::start(), now_ms: now_ms() }
    }

    /// Of the session `dev-1`, by serial: 0 is trimmed (the limit is four), 1 superseded by 6, 2 expired by the TTL, 3 by its own
    /// interval, 4 quarantined, 5 a PUBREL and 6 a PUBLISH of a day, both migrated; and migrated it is.
    pub fn of_every_outcome() -> Self {
        let scene = Self::empty();
        let now = scene.now_ms;
        let row = |serial, packet_id, packet_type, time, interval| Row { serial, packet_id, packet_type, time, interval };
        insert(
            &scene.database,
            DEVICE,
            &[
                row(0, "40", "PUBLISH", now - 60_000, "null"),
                row(1, "7", "PUBLISH", now - 60_000, "null"),
                row(2, "3", "PUBLISH", now - 9 * DAY_MS, "null"),
                row(3, "4", "PUBLISH", now - 2 * HOUR_MS, "60"),
                row(4, "null", "PUBLISH", now - 60_000, "null"),
                row(5, "6", "PUBREL", now - 60_000, "null"),
                row(6, "7", "PUBLISH", now - HOUR_MS, "86400"),
            ],
        );
        insert_context(&scene.database, DEVICE, 6, 7);
        scene.migrate(&["--message-limit", "4"]);
        scene
    }

    pub fn migrate(&self, arguments: &[&str]) {
        let outcome = migrate(&self.database, &self.redis.url()).args(arguments).run();
        assert!(matches!(outcome.code, Some(0 | 10)), "{outcome:#?}");
    }

    /// Explains a session.
    pub fn explain(&self, arguments: &[&str]) -> Outcome {
        explain(&self.database.url, &self.redis.url(), arguments)
    }

    /// Explains the session of every outcome.
    pub fn explain_device(&self, arguments: &[&str]) -> Outcome {
        let all = [&["--message-limit", "4", DEVICE], arguments].concat();
        self.explain(&all)
    }
}

/// Explains a session of these servers.
pub fn explain(postgres: &str, redis: &str, arguments: &[&str]) -> Outcome {
    Tool::new().args(["explain", "--postgres-url", postgres, "--redis-url", redis]).args(arguments).run()
}

/// Fails unless the page says this, wherever its lines are broken.
pub fn assert_says(outcome: &Outcome, said: &str) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&outcome.stdout).contains(&words(said)), "{said}\n{}", outcome.stdout);
}

/// What the line of a serial says of Redis: score, end, and mark.
pub fn redis_side(outcome: &Outcome, serial: i64) -> Vec<String> {
    let line = line(outcome, serial);
    let (_, redis) = line.split_once('│').unwrap_or_else(|| panic!("{line}"));
    redis.split_whitespace().map(str::to_owned).collect()
}

/// The line of the table for a serial.
pub fn line(outcome: &Outcome, serial: i64) -> String {
    let serial = serial.to_string();
    let found = outcome.stdout.lines().find(|line| line.split_whitespace().next() == Some(&serial));
    found.unwrap_or_else(|| panic!("no line of {serial}\n{}", outcome.stdout)).to_owned()
}

/// Fails unless nothing in the result is longer than 100 columns, or something that a terminal obeys.
pub fn assert_fit_for_a_terminal(outcome: &Outcome) {
    for line in outcome.stdout.lines() {
        let wide: usize = line.chars().map(|c| if c.is_ascii() || "│≠…".contains(c) { 1 } else { 2 }).sum();
        assert!(wide <= 100, "{wide} columns: {line}");
    }
    let unsafe_letter =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!outcome.stdout.contains(unsafe_letter), "{:?}", outcome.stdout);
    assert!(!outcome.stderr.contains(unsafe_letter), "{:?}", outcome.stderr);
}
