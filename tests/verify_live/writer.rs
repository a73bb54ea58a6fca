//! Writers that change sessions on both sides, as something that carries changes would: Redis while the transaction is open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use redis::Cmd;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::support::poll::wait_until;
use crate::support::postgres::Database;

const TTL_MS: i64 = 604_800_000;
/// Above it rows are acknowledged rather than added.
const MANY_ROWS: usize = 20;
/// The seed where `SOAK_SEED` says no other.
const SEED: u64 = 0x5eed_0001;

/// Writers at work, each with sessions of its own.
pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Done>>,
}

/// What a writer has done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Done {
    pub committed: u64,
    pub rolled_back: u64,
    pub held: u64,
}

/// What both sides hold of a session.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    exists: bool,
    /// By serial number.
    rows: BTreeMap<i64, Row>,
    next_serial: i64,
    last_packet_id: u16,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    packet_id: u16,
    is_pubrel: bool,
}

/// One writer.
struct Writer {
    sessions: Vec<(String, State)>,
    time_ms: i64,
    dice: Dice,
    postgres: PgConnection,
    redis: redis::Connection,
    done: Done,
}

/// An xorshift generator.
struct Dice(u64);

/// A session whose first message stays as it is for ever, and that is never deleted.
pub fn is_lasting(client: &str) -> bool {
    client.starts_with("lasting")
}

impl Writers {
    /// Starts `count` writers for so many sessions each, half of them lasting ones; returns when every session was made.
    pub fn start(database: &Database, redis_url: &str, count: u64, sessions: u64) -> Self {
        let seed = std::env::var("SOAK_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
        eprintln!("the writers' seed: SOAK_SEED={seed}");
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|number| {
            let names = (0..sessions).map(|n| format!("{}-{number}-{n:02}", if n % 2 == 0 { "lasting" } else { "fleeting" })).collect();
            let (stop, url, redis) = (Arc::clone(&stop), database.url.clone(), redis::Client::open(redis_url).unwrap());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let dice = Dice(seed.wrapping_mul(2 * number + 1) | 1);
                runtime.block_on(Writer::new(&url, redis.get_connection().unwrap(), names, dice)).work(&runtime, &stop)
            })
        });
        let threads = threads.collect();
        wait_until("the writers to make their sessions", || {
            database.psql("select count(*) from device_session_ctx where client_id like 'lasting-%'") == (count * sessions.div_ceil(2)).to_string()
        });
        Self { stop, threads }
    }

    /// Ends them; what each of them did.
    pub fn finish(mut self) -> Vec<Done> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|thread| thread.join().unwrap()).collect()
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Its own panic says more.
            let _ = thread.join();
        }
    }
}

impl Writer {
    async fn new(url: &str, redis: redis::Connection, names: Vec<String>, dice: Dice) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let sessions = names.into_iter().map(|name| (name, State::default())).collect();
        let postgres = PgConnection::connect(url).await.unwrap();
        Self { sessions, time_ms: i64::try_from(now).unwrap() - 60_000, dice, postgres, redis, done: Done::default() }
    }

    fn work(mut self, runtime: &tokio::runtime::Runtime, stop: &AtomicBool) -> Done {
        for number in 0..self.sessions.len() {
            runtime.block_on(self.change(number, false));
        }
        while !stop.load(Ordering::Relaxed) {
            let number = usize::try_from(self.dice.roll(self.sessions.len() as u64)).unwrap();
            let before = self.sessions[number].1.clone();
            let dice = self.dice.0;
            runtime.block_on(self.change(number, true));
            if self.sessions[number].1 == before && self.dice.roll(2) == 0 {
                // Rolled back: a client tries the same once more.
                let after = std::mem::replace(&mut self.dice.0, dice);
                runtime.block_on(self.change(number, false));
                self.dice.0 = after;
            }
            // So that sessions hold still for some milliseconds, as those of devices do.
            std::thread::sleep(Duration::from_micros(500 + self.dice.roll(3000)));
        }
        self.done
    }

    /// One transaction on one session.
    async fn change(&mut self, number: usize, may_roll_back: bool) {
        let (client, before) = self.sessions[number].clone();
        let after = self.next(&client, &before);
        sqlx::raw_sql("begin").execute(&mut self.postgres).await.unwrap();
        for sql in statements(&client, &before, &after, self.time_ms) {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut self.postgres).await.unwrap();
        }
        self.carry(&client, &before, &after);
        let fate = self.dice.roll(100);
        if fate < 2 {
            self.done.held += 1;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        if may_roll_back && (2..17).contains(&fate) {
            self.carry(&client, &after, &before);
            sqlx::raw_sql("rollback").execute(&mut self.postgres).await.unwrap();
            self.done.rolled_back += 1;
        } else {
            sqlx::raw_sql("commit").execute(&mut self.postgres).await.unwrap();
            self.sessions[number].1 = after;
            self.done.committed += 1;
        }
    }

    /// What a session becomes.
    fn next(&mut self, client: &str, before: &State) -> State {
        let mut after = before.clone();
        let first = i64::from(is_lasting(client));
        let touchable: Vec<i64> = before.rows.range(first..).map(|(serial, _)| *serial).collect();
        let roll = self.dice.roll(100);
        if before.exists && !is_lasting(client) && roll < 3 {
            return State::default();
        }
        let some = (!touchable.is_empty()).then(|| touchable[usize::try_from(self.dice.roll(touchable.len() as u64)).unwrap()]);
        match some {
            Some(serial) if roll < 40 || before.rows.len() > MANY_ROWS => {
                after.rows.remove(&serial);
            }
            Some(serial) if roll < 55 => after.rows.get_mut(&serial).unwrap().is_pubrel = true,
            Some(serial) if roll < 65 => {
                after.last_packet_id += 1;
                after.rows.insert(serial, Row { packet_id: after.last_packet_id, is_pubrel: false });
            }
            _ => {
                after.exists = true;
                after.last_packet_id += 1;
                after.rows.insert(after.next_serial, Row { packet_id: after.last_packet_id, is_pubrel: false });
                after.next_serial += 1;
            }
        }
        after
    }

    /// Makes Redis what the session becomes, at once or step by step.
    fn carry(&mut self, client: &str, before: &State, after: &State) {
        let steps = steps(client, before, after, self.time_ms);
        if self.dice.roll(2) == 0 {
            let mut all = redis::pipe();
            all.atomic();
            steps.into_iter().for_each(|step| {
                all.add_command(step).ignore();
            });
            return all.exec(&mut self.redis).unwrap();
        }
        steps.into_iter().for_each(|step| step.exec(&mut self.redis).unwrap());
    }
}

/// The statements that change the rows.
fn statements(client: &str, before: &State, after: &State, time_ms: i64) -> Vec<String> {
    if before.exists && !after.exists {
        return ["device_publish_msg", "device_session_ctx"].map(|table| format!("delete from {table} where client_id = '{client}'")).to_vec();
    }
    let mut all = Vec::new();
    for serial in before.rows.keys().filter(|serial| !after.rows.contains_key(serial)) {
        all.push(format!("delete from device_publish_msg where client_id = '{client}' and serial_number = {serial}"));
    }
    for (serial, row) in after.rows.iter().filter(|(serial, row)| before.rows.get(serial) != Some(row)) {
        let (packet_id, kind) = (row.packet_id, if row.is_pubrel { "PUBREL" } else { "PUBLISH" });
        all.push(format!(
            "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, retain)
             values ('{client}', {serial}, 't/{serial}', {time_ms}, {packet_id}, '{kind}', 2, '{client}/{serial}', false)
             on conflict (client_id, serial_number) do update set packet_id = excluded.packet_id, packet_type = excluded.packet_type"
        ));
    }
    let (serial, packet_id) = (after.next_serial - 1, after.last_packet_id);
    all.push(format!(
        "insert into device_session_ctx values ('{client}', {time_ms}, {serial}, {packet_id})
         on conflict (client_id) do update set last_serial_number = {serial}, last_packet_id = {packet_id}"
    ));
    all
}

/// The commands that change the keys.
fn steps(client: &str, before: &State, after: &State, time_ms: i64) -> Vec<Cmd> {
    let (set, last) = (format!("{{{client}}}_messages"), format!("{{{client}}}_last_packet_id"));
    let key = |packet_id: u16| format!("{set}_{packet_id}");
    let command = |words: &[&str]| {
        let mut command = Cmd::new();
        command.arg(words);
        command
    };
    let mut all = Vec::new();
    for (serial, row) in after.rows.iter().filter(|(serial, row)| before.rows.get(serial) != Some(row)) {
        let json = json!({
            "clientId": client, "topicName": format!("t/{serial}"), "time": time_ms, "packetId": row.packet_id,
            "packetType": if row.is_pubrel { "PUBREL" } else { "PUBLISH" }, "qos": 2, "payload": BASE64.encode(format!("{client}/{serial}")),
            "retained": false,
        });
        all.push(command(&["SET", &key(row.packet_id), &json.to_string(), "PXAT", &(time_ms + TTL_MS).to_string()]));
        all.push(command(&["ZADD", &set, &(serial + 1).to_string(), &key(row.packet_id)]));
    }
    if after.exists && after.last_packet_id != before.last_packet_id {
        all.push(command(&["SET", &last, &after.last_packet_id.to_string()]));
    }
    let stay: Vec<u16> = after.rows.values().map(|row| row.packet_id).collect();
    for row in before.rows.values().filter(|row| !stay.contains(&row.packet_id)) {
        all.push(command(&["ZREM", &set, &key(row.packet_id)]));
        all.push(command(&["DEL", &key(row.packet_id)]));
    }
    if !after.exists && before.exists {
        all.push(command(&["DEL", &last]));
    }
    all
}

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % sides
    }
}
