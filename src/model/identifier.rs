//! The identifiers of a session and of its messages, each a type of its own so that none is taken for another.

use std::fmt;

/// A client id, or a shared-subscription key `ss_<group>_<topic filter>`: any text, kept byte for byte as PostgreSQL has it.
///
/// `Display` escapes what could move a terminal's cursor or look like another id; [`ClientId::as_str`] is the exact text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(Box<str>);

impl ClientId {
    /// The id as it stands in PostgreSQL.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", EscapedText(&self.0))
    }
}

/// Text from outside, made safe to print: control, format and separator characters, the backslash and combining
/// marks at the start are shown as Rust escapes; all other text stays readable.
pub struct EscapedText<'a>(pub &'a str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\'' | '"' => write!(f, "{character}")?,
                // Bidirectional overrides and isolates can make one id look like another.
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", character.escape_unicode())?;
                }
                _ => write!(f, "{}", character.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// An MQTT packet id, 1..=65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(u16);

impl PacketId {
    /// A column's value as a packet id; `None` outside 1..=65535.
    pub fn from_column(value: i32) -> Option<Self> {
        u16::try_from(value).ok().filter(|&id| id != 0).map(Self)
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

/// The serial number of a message in its session, 0..=2^53-2: the range in which serial and score are exact (contract rule 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SerialNumber(i64);

impl SerialNumber {
    /// The highest serial whose score a Redis double holds exactly.
    pub const MAX: i64 = (1 << 53) - 2;

    /// A column's value as a serial number; `None` outside 0..=2^53-2.
    pub fn from_column(value: i64) -> Option<Self> {
        (0..=Self::MAX).contains(&value).then_some(Self(value))
    }

    /// The score of the message in the session's sorted set: serial + 1.
    pub fn score(self) -> Score {
        Score(self.0 + 1)
    }
}

/// The score of a message in its session's sorted set, 1..=2^53-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(i64);

impl Score {
    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// What `<prefix>{client_id}_last_packet_id` holds: 0..=65535, where 0 says that none was given yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastPacketId(u16);

impl LastPacketId {
    /// A context's value; `None` outside 0..=65535.
    pub fn from_column(value: i32) -> Option<Self> {
        u16::try_from(value).ok().map(Self)
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl From<PacketId> for LastPacketId {
    fn from(id: PacketId) -> Self {
        Self(id.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_id_is_1_to_65535() {
        assert_eq!(PacketId::from_column(0), None);
        assert_eq!(PacketId::from_column(-1), None);
        assert_eq!(PacketId::from_column(65_536), None);
        assert_eq!(PacketId::from_column(1).map(PacketId::get), Some(1));
        assert_eq!(PacketId::from_column(65_535).map(PacketId::get), Some(65_535));
    }

    #[test]
    fn a_serial_number_beyond_the_exact_doubles_is_none() {
        assert_eq!(SerialNumber::from_column(-1), None);
        assert_eq!(SerialNumber::from_column((1 << 53) - 1), None);
        assert_eq!(SerialNumber::from_column((1 << 53) - 2).map(|s| s.score().get()), Some(9_007_199_254_740_991));
        assert_eq!(SerialNumber::from_column(0).map(|s| s.score().get()), Some(1));
    }

    #[test]
    fn a_printed_client_id_cannot_steer_a_terminal() {
        let shown = ClientId::new("a\u{1b}[2Jb\n\u{202e}x").to_string();
        assert_eq!(shown, "a\\u{1b}[2Jb\\n\\u{202e}x");
        assert_eq!(ClientId::new("ключ😀 \"x\"").to_string(), "ключ😀 \"x\"");
    }
}
