//! A 2.x broker that is let at the same Redis too early.

use std::path::Path;

use super::{assert_stuck, wait_for_keys};
use crate::sessions::{Sessions, migrate};
use crate::support::keyspace::Value;
use crate::support::redis::Redis;

/// What a broker does with the first message of a session that it finds empty.
fn add_a_message(redis: &Redis, client: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/add_messages.lua");
    let (set, last) = (format!("{{{client}}}_messages"), format!("{{{client}}}_last_packet_id"));
    redis.cli(&["--eval", script.to_str().unwrap(), &set, &last, ",", "10000", r#"[{"payload":"bmV3"}]"#, "600"]);
}

#[test]
fn a_session_that_a_broker_made_meanwhile_stops_the_run_and_stays_as_it_is() {
    // The copy goes by falling client id: these are the last, one of a single call, one of several.
    for (client, messages) in [("a", 40), ("a-long", 450)] {
        let (redis, sessions) = (Redis::start(), Sessions::new(30, 40).with(client, messages));
        let database = sessions.load();
        let mut run = migrate(&database, &redis.url()).args(["--max-rate", "1200"]).spawn();
        wait_for_keys(&mut run, &redis, 300);
        add_a_message(&redis, client);
        let of_the_broker = || {
            let own = format!("{{{client}}}");
            let keys = redis.keyspace().0.into_iter().filter(|(key, _)| key.starts_with(own.as_bytes()));
            keys.collect::<Vec<(Vec<u8>, Value)>>()
        };
        let before = of_the_broker();
        assert_eq!(before.len(), 3);
        let session = format!("a session of {client} appeared in Redis");
        let says = [session.as_str(), "is a 2.x broker running on this Redis already?", "--restart --on-existing replace"];
        assert_stuck(&run.wait(), &says);
        assert_eq!(of_the_broker(), before);

        // Running it again does not take the broker's session for one of its own.
        assert_stuck(&migrate(&database, &redis.url()).run(), &says);
        assert_eq!(of_the_broker(), before);

        let replaced = migrate(&database, &redis.url()).args(["--restart", "--on-existing", "replace"]).run();
        sessions.assert_all_migrated(&replaced);
        sessions.assert_stand_in(&redis.keyspace(), "");
    }
}
