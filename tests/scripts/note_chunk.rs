//! The journal of a shard: a note that may be repeated, and the history of writes that it belongs to.

use redis::Value;

use super::{Call, NOTE_CHUNK, assert_repeatable};
use crate::support::redis::Redis;

fn note(chunk: &str, attempt: &str) -> Call {
    Call::new(NOTE_CHUNK).key("journal").value(chunk).value(attempt).value("600")
}

#[test]
fn a_note_names_the_try_and_stays_for_the_time_given() {
    assert_repeatable(&note("7", "2"), |_| {});
    let server = Redis::start();
    let mut connection = server.connection();
    note("7", "2").send(&mut connection).unwrap();
    note("8", "1").send(&mut connection).unwrap();
    note("7", "3").send(&mut connection).unwrap();
    assert_eq!(server.cli(&["HGET", "journal", "7"]), "3");
    assert_eq!(server.cli(&["HGET", "journal", "8"]), "1");
    let seconds: i64 = server.cli(&["TTL", "journal"]).parse().unwrap();
    assert!((500..=600).contains(&seconds), "{seconds}");
}

#[test]
fn asking_writes_nothing_and_the_answer_is_another_one_after_a_restart() {
    let mut server = Redis::start();
    let ask = |server: &Redis| Call::new(NOTE_CHUNK).key("journal").send(&mut server.connection()).unwrap();
    let before = ask(&server);
    assert!(matches!(&before, Value::BulkString(id) if id.len() == 40), "{before:?}");
    assert!(server.keyspace().0.is_empty());
    assert_eq!(note("7", "1").send(&mut server.connection()).unwrap(), before);
    assert_eq!(ask(&server), before);
    server.kill9();
    server.start_again();
    assert_ne!(ask(&server), before);
}
