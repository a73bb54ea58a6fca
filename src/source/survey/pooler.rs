//! Whether a pooler stands between this program and the server.
//!
//! One that hands out a session of the server a transaction at a time has the last word on what a session keeps. It gives
//! itself away when two connections of ours turn out to be one session of the server, or one connection turns out to be
//! two. Settings are not tried for it: they would stay behind in a session that belongs to others.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use crate::source::{Source, SourceError};

/// A pooler with a single session for both of our connections lets the second one wait for the first.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// A pool of several sessions may give the right one by chance.
const ROUNDS: usize = 3;

pub(super) async fn is_in_the_path(source: &Source, first: &mut PgConnection) -> Result<bool, SourceError> {
    let mut second = source.connect().await?;
    let mut pooled = false;
    for _ in 0..ROUNDS {
        let own = session(first).await?;
        let doing = "comparing two sessions";
        sqlx::raw_sql("begin transaction read only").execute(&mut second).await.map_err(SourceError::statement(doing))?;
        let other = session(&mut second).await?;
        pooled = own == other
            || match tokio::time::timeout(ANSWER_LIMIT, session(&mut *first)).await {
                Ok(again) => again? != own,
                Err(_) => true,
            };
        sqlx::raw_sql("rollback").execute(&mut second).await.map_err(SourceError::statement(doing))?;
        if pooled {
            break;
        }
    }
    // The answer is known by now; a connection that does not close in order closes with the process.
    let _ = tokio::time::timeout(ANSWER_LIMIT, second.close()).await;
    Ok(pooled)
}

async fn session(connection: &mut PgConnection) -> Result<i32, SourceError> {
    let asked = sqlx::query_scalar("select pg_backend_pid()").persistent(false).fetch_one(connection).await;
    asked.map_err(SourceError::statement("comparing two sessions"))
}
