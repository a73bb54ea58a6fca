//! What a person asks about a context, and no rule needs.

use sqlx::{AssertSqlSafe, PgConnection};

use super::{SourceError, Tables};

impl Tables {
    /// When the broker last changed the context of a session, in ms since the epoch; `None` where there is no context, or
    /// the schema has no such column.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn last_updated(&self, connection: &mut PgConnection, client: &str) -> Result<Option<i64>, SourceError> {
        if !self.contexts.has("last_updated_time") {
            return Ok(None);
        }
        let sql = format!("select last_updated_time::int8 from {} where client_id = $1", self.contexts.name);
        let found: Option<Option<i64>> = sqlx::query_scalar(AssertSqlSafe(sql))
            .persistent(false)
            .bind(client)
            .fetch_optional(connection)
            .await
            .map_err(SourceError::statement("asking when a session changed last"))?;
        Ok(found.flatten())
    }
}
