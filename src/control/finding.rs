//! What a comparison found: gathered chunk by chunk, and written down with the chunk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;

use futures_util::TryStreamExt as _;
use serde::Serialize;

use super::quarantine::file_error;
use super::{Control, ControlError};
use crate::model::{Finding, FindingKind};

/// How many findings there are of each kind.
pub type FindingCounts = BTreeMap<FindingKind, u64>;

/// The findings of one chunk.
pub type Findings = Vec<Finding>;

/// One finding as a line of a report.
#[derive(Serialize)]
struct Line<'f> {
    client_id: &'f str,
    kind: &'f str,
    packet_id: Option<i32>,
    serial_number: Option<i64>,
    detail: &'f str,
}

/// Findings that one statement writes.
const ROWS_A_STATEMENT: usize = 500;

impl Control {
    /// Writes the findings of a chunk down. A claim of the chunk removes what an earlier try has written.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn write_findings(&self, run: i64, chunk: i64, findings: &[Finding]) -> Result<(), ControlError> {
        self.persist("writing the findings", async || {
            let mut transaction = self.pool.begin().await?;
            // Those of a try whose reply was lost.
            sqlx::query("delete from tbmq_migrate.finding where chunk_id = $1").persistent(false).bind(chunk).execute(&mut *transaction).await?;
            for page in findings.chunks(ROWS_A_STATEMENT) {
                sqlx::query(
                    "insert into tbmq_migrate.finding (run_id, chunk_id, client_id, kind, packet_id, serial_number, detail)
                     select $1, $2, f.* from unnest($3::text[], $4::text[], $5::int4[], $6::int8[], $7::text[]) f",
                )
                .persistent(false)
                .bind(run)
                .bind(chunk)
                .bind(page.iter().map(|finding| finding.client.as_str()).collect::<Vec<_>>())
                .bind(page.iter().map(|finding| finding.kind.name()).collect::<Vec<_>>())
                .bind(page.iter().map(|finding| finding.packet_id.map(i32::from)).collect::<Vec<_>>())
                .bind(page.iter().map(|finding| finding.serial_number).collect::<Vec<_>>())
                .bind(page.iter().map(|finding| finding.detail.as_str()).collect::<Vec<_>>())
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await
        })
        .await
    }

    /// How many findings of each kind the chunks of a run have that are done.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn finding_counts(&self, run: i64) -> Result<FindingCounts, ControlError> {
        let rows: Vec<(String, i64)> = self
            .persist("counting the findings", async || {
                sqlx::query_as(
                    "select kind, count(*) from tbmq_migrate.finding f
                     where run_id = $1 and exists (select from tbmq_migrate.chunk c where c.id = f.chunk_id and c.state = 'done') group by kind",
                )
                .persistent(false)
                .bind(run)
                .fetch_all(&self.pool)
                .await
            })
            .await?;
        Ok(rows.into_iter().filter_map(|(name, count)| Some((FindingKind::from_name(&name)?, u64::try_from(count).ok()?))).collect())
    }

    /// Writes the findings of a run into a file, one JSON object a line, as a stream.
    ///
    /// # Errors
    /// A failed statement or a full disk.
    pub async fn report_findings(&self, run: i64, file: &mut File) -> Result<(), ControlError> {
        let mut rows = sqlx::query_as::<_, (String, String, Option<i32>, Option<i64>, String)>(
            "select client_id, kind, packet_id, serial_number, detail from tbmq_migrate.finding f
             where run_id = $1 and exists (select from tbmq_migrate.chunk c where c.id = f.chunk_id and c.state = 'done')
             order by client_id, serial_number nulls first, packet_id, kind",
        )
        .persistent(false)
        .bind(run)
        .fetch(&self.pool);
        while let Some((client_id, kind, packet_id, serial_number, detail)) =
            rows.try_next().await.map_err(ControlError::statement("reading the findings"))?
        {
            let line = Line { client_id: &client_id, kind: &kind, packet_id, serial_number, detail: &detail };
            write_line(file, &line).map_err(file_error)?;
        }
        Ok(())
    }
}

/// Appends findings to a file, one JSON object a line.
///
/// # Errors
/// A full disk.
pub fn append_findings(file: &mut File, findings: &[Finding]) -> Result<(), ControlError> {
    findings.iter().try_for_each(|finding| {
        let line = Line {
            client_id: finding.client.as_str(),
            kind: finding.kind.name(),
            packet_id: finding.packet_id.map(i32::from),
            serial_number: finding.serial_number,
            detail: &finding.detail,
        };
        write_line(file, &line).map_err(file_error)
    })
}

fn write_line(file: &mut File, line: &Line<'_>) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}
