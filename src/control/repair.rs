//! A repair: it writes alone, neither beside a copy nor beside another repair.

use super::run::read_open;
use super::{Control, ControlError, OpenRun, RunKind, RunState};

impl Control {
    /// Begins a repair, unless another repair is at work, or a copy is at work or was interrupted: that one comes back then.
    /// A repair whose process died is forgotten: there is nothing to go on with. The lease has to be taken next, and then
    /// [`Control::repair_stands_alone`] asked.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn begin_repair(&self, settings: &str) -> Result<Result<i64, OpenRun>, ControlError> {
        self.persist("beginning a repair", async || {
            let mut transaction = self.pool.begin().await?;
            // It also waits for a lease that is being taken: that refers to its run.
            sqlx::raw_sql("lock table tbmq_migrate.run in exclusive mode").execute(&mut *transaction).await?;
            if let Some(copy) = read_open(&mut transaction, RunKind::Migrate).await?.filter(|copy| copy.run.state != RunState::Finished) {
                return Ok(Err(copy));
            }
            if let Some(repair) = read_open(&mut transaction, RunKind::Repair).await? {
                if !repair.workers.is_empty() {
                    return Ok(Err(repair));
                }
                sqlx::query("update tbmq_migrate.run set state = 'forgotten', finished_at = clock_timestamp() where id = $1")
                    .persistent(false)
                    .bind(repair.run.id)
                    .execute(&mut *transaction)
                    .await?;
            }
            let id: i64 = sqlx::query_scalar("insert into tbmq_migrate.run (command, settings) values ($1, $2) returning id")
                .persistent(false)
                .bind(RunKind::Repair.name())
                .bind(settings)
                .fetch_one(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(Ok(id))
        })
        .await
    }

    /// Whether a repair may write, once its lease is taken: nobody has begun anything between its begin and its lease. From
    /// here on others see the lease.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn repair_stands_alone(&self, run: i64) -> Result<bool, ControlError> {
        self.persist("looking for other runs", async || {
            sqlx::query_scalar(
                "select exists (select from tbmq_migrate.run where id = $1 and state = 'copying')
                    and not exists (select from tbmq_migrate.run where command = 'migrate' and state in ('copying', 'finishing'))",
            )
            .persistent(false)
            .bind(run)
            .fetch_one(&self.pool)
            .await
        })
        .await
    }

    /// Whether something was written after this comparison began, by a later copy or by a repair: then what it has found
    /// says nothing any more.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn is_outdated(&self, run: i64) -> Result<bool, ControlError> {
        self.persist("looking for a later copy", async || {
            sqlx::query_scalar(
                "select exists (select from tbmq_migrate.run later, tbmq_migrate.run this where this.id = $1
                    and (later.command in ('migrate', 'repair') and later.id > $1
                         or later.command = 'repair' and later.finished_at > this.started_at))",
            )
            .persistent(false)
            .bind(run)
            .fetch_one(&self.pool)
            .await
        })
        .await
    }
}
