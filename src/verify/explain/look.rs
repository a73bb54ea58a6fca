//! One close look at a session: every row with what became of it, and every key that Redis has for it.
//!
//! Rows stream as in any comparison, part by part; kept are a few words about the newest ones, and counts. A message that
//! nothing refers to is looked for by its exact key, for each packet id that there can be.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use sqlx::PgConnection;

use super::seen::{SeenHead, SeenKey, SeenRow, Side};
use crate::copy::{Clock, CopyError};
use crate::model::{
    ClientId, Comparison, ContextRow, Differences, FoundHead, FoundString, Judgement, LastPacketId, Millis, Outcome, SessionLaw, Tally,
};
use crate::source::{ChunkReader, JoinedRow, Scope};
use crate::target::{FoundPart, Link, PartRequest, Reading, ScoreRange};
use crate::verify::part::{Kept, Part, Session};
use crate::verify::settle::{Sides, tell_unknown};
use crate::verify::walk::Comparer;

/// Messages that are read in one call.
const MESSAGES_A_CALL: usize = 100;
/// Bytes of rows of a call.
const BYTES_A_CALL: usize = 128 * 1024;
/// What a row takes beside its payload.
const ROW_BYTES: usize = 200;

/// Which messages without a reference are looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Strays<'s> {
    /// Those of every packet id.
    All,
    /// Those that an earlier look has found.
    These(&'s [u16]),
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'q> {
    pub client: &'q ClientId,
    /// The newest rows, and the newest keys without a row, that are listed.
    pub most_rows: usize,
    pub side: Side,
    pub strays: Strays<'q>,
}

/// What was seen.
pub(super) struct Look {
    /// A digest of the rows; `None`: PostgreSQL does not know the session.
    pub rows_digest: Option<u64>,
    pub context: Option<ContextRow>,
    /// Oldest first.
    pub rows: VecDeque<SeenRow>,
    pub tally: Tally,
    pub wanted_last_packet_id: Option<LastPacketId>,
    pub head: SeenHead,
    pub references: Option<u64>,
    /// Messages that nothing refers to.
    pub strays: Vec<u16>,
    pub unexplained: u64,
    pub unexplained_keys: Vec<SeenKey>,
    pub differences: Differences,
    pub now: Millis,
    /// Whether a message of a row stands there, in whatever form.
    rows_found: bool,
}

/// A look under way.
pub(super) struct Gathering<'a> {
    pub(super) comparer: &'a Comparer,
    pub(super) link: &'a Link,
    clock: Clock,
    pub(super) question: &'a Question<'a>,
    /// Whether Redis is asked: it is, and the session can live there.
    asks_redis: bool,
    pub(super) session: Arc<Session>,
    law: SessionLaw,
    /// Which row has a packet id: the highest serial number that can be carried.
    holders: HashMap<i32, i64>,
    kept: Vec<Kept>,
    /// How old each of the kept rows is among those that are listed, newest first.
    listed: Vec<Option<usize>>,
    kept_bytes: usize,
    /// Where the part before ended.
    end: Option<i64>,
    digest: DefaultHasher,
    pub(super) look: Look,
}

impl Look {
    fn new(now: Millis) -> Self {
        Self {
            rows_digest: None,
            context: None,
            rows: VecDeque::new(),
            tally: Tally::default(),
            wanted_last_packet_id: None,
            head: SeenHead::default(),
            references: None,
            strays: Vec::new(),
            unexplained: 0,
            unexplained_keys: Vec::new(),
            differences: Differences::default(),
            now,
            rows_found: false,
        }
    }

    /// Whether Redis has a key of the session.
    pub(super) fn stands_in_redis(&self) -> bool {
        let SeenHead { last_packet_id, last_packet_id_type, set_of_other_type, .. } = &self.head;
        let has_set = self.references.is_some_and(|count| count > 0) || set_of_other_type.is_some();
        has_set || last_packet_id.is_some() || last_packet_id_type.is_some() || self.unexplained > 0 || self.rows_found
    }
}

impl Sides<'_> {
    /// Looks at both sides once.
    pub(super) async fn look_closely(&mut self, question: &Question<'_>) -> Result<Look, CopyError> {
        let clock = Clock::new(self.link.time().await?);
        let (comparer, link) = (self.comparer, self.link);
        let mut gathering = Gathering::new(comparer, link, clock, question);
        match gathering.rows(self.connected().await?).await {
            // An id with a letter that the database's encoding lacks cannot be asked for, and cannot be there.
            Err(CopyError::Source(error)) if error.is_untranslatable() => {
                *self.connection = None;
                gathering = Gathering::new(comparer, link, clock, question);
            }
            gathered => gathered?,
        }
        gathering.finish().await
    }
}

impl<'a> Gathering<'a> {
    fn new(comparer: &'a Comparer, link: &'a Link, clock: Clock, question: &'a Question<'a>) -> Self {
        let servable = comparer.target.group(question.client.as_str()).is_some();
        let mut law = SessionLaw::new(comparer.rules);
        law.begin(servable);
        Self {
            comparer,
            link,
            clock,
            question,
            asks_redis: servable && question.side == Side::Both,
            session: Arc::new(Session::new(question.client.clone(), Some(comparer.tolerance))),
            law,
            holders: HashMap::new(),
            kept: Vec::new(),
            listed: Vec::new(),
            kept_bytes: 0,
            end: None,
            digest: DefaultHasher::new(),
            look: Look::new(clock.now()),
        }
    }

    pub(super) fn client(&self) -> &'a str {
        self.question.client.as_str()
    }

    /// Reads the rows in one snapshot.
    async fn rows(&mut self, connection: &mut PgConnection) -> Result<(), CopyError> {
        let scope = Scope { listed: Some(vec![self.client().to_owned()]), ..Scope::everything() };
        let mut reader = ChunkReader::begin(connection, &self.comparer.tables).await?;
        let mut rows = reader.messages(&scope);
        let mut is_known = false;
        while let Some(row) = rows.next_message().await? {
            if !is_known {
                self.look.context = row.context()?;
            }
            is_known = true;
            self.row(row).await?;
            if self.comparer.stop.is_cancelled() {
                return Err(CopyError::Stopped);
            }
        }
        drop(rows);
        let mut contexts = reader.lone_contexts(&scope);
        while let Some(context) = contexts.next_context().await? {
            let context = context.context()?;
            std::hash::Hash::hash(&(context.last_serial_number, context.last_packet_id), &mut self.digest);
            self.look.context = Some(context);
            is_known = true;
        }
        drop(contexts);
        self.look.rows_digest = is_known.then(|| self.digest.finish());
        Ok(reader.end().await?)
    }

    async fn row(&mut self, row: JoinedRow) -> Result<(), CopyError> {
        row.digest(&mut self.digest);
        let message = row.message()?;
        let judgement = self.law.judge(&message, self.clock.now());
        let outcome = judgement.outcome();
        self.look.tally.count(outcome);
        self.look.tally.orphan_messages += u64::from(self.look.context.is_none());
        let superseded_by = self.holder(outcome, message.packet_id, message.serial_number);
        let listed = (self.look.rows.len() < self.question.most_rows).then(|| {
            let seen = SeenRow { superseded_by, ..SeenRow::new(&message, outcome, self.comparer.tolerance.show_payload) };
            self.look.rows.push_front(seen);
            self.look.rows.len() - 1
        });
        let serial = message.serial_number;
        let bytes = message.payload.map_or(0, <[u8]>::len) + ROW_BYTES;
        let (Judgement::Wanted(wanted) | Judgement::Expired(_, wanted)) = &judgement else { return Ok(()) };
        let (packet_id, score, deadline, is_wanted) = (wanted.packet_id, wanted.score, wanted.deadline, matches!(judgement, Judgement::Wanted(_)));
        if listed.is_some() {
            self.look.rows[0].deadline = Some(deadline);
        }
        self.kept.push(Kept { row, packet_id, score, deadline, is_wanted });
        self.listed.push(listed);
        self.kept_bytes += bytes;
        if self.kept.len() >= MESSAGES_A_CALL || self.kept_bytes >= BYTES_A_CALL {
            self.close_part(Some(serial.saturating_add(1)), None).await?;
        }
        Ok(())
    }

    /// Notes who has a packet id; of a superseded row, the serial number of the one that has it.
    fn holder(&mut self, outcome: Outcome, packet_id: Option<i32>, serial: i64) -> Option<i64> {
        let packet_id = packet_id?;
        match outcome {
            Outcome::Superseded => self.holders.get(&packet_id).copied(),
            Outcome::Quarantined(_) => None,
            Outcome::Trimmed | Outcome::ExpiredByInterval | Outcome::ExpiredByTtl | Outcome::Migrated => {
                self.holders.entry(packet_id).or_insert(serial);
                None
            }
        }
    }

    /// Reads what was kept back from Redis and compares it.
    async fn close_part(&mut self, lowest: Option<i64>, head: Option<Option<LastPacketId>>) -> Result<(), CopyError> {
        let range = ScoreRange { lowest, end: self.end };
        self.end = lowest;
        self.kept_bytes = 0;
        let (kept, listed) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.listed));
        if !self.asks_redis {
            return Ok(());
        }
        let part = Part { session: Arc::clone(&self.session), range, head, kept };
        let mut reading = Reading::default();
        reading.add(&self.comparer.target.prefix, &part.request(true), part.kept.iter().map(|kept| kept.packet_id.get()));
        for found in &self.link.read(&reading).await? {
            part.compare(self.comparer, self.link, found, self.clock).await?;
            self.count(found);
            if head.is_some() {
                self.look.head = SeenHead::from(found.head());
            }
            let newest = self.look.rows.len();
            for ((kept, message), listed) in part.kept.iter().zip(found.messages()).zip(&listed) {
                self.look.rows_found |= message.string != FoundString::Missing;
                if let Some(age) = listed {
                    let seen = SeenKey::new(kept.packet_id.get(), &message, self.comparer.tolerance.show_payload);
                    self.look.rows[newest - 1 - age].found = Some(seen);
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, found: &FoundPart) {
        if let Ok(count) = found.references {
            *self.look.references.get_or_insert(0) += count;
        }
    }

    /// Everything that is not about a row.
    async fn finish(mut self) -> Result<Look, CopyError> {
        let is_known = self.look.rows_digest.is_some();
        if is_known {
            self.look.wanted_last_packet_id = self.law.last_packet_id(self.look.context.as_ref());
            self.close_part(None, Some(self.look.wanted_last_packet_id)).await?;
        }
        let is_invalid = self.look.context.as_ref().is_some_and(ContextRow::is_invalid);
        self.look.tally.invalid_contexts = u64::from(is_invalid);
        if !self.asks_redis {
            return Ok(self.look);
        }
        let mut comparison = match is_known {
            true => self.known().unwrap_or_else(|| Comparison::new(self.question.client.clone(), self.comparer.tolerance)),
            false => {
                let found = self.unknown(&[]).await?;
                found.iter().for_each(|found| self.count(found));
                self.look.head = found.first().map(|found| SeenHead::from(found.head())).unwrap_or_default();
                Comparison::new(self.question.client.clone(), self.comparer.tolerance)
            }
        };
        let referenced = self.unexplained_references().await?;
        self.strays(&referenced, is_known.then_some(&mut comparison)).await?;
        if !is_known {
            let some: Vec<u16> = self.look.strays.iter().copied().take(MESSAGES_A_CALL).collect();
            self.unknown(&some).await?.iter().for_each(|found| tell_unknown(&mut comparison, found, &some));
        }
        self.look.differences = comparison.finish();
        Ok(self.look)
    }

    /// The comparison of the parts, with the references that none of them explains.
    fn known(&self) -> Option<Comparison> {
        let mut whole = self.session.whole();
        let extras = whole.extras();
        let mut comparison = whole.comparison.take()?;
        extras.into_iter().for_each(|(packet_id, score)| comparison.extra(packet_id, Some(score)));
        Some(comparison)
    }

    /// The last packet id, the number of references, and some messages of a session that PostgreSQL does not know.
    async fn unknown(&self, strays: &[u16]) -> Result<Vec<FoundPart>, CopyError> {
        let mut reading = Reading::default();
        let request = PartRequest { client: self.client(), range: ScoreRange::default(), head: true, values: false };
        reading.add(&self.comparer.target.prefix, &request, strays.iter().copied());
        Ok(self.link.read(&reading).await?)
    }
}

impl From<FoundHead<'_>> for SeenHead {
    fn from(head: FoundHead<'_>) -> Self {
        let (last_packet_id, last_packet_id_type) = match head.last_packet_id {
            FoundString::Missing => (None, None),
            FoundString::Text(bytes) => (Some(String::from_utf8_lossy(bytes).into_owned()), None),
            FoundString::Other(name) => (None, Some(name.to_owned())),
        };
        Self {
            last_packet_id,
            last_packet_id_type,
            last_packet_id_deadline: head.last_packet_id_deadline,
            set_of_other_type: head.set_of_other_type.map(str::to_owned),
        }
    }
}
