//! The jobs of a process: each takes chunk after chunk until none is left, whatever is done with a chunk.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::CopyError;
use crate::control::{Chunk, Lease, Next, Term, Work};
use crate::model::Consequence;

/// How often a job without a chunk looks for one: another process may die or give one back.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Between two tries to reach PostgreSQL.
const CONNECT_AGAIN: Duration = Duration::from_millis(500);

/// What one job does with a chunk.
pub trait ChunkWork: Send + 'static {
    /// Does it, and records it as done.
    ///
    /// # Errors
    /// Nothing of the chunk counts then.
    fn chunk(&mut self, chunk: &Chunk, term: Option<Term<'_>>) -> impl Future<Output = Result<(), CopyError>> + Send;

    /// After an error, before the chunk is given back: drops what may be broken. Replies whether the try counts: one that
    /// did not come to its end may have written nothing.
    fn failed(&mut self, error: &CopyError) -> bool;
}

/// What the jobs share.
pub struct Team {
    /// The chunks.
    pub work: Arc<Work>,
    /// The right to work on them, where that is leased.
    pub lease: Option<Arc<Lease>>,
    /// For how long a chunk is tried again.
    pub retry_limit: Duration,
    /// Ends all jobs.
    pub stop: CancellationToken,
    /// Wakes the jobs that wait, when a chunk of this process is done or given back.
    pub moved: Notify,
}

impl Team {
    /// Runs `count` jobs to their end. The first error stops all of them.
    ///
    /// # Errors
    /// The first error that trying again does not mend.
    pub async fn run<W: ChunkWork>(self, count: usize, job: impl Fn() -> W) -> Result<(), CopyError> {
        let team = Arc::new(self);
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let (team, work) = (Arc::clone(&team), job());
            tasks.spawn(async move {
                let result = team.job(work).await;
                if result.is_err() {
                    team.stop.cancel();
                }
                result
            });
        }
        // The error that stopped the others is told, not that they were stopped.
        let mut first = None;
        for result in tasks.join_all().await {
            match result {
                Err(error) if first.as_ref().is_none_or(CopyError::is_the_stop_itself) => first = Some(error),
                _ => {}
            }
        }
        first.map_or(Ok(()), Err)
    }

    async fn job(&self, mut job: impl ChunkWork) -> Result<(), CopyError> {
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
            match self.chunk_under_lease(&mut job, &chunk).await {
                Ok(()) => {
                    self.moved.notify_waiters();
                    failing_since = None;
                }
                Err(error) => {
                    let counts = job.failed(&error);
                    self.work.release(chunk, counts).await?;
                    self.moved.notify_waiters();
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if error.consequence() != Consequence::Retry || since.elapsed() >= self.retry_limit {
                        return Err(error);
                    }
                    tracing::warn!(waiting_seconds = since.elapsed().as_secs(), limit_seconds = self.retry_limit.as_secs(), error = %chain(&error), "a chunk is tried again");
                    self.pause(CONNECT_AGAIN).await;
                }
            }
        }
        Ok(())
    }

    /// Does one chunk, and drops everything that is on its way when the lease runs out.
    async fn chunk_under_lease(&self, job: &mut impl ChunkWork, chunk: &Chunk) -> Result<(), CopyError> {
        let Some(lease) = &self.lease else { return job.chunk(chunk, None).await };
        let term = lease.term();
        tokio::select! {
            // First: nothing more is sent by a process that was held up beyond its lease.
            biased;
            () = term.ended() => Err(CopyError::LeaseLost),
            result = job.chunk(chunk, Some(term)) => result,
        }
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
