use super::scene::Sides;
use crate::runs::stateless::as_role;

#[test]
fn a_plan_says_what_each_session_would_get_and_changes_nothing() {
    let sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3", "DEL {a-01}_last_packet_id", "SET {x}_last_packet_id 1"]);
    assert_eq!(sides.verify().code, Some(5));
    let before = sides.scene.redis.keyspace();
    let plan = sides.repair().run();
    assert_eq!(plan.code, Some(0), "{plan:#?}");
    let sessions = &plan.json()["sessions"];
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    assert_eq!((&sessions[0]["client_id"], &sessions[0]["action"]), (&"a-01".into(), &"replace".into()));
    assert_eq!(sessions[0]["findings"], serde_json::json!(["missing_message", "missing_last_packet_id"]));
    assert_eq!((sessions[0]["messages_migrated"].as_u64(), sessions[0]["last_packet_id"].as_u64()), (Some(10), Some(10)));
    assert_eq!((&sessions[1]["client_id"], &sessions[1]["reason"]), (&"x".into(), &"needs_delete_extra".into()));
    assert_eq!(sides.repair().arg("--delete-extra").run().json()["sessions"][1]["action"], "remove");
    assert_eq!(sides.scene.redis.keyspace(), before);

    let text = sides.tool("repair").arg("--report").arg(&sides.report).run().stdout;
    assert!(text.contains("\"a-01\" (missing_message, missing_last_packet_id): 10 messages to write, last packet id 10\n"), "{text}");
    assert!(text.contains("\"x\" (extra_session): left alone: needs --delete-extra\n"), "{text}");
}

#[test]
fn a_role_that_may_only_read_sees_the_plan_and_is_told_the_grant_to_execute() {
    let mut sides = Sides::copied();
    sides.redis(&["DEL {a-01}_messages_3"]);
    assert_eq!(sides.verify().code, Some(5));
    sides.scene.sql("drop schema tbmq_migrate cascade");
    let role = format!("reader_{}", sides.scene.database.name);
    let owner = sides.scene.database.clone();
    sides.scene.database = as_role(&owner, &role);
    owner.psql(&format!("grant select on device_publish_msg, device_session_ctx to \"{role}\""));
    assert_eq!(sides.repair().run().code, Some(0));
    let before = sides.scene.redis.keyspace();
    let refused = sides.repair().arg("--execute").run();
    assert_eq!(refused.code, Some(4), "{refused:#?}");
    assert!(refused.stderr.contains("grant create on database") && !refused.stderr.contains("--stateless"), "{refused:#?}");
    assert_eq!(sides.scene.redis.keyspace(), before);
    owner.psql(&format!("grant create on database {} to \"{role}\"", owner.name));
    assert_eq!(sides.repair().arg("--execute").run().code, Some(0));
}
