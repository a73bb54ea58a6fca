//! A master that sentinels name.

use super::assert_refused;
use crate::sessions::{Sessions, migrate};
use crate::support::sentinel::Sentinel;

#[test]
fn the_sentinels_lead_to_the_master_as_long_as_one_of_them_answers() {
    let (group, sessions) = (Sentinel::start(), Sessions::new(3, 4).with_lone_contexts(2));
    let database = sessions.load();
    let mut urls = group.sentinel_urls();
    let wrong = migrate(&database, &urls.join(",")).args(["--redis-sentinel-master", "no-such-master"]).run();
    assert_refused(&wrong, 4, &["cannot connect to Redis", "no-such-master", "--redis-sentinel-master"]);
    let without_the_name = migrate(&database, &urls[0]).run();
    assert_refused(&without_the_name, 4, &["sentinel", "--redis-sentinel-master"]);

    // Nobody listens at the first of them, as if that sentinel were down.
    urls[0] = format!("redis://127.0.0.1:{}", crate::support::poll::free_port());
    let outcome = migrate(&database, &urls.join(",")).args(["--redis-sentinel-master", group.master_name()]).run();
    sessions.assert_all_migrated(&outcome);
    sessions.assert_stand_in(&group.servers[0].keyspace(), "");
}
