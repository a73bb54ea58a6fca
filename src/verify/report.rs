//! What a comparison came to, and what to do next.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::control::FindingCounts;
use crate::model::{Compared, FindingKind, Tally};

/// Everything that the end of a comparison tells; the names are those of the JSON document.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Sessions that stand on either side and were looked at, those not checked included.
    pub sessions_compared: u64,
    /// Messages that must be in Redis, of the sessions that were checked.
    pub messages_compared: u64,
    /// Sessions without a difference.
    pub equal_sessions: u64,
    /// Sessions with at least one.
    pub differing_sessions: u64,
    /// Sessions that never held still for long enough.
    pub not_checked: u64,
    /// How many there are of each kind; kinds without any are left out.
    pub findings: BTreeMap<&'static str, u64>,
    /// Findings beyond those that are listed one by one.
    pub unlisted_findings: u64,
    /// Rows that cannot be carried, and so are not in Redis; null without PostgreSQL.
    pub quarantined: Option<u64>,
    /// Contexts that cannot be carried; null without PostgreSQL.
    pub invalid_contexts: Option<u64>,
    /// `full`, `count`, or `redis_only`.
    pub level: &'static str,
    /// The share of the sessions that was looked at, such as `5%`; null: all of them, or those that were named.
    pub sample: Option<String>,
    /// Wall-clock time of this call.
    pub elapsed_seconds: f64,
    /// Messages compared by this call, by its time.
    pub messages_per_second: f64,
    /// When the comparison began, where this call went on with an interrupted one.
    pub begun_at: Option<String>,
    /// The number of the run in the control schema; null where nothing is recorded.
    pub run: Option<i64>,
    /// What to do now.
    pub next_steps: Vec<String>,
}

/// What is told beside the counts.
pub(super) struct Circumstances {
    pub level: &'static str,
    pub sample: Option<String>,
    pub run: Option<i64>,
    pub begun_at: Option<String>,
    pub report_file: Option<String>,
    pub elapsed: Duration,
    /// Messages of this call.
    pub messages: u64,
}

impl Report {
    pub(super) fn new(tally: Option<&Tally>, compared: &Compared, counts: &FindingCounts, circumstances: Circumstances) -> Self {
        let elapsed_seconds = circumstances.elapsed.as_secs_f64();
        // Lossless: counts of messages are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let messages_per_second = if elapsed_seconds > 0.0 { (circumstances.messages as f64 / elapsed_seconds).round() } else { 0.0 };
        Self {
            sessions_compared: compared.sessions,
            messages_compared: compared.messages,
            equal_sessions: compared.sessions.saturating_sub(compared.differing_sessions + compared.not_checked),
            differing_sessions: compared.differing_sessions,
            not_checked: compared.not_checked,
            findings: counts.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
            unlisted_findings: compared.unlisted_findings,
            quarantined: tally.map(|tally| tally.quarantined),
            invalid_contexts: tally.map(|tally| tally.invalid_contexts),
            level: circumstances.level,
            sample: circumstances.sample.clone(),
            elapsed_seconds: (elapsed_seconds * 1000.0).round() / 1000.0,
            messages_per_second,
            begun_at: circumstances.begun_at.clone(),
            run: circumstances.run,
            next_steps: next_steps(tally, compared, counts, &circumstances),
        }
    }

    /// Whether rows cannot be carried.
    pub fn anything_quarantined(&self) -> bool {
        self.quarantined.unwrap_or(0) > 0 || self.invalid_contexts.unwrap_or(0) > 0
    }
}

fn next_steps(tally: Option<&Tally>, compared: &Compared, counts: &FindingCounts, circumstances: &Circumstances) -> Vec<String> {
    let mut steps = Vec::new();
    let differs = compared.differing_sessions > 0;
    if differs {
        steps.push(match (&circumstances.report_file, tally) {
            (Some(path), Some(_)) => format!("see what a repair would do: tbmq-migrate repair --report {path}"),
            (Some(path), None) => format!("look at the findings: {path}"),
            (None, _) => "write the findings into a file: run again with --report FILE".to_owned(),
        });
        if tally.is_some() {
            steps.push("look at one session: tbmq-migrate explain CLIENT_ID".to_owned());
        }
    }
    if counts.contains_key(&FindingKind::ForeignType) {
        steps.push("keys of another type are somebody else's: find out whose, before anything is done about them".to_owned());
    }
    if compared.not_checked > 0 {
        steps.push("sessions that never held still are not known to be equal: run again, with a longer --settle-timeout".to_owned());
    }
    if tally.is_some_and(Tally::anything_quarantined) {
        steps.push(
            "rows that cannot be carried stay in PostgreSQL alone: list them with tbmq-migrate migrate --dry-run --quarantine-file FILE".to_owned(),
        );
    }
    if let Some(share) = &circumstances.sample {
        steps.push(format!("only {share} of the sessions were looked at: compare all of them before you rely on it"));
    }
    if circumstances.level == "count" {
        steps.push("messages were counted and not compared: run with --level full before you rely on it".to_owned());
    }
    steps
}
