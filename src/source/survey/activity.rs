//! Who else is at work on the server.

use sqlx::{PgConnection, Row as _};

use super::super::connection::APPLICATION;
use super::rows;
use crate::source::SourceError;

/// Sessions beside our own.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Sessions in this database by the name of their program.
    pub sessions: Vec<(String, i64)>,
    /// Transactions that are open, the oldest first, at most ten, in any database.
    pub transactions: Vec<OpenTransaction>,
    /// Whether the role sees those of others.
    pub all_seen: bool,
}

/// A transaction that has begun and not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTransaction {
    /// The process of the server; `None` for a prepared transaction, which has none.
    pub pid: Option<i32>,
    /// Who, by role and program; the identifier of a prepared one.
    pub owner: String,
    /// Since when.
    pub age_seconds: f64,
    /// Whether its client does nothing with it at this moment.
    pub idle: bool,
}

impl Activity {
    pub(super) async fn read(connection: &mut PgConnection) -> Result<Self, SourceError> {
        let doing = "looking at other sessions";
        let sessions = format!(
            "select coalesce(nullif(application_name, ''), '(no name)'), count(*) from pg_stat_activity
             where datname = current_database() and usesysid <> 0 and pid <> pg_backend_pid() and application_name <> '{APPLICATION}'
             group by 1 order by 2 desc, 1 limit 10"
        );
        let transactions = format!(
            "select pid, concat_ws(' of ', usename::text, nullif(application_name, '')), extract(epoch from clock_timestamp() - xact_start)::float8 as age,
                    state like 'idle in transaction%', pg_has_role('pg_read_all_stats', 'usage')
             from pg_stat_activity
             where xact_start is not null and backend_type = 'client backend' and pid <> pg_backend_pid() and application_name <> '{APPLICATION}'
             union all
             select null, gid, extract(epoch from clock_timestamp() - prepared)::float8, true, true from pg_prepared_xacts
             order by age desc limit 10"
        );
        let named = rows(connection, doing, &sessions, None).await?;
        let open = rows(connection, doing, &transactions, None).await?;
        let all_seen = rows(connection, doing, "select pg_has_role('pg_read_all_stats', 'usage')", None).await?;
        Ok(Self {
            sessions: named.iter().map(|row| (row.get(0), row.get(1))).collect(),
            transactions: open
                .iter()
                .map(|row| OpenTransaction { pid: row.get(0), owner: row.get(1), age_seconds: row.get(2), idle: row.get(3) })
                .collect(),
            all_seen: all_seen.first().is_some_and(|row| row.get(0)),
        })
    }
}
