//! Parts of all sessions, and less than everything of each.

use std::collections::BTreeSet;

use super::{Scene, base, found};
use crate::sessions::Sessions;

const SET: &str = "{c-0000}_messages";
const THIRD: &str = "{c-0000}_messages_3";

#[test]
fn counting_finds_what_changes_a_number_and_the_last_packet_id() {
    let scene = base();
    let count = |what: &str, lines: &[&[&str]], expected: &[super::Found]| {
        scene.reset();
        lines.iter().for_each(|line| scene.run(line));
        scene.assert_findings(what, &["--level", "count"], expected);
    };
    count("equal", &[], &[]);
    count("a reference is gone", &[&["ZREM", SET, THIRD]], &[found("c-0000", "missing_message", 3, 2)]);
    count("a session is gone", &[&["DEL", "{lone-0000}_last_packet_id"]], &[found("lone-0000", "missing_last_packet_id", None, None)]);
    let more: [&[&str]; 2] = [&["SET", "{c-0000}_messages_77", "{}"], &["ZADD", SET, "77", "{c-0000}_messages_77"]];
    count("a message more", &more, &[found("c-0000", "extra_message", 77, None)]);
    let other: &[&[&str]] = &[&["SET", "{c-0000}_last_packet_id", "11"]];
    count("another last packet id", other, &[found("c-0000", "wrong_last_packet_id", None, None)]);
    count("a last packet id that expires", &[&["EXPIRE", "{c-0000}_last_packet_id", "99"]], &[found("c-0000", "last_packet_id_expires", None, None)]);
    count("a set of another type", &[&["SET", SET, "v"]], &[found("c-0000", "foreign_type", None, None)]);
    count("an extra session", &[&["SET", "{x}_last_packet_id", "1"]], &[found("x", "extra_session", None, None)]);
}

#[test]
fn counting_does_not_look_into_messages_and_says_so() {
    let scene = base();
    let json = scene.json(THIRD).replace("\"qos\":1", "\"qos\":2");
    let plants: [&[&str]; 4] = [
        &["SET", THIRD, &json, "KEEPTTL"],
        &["PERSIST", "{c-0000}_messages_4"],
        &["ZADD", SET, "5.5", "{c-0000}_messages_5"],
        &["DEL", "{c-0000}_messages_6"],
    ];
    plants.iter().for_each(|line| scene.run(line));
    let verified = scene.verify(&["--level", "count"]);
    assert_eq!((verified.findings(), verified.outcome.code), (vec![], Some(0)));
    let report = verified.outcome.json();
    assert_eq!(report["level"], "count");
    let warned = report["next_steps"].as_array().unwrap().iter().any(|step| step.as_str().unwrap().contains("counted and not compared"));
    assert!(warned, "{report:#}");
    let kinds = ["different_field", "wrong_deadline", "wrong_score", "missing_message"];
    let all = (3..).zip(kinds).map(|(packet_id, kind)| found("c-0000", kind, packet_id, packet_id - 1)).collect::<Vec<_>>();
    scene.assert_findings("the same in full", &["--level", "full"], &all);
}

/// The clients of all findings.
fn clients(scene: &Scene, options: &[&str]) -> BTreeSet<String> {
    scene.verify(options).findings().into_iter().map(|(client, ..)| client).collect()
}

#[test]
fn a_sample_is_the_same_each_time_about_the_share_and_part_of_a_larger_one() {
    let scene = Scene::new(&Sessions::new(400, 1), "");
    scene.run(&["FLUSHALL"]);
    let fifth = clients(&scene, &["--sample", "20%"]);
    // 80 are expected; five standard deviations are 40.
    assert!((40..=120).contains(&fifth.len()), "{}", fifth.len());
    let verified = scene.verify(&["--sample", "20%"]);
    assert_eq!(verified.figure("sessions_compared"), fifth.len() as u64);
    assert_eq!(clients(&scene, &["--sample", "20%", "--stateless", "--jobs", "1"]), fifth);
    let half = clients(&scene, &["--sample", "50%"]);
    assert!(fifth.is_subset(&half) && half.len() > fifth.len() && half.len() < 300, "{}", half.len());
    assert_eq!(clients(&scene, &["--sample", "100%"]).len(), 400);
}

#[test]
fn a_fault_is_found_inside_a_sample_and_not_outside_of_it() {
    let scene = Scene::new(&Sessions::new(60, 2), "");
    scene.run(&["FLUSHALL"]);
    let sample = clients(&scene, &["--sample", "50%"]);
    let inside = sample.first().unwrap().clone();
    let outside = (0..60).map(|number| format!("c-{number:04}")).find(|client| !sample.contains(client)).unwrap();
    let strays = |client: &str| vec![format!("{{{client}}}_messages_2"), format!("{{{client}}}_messages")];
    for (client, expected) in [(&outside, vec![]), (&inside, vec![found(&inside, "missing_message", 2, 1)])] {
        let [message, set] = &strays(client)[..] else { unreachable!() };
        scene.assert_found("everything", &[&["DEL", message]], &[found(client, "missing_message", 2, 1)]);
        scene.assert_findings("a sample", &["--sample", "50%"], &expected);
        scene.reset();
        scene.run(&["ZREM", set, message]);
        scene.assert_findings("a reference", &["--sample", "50%"], &expected);
        // A string that nothing refers to is met by the scan of Redis.
        scene.reset();
        let (extra, expected) = (format!("{set}_9"), expected.iter().map(|_| found(client, "extra_message", 9, None)).collect::<Vec<_>>());
        scene.run(&["SET", &extra, "{}"]);
        scene.assert_findings("a stray", &["--sample", "50%"], &expected);
    }
}

#[test]
fn a_sample_takes_its_share_of_the_sessions_that_redis_alone_has() {
    let scene = Scene::new(&Sessions::new(1, 1), "");
    (0..400).for_each(|number| scene.run(&["SET", &format!("{{x-{number}}}_last_packet_id"), "1"]));
    let fifth = clients(&scene, &["--sample", "20%"]);
    assert!((40..=120).contains(&fifth.len()), "{}", fifth.len());
    assert!(fifth.iter().all(|client| client.starts_with("x-")));
    assert_eq!(clients(&scene, &["--sample", "20%"]), fifth);
    assert_eq!(clients(&scene, &[]).len(), 400);
}

#[test]
fn only_the_named_sessions_are_compared() {
    let scene = base();
    scene.run(&["DEL", THIRD]);
    scene.run(&["DEL", "{full}_messages_42"]);
    let third = found("c-0000", "missing_message", 3, 2);
    scene.assert_findings("a fault in it", &["--client", "c-0000"], std::slice::from_ref(&third));
    scene.assert_findings("a fault elsewhere", &["--client", "c-0001"], &[]);
    let verified = scene.verify(&["--client", "c-0000", "--client", "c-0001", "--client", "c-0000"]);
    assert_eq!((verified.findings(), verified.figure("sessions_compared")), (vec![third], 2));
}

#[test]
fn a_named_session_that_only_redis_has_is_extra_and_one_that_nobody_has_is_none() {
    let scene = base();
    scene.run(&["SET", "{x}_last_packet_id", "1"]);
    scene.run(&["SET", "{z}_last_packet_id", "1"]);
    let scratch = tempfile::tempdir().unwrap();
    let list = scratch.path().join("clients");
    let named = |text: &str| {
        std::fs::write(&list, text).unwrap();
        scene.verify(&["--clients-file", list.to_str().unwrap()])
    };
    let verified = named("c-0000\nx\nnobody\n");
    assert_eq!(verified.findings(), [found("x", "extra_session", None, None)]);
    assert_eq!(verified.figure("sessions_compared"), 2);
    let nobody = named("nobody\n");
    assert_eq!((nobody.findings(), nobody.figure("sessions_compared"), nobody.outcome.code), (vec![], 0, Some(0)));
}
