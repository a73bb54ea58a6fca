//! Comparing PostgreSQL and Redis, in both directions, while brokers may go on writing.
//!
//! Forward, chunk by chunk: each session of PostgreSQL is judged by the law and read back from Redis in bounded calls. The
//! other way, by a scan: each key of a session in Redis is looked up in PostgreSQL. What seems to differ is only a suspect:
//! it is read again until it holds still (`settle`), so that no delay counts as a difference and nothing that moves counts
//! as equal. Nothing is ever written to a session, and no script runs that could.

mod balance;
mod error;
mod explain;
mod jobs;
mod part;
mod preflight;
mod redis_only;
mod repair;
mod report;
mod scan;
mod settle;
mod walk;

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use error::{Problem, VerifyError};
pub use explain::{Explanation, SeenHead, SeenKey, SeenPayload, SeenRow, SeenString, Side, Standing, explain};
pub use redis_only::RedisOnly;
pub use repair::{Fate, Left, Named, Plan, Planned, Repair, RepairReport, Unequal};
pub use report::Report;

use crate::config::{Config, VerifyConfig};
use crate::control::Work;
use crate::copy::{InFlight, Meter, Pace, Team};
use crate::model::{Rules, Tolerance};
use balance::Balance;
use jobs::{Jobs, VerifyJob};
use preflight::Ready;
use report::Circumstances;
use scan::Met;
use walk::Comparer;

/// Giving the lease back spares the next process a wait that is not much longer.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// A comparison in the hands of this process, with what shows how far it is.
pub struct Verification {
    ready: Ready,
    rules: Rules,
    config: VerifyConfig,
    asked: CancellationToken,
    stop: CancellationToken,
    started: Instant,
    /// Live counts.
    pub meter: Arc<Meter>,
}

impl Verification {
    /// Looks at both sides and plans the comparison, or goes on with one.
    ///
    /// # Errors
    /// [`VerifyError::Refused`] with what is in the way.
    pub async fn prepare(config: &Config, settings: &VerifyConfig, asked: CancellationToken) -> Result<Self, VerifyError> {
        let started = Instant::now();
        let stop = asked.child_token();
        let ready =
            preflight::prepare(config, settings, &stop).await.map_err(|problem| match asked.is_cancelled() && problem.is_the_stop_itself() {
                true => VerifyError::Interrupted { resumable: !settings.stateless },
                false => VerifyError::Refused(problem),
            })?;
        Ok(Self { ready, rules: config.target.rules, config: settings.clone(), asked, stop, started, meter: Arc::default() })
    }

    /// Rows that the comparison is estimated to read; `None` when nothing is known.
    pub fn estimated_rows(&self) -> Option<u64> {
        self.ready.estimated_rows
    }

    /// Compares to the end.
    ///
    /// # Errors
    /// [`VerifyError::Stuck`] or [`VerifyError::Interrupted`]; what is done is recorded where that is possible.
    pub async fn run(mut self) -> Result<Report, VerifyError> {
        let result = self.compare_and_report().await;
        let resumable = matches!(*self.ready.work, Work::Recorded(_));
        if let Some(lease) = self.ready.lease.take().and_then(Arc::into_inner) {
            // Best effort: a lease that is not given back runs out.
            match tokio::time::timeout(LEAVE_LIMIT, lease.leave()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the lease was not given back; it runs out by itself"),
                Err(_) => tracing::warn!("the lease was not given back in time; it runs out by itself"),
            }
        }
        match result {
            Ok(Some(report)) => Ok(report),
            Ok(None) => Err(VerifyError::Interrupted { resumable }),
            Err(problem) if self.asked.is_cancelled() && problem.is_the_stop_itself() => Err(VerifyError::Interrupted { resumable }),
            Err(problem) => Err(VerifyError::Stuck { problem, resumable }),
        }
    }

    /// `None` when a person stopped it.
    async fn compare_and_report(&self) -> Result<Option<Report>, Problem> {
        let ready = &self.ready;
        let comparer = Arc::new(self.comparer());
        let (tell, met) = watch::channel(Met::Counting);
        // Named sessions are read one by one, whether PostgreSQL knows them or not.
        let _counting = self.config.clients.is_none().then(|| {
            let comparer = Arc::clone(&comparer);
            AbortOnDropHandle::new(tokio::spawn(async move {
                // Nobody listens any more when the comparison has failed.
                let _ = tell.send(comparer.count_keys().await);
            }))
        });
        let jobs = Arc::new(Jobs { source: ready.source.clone(), comparer, work: Arc::clone(&ready.work), met });
        let team = Team {
            work: Arc::clone(&ready.work),
            lease: ready.lease.clone(),
            retry_limit: self.config.retry_timeout,
            stop: self.stop.clone(),
            moved: Notify::new(),
        };
        team.run(self.config.jobs, || VerifyJob::new(Arc::clone(&jobs))).await?;
        if self.stop.is_cancelled() {
            return Ok(None);
        }
        let report = self.report().await?;
        if let Work::Recorded(work) = &*ready.work
            && ready.work.take_finish().await?.is_none()
        {
            work.control.finish_run(work.run, work.worker, 0).await?;
        }
        Ok(Some(report))
    }

    fn comparer(&self) -> Comparer {
        let (ready, config) = (&self.ready, &self.config);
        Comparer {
            tables: ready.tables.clone(),
            rules: self.rules,
            target: ready.target.clone(),
            level: config.level,
            tolerance: tolerance(config.compare.deadline_tolerance, config.show_payload),
            settle_timeout: config.compare.settle_timeout,
            chunk_time: config.chunk_time,
            pace: Pace::new(config.max_rate),
            meter: Arc::clone(&self.meter),
            stop: self.stop.clone(),
            in_flight: InFlight::default(),
            balance: Balance::default(),
        }
    }

    async fn report(&self) -> Result<Report, Problem> {
        let work = &self.ready.work;
        let run = match &**work {
            Work::Recorded(recorded) => {
                if let Some(path) = &self.config.report {
                    let problem = |source| Problem::File { path: path.display().to_string(), source };
                    recorded.control.report_findings(recorded.run, &mut File::create(path).map_err(problem)?).await?;
                }
                Some(recorded.run)
            }
            Work::Memory(_) => None,
        };
        let circumstances = Circumstances {
            level: self.config.level.name(),
            sample: self.config.sample.map(|share| share.to_string()),
            run,
            begun_at: self.ready.begun_at.clone(),
            report_file: self.config.report.as_ref().map(|path| path.display().to_string()),
            elapsed: self.started.elapsed(),
            messages: self.meter.counted_rows(),
        };
        Ok(Report::new(Some(&work.tally().await?), &work.compared().await?, &work.finding_counts().await?, circumstances))
    }
}

/// What counts as equal.
fn tolerance(deadline: Duration, show_payload: bool) -> Tolerance {
    Tolerance { deadline_ms: i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX), show_payload }
}
