//! The law of a session: from its rows and its context to what Redis must hold, one outcome a row (contract section 3).
//!
//! Rows come newest first, by falling serial number. In that order *superseded*, *trimmed* and the last packet id are
//! decided as rows stream by, with one bit a packet id and a count: no session is ever held in memory, and nothing is
//! written only to be trimmed afterwards.

use super::deadline::{Life, Millis};
use super::message::{Carriable, Content};
use super::{ContextRow, LastPacketId, MessageRow, Outcome, PacketId, QuarantineReason, Rules, Score};

/// A message as Redis must hold it.
#[derive(Debug, PartialEq)]
pub struct WantedMessage<'a> {
    /// Its key.
    pub packet_id: PacketId,
    /// Its score in the session's sorted set.
    pub score: Score,
    /// When Redis must delete it.
    pub deadline: Millis,
    /// The fields of its JSON.
    pub content: Content<'a>,
}

/// What a row became.
#[derive(Debug, PartialEq)]
pub enum Judgement<'a> {
    /// It must stand in Redis.
    Wanted(WantedMessage<'a>),
    /// Its time is over: one of the two outcomes of that, and the message as it stood up to its deadline.
    Expired(Outcome, WantedMessage<'a>),
    /// It must not stand there; never [`Outcome::Migrated`].
    Left(Outcome),
}

impl Judgement<'_> {
    /// What became of the row.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Wanted(_) => Outcome::Migrated,
            Self::Expired(outcome, _) | Self::Left(outcome) => *outcome,
        }
    }
}

/// Judges the rows of one session after the other.
#[derive(Debug)]
pub struct SessionLaw {
    rules: Rules,
    on_cluster_unservable: bool,
    seen: Box<[u64; PACKET_ID_WORDS]>,
    kept: u32,
    newest_serial: Option<i64>,
    newest_packet_id: Option<PacketId>,
}

/// One bit for each of the 65,536 values of a packet id.
const PACKET_ID_WORDS: usize = 65_536 / 64;

impl SessionLaw {
    /// A judge by these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, on_cluster_unservable: false, seen: Box::new([0; PACKET_ID_WORDS]), kept: 0, newest_serial: None, newest_packet_id: None }
    }

    /// Begins the next session. `servable` is false where the target cannot hold the session at all (its keys span
    /// cluster slots): then every row of it is quarantined.
    pub fn begin(&mut self, servable: bool) {
        if self.newest_serial.is_some() {
            self.seen.fill(0);
        }
        self.on_cluster_unservable = !servable;
        self.kept = 0;
        self.newest_serial = None;
        self.newest_packet_id = None;
    }

    /// Judges the next row of the session; rows must come by falling serial number.
    pub fn judge<'a>(&mut self, row: &MessageRow<'a>, now: Millis) -> Judgement<'a> {
        debug_assert!(self.newest_serial.is_none_or(|newest| row.serial_number <= newest), "rows must come newest first");
        self.newest_serial.get_or_insert(row.serial_number);
        if self.newest_packet_id.is_none() {
            self.newest_packet_id = row.packet_id.and_then(PacketId::from_column);
        }
        if self.on_cluster_unservable {
            return Judgement::Left(Outcome::Quarantined(QuarantineReason::SpansSlots));
        }
        let carriable = match Carriable::from_row(row, &self.rules, now) {
            Ok(carriable) => carriable,
            Err(reason) => return Judgement::Left(Outcome::Quarantined(reason)),
        };
        if !self.first_of_its_packet_id(carriable.packet_id) {
            return Judgement::Left(Outcome::Superseded);
        }
        if self.kept == self.rules.message_limit {
            return Judgement::Left(Outcome::Trimmed);
        }
        self.kept += 1;
        let Carriable { packet_id, score, life, content } = carriable;
        let at = |deadline| WantedMessage { packet_id, score, deadline, content };
        match life {
            Life::OverByInterval(deadline) => Judgement::Expired(Outcome::ExpiredByInterval, at(deadline)),
            Life::OverByTtl(deadline) => Judgement::Expired(Outcome::ExpiredByTtl, at(deadline)),
            Life::Until(deadline) => Judgement::Wanted(at(deadline)),
        }
    }

    /// What the last packet id of the session must be, given the rows judged so far: its newest ones decide (contract
    /// rule 5). `None`: the session has no key of that kind. Once a row with a valid packet id was judged it is final.
    pub fn last_packet_id(&self, context: Option<&ContextRow>) -> Option<LastPacketId> {
        context.and_then(|context| self.of_context(context)).or_else(|| self.newest_packet_id.map(LastPacketId::from))
    }

    /// The context's own value, unless the context is behind the newest row. A NULL serial number is behind any row.
    fn of_context(&self, context: &ContextRow) -> Option<LastPacketId> {
        let not_behind = match (self.newest_serial, context.last_serial_number) {
            (None, _) => true,
            (Some(newest), Some(last)) => last >= newest,
            (Some(_), None) => false,
        };
        context.last_packet_id.filter(|_| not_behind).and_then(LastPacketId::from_column)
    }

    fn first_of_its_packet_id(&mut self, id: PacketId) -> bool {
        let (word, bit) = (usize::from(id.get()) / 64, 1_u64 << (id.get() % 64));
        let first = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        first
    }
}

impl ContextRow {
    /// A last packet id that no broker writes: reported, and counted as NULL.
    pub fn is_invalid(&self) -> bool {
        self.last_packet_id.is_some_and(|id| LastPacketId::from_column(id).is_none())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Millis = Millis(1_796_073_271_729);

    fn row(serial: i64, packet_id: i32) -> MessageRow<'static> {
        MessageRow {
            serial_number: serial,
            topic: Some(b"t"),
            time: Some(NOW.0 - 1000),
            packet_id: Some(packet_id),
            qos: Some(1),
            payload: Some(b"x"),
            ..MessageRow::default()
        }
    }

    fn outcomes(limit: u32, rows: &[MessageRow<'static>]) -> Vec<Outcome> {
        let mut law = SessionLaw::new(Rules { message_limit: limit, ..Rules::default() });
        law.begin(true);
        rows.iter().map(|row| law.judge(row, NOW).outcome()).collect()
    }

    fn last(context: Option<ContextRow>, rows: &[MessageRow<'static>]) -> Option<u16> {
        let mut law = SessionLaw::new(Rules::default());
        law.begin(true);
        for row in rows {
            law.judge(row, NOW);
        }
        law.last_packet_id(context.as_ref()).map(LastPacketId::get)
    }

    fn context(last_serial_number: Option<i64>, last_packet_id: Option<i32>) -> Option<ContextRow> {
        Some(ContextRow { last_serial_number, last_packet_id })
    }

    #[test]
    fn the_higher_serial_has_the_packet_id_even_when_it_has_expired() {
        let expired = MessageRow { msg_expiry_interval: Some(-1), ..row(9, 4) };
        assert_eq!(outcomes(10, &[expired, row(5, 4)]), [Outcome::ExpiredByInterval, Outcome::Superseded]);
    }

    #[test]
    fn a_quarantined_row_supersedes_nothing() {
        let broken = MessageRow { payload: None, ..row(9, 4) };
        assert_eq!(outcomes(10, &[broken, row(5, 4)]), [Outcome::Quarantined(QuarantineReason::PayloadMissing), Outcome::Migrated]);
    }

    #[test]
    fn the_limit_counts_expired_rows_but_neither_superseded_nor_quarantined_ones() {
        let rows = [
            row(9, 10),
            MessageRow { msg_expiry_interval: Some(-1), ..row(8, 9) },
            MessageRow { qos: Some(7), ..row(7, 8) },
            row(6, 10),
            row(5, 6),
            row(4, 5),
            row(3, 10),
        ];
        assert_eq!(
            outcomes(3, &rows),
            [
                Outcome::Migrated,
                Outcome::ExpiredByInterval,
                Outcome::Quarantined(QuarantineReason::QosOutOfRange),
                Outcome::Superseded,
                Outcome::Migrated,
                Outcome::Trimmed,
                Outcome::Superseded
            ]
        );
    }

    #[test]
    fn a_context_ahead_of_its_rows_gives_the_last_packet_id() {
        assert_eq!(last(context(Some(41), Some(42)), &[row(5, 6)]), Some(42));
        assert_eq!(last(context(Some(5), Some(6)), &[row(5, 6)]), Some(6));
    }

    #[test]
    fn a_context_behind_its_rows_or_none_leaves_it_to_the_newest_row() {
        assert_eq!(last(context(Some(4), Some(5)), &[row(5, 6)]), Some(6));
        assert_eq!(last(None, &[row(5, 6), row(4, 5)]), Some(6));
        assert_eq!(last(context(None, Some(9)), &[row(5, 6)]), Some(6));
        assert_eq!(last(context(Some(9), None), &[row(5, 6)]), Some(6));
    }

    #[test]
    fn the_newest_valid_packet_id_counts_whatever_became_of_its_row() {
        let null = MessageRow { packet_id: None, ..row(9, 1) };
        let expired = MessageRow { msg_expiry_interval: Some(-1), ..row(8, 77) };
        assert_eq!(last(None, &[null, expired, row(7, 8)]), Some(77));
        assert_eq!(last(None, &[null]), None);
    }

    #[test]
    fn a_session_without_rows_keeps_its_last_packet_id_zero_included() {
        assert_eq!(last(context(Some(41), Some(42)), &[]), Some(42));
        assert_eq!(last(context(Some(-1), Some(0)), &[]), Some(0));
        assert_eq!(last(context(None, Some(3)), &[]), Some(3));
        assert_eq!(last(context(Some(1), None), &[]), None);
        assert_eq!(last(None, &[]), None);
    }

    #[test]
    fn a_context_packet_id_out_of_range_counts_as_null() {
        for id in [-1, 65_536] {
            assert_eq!(last(context(Some(9), Some(id)), &[row(5, 6)]), Some(6));
            assert!(context(Some(9), Some(id)).unwrap().is_invalid());
        }
        assert!(!context(None, Some(65_535)).unwrap().is_invalid() && !context(None, None).unwrap().is_invalid());
    }

    #[test]
    fn a_session_that_spans_slots_is_quarantined_as_a_whole() {
        let mut law = SessionLaw::new(Rules::default());
        law.begin(false);
        assert_eq!(law.judge(&row(1, 2), NOW), Judgement::Left(Outcome::Quarantined(QuarantineReason::SpansSlots)));
        law.begin(true);
        assert!(matches!(law.judge(&row(1, 2), NOW), Judgement::Wanted(_)));
    }

    /// The contract read literally, over all rows at once.
    fn by_the_book(limit: u32, rows: &[MessageRow<'static>]) -> Vec<Outcome> {
        let carriable: Vec<_> = rows.iter().map(|row| Carriable::from_row(row, &Rules::default(), NOW)).collect();
        let mut remain = 0;
        (0..rows.len())
            .map(|at| match &carriable[at] {
                Err(reason) => Outcome::Quarantined(*reason),
                Ok(this) => {
                    let higher = (0..rows.len()).any(|other| {
                        rows[other].serial_number > rows[at].serial_number && carriable[other].as_ref().is_ok_and(|o| o.packet_id == this.packet_id)
                    });
                    if higher {
                        return Outcome::Superseded;
                    }
                    remain += 1;
                    match this.life {
                        _ if remain > limit => Outcome::Trimmed,
                        Life::OverByInterval(_) => Outcome::ExpiredByInterval,
                        Life::OverByTtl(_) => Outcome::ExpiredByTtl,
                        Life::Until(_) => Outcome::Migrated,
                    }
                }
            })
            .collect()
    }

    proptest! {
        #[test]
        fn streaming_newest_first_gives_what_the_contract_says_of_all_rows_at_once(
            limit in 1_u32..8,
            sessions in prop::collection::vec(prop::collection::vec((1_i32..6, 0_u8..6), 0..24), 1..4),
        ) {
            let mut law = SessionLaw::new(Rules { message_limit: limit, ..Rules::default() });
            for session in sessions {
                let rows: Vec<MessageRow<'static>> = session.iter().enumerate().map(|(n, &(packet, kind))| {
                    let row = row(1000 - i64::try_from(n).unwrap(), packet);
                    match kind {
                        0 => MessageRow { msg_expiry_interval: Some(-1), ..row },
                        1 => MessageRow { time: Some(1), ..row },
                        2 => MessageRow { payload: None, ..row },
                        _ => row,
                    }
                }).collect();
                law.begin(true);
                let streamed: Vec<Outcome> = rows.iter().map(|row| law.judge(row, NOW).outcome()).collect();
                prop_assert_eq!(streamed, by_the_book(limit, &rows));
            }
        }
    }
}
