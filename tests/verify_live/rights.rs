//! The least rights of a comparison, and that it makes no use of more.

use super::{Carried, assert_found, carry, planted, verify};
use crate::sessions::Sessions;
use crate::support::cluster::RedisCluster;
use crate::support::postgres::Database;
use crate::support::redis::Redis;
use crate::support::sentinel::Sentinel;
use crate::support::tool::{Outcome, Tool};

/// As the manual states it, for the cache prefix `tb:`.
const RIGHTS: &str = "on >s3cret %R~tb:{* resetchannels -@all +@read +info +time";
const IN_A_DATABASE: &str = "+select";
const ON_A_CLUSTER: &str = "+cluster|slots +asking";
const PREFIX: [&str; 2] = ["--key-prefix", "tb:"];
/// All that a comparison may send.
const COMMANDS: [&str; 18] = [
    "acl|whoami",
    "asking",
    "auth",
    "client|setinfo",
    "cluster|slots",
    "exists",
    "get",
    "hello",
    "info",
    "mget",
    "pexpiretime",
    "ping",
    "scan",
    "select",
    "time",
    "type",
    "zcount",
    "zmscore",
];
const LESS_OFTEN: [&str; 2] = ["zrange", "zscore"];

fn set_user(redis: &Redis, rights: &[&str]) {
    let words: Vec<&str> =
        ["ACL", "SETUSER", "verifier", "reset"].into_iter().chain(rights.iter().flat_map(|some| some.split_whitespace())).collect();
    redis.cli(&words);
}

fn with_login(url: &str) -> String {
    url.replace("redis://", "redis://verifier:s3cret@")
}

/// Fails if a server got any command that a comparison has no need of.
fn assert_only_read(redis: &Redis) {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let called: Vec<&str> = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':')).map(|(name, _)| name).collect();
    // What the test itself asks.
    let strange: Vec<&&str> =
        called.iter().filter(|name| !COMMANDS.contains(name) && !LESS_OFTEN.contains(name) && **name != "config|resetstat").collect();
    assert!(strange.is_empty() && called.contains(&"scan"), "{strange:?} of {called:?}");
}

/// Plants differences of which some need the second scan: an extra session, and a string without a reference.
fn plant(run: impl Fn(&[&str])) {
    run(&["SET", "tb:{nobody}_last_packet_id", "1"]);
    run(&["SET", "tb:{c-0001}_messages_60000", "{}", "EX", "3600"]);
    run(&["ZADD", "tb:{c-0002}_messages", "60000", "tb:{c-0002}_messages_60000"]);
    run(&["SET", "tb:{c-0002}_messages_60000", "{}", "EX", "3600"]);
}

fn assert_planted_found(outcome: &Outcome) {
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(outcome.json()["findings"], serde_json::json!({"extra_message": 2, "extra_session": 1}), "{outcome:#?}");
}

/// A role that may only do what the manual says.
fn reader(database: &Database) -> Database {
    let (name, admin) = (&database.name, "postgres:correct%20horse@");
    database.psql(&format!(
        "create role reader_{name} login password 'reading';
         revoke all on database {name} from public; grant connect on database {name} to reader_{name};
         revoke all on schema public from public; grant usage on schema public to reader_{name};
         grant select on device_publish_msg, device_session_ctx to reader_{name}"
    ));
    assert!(database.url.contains(admin));
    Database { url: database.url.replace(admin, &format!("reader_{name}:reading@")), ..database.clone() }
}

#[test]
fn on_one_server_the_rights_of_the_manual_are_enough_and_nothing_changes() {
    let (redis, sessions) = (Redis::start(), Sessions::new(12, 4).with_lone_contexts(2));
    let database = sessions.load();
    let url = format!("{}/1", redis.url());
    carry(&database, &url, &PREFIX);
    let select = |line: &[&str]| drop(redis.cli(&[&["-n", "1"], line].concat()));
    let keyspace = || {
        let mut connection = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        crate::support::keyspace::Keyspace::read(&mut connection)
    };
    set_user(&redis, &[RIGHTS, IN_A_DATABASE]);
    let reader = reader(&database);
    let call = || verify(&reader, &with_login(&url)).args(PREFIX);
    assert_eq!(call().run().code, Some(0));
    plant(select);
    let before = keyspace();
    redis.cli(&["CONFIG", "RESETSTAT"]);
    for options in [&[][..], &["--level", "count"], &["--sample", "100%"], &["--client", "c-0002"]] {
        let outcome = call().args(options).run();
        assert_eq!(outcome.code, Some(5), "{options:?}: {outcome:#?}");
        if options.is_empty() {
            assert_planted_found(&outcome);
        }
    }
    assert_only_read(&redis);
    assert_eq!(keyspace(), before);
    assert_eq!(database.psql("select count(*) from pg_namespace where nspname = 'tbmq_migrate'"), "0");
}

#[test]
fn each_missing_right_is_refused_with_the_line_that_a_comparison_needs() {
    let (redis, sessions) = (Redis::start(), Sessions::new(2, 2));
    let database = sessions.load();
    let url = format!("{}/1", redis.url());
    carry(&database, &url, &PREFIX);
    // What only a difference makes use of is tried before all the same.
    for less in ["-info", "-time", "-select", "-scan", "-zcount", "-get", "-pexpiretime", "-zmscore", "-mget", "-zrange", "resetkeys"] {
        set_user(&redis, &[RIGHTS, IN_A_DATABASE, less]);
        let outcome = verify(&database, &with_login(&url)).args(PREFIX).run();
        assert_eq!(outcome.code, Some(4), "{less}: {outcome:#?}");
        let hint = "hint: give the Redis user these rights, PREFIX being the cache prefix (nothing without one): %R~PREFIX{* +@read +info +time;";
        assert!(outcome.stderr.contains(hint) && !outcome.stderr.contains("+eval"), "{less}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
    }
}

#[test]
fn on_a_cluster_the_rights_of_the_manual_are_enough_and_nothing_changes() {
    let (cluster, sessions) = (RedisCluster::start(), Sessions::new(12, 4).with_lone_contexts(2));
    let database = sessions.load();
    carry(&database, &cluster.urls()[0], &PREFIX);
    for node in &cluster.nodes {
        set_user(node, &[RIGHTS, ON_A_CLUSTER]);
    }
    let call = || verify(&database, &with_login(&cluster.urls()[1])).args(PREFIX);
    assert_eq!(call().run().code, Some(0));
    plant(|line| drop(cluster.cli(0, &[&["-c"], line].concat())));
    let before = cluster.keyspace();
    assert_planted_found(&call().run());
    assert_eq!(cluster.keyspace(), before);
}

#[test]
fn behind_sentinels_the_rights_of_the_manual_are_enough_and_nothing_changes() {
    let (group, sessions) = (Sentinel::start(), Sessions::new(6, 4));
    let (database, urls) = (sessions.load(), group.sentinel_urls().join(","));
    let master = ["--redis-sentinel-master", group.master_name()];
    carry(&database, &urls, &[&PREFIX[..], &master].concat());
    for server in &group.servers {
        set_user(server, &[RIGHTS]);
    }
    plant(|line| drop(group.servers[0].cli(line)));
    let before = group.servers[0].keyspace();
    let call: Tool = verify(&database, &with_login(&group.sentinel_urls()[0])).args(PREFIX).args(master);
    assert_planted_found(&call.run());
    assert_eq!(group.servers[0].keyspace(), before);
}

#[test]
fn a_comparison_makes_nothing_in_postgresql() {
    let carried = Carried::new(&Sessions::new(12, 4));
    carried.plant();
    let of_the_tool = "select count(*) from pg_namespace where nspname = 'tbmq_migrate'";
    let everything = "select count(*) from pg_class";
    let before = carried.database.psql(everything);
    for options in [&[][..], &["--stateless"]] {
        let outcome = carried.verify().args(options).arg("--report").arg(carried.report_file()).run();
        assert_found(&outcome, &carried.report_file(), &planted());
        assert_eq!(carried.database.psql(of_the_tool), "0", "{options:?}");
        assert_eq!(carried.database.psql(everything), before, "{options:?}");
        assert!(outcome.json()["run"].is_null());
    }
}
