//! The right to write, for a bounded time: a process that cannot renew it stops before it runs out.
//!
//! Others judge by PostgreSQL's clock, the holder by its own monotonic one, counted from *before* the renewal was sent
//! and with a margin: so the holder is always the first to see the end.
//!
//! A lease that ran out because PostgreSQL was away is taken again when it is back. That begins another *term*: in between
//! others may have taken this process's chunks, so whatever was in work in an earlier term is dropped and claimed anew. One
//! that ran out although PostgreSQL was there is lost: the process was asleep, and nobody knows for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Control, ControlError};

/// How long a dead process keeps its chunks from others.
const LEASE: Duration = Duration::from_secs(20);
/// Several renewals may fail before the lease is lost.
const RENEW_EVERY: Duration = Duration::from_secs(4);
/// Nothing is written while it is tried to take the lease again.
const RETAKE_EVERY: Duration = Duration::from_secs(1);
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

/// A time in which a lease was held without a break.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a> {
    lease: &'a Lease,
    number: u64,
}

#[derive(Debug)]
struct Holds {
    origin: Instant,
    until_ms: AtomicU64,
    term: AtomicU64,
    lost: AtomicBool,
}

impl Holds {
    fn new(sent_at: Instant) -> Self {
        let holds = Self { origin: sent_at, until_ms: AtomicU64::new(0), term: AtomicU64::new(1), lost: AtomicBool::new(false) };
        holds.extend(sent_at);
        holds
    }

    fn extend(&self, sent_at: Instant) {
        let until = sent_at.duration_since(self.origin) + LEASE - MARGIN;
        self.until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    fn left(&self) -> Duration {
        Duration::from_millis(self.until_ms.load(Ordering::Acquire)).saturating_sub(self.origin.elapsed())
    }
}

impl Term<'_> {
    /// Whether this process may still write what it began in this term.
    pub fn holds(&self) -> bool {
        self.lease.holds.term.load(Ordering::Acquire) == self.number && self.lease.holds()
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        while self.holds() {
            // Renewed meanwhile, more is left afterwards; taken again, this term is over.
            tokio::time::sleep(self.lease.holds.left().clamp(Duration::from_millis(1), RETAKE_EVERY)).await;
        }
    }
}

impl Lease {
    /// Joins a run. When the lease is lost for good, `lost` is cancelled.
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
        let holds = Arc::new(Holds::new(sent_at));
        let renewing = tokio::spawn(renew(control.clone(), worker, Arc::clone(&holds), lost));
        Ok(Self { worker, holds, control: control.clone(), _renewing: AbortOnDropHandle::new(renewing) })
    }

    /// Whether this process may write at this moment.
    pub fn holds(&self) -> bool {
        !self.holds.left().is_zero()
    }

    /// Whether there is nothing left to hope for: the run is over, or PostgreSQL was away for too long.
    pub fn is_lost(&self) -> bool {
        self.holds.lost.load(Ordering::Acquire)
    }

    /// The term of this moment.
    pub fn term(&self) -> Term<'_> {
        Term { lease: self, number: self.holds.term.load(Ordering::Acquire) }
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

/// What came of a renewal.
enum Renewal {
    /// The lease was held all the time.
    Extended,
    /// It had run out by PostgreSQL's clock while that could not be reached.
    TakenAgain,
    /// It had run out without that, or the run was given up.
    Lost,
}

async fn renew(control: Control, worker: i64, holds: Arc<Holds>, lost: CancellationToken) {
    let mut renewed_at = Instant::now();
    let (mut was_away, mut was_told) = (false, false);
    loop {
        let left = holds.left();
        tokio::time::sleep(if left.is_zero() { RETAKE_EVERY } else { RENEW_EVERY.min(left) }).await;
        let sent_at = Instant::now();
        match tokio::time::timeout(RENEW_EVERY, try_to_renew(&control, worker, was_away)).await {
            Ok(Ok(Renewal::Lost)) => break,
            Ok(Ok(renewal)) => {
                if matches!(renewal, Renewal::TakenAgain) {
                    holds.term.fetch_add(1, Ordering::AcqRel);
                }
                holds.extend(sent_at);
                (renewed_at, was_away, was_told) = (sent_at, false, false);
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "the lease was not renewed");
                was_away = true;
            }
            Err(_) => {
                tracing::debug!("the lease was not renewed in time");
                was_away = true;
            }
        }
        if holds.left().is_zero() && !was_told {
            tracing::warn!("the lease has run out, since PostgreSQL cannot be reached: nothing is written until it is renewed");
            was_told = true;
        }
        // Later than any statement gives up: that one says what is wrong.
        if renewed_at.elapsed() > control.retry_limit + LEASE {
            break;
        }
    }
    tracing::error!("the lease is lost: writing stops");
    holds.until_ms.store(0, Ordering::Release);
    holds.lost.store(true, Ordering::Release);
    lost.cancel();
}

async fn try_to_renew(control: &Control, worker: i64, was_away: bool) -> Result<Renewal, sqlx::Error> {
    let was_held: Option<bool> = sqlx::query_scalar(
        "with before as (select id, expires_at > clock_timestamp() as held from tbmq_migrate.worker where id = $1 for update)
         update tbmq_migrate.worker w set expires_at = clock_timestamp() + make_interval(secs => $2) from before
         where w.id = before.id and (before.held or $3)
           and exists (select from tbmq_migrate.run r where r.id = w.run_id and r.state in ('copying', 'finishing', 'finished'))
         returning before.held",
    )
    .persistent(false)
    .bind(worker)
    .bind(LEASE.as_secs_f64())
    .bind(was_away)
    .fetch_optional(&control.pool)
    .await?;
    Ok(match was_held {
        Some(true) => Renewal::Extended,
        Some(false) => Renewal::TakenAgain,
        None => Renewal::Lost,
    })
}
