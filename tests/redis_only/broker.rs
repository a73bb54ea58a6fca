//! A 2.x broker that works all the time, by its own scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;

use super::{findings, now_ms, verify};
use crate::support::redis::Redis;

/// It adds, delivers, acknowledges and releases messages of some sessions until it is dropped.
struct Broker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

fn key(client: &str) -> [String; 2] {
    [format!("{{{client}}}_messages"), format!("{{{client}}}_last_packet_id")]
}

fn add(connection: &mut redis::Connection, client: &str) {
    let message = json!([{"clientId": client, "topicName": "t", "time": now_ms(), "packetId": 0, "packetType": "PUBLISH", "qos": 2, "payload": "aGk=",
        "retained": false}]);
    let script = redis::Script::new(include_str!("../../lua/add_messages.lua"));
    let [set, last] = key(client);
    let _: redis::Value = script.key(set).key(last).arg(20).arg(message.to_string()).arg(604_800).invoke(connection).unwrap();
}

impl Broker {
    fn start(redis: &Redis, clients: Vec<String>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut connection) = (Arc::clone(&stop), redis.connection());
        let thread = std::thread::spawn(move || {
            let remove = redis::Script::new(include_str!("../../lua/remove_message.lua"));
            let release = redis::Script::new(include_str!("../../lua/update_packet_type.lua"));
            let deliver = redis::Script::new(include_str!("../../lua/get_messages.lua"));
            let mut steps = 0_u64;
            while !stopped.load(Ordering::Relaxed) {
                for client in &clients {
                    add(&mut connection, client);
                    let [set, last] = key(client);
                    let last: u64 = redis::cmd("GET").arg(&last).query(&mut connection).unwrap();
                    let acknowledged = last.saturating_sub(steps % 7).max(1);
                    match steps % 3 {
                        0 => drop(remove.key(&set).arg(acknowledged).invoke::<redis::Value>(&mut connection).unwrap()),
                        1 => drop(release.key(&set).arg(acknowledged).invoke::<redis::Value>(&mut connection).unwrap()),
                        _ => drop(deliver.key(&set).arg(20).invoke::<redis::Value>(&mut connection).unwrap()),
                    }
                    steps += 1;
                }
            }
            steps
        });
        Self { stop, thread: Some(thread) }
    }

    /// How many steps it took.
    fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(0, |thread| thread.join().unwrap())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_broker_at_work_makes_no_false_alarm_and_hides_no_fault() {
    let redis = Redis::start();
    let clients: Vec<String> = (0..30).map(|number| format!("busy-{number}")).collect();
    clients.iter().for_each(|client| add(&mut redis.connection(), client));
    let broker = Broker::start(&redis, clients);
    for _ in 0..8 {
        let outcome = verify(&redis.url()).run();
        assert!(matches!(outcome.code, Some(0 | 6)), "{outcome:#?}");
        assert_eq!(outcome.json()["findings"], json!({}));
    }
    // A string that nothing refers to, in a session that is written to all the time.
    redis.cli(&["SET", "{busy-3}_messages_60000", "{}", "EX", "1000"]);
    for _ in 0..4 {
        let (outcome, found) = findings(&redis, &[]);
        assert_eq!(found, [("busy-3".to_owned(), "orphan_string".to_owned(), Some(60_000))], "{outcome:#?}");
        assert_eq!(outcome.code, Some(5));
    }
    assert!(broker.stop() > 500);
}

#[test]
fn a_session_that_never_holds_still_is_not_checked() {
    let redis = Redis::start();
    add(&mut redis.connection(), "busy");
    redis.cli(&["SET", "{busy}_last_packet_id", "0"]);
    // Without its last packet id the session is wrong at every look; its references never stay the same.
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, mut connection) = (Arc::clone(&stop), redis.connection());
    let thread = std::thread::spawn(move || {
        let mut score = 0_u64;
        while !stopped.load(Ordering::Relaxed) {
            score += 1;
            let () = redis::cmd("ZADD").arg("{busy}_messages").arg(score).arg("{busy}_messages_1").query(&mut connection).unwrap();
        }
    });
    let outcome = verify(&redis.url()).args(["--settle-timeout", "1s"]).run();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!(outcome.code, Some(6), "{outcome:#?}");
    assert_eq!((&outcome.json()["not_checked"], &outcome.json()["findings"]), (&json!(1), &json!({})));
    assert_eq!(findings(&redis, &[]).1, [("busy".to_owned(), "last_packet_id_behind".to_owned(), None)]);
}
