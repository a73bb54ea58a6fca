//! One call for each code that `migrate` ends with.

use super::ready;
use crate::runs::scene::{Scene, assert_ends, wait_for_keys};

#[test]
fn done_is_0() {
    assert_ends(&ready().migrate().run(), 0, &[]);
}

#[test]
fn an_option_that_does_not_exist_is_2() {
    assert_ends(&ready().migrate().arg("--no-such-option").run(), 2, &["error: unexpected argument '--no-such-option' found"]);
}

#[test]
fn a_value_that_cannot_be_used_is_3() {
    let scene = ready();
    for (arguments, says) in [
        (["--message-limit", "65536"], "error: --message-limit: 65536 is not between 1 and 65535\n"),
        (["--retry-timeout", "soon"], "error: --retry-timeout: \"soon\" is not a duration\n"),
        (["--clients-file", "/no/such/file"], "error: --clients-file: cannot read /no/such/file"),
    ] {
        assert_ends(&scene.migrate().args(arguments).run(), 3, &[says]);
    }
    assert_ends(&crate::support::tool::Tool::new().arg("migrate").run(), 3, &["error: "]);
    assert_eq!(scene.keys(), 0);
}

#[test]
fn sessions_in_the_way_are_4() {
    let scene = ready();
    scene.redis.cli(&["SET", "{x}_last_packet_id", "1"]);
    assert_ends(&scene.migrate().run(), 4, &["error: sessions stand in Redis already, such as that of x\n"]);
}

#[test]
fn a_memory_that_stays_full_in_the_middle_is_9_and_the_run_goes_on_later() {
    let scene = Scene::empty();
    scene.add_sessions("a", 60);
    let mut running = scene.migrate().args(["--max-rate", "400", "--retry-timeout", "1s"]).spawn();
    wait_for_keys(&scene, &mut running, 12);
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let outcome = running.wait();
    assert_ends(
        &outcome,
        9,
        &["error: Redis had no memory to spare for 1 s\n", "hint: give Redis more memory (maxmemory)", "then run the same command again"],
    );
    assert_eq!(outcome.stdout, "");
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_ends(&scene.migrate().run(), 0, &[]);
    assert_eq!(scene.keys(), 60 * 12);
}

#[test]
fn a_session_of_somebody_else_that_appears_in_the_middle_is_9() {
    let scene = Scene::empty();
    scene.add_sessions("a", 60);
    let mut running = scene.migrate().args(["--max-rate", "400", "--jobs", "1"]).spawn();
    wait_for_keys(&scene, &mut running, 12);
    // The sessions are read from the last id to the first one.
    scene.redis.cli(&["SET", "{a-01}_last_packet_id", "777"]);
    let outcome = running.wait();
    assert_ends(
        &outcome,
        9,
        &["error: a session of a-01 appeared in Redis while it was being copied", "hint: is a 2.x broker running on this Redis already?"],
    );
    assert_eq!(scene.contents().text("{a-01}_last_packet_id").as_deref(), Some("777"));
}

#[test]
fn a_row_that_cannot_be_carried_is_10() {
    let scene = ready();
    scene.sql("update device_publish_msg set packet_id = null where serial_number = 0 and client_id = 'a-01'");
    assert_ends(&scene.migrate().run(), 10, &[]);
}

#[test]
fn a_signal_is_130() {
    let scene = Scene::empty();
    scene.add_sessions("a", 60);
    let mut running = scene.migrate().args(["--max-rate", "300"]).spawn();
    wait_for_keys(&scene, &mut running, 12);
    running.signal("INT");
    assert_ends(&running.wait(), 130, &["error: stopped before the end\n"]);
}
