//! Reading one chunk: a short, read-only snapshot in which each session comes whole and newest first.
//!
//! The primary key is read backwards, so rows stream and no session is sorted or held. The planner would not choose that
//! by itself (it prefers a parallel scan and a sort on the source's disk, for each chunk), hence the settings.

use std::hash::{Hash as _, Hasher};
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgRow, PgValueRef};
use sqlx::{AssertSqlSafe, PgConnection, Row as _, ValueRef as _};

use super::{Scope, SourceError, Tables};
use crate::model::{ContextRow, MessageRow};

/// A stream that gives no row for this long has lost its server: a row of the largest size takes a fraction of it.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// No statement or idle limit of the role may end the transaction: Redis, a rate limit or a full memory may hold it up,
/// and its length is bounded by the chunk time.
///
/// A `SQL_ASCII` database may hold text that is not UTF-8: sent as it is, it is a row to quarantine; sent as UTF-8, as
/// the driver asks for, it would be an error that ends the chunk. Any other encoding is converted.
const BEGIN: &str = "begin isolation level repeatable read read only;
    set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local lock_timeout = '10s';
    set local enable_sort = off; set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_hashjoin = off; set local enable_nestloop = off;
    set local max_parallel_workers_per_gather = 0; set local jit = off;
    select set_config('client_encoding', 'SQL_ASCII', true) where getdatabaseencoding() = 'SQL_ASCII'";

/// One open chunk: a transaction on a connection of its own.
#[derive(Debug)]
pub struct ChunkReader<'c> {
    connection: &'c mut PgConnection,
    tables: &'c Tables,
}

/// Rows of a chunk, one at a time.
pub struct Rows<'r>(BoxStream<'r, Result<PgRow, sqlx::Error>>);

/// A row of `device_publish_msg` with its context, if there is one.
pub struct JoinedRow(PgRow);

/// A context without rows.
pub struct LoneContext(PgRow);

impl<'c> ChunkReader<'c> {
    /// Takes the snapshot.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn begin(connection: &'c mut PgConnection, tables: &'c Tables) -> Result<Self, SourceError> {
        answered("taking a snapshot", sqlx::raw_sql(BEGIN).execute(&mut *connection)).await?;
        Ok(Self { connection, tables })
    }

    /// The same for a glance at a server that others work on: no statement runs for longer than some seconds.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn begin_glance(connection: &'c mut PgConnection, tables: &'c Tables) -> Result<Self, SourceError> {
        let reader = Self::begin(connection, tables).await?;
        let limit = sqlx::raw_sql("set local statement_timeout = '10s'").execute(&mut *reader.connection);
        answered("taking a snapshot", limit).await?;
        Ok(reader)
    }

    /// The rows of the scope, by falling client id and falling serial number.
    pub fn messages(&mut self, scope: &Scope) -> Rows<'_> {
        self.rows(&self.tables.message_sql(scope), scope)
    }

    /// The contexts of the scope that have no row, by falling client id.
    pub fn lone_contexts(&mut self, scope: &Scope) -> Rows<'_> {
        self.rows(&self.tables.lone_context_sql(scope), scope)
    }

    /// Ends the transaction; it never wrote anything.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn end(self) -> Result<(), SourceError> {
        answered("ending a snapshot", sqlx::raw_sql("commit").execute(self.connection)).await.map(drop)
    }

    fn rows(&mut self, sql: &str, scope: &Scope) -> Rows<'_> {
        let mut query = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false);
        for bound in [&scope.lower, &scope.upper].into_iter().flatten() {
            query = query.bind(bound.clone());
        }
        if let Some(clients) = &scope.listed {
            query = query.bind(clients.clone());
        }
        Rows(query.fetch(&mut *self.connection))
    }
}

impl Tables {
    /// The statement for [`ChunkReader::messages`]; its columns are those that [`JoinedRow`] reads, by position.
    ///
    /// The contexts are a subquery in the order of the rows: the planner would not read their index backwards for a join
    /// by itself, and sorts them, or looks each one up.
    pub(super) fn message_sql(&self, scope: &Scope) -> String {
        let column = |name: &str, kind: &str| match self.messages.has(name) {
            true => format!("m.{name}::{kind}"),
            false => format!("null::{kind}"),
        };
        format!(
            "select m.client_id::text, m.serial_number::int8, m.topic::text, m.time::int8, m.packet_id::int4, m.packet_type::text, m.qos::int4,
                    m.payload::bytea, m.user_properties::text, m.retain::bool, {}, {}, {}, {}, {},
                    c.client_id is not null, c.last_serial_number::int8, c.last_packet_id::int4
             from {messages} m left join (select client_id, last_serial_number, last_packet_id from {contexts} where {range}
                 order by client_id desc offset 0) c on c.client_id = m.client_id
             where {range_of_messages} order by m.client_id desc, m.serial_number desc",
            column("msg_expiry_interval", "int4"),
            column("payload_format_indicator", "int4"),
            column("content_type", "text"),
            column("response_topic", "text"),
            column("correlation_data", "bytea"),
            messages = self.messages.name,
            contexts = self.contexts.name,
            range = self.condition(scope, "client_id"),
            range_of_messages = self.condition(scope, "m.client_id"),
        )
    }

    /// The condition on a column with client ids: the scope, and the sample where one was asked for.
    fn condition(&self, scope: &Scope, column: &str) -> String {
        match self.sample_condition(column) {
            Some(sample) => format!("{} and {sample}", scope.condition(column)),
            None => scope.condition(column),
        }
    }

    fn lone_context_sql(&self, scope: &Scope) -> String {
        format!(
            "select c.client_id::text, c.last_serial_number::int8, c.last_packet_id::int4 from {contexts} c
             left join (select client_id from {messages} where {range} order by client_id desc, serial_number desc offset 0) m on m.client_id = c.client_id
             where {range_of_contexts} and m.client_id is null order by c.client_id desc",
            messages = self.messages.name,
            contexts = self.contexts.name,
            range = self.condition(scope, "client_id"),
            range_of_contexts = self.condition(scope, "c.client_id"),
        )
    }
}

impl Scope {
    /// The condition on a column with client ids, with its parameters from $1 on: lower bound, upper bound, list, as far
    /// as given.
    fn condition(&self, column: &str) -> String {
        let mut parameter = 0;
        let mut conditions = Vec::new();
        let given = [(self.lower.is_some(), ">= $", ""), (self.upper.is_some(), "< $", ""), (self.listed.is_some(), "= any($", "::text[])")];
        for (_, comparison, end) in given.into_iter().filter(|(given, ..)| *given) {
            parameter += 1;
            conditions.push(format!("{column} {comparison}{parameter}{end}"));
        }
        if conditions.is_empty() { "true".to_owned() } else { conditions.join(" and ") }
    }
}

/// Waits for the answer to a statement, but not for ever.
async fn answered<T>(doing: &'static str, statement: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, SourceError> {
    match tokio::time::timeout(STALL_LIMIT, statement).await {
        Ok(answer) => answer.map_err(SourceError::statement(doing)),
        Err(_) => Err(SourceError::Stalled { doing, seconds: STALL_LIMIT.as_secs() }),
    }
}

impl Rows<'_> {
    /// The next row with its context.
    ///
    /// # Errors
    /// A failed statement, or no row for a minute.
    pub async fn next_message(&mut self) -> Result<Option<JoinedRow>, SourceError> {
        Ok(self.next("reading messages").await?.map(JoinedRow))
    }

    /// The next context without rows.
    ///
    /// # Errors
    /// A failed statement, or no row for a minute.
    pub async fn next_context(&mut self) -> Result<Option<LoneContext>, SourceError> {
        Ok(self.next("reading contexts").await?.map(LoneContext))
    }

    async fn next(&mut self, doing: &'static str) -> Result<Option<PgRow>, SourceError> {
        let mut next = self.0.try_next();
        // A row that is here already needs no timer.
        if let Poll::Ready(row) = futures_util::poll!(&mut next) {
            return row.map_err(SourceError::statement(doing));
        }
        answered(doing, next).await
    }
}

impl JoinedRow {
    /// The bytes of the client id.
    ///
    /// # Errors
    /// A NULL, which the primary key forbids.
    pub fn client(&self) -> Result<&[u8], SourceError> {
        client(&self.0, "device_publish_msg")
    }

    /// The columns of the message.
    ///
    /// # Errors
    /// A value whose form is not that of its column type.
    pub fn message(&self) -> Result<MessageRow<'_>, SourceError> {
        let read = Columns { row: &self.0, table: "device_publish_msg" };
        Ok(MessageRow {
            serial_number: read.int8(1, "serial_number")?.ok_or(read.form("serial_number"))?,
            topic: read.bytes(2, "topic")?,
            time: read.int8(3, "time")?,
            packet_id: read.int4(4, "packet_id")?,
            packet_type: read.bytes(5, "packet_type")?,
            qos: read.int4(6, "qos")?,
            payload: read.bytes(7, "payload")?,
            user_properties: read.bytes(8, "user_properties")?,
            retain: read.bytes(9, "retain")?.map(|value| value == [1]),
            msg_expiry_interval: read.int4(10, "msg_expiry_interval")?,
            payload_format_indicator: read.int4(11, "payload_format_indicator")?,
            content_type: read.bytes(12, "content_type")?,
            response_topic: read.bytes(13, "response_topic")?,
            correlation_data: read.bytes(14, "correlation_data")?,
        })
    }

    /// Adds everything that was read of the row and its context to a digest: two rows that are alike give the same.
    pub fn digest(&self, digest: &mut impl Hasher) {
        for column in 0..self.0.len() {
            // A column that cannot be read is told elsewhere; here it counts as NULL.
            let value = self.0.try_get_raw(column).ok();
            value.as_ref().and_then(|value| value.as_bytes().ok()).hash(digest);
        }
    }

    /// The context of the session, if there is one.
    ///
    /// # Errors
    /// A value whose form is not that of its column type.
    pub fn context(&self) -> Result<Option<ContextRow>, SourceError> {
        let read = Columns { row: &self.0, table: "device_session_ctx" };
        if read.bytes(15, "client_id")? != Some(&[1]) {
            return Ok(None);
        }
        Ok(Some(ContextRow { last_serial_number: read.int8(16, "last_serial_number")?, last_packet_id: read.int4(17, "last_packet_id")? }))
    }
}

impl LoneContext {
    /// The bytes of the client id.
    ///
    /// # Errors
    /// A NULL, which the primary key forbids.
    pub fn client(&self) -> Result<&[u8], SourceError> {
        client(&self.0, "device_session_ctx")
    }

    /// The context.
    ///
    /// # Errors
    /// A value whose form is not that of its column type.
    pub fn context(&self) -> Result<ContextRow, SourceError> {
        let read = Columns { row: &self.0, table: "device_session_ctx" };
        Ok(ContextRow { last_serial_number: read.int8(1, "last_serial_number")?, last_packet_id: read.int4(2, "last_packet_id")? })
    }
}

fn client<'r>(row: &'r PgRow, table: &'static str) -> Result<&'r [u8], SourceError> {
    let read = Columns { row, table };
    read.bytes(0, "client_id")?.ok_or(read.form("client_id"))
}

/// Columns of a row in the binary form, without a copy: text stays bytes until the law has judged it.
struct Columns<'r> {
    row: &'r PgRow,
    table: &'static str,
}

impl<'r> Columns<'r> {
    fn form(&self, column: &'static str) -> SourceError {
        SourceError::Form { table: self.table, column }
    }

    fn bytes(&self, at: usize, column: &'static str) -> Result<Option<&'r [u8]>, SourceError> {
        let value: PgValueRef<'r> = self.row.try_get_raw(at).map_err(|_| self.form(column))?;
        if value.is_null() {
            return Ok(None);
        }
        value.as_bytes().map(Some).map_err(|_| self.form(column))
    }

    fn int8(&self, at: usize, column: &'static str) -> Result<Option<i64>, SourceError> {
        let Some(bytes) = self.bytes(at, column)? else { return Ok(None) };
        Ok(Some(i64::from_be_bytes(bytes.try_into().map_err(|_| self.form(column))?)))
    }

    fn int4(&self, at: usize, column: &'static str) -> Result<Option<i32>, SourceError> {
        let Some(bytes) = self.bytes(at, column)? else { return Ok(None) };
        Ok(Some(i32::from_be_bytes(bytes.try_into().map_err(|_| self.form(column))?)))
    }
}
