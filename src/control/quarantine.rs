//! Rows that cannot be carried: written down as they are found, counted for good only with their chunk.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt as _;
use serde::Serialize;

use super::{Control, ControlError};
use crate::model::ClientId;

/// One row that cannot be carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantinedRow {
    /// The exact client id.
    pub client_id: String,
    /// `None` for a context.
    pub serial_number: Option<i64>,
    /// The stable name of the reason.
    pub reason: String,
}

/// Rows gathered before they are written.
const BUFFERED_ROWS: usize = 500;

/// Where the rows of one chunk go.
#[derive(Debug)]
pub enum Quarantine {
    /// Into the control schema, under their chunk.
    Recorded {
        /// Where.
        control: Control,
        /// The run.
        run: i64,
        /// The chunk.
        chunk: i64,
        /// Not yet written.
        buffer: Vec<QuarantinedRow>,
    },
    /// Into a file as JSON lines, where nothing is recorded. A chunk that is read twice writes its lines twice.
    File {
        /// Shared by all jobs.
        file: Arc<Mutex<File>>,
    },
    /// Nowhere: only counted.
    Counted,
}

impl Quarantine {
    /// Adds a row.
    ///
    /// # Errors
    /// A failed statement or a full disk.
    pub async fn add(&mut self, client: &ClientId, serial_number: Option<i64>, reason: &'static str) -> Result<(), ControlError> {
        let row = QuarantinedRow { client_id: client.as_str().to_owned(), serial_number, reason: reason.to_owned() };
        match self {
            Self::Recorded { buffer, .. } => {
                buffer.push(row);
                if buffer.len() >= BUFFERED_ROWS { self.flush().await } else { Ok(()) }
            }
            Self::File { file } => {
                let mut file = file.lock().map_err(|_| file_error(std::io::Error::other("the file is in an unknown state")))?;
                write_line(&mut file, &row).map_err(file_error)
            }
            Self::Counted => Ok(()),
        }
    }

    /// Writes what is gathered.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn flush(&mut self) -> Result<(), ControlError> {
        let Self::Recorded { control, run, chunk, buffer } = self else { return Ok(()) };
        if buffer.is_empty() {
            return Ok(());
        }
        let clients: Vec<&str> = buffer.iter().map(|row| row.client_id.as_str()).collect();
        let serials: Vec<Option<i64>> = buffer.iter().map(|row| row.serial_number).collect();
        let reasons: Vec<&str> = buffer.iter().map(|row| row.reason.as_str()).collect();
        control
            .persist("writing the quarantine list", async || {
                // A repeated row, after a lost reply, is the same row.
                sqlx::query(
                    "insert into tbmq_migrate.quarantine (run_id, chunk_id, client_id, serial_number, reason)
                     select $1, $2, q.client_id, q.serial_number, q.reason from unnest($3::text[], $4::int8[], $5::text[]) q (client_id, serial_number, reason)
                     where not exists (select from tbmq_migrate.quarantine o where o.chunk_id = $2 and o.client_id = q.client_id
                         and o.serial_number is not distinct from q.serial_number and o.reason = q.reason)",
                )
                .persistent(false)
                .bind(*run)
                .bind(*chunk)
                .bind(&clients)
                .bind(&serials)
                .bind(&reasons)
                .execute(&control.pool)
                .await
            })
            .await?;
        buffer.clear();
        Ok(())
    }
}

impl Control {
    /// Writes the quarantine list of a run into a file, one JSON object a line, as a stream.
    ///
    /// # Errors
    /// A failed statement or a full disk.
    pub async fn write_quarantine(&self, run: i64, file: &mut File) -> Result<(), ControlError> {
        let doing = "reading the quarantine list";
        let mut rows = sqlx::query_as::<_, (String, Option<i64>, String)>(
            "select client_id, serial_number, reason from tbmq_migrate.quarantine where run_id = $1 order by client_id, serial_number",
        )
        .persistent(false)
        .bind(run)
        .fetch(&self.pool);
        while let Some((client_id, serial_number, reason)) = rows.try_next().await.map_err(ControlError::statement(doing))? {
            write_line(file, &QuarantinedRow { client_id, serial_number, reason }).map_err(file_error)?;
        }
        Ok(())
    }
}

fn write_line(file: &mut File, row: &QuarantinedRow) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(row)?;
    line.push(b'\n');
    file.write_all(&line)
}

pub(super) fn file_error(error: std::io::Error) -> ControlError {
    ControlError::File(error)
}
