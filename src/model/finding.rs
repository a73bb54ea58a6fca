//! What a comparison found: one difference, by its kind.

use super::ClientId;

/// The kinds of differences. The names are stable: they stand in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// PostgreSQL has a message to deliver that a 2.x broker would not find.
    MissingMessage,
    /// A 2.x broker would find a message that PostgreSQL has not.
    ExtraMessage,
    /// A field of the message says something else.
    DifferentField,
    /// Messages would be delivered in another order.
    WrongOrder,
    /// The order is right, and the score is not serial number + 1.
    WrongScore,
    /// It ends at another time.
    WrongDeadline,
    /// The session has no last packet id, and must have one.
    MissingLastPacketId,
    /// The last packet id is another one.
    WrongLastPacketId,
    /// The last packet id would go by itself.
    LastPacketIdExpires,
    /// The broker's parser would refuse the message, or end the delivery at it.
    UnreadableMessage,
    /// PostgreSQL does not know the session.
    ExtraSession,
    /// A key of the session holds another type.
    ForeignType,
    /// A reference to a message that is gone before its time. Without PostgreSQL only.
    DanglingReference,
    /// A message that nothing refers to. Without PostgreSQL only.
    OrphanString,
    /// The last packet id is behind the newest message, whose key the next message would overwrite. Without PostgreSQL only.
    LastPacketIdBehind,
}

impl FindingKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 15] = [
        Self::MissingMessage,
        Self::ExtraMessage,
        Self::DifferentField,
        Self::WrongOrder,
        Self::WrongScore,
        Self::WrongDeadline,
        Self::MissingLastPacketId,
        Self::WrongLastPacketId,
        Self::LastPacketIdExpires,
        Self::UnreadableMessage,
        Self::ExtraSession,
        Self::ForeignType,
        Self::DanglingReference,
        Self::OrphanString,
        Self::LastPacketIdBehind,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingMessage => "missing_message",
            Self::ExtraMessage => "extra_message",
            Self::DifferentField => "different_field",
            Self::WrongOrder => "wrong_order",
            Self::WrongScore => "wrong_score",
            Self::WrongDeadline => "wrong_deadline",
            Self::MissingLastPacketId => "missing_last_packet_id",
            Self::WrongLastPacketId => "wrong_last_packet_id",
            Self::LastPacketIdExpires => "last_packet_id_expires",
            Self::UnreadableMessage => "unreadable_message",
            Self::ExtraSession => "extra_session",
            Self::ForeignType => "foreign_type",
            Self::DanglingReference => "dangling_reference",
            Self::OrphanString => "orphan_string",
            Self::LastPacketIdBehind => "last_packet_id_behind",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whose session.
    pub client: ClientId,
    /// Of which kind.
    pub kind: FindingKind,
    /// Of which message, where it is about one.
    pub packet_id: Option<u16>,
    /// The serial number of its row, where it has one.
    pub serial_number: Option<i64>,
    /// What stands there and what should, in words; it holds no payload unless that was asked for.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for kind in FindingKind::ALL {
            assert_eq!(FindingKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(FindingKind::from_name("missing"), None);
    }
}
