//! What is looked at before the first session is compared.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::error::Problem;
use crate::config::{Config, VerifyConfig};
use crate::control::{Control, ControlError, Lease, MemoryWork, RecordedWork, RunKind, RunPlan, Work};
use crate::model::KeyPrefix;
use crate::source::{Part, PlannedChunk, Scope, Server, Source, Tables, plan_listed};
use crate::target::{Patience, Target};

/// Two sides that can be compared.
pub(super) struct Ready {
    pub source: Source,
    pub tables: Tables,
    pub target: Target,
    pub work: Arc<Work>,
    pub lease: Option<Arc<Lease>>,
    /// When the comparison began that this one goes on with.
    pub begun_at: Option<String>,
    pub estimated_rows: Option<u64>,
}

/// What both sides answered.
pub(super) struct Answered {
    pub source: Source,
    pub server: Server,
    pub connection: PgConnection,
    pub tables: Tables,
    pub target: Target,
}

impl Answered {
    /// Connects to both sides, to read them.
    pub(super) async fn connect(config: &Config, patience: Patience) -> Result<Self, Problem> {
        Self::open(config, patience, false).await
    }

    /// The same to write to Redis, which must then be fit to hold sessions.
    pub(super) async fn connect_to_write(config: &Config, patience: Patience) -> Result<Self, Problem> {
        Self::open(config, patience, true).await
    }

    async fn open(config: &Config, patience: Patience, writes: bool) -> Result<Self, Problem> {
        let source = Source::new(&config.postgres)?;
        let mut connection = source.connect().await?;
        let server = Server::read(&mut connection).await?;
        let tables = Tables::read(&mut connection, &source).await?;
        let prefix = KeyPrefix::new(config.target.key_prefix.as_str());
        let target = match writes {
            true => Target::open(&config.target.redis, prefix, Arc::new(patience)).await?,
            false => Target::open_to_read(&config.target.redis, prefix, Arc::new(patience)).await?,
        };
        tracing::info!(source = source.place(), version = server.version, target = target.identity(), "both sides answer");
        if server.in_recovery {
            return Err(Problem::Standby { place: source.place().to_owned() });
        }
        Ok(Self { source, server, connection, tables, target })
    }
}

pub(super) async fn prepare(config: &Config, settings: &VerifyConfig, stop: &CancellationToken) -> Result<Ready, Problem> {
    let mut sides = Answered::connect(config, Patience::new(settings.retry_timeout, stop.clone())).await?;
    sides.tables.sample = settings.sample.map(crate::config::Share::of_ten_thousand);
    if let Some(path) = &settings.report {
        may_write(path)?;
    }
    // Before anything is read: that the rights are there.
    sides.target.may_read(&sides.target.brief_link()).await?;
    let recorded = match settings.stateless {
        true => None,
        false => recorded(&mut sides, config, settings, stop).await?,
    };
    let (work, lease, begun_at, estimated_rows) = match recorded {
        Some(recorded) => recorded,
        None => {
            let planned = plan(&mut sides, settings).await?;
            let list = settings.report.as_deref().map(create).transpose()?;
            let estimated = planned.iter().map(|chunk| chunk.estimated_rows).sum();
            (Work::Memory(MemoryWork::new(planned, list)), None, None, estimated)
        }
    };
    let Answered { source, tables, target, .. } = sides;
    Ok(Ready { source, tables, target, work: Arc::new(work), lease, begun_at, estimated_rows })
}

type Recorded = (Work, Option<Arc<Lease>>, Option<String>, Option<u64>);

/// Progress in the control schema, where there is one: a comparison makes none. `None`: it is kept in memory.
async fn recorded(sides: &mut Answered, config: &Config, settings: &VerifyConfig, stop: &CancellationToken) -> Result<Option<Recorded>, Problem> {
    if !Control::exists(&mut sides.connection).await? {
        tracing::info!("there is no schema tbmq_migrate: an interrupted comparison begins again");
        return Ok(None);
    }
    let control = match Control::open(&sides.source, &sides.server, settings.retry_timeout, stop.clone()).await {
        Ok(control) => control,
        Err(error @ ControlError::Prepare { .. }) => {
            tracing::info!(%error, "the role may not write to the schema tbmq_migrate: an interrupted comparison begins again");
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let digest = match &settings.clients {
        Some(clients) => Some(sides.server.digest(&mut sides.connection, clients).await?),
        None => None,
    };
    let asked = describe(config, settings, &sides.target, digest.as_deref());
    let open = match control.open_run(RunKind::Verify).await? {
        Some(open) if open.is_idle().is_err() => {
            tracing::info!(run = open.run.id, "another comparison is at work: this one is not recorded");
            return Ok(None);
        }
        Some(open) if !settings.restart && open.run.settings == asked && !control.is_outdated(open.run.id).await? => Some(open),
        Some(open) => {
            control.forget_run(open.run.id).await?;
            None
        }
        None => None,
    };
    let (run, begun_at) = match open {
        Some(open) => {
            let begun_at = control.begun_at(open.run.id).await?;
            tracing::info!(run = open.run.id, begun_at, "going on with an interrupted comparison");
            (open.run, Some(begun_at))
        }
        None => {
            let chunks = plan(sides, settings).await?;
            (control.begin_run(&RunPlan { kind: RunKind::Verify, settings: asked, writes_at_start: None, chunks }).await?.run, None)
        }
    };
    let lease = Lease::take(&control, run.id, stop.clone()).await?;
    let estimated_rows = control.estimated_rows(run.id).await?;
    let work = Work::Recorded(RecordedWork { control, run: run.id, worker: lease.worker, held: tokio::sync::Mutex::default() });
    Ok(Some((work, Some(Arc::new(lease)), begun_at, estimated_rows)))
}

/// The ranges of PostgreSQL, and the scan of Redis.
async fn plan(sides: &mut Answered, settings: &VerifyConfig) -> Result<Vec<PlannedChunk>, Problem> {
    if let Some(clients) = &settings.clients {
        return Ok(plan_listed(clients));
    }
    let mut chunks = sides.tables.plan(&mut sides.connection).await?;
    let scan = Scope { part: Part::TargetOnly, ..Scope::everything() };
    chunks.push(PlannedChunk { scope: scan, estimated_rows: Some(0) });
    Ok(chunks)
}

fn create(path: &Path) -> Result<File, Problem> {
    File::create(path).map_err(|source| Problem::File { path: path.display().to_string(), source })
}

/// Whether the file can be written, without a change of what it holds.
fn may_write(path: &Path) -> Result<(), Problem> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|source| Problem::File { path: path.display().to_string(), source })
}

/// Everything that decides what is compared how, in words: an interrupted comparison goes on only with the same.
fn describe(config: &Config, settings: &VerifyConfig, target: &Target, digest_of_clients: Option<&str>) -> String {
    let rules = &config.target.rules;
    let scope = match (&settings.clients, settings.sample) {
        (Some(clients), _) => format!("{} named sessions ({})", clients.len(), digest_of_clients.unwrap_or_default()),
        (None, Some(share)) => format!("{share} of the sessions"),
        (None, None) => "all sessions".to_owned(),
    };
    format!(
        "compare {scope} of schema {} with {}, level {}, limit {}, ttl {} s, payload up to {} bytes, deadlines within {} s, payloads shown: {}",
        config.postgres.schema.as_deref().unwrap_or("(search path)"),
        target.identity(),
        settings.level.name(),
        rules.message_limit,
        rules.default_ttl.as_secs(),
        rules.max_payload_bytes,
        settings.compare.deadline_tolerance.as_secs(),
        settings.show_payload,
    )
}
