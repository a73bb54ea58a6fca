//! Refusals of the target.

use super::{assert_refused, assert_runs, ready};
use crate::runs::scene::{Scene, assert_ends};
use crate::support::poll::{free_port, wait_until};
use crate::support::redis::Redis;
use crate::support::tool::Tool;

fn migrate_to(scene: &Scene, redis_url: &str) -> Tool {
    Tool::new().args(["migrate", "--postgres-url", &scene.database.url, "--redis-url", redis_url])
}

#[test]
fn a_server_that_is_not_there() {
    let scene = ready();
    let port = free_port();
    assert_refused(
        &scene,
        migrate_to(&scene, &format!("redis://:pw@127.0.0.1:{port}/3")),
        &[
            &format!("error: cannot connect to Redis at redis://127.0.0.1:{port}/3\n"),
            "onnection refused",
            "hint: check host and port in --redis-url, and that the server accepts connections from here\n",
        ],
    );
}

#[test]
fn a_password_that_is_missing_or_wrong() {
    let scene = ready();
    scene.redis.cli(&["CONFIG", "SET", "requirepass", "right"]);
    let port = scene.redis.port;
    for (login, shown) in [("", ""), (":wrong@", ""), ("nobody:right@", "nobody@")] {
        let outcome = migrate_to(&scene, &format!("redis://{login}127.0.0.1:{port}")).run();
        assert_ends(
            &outcome,
            4,
            &[&format!("error: cannot connect to Redis at redis://{shown}127.0.0.1:{port}/0\n"), "hint: check user and password in --redis-url\n"],
        );
    }
    assert_ends(&migrate_to(&scene, &format!("redis://:right@127.0.0.1:{port}")).run(), 0, &[]);
}

#[test]
fn a_database_that_the_server_does_not_have() {
    let scene = ready();
    let url = format!("{}/77", scene.redis.url());
    assert_refused(
        &scene,
        migrate_to(&scene, &url),
        &["error: cannot connect to Redis at ", "/77\n", "DB index is out of range", "hint: check the database at the end of --redis-url"],
    );
}

#[test]
fn a_policy_that_evicts_and_the_command_that_mends_it() {
    let scene = ready();
    scene.redis.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let port = scene.redis.port;
    assert_refused(
        &scene,
        scene.migrate(),
        &[
            &format!("error: the eviction policy of Redis at 127.0.0.1:{port} is allkeys-lru, which deletes session keys when memory runs out\n"),
            "hint: on the server: CONFIG SET maxmemory-policy noeviction",
        ],
    );
    scene.redis.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_runs(&scene);
}

#[test]
fn a_replica() {
    let scene = ready();
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &scene.redis.port.to_string()]);
    wait_until("the replica to follow", || replica.cli(&["INFO", "replication"]).contains("master_link_status:up"));
    assert_refused(
        &scene,
        migrate_to(&scene, &replica.url()),
        &[
            &format!("error: Redis at 127.0.0.1:{} is a replica\n", replica.port),
            "hint: name the master in --redis-url, or use --redis-mode sentinel\n",
        ],
    );
}

#[test]
fn a_memory_that_is_full() {
    let scene = ready();
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    // It is told within seconds, not after the time that a run would wait for room.
    let started = std::time::Instant::now();
    assert_refused(&scene, scene.migrate(), &["error: Redis had no memory to spare for ", "hint: give Redis more memory (maxmemory)"]);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert_refused(&scene, scene.migrate().args(["--retry-timeout", "0s"]), &["error: Redis had no memory to spare for 0 s\n"]);
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_runs(&scene);
}

#[test]
fn a_user_without_one_of_the_rights_is_refused_before_the_run_and_told_all_of_them() {
    let scene = ready();
    let call = || migrate_to(&scene, &format!("redis://tool:pw@127.0.0.1:{}", scene.redis.port));
    let user = |rights: &[&str]| scene.redis.cli(&[&["ACL", "SETUSER", "tool", "reset", "on", ">pw"][..], rights].concat());
    for lacking in [&["-evalsha"][..], &["resetkeys", "~cache:*"], &["-info"], &["-scan"], &["-set"], &["-type"], &["-zrem"], &["-time"], &["-hset"]]
    {
        user(&[&["~*", "+@all"][..], lacking].concat());
        let outcome = assert_refused(&scene, call(), &["error: ", "hint: give the Redis user these rights"]);
        let hint = outcome.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap();
        let rights: Vec<String> = hint.split([' ', ';']).filter(|word| word.starts_with(['~', '+'])).map(|word| word.replace("PREFIX", "")).collect();
        assert!(rights.len() > 10, "{hint}");
        user(&rights.iter().map(String::as_str).collect::<Vec<_>>());
        assert_ends(&call().arg("--stateless").run(), 0, &[]);
        assert_eq!(scene.keys(), 24, "{lacking:?}");
        scene.redis.cli(&["FLUSHALL"]);
    }
}

#[test]
fn another_mode_than_the_server_is_in() {
    let scene = ready();
    let port = scene.redis.port;
    assert_refused(
        &scene,
        scene.migrate().args(["--redis-mode", "cluster"]),
        &[
            &format!("error: Redis at 127.0.0.1:{port} runs in standalone mode, not in cluster mode\n"),
            "hint: set --redis-mode to what the server is, or leave it at auto\n",
        ],
    );
    let single = Redis::start_with(&["--cluster-enabled", "yes"]);
    assert_refused(
        &scene,
        migrate_to(&scene, &single.url()).args(["--redis-mode", "standalone"]),
        &[&format!("error: Redis at 127.0.0.1:{} runs in cluster mode, not in standalone mode\n", single.port), "leave it at auto\n"],
    );
    // A database beside the first one does not exist on a cluster.
    let outcome = migrate_to(&scene, &format!("{}/1", single.url())).run();
    assert_ends(&outcome, 4, &["error: ", "hint: ", "database"]);
}

#[test]
fn a_prefix_with_an_empty_hash_tag_on_a_cluster() {
    let scene = ready();
    let single = Redis::start_with(&["--cluster-enabled", "yes"]);
    let slots: Vec<String> = ["CLUSTER", "ADDSLOTSRANGE", "0", "16383"].map(str::to_owned).to_vec();
    single.cli(&slots.iter().map(String::as_str).collect::<Vec<_>>());
    wait_until("the cluster", || single.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
    assert_refused(
        &scene,
        migrate_to(&scene, &single.url()).args(["--key-prefix", "tb{}:"]),
        &["error: the key prefix holds an empty hash tag", "hint: use the cache prefix"],
    );
}
