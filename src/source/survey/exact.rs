//! Counts over all rows, where the tables are small enough for it.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::{Storage, glance};
use crate::source::{SourceError, Tables};

/// A full scan reads this much in well below a second; a larger table is judged by a sample alone.
const MOST_HEAP_BYTES: i64 = 256 * 1024 * 1024;

/// Sessions or rows of a kind: how many, and some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// How many there are.
    pub count: i64,
    /// The client ids of the first three.
    pub examples: Vec<String>,
}

/// Counted, not estimated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exact {
    /// Sessions whose id is empty or begins with `}` (contract rule 7).
    pub unservable: Named,
    /// Sessions whose last packet id is above the given one.
    pub near_wrap: Named,
    /// Rows with a larger payload than the given one.
    pub oversized: Named,
    /// Sessions with more rows than the given limit.
    pub over_limit: Named,
    /// Rows beyond it, whatever else would become of them.
    pub rows_over_limit: i64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Borders {
    /// A last packet id above this one is near its wrap.
    pub last_packet_id: i32,
    /// A payload of more bytes is oversized.
    pub payload_bytes: i64,
    /// A session of more rows is over the limit.
    pub session_rows: i64,
}

impl Exact {
    /// Counts; `None` where a table is too large for it.
    ///
    /// # Errors
    /// A statement that failed or took longer than a few seconds.
    pub async fn count(
        connection: &mut PgConnection,
        tables: &Tables,
        storage: &[Storage; 2],
        borders: Borders,
    ) -> Result<Option<Self>, SourceError> {
        if storage.iter().any(|table| table.heap_bytes > MOST_HEAP_BYTES) {
            return Ok(None);
        }
        let Borders { last_packet_id, payload_bytes, session_rows } = borders;
        let (messages, contexts) = (&tables.messages.name, &tables.contexts.name);
        let of =
            |rows: &str| format!("select count(*), (array_agg(id order by id))[1:3] from (select distinct client_id::text as id from {rows}) found");
        let unservable = of(&format!(
            "(select client_id from {messages} union select client_id from {contexts}) both_tables where client_id = '' or client_id like '}}%'"
        ));
        let near_wrap = of(&format!("{contexts} where last_packet_id > {last_packet_id}"));
        let oversized =
            format!("select count(*), (array_agg(distinct client_id::text))[1:3] from {messages} where octet_length(payload) > {payload_bytes}");
        let over_limit = format!(
            "select count(*), (array_agg(id order by rows desc))[1:3], coalesce(sum(rows - {session_rows}), 0)::int8
             from (select client_id::text as id, count(*) as rows from {messages} group by client_id having count(*) > {session_rows}) sessions"
        );
        let (over_limit, rows_over_limit) = counted(connection, &over_limit).await?;
        Ok(Some(Self {
            over_limit,
            rows_over_limit,
            unservable: named(connection, &unservable).await?,
            near_wrap: named(connection, &near_wrap).await?,
            oversized: named(connection, &oversized).await?,
        }))
    }
}

async fn named(connection: &mut PgConnection, sql: &str) -> Result<Named, SourceError> {
    Ok(counted(connection, sql).await?.0)
}

/// What a count comes to, and the third column where there is one.
async fn counted(connection: &mut PgConnection, sql: &str) -> Result<(Named, i64), SourceError> {
    glance(connection, async |connection| {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false).fetch_one(connection).await;
        let row = row.map_err(SourceError::statement("counting sessions"))?;
        let examples = row.get::<Option<Vec<String>>, _>(1).unwrap_or_default();
        Ok((Named { count: row.get(0), examples }, if row.len() > 2 { row.get(2) } else { 0 }))
    })
    .await
}
