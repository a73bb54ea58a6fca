//! A run: what is copied where, from its start to its end, by however many processes.

use sqlx::{Postgres, Row as _, Transaction};

use super::chunk::insert_chunk;
use super::{Control, ControlError};
use crate::source::{PlannedChunk, WriteCount};

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// A one-off copy.
    Migrate,
    /// A comparison.
    Verify,
    /// A copy of named sessions, over what stands there.
    Repair,
}

impl RunKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Migrate => "migrate",
            Self::Verify => "verify",
            Self::Repair => "repair",
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Chunks are being copied. Set by the process that plans the run; followed by `Finishing`.
    Copying,
    /// All chunks are done. Set by the process that found the last one done; followed by `Finished`, or by `Copying`
    /// again when a shard lost what had been written.
    Finishing,
    /// Over. Set at the very end.
    Finished,
    /// Given up by `--restart`.
    Forgotten,
}

impl RunState {
    fn from_column(text: &str) -> Option<Self> {
        match text {
            "copying" => Some(Self::Copying),
            "finishing" => Some(Self::Finishing),
            "finished" => Some(Self::Finished),
            "forgotten" => Some(Self::Forgotten),
            _ => None,
        }
    }
}

/// A run as its row says.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// What it copies where.
    pub settings: String,
    /// Where it stands.
    pub state: RunState,
    /// The server's write count at its start.
    pub writes_at_start: Option<WriteCount>,
    /// Redis keys of its journal; empty until they are made, and when they are removed at the end.
    pub journal: Vec<String>,
}

/// A run that has not ended, or whose process died before it could say so, and who works on it.
#[derive(Debug, Clone)]
pub struct OpenRun {
    /// The run.
    pub run: Run,
    /// `host:pid` of each process whose lease holds.
    pub workers: Vec<String>,
}

impl OpenRun {
    /// Whether a process with these settings may work on it.
    ///
    /// # Errors
    /// It is another run, at work or interrupted.
    pub fn accepts(&self, settings: &str) -> Result<(), ControlError> {
        if self.run.settings == settings {
            return Ok(());
        }
        self.is_idle()?;
        Err(ControlError::OtherSettings { run: self.run.id, settings: self.run.settings.clone(), asked: settings.to_owned() })
    }

    /// Whether nobody works on it.
    ///
    /// # Errors
    /// [`ControlError::Busy`] with those who do.
    pub fn is_idle(&self) -> Result<(), ControlError> {
        match self.workers.is_empty() {
            true => Ok(()),
            false => Err(ControlError::Busy { run: self.run.id, settings: self.run.settings.clone(), workers: self.workers.join(", ") }),
        }
    }
}

/// What a new run is made of.
pub struct RunPlan {
    /// What it does.
    pub kind: RunKind,
    /// What it copies where.
    pub settings: String,
    /// The server's write count before the first read.
    pub writes_at_start: Option<WriteCount>,
    /// Its chunks.
    pub chunks: Vec<PlannedChunk>,
}

impl Control {
    /// The run that has not ended, or else one that ended without its journal being removed: its process died before it
    /// could report.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn open_run(&self, kind: RunKind) -> Result<Option<OpenRun>, ControlError> {
        self.persist("looking for an open run", async || {
            let mut transaction = self.pool.begin().await?;
            read_open(&mut transaction, kind).await
        })
        .await
    }

    /// Begins a run, or finds the one that another process began meanwhile. A copy does not begin beside a repair.
    ///
    /// # Errors
    /// A failed statement; [`ControlError::Busy`] with the repair that is at work.
    pub async fn begin_run(&self, plan: &RunPlan) -> Result<OpenRun, ControlError> {
        let begun = self.persist("beginning a run", async || {
            let mut transaction = self.pool.begin().await?;
            // Two processes that start at the same moment must not plan twice.
            sqlx::raw_sql("lock table tbmq_migrate.run in exclusive mode").execute(&mut *transaction).await?;
            if let Some(open) = read_open(&mut transaction, plan.kind).await?.filter(|open| open.run.state != RunState::Finished) {
                return Ok(Ok(open));
            }
            if plan.kind == RunKind::Migrate
                && let Some(repair) = read_open(&mut transaction, RunKind::Repair).await?.filter(|repair| !repair.workers.is_empty())
            {
                return Ok(Err(repair));
            }
            let id: i64 = sqlx::query_scalar("insert into tbmq_migrate.run (command, settings, writes_at_start) values ($1, $2, $3) returning id")
                .persistent(false)
                .bind(plan.kind.name())
                .bind(&plan.settings)
                .bind(plan.writes_at_start.map(|count| count.0))
                .fetch_one(&mut *transaction)
                .await?;
            for chunk in &plan.chunks {
                insert_chunk(&mut transaction, id, chunk, 0).await?;
            }
            transaction.commit().await?;
            let state = RunState::Copying;
            let run = Run { id, settings: plan.settings.clone(), state, writes_at_start: plan.writes_at_start, journal: Vec::new() };
            Ok(Ok(OpenRun { run, workers: Vec::new() }))
        });
        begun.await?.or_else(|repair| repair.is_idle().map(|()| repair))
    }

    /// Gives an interrupted run up.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn forget_run(&self, run: i64) -> Result<(), ControlError> {
        self.persist("forgetting a run", async || {
            sqlx::query(
                "update tbmq_migrate.run set state = 'forgotten', finished_at = clock_timestamp() where id = $1 and state in ('copying', 'finishing')",
            )
            .persistent(false)
            .bind(run)
            .execute(&self.pool)
            .await
        })
        .await
        .map(drop)
    }

    /// When a run began, in the server's words.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn begun_at(&self, run: i64) -> Result<String, ControlError> {
        self.persist("asking for a run's begin", async || {
            sqlx::query_scalar("select to_char(started_at, 'YYYY-MM-DD HH24:MI:SS TZ') from tbmq_migrate.run where id = $1")
                .persistent(false)
                .bind(run)
                .fetch_one(&self.pool)
                .await
        })
        .await
    }

    /// The number of the newest run that finished with these settings, and when, in the server's words.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn finished_with(&self, settings: &str) -> Result<Option<(i64, String)>, ControlError> {
        self.persist("looking for a finished run", async || {
            sqlx::query_as(
                "select id, to_char(finished_at, 'YYYY-MM-DD HH24:MI:SS TZ') from tbmq_migrate.run
                 where command = 'migrate' and state = 'finished' and settings = $1 order by id desc limit 1",
            )
            .persistent(false)
            .bind(settings)
            .fetch_optional(&self.pool)
            .await
        })
        .await
    }

    /// Takes the last steps of a run upon this process, when every chunk is done: true for one process alone, as long as
    /// it lives.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn take_finish(&self, run: i64, worker: i64) -> Result<bool, ControlError> {
        self.persist("finishing a run", async || {
            let taken = sqlx::query(
                "update tbmq_migrate.run r set state = 'finishing', finisher_id = $2
                 where id = $1 and not exists (select from tbmq_migrate.chunk c where c.run_id = r.id and c.state <> 'done')
                   and (state = 'copying' or state = 'finishing' and (finisher_id = $2 or not exists (
                        select from tbmq_migrate.worker w where w.id = r.finisher_id and w.expires_at > clock_timestamp())))",
            )
            .persistent(false)
            .bind(run)
            .bind(worker)
            .execute(&self.pool)
            .await?;
            Ok(taken.rows_affected() == 1)
        })
        .await
    }

    /// The chunks that are done, each with the number of the attempt that did it.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn done_chunks(&self, run: i64) -> Result<Vec<(i64, i32)>, ControlError> {
        self.persist("listing the chunks done", async || {
            sqlx::query_as("select id, attempts from tbmq_migrate.chunk where run_id = $1 and state = 'done'")
                .persistent(false)
                .bind(run)
                .fetch_all(&self.pool)
                .await
        })
        .await
    }

    /// Opens done chunks again, which some shard forgot. The run goes back to copying.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn reopen_chunks(&self, run: i64, lost: &[i64]) -> Result<(), ControlError> {
        self.persist("opening chunks again", async || {
            let mut transaction = self.pool.begin().await?;
            // Locked: another process may end the run at this moment, and then its journal is gone and tells nothing.
            let open: bool = sqlx::query_scalar("select state in ('copying', 'finishing') from tbmq_migrate.run where id = $1 for update")
                .persistent(false)
                .bind(run)
                .fetch_one(&mut *transaction)
                .await?;
            if !open {
                return Ok(());
            }
            sqlx::query("update tbmq_migrate.chunk set state = 'open' where run_id = $1 and state = 'done' and id = any($2)")
                .persistent(false)
                .bind(run)
                .bind(lost)
                .execute(&mut *transaction)
                .await?;
            sqlx::query("update tbmq_migrate.run set state = 'copying' where id = $1 and state = 'finishing'")
                .persistent(false)
                .bind(run)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await
        })
        .await
    }

    /// Ends a run whose last steps this worker took.
    ///
    /// # Errors
    /// [`ControlError::LeaseLost`] when another worker has taken them, or opened chunks again.
    pub async fn finish_run(&self, run: i64, worker: i64, sessions_removed: u64) -> Result<(), ControlError> {
        let removed = i64::try_from(sessions_removed).unwrap_or(i64::MAX);
        let ended = self
            .persist("ending a run", async || {
                // Finished already by this worker: the reply to an earlier try was lost.
                sqlx::query(
                    "update tbmq_migrate.run set state = 'finished', finished_at = clock_timestamp(), sessions_removed = $2
                     where id = $1 and finisher_id = $3 and state in ('finishing', 'finished')",
                )
                .persistent(false)
                .bind(run)
                .bind(removed)
                .bind(worker)
                .execute(&self.pool)
                .await
            })
            .await?;
        if ended.rows_affected() == 1 { Ok(()) } else { Err(ControlError::LeaseLost { run }) }
    }

    /// The state of a run and the sessions that it removed.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn run_state(&self, run: i64) -> Result<(RunState, u64), ControlError> {
        let (state, removed): (String, i64) = self
            .persist("asking for a run's state", async || {
                sqlx::query_as("select state, sessions_removed from tbmq_migrate.run where id = $1")
                    .persistent(false)
                    .bind(run)
                    .fetch_one(&self.pool)
                    .await
            })
            .await?;
        let unknown = || ControlError::statement("reading a run's state")(sqlx::Error::Protocol(format!("unknown state {state}")));
        Ok((RunState::from_column(&state).ok_or_else(unknown)?, u64::try_from(removed).unwrap_or(0)))
    }
}

pub(super) async fn read_open(transaction: &mut Transaction<'_, Postgres>, kind: RunKind) -> Result<Option<OpenRun>, sqlx::Error> {
    let row = sqlx::query(
        "select id, settings, writes_at_start, journal, state from tbmq_migrate.run
         where command = $1 and (state in ('copying', 'finishing') or state = 'finished' and journal <> '{}') order by state = 'finished', id desc limit 1",
    )
    .persistent(false)
    .bind(kind.name())
    .fetch_optional(&mut **transaction)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let run = Run {
        id: row.get(0),
        settings: row.get(1),
        state: RunState::from_column(row.get(4)).ok_or_else(|| sqlx::Error::Protocol("a run in an unknown state".to_owned()))?,
        writes_at_start: row.get::<Option<i64>, _>(2).map(WriteCount),
        journal: row.get(3),
    };
    let workers =
        sqlx::query_scalar("select host || ':' || pid from tbmq_migrate.worker where run_id = $1 and expires_at > clock_timestamp() order by id")
            .persistent(false)
            .bind(run.id)
            .fetch_all(&mut **transaction)
            .await?;
    Ok(Some(OpenRun { run, workers }))
}
