//! Everything that is looked at before the first session is touched, from the cheapest to the dearest.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use sqlx::PgConnection;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::error::Problem;
use super::removal::Removal;
use crate::config::{Config, MigrateConfig, OnExisting};
use crate::control::{Control, Lease, MemoryWork, OpenRun, RecordedWork, RunKind, RunPlan, RunState, Work};
use crate::model::{ClientId, KeyKind, KeyPrefix, Rules, TopicField};
use crate::observe::failpoint;
use crate::source::{PlannedChunk, Server, Source, Tables, WriteCount, plan_listed};
use crate::target::{Journal, Link, Patience, Target, Topology};

/// Sessions that a refusal names.
const EXAMPLES: usize = 3;

/// Two sides that a copy may start between.
pub(super) struct Ready {
    pub source: Source,
    pub tables: Tables,
    pub target: Target,
    pub rules: Rules,
    pub work: Arc<Work>,
    pub lease: Option<Arc<Lease>>,
    pub writes_at_start: Option<WriteCount>,
    /// Keys of the journal of a run that goes on.
    pub journal: Vec<String>,
    /// Whether the run was finished by a process that could not report it.
    pub finished: bool,
    /// Tells this run from others where the control schema does not number it.
    pub own_number: i64,
    /// Whether sessions stood in Redis, for a dry run to tell.
    pub standing: bool,
    pub estimated_rows: Option<u64>,
}

/// What is known once both sides have answered.
struct Sides {
    source: Source,
    server: Server,
    connection: PgConnection,
    tables: Tables,
    target: Target,
    link: Link,
}

pub(super) async fn prepare(config: &Config, settings: &MigrateConfig, stop: &CancellationToken) -> Result<Ready, Problem> {
    let source = Source::new(&config.postgres)?;
    let mut connection = source.connect().await?;
    let server = Server::read(&mut connection).await?;
    let tables = Tables::read(&mut connection, &source).await?;
    let patience = Arc::new(Patience::new(settings.retry_timeout, stop.clone()));
    let target = Target::open(&config.target.redis, KeyPrefix::new(config.target.key_prefix.as_str()), patience).await?;
    let link = target.brief_link();
    tracing::info!(source = source.place(), version = server.version, target = target.identity(), "both sides answer");
    if let (Topology::Cluster, Some(tag)) = (target.topology(), target.prefix.own_hash_tag()) {
        tracing::warn!(tag, "the key prefix holds a hash tag: every session goes to the one node that serves its slot");
    }
    let sides = Sides { source, server, connection, tables, target, link };
    match settings.dry_run || settings.stateless {
        true => sides.in_memory(config, settings).await,
        false => sides.recorded(config, settings, stop).await,
    }
}

impl Sides {
    async fn in_memory(mut self, config: &Config, settings: &MigrateConfig) -> Result<Ready, Problem> {
        let standing = self.standing(settings).await?;
        let now = self.link.time().await?;
        if !settings.dry_run {
            self.may_write(settings, &standing).await?;
        }
        let file = match &settings.quarantine_file {
            Some(path) => Some(create(path)?),
            None => None,
        };
        let writes_at_start = self.tables.write_count(&mut self.connection).await?;
        let planned = self.plan(settings).await?;
        let estimated_rows = sum(&planned);
        Ok(Ready {
            work: Arc::new(Work::Memory(MemoryWork::new(planned, file))),
            source: self.source,
            tables: self.tables,
            target: self.target,
            rules: config.target.rules,
            lease: None,
            writes_at_start,
            journal: Vec::new(),
            finished: false,
            own_number: now.0,
            standing: !standing.is_empty(),
            estimated_rows,
        })
    }

    async fn recorded(mut self, config: &Config, settings: &MigrateConfig, stop: &CancellationToken) -> Result<Ready, Problem> {
        if self.server.in_recovery {
            return Err(Problem::Standby { place: self.source.place().to_owned() });
        }
        if let Some(path) = &settings.quarantine_file {
            may_create(path)?;
        }
        // Where no run was ever recorded there is none to go on with: what speaks against one is said before anything is made.
        let mut first = !Control::exists(&mut self.connection).await?;
        if first && let Err(problem) = self.may_begin(settings).await {
            // Unless another process made it meanwhile, and what stands in Redis is the run's own.
            if !Control::exists(&mut self.connection).await? {
                return Err(problem);
            }
            first = false;
        }
        let control = Control::open(&self.source, &self.server, settings.retry_timeout, stop.clone()).await?;
        let digest = match &settings.clients {
            Some(clients) => Some(self.server.digest(&mut self.connection, clients).await?),
            None => None,
        };
        let asked = describe(config, settings, &self.target, digest.as_deref());
        let open = match control.open_run(RunKind::Migrate).await? {
            Some(open) if goes_on(&open, settings, &asked)? => {
                tracing::info!(run = open.run.id, "going on with an unfinished run");
                open
            }
            given_up => self.begin(&control, settings, &asked, given_up, first).await?,
        };
        open.accepts(&asked)?;
        failpoint::reach("run_begun");
        let lease = Lease::take(&control, open.run.id, stop.clone()).await?;
        let estimated_rows = control.estimated_rows(open.run.id).await?;
        let run = open.run;
        let work = RecordedWork { control, run: run.id, worker: lease.worker, held: Mutex::default() };
        Ok(Ready {
            work: Arc::new(Work::Recorded(work)),
            source: self.source,
            tables: self.tables,
            target: self.target,
            rules: config.target.rules,
            lease: Some(Arc::new(lease)),
            writes_at_start: run.writes_at_start,
            journal: run.journal,
            finished: run.state == RunState::Finished,
            own_number: run.id,
            standing: false,
            estimated_rows,
        })
    }

    /// Begins a run in place of one that is given up: only when nothing speaks against it does that one go.
    async fn begin(
        &mut self,
        control: &Control,
        settings: &MigrateConfig,
        asked: &str,
        given_up: Option<OpenRun>,
        checked: bool,
    ) -> Result<OpenRun, Problem> {
        if !checked {
            match self.may_begin(settings).await {
                Err(Problem::Standing { examples, .. }) => {
                    // What stands there may be of a run that another process has begun meanwhile.
                    if let Some(open) = control.open_run(RunKind::Migrate).await?.filter(|open| given_up.is_none() && open.accepts(asked).is_ok()) {
                        return Ok(open);
                    }
                    return Err(Problem::Standing { examples, finished: control.finished_with(asked).await? });
                }
                checked => checked?,
            }
        }
        let writes_at_start = self.tables.write_count(&mut self.connection).await?;
        let plan = RunPlan { kind: RunKind::Migrate, settings: asked.to_owned(), writes_at_start, chunks: self.plan(settings).await? };
        if let Some(open) = given_up {
            control.forget_run(open.run.id).await?;
            Journal::from_keys(open.run.journal).remove(&self.link).await?;
            control.close_journal(open.run.id).await?;
        }
        Ok(control.begin_run(&plan).await?)
    }

    /// Whether a run may begin.
    async fn may_begin(&mut self, settings: &MigrateConfig) -> Result<(), Problem> {
        let standing = self.standing(settings).await?;
        self.may_write(settings, &standing).await
    }

    /// Some of the sessions that stand in Redis and are asked for.
    async fn standing(&self, settings: &MigrateConfig) -> Result<Vec<ClientId>, Problem> {
        let Some(listed) = &settings.clients else {
            return Ok(self.target.standing_sessions((!settings.dry_run).then_some(&self.link), EXAMPLES).await?);
        };
        let mut standing = Vec::new();
        for client in listed.iter().map(|id| ClientId::new(id.as_str())) {
            for kind in [KeyKind::LastPacketId, KeyKind::Messages] {
                if standing.len() < EXAMPLES
                    && standing.last() != Some(&client)
                    && self.link.type_of(&self.target.key(&client, kind)).await? != "none"
                {
                    standing.push(client.clone());
                }
            }
        }
        Ok(standing)
    }

    /// Whether what stands there lets the copy write, and whether Redis does.
    async fn may_write(&mut self, settings: &MigrateConfig, standing: &[ClientId]) -> Result<(), Problem> {
        match settings.on_existing {
            OnExisting::Refuse if !standing.is_empty() => return Err(Problem::Standing { examples: standing.to_vec(), finished: None }),
            OnExisting::Replace if !standing.is_empty() => {
                let removal =
                    Removal { target: &self.target, link: &self.link, tables: &self.tables, listed: settings.clients.as_deref(), lease: None };
                let census = removal.census(&mut self.connection).await?;
                tracing::info!(sessions = census.total, unknown_to_postgresql = census.unknown, "sessions stand in Redis and will be replaced");
                census.guard(self.tables.are_empty(&mut self.connection).await?, settings.allow_removals)?;
            }
            OnExisting::Refuse | OnExisting::Replace => {}
        }
        let now = self.link.time().await?;
        Ok(self.target.probe(&self.link, now).await?)
    }

    async fn plan(&mut self, settings: &MigrateConfig) -> Result<Vec<PlannedChunk>, Problem> {
        match &settings.clients {
            Some(clients) => Ok(plan_listed(clients)),
            None => Ok(self.tables.plan(&mut self.connection).await?),
        }
    }
}

/// Whether this call goes on with a run that was found; false where it begins another one in its place.
fn goes_on(open: &OpenRun, settings: &MigrateConfig, asked: &str) -> Result<bool, Problem> {
    if settings.restart {
        open.is_idle()?;
        return Ok(false);
    }
    // Finished by a process that could not tell: it is told again. To replace once more is to begin once more.
    if open.run.state == RunState::Finished && settings.on_existing == OnExisting::Replace {
        return Ok(false);
    }
    match open.accepts(asked) {
        Err(_) if open.run.state == RunState::Finished => Ok(false),
        accepted => Ok(accepted.map(|()| true)?),
    }
}

fn create(path: &Path) -> Result<File, Problem> {
    File::create(path).map_err(|source| Problem::File { path: path.display().to_string(), source })
}

/// The same without a change of what a file holds: it may be the list of the run that this one is refused for.
fn may_create(path: &Path) -> Result<(), Problem> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|source| Problem::File { path: path.display().to_string(), source })
}

fn sum(planned: &[PlannedChunk]) -> Option<u64> {
    planned.iter().map(|chunk| chunk.estimated_rows).sum()
}

/// Everything that decides what is written where, in words: a run goes on only with the same.
fn describe(config: &Config, settings: &MigrateConfig, target: &Target, digest_of_clients: Option<&str>) -> String {
    let rules = &config.target.rules;
    let scope = match &settings.clients {
        None => "all sessions".to_owned(),
        Some(clients) => format!("{} named sessions ({})", clients.len(), digest_of_clients.unwrap_or_default()),
    };
    let topic = match rules.topic_field {
        TopicField::TopicName => "topicName",
        TopicField::Topic => "topic",
    };
    let existing = match settings.on_existing {
        OnExisting::Refuse => "refuse",
        OnExisting::Replace => "replace",
    };
    format!(
        "{scope} of schema {} to {}, limit {}, ttl {} s, field {topic}, payload up to {} bytes, on existing {existing}",
        config.postgres.schema.as_deref().unwrap_or("(search path)"),
        target.identity(),
        rules.message_limit,
        rules.default_ttl.as_secs(),
        rules.max_payload_bytes,
    )
}
