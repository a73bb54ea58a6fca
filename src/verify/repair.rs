//! Copying again what a comparison found to differ: the plan, and its execution under a lease.

mod jobs;
mod named;
mod plan;
mod report;
mod sort;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use named::Named;
pub use plan::{Fate, Plan, Planned};
pub use report::{RepairReport, Unequal};
pub use sort::Left;

use super::balance::Balance;
use super::error::{Problem, VerifyError};
use super::preflight::Answered;
use super::walk::Comparer;
use super::{LEAVE_LIMIT, tolerance};
use crate::config::{Config, Level, RepairConfig};
use crate::control::{Control, Lease, MemoryWork, Work};
use crate::copy::{Copier, InFlight, Meter, Pace, Team};
use crate::observe::failpoint;
use crate::source::{Part, PlannedChunk, Scope, Source, plan_listed};
use crate::target::{Link, Patience};
use jobs::{Outcome, RepairJob, Shared, Step};
use sort::Sorter;

/// Sessions that are looked at together.
const TOGETHER: usize = 500;

/// A repair in the hands of this process.
pub struct Repair {
    source: Source,
    comparer: Comparer,
    copier: Copier,
    named: Named,
    delete_extra: bool,
    retry_limit: Duration,
    asked: CancellationToken,
    stop: CancellationToken,
    started: Instant,
    /// The right to write; `None` for a plan.
    held: Option<Held>,
    /// Live counts.
    pub meter: Arc<Meter>,
}

/// The run of a repair and its lease.
struct Held {
    control: Control,
    run: i64,
    lease: Mutex<Option<Arc<Lease>>>,
}

impl Repair {
    /// Looks at both sides; to execute, it also takes the lease.
    ///
    /// # Errors
    /// [`VerifyError::Refused`] with what is in the way; nothing was changed.
    pub async fn prepare(config: &Config, settings: &RepairConfig, named: Named, asked: CancellationToken) -> Result<Self, VerifyError> {
        let refused = |problem: Problem| match asked.is_cancelled() && problem.is_the_stop_itself() {
            true => VerifyError::Interrupted { resumable: false },
            false => VerifyError::Refused(problem),
        };
        Self::try_prepare(config, settings, named, asked.clone()).await.map_err(refused)
    }

    async fn try_prepare(config: &Config, settings: &RepairConfig, named: Named, asked: CancellationToken) -> Result<Self, Problem> {
        let started = Instant::now();
        let stop = asked.child_token();
        let patience = Patience::new(settings.retry_timeout, stop.clone());
        let mut sides = match settings.execute {
            true => Answered::connect_to_write(config, patience).await?,
            false => Answered::connect(config, patience).await?,
        };
        let link = sides.target.brief_link();
        sides.target.may_read(&link).await?;
        let mut held = None;
        if settings.execute {
            // Everything would be unknown to it.
            if settings.delete_extra && sides.tables.are_empty(&mut sides.connection).await? {
                return Err(Problem::EmptySource);
            }
            held = Some(hold(config, settings, &sides, &named, &stop).await?);
            if let Err(error) = sides.target.probe(&link, link.time().await?).await {
                give_back(held.take(), false).await;
                return Err(error.into());
            }
            failpoint::reach("repair_begun");
        }
        let meter = Arc::<Meter>::default();
        let Answered { source, tables, target, .. } = sides;
        let copier = Copier {
            tables: tables.clone(),
            rules: config.target.rules,
            target: target.clone(),
            writes: true,
            chunk_time: settings.chunk_time,
            pace: Pace::new(settings.max_rate),
            meter: Arc::clone(&meter),
            stop: stop.clone(),
            in_flight: InFlight::default(),
        };
        let comparer = Comparer {
            tables,
            rules: config.target.rules,
            target,
            level: Level::Full,
            tolerance: tolerance(settings.compare.deadline_tolerance, false),
            settle_timeout: settings.compare.settle_timeout,
            chunk_time: settings.chunk_time,
            pace: Pace::new(settings.max_rate),
            meter: Arc::default(),
            stop: stop.clone(),
            in_flight: InFlight::default(),
            balance: Balance::default(),
        };
        let (delete_extra, retry_limit) = (settings.delete_extra, settings.retry_timeout);
        Ok(Self { source, comparer, copier, named, delete_extra, retry_limit, asked, stop, started, held, meter })
    }

    /// Tells what each session would get, and changes nothing.
    ///
    /// # Errors
    /// A side that failed, or a person stopped it.
    pub async fn plan(&self) -> Result<Plan, VerifyError> {
        self.look().await.map_err(|problem| self.ended_by(problem))
    }

    /// Copies the sessions again, and compares them.
    ///
    /// # Errors
    /// A side that failed, or a person stopped it. It may be run again: what is done is done once more.
    pub async fn execute(self) -> Result<RepairReport, VerifyError> {
        let repair = Arc::new(self);
        let shared = Arc::new(Shared { repair: Arc::clone(&repair), outcome: Mutex::new(Outcome::default()) });
        let result = repair.steps(&shared).await;
        if let Some(held) = &repair.held {
            held.end(result.is_ok()).await;
        }
        failpoint::reach("repair_finished");
        result.map_err(|problem| repair.ended_by(problem))
    }

    async fn steps(&self, shared: &Arc<Shared>) -> Result<RepairReport, Problem> {
        let sessions = plan_listed(&self.named.clients());
        let written = self.step(shared, Step::Write, sessions.clone()).await?;
        if !shared.outcome().gone.is_empty() {
            let scan = Scope { part: Part::TargetOnly, ..Scope::everything() };
            self.step(shared, Step::Strays, vec![PlannedChunk { scope: scan, estimated_rows: None }]).await?;
        }
        let compared = self.step(shared, Step::Compare, sessions).await?;
        let run = self.held.as_ref().map_or(0, |held| held.run);
        Ok(shared.report(written.tally().await?, compared.compared().await?, run))
    }

    /// One job, since the next chunk is read when the one before stands in Redis.
    async fn step(&self, shared: &Arc<Shared>, step: Step, chunks: Vec<PlannedChunk>) -> Result<Arc<Work>, Problem> {
        let work = Arc::new(Work::Memory(MemoryWork::new(chunks, None)));
        let team = Team {
            work: Arc::clone(&work),
            lease: self.held.as_ref().and_then(Held::lease),
            retry_limit: self.retry_limit,
            stop: self.stop.clone(),
            moved: Notify::new(),
        };
        team.run(1, || RepairJob::new(Arc::clone(shared), Arc::clone(&work), step)).await?;
        if self.stop.is_cancelled() {
            return Err(match self.asked.is_cancelled() {
                true => crate::copy::CopyError::Stopped,
                false => crate::copy::CopyError::LeaseLost,
            }
            .into());
        }
        Ok(work)
    }

    fn ended_by(&self, problem: Problem) -> VerifyError {
        match self.asked.is_cancelled() && problem.is_the_stop_itself() {
            true => VerifyError::Interrupted { resumable: false },
            false => VerifyError::Stuck { problem, resumable: false },
        }
    }

    fn sorter<'a>(&'a self, link: &'a Link) -> Sorter<'a> {
        let comparer = &self.comparer;
        Sorter { tables: &comparer.tables, target: &comparer.target, link, named: &self.named, delete_extra: self.delete_extra }
    }
}

/// Records the run and takes the lease, where nobody else writes. A dual write that is open is met here too.
async fn hold(config: &Config, settings: &RepairConfig, sides: &Answered, named: &Named, stop: &CancellationToken) -> Result<Held, Problem> {
    let control = Control::open(&sides.source, &sides.server, settings.retry_timeout, stop.clone()).await?;
    let asked = format!(
        "repair {} named sessions of schema {} in {}, unknown ones {}",
        named.0.len(),
        config.postgres.schema.as_deref().unwrap_or("(search path)"),
        sides.target.identity(),
        if settings.delete_extra { "removed" } else { "kept" },
    );
    let run = control.begin_repair(&asked).await?.map_err(|open| Problem::Beside(Box::new(open)))?;
    let lease = Lease::take(&control, run, stop.clone()).await?;
    let stands_alone = control.repair_stands_alone(run).await?;
    let held = Held { control, run, lease: Mutex::new(Some(Arc::new(lease))) };
    if !stands_alone {
        give_back(Some(held), false).await;
        return Err(Problem::NotAlone);
    }
    Ok(held)
}

async fn give_back(held: Option<Held>, done: bool) {
    if let Some(held) = held {
        held.end(done).await;
    }
}

impl Held {
    fn lease(&self) -> Option<Arc<Lease>> {
        self.lease.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Best effort: a lease that is not given back runs out, and the next repair ends the run.
    async fn end(&self, done: bool) {
        let lease = self.lease.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let ending = async {
            if let (true, Some(lease)) = (done, &lease)
                && self.control.take_finish(self.run, lease.worker).await?
            {
                self.control.finish_run(self.run, lease.worker, 0).await?;
            }
            self.control.forget_run(self.run).await?;
            match lease.and_then(Arc::into_inner) {
                Some(lease) => lease.leave().await,
                None => Ok(()),
            }
        };
        match tokio::time::timeout(LEAVE_LIMIT, ending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the lease was not given back; it runs out by itself"),
            Err(_) => tracing::warn!("the lease was not given back in time; it runs out by itself"),
        }
    }
}

/// What to do about sessions that are left alone.
fn advice(reasons: impl Iterator<Item = Left>) -> impl Iterator<Item = String> {
    let reasons: BTreeSet<Left> = reasons.collect();
    reasons.into_iter().map(|reason| {
        match reason {
            Left::NeedsDeleteExtra => "sessions that PostgreSQL does not know stay: if they really are to go, run again with --delete-extra",
            Left::GoneFromPostgresql => "sessions are gone from PostgreSQL since the report: compare again, and repair by the new report",
            Left::OtherType => "keys of another type are somebody else's and are never touched: find out whose",
        }
        .to_owned()
    })
}
