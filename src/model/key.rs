//! The Redis keys of a session and the cluster slot that they live in (contract section 2 and rule 7).

use super::ClientId;

/// Number of hash slots of a Redis Cluster.
pub const SLOTS: u16 = 16_384;

/// The columns of the broker hold ids of up to this many characters.
const ID_CHARACTERS: usize = 255;

/// The broker's cache prefix, put before every key of every session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPrefix(Box<str>);

/// Which of a session's three kinds a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The sorted set of references.
    Messages,
    /// The string of one message.
    Message(u16),
    /// The last packet id.
    LastPacketId,
}

impl KeyPrefix {
    /// The prefix as the broker has it, empty for none.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `<prefix>{client_id}_messages`, the sorted set.
    pub fn messages(&self, client: &str) -> String {
        format!("{}{{{client}}}_messages", self.0)
    }

    /// `<prefix>{client_id}_last_packet_id`.
    pub fn last_packet_id(&self, client: &str) -> String {
        format!("{}{{{client}}}_last_packet_id", self.0)
    }

    /// The key of one message, from the key of its session's sorted set.
    pub fn message(messages_key: &str, packet_id: u16) -> String {
        format!("{messages_key}_{packet_id}")
    }

    /// The slot of all keys of the session, or `None` where they fall into several: an empty hash tag makes Redis hash
    /// whole keys, and then no script can serve the session on a cluster.
    pub fn slot(&self, client: &str) -> Option<u16> {
        let key = self.messages(client);
        hash_tag(key.as_bytes()).map(hash_slot)
    }

    /// The client id and the kind of a key under exactly this prefix; `None` for every key that is not a session's.
    ///
    /// The id ends at the *last* possible ending, so it may hold anything. A key that is not UTF-8 is nobody's.
    pub fn parse(&self, key: &[u8]) -> Option<(ClientId, KeyKind)> {
        let (id, kind) = self.parts(key)?;
        // What no column of PostgreSQL can hold is nobody's session, and could not be asked for.
        (!id.contains('\0') && id.chars().count() <= ID_CHARACTERS).then(|| (ClientId::new(id), kind))
    }

    fn parts<'k>(&self, key: &'k [u8]) -> Option<(&'k str, KeyKind)> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&*self.0)?.strip_prefix('{')?;
        if let Some(id) = rest.strip_suffix("}_last_packet_id") {
            return Some((id, KeyKind::LastPacketId));
        }
        if let Some(id) = rest.strip_suffix("}_messages") {
            return Some((id, KeyKind::Messages));
        }
        let (id, number) = rest.rsplit_once("}_messages_")?;
        // A number in any other form than the broker writes is another's key.
        let packet_id: u16 = number.parse().ok().filter(|&n: &u16| n != 0 && n.to_string() == number)?;
        Some((id, KeyKind::Message(packet_id)))
    }

    /// Whether the prefix itself holds a complete hash tag: `Some("")` for an empty one, which no cluster can serve;
    /// any other puts every session into one slot.
    pub fn own_hash_tag(&self) -> Option<&str> {
        let (_, after) = self.0.split_once('{')?;
        after.split_once('}').map(|(tag, _)| tag)
    }
}

/// What stands before the id in a key that ends as one of a session does, whatever prefix it is under: the text up to the
/// first `{`. `None` for every other key, and for one that is not UTF-8.
pub fn prefix_of(key: &[u8]) -> Option<KeyPrefix> {
    let text = std::str::from_utf8(key).ok()?;
    let (prefix, _) = text.split_once('{')?;
    let prefix = KeyPrefix::new(prefix);
    prefix.parse(key).is_some().then_some(prefix)
}

/// The slot of a single key, whatever it is.
pub fn slot_of_key(key: &[u8]) -> u16 {
    hash_slot(hash_tag(key).unwrap_or(key))
}

fn hash_slot(hashed: &[u8]) -> u16 {
    crc16::State::<crc16::XMODEM>::calculate(hashed) % SLOTS
}

/// The part of a key that Redis Cluster hashes, where it is not the whole key.
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|&b| b == b'{')?;
    let length = key[open + 1..].iter().position(|&b| b == b'}')?;
    (length > 0).then(|| &key[open + 1..open + 1 + length])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn slot(prefix: &str, client: &str) -> Option<u16> {
        KeyPrefix::new(prefix).slot(client)
    }

    #[test]
    fn slots_are_those_that_a_cluster_answered() {
        for (client, expected) in
            [("dev1", 10_037), ("{", 4_092), ("{}", 4_092), ("a}b", 15_495), ("a{b", 13_340), ("{a}", 10_276), ("ключ😀", 15_882)]
        {
            assert_eq!(slot("", client), Some(expected), "{client}");
        }
    }

    #[test]
    fn an_id_that_is_empty_or_begins_with_a_brace_spans_slots() {
        for client in ["", "}", "}x"] {
            assert_eq!(slot("", client), None, "{client}");
        }
    }

    #[test]
    fn the_slot_is_that_of_the_whole_key_prefix_included() {
        for (prefix, expected) in [("tb}", Some(10_037)), ("tb{", Some(5_708)), ("tb}{", Some(5_708)), ("tb{x}:", Some(16_287)), ("tb{}:", None)] {
            assert_eq!(slot(prefix, "dev1"), expected, "{prefix}");
        }
        assert_eq!(KeyPrefix::new("tb{}:").own_hash_tag(), Some(""));
        assert_eq!(KeyPrefix::new("tb{x}:").own_hash_tag(), Some("x"));
        assert_eq!(KeyPrefix::new("tb}{").own_hash_tag(), None);
    }

    #[test]
    fn a_key_gives_back_its_id_whatever_the_id_holds() {
        let prefix = KeyPrefix::new("p:");
        for id in ["a", "", "}", "{a}_messages", "x}_messages_7", "}_last_packet_id", "ключ😀", "a b"] {
            let set = prefix.messages(id);
            let message = KeyPrefix::message(&set, 65_535);
            assert_eq!(prefix.parse(set.as_bytes()), Some((ClientId::new(id), KeyKind::Messages)));
            assert_eq!(prefix.parse(message.as_bytes()), Some((ClientId::new(id), KeyKind::Message(65_535))));
            assert_eq!(prefix.parse(prefix.last_packet_id(id).as_bytes()), Some((ClientId::new(id), KeyKind::LastPacketId)));
        }
    }

    #[test]
    fn keys_of_others_are_nobodys() {
        let prefix = KeyPrefix::new("p:");
        for key in [
            "{a}_messages",
            "q:{a}_messages",
            "p:{a}_messages_0",
            "p:{a}_messages_01",
            "p:{a}_messages_65536",
            "p:{a}_messages_x",
            "p:{a}_messages_+1",
            "p:a_messages",
            "p:{a}",
            "p:clientMqttVersion::a",
        ] {
            assert_eq!(prefix.parse(key.as_bytes()), None, "{key}");
        }
        assert_eq!(prefix.parse(b"p:{\xff}_messages"), None);
        assert_eq!(prefix.parse(b"p:{a\0b}_messages"), None);
        let (longest, longer) = ("é".repeat(255), "é".repeat(256));
        assert!(prefix.parse(prefix.messages(&longest).as_bytes()).is_some());
        assert_eq!(prefix.parse(prefix.messages(&longer).as_bytes()), None);
    }
}
