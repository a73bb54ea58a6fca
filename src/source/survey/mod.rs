//! Facts about a server that others work on: what `check` needs to know, and nothing that costs the server much.
//!
//! Each question is a read-only transaction of its own with limits of a few seconds, so one that may not be asked, or that
//! takes too long, takes nothing else with it.

mod activity;
mod capture;
mod exact;
mod pooler;
mod storage;

use sqlx::postgres::PgRow;
use sqlx::postgres::types::Oid;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

pub use activity::{Activity, OpenTransaction};
pub use capture::{Capture, Publication};
pub use exact::{Borders, Exact, Named, Uncounted};
pub use storage::Storage;

use super::{PlannedChunk, Server, Source, SourceError, Table, Tables};
use crate::model::Millis;
use crate::observe::clock::{ClockReading, wall_clock};

const BEGIN: &str = "begin transaction read only; set local statement_timeout = '5s'; set local lock_timeout = '2s'";

/// What was seen of one server. What could not be seen is the error that says why.
#[derive(Debug)]
pub struct SourceFacts {
    /// Who it is.
    pub server: Server,
    /// `device_publish_msg` and `device_session_ctx`.
    pub tables: Result<[Result<Table, SourceError>; 2], SourceError>,
    /// Both, with the order in which they are read; only where both are there.
    pub ordered: Option<Result<Tables, SourceError>>,
    /// The files of the tables, in the same order; only where both are there.
    pub storage: Option<Result<[Storage; 2], SourceError>>,
    /// The settings.
    pub settings: Result<Settings, SourceError>,
    /// Who is logged in.
    pub role: Result<Role, SourceError>,
    /// The schema `tbmq_migrate`; `None` inside: it is not there.
    pub control_schema: Result<Option<ControlSchema>, SourceError>,
    /// What following changes needs.
    pub capture: Result<Capture, SourceError>,
    /// Publications that have the tables in them; only where both are there.
    pub publications: Option<Result<Vec<Publication>, SourceError>>,
    /// Who else is at work.
    pub activity: Result<Activity, SourceError>,
    /// Its clock.
    pub clock: Result<ClockReading, SourceError>,
    /// Whether two connections share one session of the server.
    pub pooled: Result<bool, SourceError>,
}

/// Settings of the server as this role meets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `hex` or `escape`.
    pub bytea_output: String,
    /// The encoding of the database.
    pub encoding: String,
    /// Whether every transaction is read-only unless it says otherwise.
    pub read_only: bool,
}

/// The role that is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// A superuser has every right.
    pub superuser: bool,
    /// May open a replication connection, by itself or by `rds_replication`.
    pub replication: bool,
    /// May create a schema or a publication in the database.
    pub creates: bool,
    /// Sees what other sessions do.
    pub sees_activity: bool,
}

/// What the role may do in the schema `tbmq_migrate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlSchema {
    /// Whether it may use it, and read and write all its tables.
    pub writable: bool,
    /// Whether it may look for an unfinished run.
    pub readable: bool,
}

impl SourceFacts {
    /// Asks everything, on one connection and a second one for the search for a pooler.
    ///
    /// # Errors
    /// The server cannot be reached, or does not say who it is.
    pub async fn read(source: &Source, connection: &mut PgConnection) -> Result<Self, SourceError> {
        let server = glance(connection, async |connection| Server::observe(connection).await).await?;
        let tables = glance(connection, async |connection| Tables::find(connection, source).await).await;
        let (mut ordered, mut storage, mut publications) = (None, None, None);
        if let Ok([Ok(messages), Ok(contexts)]) = &tables {
            let (messages, contexts) = (messages.clone(), contexts.clone());
            let oids = [messages.oid, contexts.oid].map(Oid).to_vec();
            ordered = Some(glance(connection, async move |connection| Tables::of(connection, messages, contexts).await).await);
            storage = Some(Storage::read(connection, &oids).await);
            publications = Some(Publication::read(connection, &server, &oids).await);
        }
        Ok(Self {
            settings: Settings::read(connection).await,
            role: Role::read(connection).await,
            control_schema: ControlSchema::read(connection).await,
            capture: Capture::read(connection).await,
            activity: Activity::read(connection).await,
            clock: clock(connection).await,
            pooled: pooler::is_in_the_path(source, connection).await,
            server,
            tables,
            ordered,
            storage,
            publications,
        })
    }
}

/// Asks in a transaction of its own, which is rolled back whatever came of it.
async fn glance<T>(connection: &mut PgConnection, question: impl AsyncFnOnce(&mut PgConnection) -> Result<T, SourceError>) -> Result<T, SourceError> {
    let doing = "looking at the server";
    sqlx::raw_sql(BEGIN).execute(&mut *connection).await.map_err(SourceError::statement(doing))?;
    let answer = question(&mut *connection).await;
    let ended = sqlx::raw_sql("rollback").execute(&mut *connection).await.map_err(SourceError::statement(doing));
    let answer = answer?;
    ended.map(|_| answer)
}

/// The rows of one statement in a transaction of its own; `oids`, where given, is its one parameter.
async fn rows(connection: &mut PgConnection, doing: &'static str, sql: &str, oids: Option<&[Oid]>) -> Result<Vec<PgRow>, SourceError> {
    glance(connection, async |connection| {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false);
        let query = match oids {
            Some(oids) => query.bind(oids.to_vec()),
            None => query,
        };
        query.fetch_all(connection).await.map_err(SourceError::statement(doing))
    })
    .await
}

/// The one row of such a statement.
async fn row(connection: &mut PgConnection, doing: &'static str, sql: &str) -> Result<PgRow, SourceError> {
    let rows = rows(connection, doing, sql, None).await?;
    rows.into_iter().next().ok_or(SourceError::Statement { doing, source: sqlx::Error::RowNotFound })
}

impl Settings {
    async fn read(connection: &mut PgConnection) -> Result<Self, SourceError> {
        let sql = "select current_setting('bytea_output'), getdatabaseencoding()::text, current_setting('default_transaction_read_only')::bool";
        let row = row(connection, "reading the server's settings", sql).await?;
        Ok(Self { bytea_output: row.get(0), encoding: row.get(1), read_only: row.get(2) })
    }
}

impl Role {
    async fn read(connection: &mut PgConnection) -> Result<Self, SourceError> {
        let sql = "select r.rolsuper,
                r.rolsuper or r.rolreplication or exists (select from pg_roles m where m.rolname = 'rds_replication' and pg_has_role(m.oid, 'usage')),
                has_database_privilege(current_database(), 'create'), pg_has_role('pg_read_all_stats', 'usage')
             from pg_roles r where r.rolname = current_user";
        let row = row(connection, "reading the rights of the role", sql).await?;
        Ok(Self { superuser: row.get(0), replication: row.get(1), creates: row.get(2), sees_activity: row.get(3) })
    }
}

impl ControlSchema {
    async fn read(connection: &mut PgConnection) -> Result<Option<Self>, SourceError> {
        let sql = "select has_schema_privilege(n.oid, 'usage') and has_schema_privilege(n.oid, 'create') and coalesce(bool_and(
                    has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                    and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete')), true),
                has_schema_privilege(n.oid, 'usage') and coalesce(bool_or(c.relname = 'run' and has_table_privilege(c.oid, 'select')), false)
             from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind = 'r'
             where n.nspname = 'tbmq_migrate' group by n.oid";
        let rows = rows(connection, "looking for the schema tbmq_migrate", sql, None).await?;
        Ok(rows.first().map(|row| Self { writable: row.get(0), readable: row.get(1) }))
    }
}

async fn clock(connection: &mut PgConnection) -> Result<ClockReading, SourceError> {
    let doing = "asking for the time";
    glance(connection, async |connection| {
        let before = wall_clock();
        let sql = "select floor(extract(epoch from clock_timestamp()) * 1000)::int8";
        let server: i64 = sqlx::query_scalar(sql).persistent(false).fetch_one(connection).await.map_err(SourceError::statement(doing))?;
        Ok(ClockReading { before, server: Millis(server), after: wall_clock() })
    })
    .await
}

impl Tables {
    /// [`Tables::plan`] with limits of a few seconds.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn plan_at_a_glance(&self, connection: &mut PgConnection) -> Result<Vec<PlannedChunk>, SourceError> {
        glance(connection, async |connection| self.plan(connection).await).await
    }
}
