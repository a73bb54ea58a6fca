//! Sessions of more messages than a call reads.

use super::{Scene, found};
use crate::sessions::Sessions;

#[test]
fn a_fault_is_found_wherever_in_a_long_session_it_is() {
    let scene = Scene::new(&Sessions::new(1, 2).with("giant", 5000), "");
    let set = "{giant}_messages";
    assert_eq!(scene.verify(&[]).findings(), []);
    // The ends, the middle, and both sides of a border between two calls.
    for packet_id in [1, 2500, 4900, 4901, 5000] {
        let message = format!("{set}_{packet_id}");
        let serial = packet_id - 1;
        let at = (scene.deadline(&message) + 5000).to_string();
        let one = |kind: &str| [found("giant", kind, packet_id, serial)];
        let plants: [(&str, &[&str]); 4] = [
            ("missing_message", &["ZREM", set, &message]),
            ("missing_message", &["DEL", &message]),
            ("wrong_deadline", &["PEXPIREAT", &message, &at]),
            ("different_field", &["SET", &message, &scene.json(&message).replace("\"qos\":1", "\"qos\":0"), "KEEPTTL"]),
        ];
        for (kind, line) in plants {
            scene.reset();
            scene.run(line);
            assert_eq!(scene.verify(&["--client", "giant"]).findings(), one(kind), "{line:?}");
        }
        scene.reset();
        let half = format!("{}.5", packet_id);
        scene.run(&["ZADD", set, &half, &message]);
        assert_eq!(scene.verify(&["--client", "giant"]).findings(), one("wrong_score"), "{packet_id}");
    }
    scene.assert_found("from end to end", &[&["ZADD", set, "9000", &format!("{set}_1")]], &[found("giant", "wrong_order", 1, 0)]);
    let extra = format!("{set}_6000");
    for score in ["-5", "0", "2500.5", "4900", "4900.5", "9000"] {
        let lines: [&[&str]; 2] = [&["SET", &extra, "{}"], &["ZADD", set, score, &extra]];
        scene.assert_found(score, &lines, &[found("giant", "extra_message", 6000, None)]);
    }
}

#[test]
fn findings_beyond_ten_thousand_of_one_session_are_counted_and_not_listed() {
    let scene = Scene::new(&Sessions::new(1, 2).with("giant", 10_050), "");
    scene.run(&["FLUSHALL"]);
    let verified = super::verify(&scene.database, &scene.redis.url(), &["--client", "giant", "--message-limit", "65535"]);
    assert_eq!(verified.findings().len(), 10_000);
    // Its messages and its last packet id.
    assert_eq!(verified.figure("unlisted_findings"), 51);
    assert_eq!((verified.figure("sessions_compared"), verified.figure("messages_compared")), (1, 10_050));
}
