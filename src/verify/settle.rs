//! Sessions that seem to differ, read again until they hold still: P1, R1, P2, R2, P3 (see [`crate::model::Round`]).
//!
//! Many sessions go through a round together, so that a Redis that lacks everything is told in a reasonable time; those that
//! moved go through the next ones in smaller groups and at last alone, so that a busy session has to hold still for some
//! milliseconds only.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sqlx::PgConnection;

use super::part::{Present, present};
use super::walk::{Comparer, Purpose, Walk};
use crate::copy::{Clock, CopyError};
use crate::model::{Applied, ClientId, Compared, Comparison, Differences, Finding, FindingKind, FoundString, KeyKind, Round, Verdict};
use crate::source::{Scope, Source};
use crate::target::{FoundPart, Link, PartRequest, Reading, ScoreRange};

/// A session that may differ.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    pub client: ClientId,
    /// Messages that must be in Redis, as far as is known.
    pub wanted: u64,
    /// Messages that stand there without a reference, by their packet ids.
    pub strays: Vec<u16>,
    /// Whether only what nothing refers to is told: the rest of a session that PostgreSQL knows is compared elsewhere.
    pub strays_only: bool,
}

impl Suspect {
    pub(super) fn new(client: ClientId, wanted: u64) -> Self {
        Self { client, wanted, strays: Vec::new(), strays_only: false }
    }
}

/// What came of the suspects.
#[derive(Default)]
pub(super) struct Settled {
    pub compared: Compared,
    pub findings: Vec<Finding>,
}

/// Both sides of one job.
pub(super) struct Sides<'a> {
    pub comparer: &'a Comparer,
    pub source: &'a Source,
    pub connection: &'a mut Option<PgConnection>,
    pub link: &'a Link,
}

/// A suspect in the queue.
struct Waiting {
    suspect: Suspect,
    since: Option<Instant>,
    rounds: usize,
}

/// One look at a session: PostgreSQL, then Redis.
#[derive(Default)]
struct Look {
    /// A digest of its rows; `None`: PostgreSQL does not know it.
    rows: Option<u64>,
    wanted: u64,
    differences: Differences,
}

/// Sessions that go through a round together, by the number of rounds that they went through before.
const TOGETHER: [usize; 3] = [500, 50, 1];
/// Messages of the sessions that go through a round together.
const MESSAGES_TOGETHER: u64 = 20_000;
/// How often it is looked whether a transaction has ended.
const WRITERS_AGAIN: Duration = Duration::from_millis(2);
/// The first pause of a session that moves; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Messages that are asked for in one call.
const STRAYS_A_CALL: usize = 100;

impl Sides<'_> {
    /// Reads the suspects until each is equal, different, or has moved for too long.
    pub(super) async fn settle(&mut self, suspects: Vec<Suspect>) -> Result<Settled, CopyError> {
        let mut queue: VecDeque<Waiting> = suspects.into_iter().map(|suspect| Waiting { suspect, since: None, rounds: 0 }).collect();
        let mut settled = Settled::default();
        while !queue.is_empty() {
            if self.comparer.stop.is_cancelled() {
                return Err(CopyError::Stopped);
            }
            let mut group = next_group(&mut queue);
            let pause = pause_before(&group);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.comparer.stop.cancelled() => return Err(CopyError::Stopped),
            }
            let now = Instant::now();
            group.iter_mut().for_each(|waiting| {
                waiting.since.get_or_insert(now);
                waiting.rounds += 1;
            });
            let verdicts = self.round(&group).await?;
            for (waiting, (verdict, look)) in group.into_iter().zip(verdicts) {
                let waited = waiting.since.map_or(Duration::ZERO, |since| since.elapsed());
                let alone = waiting.rounds >= TOGETHER.len();
                match verdict {
                    Verdict::Moving(_) if waited < self.comparer.settle_timeout || !alone => queue.push_back(waiting),
                    verdict => settled.add(&waiting.suspect, verdict, &look),
                }
            }
        }
        Ok(settled)
    }

    async fn round(&mut self, group: &[Waiting]) -> Result<Vec<(Verdict, Look)>, CopyError> {
        let suspects: Vec<&Suspect> = group.iter().map(|waiting| &waiting.suspect).collect();
        let first = self.look(&suspects, Purpose::ForGood).await?;
        let oldest = group.iter().filter_map(|waiting| waiting.since).min().unwrap_or_else(Instant::now);
        let writers_had_ended = self.writers_end(oldest).await?;
        let second = self.look(&suspects, Purpose::ForGood).await?;
        let third = self.look(&suspects, Purpose::RowsOnly).await?;
        let looks = first.into_iter().zip(second).zip(third);
        Ok(looks
            .map(|((first, second), third)| {
                let round = Round {
                    rows_held_still: first.rows == second.rows && second.rows == third.rows,
                    writers_had_ended,
                    applied: Applied::NothingFollows,
                    first: &first.differences,
                    second: &second.differences,
                };
                (round.verdict(), second)
            })
            .collect())
    }

    /// Waits until every transaction has ended that could write at this moment; false when the time to settle, counted from
    /// `since`, is over before.
    pub(super) async fn writers_end(&mut self, since: Instant) -> Result<bool, CopyError> {
        let comparer = self.comparer;
        let connection = self.connected().await?;
        let mut writers = comparer.tables.writers(connection).await?;
        while !writers.is_empty() {
            if comparer.stop.is_cancelled() {
                return Err(CopyError::Stopped);
            }
            if since.elapsed() >= comparer.settle_timeout {
                tracing::warn!(
                    transactions = writers.join(", "),
                    "transactions that may have written to the tables stay open: nothing counts until they end"
                );
                return Ok(false);
            }
            tokio::time::sleep(WRITERS_AGAIN).await;
            let still = comparer.tables.writers(connection).await?;
            writers.retain(|writer| still.contains(writer));
        }
        Ok(true)
    }

    /// One look at each of the suspects.
    async fn look(&mut self, suspects: &[&Suspect], purpose: Purpose) -> Result<Vec<Look>, CopyError> {
        match self.try_look(suspects, purpose).await {
            // An id with a letter that the database's encoding lacks cannot be asked for, and cannot be there.
            Err(CopyError::Source(error)) if error.is_untranslatable() => {
                *self.connection = None;
                let mut looks = Vec::with_capacity(suspects.len());
                for suspect in suspects {
                    looks.push(match self.try_look(&[suspect], purpose).await {
                        Err(CopyError::Source(error)) if error.is_untranslatable() => {
                            *self.connection = None;
                            self.unknown(suspect, purpose).await?
                        }
                        looks => looks?.pop().unwrap_or_default(),
                    });
                }
                Ok(looks)
            }
            looks => looks,
        }
    }

    async fn try_look(&mut self, suspects: &[&Suspect], purpose: Purpose) -> Result<Vec<Look>, CopyError> {
        let listed = suspects.iter().map(|suspect| suspect.client.as_str().to_owned()).collect();
        let scope = Scope { listed: Some(listed), ..Scope::everything() };
        let clock = Clock::new(self.link.time().await?);
        let (comparer, link) = (self.comparer, self.link);
        let walked = Walk::new(comparer, link, clock, purpose).run(self.connected().await?, &scope).await?;
        let mut sessions: HashMap<_, _> = walked.sessions.into_iter().map(|session| (session.client.clone(), session)).collect();
        let mut looks = Vec::with_capacity(suspects.len());
        for suspect in suspects {
            let Some(session) = sessions.remove(&suspect.client) else {
                looks.push(self.unknown(suspect, purpose).await?);
                continue;
            };
            let mut look = Look { wanted: session.wanted.load(Ordering::Relaxed), ..Look::default() };
            let (comparison, extras, strays) = {
                let mut whole = session.whole();
                look.rows = Some(whole.rows);
                let strays: Vec<u16> = suspect.strays.iter().copied().filter(|stray| !whole.explains(*stray)).collect();
                (whole.comparison.take(), whole.extras(), strays)
            };
            if let Some(mut comparison) = comparison {
                if suspect.strays_only {
                    comparison = Comparison::new(suspect.client.clone(), self.comparer.tolerance);
                } else {
                    extras.into_iter().for_each(|(packet_id, score)| comparison.extra(packet_id, Some(score)));
                }
                self.strays(&suspect.client, &strays, &mut comparison).await?;
                look.differences = comparison.finish();
            }
            looks.push(look);
        }
        Ok(looks)
    }

    async fn strays(&self, client: &ClientId, strays: &[u16], comparison: &mut Comparison) -> Result<(), CopyError> {
        for some in strays.chunks(STRAYS_A_CALL) {
            let found = present(self.comparer, self.link, client.as_str(), some.iter().copied()).await?;
            for (found, &packet_id) in found.iter().zip(some) {
                match found {
                    Present::Message { is_referenced: false } => comparison.extra(packet_id, None),
                    Present::Other(name) => comparison.foreign_message(packet_id, name),
                    Present::Not | Present::Message { is_referenced: true } => {}
                }
            }
        }
        Ok(())
    }

    /// A session that PostgreSQL does not know: what stands there for it.
    async fn unknown(&self, suspect: &Suspect, purpose: Purpose) -> Result<Look, CopyError> {
        let client = suspect.client.as_str();
        if purpose == Purpose::RowsOnly || self.comparer.target.group(client).is_none() {
            return Ok(Look::default());
        }
        let mut reading = Reading::default();
        let request = PartRequest { client, range: ScoreRange::default(), head: true, values: false };
        reading.add(&self.comparer.target.prefix, &request, suspect.strays.iter().copied().take(STRAYS_A_CALL));
        let parts = self.link.read(&reading).await?;
        let mut comparison = Comparison::new(suspect.client.clone(), self.comparer.tolerance);
        if let Some(found) = parts.first() {
            tell_unknown(&mut comparison, found, &suspect.strays);
        }
        Ok(Look { rows: None, wanted: 0, differences: comparison.finish() })
    }
}

/// Tells what stands in Redis for a session that PostgreSQL does not know; `strays` are the messages that were read.
pub(super) fn tell_unknown(comparison: &mut Comparison, found: &FoundPart, strays: &[u16]) {
    let head = found.head();
    let mut own = Vec::new();
    let kinds = [
        (KeyKind::Messages, head.set_of_other_type),
        (KeyKind::LastPacketId, if let FoundString::Other(name) = head.last_packet_id { Some(name) } else { None }),
    ];
    for (kind, name) in kinds {
        if let Some(name) = name {
            let key = if kind == KeyKind::Messages { "sorted set" } else { "last packet id" };
            comparison.unknown_session(FindingKind::ForeignType, &format!("the key of the {key} holds a {name}"));
        }
    }
    match found.references {
        Ok(references) if references > 0 => own.push(format!("{references} references")),
        _ => {}
    }
    if let FoundString::Text(_) = head.last_packet_id {
        own.push("a last packet id".to_owned());
    }
    let mut messages = 0;
    for (message, &packet_id) in found.messages().zip(strays) {
        match message.string {
            FoundString::Missing => {}
            FoundString::Text(_) => messages += 1,
            FoundString::Other(name) => comparison.foreign_message(packet_id, name),
        }
    }
    if messages > 0 {
        own.push("messages that nothing refers to".to_owned());
    }
    if !own.is_empty() {
        comparison.unknown_session(FindingKind::ExtraSession, &format!("PostgreSQL has no row of it; Redis has {}", own.join(" and ")));
    }
}

impl Settled {
    fn add(&mut self, suspect: &Suspect, verdict: Verdict, look: &Look) {
        let is_extra = look.rows.is_none();
        let differences = match verdict {
            Verdict::Equal => Differences::default(),
            Verdict::Different(differences) => differences,
            Verdict::Moving(standing) if standing.is_none() => {
                self.compared.sessions += u64::from(is_extra);
                self.compared.not_checked += 1;
                return;
            }
            Verdict::Moving(standing) => standing,
        };
        if !suspect.strays_only {
            self.compared.messages += look.wanted;
        }
        if differences.is_none() {
            return;
        }
        self.compared.sessions += u64::from(is_extra);
        self.compared.differing_sessions += 1;
        self.compared.unlisted_findings += differences.unlisted;
        self.findings.extend(differences.findings);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.compared += other.compared;
        self.findings.extend(other.findings);
    }
}

/// The sessions of the next round: of those that went through as few rounds as the first one.
fn next_group(queue: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let rounds = queue.front().map_or(0, |waiting| waiting.rounds);
    let most = TOGETHER[rounds.min(TOGETHER.len() - 1)];
    let mut group: Vec<Waiting> = Vec::new();
    let mut messages = 0;
    while let Some(next) = queue.front() {
        messages += next.suspect.wanted;
        if next.rounds != rounds || group.len() >= most || (!group.is_empty() && messages > MESSAGES_TOGETHER) {
            break;
        }
        group.extend(queue.pop_front());
    }
    group
}

/// None for the first rounds.
fn pause_before(group: &[Waiting]) -> Duration {
    let rounds = group.iter().map(|waiting| waiting.rounds).max().unwrap_or(0);
    match rounds.checked_sub(TOGETHER.len()) {
        None => Duration::ZERO,
        Some(further) => FIRST_PAUSE.saturating_mul(1 << further.min(8)).min(LONGEST_PAUSE),
    }
}
