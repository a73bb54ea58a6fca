//! The scripts on a Redis Cluster: derived keys in the session's own slot, and a slot that moves.

use redis::Value;

use super::trim_sessions::{fill, trim};
use super::writing::{create, replace};
use super::{Call, last_of, message_of, set_of};
use crate::support::cluster::RedisCluster;

const CLIENTS: [&str; 4] = ["a", "b{c}", "{}x", "ss_g_a/+/b"];

#[test]
fn every_script_works_on_a_cluster_although_derived_keys_are_not_declared() {
    let cluster = RedisCluster::start();
    for client in CLIENTS {
        let mut connection = cluster.nodes[cluster.owner(cluster.slot(&set_of(client)))].connection();
        let session = |script| Call::new(script).key(set_of(client));
        let both = |script| session(script).key(last_of(client));
        let add = both(super::ADD_MESSAGES).value("2").value(r#"[{"n":1},{"n":2},{"n":3}]"#).value("600");
        assert_eq!(add.send(&mut connection).unwrap(), Value::Int(0));
        session(super::UPDATE_PACKET_TYPE).value("2").send(&mut connection).unwrap();
        session(super::REMOVE_MESSAGE).value("3").send(&mut connection).unwrap();
        let messages: Vec<String> =
            redis::FromRedisValue::from_redis_value(session(super::GET_MESSAGES).value("2").send(&mut connection).unwrap()).unwrap();
        assert_eq!(messages.len(), 1);
        let message: serde_json::Value = serde_json::from_str(&messages[0]).unwrap();
        assert_eq!(message, serde_json::json!({"n": 2, "packetId": 2, "packetType": "PUBREL"}));
        both(super::REMOVE_MESSAGES).send(&mut connection).unwrap();
        create(&[(client, "2", &[(1, b"x", 1), (2, b"y", 2)])]).send(&mut connection).unwrap();
        assert_eq!(cluster.keyspace().members(set_of(client)).len(), 2);
        trim("10", &[(client, "2")]).send(&mut connection).unwrap();
        assert_eq!(cluster.keyspace().members(set_of(client)), [(message_of(client, 2), 2.0)]);
        trim("10", &[(client, "+inf")]).send(&mut connection).unwrap();
        assert!(cluster.keyspace().0.is_empty(), "{client}");
    }
}

#[test]
fn while_a_slot_moves_a_call_is_refused_as_a_whole_and_its_repetition_heals() {
    let cluster = RedisCluster::start();
    let slot = cluster.slot(&set_of("a"));
    let from = cluster.owner(slot);
    let to = (from + 1) % 3;
    let mut connection = cluster.nodes[from].connection();
    fill(&mut connection, "a", 4);
    cluster.begin_migration(slot, from, to);
    cluster.move_keys(&[&message_of("a", 1)], from, to);
    let before = cluster.keyspace();
    let again = replace(&[("a", "9", &[(1, b"x", 1), (9, b"y", 9)])]);
    again.refusal(&mut connection);
    assert_eq!(cluster.keyspace(), before, "every key is declared: nothing is half written");
    let whole = trim("10", &[("a", "+inf")]);
    whole.refusal(&mut connection);
    let after = cluster.keyspace();
    assert_eq!(after.members(set_of("a")).len(), 4, "no member goes before its string");
    cluster.finish_migration(slot, from, to);
    let mut connection = cluster.nodes[to].connection();
    assert_eq!(again.send(&mut connection).unwrap(), Value::Array(Vec::new()));
    assert_eq!(cluster.keyspace().members(set_of("a")).len(), 5);
    whole.send(&mut connection).unwrap();
    assert!(cluster.keyspace().0.is_empty());
}
