//! What the chunks of a run that are done come to together.

use sqlx::Row as _;

use super::{Control, ControlError};
use crate::model::{Compared, Tally};

impl Control {
    /// The sum over all chunks that are done.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn tally(&self, run: i64) -> Result<Tally, ControlError> {
        let row = self
            .persist("adding the chunks up", async || {
                sqlx::query(
                    "select array[sum(sessions), sum(rows_read), sum(messages_migrated), sum(expired_by_interval), sum(expired_by_ttl),
                        sum(superseded), sum(trimmed), sum(quarantined), sum(orphan_messages), sum(invalid_contexts)]::int8[]
                     from tbmq_migrate.chunk where run_id = $1 and state = 'done'",
                )
                .persistent(false)
                .bind(run)
                .fetch_one(&self.pool)
                .await
            })
            .await?;
        let sums: Vec<Option<i64>> = row.get(0);
        let sum = |at: usize| sums.get(at).copied().flatten().and_then(|sum| u64::try_from(sum).ok()).unwrap_or(0);
        Ok(Tally {
            sessions: sum(0),
            rows_read: sum(1),
            messages_migrated: sum(2),
            expired_by_interval: sum(3),
            expired_by_ttl: sum(4),
            superseded: sum(5),
            trimmed: sum(6),
            quarantined: sum(7),
            orphan_messages: sum(8),
            invalid_contexts: sum(9),
        })
    }

    /// The sum of what the chunks of a comparison came to.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn compared(&self, run: i64) -> Result<Compared, ControlError> {
        let row = self
            .persist("adding the chunks up", async || {
                sqlx::query(
                    "select array[sum(sessions_compared), sum(messages_compared), sum(differing_sessions), sum(not_checked), sum(unlisted_findings)]::int8[]
                     from tbmq_migrate.chunk where run_id = $1 and state = 'done'",
                )
                .persistent(false)
                .bind(run)
                .fetch_one(&self.pool)
                .await
            })
            .await?;
        let sums: Vec<Option<i64>> = row.get(0);
        let sum = |at: usize| sums.get(at).copied().flatten().and_then(|sum| u64::try_from(sum).ok()).unwrap_or(0);
        Ok(Compared { sessions: sum(0), messages: sum(1), differing_sessions: sum(2), not_checked: sum(3), unlisted_findings: sum(4) })
    }
}
