//! The jobs of a process: each takes chunk after chunk until none is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::error::Problem;
use crate::config::OnExisting;
use crate::control::{Chunk, Lease, Next, Term, Work};
use crate::copy::{Clock, Copier, CopyError, Job};
use crate::model::Consequence;
use crate::observe::failpoint;
use crate::source::Source;
use crate::target::{Journal, Link, WriteMode};

/// How often a job without a chunk looks for one: another process may die or give one back.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Between two tries to reach PostgreSQL.
const CONNECT_AGAIN: Duration = Duration::from_millis(500);

/// What the jobs share.
pub(super) struct Jobs {
    pub source: Source,
    pub copier: Copier,
    pub work: Arc<Work>,
    pub lease: Option<Arc<Lease>>,
    pub journal: Option<Journal>,
    pub on_existing: OnExisting,
    pub retry_limit: Duration,
    /// Set when another session was seen to write to the tables.
    pub writers_seen: Arc<AtomicBool>,
    pub stop: CancellationToken,
    /// Set when somebody else's session was met: then a try that did not come to its end proves nothing to be ours.
    pub occupied: AtomicBool,
    /// Wakes the jobs that wait, when a chunk of this process is done or given back.
    pub moved: Notify,
}

/// A job's connection to PostgreSQL, made when it is needed.
#[derive(Default)]
struct Lazy(Option<PgConnection>);

impl Jobs {
    /// Runs `count` jobs to their end. The first error stops all of them.
    pub(super) async fn run(self, count: usize) -> Result<(), Problem> {
        let jobs = Arc::new(self);
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let jobs = Arc::clone(&jobs);
            tasks.spawn(async move {
                let result = jobs.job().await;
                if result.is_err() {
                    jobs.stop.cancel();
                }
                result
            });
        }
        // The error that stopped the others is told, not that they were stopped.
        let mut first = None;
        for result in tasks.join_all().await {
            match result {
                Err(problem) if first.as_ref().is_none_or(Problem::is_the_stop_itself) => first = Some(problem),
                _ => {}
            }
        }
        first.map_or(Ok(()), Err)
    }

    async fn job(&self) -> Result<(), Problem> {
        let link = self.copier.target.link();
        let mut connection = Lazy::default();
        let mut failing_since: Option<Instant> = None;
        while !self.stop.is_cancelled() {
            if self.lease.as_ref().is_some_and(|lease| !lease.holds()) {
                self.pause(LOOK_AGAIN).await;
                continue;
            }
            let chunk = match self.work.next().await? {
                Next::Chunk(chunk) => chunk,
                Next::Wait => {
                    tokio::select! {
                        () = self.moved.notified() => {}
                        () = self.pause(LOOK_AGAIN) => {}
                    }
                    continue;
                }
                Next::Over => return Ok(()),
            };
            let result = self.chunk_under_lease(&mut connection, &link, &chunk).await;
            match result {
                Ok(()) => {
                    self.moved.notify_waiters();
                    failing_since = None;
                }
                Err(error) => {
                    connection = Lazy::default();
                    if matches!(error, CopyError::Occupied { .. }) {
                        self.occupied.store(true, Ordering::Relaxed);
                    }
                    self.work.release(chunk, !self.occupied.load(Ordering::Relaxed)).await?;
                    self.moved.notify_waiters();
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if error.consequence() != Consequence::Retry || since.elapsed() >= self.retry_limit {
                        return Err(error.into());
                    }
                    tracing::warn!(waiting_seconds = since.elapsed().as_secs(), limit_seconds = self.retry_limit.as_secs(), error = %chain(&error), "a chunk is tried again");
                    self.pause(CONNECT_AGAIN).await;
                }
            }
        }
        Ok(())
    }

    /// Copies one chunk, and drops everything that is on its way when the lease runs out.
    async fn chunk_under_lease(&self, connection: &mut Lazy, link: &Link, chunk: &Chunk) -> Result<(), CopyError> {
        let Some(lease) = &self.lease else { return self.chunk(connection, link, chunk, None).await };
        let term = lease.term();
        tokio::select! {
            // First: nothing more is sent by a process that was held up beyond its lease.
            biased;
            () = term.ended() => Err(CopyError::LeaseLost),
            result = self.chunk(connection, link, chunk, Some(term)) => result,
        }
    }

    /// Copies one chunk and records it.
    async fn chunk(&self, connection: &mut Lazy, link: &Link, chunk: &Chunk, lease: Option<Term<'_>>) -> Result<(), CopyError> {
        failpoint::reach("chunk_claimed");
        let mode = match self.on_existing {
            OnExisting::Refuse if chunk.attempts == 1 => WriteMode::Fresh,
            OnExisting::Refuse | OnExisting::Replace => WriteMode::Replace,
        };
        let open = match &mut connection.0 {
            Some(open) => open,
            None => connection.0.insert(self.source.connect().await?),
        };
        let histories = match &self.journal {
            Some(journal) => journal.histories(link).await?,
            None => Vec::new(),
        };
        let job = Job { link, lease, clock: Clock::new(link.time().await?) };
        let mut quarantine = self.work.quarantine(chunk.id);
        let finished = self.copier.chunk(open, &job, &chunk.scope, mode, &mut quarantine).await?;
        if finished.rest.is_empty() {
            if self.copier.tables.writer_at_work(open).await? {
                self.writers_seen.store(true, Ordering::Relaxed);
            }
        } else {
            // Rows are still under way on it; only closing it stops them.
            connection.0 = None;
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

    async fn pause(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
