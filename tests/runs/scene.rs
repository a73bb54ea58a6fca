//! A source, a target, and calls of the tool between them.

use serde_json::{Value as Json, json};

use crate::support::keyspace::{Keyspace, Value};
use crate::support::postgres::{Database, Postgres};
use crate::support::redis::Redis;
use crate::support::tool::{Outcome, RunningTool, Tool};

/// The rows of [`Scene::stocked`].
const ROWS: &str = include_str!("rows.sql");
/// The limit that trims ten rows of the one long session.
pub const LIMIT: &str = "2990";
/// What [`Scene::stocked`] comes to, by the arithmetic in `rows.sql`: 240 devices carry eight of ten rows, the long
/// session its newest 2990, the others all but the one row whose packet id came again.
pub const FIGURES: [(&str, u64); 9] = [
    ("sessions", 240 + 1 + 1 + 1 + 7 + 43),
    ("rows_read", 2400 + 3000 + 3 + 5 + 14),
    ("messages_migrated", 240 * 8 + 2990 + 2 + 5 + 14),
    ("expired_by_interval", 240),
    ("expired_by_ttl", 240),
    ("superseded", 1),
    ("trimmed", 10),
    ("quarantined", 0),
    ("orphan_messages", 5),
];
/// The outcomes of a row; they add up to the rows read.
pub const OUTCOMES: [&str; 6] = ["messages_migrated", "expired_by_interval", "expired_by_ttl", "superseded", "trimmed", "quarantined"];

/// A database of the shared PostgreSQL and a Redis of its own.
pub struct Scene {
    pub database: Database,
    pub redis: Redis,
}

impl Scene {
    /// Both tables, empty, and an empty Redis.
    pub fn empty() -> Self {
        let database = Postgres::shared().database();
        database.create_tables();
        Self { database, redis: Redis::start() }
    }

    /// 293 sessions with 5,422 rows: see `rows.sql`.
    pub fn stocked() -> Self {
        let scene = Self::empty();
        scene.database.psql(ROWS);
        scene
    }

    /// A few sessions of ten plain rows, serials from 0, named `NAME-01` onwards; nothing of them is left behind.
    pub fn add_sessions(&self, name: &str, count: u32) {
        self.sql(&format!(
            "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
             select format('{name}-%s', lpad(c::text, 2, '0')), s, 't', (extract(epoch from now()) * 1000)::bigint, s + 1, 'PUBLISH', 1, 'x'
             from generate_series(1, {count}) c, generate_series(0, 9) s;
             insert into device_session_ctx select client_id, 1, 9, 10 from device_publish_msg where client_id like '{name}-%' group by 1"
        ));
    }

    /// Statements in the database.
    pub fn sql(&self, sql: &str) -> String {
        self.database.psql(sql)
    }

    /// `migrate` between the two sides, without a terminal.
    pub fn migrate(&self) -> Tool {
        self.migrate_to(&self.redis)
    }

    /// The same to another Redis.
    pub fn migrate_to(&self, redis: &Redis) -> Tool {
        Tool::new().args(["migrate", "--postgres-url", &self.database.url, "--redis-url", &redis.url()])
    }

    /// `migrate` of [`Scene::stocked`] with its limit, the JSON report and two jobs.
    pub fn migrate_stock(&self) -> Tool {
        self.migrate_stock_by("2")
    }

    /// The same with another number of jobs.
    pub fn migrate_stock_by(&self, jobs: &str) -> Tool {
        self.migrate().args(["--message-limit", LIMIT, "--json", "--jobs", jobs])
    }

    /// What a run without any disturbance leaves in a Redis of its own, at this moment.
    pub fn undisturbed(&self, options: &[&str]) -> Keyspace {
        let other = Redis::start();
        let outcome = self.migrate_to(&other).args(["--stateless", "--json"]).args(options).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        contents(&other)
    }

    /// What the Redis holds.
    pub fn contents(&self) -> Keyspace {
        contents(&self.redis)
    }

    /// The number of keys in the Redis.
    pub fn keys(&self) -> u64 {
        self.redis.cli(&["DBSIZE"]).parse().unwrap()
    }

    /// As after the twenty seconds that a dead process keeps its chunks: its lease is over.
    pub fn let_leases_run_out(&self) {
        self.sql("update tbmq_migrate.worker set expires_at = clock_timestamp() - interval '1 ms'");
    }

    /// Cuts the open run into chunks of some 25 sessions: a few thousand rows make one chunk only.
    pub fn cut_into_small_chunks(&self) {
        self.sql(
            "delete from tbmq_migrate.chunk;
             insert into tbmq_migrate.chunk (run_id, lower_id, upper_id)
             select (select id from tbmq_migrate.run where state = 'copying'), lag(border) over (order by place), border
             from (select client_id as border, place from (select client_id, row_number() over (order by client_id) as place
                   from device_session_ctx) numbered where place % 25 = 0
                   union all select null, 1000000) borders",
        );
    }

    /// Begins a run that dies at once, and cuts it into small chunks; the same arguments go on with it.
    pub fn begin_in_small_chunks(&self, call: Tool) {
        assert_died(&call.env("TBMQ_MIGRATE_FAILPOINT", "run_begun").run());
        self.let_leases_run_out();
        self.cut_into_small_chunks();
    }
}

/// Reads all keys, many a round trip. Keys that expire meanwhile are left out.
pub fn contents(redis: &Redis) -> Keyspace {
    let mut connection = redis.connection();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    let mut found = Keyspace::default();
    for page in keys.chunks(1000) {
        let mut pipe = redis::pipe();
        for key in page {
            pipe.cmd("TYPE").arg(key).cmd("PEXPIRETIME").arg(key);
        }
        let facts: Vec<(String, i64)> = pipe.query::<Vec<redis::Value>>(&mut connection).unwrap().chunks(2).map(fact).collect();
        let mut pipe = redis::pipe();
        for (key, (kind, _)) in page.iter().zip(&facts) {
            match kind.as_str() {
                "string" => pipe.cmd("GET").arg(key),
                "zset" => pipe.cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"),
                _ => pipe.cmd("PING"),
            };
        }
        let values: Vec<redis::Value> = pipe.query(&mut connection).unwrap();
        for ((key, (kind, deadline)), value) in page.iter().zip(facts).zip(values) {
            let value = match kind.as_str() {
                "none" => continue,
                "string" => Value::Str { bytes: redis::from_redis_value(value).unwrap(), pexpiretime_ms: (deadline >= 0).then_some(deadline) },
                "zset" => Value::ZSet(redis::from_redis_value(value).unwrap()),
                _ => Value::Other(kind),
            };
            found.0.insert(key.clone(), value);
        }
    }
    found
}

fn fact(pair: &[redis::Value]) -> (String, i64) {
    (redis::from_redis_value(pair[0].clone()).unwrap(), redis::from_redis_value(pair[1].clone()).unwrap())
}

/// Asserts that two Redis hold the same, naming the first few keys that differ.
pub fn assert_same(found: &Keyspace, expected: &Keyspace, when: &str) {
    let keys: std::collections::BTreeSet<_> = found.0.keys().chain(expected.0.keys()).collect();
    let differing: Vec<String> = keys
        .into_iter()
        .filter(|key| found.get(key) != expected.get(key))
        .map(|key| format!("{}: found {:?}, expected {:?}", String::from_utf8_lossy(key), found.get(key), expected.get(key)))
        .collect();
    let shown = &differing[..differing.len().min(5)];
    assert!(differing.is_empty(), "{when}: {} keys differ, such as\n{}", differing.len(), shown.join("\n"));
}

/// Asserts that a call ended at a failpoint.
pub fn assert_died(outcome: &Outcome) {
    assert_eq!(outcome.code, None, "did not die at the failpoint: {outcome:#?}");
}

/// Asserts that a call is done and that its figures are those of [`Scene::stocked`].
pub fn assert_stock_is_carried(outcome: &Outcome, when: &str) {
    assert_eq!(outcome.code, Some(0), "{when}: {outcome:#?}");
    let report = outcome.json();
    let expected: Json = FIGURES.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect::<serde_json::Map<_, _>>().into();
    let found: Json = FIGURES.iter().map(|(name, _)| ((*name).to_owned(), report[*name].clone())).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(found, expected, "{when}");
    assert_adds_up(&report);
}

/// Asserts that the outcomes in a report add up to the rows read.
pub fn assert_adds_up(report: &Json) {
    let sum: u64 = OUTCOMES.iter().map(|name| report[*name].as_u64().unwrap()).sum();
    assert_eq!(report["rows_read"].as_u64(), Some(sum), "{report:#}");
}

/// Asserts how a call ended, and that each text stands in what it said.
pub fn assert_ends(outcome: &Outcome, code: i32, says: &[&str]) {
    assert_eq!(outcome.code, Some(code), "{outcome:#?}");
    for text in says {
        assert!(outcome.stderr.contains(text), "no {text:?} in {outcome:#?}");
    }
}

/// Waits until a running call has written something.
pub fn wait_for_keys(scene: &Scene, call: &mut RunningTool, least: u64) {
    crate::support::poll::wait_until("keys in Redis", || {
        assert!(call.is_running(), "ended before there were {least} keys");
        scene.keys() >= least
    });
}
