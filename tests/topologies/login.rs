//! Users and their rights: the least that a run needs, and what it says without them.

use super::assert_refused;
use crate::sessions::{Sessions, migrate};
use crate::support::cluster::RedisCluster;
use crate::support::redis::Redis;

/// What a run needs on one server, the keys under the prefix `tb:`; as the manual states it.
const STANDALONE: &str = "resetchannels -@all +info +time +scan +type +select +eval +evalsha \
    +set +del +strlen +zcard +zadd +zrange +zrem +hset +hgetall +expire";
/// What it needs on a cluster.
pub const CLUSTER: &str = "resetchannels -@all +info +time +scan +type +eval +evalsha \
    +set +del +strlen +zcard +zadd +zrange +zrem +hset +hgetall +expire +cluster|slots +asking";
const PREFIX: &str = "tb:";

/// Makes the user `mover` with these rights on the keys under a prefix.
pub fn set_user(redis: &Redis, prefix: &str, rights: &str) {
    let keys = [format!("~{prefix}{{*"), format!("~{prefix}tbmq-migrate:*")];
    let mut words = vec!["ACL", "SETUSER", "mover", "reset", "on", ">s3cret", &keys[0], &keys[1]];
    words.extend(rights.split_whitespace());
    redis.cli(&words);
}

/// The address with the login of that user.
pub fn with_login(url: &str) -> String {
    url.replace("redis://", "redis://mover:s3cret@")
}

#[test]
fn the_least_rights_are_enough_for_a_copy_and_for_a_replacement() {
    let (redis, sessions) = (Redis::start(), Sessions::new(3, 4).with_lone_contexts(2));
    set_user(&redis, PREFIX, STANDALONE);
    let database = sessions.load();
    let call = || migrate(&database, &format!("{}/1", with_login(&redis.url()))).args(["--key-prefix", PREFIX]);
    sessions.assert_all_migrated(&call().run());
    let gone = "tb:{gone}_messages";
    redis.cli(&["-n", "1", "ZADD", gone, "1", &format!("{gone}_1")]);
    redis.cli(&["-n", "1", "SET", &format!("{gone}_1"), "{}"]);
    let outcome = call().args(["--on-existing", "replace", "--allow-removals", "1"]).run();
    sessions.assert_all_migrated(&outcome);
    assert_eq!(outcome.json()["sessions_removed"], 1);
    assert_eq!(redis.cli(&["-n", "1", "EXISTS", gone, &format!("{gone}_1")]), "0");
}

#[test]
fn each_of_the_least_rights_is_needed_and_named_when_it_is_missing() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 2));
    let database = sessions.load();
    let rights = STANDALONE.split_whitespace().filter_map(|word| word.strip_prefix('+'));
    // What only a longer copy, or the removal of what stands there already, makes use of.
    for right in rights.filter(|right| !["strlen", "zrange"].contains(right)) {
        set_user(&redis, PREFIX, &format!("{STANDALONE} -{right}"));
        let outcome = migrate(&database, &format!("{}/1", with_login(&redis.url()))).args(["--key-prefix", PREFIX]).run();
        assert!(outcome.code == Some(4), "without {right}: {outcome:#?}");
        assert!(outcome.stderr.contains("hint: give the Redis user"), "without {right}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
        redis.cli(&["FLUSHALL"]);
    }
}

#[test]
fn the_hint_about_rights_names_the_least_ones() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 2));
    set_user(&redis, PREFIX, &format!("{STANDALONE} -zadd"));
    let outcome = migrate(&sessions.load(), &with_login(&redis.url())).args(["--key-prefix", PREFIX]).run();
    let rights: Vec<&str> = STANDALONE.split_whitespace().filter(|word| word.starts_with('+')).collect();
    assert_refused(&outcome, 4, &rights);
}

#[test]
fn a_wrong_password_is_refused_before_anything_is_done() {
    let (redis, sessions) = (Redis::start(), Sessions::new(1, 1));
    set_user(&redis, PREFIX, STANDALONE);
    let url = with_login(&redis.url()).replace("s3cret", "s3cret-not");
    assert_refused(&migrate(&sessions.load(), &url).run(), 4, &["cannot connect to Redis", "check user and password"]);
    redis.cli(&["CONFIG", "SET", "requirepass", "s3cret"]);
    assert_refused(&migrate(&sessions.load(), &redis.url()).run(), 4, &["cannot connect to Redis", "check user and password"]);
}

#[test]
fn on_a_cluster_the_least_rights_are_those_and_the_map_of_its_slots() {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(12, 4).with_lone_contexts(3));
    for node in &cluster.nodes {
        set_user(node, PREFIX, CLUSTER);
    }
    let database = sessions.load();
    let call = || migrate(&database, &with_login(&cluster.urls()[0])).args(["--key-prefix", PREFIX]);
    sessions.assert_all_migrated(&call().run());
    sessions.assert_all_migrated(&call().args(["--on-existing", "replace"]).run());
    sessions.assert_stand_in(&cluster.keyspace(), "tb:");
}
