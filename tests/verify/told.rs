//! What a comparison tells, and the limits of what counts as equal.

use super::{base, found};
use crate::support::tool::Tool;

const THIRD: &str = "{c-0000}_messages_3";

#[test]
fn the_tolerance_of_deadlines_is_the_one_given() {
    let scene = base();
    let off = |ms: i64| {
        let at = (scene.deadline(THIRD) + ms).to_string();
        scene.reset();
        scene.run(&["PEXPIREAT", THIRD, &at]);
    };
    let wrong = [found("c-0000", "wrong_deadline", 3, 2)];
    for (ms, expected) in [(4000, &[][..]), (-5000, &[]), (5001, &wrong), (-6000, &wrong)] {
        off(ms);
        scene.assert_findings(&format!("{ms} ms"), &["--deadline-tolerance", "5s"], expected);
    }
    off(1);
    scene.assert_findings("to the millisecond", &["--deadline-tolerance", "0s"], &wrong);
}

#[test]
fn payloads_stand_in_the_findings_only_when_asked_for() {
    let scene = base();
    scene.rewrite("{full}_messages_42", &scene.json("{full}_messages_42").replace("aGVsbG8=", "d29ybGQ=").replace("Y29ycg==", "c2VjcmV0"));
    let detail = |options: &[&str]| scene.verify(options).lines[0]["detail"].as_str().unwrap().to_owned();
    let (hidden, shown) = (detail(&[]), detail(&["--show-payload"]));
    for text in ["hello", "world", "corr\"", "secret"] {
        assert!(!hidden.contains(text) && shown.contains(text), "{text}: {hidden} | {shown}");
    }
    assert!(hidden.contains("payload is 5 bytes (sha256 "), "{hidden}");
}

#[test]
fn the_report_and_the_list_have_the_names_of_the_manual() {
    let scene = base();
    scene.run(&["DEL", THIRD]);
    let verified = scene.verify(&[]);
    let report = verified.outcome.json();
    let counts = ["sessions_compared", "messages_compared", "differing_sessions", "not_checked"].map(|name| report[name].as_u64());
    assert_eq!(counts, [7, 27, 1, 0].map(Some));
    assert_eq!(report["findings"], serde_json::json!({ "missing_message": 1 }));
    let line = verified.lines[0].as_object().unwrap();
    let mut names: Vec<&str> = line.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["client_id", "detail", "kind", "packet_id", "serial_number"]);
    assert!(line["detail"].as_str().unwrap().contains("it is gone, though its reference stands"), "{line:?}");
}

#[test]
fn a_client_id_is_the_exact_text_in_the_list() {
    let scene = base();
    let client = "q\"\\ \u{1b}[31mé😀";
    scene.run(&["SET", &format!("{{{client}}}_last_packet_id"), "1"]);
    assert_eq!(scene.verify(&[]).findings(), [found(client, "extra_session", None, None)]);
}

#[test]
fn the_table_tells_what_was_found_and_where_it_is_written() {
    let scene = base();
    scene.run(&["DEL", THIRD]);
    let urls = ["verify", "--postgres-url", &scene.database.url, "--redis-url", &scene.redis.url()].map(str::to_owned);
    let outcome = Tool::new().args(&urls).run();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    let words: Vec<String> = outcome.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in ["sessions compared 7", "equal 6", "differing 1", "not checked 0", "messages compared 27", "missing_message 1"] {
        assert!(words.iter().any(|found| found == line), "{line}: {outcome:#?}");
    }
    assert!(outcome.stdout.contains("--report FILE"), "{outcome:#?}");
}
