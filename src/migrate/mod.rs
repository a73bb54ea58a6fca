//! The one-off copy: checks before the start, chunks by parallel jobs, and the last steps.
//!
//! A run belongs to no process: progress is in the control schema, any number of processes may work on it, and whichever
//! finds the last chunk done takes the last steps. Running the command again goes on where an interrupted run was.

mod error;
mod jobs;
mod preflight;
mod removal;
mod report;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use error::{MigrateError, Problem};
pub use removal::{Census, GuardError};
pub use report::Report;

use crate::config::{Config, MigrateConfig, OnExisting};
use crate::control::{RunState, Work};
use crate::copy::{Copier, CopyError, InFlight, Meter, Pace, Team};
use crate::observe::failpoint;
use crate::target::{Journal, Link};
use jobs::{CopyJob, Jobs};
use preflight::Ready;
use removal::{Allowance, Removal};
use report::Circumstances;

/// How often the process looks whether another one has finished the run.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Giving the lease back spares the next process a wait that is not much longer.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// A Redis that loses acknowledged writes more often than this does not get better by copying again.
const MOST_RECOPIES: u32 = 5;

/// A run in the hands of this process, with what shows how far it is.
pub struct Migration {
    ready: Ready,
    config: MigrateConfig,
    /// Cancelled by a person.
    asked: CancellationToken,
    /// Cancelled by that, by the first failure, and when the lease is lost.
    stop: CancellationToken,
    started: Instant,
    /// Live counts.
    pub meter: Arc<Meter>,
}

impl Migration {
    /// Looks at both sides and begins a run, or goes on with one. Nothing of a session is written yet.
    ///
    /// # Errors
    /// [`MigrateError::Refused`] with what is in the way.
    pub async fn prepare(config: &Config, settings: &MigrateConfig, asked: CancellationToken) -> Result<Self, MigrateError> {
        let started = Instant::now();
        let stop = asked.child_token();
        let ready =
            preflight::prepare(config, settings, &stop).await.map_err(|problem| match asked.is_cancelled() && problem.is_the_stop_itself() {
                true => MigrateError::Interrupted { resumable: !settings.stateless && !settings.dry_run },
                false => MigrateError::Refused(problem),
            })?;
        Ok(Self { ready, config: settings.clone(), asked, stop, started, meter: Arc::default() })
    }

    /// Rows that the whole run is estimated to read; `None` when nothing is known.
    pub fn estimated_rows(&self) -> Option<u64> {
        self.ready.estimated_rows
    }

    /// Copies to the end.
    ///
    /// # Errors
    /// [`MigrateError::Stuck`] or [`MigrateError::Interrupted`]; what is done is recorded.
    pub async fn run(mut self) -> Result<Report, MigrateError> {
        let result = match self.copy_and_finish().await {
            // What a lost lease stops looks as if a person had.
            Err(problem) if problem.is_the_stop_itself() => self.lease_held().and(Err(problem)),
            result => result,
        };
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
            Ok(None) => Err(MigrateError::Interrupted { resumable }),
            // A lease that runs out while the rest is being recorded changes nothing for who asked to stop.
            Err(problem) if self.asked.is_cancelled() && (problem.is_the_stop_itself() || problem.is_the_lost_lease()) => {
                Err(MigrateError::Interrupted { resumable })
            }
            Err(problem) => Err(MigrateError::Stuck { problem, resumable }),
        }
    }

    /// `None` when a person stopped it.
    async fn copy_and_finish(&self) -> Result<Option<Report>, Problem> {
        let link = self.ready.target.link();
        let journal = match self.config.dry_run {
            true => None,
            false => Some(self.journal(&link).await?),
        };
        let writers_seen = Arc::new(AtomicBool::new(false));
        let mut recopies = 0;
        let removed = loop {
            self.copy(journal.as_ref(), &writers_seen).await?;
            if self.stop.is_cancelled() {
                return self.lease_held().map(|()| None);
            }
            match self.ready.work.take_finish().await? {
                None => {
                    if let Some(journal) = &journal
                        && self.forgotten(journal, &link).await? > 0
                    {
                        recopies += 1;
                        if recopies > MOST_RECOPIES {
                            return Err(Problem::Forgetful { times: recopies });
                        }
                        continue;
                    }
                    break self.finish(&link, &writers_seen).await?;
                }
                Some(RunState::Finished) => break self.removed_by_others().await?,
                Some(RunState::Forgotten) => return Err(Problem::Copy(CopyError::LeaseLost)),
                Some(RunState::Copying | RunState::Finishing) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        // The report first: as long as the journal stands, a run that could not tell its figures can be asked again.
        let report = self.report(removed, &writers_seen).await?;
        if let Some(journal) = &journal {
            journal.remove(&link).await?;
            if let Work::Recorded(work) = &*self.ready.work {
                work.control.close_journal(work.run).await?;
            }
        }
        Ok(Some(report))
    }

    fn lease_held(&self) -> Result<(), Problem> {
        match &self.ready.lease {
            Some(lease) if lease.is_lost() => Err(Problem::Copy(CopyError::LeaseLost)),
            _ => Ok(()),
        }
    }

    async fn copy(&self, journal: Option<&Journal>, writers_seen: &Arc<AtomicBool>) -> Result<(), Problem> {
        let ready = &self.ready;
        let copier = Copier {
            tables: ready.tables.clone(),
            rules: ready.rules,
            target: ready.target.clone(),
            writes: !self.config.dry_run,
            chunk_time: self.config.chunk_time,
            pace: Pace::new(self.config.max_rate),
            meter: Arc::clone(&self.meter),
            stop: self.stop.clone(),
            in_flight: InFlight::default(),
        };
        let jobs = Arc::new(Jobs {
            source: ready.source.clone(),
            copier,
            work: Arc::clone(&ready.work),
            journal: journal.cloned(),
            on_existing: self.config.on_existing,
            writers_seen: Arc::clone(writers_seen),
            occupied: AtomicBool::new(false),
        });
        let team = Team {
            work: Arc::clone(&ready.work),
            lease: ready.lease.clone(),
            retry_limit: self.config.retry_timeout,
            stop: self.stop.clone(),
            moved: Notify::new(),
        };
        team.run(self.config.jobs, || CopyJob::new(Arc::clone(&jobs))).await?;
        if let (true, Work::Recorded(work)) = (writers_seen.load(Ordering::Relaxed), &*ready.work) {
            work.control.note_writers(work.run).await?;
        }
        Ok(())
    }

    /// The journal of the run; on a run that goes on, what Redis forgot meanwhile is opened again.
    async fn journal(&self, link: &Link) -> Result<Journal, Problem> {
        let Work::Recorded(work) = &*self.ready.work else { return Ok(self.ready.target.journal(self.ready.own_number).await?) };
        if !self.ready.journal.is_empty() {
            let journal = Journal::from_keys(self.ready.journal.clone());
            if !self.ready.finished {
                self.forgotten(&journal, link).await?;
            }
            return Ok(journal);
        }
        let keys = self.ready.target.journal(work.run).await?.keys().to_vec();
        Ok(Journal::from_keys(work.control.set_journal(work.run, &keys).await?))
    }

    /// Opens the chunks again that some shard does not remember; their number.
    async fn forgotten(&self, journal: &Journal, link: &Link) -> Result<usize, Problem> {
        // In this order: a chunk is noted before it is done, so whatever is done by now must be remembered.
        let mut lost = self.ready.work.done_chunks().await?;
        let remembered = journal.remembered(link).await?;
        lost.retain(|chunk| remembered.binary_search(chunk).is_err());
        if !lost.is_empty() {
            self.ready.work.reopen(&lost.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>()).await?;
            tracing::warn!(chunks = lost.len(), "Redis lost writes that it had acknowledged (a restart or a failover); they are copied again");
        }
        Ok(lost.len())
    }

    /// The last steps, by one process alone, tried again while a server is away; the number of sessions removed.
    async fn finish(&self, link: &Link, writers_seen: &AtomicBool) -> Result<u64, Problem> {
        failpoint::reach("finish_taken");
        let started = Instant::now();
        let mut removed = 0;
        loop {
            match self.try_to_finish(link, writers_seen, &mut removed).await {
                Err(problem) if problem.may_pass() && started.elapsed() < self.config.retry_timeout && !self.stop.is_cancelled() => {
                    tracing::warn!(waiting_seconds = started.elapsed().as_secs(), %problem, "the last steps are tried again");
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                result => return result.map(|()| removed),
            }
        }
    }

    async fn try_to_finish(&self, link: &Link, writers_seen: &AtomicBool, removed: &mut u64) -> Result<(), Problem> {
        let ready = &self.ready;
        let mut connection = ready.source.connect().await?;
        if self.config.on_existing == OnExisting::Replace && !self.config.dry_run {
            let lease = ready.lease.as_ref().map(|lease| lease.term());
            let removal = Removal { target: &ready.target, link, tables: &ready.tables, listed: self.config.clients.as_deref(), lease };
            let census = removal.census(&mut connection).await?;
            census.guard(ready.tables.are_empty(&mut connection).await?, self.config.allow_removals)?;
            // What was counted may go, and no more: the tables may be emptied at this moment.
            let most = self.config.allow_removals.unwrap_or(*removed + census.unknown);
            removal.remove(&mut connection, Allowance { most, removed }).await?;
        }
        if !writers_seen.load(Ordering::Relaxed) && self.writes_since_start(&mut connection).await? {
            writers_seen.store(true, Ordering::Relaxed);
        }
        if let Work::Recorded(work) = &*ready.work {
            if writers_seen.load(Ordering::Relaxed) {
                work.control.note_writers(work.run).await?;
            }
            failpoint::reach("sessions_removed");
            work.control.finish_run(work.run, work.worker, *removed).await?;
            failpoint::reach("run_finished");
        }
        Ok(())
    }

    /// Whether the server counted writes since the run began; false, too, where it does not count.
    async fn writes_since_start(&self, connection: &mut sqlx::PgConnection) -> Result<bool, Problem> {
        let tables = &self.ready.tables;
        let Some(before) = self.ready.writes_at_start else { return Ok(false) };
        if tables.write_count(connection).await? != Some(before) {
            return Ok(true);
        }
        let Some(delay) = tables.count_delay(connection).await? else { return Ok(false) };
        tracing::info!(
            seconds = delay.as_secs_f32().ceil(),
            "other sessions are connected to the database: waiting until what they wrote is counted"
        );
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.stop.cancelled() => return Err(Problem::Copy(CopyError::Stopped)),
        }
        Ok(tables.write_count(connection).await? != Some(before))
    }

    async fn removed_by_others(&self) -> Result<u64, Problem> {
        match &*self.ready.work {
            Work::Recorded(work) => Ok(work.control.run_state(work.run).await?.1),
            Work::Memory(_) => Ok(0),
        }
    }

    async fn report(&self, sessions_removed: u64, writers_seen: &AtomicBool) -> Result<Report, Problem> {
        let run = match &*self.ready.work {
            Work::Recorded(work) => {
                if let Some(path) = &self.config.quarantine_file {
                    let problem = |source| Problem::File { path: path.display().to_string(), source };
                    work.control.write_quarantine(work.run, &mut File::create(path).map_err(problem)?).await?;
                }
                writers_seen.fetch_or(work.control.writers_seen(work.run).await?, Ordering::Relaxed);
                Some(work.run)
            }
            Work::Memory(_) => None,
        };
        let source_changed = match (writers_seen.load(Ordering::Relaxed), self.ready.writes_at_start) {
            (true, _) => Some(true),
            (false, Some(_)) => Some(false),
            (false, None) => None,
        };
        let circumstances = Circumstances {
            run,
            dry_run: self.config.dry_run,
            source_changed,
            sessions_removed,
            standing: self.ready.standing,
            on_existing: self.config.on_existing,
            listed: self.config.clients.is_some(),
            quarantine_file: self.config.quarantine_file.as_ref().map(|path| path.display().to_string()),
        };
        Ok(Report::new(self.ready.work.tally().await?, self.meter.counted_rows(), self.started.elapsed(), circumstances))
    }
}
