//! What 1.4.0 sent to the clients when they came back, against what a 2.x broker will find in Redis.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::wanted::file;
use crate::support::keyspace::Keyspace;
use crate::support::postgres::Database;

/// One packet that 1.4.0 sent.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
pub struct Packet {
    client_id: String,
    kind: String,
    packet_id: i64,
    topic: Option<String>,
    qos: Option<i64>,
    retain: Option<bool>,
    len: Option<usize>,
    sha256: Option<String>,
    #[serde(default)]
    props: Vec<(String, Json)>,
}

/// Messages travel from a group's rows to a member of it, which gives them packet ids and a QoS of its own.
pub const MEMBERS: [(&str, &str); 2] = [("sh-a1", "ss_g1_sh/one/#"), ("sh-e1", "ss_g5_sh/five")];
/// It received messages of a group whose rows are not in the tables.
pub const MEMBER_WITHOUT_ROWS: &str = "sh-b1";
/// 1.4.0 sent within this time after the message came; a client was told what was left of its interval.
const LONGEST_WAIT_SECONDS: i64 = 1000;

/// The packets of each client, without those that only answer a PUBREC which the client sent meanwhile.
pub fn by_client() -> BTreeMap<String, Vec<Packet>> {
    let mut clients: BTreeMap<String, Vec<Packet>> = BTreeMap::new();
    for line in std::fs::read_to_string(file("delivered-by-1.4.0.jsonl")).unwrap().lines() {
        let packet: Packet = serde_json::from_str(line).unwrap();
        let before = clients.entry(packet.client_id.clone()).or_default();
        let answers = packet.kind == "PUBREL" && before.iter().any(|other| other.kind == "PUBLISH" && other.packet_id == packet.packet_id);
        if !answers {
            before.push(packet);
        }
    }
    clients
}

/// What a 2.x broker sends for a session: PUBRELs first, then PUBLISHes, each in the order of the scores.
pub fn stored(keys: &Keyspace, client: &str) -> Vec<Json> {
    let members = keys.members(format!("{{{client}}}_messages"));
    let messages: Vec<Json> = members.iter().map(|(member, _)| serde_json::from_str(&keys.text(member).unwrap()).unwrap()).collect();
    let (released, published): (Vec<Json>, Vec<Json>) = messages.into_iter().partition(|message| message["packetType"] == "PUBREL");
    released.into_iter().chain(published).collect()
}

/// The digests of payloads, by PostgreSQL.
pub fn digests(database: &Database, messages: &[Json]) -> Vec<(usize, String)> {
    let payload = |message: &Json| base64::engine::general_purpose::STANDARD.decode(message["payload"].as_str().unwrap()).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let values: Vec<String> = messages.iter().enumerate().map(|(n, message)| format!("({n}, '\\x{}'::bytea)", hex(&payload(message)))).collect();
    if values.is_empty() {
        return Vec::new();
    }
    let sql = format!("select length(b) || ' ' || encode(sha256(b), 'hex') from (values {}) v (n, b) order by n", values.join(", "));
    let lines = database.psql(&sql);
    lines.lines().map(|line| line.split_once(' ').unwrap()).map(|(length, digest)| (length.parse().unwrap(), digest.to_owned())).collect()
}

impl Packet {
    /// Whether a stored message becomes this packet; `own` is false where it came by way of a group, `mqtt_5` true where the
    /// client gets properties.
    pub fn comes_from(&self, message: &Json, digest: &(usize, String), own: bool, mqtt_5: bool) -> bool {
        let identity = self.kind == message["packetType"] && (!own || message["packetId"] == self.packet_id);
        // A PUBREL has nothing but its packet id.
        if self.kind == "PUBREL" {
            return identity;
        }
        let qos = message["qos"].as_i64().unwrap();
        identity
            && message["topicName"] == json!(self.topic)
            && (if own { self.qos == Some(qos) } else { self.qos <= Some(qos) })
            && message["retained"] == json!(self.retain)
            && (self.len, self.sha256.as_deref()) == (Some(digest.0), Some(digest.1.as_str()))
            && (if mqtt_5 { self.has_properties_of(message) } else { self.props.is_empty() })
    }

    /// Whether it has MQTT 5 properties.
    pub fn has_properties(&self) -> bool {
        !self.props.is_empty()
    }

    fn has_properties_of(&self, message: &Json) -> bool {
        let pairs: Vec<Json> = self.props.iter().filter(|(name, _)| name == "userProperty").map(|(_, pair)| pair.clone()).collect();
        let stored: Vec<Json> = match &message["userProperties"]["props"] {
            Json::Array(stored) => stored.iter().map(|pair| json!([pair["k"], pair["v"]])).collect(),
            _ => Vec::new(),
        };
        let one = |name: &str| self.props.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone()).unwrap_or_default();
        let left = match (message["msgExpiryInterval"].as_i64(), one("msgExpiryInterval").as_i64()) {
            (Some(0), left) => left == Some(0),
            (Some(interval), Some(left)) => (0..LONGEST_WAIT_SECONDS).contains(&(interval - left)),
            (None, None) => true,
            _ => false,
        };
        let same = ["payloadFormatIndicator", "contentType", "responseTopic"].into_iter().all(|name| one(name) == message[name]);
        pairs == stored && left && same && one("correlationData")["b64"] == message["correlationData"]
    }
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?} {:?} {:?}", self.kind, self.packet_id, self.topic, self.qos, self.props)
    }
}
