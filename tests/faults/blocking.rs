//! No call keeps Redis from its other clients for long.

use crate::sessions::{Sessions, migrate};
use crate::support::redis::Redis;

/// `EVALSHA` calls in the slow log, which logs every one: how many keys each has. The server cuts long commands off after
/// 32 words, the number of keys is the third.
fn keys_of_calls(redis: &Redis) -> Vec<u64> {
    let mut connection = redis.connection();
    let entries: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG").arg("GET").arg(-1).query(&mut connection).unwrap();
    let commands = entries.into_iter().map(|entry| redis::from_redis_value::<Vec<String>>(entry[3].clone()).unwrap());
    commands.filter(|words| words[0] == "EVALSHA").map(|words| words[2].parse().unwrap()).collect()
}

#[test]
fn a_call_is_small_whatever_the_size_of_a_session_and_takes_little_of_the_servers_time() {
    let (redis, sessions) = (Redis::start(), Sessions::new(250, 40).with("giant", 10_000).with_lone_contexts(500));
    let database = sessions.load();
    for options in [&[][..], &["--on-existing", "replace"]] {
        for (name, value) in [("slowlog-log-slower-than", "0"), ("slowlog-max-len", "100000")] {
            redis.cli(&["CONFIG", "SET", name, value]);
        }
        redis.cli(&["SLOWLOG", "RESET"]);
        redis.cli(&["CONFIG", "RESETSTAT"]);
        sessions.assert_all_migrated(&migrate(&database, &redis.url()).args(options).run());
        // 20,000 messages at a hundred a call, which brings three keys for two sessions at most beside each message.
        let calls = keys_of_calls(&redis);
        assert!(calls.len() >= 200, "{} calls", calls.len());
        assert!(calls.iter().all(|keys| *keys <= 400), "{:?} keys in a call", calls.iter().max());
        // The mean of some hundred calls, since a single one may be held up by whatever else the machine does. In one call, the
        // giant session would take a hundred times as long.
        let statistics = redis.cli(&["INFO", "commandstats"]);
        let line = statistics.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
        let mean: f64 = line.split("usec_per_call=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        assert!(mean < 5000.0, "{line}");
    }
}
