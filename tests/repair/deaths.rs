use super::scene::Sides;
use crate::runs::scene::assert_died;

#[test]
fn a_repair_that_dies_at_any_step_is_run_again_to_the_same_end() {
    let sides = Sides::copied();
    for place in [
        "repair_begun",
        "session_removed",
        "batch_written",
        "repair_copied",
        "stray_removed",
        "stray_removed:2",
        "repair_compared",
        "repair_finished",
    ] {
        sides.redis(&[
            "DEL {a-01}_messages_3",
            "SET {a-02}_messages_78 {} EX 3600",
            "SET {x}_messages_1 {} EX 3600",
            "ZADD {x}_messages 1 {x}_messages_1",
            "SET {x}_messages_9 {} EX 3600",
            "SET {x}_last_packet_id 1",
        ]);
        assert_eq!(sides.verify().code, Some(5), "{place}");
        let call = || sides.repair().args(["--execute", "--delete-extra"]);
        assert_died(&call().env("TBMQ_MIGRATE_FAILPOINT", place).run());
        sides.scene.let_leases_run_out();
        let outcome = call().run();
        assert_eq!(outcome.code, Some(0), "{place}: {outcome:#?}");
        assert_eq!(sides.verify().code, Some(0), "{place}");
        sides.assert_original("a-01");
        assert_eq!(sides.scene.keys(), 6 * 12, "{place}");
    }
}
