//! A part of a session: some of its rows, read back from Redis and compared.
//!
//! Parts lie side by side: each covers a range of scores up to the one before, the first without an upper end and the last
//! without a lower one. So the number of references in each range tells whether there are any that no row explains.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::balance::Balance;
use super::walk::Comparer;
use crate::copy::{Clock, CopyError};
use crate::model::{
    Carriable, ClientId, Comparison, FoundString, KeyKind, LastPacketId, Life, Millis, PacketId, Score, Tally, Tolerance, WantedMessage,
};
use crate::source::JoinedRow;
use crate::target::{FoundPart, Link, PartRequest, Reading, ScoreRange};

/// A row that Redis has or had a message for.
pub(super) struct Kept {
    pub row: JoinedRow,
    pub packet_id: PacketId,
    pub score: Score,
    /// When it ends, or ended.
    pub deadline: Millis,
    pub is_wanted: bool,
}

/// A session whose parts are under way.
pub(super) struct Session {
    pub client: ClientId,
    /// Messages that must be in Redis.
    pub wanted: AtomicU64,
    /// Whether a difference was met.
    pub suspect: AtomicBool,
    /// Whether a part with references was met: then the set stands there.
    has_set: AtomicBool,
    /// Filled where a session is compared for good, in the order of its parts.
    pub whole: Mutex<Whole>,
}

/// What a session came to as a whole.
#[derive(Default)]
pub(super) struct Whole {
    pub comparison: Option<Comparison>,
    /// The packet ids that rows explain.
    explained: HashSet<u16>,
    /// References to messages that no row of their part explains.
    extras: Vec<(u16, f64)>,
    /// What its rows were.
    pub rows: u64,
    /// What became of its rows, by the law alone.
    pub tally: Tally,
    /// Its last packet id by the law.
    pub last_packet_id: Option<LastPacketId>,
}

/// Some rows of a session and the range that they cover.
pub(super) struct Part {
    pub session: std::sync::Arc<Session>,
    pub range: ScoreRange,
    /// The last packet id of the law, in the last part.
    pub head: Option<Option<LastPacketId>>,
    pub kept: Vec<Kept>,
}

/// References that no row of the part explains.
#[derive(Default)]
struct Unexplained {
    /// To messages that stand there.
    messages: Vec<(u16, f64)>,
    /// To keys of another type.
    foreign: Vec<(u16, String)>,
    /// To no message of the session at all.
    strange: Vec<(Vec<u8>, f64)>,
}

/// Messages that are asked for in one call.
const MESSAGES_A_CALL: usize = 100;

impl Session {
    pub(super) fn new(client: ClientId, for_good: Option<Tolerance>) -> Self {
        let comparison = for_good.map(|tolerance| Comparison::new(client.clone(), tolerance));
        let whole = Mutex::new(Whole { comparison, ..Whole::default() });
        Self { client, wanted: AtomicU64::new(0), suspect: AtomicBool::new(false), has_set: AtomicBool::new(false), whole }
    }

    pub(super) fn whole(&self) -> MutexGuard<'_, Whole> {
        // Nothing that holds it can panic half way.
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    pub(super) fn request(&self, values: bool) -> PartRequest<'_> {
        PartRequest { client: self.session.client.as_str(), range: self.range, head: self.head.is_some(), values }
    }

    /// Whether the number of references and the last packet id are what the rows say, as far as a count can tell.
    pub(super) fn counts_agree(&self, found: &FoundPart, tolerance: Tolerance, now: Millis) -> bool {
        let alive = self.kept.iter().filter(|kept| kept.is_wanted && kept.deadline.0 > now.0.saturating_add(tolerance.deadline_ms)).count();
        let mut comparison = Comparison::new(self.session.client.clone(), tolerance);
        if let Some(wanted) = self.head {
            comparison.head(wanted, &found.head());
        }
        let references = found.references.as_ref().ok().and_then(|&count| usize::try_from(count).ok());
        comparison.is_equal() && references.is_some_and(|count| (alive..=self.kept.len()).contains(&count))
    }

    /// Tells the keys that were read and are explained by rows, so that the scan need not look them up.
    pub(super) fn balance(&self, balance: &Balance, found: &FoundPart) {
        let mut explained = balance.explained(&self.session.client);
        if found.references.as_ref().is_ok_and(|&count| count > 0) && !self.session.has_set.swap(true, Ordering::Relaxed) {
            explained.key(KeyKind::Messages);
        }
        if self.head.is_some() && found.head().last_packet_id != FoundString::Missing {
            explained.key(KeyKind::LastPacketId);
        }
        for (kept, message) in self.kept.iter().zip(found.messages()) {
            if message.string != FoundString::Missing && message.score.is_some() {
                explained.key(KeyKind::Message(kept.packet_id.get()));
            }
        }
    }

    /// Compares the part with what was read of it; what no row explains is looked up.
    pub(super) async fn compare(&self, comparer: &Comparer, link: &Link, found: &FoundPart, clock: Clock) -> Result<(), CopyError> {
        let unexplained = self.unexplained(comparer, link, found).await?;
        let mut whole = self.session.whole();
        let explained = self.kept.iter().map(|kept| kept.packet_id.get());
        match &mut *whole {
            Whole { comparison: Some(comparison), explained: all, extras, .. } => {
                self.compare_rows(comparer, comparison, found, clock.now())?;
                unexplained.tell(comparison);
                all.extend(explained);
                extras.extend(unexplained.messages);
            }
            // Not for good: any difference makes a suspect.
            Whole { comparison: None, .. } => {
                let mut comparison = Comparison::new(self.session.client.clone(), comparer.tolerance);
                self.compare_rows(comparer, &mut comparison, found, clock.now())?;
                unexplained.tell(&mut comparison);
                if !comparison.is_equal() || !unexplained.messages.is_empty() {
                    self.session.suspect.store(true, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    fn compare_rows(&self, comparer: &Comparer, comparison: &mut Comparison, found: &FoundPart, now: Millis) -> Result<(), CopyError> {
        let head = found.head();
        if head.set_of_other_type.is_none() {
            for (kept, message) in self.kept.iter().zip(found.messages()) {
                let row = kept.row.message()?;
                // It was judged before: a row that can be carried stays one.
                let Ok(carriable) = Carriable::from_row(&row, &comparer.rules, now) else { continue };
                let (Life::Until(deadline) | Life::OverByInterval(deadline) | Life::OverByTtl(deadline)) = carriable.life;
                let wanted = WantedMessage { packet_id: kept.packet_id, score: kept.score, deadline, content: carriable.content };
                match kept.is_wanted {
                    true => comparison.message(&wanted, &message, now),
                    false => comparison.expired(&wanted, &message),
                }
            }
        }
        if let Some(wanted) = self.head {
            comparison.head(wanted, &head);
        }
        Ok(())
    }

    /// Lists the references of the range when there are more than the rows explain.
    async fn unexplained(&self, comparer: &Comparer, link: &Link, found: &FoundPart) -> Result<Unexplained, CopyError> {
        let mut unexplained = Unexplained::default();
        let Ok(references) = found.references else { return Ok(unexplained) };
        let explained = found.messages().filter(|message| message.score.is_some_and(|score| self.range.holds(score))).count();
        if u64::try_from(explained).is_ok_and(|explained| explained == references) {
            return Ok(unexplained);
        }
        let (client, prefix) = (self.session.client.as_str(), &comparer.target.prefix);
        let own: HashSet<u16> = self.kept.iter().map(|kept| kept.packet_id.get()).collect();
        let mut skip = 0;
        loop {
            let page = link.references(prefix, client, self.range, skip).await?;
            if page.is_empty() {
                return Ok(unexplained);
            }
            skip += page.len();
            let mut messages = Vec::new();
            for (member, score) in page {
                match prefix.parse(&member) {
                    Some((id, KeyKind::Message(packet_id))) if id.as_str() == client => {
                        if !own.contains(&packet_id) {
                            messages.push((packet_id, score));
                        }
                    }
                    _ => unexplained.strange.push((member, score)),
                }
            }
            for some in messages.chunks(MESSAGES_A_CALL) {
                unexplained.look_up(comparer, link, client, some).await?;
            }
        }
    }
}

impl Unexplained {
    /// A reference whose message is gone is none: the broker removes it by itself.
    async fn look_up(&mut self, comparer: &Comparer, link: &Link, client: &str, some: &[(u16, f64)]) -> Result<(), CopyError> {
        for (found, &(packet_id, score)) in present(comparer, link, client, some.iter().map(|(packet_id, _)| *packet_id)).await?.iter().zip(some) {
            match found {
                Present::Not => {}
                Present::Message { .. } => self.messages.push((packet_id, score)),
                Present::Other(name) => self.foreign.push((packet_id, name.clone())),
            }
        }
        Ok(())
    }

    fn tell(&self, comparison: &mut Comparison) {
        for (packet_id, name) in &self.foreign {
            comparison.foreign_message(*packet_id, name);
        }
        for (member, score) in &self.strange {
            comparison.strange_reference(member, *score);
        }
    }
}

/// Whether a message of a session stands there.
pub(super) enum Present {
    Not,
    Message { is_referenced: bool },
    Other(String),
}

/// Whether these messages of a session stand there, in the order given.
pub(super) async fn present(
    comparer: &Comparer,
    link: &Link,
    client: &str,
    packet_ids: impl Iterator<Item = u16>,
) -> Result<Vec<Present>, CopyError> {
    let mut reading = Reading::default();
    let request = PartRequest { client, range: ScoreRange::default(), head: false, values: false };
    reading.add(&comparer.target.prefix, &request, packet_ids);
    let parts = link.read(&reading).await?;
    let messages = parts.iter().flat_map(FoundPart::messages);
    Ok(messages
        .map(|message| match message.string {
            FoundString::Missing => Present::Not,
            FoundString::Text(_) => Present::Message { is_referenced: message.score.is_some() },
            FoundString::Other(name) => Present::Other(name.to_owned()),
        })
        .collect())
}

impl Whole {
    /// Keeps what its rows were and came to.
    pub(super) fn judged(&mut self, rows: u64, tally: Tally, last_packet_id: Option<LastPacketId>) {
        (self.rows, self.tally, self.last_packet_id) = (rows, tally, last_packet_id);
    }

    /// References that no row of the whole session explains.
    pub(super) fn extras(&mut self) -> Vec<(u16, f64)> {
        let explained = &self.explained;
        std::mem::take(&mut self.extras).into_iter().filter(|(packet_id, _)| !explained.contains(packet_id)).collect()
    }

    /// Whether a row explains a packet id.
    pub(super) fn explains(&self, packet_id: u16) -> bool {
        self.explained.contains(&packet_id)
    }
}
