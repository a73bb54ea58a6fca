//! The three steps of a repair: sessions are written or removed, messages that are left of removed ones go, all are compared.
//!
//! Each step may be done again: what it makes of a session follows from PostgreSQL alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::PgConnection;

use super::sort::{Left, Sort};
use super::{Repair, RepairReport};
use crate::control::{Chunk, FinishedChunk, Term, Work};
use crate::copy::{ChunkWork, Clock, CopyError, Job};
use crate::model::{ClientId, Compared, FindingKind, KeyKind, Tally};
use crate::observe::failpoint;
use crate::source::{Part, Scope};
use crate::target::{Link, WriteMode};
use crate::verify::part::{Present, present};
use crate::verify::settle::{Sides, Suspect};

/// What the chunks of a step are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Write,
    Strays,
    Compare,
}

/// What came of it, session by session.
#[derive(Default)]
pub(super) struct Outcome {
    pub removed: BTreeSet<String>,
    pub left: BTreeMap<String, Left>,
    /// Sessions of which PostgreSQL knows nothing and that may not keep anything.
    pub gone: BTreeSet<String>,
    /// Messages that nothing referred to.
    pub strays_removed: u64,
    /// Those that differ, with the kinds of the differences.
    pub differing: BTreeMap<String, BTreeSet<FindingKind>>,
}

/// What the steps share.
pub(super) struct Shared {
    pub repair: Arc<Repair>,
    pub outcome: Mutex<Outcome>,
}

impl Shared {
    pub(super) fn outcome(&self) -> MutexGuard<'_, Outcome> {
        // Nothing that holds it can panic half way.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The job of a step, with connections of its own.
pub(super) struct RepairJob {
    shared: Arc<Shared>,
    work: Arc<Work>,
    step: Step,
    link: Link,
    /// Made when it is needed.
    connection: Option<PgConnection>,
}

impl RepairJob {
    pub(super) fn new(shared: Arc<Shared>, work: Arc<Work>, step: Step) -> Self {
        let link = shared.repair.comparer.target.link();
        Self { shared, work, step, link, connection: None }
    }

    fn sides(&mut self) -> (Arc<Shared>, Sides<'_>) {
        let repair = &self.shared.repair;
        let sides = Sides { comparer: &repair.comparer, source: &repair.source, connection: &mut self.connection, link: &self.link };
        (Arc::clone(&self.shared), sides)
    }

    /// Writes the sessions of a chunk that PostgreSQL knows, and removes those that may go.
    async fn write(&mut self, chunk: &Chunk, lease: Option<Term<'_>>) -> Result<FinishedChunk, CopyError> {
        let scope = match chunk.scope == (Scope { listed: chunk.scope.listed.clone(), ..Scope::everything() }) {
            true => Scope { listed: Some(self.sort_and_remove(chunk, lease).await?), ..Scope::everything() },
            // The rest of a chunk: sorted before.
            false => chunk.scope.clone(),
        };
        let clock = Clock::new(self.link.time().await?);
        let mut quarantine = self.work.quarantine(chunk.id);
        let (link, shared) = (&self.link, &self.shared);
        let connection = match &mut self.connection {
            Some(open) => open,
            none => none.insert(shared.repair.source.connect().await?),
        };
        let job = Job { link, lease, clock };
        let finished = shared.repair.copier.chunk(connection, &job, &scope, WriteMode::Replace, &mut quarantine).await?;
        if !finished.rest.is_empty() {
            // Rows are still under way on it; only closing it stops them.
            self.connection = None;
        }
        failpoint::reach("repair_copied");
        Ok(finished)
    }

    /// The sessions that are to be copied.
    async fn sort_and_remove(&mut self, chunk: &Chunk, lease: Option<Term<'_>>) -> Result<Vec<String>, CopyError> {
        let clients = chunk.scope.listed.clone().unwrap_or_default();
        let (shared, mut sides) = self.sides();
        let link = sides.link;
        let sorter = shared.repair.sorter(link);
        let sorted = sorter.sort(sides.connected().await?, &clients).await?;
        let mut copied = Vec::with_capacity(clients.len());
        for (client, sort) in clients.into_iter().zip(sorted) {
            // Asked for again right before its keys go.
            let sort = match sort {
                Sort::Remove => sorter.sort(sides.connected().await?, std::slice::from_ref(&client)).await?.pop().unwrap_or(sort),
                sort => sort,
            };
            match sort {
                Sort::Copy => copied.push(client),
                Sort::Leave(reason) => drop(shared.outcome().left.insert(client, reason)),
                Sort::Remove => {
                    may_write(lease)?;
                    let target = &shared.repair.comparer.target;
                    let id = ClientId::new(client.as_str());
                    let stood = link.type_of(&target.key(&id, KeyKind::Messages)).await? != "none"
                        || link.type_of(&target.key(&id, KeyKind::LastPacketId)).await? != "none";
                    link.remove_session(&target.prefix, &id).await?;
                    failpoint::reach("session_removed");
                    let mut outcome = shared.outcome();
                    if stood {
                        outcome.removed.insert(client.clone());
                    }
                    outcome.gone.insert(client);
                }
            }
        }
        Ok(copied)
    }

    /// Removes the messages of removed sessions that nothing referred to: only a scan finds them.
    async fn strays_of_removed(&mut self, lease: Option<Term<'_>>) -> Result<(), CopyError> {
        let (shared, mut sides) = self.sides();
        let (target, link) = (&shared.repair.comparer.target, sides.link);
        let gone = shared.outcome().gone.clone();
        for node in &mut target.masters().await? {
            let mut cursor = 0;
            loop {
                target.check_stop()?;
                let (found, next) = node.scan(&target.prefix, cursor).await?;
                let found: Vec<_> =
                    found.into_iter().filter(|key| matches!(key.kind, KeyKind::Message(_)) && gone.contains(key.client.as_str())).collect();
                let ids: Vec<&str> = found.iter().map(|key| key.client.as_str()).collect();
                let unknown = match ids.is_empty() {
                    true => Vec::new(),
                    false => shared.repair.comparer.tables.unknown_of(sides.connected().await?, &ids).await?,
                };
                for key in found.iter().filter(|key| unknown.iter().any(|id| id == key.client.as_str())) {
                    may_write(lease)?;
                    if link.remove_string(&target.key(&key.client, key.kind)).await? {
                        let mut outcome = shared.outcome();
                        outcome.strays_removed += 1;
                        outcome.removed.insert(key.client.as_str().to_owned());
                    }
                    failpoint::reach("stray_removed");
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Compares the sessions of a chunk, after the named messages went that no row wants and nothing refers to.
    async fn compare(&mut self, chunk: &Chunk, lease: Option<Term<'_>>) -> Result<Compared, CopyError> {
        let (shared, mut sides) = self.sides();
        let clients = chunk.scope.listed.iter().flatten();
        let named = &shared.repair.named;
        let suspects: Vec<Suspect> = clients.map(|id| Suspect { strays: named.strays(id), ..Suspect::new(ClientId::new(id.as_str()), 0) }).collect();
        let left = shared.outcome().left.clone();
        let with_strays: Vec<Suspect> = suspects.iter().filter(|s| !s.strays.is_empty() && !left.contains_key(s.client.as_str())).cloned().collect();
        if !with_strays.is_empty() {
            while sides.remove_strays(&shared, with_strays.clone(), lease).await? > 0 {}
        }
        let settled = sides.settle(suspects).await?;
        let mut outcome = shared.outcome();
        for finding in &settled.findings {
            outcome.differing.entry(finding.client.as_str().to_owned()).or_default().insert(finding.kind);
        }
        failpoint::reach("repair_compared");
        Ok(settled.compared)
    }
}

impl Sides<'_> {
    /// Removes what still is a message too many once its session holds still, and that nothing refers to; how many went.
    async fn remove_strays(&mut self, shared: &Shared, suspects: Vec<Suspect>, lease: Option<Term<'_>>) -> Result<u64, CopyError> {
        let settled = self.settle(suspects).await?;
        let mut removed = 0;
        for finding in settled.findings {
            let (FindingKind::ExtraMessage, Some(packet_id)) = (finding.kind, finding.packet_id) else { continue };
            if !shared.repair.named.strays(finding.client.as_str()).contains(&packet_id) {
                continue;
            }
            let found = present(self.comparer, self.link, finding.client.as_str(), std::iter::once(packet_id)).await?;
            if let Some(Present::Message { is_referenced: false }) = found.first() {
                may_write(lease)?;
                let key = self.comparer.target.key(&finding.client, KeyKind::Message(packet_id));
                removed += u64::from(self.link.remove_string(&key).await?);
                failpoint::reach("stray_removed");
            }
        }
        shared.outcome().strays_removed += removed;
        Ok(removed)
    }
}

fn may_write(lease: Option<Term<'_>>) -> Result<(), CopyError> {
    match lease {
        Some(term) if !term.holds() => Err(CopyError::LeaseLost),
        _ => Ok(()),
    }
}

impl ChunkWork for RepairJob {
    async fn chunk(&mut self, chunk: &Chunk, term: Option<Term<'_>>) -> Result<(), CopyError> {
        let whole = |tally, compared| FinishedChunk { tally, compared, covered: chunk.scope.clone(), rest: Vec::new() };
        let finished = match (self.step, chunk.scope.part) {
            (Step::Strays, _) | (_, Part::TargetOnly) => {
                self.strays_of_removed(term).await?;
                whole(Tally::default(), Compared::default())
            }
            (Step::Write, _) => self.write(chunk, term).await?,
            (Step::Compare, _) => whole(Tally::default(), self.compare(chunk, term).await?),
        };
        self.work.done(chunk.clone(), &finished).await?;
        self.shared.repair.meter.add_counted_rows(finished.tally.rows_read);
        Ok(())
    }

    fn failed(&mut self, _error: &CopyError) -> bool {
        self.connection = None;
        true
    }
}

impl Shared {
    /// What is told at the end.
    pub(super) fn report(&self, tally: Tally, compared: Compared, run: i64) -> RepairReport {
        let outcome = std::mem::take(&mut *self.outcome());
        RepairReport::new(&self.repair, outcome, tally, compared, run)
    }
}
