//! `repair`: the sessions that a comparison found to differ, copied again.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::exit::ExitCode;
use super::failure::Failure;
use super::report::grouped;
use super::{arguments, report, signals, stdout, verify, with_example};
use crate::config::{Command, Config, RepairConfig};
use crate::control::{ControlError, missing_grants};
use crate::observe::progress::{Progress, Sample};
use crate::verify::{Fate, Named, Plan, Planned, Problem, Repair, RepairReport, VerifyError};

const EXAMPLE: &[&str] = &[
    "tbmq-migrate repair --tbmq-env tb-mqtt-broker.env --report findings.jsonl",
    "tbmq-migrate repair --tbmq-env tb-mqtt-broker.env --report findings.jsonl --execute",
];
/// Sessions that are listed as text; JSON has all of them.
const LISTED: usize = 200;

/// The command and its options.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new("repair")
        .about("Show what the sessions named in a report of verify would get; with --execute, copy them again and compare them")
        .args(arguments::of(Command::Repair));
    with_example(command, EXAMPLE)
}

/// Runs the command.
///
/// # Errors
/// What kept the repair from its end, with the exit code for it.
pub async fn run(config: Config, settings: RepairConfig) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    signals::stop_on_signals(stop.clone())?;
    let json = config.target.output.json;
    let named = Named::read(&settings.report).map_err(|problem| failure(VerifyError::Refused(problem)))?;
    if named.is_empty() {
        stdout::write(&match (json, settings.execute) {
            (false, _) => "nothing to repair\n".to_owned(),
            (true, false) => report::json(&Plan::default())?,
            (true, true) => report::json(&RepairReport::default())?,
        })?;
        return Ok(ExitCode::Done);
    }
    let repair = Repair::prepare(&config, &settings, named, stop).await.map_err(failure)?;
    if !settings.execute {
        let plan = repair.plan().await.map_err(failure)?;
        stdout::write(&if json { report::json(&plan)? } else { plan_text(&plan) })?;
        return Ok(ExitCode::Done);
    }
    let meter = Arc::clone(&repair.meter);
    let sample = move || Sample { rows: meter.rows(), sessions: meter.sessions() };
    let progress = Progress::start(&config.target.output, "repairing", None, sample);
    let result = repair.execute().await;
    drop(progress);
    finish(&result.map_err(failure)?, json)
}

/// Prints the report; the code that it ends with.
fn finish(report: &RepairReport, json: bool) -> Result<ExitCode, Failure> {
    stdout::write(&if json { report::json(report)? } else { text(report) })?;
    Ok(match report {
        report if !report.still_differing.is_empty() => ExitCode::Different,
        RepairReport { not_checked: 1.., .. } => ExitCode::NotChecked,
        report if report.tally.anything_quarantined() => ExitCode::Quarantined,
        _ => ExitCode::Done,
    })
}

fn text(report: &RepairReport) -> String {
    let count = |length: usize| grouped(u64::try_from(length).unwrap_or(u64::MAX));
    let rows = [
        ("sessions named", grouped(report.sessions_named)),
        ("  repaired", grouped(report.sessions_repaired)),
        ("  removed", grouped(report.sessions_removed)),
        ("  left alone", count(report.left_alone.len())),
        ("messages written", grouped(report.tally.messages_migrated)),
        ("messages removed that nothing referred to", grouped(report.stray_messages_removed)),
        ("sessions still differing", count(report.still_differing.len())),
        ("sessions not checked", grouped(report.not_checked)),
        ("rows that cannot be carried", grouped(report.tally.quarantined)),
        ("seconds", format!("{:.1}", report.elapsed_seconds)),
    ];
    let mut text = String::new();
    // Writing to a String cannot fail.
    for left in report.left_alone.iter().take(LISTED) {
        let _ = writeln!(text, "{:?} left alone: {}", left.client_id, left.reason.reason());
    }
    for unequal in report.still_differing.iter().take(LISTED) {
        let _ = writeln!(text, "{:?} differs: {}", unequal.client_id, unequal.findings.join(", "));
    }
    let most = report.left_alone.len().max(report.still_differing.len());
    if most > LISTED {
        let _ = writeln!(text, "not all are listed here: --json lists all");
    }
    text + &report::table(&rows, &report.next_steps)
}

fn plan_text(plan: &Plan) -> String {
    let mut text = "plan, nothing was changed\n".to_owned();
    for Planned { client_id, findings, fate } in plan.sessions.iter().take(LISTED) {
        let _ = writeln!(text, "{client_id:?} ({}): {}", findings.join(", "), words(fate));
    }
    if let Some(more @ 1..) = plan.sessions.len().checked_sub(LISTED) {
        let _ = writeln!(text, "and {} more sessions: --json lists all", grouped(u64::try_from(more).unwrap_or(u64::MAX)));
    }
    let of =
        |wanted: fn(&Fate) -> bool| grouped(u64::try_from(plan.sessions.iter().filter(|session| wanted(&session.fate)).count()).unwrap_or(u64::MAX));
    let rows = [
        ("sessions to replace", of(|fate| matches!(fate, Fate::Replace { .. }))),
        ("sessions to remove", of(|fate| matches!(fate, Fate::Remove))),
        ("sessions to leave alone", of(|fate| matches!(fate, Fate::LeaveAlone { .. }))),
    ];
    text + &report::table(&rows, &plan.next_steps)
}

fn words(fate: &Fate) -> String {
    match fate {
        Fate::Replace { messages_migrated, expired_by_interval, expired_by_ttl, superseded, trimmed, quarantined, last_packet_id } => {
            let mut words = format!("{} messages to write", grouped(*messages_migrated));
            let others = [
                ("expired", expired_by_interval + expired_by_ttl),
                ("superseded", *superseded),
                ("trimmed", *trimmed),
                ("quarantined", *quarantined),
            ];
            for (name, count) in others.into_iter().filter(|(_, count)| *count > 0) {
                let _ = write!(words, ", {} {name}", grouped(count));
            }
            match last_packet_id {
                Some(last) => words + &format!(", last packet id {last}"),
                None => words + ", no last packet id",
            }
        }
        Fate::Remove => "removed (PostgreSQL does not know it)".to_owned(),
        Fate::LeaveAlone { reason } => format!("left alone: {}", reason.reason()),
    }
}

/// An error of a repair with its exit code and hint: unlike a comparison it needs the control schema, and may be run again.
fn failure(error: VerifyError) -> Failure {
    let hint = match &error {
        VerifyError::Refused(Problem::Control(ControlError::Prepare { database, role, exists, .. })) => Some(missing_grants(database, role, *exists)),
        VerifyError::Interrupted { .. } => Some("run the same command again: what is done already is done once more".to_owned()),
        VerifyError::Refused(_) | VerifyError::Stuck { .. } => return verify::failure(error),
    };
    let code = match error {
        VerifyError::Interrupted { .. } => ExitCode::Interrupted,
        VerifyError::Refused(_) | VerifyError::Stuck { .. } => ExitCode::Refused,
    };
    let failure = Failure::from_error(code, &error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
