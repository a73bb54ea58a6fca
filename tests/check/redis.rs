//! What is planted in Redis.

use super::{between, look, look_by, of, read, ready};
use crate::runs::scene::Scene;
use crate::support::cluster::RedisCluster;
use crate::support::poll::wait_until;
use crate::support::redis::Redis;
use crate::support::sentinel::Sentinel;

/// The command at the end of what mends something, as words for `redis-cli`.
fn command(mend: &str) -> Vec<String> {
    let (_, command) = mend.split_once("on the server: ").unwrap();
    command.split([',', '(']).next().unwrap().split_whitespace().map(str::to_owned).collect()
}

fn run(redis: &Redis, mend: &str) {
    redis.cli(&command(mend).iter().map(String::as_str).collect::<Vec<_>>());
}

fn used_memory(redis: &Redis) -> u64 {
    redis.cli(&["INFO", "memory"]).lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok()).unwrap()
}

#[test]
fn a_policy_that_evicts_blocks_and_the_command_mends_it() {
    let scene = ready();
    scene.redis.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let page = look(&scene);
    let mend = page.assert("eviction_policy", "blocker", "is allkeys-lru, which deletes session keys when memory runs out");
    assert_eq!(page.blockers(), ["eviction_policy"]);
    page.assert("rights", "warning", "unknown");
    run(&scene.redis, &mend);
    assert!(look(&scene).blockers().is_empty());
}

#[test]
fn sessions_that_stand_already_are_not_needed_twice_so_their_memory_does_not_block() {
    let scene = heavy();
    assert_eq!(scene.migrate().arg("--stateless").run().code, Some(0));
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", &(used_memory(&scene.redis) + (2 << 20)).to_string()]);
    let page = look(&scene);
    page.assert("memory", "warning", "the sessions that stand already are in it");
    assert!(page.blockers().is_empty());
    assert_eq!(scene.migrate().args(["--stateless", "--on-existing", "replace"]).run().code, Some(0));
}

#[test]
fn a_replica_blocks() {
    let scene = ready();
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &scene.redis.port.to_string()]);
    wait_until("the replica to follow", || replica.cli(&["INFO", "replication"]).contains("master_link_status:up"));
    let page = look_by(&scene, between(&scene.database.url, &replica.url()));
    let mend = page.assert("replica", "blocker", "is a replica");
    assert!(mend.contains("name the master in --redis-url"), "{mend}");
    assert_eq!(page.blockers(), ["replica"]);
    let page = look(&scene);
    page.assert("replicas", "ok", ": 1");
    page.assert("clients", "ok", "nobody else is connected");
}

#[test]
fn sessions_that_do_not_fit_block_and_those_that_barely_fit_are_told() {
    let scene = heavy();
    let page = look(&scene);
    page.assert("memory", "ok", "there is no maxmemory, and the machine has ");
    let needed = page.document["forecast"]["memory_bytes_per_shard"][0]["needed_bytes"].as_u64().unwrap();
    let used = used_memory(&scene.redis);
    let limit = |bytes: u64| scene.redis.cli(&["CONFIG", "SET", "maxmemory", &bytes.to_string()]);
    limit(used + needed / 2);
    let page = look(&scene);
    let mend = page.assert("memory", "blocker", "(measured on sampled messages) beside the ");
    assert_eq!(page.blockers(), ["memory"]);
    run(&scene.redis, &mend);
    look(&scene).assert("memory", "ok", "maxmemory is ");
    limit((used + needed) * 100 / 90);
    look(&scene).assert("memory", "warning", "more than 80 % of maxmemory");
    limit(1);
    let page = look(&scene);
    page.assert("writing", "blocker", "Redis had no memory to spare");
    page.assert("memory", "blocker", "(calculated, nothing could be measured)");
}

/// 4,000 messages of 1,500 bytes in 20 sessions.
fn heavy() -> Scene {
    let scene = Scene::empty();
    scene.sql(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
         select 'device-' || c, s, 'sensors/temperature', (extract(epoch from now()) * 1000)::bigint, s + 1, 'PUBLISH', 1, decode(repeat('5a', 1500), 'hex')
         from generate_series(1, 20) c, generate_series(0, 199) s;
         insert into device_session_ctx select client_id, 1, 199, 200 from device_publish_msg group by 1; analyze",
    );
    scene
}

#[test]
fn the_memory_that_is_forecast_is_that_which_a_copy_takes() {
    for scene in [heavy(), small()] {
        let page = look(&scene);
        let needed = page.document["forecast"]["memory_bytes_per_shard"][0]["needed_bytes"].as_u64().unwrap();
        assert_eq!(page.document["forecast"]["memory_measured"], true);
        let empty = used_memory(&scene.redis);
        assert_eq!(scene.migrate().arg("--stateless").run().code, Some(0));
        let mut taken = 0;
        wait_until("the buffers of the copy to be given back", || {
            let now = used_memory(&scene.redis) - empty;
            std::mem::replace(&mut taken, now) == now
        });
        assert!((taken * 80 / 100..taken * 125 / 100).contains(&needed), "forecast {needed}, taken {taken}");
    }
}

/// 2,000 sessions of five small messages.
fn small() -> Scene {
    let scene = Scene::empty();
    scene.sql(
        "insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload)
         select 'd' || c, s, 't', (extract(epoch from now()) * 1000)::bigint, s + 1, 'PUBLISH', 1, 'x' from generate_series(1, 2000) c, generate_series(0, 4) s;
         insert into device_session_ctx select client_id, 1, 4, 5 from device_publish_msg group by 1; analyze",
    );
    scene
}

#[test]
fn sessions_that_stand_under_the_prefix_or_under_another_are_told_and_nobody_elses_keys_are() {
    let scene = ready();
    for key in ["{x}_last_packet_id", "{y}_last_packet_id", "tb:{x}_last_packet_id", "tb:cache::{y}", "{z}_last_packet", "plain", "tb:{w}_messages_1"]
    {
        scene.redis.cli(&["SET", key, "1"]);
    }
    scene.redis.cli(&["ZADD", "{y}_messages", "1", "{y}_messages_1"]);
    scene.redis.cli(&["ZADD", "old\x1b:{v}_messages", "1", "m"]);
    let page = look(&scene);
    let mend = page.assert("session_keys", "warning", "sessions stand under the key prefix already (2), such as that of ");
    assert!(mend.ends_with("tbmq-migrate migrate --on-existing replace"), "{mend}");
    let found: Vec<&str> = page.all("other_prefix").iter().map(|finding| finding["measured"].as_str().unwrap()).collect();
    assert_eq!(
        found,
        [
            "sessions stand under the prefix \"old\\u{1b}:\" (1), which is not the key prefix \"\"",
            "sessions stand under the prefix \"tb:\" (1), which is not the key prefix \"\"",
        ]
    );
    assert!(page.next().contains("--on-existing replace") && page.document["ready"] == true);
    let page = look_by(&scene, of(&scene).args(["--key-prefix", "tb:"]));
    page.assert("session_keys", "warning", "sessions stand under the key prefix already (1), such as that of x");
    page.assert("other_prefix", "warning", "sessions stand under the prefix \"\" (2), which is not the key prefix \"tb:\"");
}

#[test]
fn each_right_that_is_missing_is_named_and_the_command_gives_it() {
    let scene = ready();
    let url = format!("redis://tool:pw@127.0.0.1:{}", scene.redis.port);
    let user = |rights: &[&str]| scene.redis.cli(&[&["ACL", "SETUSER", "tool", "reset", "on", ">pw"][..], rights].concat());
    let call = || between(&scene.database.url, &url).args(["--key-prefix", "p:"]);
    for (lacking, names) in [
        (&["-evalsha"][..], "evalsha"),
        (&["-zadd", "-type"], "type, zadd"),
        (&["-set", "-del"], "set, del"),
        (&["resetkeys", "~cache:*"], "evalsha"),
        (&["-hgetall"], "hgetall"),
    ] {
        user(&[&["~*", "+@all"][..], lacking].concat());
        let page = look_by(&scene, call());
        let mend = page.assert(
            "rights",
            "blocker",
            &format!("user tool may not use {}", if lacking.len() == 2 && lacking[0] == "resetkeys" { "type" } else { names }),
        );
        assert_eq!(page.blockers(), ["rights"]);
        assert!(mend.starts_with("on the server: ACL SETUSER tool "), "{mend}");
        run(&scene.redis, &mend);
        look_by(&scene, call()).assert("rights", "ok", "a session was written and removed again");
    }
    // Found by writing alone: it cannot be tried without a key that is there afterwards.
    user(&["~*", "+@all", "-hset"]);
    let mend = look_by(&scene, call()).assert("rights", "blocker", "noting a chunk");
    assert!(mend.starts_with("give the Redis user these rights"), "{mend}");
    user(&["~*", "+@all", "-pexpiretime", "-zmscore"]);
    let page = look_by(&scene, call());
    let mend = page.assert(
        "rights_to_compare",
        "warning",
        "user tool may not use pexpiretime, zmscore, which comparing Redis with PostgreSQL afterwards needs",
    );
    assert!(page.blockers().is_empty());
    run(&scene.redis, &mend);
    assert!(!look_by(&scene, call()).has("rights_to_compare"));
}

#[test]
fn what_a_user_may_not_ask_is_unknown_and_what_it_needs_is_enough() {
    let scene = ready();
    let url = format!("redis://tool:pw@127.0.0.1:{}", scene.redis.port);
    let call = || between(&scene.database.url, &url);
    let user = |rights: &[&str]| scene.redis.cli(&[&["ACL", "SETUSER", "tool", "reset", "on", ">pw", "~*"][..], rights].concat());
    user(&["+@all", "-info"]);
    let mend = look_by(&scene, call()).assert("connection", "blocker", "no permissions to run the 'info' command");
    assert!(mend.starts_with("give the Redis user these rights"), "{mend}");
    let rights: Vec<&str> = mend.split([' ', ';']).filter(|word| word.starts_with('+')).collect();
    user(&rights);
    let page = look_by(&scene, call());
    assert!(page.blockers().is_empty(), "{:#}", page.document);
    page.assert("clients", "warning", "unknown: ");
    page.assert("persistence", "warning", "whether it writes snapshots is unknown");
    page.assert("topology", "ok", "the user is unknown");
    assert_eq!(page.document["forecast"]["memory_measured"], false, "MEMORY is not among the rights of a copy");
    page.assert("memory", "ok", "(calculated, nothing could be measured)");
    user(&["+@all", "-scan", "-time"]);
    let page = look_by(&scene, call());
    page.assert("session_keys", "warning", "unknown: ");
    page.all("clock").into_iter().find(|finding| finding["area"] == "redis" && finding["level"] == "warning").unwrap();
}

#[test]
fn clients_that_may_be_a_broker_are_named_with_their_addresses() {
    let scene = ready();
    let mut other = scene.redis.connection();
    let page = look(&scene);
    let mend = page.assert("clients", "warning", "clients that do not say what they are, a 2.x broker perhaps, are connected from 127.0.0.1:");
    assert!(mend.contains("stop every 2.x broker"), "{mend}");
    redis::cmd("CLIENT").arg("SETNAME").arg("lettuce-7").exec(&mut other).unwrap();
    look(&scene).assert("clients", "warning", "clients of a 2.x broker may be connected, from 127.0.0.1:");
    drop(other);
    wait_until("the client to be gone", || read(of(&scene)).finding("clients")["level"] == "ok");
}

#[test]
fn what_is_kept_on_disk() {
    let scene = ready();
    let mend = look(&scene).assert("persistence", "warning", "keeps nothing on disk: a restart loses every session");
    scene.redis.cli(&["CONFIG", "SET", "save", "3600 1"]);
    look(&scene).assert("persistence", "warning", "writes snapshots only");
    run(&scene.redis, &mend);
    wait_until("the file to be begun", || scene.redis.cli(&["INFO", "persistence"]).contains("aof_enabled:1"));
    look(&scene).assert("persistence", "ok", "appends each write to a file");
}

#[test]
fn a_cluster_with_ids_and_prefixes_that_it_cannot_hold() {
    let scene = ready();
    scene.sql(
        "insert into device_session_ctx values ('}only', 1, 5, 6);
         insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, qos, payload)
         values ('}x', 0, 't', (extract(epoch from now()) * 1000)::bigint, 1, 1, 'x'), ('', 0, 't', (extract(epoch from now()) * 1000)::bigint, 1, 1, 'x')",
    );
    look(&scene).assert("cluster_ids", "ok", "closing brace: 3 (\"\", \"}only\", \"}x\"); a single server holds them");
    let cluster = RedisCluster::start();
    let call = || between(&scene.database.url, &cluster.urls()[0]);
    let page = look_by(&scene, call());
    page.assert("topology", "ok", "a cluster: ");
    page.assert("cluster_ids", "warning", "closing brace: 3 (\"\", \"}only\", \"}x\"); neither this program nor the broker");
    page.assert("quarantined", "warning", "rows that cannot be carried: 2; among those looked at: spans_slots 2");
    page.assert("invalid_contexts", "warning", "sessions whose context cannot be carried: 1");
    assert!(page.blockers().is_empty());
    let shards = page.document["forecast"]["memory_bytes_per_shard"].as_array().unwrap().clone();
    let needed: Vec<u64> = shards.iter().map(|shard| shard["needed_bytes"].as_u64().unwrap()).collect();
    assert!(needed.len() == 3 && needed.iter().max().unwrap() - needed.iter().min().unwrap() < 10, "{needed:?}");

    let page = look_by(&scene, call().args(["--key-prefix", "tb{x}:"]));
    page.assert("key_prefix", "warning", "every session goes to the one node that serves its slot");
    let shards = page.document["forecast"]["memory_bytes_per_shard"].as_array().unwrap();
    assert_eq!(shards.iter().filter(|shard| shard["needed_bytes"].as_u64().unwrap() > 0).count(), 1);
    let page = look_by(&scene, call().args(["--key-prefix", "tb{}:"]));
    let mend = page.assert("key_prefix", "blocker", "the key prefix holds an empty hash tag");
    assert!(mend.contains("use the cache prefix") && page.blockers() == ["key_prefix"], "{mend}");
    for node in &cluster.nodes {
        assert_eq!(node.cli(&["DBSIZE"]), "0");
    }
    assert_eq!(look_by(&scene, call()).outcome.stderr, "");
}

/// Calls since the statistics were reset.
fn scripts_called(redis: &Redis) -> u32 {
    let calls = |line: &str| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next()?.parse().ok();
    redis.cli(&["INFO", "commandstats"]).lines().find_map(calls).unwrap_or(0)
}

#[test]
fn a_check_that_is_killed_while_it_measures_leaves_no_scratch_key_without_an_end() {
    let scene = heavy();
    // Some of them within the writing of a session for the rights, the others within the measuring.
    for scripts in [1, 6, 10, 14] {
        let mut call = of(&scene).spawn();
        wait_until("some scripts to have been called", || scripts_called(&scene.redis) >= scripts || !call.is_running());
        call.signal("KILL");
        call.wait();
        let kept: Vec<String> = scene.contents().0.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        assert!(kept.iter().all(|key| !key.contains(":{check-")), "{kept:?}");
        scene.redis.cli(&["CONFIG", "RESETSTAT"]);
        scene.redis.cli(&["FLUSHALL"]);
    }
}

#[test]
fn a_master_behind_sentinels_is_looked_at_and_its_sentinels_and_replicas_are_no_clients() {
    let (scene, group) = (ready(), Sentinel::start());
    let call = between(&scene.database.url, &group.sentinel_urls().join(",")).args(["--redis-sentinel-master", group.master_name()]);
    let page = look_by(&scene, call);
    page.assert("topology", "ok", "a master behind sentinels: ");
    page.assert("clients", "ok", "nobody else is connected");
    page.assert("rights", "ok", "");
    assert!(page.blockers().is_empty());
    let call = between(&scene.database.url, &group.sentinel_urls()[0]);
    let mend = look_by(&scene, call).assert("connection", "blocker", "runs in sentinel mode");
    assert!(mend.contains("--redis-sentinel-master NAME"), "{mend}");
}
