//! What survives a crash, in the schema `tbmq_migrate` of the source database: the run, its chunks, its workers and the
//! rows that could not be carried.
//!
//! Every change is one statement or one short transaction, and may be sent again when its reply was lost.

mod chunk;
mod error;
mod finding;
mod journal;
mod lease;
mod quarantine;
mod repair;
mod run;
mod sums;
mod work;

use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

pub use chunk::{Chunk, FinishedChunk};
pub use error::{ControlError, missing_grants};
pub use finding::{FindingCounts, Findings, append_findings};
pub use lease::{Lease, Term};
pub use quarantine::{Quarantine, QuarantinedRow};
pub use run::{OpenRun, Run, RunKind, RunPlan, RunState};
pub use work::{MemoryWork, Next, RecordedWork, Work};

use crate::model::Consequence;
use crate::source::{Server, Source};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema("tbmq_migrate");
    migrator.dangerous_set_table_name("tbmq_migrate._sqlx_migrations");
    migrator
});

/// Claims, results and the lease are short: a few connections serve any number of jobs.
const CONNECTIONS: u32 = 4;
/// The server itself ends a statement after 30 s: a longer silence is that of the network.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Waiting for one of them longer than this is a fault of the server.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(15);

/// What a statement has after a stop: time to record what is done on a server that answers.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// A login on a busy server takes a part of it.
const SHORTEST_ACQUIRE_LIMIT: Duration = Duration::from_secs(1);

/// The control schema of one source database.
#[derive(Debug, Clone)]
pub struct Control {
    pool: PgPool,
    retry_limit: Duration,
    stop: CancellationToken,
}

impl Control {
    /// Whether the schema has been made. Needs no right.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn exists(connection: &mut PgConnection) -> Result<bool, ControlError> {
        sqlx::query_scalar(
            "select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'tbmq_migrate' and c.relname = 'run')",
        )
        .persistent(false)
        .fetch_one(connection)
        .await
        .map_err(ControlError::statement("looking for the schema tbmq_migrate"))
    }

    /// The number of a copy that has not ended, where the schema and the right to read it are there.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn unfinished_run(connection: &mut PgConnection) -> Result<Option<i64>, ControlError> {
        sqlx::query_scalar("select id from tbmq_migrate.run where command = 'migrate' and state in ('copying', 'finishing') limit 1")
            .persistent(false)
            .fetch_optional(connection)
            .await
            .map_err(ControlError::statement("looking for an unfinished run"))
    }

    /// Makes the schema where it is missing. Statements are tried again for `retry_limit` when the server goes away, and for
    /// a few seconds after `stop`.
    ///
    /// # Errors
    /// No connection, or no right to make the schema.
    pub async fn open(source: &Source, server: &Server, retry_limit: Duration, stop: CancellationToken) -> Result<Self, ControlError> {
        let mut connection = PgConnection::connect_with(&source.options()).await.map_err(ControlError::statement("connecting"))?;
        let exists = Self::exists(&mut connection).await?;
        let prepare = |source| ControlError::Prepare { database: server.database.clone(), role: server.role.clone(), exists, source };
        MIGRATIONS.run(&mut connection).await.map_err(prepare)?;
        connection.close().await.map_err(ControlError::statement("closing a connection"))?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_LIMIT.min(retry_limit.max(SHORTEST_ACQUIRE_LIMIT)))
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sqlx::raw_sql("set statement_timeout = '30s'; set lock_timeout = '10s'").execute(connection).await?;
                    Ok(())
                })
            })
            .connect_lazy_with(source.options());
        Ok(Self { pool, retry_limit, stop })
    }

    /// Runs a statement until it is known to have worked.
    pub(crate) async fn persist<T, F>(&self, doing: &'static str, statement: impl FnMut() -> F) -> Result<T, ControlError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        tokio::select! {
            result = self.repeat(doing, statement) => result,
            () = async { self.stop.cancelled().await; tokio::time::sleep(STOP_LIMIT).await } => Err(ControlError::Stopped { doing }),
        }
    }

    async fn repeat<T, F>(&self, doing: &'static str, mut statement: impl FnMut() -> F) -> Result<T, ControlError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let started = Instant::now();
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(2))
            .with_jitter()
            .without_max_times()
            .build();
        loop {
            let answer = tokio::time::timeout(ANSWER_LIMIT, statement()).await;
            let answer = answer.unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer within 60 s"))));
            match answer.map_err(ControlError::statement(doing)) {
                Ok(value) => return Ok(value),
                Err(error) if error.consequence() == Consequence::Retry && started.elapsed() < self.retry_limit => {
                    tracing::warn!(waiting_seconds = started.elapsed().as_secs(), "PostgreSQL cannot be reached ({doing}); trying again");
                    tokio::time::sleep(pauses.next().unwrap_or_default()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
