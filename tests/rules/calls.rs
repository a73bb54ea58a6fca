//! What the copy asks of Redis: small calls, and no command that walks the whole server.

use super::{migrate, now_ms};
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;

#[test]
fn no_call_carries_more_than_some_hundred_values_and_none_asks_for_all_keys() {
    let database = Postgres::shared().database();
    database.create_tables();
    database.psql(&format!(
        "insert into device_session_ctx select 'client ' || n, 0, 0, 1 from generate_series(1, 500) n;
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
         select 'client ' || n % 500, n, 't', {now}, n % 65535 + 1, 1, 'x'::bytea from generate_series(1, 1500) n union all
         select 'long', n, 't', {now}, n, 1, 'x' from generate_series(1, 3000) n",
        now = now_ms()
    ));
    let redis = Redis::start_with(&["--slowlog-log-slower-than", "0", "--slowlog-max-len", "100000"]);
    assert_eq!(migrate(&database, &redis, &[]).0.code, Some(0));
    // The log shows 31 words of a longer call and then how many more there are.
    let log = redis.cli(&["SLOWLOG", "GET", "-1"]);
    let longest = log.lines().filter_map(|line| line.strip_prefix("... (")?.split(' ').next()?.parse::<u32>().ok()).max();
    assert!(longest.is_some_and(|more| more < 1000), "{longest:?} values more than 31 in one call");
    let commands = redis.cli(&["INFO", "commandstats"]).to_lowercase();
    for forbidden in ["cmdstat_keys:", "cmdstat_flush", "cmdstat_monitor", "cmdstat_config|set", "cmdstat_expire_all"] {
        assert!(!commands.contains(forbidden), "{forbidden}");
    }
    assert!(commands.contains("cmdstat_evalsha:"));
}
