//! What became of a row, and the sum of what became of all rows.

use serde::Serialize;

/// Why a row cannot be carried (contract rule 9). The names are stable: they stand in the control schema and in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum QuarantineReason {
    /// The score would not be exact in a Redis double.
    #[error("serial number outside 0..2^53-2")]
    SerialNumberOutOfRange,
    /// NULL or outside 1..65535: there is no key to store it under.
    #[error("packet id NULL or outside 1..65535")]
    PacketIdOutOfRange,
    /// Neither PUBLISH nor PUBREL: the broker's parser would refuse the whole session.
    #[error("unknown packet type")]
    UnknownPacketType,
    /// NULL or outside 0..2.
    #[error("qos NULL or outside 0..2")]
    QosOutOfRange,
    /// Without a topic nothing can be published.
    #[error("topic is NULL")]
    TopicMissing,
    /// A message without a payload ends the delivery of its session; an empty payload is not NULL.
    #[error("payload is NULL")]
    PayloadMissing,
    /// A message without a time ends the delivery of its session.
    #[error("time is NULL")]
    TimeMissing,
    /// More than 366 days ahead: a broken clock, not a message.
    #[error("time more than 366 days in the future")]
    TimeTooFarAhead,
    /// Not `{"props":[{"k":…,"v":…}]}`, or with an escape that is no character.
    #[error("malformed user properties")]
    MalformedUserProperties,
    /// Above the payload limit, by default what the broker's JSON parser takes.
    #[error("payload larger than the limit")]
    PayloadTooLarge,
    /// Another field above what the broker's JSON parser takes.
    #[error("a field is larger than the broker's parser takes")]
    FieldTooLarge,
    /// Only a `SQL_ASCII` database can hold such text.
    #[error("text is not valid UTF-8")]
    NotUtf8,
    /// The keys of the session fall into several cluster slots; neither this tool nor the broker can serve it there.
    #[error("the client id cannot live on a cluster: empty or begins with a closing brace")]
    SpansSlots,
    /// A key of the session holds a value of another type, which is not overwritten.
    #[error("a key of the session holds another type in Redis")]
    ForeignType,
}

impl QuarantineReason {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::SerialNumberOutOfRange => "serial_number_out_of_range",
            Self::PacketIdOutOfRange => "packet_id_out_of_range",
            Self::UnknownPacketType => "unknown_packet_type",
            Self::QosOutOfRange => "qos_out_of_range",
            Self::TopicMissing => "topic_missing",
            Self::PayloadMissing => "payload_missing",
            Self::TimeMissing => "time_missing",
            Self::TimeTooFarAhead => "time_too_far_ahead",
            Self::MalformedUserProperties => "malformed_user_properties",
            Self::PayloadTooLarge => "payload_too_large",
            Self::FieldTooLarge => "field_too_large",
            Self::NotUtf8 => "not_utf8",
            Self::SpansSlots => "spans_slots",
            Self::ForeignType => "foreign_type",
        }
    }
}

/// The one outcome of a source row, in the order in which they are tried (contract section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It cannot be carried.
    Quarantined(QuarantineReason),
    /// Another carriable row of the session has the packet id and a higher serial.
    Superseded,
    /// Beyond the newest `limit` rows of the session.
    Trimmed,
    /// Its own interval has passed, or is negative.
    ExpiredByInterval,
    /// The default TTL has passed.
    ExpiredByTtl,
    /// It stands in Redis.
    Migrated,
}

/// Counts over rows and sessions. `rows_read` is always the sum of the outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Sessions with at least one row in either table.
    pub sessions: u64,
    /// Rows of `device_publish_msg` that were read.
    pub rows_read: u64,
    /// Outcome.
    pub messages_migrated: u64,
    /// Outcome.
    pub expired_by_interval: u64,
    /// Outcome.
    pub expired_by_ttl: u64,
    /// Outcome.
    pub superseded: u64,
    /// Outcome.
    pub trimmed: u64,
    /// Outcome.
    pub quarantined: u64,
    /// Rows whose session has no context, whatever their outcome (contract rule 6).
    pub orphan_messages: u64,
    /// Contexts that cannot be carried: their last packet id is outside 0..65535 and counts as NULL, or their session has
    /// no rows and Redis cannot hold it.
    pub invalid_contexts: u64,
}

impl Tally {
    /// Counts one row.
    pub fn count(&mut self, outcome: Outcome) {
        self.rows_read += 1;
        match outcome {
            Outcome::Quarantined(_) => self.quarantined += 1,
            Outcome::Superseded => self.superseded += 1,
            Outcome::Trimmed => self.trimmed += 1,
            Outcome::ExpiredByInterval => self.expired_by_interval += 1,
            Outcome::ExpiredByTtl => self.expired_by_ttl += 1,
            Outcome::Migrated => self.messages_migrated += 1,
        }
    }

    /// Moves one row from *migrated* to *quarantined*: Redis holds another type where it should go.
    pub fn refuse_migrated(&mut self) {
        self.messages_migrated -= 1;
        self.quarantined += 1;
    }

    /// Whether anything stands in the quarantine list.
    pub fn anything_quarantined(&self) -> bool {
        self.quarantined > 0 || self.invalid_contexts > 0
    }
}

/// Counts of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compared {
    /// Sessions that stand on either side and were looked at, those not checked included.
    pub sessions: u64,
    /// Messages that must be in Redis, of the sessions that were checked.
    pub messages: u64,
    /// Sessions with at least one difference.
    pub differing_sessions: u64,
    /// Sessions that never held still.
    pub not_checked: u64,
    /// Differences beyond those that are listed.
    pub unlisted_findings: u64,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.messages += other.messages;
        self.differing_sessions += other.differing_sessions;
        self.not_checked += other.not_checked;
        self.unlisted_findings += other.unlisted_findings;
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.rows_read += other.rows_read;
        self.messages_migrated += other.messages_migrated;
        self.expired_by_interval += other.expired_by_interval;
        self.expired_by_ttl += other.expired_by_ttl;
        self.superseded += other.superseded;
        self.trimmed += other.trimmed;
        self.quarantined += other.quarantined;
        self.orphan_messages += other.orphan_messages;
        self.invalid_contexts += other.invalid_contexts;
    }
}
