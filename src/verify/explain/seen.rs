//! What is told about a session: plain data, in which nothing is escaped.

use std::collections::VecDeque;

use crate::model::{
    ClientId, ContextRow, Finding, FoundMessage, FoundString, MessageRow, Millis, Outcome, PacketType, StoredMessage, Tally, digest_of,
};

/// Everything that is told about one session.
#[derive(Debug)]
pub struct Explanation {
    /// Whose.
    pub client: ClientId,
    /// Whether the target is a cluster.
    pub is_cluster: bool,
    /// The slot of its keys on a cluster; `None` where they would span several.
    pub slot: Option<u16>,
    /// The server that holds the slot, on a cluster, else the server; `None` where no server can hold the session.
    pub node: Option<String>,
    /// Whether PostgreSQL has a row of it.
    pub in_postgresql: bool,
    /// Whether Redis has a key of it.
    pub in_redis: bool,
    /// Its context.
    pub context: Option<ContextRow>,
    /// When the context changed last, in ms.
    pub last_updated: Option<i64>,
    /// The last packet id that the law wants.
    pub wanted_last_packet_id: Option<u16>,
    /// What stands in Redis beside messages.
    pub head: SeenHead,
    /// The newest rows, oldest first.
    pub rows: VecDeque<SeenRow>,
    /// References in the sorted set; `None`: it is of another type, or was not asked.
    pub references: Option<u64>,
    /// References and messages in Redis that no row explains.
    pub unexplained: u64,
    /// The newest of them.
    pub unexplained_keys: Vec<SeenKey>,
    /// What became of all rows, those that are not listed included.
    pub tally: Tally,
    /// The limit of messages, by which rows are trimmed.
    pub message_limit: u32,
    /// Whether the differences count.
    pub standing: Standing,
    /// The differences.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub unlisted_findings: u64,
    /// When it was seen, by the clock of Redis.
    pub now: Millis,
    /// What to do.
    pub next_steps: Vec<String>,
}

/// What the looks at a session came to. Set once, by the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No difference.
    Equal,
    /// It held still, and differs.
    Different,
    /// It did not hold still; what is listed as a difference stood through two looks all the same.
    Moving,
}

/// Which side is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Both.
    Both,
    /// The rows alone.
    PostgreSql,
}

/// What Redis has of a session beside its messages.
#[derive(Debug, Default)]
pub struct SeenHead {
    /// The text of the last packet id; `None`: there is no such string.
    pub last_packet_id: Option<String>,
    /// The type of that key, where it is no string.
    pub last_packet_id_type: Option<String>,
    /// When it ends, as it must not.
    pub last_packet_id_deadline: Option<Millis>,
    /// The type of the key of the sorted set, where that is another one.
    pub set_of_other_type: Option<String>,
}

/// A row with what it became.
#[derive(Debug)]
pub struct SeenRow {
    /// `serial_number`.
    pub serial_number: i64,
    /// `packet_id` as it stands there.
    pub packet_id: Option<i32>,
    /// `packet_type` as it stands there; NULL is PUBLISH.
    pub packet_type: Option<String>,
    /// `qos` as it stands there.
    pub qos: Option<i32>,
    /// `topic`.
    pub topic: Option<String>,
    /// `time`, in ms.
    pub time: Option<i64>,
    /// `msg_expiry_interval`, in seconds.
    pub msg_expiry_interval: Option<i32>,
    /// `payload`; `None` for NULL.
    pub payload: Option<SeenPayload>,
    /// What became of it.
    pub outcome: Outcome,
    /// The serial number of the row that has its packet id, where it is superseded.
    pub superseded_by: Option<i64>,
    /// When it ends or ended, where the clock was asked.
    pub deadline: Option<Millis>,
    /// What Redis has under its packet id, where something may stand there for it.
    pub found: Option<SeenKey>,
}

/// A payload by its size and digest.
#[derive(Debug)]
pub struct SeenPayload {
    /// Its size.
    pub bytes: usize,
    /// As findings show it.
    pub digest: String,
    /// Its first bytes, up to [`SeenPayload::MOST_SHOWN`], where payloads are to be shown.
    pub beginning: Option<Vec<u8>>,
}

/// What Redis has for one packet id, or for one reference.
#[derive(Debug)]
pub struct SeenKey {
    /// The packet id; `None` for a reference to no message of the session.
    pub packet_id: Option<u16>,
    /// What that refers to.
    pub member: Option<String>,
    /// The score of the reference; `None`: nothing refers to it.
    pub score: Option<f64>,
    /// The string.
    pub string: SeenString,
    /// When that ends; `None`: never, or there is none.
    pub deadline: Option<Millis>,
}

/// The value of the key of a message.
#[derive(Debug)]
pub enum SeenString {
    /// There is none.
    Missing,
    /// One that a broker can read.
    Message {
        /// `packetType`.
        packet_type: PacketType,
        /// `qos`.
        qos: Option<i32>,
        /// `payload`.
        payload: SeenPayload,
    },
    /// One that no broker can read, of this many bytes.
    Unreadable(usize),
    /// The key holds another type.
    Other(String),
}

impl SeenPayload {
    /// Bytes of a payload that are shown: as many as a person can read, whatever the message.
    pub const MOST_SHOWN: usize = 65_536;

    pub(super) fn new(payload: &[u8], is_shown: bool) -> Self {
        let beginning = is_shown.then(|| payload[..payload.len().min(Self::MOST_SHOWN)].to_vec());
        Self { bytes: payload.len(), digest: digest_of(payload), beginning }
    }
}

impl SeenRow {
    pub(super) fn new(row: &MessageRow<'_>, outcome: Outcome, show_payload: bool) -> Self {
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Self {
            serial_number: row.serial_number,
            packet_id: row.packet_id,
            packet_type: text(row.packet_type),
            qos: row.qos,
            topic: text(row.topic),
            time: row.time,
            msg_expiry_interval: row.msg_expiry_interval,
            payload: row.payload.map(|payload| SeenPayload::new(payload, show_payload)),
            outcome,
            superseded_by: None,
            deadline: None,
            found: None,
        }
    }
}

impl SeenKey {
    pub(super) fn new(packet_id: u16, found: &FoundMessage<'_>, show_payload: bool) -> Self {
        let string = match found.string {
            FoundString::Missing => SeenString::Missing,
            FoundString::Other(name) => SeenString::Other(name.to_owned()),
            FoundString::Text(bytes) => match StoredMessage::parse(bytes) {
                Ok(stored) => {
                    SeenString::Message { packet_type: stored.packet_type, qos: stored.qos, payload: SeenPayload::new(&stored.payload, show_payload) }
                }
                Err(_) => SeenString::Unreadable(bytes.len()),
            },
        };
        Self { packet_id: Some(packet_id), member: None, score: found.score, string, deadline: found.deadline }
    }

    /// A reference to no message of the session.
    pub(super) fn strange(member: &[u8], score: f64) -> Self {
        let member = Some(String::from_utf8_lossy(member).into_owned());
        Self { packet_id: None, member, score: Some(score), string: SeenString::Missing, deadline: None }
    }
}
