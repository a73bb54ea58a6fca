//! One folder, read and run.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::compared::Comparison;
use super::expected::Expected;
use super::target::Place;
use crate::support::postgres::{Database, Postgres};
use crate::support::tool::Tool;

/// Beside these, a folder holds `expected.json` and, where the outcome differs there, `expected_on_cluster.json`.
const FILES: [&str; 8] = ["source.sql", "expected.json", "expected_on_cluster.json", "verify.json", "options", "key_prefix", "redis.txt", "cluster"];

/// Options of `migrate` that a comparison does not have.
const ONLY_OF_MIGRATE: [&str; 4] = ["--on-existing", "--allow-removals", "--topic-field", "--dry-run"];

/// Everything in both tables, as one value.
const DIGEST: &str = "set bytea_output = hex; select md5(coalesce(string_agg(line, '/' order by line), '')) from
    (select m::text from device_publish_msg m union all select c::text from device_session_ctx c) t (line);";

/// A folder's inputs.
pub struct Case {
    folder: PathBuf,
    source: String,
    options: Vec<String>,
    key_prefix: String,
    redis: String,
}

impl Case {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name();
            if !FILES.iter().any(|known| name == *known) {
                return Err(format!("no file of a case is called {name:?}"));
            }
        }
        let optional = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        Ok(Self {
            source: std::fs::read_to_string(folder.join("source.sql")).map_err(|error| format!("source.sql: {error}"))?,
            options: optional("options").lines().map(str::to_owned).collect(),
            key_prefix: optional("key_prefix").trim_end_matches('\n').to_owned(),
            redis: optional("redis.txt"),
            folder: folder.to_owned(),
        })
    }

    /// Runs it at a place; the differences are the error.
    pub fn run(&self, place: &Place<'_>) -> Result<(), String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let prefix = format!("{}{}", place.prefix(), self.key_prefix);
        let expected = self.expected(place, now)?;
        let database = Postgres::shared().database();
        database.create_tables();
        let source = with_times(&self.source, now);
        let before = digest(&database, &format!("{source}\n"));
        if !self.redis.is_empty() {
            place.commands(&with_times(&self.redis, now).replace("{{prefix}}", &prefix));
        }
        let scratch = tempfile::tempdir().unwrap();
        let list = scratch.path().join("quarantine");
        let outcome = Tool::new()
            .args(["migrate", "--json", "--postgres-url", &database.url, "--redis-url", &place.url(), "--key-prefix", &prefix])
            .arg("--quarantine-file")
            .arg(&list)
            .args(&self.options)
            .run();
        let quarantine = std::fs::read_to_string(&list).unwrap_or_default();
        let mut differences = expected.differences(&outcome, &quarantine, &place.keyspace(&prefix));
        if let Some(code @ (0 | 10)) = outcome.code {
            let options = self.options.iter().filter(|option| !ONLY_OF_MIGRATE.iter().any(|other| option.starts_with(other)));
            let urls = ["--postgres-url", &database.url, "--redis-url", &place.url(), "--key-prefix", &prefix].map(str::to_owned);
            let report = scratch.path().join("findings");
            let verified = Tool::new().args(["verify", "--json"]).args(&urls).args(options).arg("--report").arg(&report).run();
            let findings = std::fs::read_to_string(&report).unwrap_or_default();
            differences.extend(self.comparison(code)?.differences(&verified, &findings));
        }
        if digest(&database, "") != before {
            differences.push("the source was changed".to_owned());
        }
        match differences.as_slice() {
            [] => Ok(()),
            _ => Err(format!("{} {place}:\n  {}\n  stderr: {}", "differs on", differences.join("\n  "), outcome.stderr.trim())),
        }
    }

    /// What a comparison after a run with this exit code must find: nothing, unless the folder says otherwise.
    fn comparison(&self, code: i32) -> Result<Comparison, String> {
        match std::fs::read_to_string(self.folder.join("verify.json")) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| format!("verify.json: {error}")),
            Err(_) => Ok(Comparison::equal(code)),
        }
    }

    fn expected(&self, place: &Place<'_>, now: Duration) -> Result<Expected, String> {
        let special = self.folder.join("expected_on_cluster.json");
        let path = if matches!(place, Place::Cluster { .. }) && special.exists() { special } else { self.folder.join("expected.json") };
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&with_times(&text, now)).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Runs statements and then looks at both tables.
fn digest(database: &Database, statements: &str) -> String {
    let printed = database.psql(&format!("{statements}{DIGEST}"));
    printed.lines().last().unwrap_or_default().to_owned()
}

/// Puts numbers where `{{now}}`, `{{now-1000}}` or `{{now+1000}}` stands, in quotes or not: Unix milliseconds.
fn with_times(text: &str, now: Duration) -> String {
    let now = i64::try_from(now.as_millis()).unwrap();
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{now") {
        let (offset, after) = after.split_once("}}").unwrap_or_else(|| panic!("{{{{now without }}}}: {after}"));
        let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().unwrap_or_else(|_| panic!("no number: {offset}")) };
        let quoted = before.ends_with('"') && after.starts_with('"');
        out.push_str(if quoted { &before[..before.len() - 1] } else { before });
        out.push_str(&(now + offset).to_string());
        rest = if quoted { &after[1..] } else { after };
    }
    out + rest
}

#[test]
fn a_time_in_quotes_becomes_a_number() {
    let now = Duration::from_millis(5000);
    assert_eq!(with_times(r#"{"a": "{{now-1000}}"} {{now}}, {{now+1}}"#, now), r#"{"a": 4000} 5000, 5001"#);
}
