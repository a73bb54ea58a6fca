//! Chunks: claimed by one process at a time, recorded when every reply in them was checked.

use sqlx::{Postgres, Row as _, Transaction};

use super::{Control, ControlError};
use crate::model::{Compared, Tally};
use crate::source::{Part, PlannedChunk, Scope};

/// A claimed chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its number.
    pub id: i64,
    /// Which sessions.
    pub scope: Scope,
    /// 1 for the first claim; above it something of the chunk may stand in Redis already.
    pub attempts: i32,
}

impl Chunk {
    /// Tries before this one. A part of the chunk that this try has not come to was touched in those alone.
    pub fn earlier_attempts(&self) -> i32 {
        self.attempts - 1
    }
}

/// What a chunk came to.
#[derive(Debug, Clone)]
pub struct FinishedChunk {
    /// What became of its rows.
    pub tally: Tally,
    /// What a comparison of it came to; nothing of that in a copy.
    pub compared: Compared,
    /// What it covers: less than it was to, when its time was over before its end.
    pub covered: Scope,
    /// What is left for chunks of their own then.
    pub rest: Vec<Scope>,
}

impl Control {
    /// Takes the next chunk: an open one, or one whose worker is dead, or one of this worker that is not in `held` (the
    /// reply to its claim was lost). Nobody else gets it. What is about Redis alone comes when everything else is done. `None`: nothing is to be had at this moment.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn claim(&self, run: i64, worker: i64, held: &[i64]) -> Result<Option<Chunk>, ControlError> {
        let row = self
            .persist("claiming a chunk", async || {
                let mut transaction = self.pool.begin().await?;
                let row = sqlx::query(
                    "update tbmq_migrate.chunk set state = 'claimed', worker_id = $2, attempts = attempts + 1
                     where id = (
                         select c.id from tbmq_migrate.chunk c where c.run_id = $1
                           and exists (select from tbmq_migrate.run r where r.id = $1 and r.state in ('copying', 'finishing'))
                           and (c.part <> 'target_only'
                             or not exists (select from tbmq_migrate.chunk o where o.run_id = $1 and o.id <> c.id and o.state <> 'done'))
                           and (c.state = 'open' or c.state = 'claimed' and (
                             c.worker_id = $2 and not c.id = any($3)
                             or c.worker_id is null
                             or exists (select from tbmq_migrate.worker w where w.id = c.worker_id and w.expires_at <= clock_timestamp())))
                         order by c.attempts, c.id limit 1 for update skip locked)
                     returning id, lower_id, upper_id, clients, part, attempts",
                )
                .persistent(false)
                .bind(run)
                .bind(worker)
                .bind(held)
                .fetch_optional(&mut *transaction)
                .await?;
                if let Some(row) = &row {
                    // Its rows are read again, and say again which of them cannot be carried, or differ.
                    for list in ["delete from tbmq_migrate.quarantine where chunk_id = $1", "delete from tbmq_migrate.finding where chunk_id = $1"] {
                        sqlx::query(list).persistent(false).bind(row.get::<i64, _>(0)).execute(&mut *transaction).await?;
                    }
                }
                transaction.commit().await?;
                Ok(row)
            })
            .await?;
        Ok(row.map(|row| {
            let part = Part::from_name(row.get(4)).unwrap_or(Part::All);
            Chunk { id: row.get(0), scope: Scope { lower: row.get(1), upper: row.get(2), listed: row.get(3), part }, attempts: row.get(5) }
        }))
    }

    /// Records a chunk as done, and its rest as chunks of their own, in one step.
    ///
    /// # Errors
    /// [`ControlError::LeaseLost`] when the chunk went to another worker.
    pub async fn finish_chunk(&self, run: i64, worker: i64, chunk: &Chunk, finished: &FinishedChunk) -> Result<(), ControlError> {
        let recorded = self
            .persist("recording a chunk", async || {
                let mut transaction = self.pool.begin().await?;
                let (tally, compared) = (&finished.tally, &finished.compared);
                let mut query = sqlx::query(
                    "update tbmq_migrate.chunk set state = 'done', done_at = clock_timestamp(), sessions = $3, rows_read = $4, messages_migrated = $5,
                        expired_by_interval = $6, expired_by_ttl = $7, superseded = $8, trimmed = $9, quarantined = $10, orphan_messages = $11,
                        invalid_contexts = $12, sessions_compared = $13, messages_compared = $14, differing_sessions = $15, not_checked = $16,
                        unlisted_findings = $17, lower_id = $18, part = $19
                     where id = $1 and worker_id = $2 and state = 'claimed'",
                )
                .persistent(false)
                .bind(chunk.id)
                .bind(worker);
                for count in [
                    tally.sessions,
                    tally.rows_read,
                    tally.messages_migrated,
                    tally.expired_by_interval,
                    tally.expired_by_ttl,
                    tally.superseded,
                    tally.trimmed,
                    tally.quarantined,
                    tally.orphan_messages,
                    tally.invalid_contexts,
                    compared.sessions,
                    compared.messages,
                    compared.differing_sessions,
                    compared.not_checked,
                    compared.unlisted_findings,
                ] {
                    query = query.bind(i64::try_from(count).unwrap_or(i64::MAX));
                }
                query = query.bind(&finished.covered.lower).bind(finished.covered.part.name());
                if query.execute(&mut *transaction).await?.rows_affected() == 1 {
                    for rest in &finished.rest {
                        let planned = PlannedChunk { scope: rest.clone(), estimated_rows: None };
                        insert_chunk(&mut transaction, run, &planned, chunk.earlier_attempts()).await?;
                    }
                    transaction.commit().await?;
                    return Ok(true);
                }
                // Done already: the reply to an earlier try was lost.
                sqlx::query_scalar("select exists (select from tbmq_migrate.chunk where id = $1 and worker_id = $2 and state = 'done')")
                    .persistent(false)
                    .bind(chunk.id)
                    .bind(worker)
                    .fetch_one(&mut *transaction)
                    .await
            })
            .await?;
        if recorded { Ok(()) } else { Err(ControlError::LeaseLost { run }) }
    }

    /// Gives a chunk back that was not done; `attempts` is what counts of the tries so far.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn release_chunk(&self, worker: i64, chunk: i64, attempts: i32) -> Result<(), ControlError> {
        self.persist("giving a chunk back", async || {
            sqlx::query("update tbmq_migrate.chunk set state = 'open', worker_id = null, attempts = $3 where id = $1 and worker_id = $2 and state = 'claimed'")
                .persistent(false)
                .bind(chunk)
                .bind(worker)
                .bind(attempts)
                .execute(&self.pool)
                .await
        })
        .await
        .map(drop)
    }

    /// Whether every chunk of a run is done.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn all_done(&self, run: i64) -> Result<bool, ControlError> {
        self.persist("looking for open chunks", async || {
            sqlx::query_scalar("select not exists (select from tbmq_migrate.chunk where run_id = $1 and state <> 'done')")
                .persistent(false)
                .bind(run)
                .fetch_one(&self.pool)
                .await
        })
        .await
    }

    /// The rows that the chunks not yet done are estimated to hold, and the chunks done; for a progress display.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn estimated_rows(&self, run: i64) -> Result<Option<u64>, ControlError> {
        let sum: Option<i64> = self
            .persist("estimating what is left", async || {
                sqlx::query_scalar("select sum(estimated_rows)::int8 from tbmq_migrate.chunk where run_id = $1 and state <> 'done'")
                    .persistent(false)
                    .bind(run)
                    .fetch_one(&self.pool)
                    .await
            })
            .await?;
        Ok(sum.and_then(|sum| u64::try_from(sum).ok()))
    }
}

/// `attempts` is how often its sessions may have been written before it became a chunk of its own.
pub(super) async fn insert_chunk(
    transaction: &mut Transaction<'_, Postgres>,
    run: i64,
    chunk: &PlannedChunk,
    attempts: i32,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into tbmq_migrate.chunk (run_id, lower_id, upper_id, clients, part, estimated_rows, attempts) values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .persistent(false)
    .bind(run)
    .bind(&chunk.scope.lower)
    .bind(&chunk.scope.upper)
    .bind(&chunk.scope.listed)
    .bind(chunk.scope.part.name())
    .bind(chunk.estimated_rows.and_then(|rows| i64::try_from(rows).ok()))
    .bind(attempts)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
