//! What a repair came to, and what to do next.

use serde::Serialize;

use super::jobs::Outcome;
use super::{Left, Repair};
use crate::model::{Compared, Tally};

/// Everything that the end of a repair tells; the names are those of the JSON document.
#[derive(Debug, Default, Serialize)]
pub struct RepairReport {
    /// Sessions that the report names.
    pub sessions_named: u64,
    /// Sessions that were copied again.
    pub sessions_repaired: u64,
    /// Sessions that PostgreSQL does not know, and that went.
    pub sessions_removed: u64,
    /// Messages that nothing referred to, and that went.
    pub stray_messages_removed: u64,
    /// Sessions that stayed as they were.
    pub left_alone: Vec<LeftAlone>,
    /// Sessions that differ, by the comparison afterwards; those left alone among them.
    pub still_differing: Vec<Unequal>,
    /// Sessions that never held still for long enough.
    pub not_checked: u64,
    /// What became of the rows of the sessions copied.
    #[serde(flatten)]
    pub tally: Tally,
    /// Wall-clock time.
    pub elapsed_seconds: f64,
    /// The number of the run in the control schema; null where nothing was to be done.
    pub run: Option<i64>,
    /// What to do now.
    pub next_steps: Vec<String>,
}

/// A session that stayed as it was.
#[derive(Debug, Serialize)]
pub struct LeftAlone {
    /// Its exact id.
    pub client_id: String,
    /// Why.
    pub reason: Left,
}

/// A session that differs.
#[derive(Debug, Serialize)]
pub struct Unequal {
    /// Its exact id.
    pub client_id: String,
    /// The kinds of the differences.
    pub findings: Vec<&'static str>,
}

impl RepairReport {
    pub(super) fn new(repair: &Repair, outcome: Outcome, tally: Tally, compared: Compared, run: i64) -> Self {
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let mut report = Self {
            sessions_named: count(repair.named.0.len()),
            sessions_repaired: tally.sessions,
            sessions_removed: count(outcome.removed.len()),
            stray_messages_removed: outcome.strays_removed,
            left_alone: outcome.left.into_iter().map(|(client_id, reason)| LeftAlone { client_id, reason }).collect(),
            still_differing: outcome
                .differing
                .into_iter()
                .map(|(client_id, kinds)| Unequal { client_id, findings: kinds.iter().map(|kind| kind.name()).collect() })
                .collect(),
            not_checked: compared.not_checked,
            tally,
            elapsed_seconds: (repair.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
            run: Some(run),
            next_steps: Vec::new(),
        };
        report.next_steps = report.advice();
        report
    }

    fn advice(&self) -> Vec<String> {
        let mut steps: Vec<String> = super::advice(self.left_alone.iter().map(|left| left.reason)).collect();
        if self.still_differing.len() > self.left_alone.len() {
            steps.push(
                "sessions differ also after the repair: who writes to Redis? Compare again, and look at one with tbmq-migrate explain CLIENT_ID"
                    .to_owned(),
            );
        }
        if self.not_checked > 0 {
            steps.push("sessions that never held still are not known to be equal: compare again, with a longer --settle-timeout".to_owned());
        }
        if self.tally.anything_quarantined() {
            steps.push(
                "rows that cannot be carried stay in PostgreSQL alone: list them with tbmq-migrate migrate --dry-run --quarantine-file FILE"
                    .to_owned(),
            );
        }
        steps.push("compare all sessions: tbmq-migrate verify".to_owned());
        steps
    }
}
