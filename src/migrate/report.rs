//! What a run came to, and what to do next.

use std::time::Duration;

use serde::Serialize;

use crate::config::OnExisting;
use crate::model::Tally;

/// Everything that the end of a run tells; the names are those of the JSON document.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Counts of the whole run, by whatever process and in whatever call.
    #[serde(flatten)]
    pub tally: Tally,
    /// Wall-clock time of this call.
    pub elapsed_seconds: f64,
    /// Rows read by this call, by its time.
    pub rows_per_second: f64,
    /// Rows that an earlier call, or another process, had counted; 0 for a run in one go.
    pub rows_of_other_calls: u64,
    /// Sessions removed from Redis that PostgreSQL does not know.
    pub sessions_removed: u64,
    /// Whether somebody else wrote to the two tables meanwhile; null where the server does not count writes.
    pub source_changed: Option<bool>,
    /// True when nothing was written.
    pub dry_run: bool,
    /// The number of the run in the control schema; null where nothing is recorded.
    pub run: Option<i64>,
    /// What to do now.
    pub next_steps: Vec<String>,
}

/// What the steps depend on beside the counts.
pub(super) struct Circumstances {
    pub run: Option<i64>,
    pub dry_run: bool,
    pub source_changed: Option<bool>,
    pub sessions_removed: u64,
    pub standing: bool,
    pub on_existing: OnExisting,
    pub listed: bool,
    pub quarantine_file: Option<String>,
}

impl Report {
    pub(super) fn new(tally: Tally, rows_of_this_call: u64, elapsed: Duration, circumstances: Circumstances) -> Self {
        let elapsed_seconds = elapsed.as_secs_f64();
        // Lossless: counts of rows are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let rows_per_second = if elapsed_seconds > 0.0 { (rows_of_this_call as f64 / elapsed_seconds).round() } else { 0.0 };
        Self {
            tally,
            elapsed_seconds: (elapsed_seconds * 1000.0).round() / 1000.0,
            rows_per_second,
            rows_of_other_calls: tally.rows_read.saturating_sub(rows_of_this_call),
            sessions_removed: circumstances.sessions_removed,
            source_changed: circumstances.source_changed,
            dry_run: circumstances.dry_run,
            run: circumstances.run,
            next_steps: next_steps(&tally, &circumstances),
        }
    }
}

fn next_steps(tally: &Tally, circumstances: &Circumstances) -> Vec<String> {
    let mut steps = Vec::new();
    if tally.anything_quarantined() {
        steps.push(match (circumstances.run, &circumstances.quarantine_file) {
            (_, Some(path)) => format!("look at the rows that could not be carried: {path}"),
            (Some(run), None) => format!("look at the rows that could not be carried: select * from tbmq_migrate.quarantine where run_id = {run};"),
            (None, None) => "name the rows that could not be carried with --quarantine-file FILE".to_owned(),
        });
    }
    if tally.trimmed > 0 {
        steps.push("trimmed rows were beyond --message-limit; check that it is the limit of the 2.x broker".to_owned());
    }
    if circumstances.dry_run {
        steps.push(match circumstances.standing && circumstances.on_existing == OnExisting::Refuse {
            true => "sessions stand in Redis already: the copy itself will refuse without --on-existing replace".to_owned(),
            false => "nothing was written: run again without --dry-run".to_owned(),
        });
    }
    match circumstances.source_changed {
        Some(true) => steps.push(
            "rows changed while they were read, so Redis does not hold one moment's state: stop the 1.x brokers and run again with --on-existing replace; \
             where they cannot be stopped, dual-write is the mode that follows them (not in this version)"
                .to_owned(),
        ),
        None => steps.push(
            "PostgreSQL does not count writes (track_counts is off): make sure that no 1.x broker wrote meanwhile, or run again with --on-existing replace".to_owned(),
        ),
        Some(false) => {}
    }
    if !circumstances.dry_run {
        steps.push("compare both sides: tbmq-migrate verify, with the same settings".to_owned());
    }
    if !circumstances.dry_run && !circumstances.listed && circumstances.source_changed == Some(false) {
        steps.push("keep the 1.x brokers stopped: what they write from now on is not in Redis".to_owned());
        steps.push(
            "before TBMQ's own upgrade runs, set the rows of both tables aside and leave the tables there, empty: it would import them again on top"
                .to_owned(),
        );
    }
    steps
}
