//! What a copy keeps beside its chunks: where the shards note what is done, and whether somebody else wrote meanwhile.

use super::{Control, ControlError};

impl Control {
    /// Stores where the shards note finished chunks, unless another process has done so; the keys that count come back.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn set_journal(&self, run: i64, keys: &[String]) -> Result<Vec<String>, ControlError> {
        self.persist("storing the journal", async || {
            sqlx::query_scalar(
                "update tbmq_migrate.run set journal = case when journal = '{}' then $2 else journal end where id = $1 returning journal",
            )
            .persistent(false)
            .bind(run)
            .bind(keys)
            .fetch_one(&self.pool)
            .await
        })
        .await
    }

    /// Records that the journal of a run is gone from Redis: nothing of the run is left to do.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn close_journal(&self, run: i64) -> Result<(), ControlError> {
        self.persist("closing a journal", async || {
            sqlx::query("update tbmq_migrate.run set journal = '{}' where id = $1").persistent(false).bind(run).execute(&self.pool).await
        })
        .await
        .map(drop)
    }

    /// Notes that somebody else wrote to the tables.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn note_writers(&self, run: i64) -> Result<(), ControlError> {
        self.persist("noting writers", async || {
            sqlx::query("update tbmq_migrate.run set writers_seen = true where id = $1").persistent(false).bind(run).execute(&self.pool).await
        })
        .await
        .map(drop)
    }

    /// Whether somebody else was seen to write to the tables.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn writers_seen(&self, run: i64) -> Result<bool, ControlError> {
        self.persist("asking for writers", async || {
            sqlx::query_scalar("select writers_seen from tbmq_migrate.run where id = $1").persistent(false).bind(run).fetch_one(&self.pool).await
        })
        .await
    }
}
