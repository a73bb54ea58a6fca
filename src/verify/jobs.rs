//! What a job of a comparison does with a chunk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::PgConnection;

use tokio::sync::watch;

use super::scan::Met;
use super::settle::{Settled, Sides, Suspect};
use super::walk::{Comparer, Purpose, Walk};
use crate::control::{Chunk, FinishedChunk, Term, Work};
use crate::copy::{ChunkWork, Clock, CopyError};
use crate::model::{ClientId, Tally};
use crate::observe::failpoint;
use crate::source::{Part, Source};
use crate::target::Link;

/// What the jobs share.
pub(super) struct Jobs {
    pub source: Source,
    pub comparer: Arc<Comparer>,
    pub work: Arc<Work>,
    /// The count of all keys of Redis.
    pub met: watch::Receiver<Met>,
}

/// One job, with connections of its own.
pub(super) struct VerifyJob {
    shared: Arc<Jobs>,
    link: Link,
    /// Made when it is needed.
    connection: Option<PgConnection>,
}

impl VerifyJob {
    pub(super) fn new(shared: Arc<Jobs>) -> Self {
        Self { link: shared.comparer.target.link(), shared, connection: None }
    }
}

impl ChunkWork for VerifyJob {
    async fn chunk(&mut self, chunk: &Chunk, _term: Option<Term<'_>>) -> Result<(), CopyError> {
        failpoint::reach("comparison_claimed");
        let shared = Arc::clone(&self.shared);
        let mut sides = Sides { comparer: &shared.comparer, source: &shared.source, connection: &mut self.connection, link: &self.link };
        let (settled, finished) = match chunk.scope.part {
            Part::TargetOnly => {
                let settled = sides.scan(&mut shared.met.clone()).await?;
                let finished = FinishedChunk { tally: Tally::default(), compared: settled.compared, covered: chunk.scope.clone(), rest: Vec::new() };
                (settled, finished)
            }
            Part::All | Part::RowsOnly | Part::ContextsOnly => sides.rows(chunk).await?,
        };
        failpoint::reach("comparison_made");
        shared.work.found(chunk.id, &settled.findings).await?;
        failpoint::reach("findings_written");
        shared.work.done(chunk.clone(), &finished).await?;
        shared.comparer.meter.add_counted_rows(finished.tally.rows_read);
        failpoint::reach("comparison_recorded");
        Ok(())
    }

    fn failed(&mut self, _error: &CopyError) -> bool {
        self.connection = None;
        true
    }
}

impl Sides<'_> {
    /// Compares the sessions of a chunk that PostgreSQL knows, and of a list also those that it does not.
    async fn rows(&mut self, chunk: &Chunk) -> Result<(Settled, FinishedChunk), CopyError> {
        let clock = Clock::new(self.link.time().await?);
        let comparer = self.comparer;
        let link = self.link;
        let walked = Walk::new(comparer, link, clock, Purpose::Suspects).run(self.connected().await?, &chunk.scope).await?;
        if !walked.rest.is_empty() {
            // Rows are still under way on it; only closing it stops them.
            *self.connection = None;
        }
        let mut messages = walked.wanted;
        let mut suspects: Vec<Suspect> = Vec::with_capacity(walked.sessions.len());
        for session in &walked.sessions {
            let wanted = session.wanted.load(Ordering::Relaxed);
            messages -= wanted;
            suspects.push(Suspect::new(session.client.clone(), wanted));
        }
        if let Some(listed) = &chunk.scope.listed {
            let ids: Vec<&str> = listed.iter().map(String::as_str).collect();
            let unknown = comparer.tables.unknown_of(self.connected().await?, &ids).await?;
            suspects.extend(unknown.into_iter().map(|id| Suspect::new(ClientId::new(id), 0)));
        }
        let settled = self.settle(suspects).await?;
        let mut compared = settled.compared;
        compared.sessions += walked.tally.sessions;
        compared.messages += messages;
        Ok((settled, FinishedChunk { tally: walked.tally, compared, covered: walked.covered, rest: walked.rest }))
    }

    pub(super) async fn connected(&mut self) -> Result<&mut PgConnection, CopyError> {
        Ok(match self.connection {
            Some(open) => open,
            None => self.connection.insert(self.source.connect().await?),
        })
    }
}
