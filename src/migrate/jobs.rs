//! What a job of a copy does with a chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::PgConnection;

use crate::config::OnExisting;
use crate::control::{Chunk, Term, Work};
use crate::copy::{ChunkWork, Clock, Copier, CopyError, Job};
use crate::observe::failpoint;
use crate::source::Source;
use crate::target::{Journal, Link, WriteMode};

/// What the jobs share.
pub(super) struct Jobs {
    pub source: Source,
    pub copier: Copier,
    pub work: Arc<Work>,
    pub journal: Option<Journal>,
    pub on_existing: OnExisting,
    /// Set when another session was seen to write to the tables.
    pub writers_seen: Arc<AtomicBool>,
    /// Set when somebody else's session was met: then a try that did not come to its end proves nothing to be ours.
    pub occupied: AtomicBool,
}

/// One job, with connections of its own.
pub(super) struct CopyJob {
    shared: Arc<Jobs>,
    link: Link,
    /// Made when it is needed.
    connection: Option<PgConnection>,
}

impl CopyJob {
    pub(super) fn new(shared: Arc<Jobs>) -> Self {
        Self { link: shared.copier.target.link(), shared, connection: None }
    }
}

impl ChunkWork for CopyJob {
    async fn chunk(&mut self, chunk: &Chunk, term: Option<Term<'_>>) -> Result<(), CopyError> {
        self.shared.chunk(&mut self.connection, &self.link, chunk, term).await
    }

    fn failed(&mut self, error: &CopyError) -> bool {
        self.connection = None;
        if matches!(error, CopyError::Occupied { .. }) {
            self.shared.occupied.store(true, Ordering::Relaxed);
        }
        !self.shared.occupied.load(Ordering::Relaxed)
    }
}

impl Jobs {
    /// Copies one chunk and records it.
    async fn chunk(&self, connection: &mut Option<PgConnection>, link: &Link, chunk: &Chunk, lease: Option<Term<'_>>) -> Result<(), CopyError> {
        failpoint::reach("chunk_claimed");
        let mode = match self.on_existing {
            OnExisting::Refuse if chunk.attempts == 1 => WriteMode::Fresh,
            OnExisting::Refuse | OnExisting::Replace => WriteMode::Replace,
        };
        let open = match connection {
            Some(open) => open,
            None => connection.insert(self.source.connect().await?),
        };
        let histories = match &self.journal {
            Some(journal) => journal.histories(link).await?,
            None => Vec::new(),
        };
        let job = Job { link, lease, clock: Clock::new(link.time().await?) };
        let mut quarantine = self.work.quarantine(chunk.id);
        let finished = self.copier.chunk(open, &job, &chunk.scope, mode, &mut quarantine).await?;
        if finished.rest.is_empty() {
            if !self.copier.tables.writers(open).await?.is_empty() {
                self.writers_seen.store(true, Ordering::Relaxed);
            }
        } else {
            // Rows are still under way on it; only closing it stops them.
            *connection = None;
        }
        failpoint::reach("chunk_written");
        if let Some(journal) = &self.journal {
            // Noted after the run is over, it would stay there.
            if lease.is_some_and(|term| !term.holds()) {
                return Err(CopyError::LeaseLost);
            }
            if journal.note(link, (chunk.id, chunk.attempts)).await? != histories {
                return Err(CopyError::HistoryBroken);
            }
            failpoint::reach("chunk_noted");
        }
        tracing::debug!(chunk = chunk.id, rows = finished.tally.rows_read, attempts = chunk.attempts, "chunk done");
        self.work.done(chunk.clone(), &finished).await?;
        self.copier.meter.add_counted_rows(finished.tally.rows_read);
        failpoint::reach("chunk_recorded");
        Ok(())
    }
}
