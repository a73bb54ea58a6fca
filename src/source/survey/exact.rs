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
    /// Of sessions over the limit: rows beyond it, whatever else would become of them.
    pub rows_beyond: i64,
}

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum Uncounted {
    /// It would take a full scan of a table of this size.
    #[error("the table is too large to be read as a whole")]
    TooLarge,
    /// The statement failed, or took longer than a few seconds.
    #[error(transparent)]
    Failed(#[from] SourceError),
}

/// Counted, not estimated.
#[derive(Debug)]
pub struct Exact {
    /// Sessions whose id is empty or begins with `}` (contract rule 7).
    pub unservable: Result<Named, Uncounted>,
    /// Sessions whose last packet id is above the given one.
    pub near_wrap: Result<Named, Uncounted>,
    /// Rows with a larger payload than the given one.
    pub oversized: Result<Named, Uncounted>,
    /// Sessions with more rows than the given limit.
    pub over_limit: Result<Named, Uncounted>,
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
    /// Counts what can be counted.
    pub async fn count(connection: &mut PgConnection, tables: &Tables, storage: &[Storage; 2], borders: Borders) -> Self {
        let Borders { last_packet_id, payload_bytes, session_rows } = borders;
        let (messages, contexts) = (&tables.messages.name, &tables.contexts.name);
        let [rows_fit, contexts_fit] = storage.each_ref().map(|table| table.heap_bytes <= MOST_HEAP_BYTES);
        let of = |rows: &str| {
            format!("select count(*), (array_agg(id order by id))[1:3], 0::int8 from (select distinct client_id::text as id from {rows}) found")
        };
        let unservable = of(&format!(
            "(select client_id from {messages} union select client_id from {contexts}) both_tables where client_id = '' or client_id like '}}%'"
        ));
        let near_wrap = of(&format!("{contexts} where last_packet_id > {last_packet_id}"));
        let oversized = format!(
            "select count(*), (array_agg(distinct client_id::text))[1:3], 0::int8 from {messages} where octet_length(payload) > {payload_bytes}"
        );
        let over_limit = format!(
            "select count(*), (array_agg(id order by rows desc))[1:3], coalesce(sum(rows - {session_rows}), 0)::int8
             from (select client_id::text as id, count(*) as rows from {messages} group by client_id having count(*) > {session_rows}) sessions"
        );
        Self {
            unservable: named(connection, rows_fit && contexts_fit, &unservable).await,
            near_wrap: named(connection, contexts_fit, &near_wrap).await,
            oversized: named(connection, rows_fit, &oversized).await,
            over_limit: named(connection, rows_fit, &over_limit).await,
        }
    }
}

async fn named(connection: &mut PgConnection, fits: bool, sql: &str) -> Result<Named, Uncounted> {
    if !fits {
        return Err(Uncounted::TooLarge);
    }
    let counted = glance(connection, async |connection| {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false).fetch_one(connection).await;
        let row = row.map_err(SourceError::statement("counting sessions"))?;
        Ok(Named { count: row.get(0), examples: row.get::<Option<Vec<String>>, _>(1).unwrap_or_default(), rows_beyond: row.get(2) })
    });
    Ok(counted.await?)
}
