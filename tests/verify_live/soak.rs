//! Twenty comparisons while writers change sessions on both sides all the time.

use super::writer::Writers;
use super::{Carried, Found, assert_found, planted};
use crate::sessions::Sessions;
use crate::support::tool::Outcome;

const WRITERS: u64 = 3;
/// Of each writer.
const BUSY_SESSIONS: u64 = 16;

/// One comparison; nothing may be called different or left unchecked that was not planted.
fn verify(carried: &Carried, options: &[&str]) -> Outcome {
    carried.verify().args(["--settle-timeout", "20s", "--report"]).arg(carried.report_file()).args(options).run()
}

#[test]
fn sessions_that_change_all_the_time_on_both_sides_are_never_called_different_and_what_is_planted_is_never_missed() {
    let carried = Carried::new(&Sessions::new(40, 12).with_lone_contexts(5));
    let writers = Writers::start(&carried.database, &carried.redis.url(), WRITERS, BUSY_SESSIONS);
    for round in 0..12 {
        let outcome = verify(&carried, [&[][..], &["--jobs", "1"], &["--level", "count"]][round % 3]);
        assert_found(&outcome, &carried.report_file(), &[]);
    }
    let mut expected = planted();
    carried.plant();
    expected.extend(plant_in_busy_ones(&carried));
    expected.sort();
    for _ in 0..8 {
        assert_found(&verify(&carried, &[]), &carried.report_file(), &expected);
    }
    let done = writers.finish();
    assert!(done.iter().all(|done| done.committed > 100 && done.rolled_back > 10), "the writers did too little: {done:?}");
    assert!(done.iter().any(|done| done.held > 0), "no transaction was held open: {done:?}");
    assert_found(&verify(&carried, &[]), &carried.report_file(), &expected);
}

/// Differences in what the writers leave alone of sessions that they change.
fn plant_in_busy_ones(carried: &Carried) -> Vec<Found> {
    // A message that no row wants, and one that nothing refers to.
    carried.run(&["SET", "{lasting-0-00}_messages_60000", "{}", "EX", "3600"]);
    carried.run(&["ZADD", "{lasting-0-00}_messages", "60000", "{lasting-0-00}_messages_60000"]);
    carried.run(&["SET", "{lasting-1-02}_messages_60001", "{}", "EX", "3600"]);
    // The first messages, which stay: one is gone, one ends at another time.
    carried.run(&["DEL", "{lasting-1-04}_messages_1"]);
    carried.run(&["EXPIRE", "{lasting-2-06}_messages_1", "1000"]);
    let all = [
        ("lasting-0-00", "extra_message"),
        ("lasting-1-02", "extra_message"),
        ("lasting-1-04", "missing_message"),
        ("lasting-2-06", "wrong_deadline"),
    ];
    all.map(|(client, kind)| (client.to_owned(), kind.to_owned())).to_vec()
}
