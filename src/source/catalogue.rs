//! What the database has: the two tables, their columns, and whether this role may read them.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use super::connection::APPLICATION;
use super::{Source, SourceError};

/// The two tables of a 1.x broker, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// `device_publish_msg`.
    pub messages: Table,
    /// `device_session_ctx`.
    pub contexts: Table,
    /// Of ten thousand sessions, only this many; `None`: all.
    pub sample: Option<u16>,
}

/// One table, by its identity and not only by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Schema and name, quoted for SQL.
    pub name: String,
    /// Its OID.
    pub oid: u32,
    /// The collation of `client_id` for an `order by` over other columns, quoted; `None` for the database's own.
    pub collation: Option<String>,
    columns: Vec<String>,
}

impl Table {
    /// Whether the table has the column: older schemas lack the later ones.
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

/// What the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As the server names it, such as `15.18`.
    pub version: String,
    /// The same as a number, such as 150018.
    pub version_number: i32,
    /// A standby takes no writes, so it can hold no progress.
    pub in_recovery: bool,
    /// The role that is logged in.
    pub role: String,
    /// The database.
    pub database: String,
}

const MESSAGE_COLUMNS: [&str; 10] =
    ["client_id", "serial_number", "topic", "time", "packet_id", "packet_type", "qos", "payload", "user_properties", "retain"];
const CONTEXT_COLUMNS: [&str; 3] = ["client_id", "last_serial_number", "last_packet_id"];

/// PostgreSQL 12: the oldest on which the statements here mean the same.
const OLDEST_VERSION: i32 = 120_000;

impl Server {
    /// Asks the server who it is, and refuses one that is too old.
    ///
    /// # Errors
    /// [`SourceError::TooOld`] below PostgreSQL 12.
    pub async fn read(connection: &mut PgConnection) -> Result<Self, SourceError> {
        let server = Self::observe(connection).await?;
        server.check()?;
        Ok(server)
    }

    /// Asks the server who it is, of whatever age.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn observe(connection: &mut PgConnection) -> Result<Self, SourceError> {
        let row = sqlx::query(
            "select current_setting('server_version_num')::int4, split_part(current_setting('server_version'), ' ', 1),
                    pg_is_in_recovery(), current_user::text, current_database()::text",
        )
        .persistent(false)
        .fetch_one(connection)
        .await
        .map_err(SourceError::statement("asking for the server's version"))?;
        Ok(Self { version: row.get(1), version_number: row.get(0), in_recovery: row.get(2), role: row.get(3), database: row.get(4) })
    }

    /// Whether the statements here mean on it what they should.
    ///
    /// # Errors
    /// [`SourceError::TooOld`] below PostgreSQL 12.
    pub fn check(&self) -> Result<(), SourceError> {
        if self.version_number < OLDEST_VERSION { Err(SourceError::TooOld { version: self.version.clone() }) } else { Ok(()) }
    }
}

impl Server {
    /// A digest of a set of client ids, whatever their order: 16 hexadecimal digits of a SHA-256.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn digest(&self, connection: &mut PgConnection, clients: &[String]) -> Result<String, SourceError> {
        let mut sorted: Vec<&str> = clients.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        // The length before each id: no two lists give one text.
        let text: String = sorted.iter().map(|id| format!("{}:{id}", id.len())).collect();
        sqlx::query_scalar("select left(encode(sha256($1::bytea), 'hex'), 16)")
            .persistent(false)
            .bind(text.into_bytes())
            .fetch_one(connection)
            .await
            .map_err(SourceError::statement("making a digest of the named sessions"))
    }
}

impl Tables {
    /// Reads the catalogue.
    ///
    /// # Errors
    /// A missing table or column, a missing right to read, and a text index that may be out of order.
    pub async fn read(connection: &mut PgConnection, source: &Source) -> Result<Self, SourceError> {
        let [messages, contexts] = Self::find(connection, source).await?;
        Self::of(connection, messages?, contexts?).await
    }

    /// `device_publish_msg` and `device_session_ctx`, each as it is or with what is wrong with it.
    ///
    /// # Errors
    /// A schema that the role may not look into.
    pub async fn find(connection: &mut PgConnection, source: &Source) -> Result<[Result<Table, SourceError>; 2], SourceError> {
        if let Some(schema) = source.schema() {
            check_usage(connection, schema).await?;
        }
        let messages = Table::read(connection, source, "device_publish_msg", &MESSAGE_COLUMNS).await;
        let contexts = Table::read(connection, source, "device_session_ctx", &CONTEXT_COLUMNS).await;
        Ok([messages, contexts])
    }

    /// The two tables with the order in which they are read.
    ///
    /// # Errors
    /// A text index that may be out of order.
    pub async fn of(connection: &mut PgConnection, mut messages: Table, mut contexts: Table) -> Result<Self, SourceError> {
        let names = [messages.name.clone(), contexts.name.clone()];
        for table in [&mut messages, &mut contexts] {
            table.collation = Table::collation(connection, table.oid, &table.name, &names).await?;
        }
        Ok(Self { messages, contexts, sample: None })
    }
}

/// Looking a name up in a schema that the role may not use is an error that names neither the role nor the grant.
async fn check_usage(connection: &mut PgConnection, schema: &str) -> Result<(), SourceError> {
    let row: Option<(String, bool)> =
        sqlx::query_as("select current_user::text, has_schema_privilege(oid, 'usage') from pg_namespace where nspname = $1")
            .persistent(false)
            .bind(schema)
            .fetch_optional(connection)
            .await
            .map_err(SourceError::statement("looking the schema up"))?;
    match row {
        Some((role, false)) => Err(SourceError::MissingUsage { role, schema: schema.to_owned() }),
        _ => Ok(()),
    }
}

/// Other schemas that hold a table of this name.
async fn elsewhere(connection: &mut PgConnection, name: &str) -> Result<Vec<String>, SourceError> {
    sqlx::query_scalar(
        "select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where c.relname = $1 and c.relkind in ('r', 'p') order by 1 limit 3",
    )
    .persistent(false)
    .bind(name)
    .fetch_all(connection)
    .await
    .map_err(SourceError::statement("looking for the broker's tables in other schemas"))
}

impl Table {
    async fn read(connection: &mut PgConnection, source: &Source, name: &str, needed: &[&'static str]) -> Result<Self, SourceError> {
        let asked = match source.schema() {
            Some(schema) => format!("{}.{name}", super::error::quoted(schema)),
            None => name.to_owned(),
        };
        let found = sqlx::query(
            "select c.oid, format('%I.%I', n.nspname, c.relname), c.relkind::text, current_user::text,
                    has_table_privilege(c.oid, 'select'),
                    array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped)
             from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)",
        )
        .persistent(false)
        .bind(&asked)
        .fetch_optional(&mut *connection)
        .await
        .map_err(SourceError::statement("looking the broker's tables up"))?;
        let Some(found) = found else {
            let elsewhere = elsewhere(connection, name).await?;
            return Err(SourceError::MissingTable { table: asked, place: source.place().to_owned(), elsewhere });
        };
        let (table, role): (String, String) = (found.get(1), found.get(3));
        if !matches!(found.get::<&str, _>(2), "r" | "p") {
            return Err(SourceError::NotATable { table });
        }
        let columns: Vec<String> = found.get(5);
        if let Some(column) = needed.iter().find(|column| !columns.iter().any(|name| name == *column)) {
            return Err(SourceError::MissingColumn { table, column });
        }
        if !found.get::<bool, _>(4) {
            return Err(SourceError::MissingRight { role, table });
        }
        let oid = found.get::<sqlx::postgres::types::Oid, _>(0).0;
        Ok(Self { name: table, oid, collation: None, columns })
    }

    /// The collation by which ranges of `client_id` are read; an index built with another version of it may skip rows.
    async fn collation(connection: &mut PgConnection, oid: u32, table: &str, both: &[String; 2]) -> Result<Option<String>, SourceError> {
        let doing = "reading the collation of client_id";
        let row = sqlx::query(
            "select case when l.collname = 'default' then null else format('%I.%I', n.nspname, l.collname) end,
                    l.collversion, pg_collation_actual_version(l.oid), l.collname = 'default', current_setting('server_version_num')::int4,
                    format('%I', current_database())
             from pg_attribute a join pg_collation l on l.oid = a.attcollation join pg_namespace n on n.oid = l.collnamespace
             where a.attrelid = $1::oid and a.attname = 'client_id'",
        )
        .persistent(false)
        .bind(sqlx::postgres::types::Oid(oid))
        .fetch_optional(&mut *connection)
        .await
        .map_err(SourceError::statement(doing))?;
        let Some(row) = row else { return Ok(None) };
        let mut versions: (Option<String>, Option<String>) = (row.get(1), row.get(2));
        // The database's own collation has its version in pg_database, since PostgreSQL 15.
        if row.get::<bool, _>(3) && row.get::<i32, _>(4) >= 150_000 {
            let own =
                sqlx::query("select datcollversion, pg_database_collation_actual_version(oid) from pg_database where datname = current_database()")
                    .persistent(false)
                    .fetch_one(connection)
                    .await
                    .map_err(SourceError::statement(doing))?;
            versions = (own.get(0), own.get(1));
        }
        let collation: Option<String> = row.get(0);
        match versions {
            (Some(recorded), Some(actual)) if recorded != actual => {
                let [one, other] = both;
                let refresh = match &collation {
                    Some(name) => format!("alter collation {name} refresh version;"),
                    None => format!("alter database {} refresh collation version;", row.get::<&str, _>(5)),
                };
                let mend = format!("reindex table concurrently {one}; reindex table concurrently {other}; {refresh}");
                Err(SourceError::CollationChanged { table: table.to_owned(), recorded, actual, mend })
            }
            _ => Ok(collation),
        }
    }
}

/// How many rows were ever inserted, updated and deleted, both tables together: when it moves, somebody writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteCount(pub i64);

/// PostgreSQL adds up what an idle session wrote after ten seconds; one more for a busy server.
const COUNT_DELAY_SECONDS: f64 = 11.0;

impl Tables {
    /// The statistics collector's counts, a second or so behind; `None` where the server does not count.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn write_count(&self, connection: &mut PgConnection) -> Result<Option<WriteCount>, SourceError> {
        let count: Option<i64> = sqlx::query_scalar(
            "select case when current_setting('track_counts')::bool then
                 sum(pg_stat_get_tuples_inserted(t.oid) + pg_stat_get_tuples_updated(t.oid) + pg_stat_get_tuples_deleted(t.oid))::int8 end
             from (select unnest($1::oid[]) as oid union select relid from unnest($1::oid[]) parent, pg_partition_tree(parent)) t",
        )
        .persistent(false)
        .bind(self.oids())
        .fetch_one(connection)
        .await
        .map_err(SourceError::statement("asking for the tables' write counts"))?;
        Ok(count.map(WriteCount))
    }

    /// How long until [`Self::write_count`] holds what other sessions have written by now; `None` when nobody else is connected.
    ///
    /// A session's last second goes into the counts when it has been idle for ten, or when it ends. What a session does is
    /// hidden from a role without the right to see it: then it counts as at work.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn count_delay(&self, connection: &mut PgConnection) -> Result<Option<Duration>, SourceError> {
        let seconds: Option<f64> = sqlx::query_scalar(
            "select max(case when state = 'idle' then $1 - extract(epoch from clock_timestamp() - state_change) else $1 end)::float8
             from pg_stat_activity
             where datname = current_database() and usesysid <> 0 and pid <> pg_backend_pid() and application_name <> $2",
        )
        .persistent(false)
        .bind(COUNT_DELAY_SECONDS)
        .bind(APPLICATION)
        .fetch_one(connection)
        .await
        .map_err(SourceError::statement("looking for other sessions"))?;
        Ok(seconds.filter(|&seconds| seconds > 0.0).map(Duration::from_secs_f64))
    }

    /// Of these client ids, those that have a row in neither table, as far as they belong to the sample.
    ///
    /// An id with a letter that the database's encoding lacks cannot be asked for, and cannot be there.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn unknown_of(&self, connection: &mut PgConnection, clients: &[&str]) -> Result<Vec<String>, SourceError> {
        match self.try_unknown_of(connection, clients).await {
            Err(error) if error.is_untranslatable() && clients.len() > 1 => {
                let (one, other) = clients.split_at(clients.len() / 2);
                let mut unknown = Box::pin(self.unknown_of(connection, one)).await?;
                unknown.extend(Box::pin(self.unknown_of(connection, other)).await?);
                Ok(unknown)
            }
            Err(error) if error.is_untranslatable() => Ok(clients.iter().map(|id| (*id).to_owned()).collect()),
            result => result,
        }
    }

    async fn try_unknown_of(&self, connection: &mut PgConnection, clients: &[&str]) -> Result<Vec<String>, SourceError> {
        let sql = format!(
            "select id from unnest($1::text[]) id where not exists (select from {} where client_id = id)
             and not exists (select from {} where client_id = id) and {}",
            self.contexts.name,
            self.messages.name,
            self.sample_condition("id").unwrap_or_else(|| "true".to_owned()),
        );
        // Each id by the index: a thousand ids are no reason to read a table.
        let mut transaction = connection.begin().await.map_err(SourceError::statement("looking sessions up"))?;
        let settings = "set transaction read only; set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off;
            set local max_parallel_workers_per_gather = 0; set local jit = off";
        sqlx::raw_sql(settings).execute(&mut *transaction).await.map_err(SourceError::statement("looking sessions up"))?;
        let unknown = sqlx::query_scalar(AssertSqlSafe(sql))
            .persistent(false)
            .bind(clients)
            .fetch_all(&mut *transaction)
            .await
            .map_err(SourceError::statement("looking sessions up"))?;
        transaction.commit().await.map_err(SourceError::statement("looking sessions up"))?;
        Ok(unknown)
    }

    /// Of these client ids, those that belong to the sample.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn in_sample(&self, connection: &mut PgConnection, clients: &[&str]) -> Result<Vec<String>, SourceError> {
        let Some(condition) = self.sample_condition("id") else { return Ok(clients.iter().map(|id| (*id).to_owned()).collect()) };
        sqlx::query_scalar(AssertSqlSafe(format!("select id from unnest($1::text[]) id where {condition}")))
            .persistent(false)
            .bind(clients)
            .fetch_all(connection)
            .await
            .map_err(SourceError::statement("choosing a sample"))
    }

    /// The condition that picks the sample: by a digest of the id, so that it is the same one each time and has nothing to
    /// do with the order of ids or with the slots of a cluster.
    pub(super) fn sample_condition(&self, column: &str) -> Option<String> {
        self.sample.map(|share| format!("('x' || left(md5({column}), 8))::bit(32)::bigint % 10000 < {share}"))
    }

    /// The transactions that may have written to the tables and have not ended yet, each by a name of its own with its pid.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn writers(&self, connection: &mut PgConnection) -> Result<Vec<String>, SourceError> {
        sqlx::query_scalar(
            "select distinct virtualtransaction || coalesce(' (pid ' || pid || ')', ' (prepared)') from pg_locks where locktype = 'relation' and relation = any($1::oid[]) and mode = 'RowExclusiveLock'
                 and granted and database = (select oid from pg_database where datname = current_database())",
        )
        .persistent(false)
        .bind(self.oids())
        .fetch_all(connection)
        .await
        .map_err(SourceError::statement("looking for writers"))
    }

    /// Whether both tables are empty.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn are_empty(&self, connection: &mut PgConnection) -> Result<bool, SourceError> {
        let sql = format!("select not exists (select from {}) and not exists (select from {})", self.messages.name, self.contexts.name);
        sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false).fetch_one(connection).await.map_err(SourceError::statement("looking for rows"))
    }

    pub(super) fn oids(&self) -> Vec<sqlx::postgres::types::Oid> {
        [self.messages.oid, self.contexts.oid].map(sqlx::postgres::types::Oid).to_vec()
    }
}
