//! The right to write, for a bounded time: a process that cannot renew it stops before it runs out.
//!
//! Others judge by PostgreSQL's clock, the holder by its own monotonic one, counted from *before* the renewal was sent
//! and with a margin: so the holder is always the first to see the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Control, ControlError};

/// How long a dead process keeps its chunks from others.
const LEASE: Duration = Duration::from_secs(20);
/// Several renewals may fail before the lease is lost.
const RENEW_EVERY: Duration = Duration::from_secs(4);
/// The holder stops this much earlier than others may take over: a call in flight is answered or dropped by then.
const MARGIN: Duration = Duration::from_secs(3);

/// A worker's place in a run.
#[derive(Debug)]
pub struct Lease {
    /// The number of this worker, which grows with every process that joins.
    pub worker: i64,
    holds: Arc<Holds>,
    control: Control,
    _renewing: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Holds {
    origin: Instant,
    until_ms: AtomicU64,
}

impl Holds {
    fn extend(&self, sent_at: Instant) {
        let until = sent_at.duration_since(self.origin) + LEASE - MARGIN;
        self.until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    fn left(&self) -> Duration {
        Duration::from_millis(self.until_ms.load(Ordering::Acquire)).saturating_sub(self.origin.elapsed())
    }
}

impl Lease {
    /// Joins a run. When the lease is lost, `lost` is cancelled.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn take(control: &Control, run: i64, lost: CancellationToken) -> Result<Self, ControlError> {
        let host = std::fs::read_to_string("/etc/hostname").map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
        let pid = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        let sent_at = Instant::now();
        let worker: i64 = control
            .persist("joining a run", async || {
                sqlx::query_scalar(
                    "insert into tbmq_migrate.worker (run_id, host, pid, expires_at)
                     values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4)) returning id",
                )
                .persistent(false)
                .bind(run)
                .bind(&host)
                .bind(pid)
                .bind(LEASE.as_secs_f64())
                .fetch_one(&control.pool)
                .await
            })
            .await?;
        let holds = Arc::new(Holds { origin: sent_at, until_ms: AtomicU64::new(0) });
        holds.extend(sent_at);
        let renewing = tokio::spawn(renew(control.clone(), worker, Arc::clone(&holds), lost));
        Ok(Self { worker, holds, control: control.clone(), _renewing: AbortOnDropHandle::new(renewing) })
    }

    /// Whether this process may still write.
    pub fn holds(&self) -> bool {
        !self.holds.left().is_zero()
    }

    /// Leaves the run, so that others need not wait for the lease to run out.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn leave(self) -> Result<(), ControlError> {
        let worker = self.worker;
        self.control
            .persist("leaving a run", async || {
                let mut transaction = self.control.pool.begin().await?;
                sqlx::query("update tbmq_migrate.chunk set state = 'open', worker_id = null where worker_id = $1 and state = 'claimed'")
                    .persistent(false)
                    .bind(worker)
                    .execute(&mut *transaction)
                    .await?;
                sqlx::query("update tbmq_migrate.worker set expires_at = clock_timestamp() where id = $1")
                    .persistent(false)
                    .bind(worker)
                    .execute(&mut *transaction)
                    .await?;
                transaction.commit().await
            })
            .await
    }
}

async fn renew(control: Control, worker: i64, holds: Arc<Holds>, lost: CancellationToken) {
    loop {
        tokio::time::sleep(RENEW_EVERY.min(holds.left())).await;
        let sent_at = Instant::now();
        let renewal = sqlx::query(
            "update tbmq_migrate.worker w set expires_at = clock_timestamp() + make_interval(secs => $2)
             where id = $1 and expires_at > clock_timestamp()
               and exists (select from tbmq_migrate.run r where r.id = w.run_id and r.state in ('copying', 'finishing', 'finished'))",
        )
        .persistent(false)
        .bind(worker)
        .bind(LEASE.as_secs_f64())
        .execute(&control.pool);
        match tokio::time::timeout(RENEW_EVERY, renewal).await {
            Ok(Ok(done)) if done.rows_affected() == 1 => holds.extend(sent_at),
            // Somebody ended the run, or the lease had run out already.
            Ok(Ok(_)) => holds.until_ms.store(0, Ordering::Release),
            Ok(Err(error)) => tracing::debug!(%error, "the lease was not renewed"),
            Err(_) => tracing::debug!("the lease was not renewed in time"),
        }
        if holds.left().is_zero() {
            tracing::error!("the lease is lost: writing stops");
            lost.cancel();
            return;
        }
    }
}
