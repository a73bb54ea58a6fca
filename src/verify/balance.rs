//! Whether both directions met the same keys, without remembering them.
//!
//! Every key of a session is a number, a digest of its text. The comparison takes the number of each key that it has read
//! and explained away from a sum, the scan adds the number of each key that it meets. There is a sum for each of some
//! hundred thousand groups of sessions; where it is not zero in the end, something in Redis is not explained, or something
//! moved meanwhile, and the sessions of that group are looked up one by one. Numbers of 64 bits do not cancel out by
//! chance. So the usual case, in which nothing is wrong, costs one bounded scan and nothing else.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{ClientId, KeyKind};

/// Two MiB: some sessions a group at a million of them.
const GROUPS: usize = 1 << 18;

/// The sums.
pub(super) struct Balance(Vec<AtomicU64>);

impl Default for Balance {
    fn default() -> Self {
        Self((0..GROUPS).map(|_| AtomicU64::new(0)).collect())
    }
}

/// The sum of one session's keys that were read, to be taken away at once.
pub(super) struct Explained<'b> {
    group: &'b AtomicU64,
    state: DefaultHasher,
    sum: u64,
}

impl Balance {
    /// What the comparison explains of a session.
    pub(super) fn explained(&self, client: &ClientId) -> Explained<'_> {
        let state = begin(client);
        Explained { group: &self.0[group(&state)], state, sum: 0 }
    }

    /// What the scan met.
    pub(super) fn met(&self, client: &ClientId, kind: KeyKind) {
        let state = begin(client);
        self.0[group(&state)].fetch_add(number(&state, kind), Ordering::Relaxed);
    }

    /// Whether everything is explained that was met of the group of a session.
    pub(super) fn is_even(&self, client: &ClientId) -> bool {
        self.0[group(&begin(client))].load(Ordering::Relaxed) == 0
    }

    /// Whether everything is explained that was met.
    pub(super) fn is_all_even(&self) -> bool {
        self.0.iter().all(|sum| sum.load(Ordering::Relaxed) == 0)
    }
}

impl Explained<'_> {
    /// One more key.
    pub(super) fn key(&mut self, kind: KeyKind) {
        self.sum = self.sum.wrapping_add(number(&self.state, kind));
    }
}

impl Drop for Explained<'_> {
    fn drop(&mut self) {
        self.group.fetch_sub(self.sum, Ordering::Relaxed);
    }
}

fn begin(client: &ClientId) -> DefaultHasher {
    let mut state = DefaultHasher::new();
    client.as_str().hash(&mut state);
    state
}

fn group(state: &DefaultHasher) -> usize {
    // A bucket by the low bits: the remainder fits by construction.
    #[allow(clippy::cast_possible_truncation)]
    let low = state.finish() as usize;
    low % GROUPS
}

fn number(state: &DefaultHasher, kind: KeyKind) -> u64 {
    let mut state = state.clone();
    match kind {
        KeyKind::Messages => 0x1_0000_u32,
        KeyKind::LastPacketId => 0x2_0000,
        KeyKind::Message(packet_id) => u32::from(packet_id),
    }
    .hash(&mut state);
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_and_explained_is_even_and_anything_else_is_not() {
        let (balance, one, other) = (Balance::default(), ClientId::new("one"), ClientId::new("other"));
        let kinds = [KeyKind::Messages, KeyKind::LastPacketId, KeyKind::Message(1), KeyKind::Message(2)];
        for kind in kinds {
            balance.met(&one, kind);
            balance.met(&other, kind);
        }
        assert!(!balance.is_even(&one) && !balance.is_all_even());
        let mut explained = balance.explained(&one);
        kinds.into_iter().for_each(|kind| explained.key(kind));
        drop(explained);
        assert!(balance.is_even(&one) && !balance.is_even(&other) && !balance.is_all_even());
        let mut explained = balance.explained(&other);
        kinds.into_iter().skip(1).for_each(|kind| explained.key(kind));
        drop(explained);
        assert!(!balance.is_even(&other));
        balance.explained(&other).key(KeyKind::Messages);
        assert!(balance.is_all_even());
    }

    #[test]
    fn a_key_that_is_met_twice_is_not_even() {
        let (balance, client) = (Balance::default(), ClientId::new("dev"));
        balance.met(&client, KeyKind::Message(7));
        balance.met(&client, KeyKind::Message(7));
        balance.explained(&client).key(KeyKind::Message(7));
        assert!(!balance.is_even(&client));
    }
}
