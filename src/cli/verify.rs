//! `verify`: the comparison of both sides.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::exit::ExitCode;
use super::failure::Failure;
use super::report::grouped;
use super::{arguments, report, signals, stdout, with_example};
use crate::config::{Command, Config, TargetConfig, VerifyConfig};
use crate::observe::progress::{Progress, Sample};
use crate::verify::{RedisOnly, Report, Verification, VerifyError};

const EXAMPLE: &[&str] =
    &["tbmq-migrate verify --tbmq-env tb-mqtt-broker.env --report findings.jsonl", "tbmq-migrate verify --sample 5% --level full"];

/// The command and its options.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new("verify")
        .about("Compare the sessions of PostgreSQL and Redis in both directions, also while brokers write; changes nothing")
        .args(arguments::of(Command::Verify));
    with_example(command, EXAMPLE)
}

/// Runs the command.
///
/// # Errors
/// What kept the comparison from its end, with the exit code for it.
pub async fn run(config: Config, settings: VerifyConfig) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    signals::stop_on_signals(stop.clone())?;
    let verification = Verification::prepare(&config, &settings, stop).await.map_err(failure)?;
    let meter = Arc::clone(&verification.meter);
    let sample = move || Sample { rows: meter.rows(), sessions: meter.sessions() };
    let progress = Progress::start(&config.target.output, "comparing", verification.estimated_rows(), sample);
    let result = verification.run().await;
    drop(progress);
    finish(&result.map_err(failure)?, config.target.output.json)
}

/// Runs the command without PostgreSQL.
///
/// # Errors
/// What kept it from its end, with the exit code for it.
pub async fn run_on_redis(config: TargetConfig, settings: VerifyConfig) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    signals::stop_on_signals(stop.clone())?;
    let look = RedisOnly::prepare(&config, &settings, stop).await.map_err(failure)?;
    let meter = Arc::clone(&look.meter);
    let progress = Progress::start(&config.output, "comparing", None, move || Sample { rows: meter.rows(), sessions: meter.sessions() });
    let result = look.run().await;
    drop(progress);
    finish(&result.map_err(failure)?, config.output.json)
}

/// Prints the report; the code that it ends with.
fn finish(report: &Report, json: bool) -> Result<ExitCode, Failure> {
    stdout::write(&if json { report::json(report)? } else { text(report) })?;
    Ok(match report {
        Report { differing_sessions: 1.., .. } => ExitCode::Different,
        Report { not_checked: 1.., .. } => ExitCode::NotChecked,
        report if report.anything_quarantined() => ExitCode::Quarantined,
        _ => ExitCode::Done,
    })
}

fn text(report: &Report) -> String {
    let mut rows = vec![
        ("sessions compared", grouped(report.sessions_compared)),
        ("  equal", grouped(report.equal_sessions)),
        ("  differing", grouped(report.differing_sessions)),
        ("  not checked", grouped(report.not_checked)),
        ("messages compared", grouped(report.messages_compared)),
    ];
    rows.extend(report.findings.iter().map(|(kind, count)| (*kind, grouped(*count))));
    if report.unlisted_findings > 0 {
        rows.push(("findings not listed", grouped(report.unlisted_findings)));
    }
    if let Some(quarantined) = report.quarantined {
        rows.push(("rows that cannot be carried", grouped(quarantined)));
    }
    if let Some(contexts @ 1..) = report.invalid_contexts {
        rows.push(("contexts that cannot be carried", grouped(contexts)));
    }
    rows.push(("seconds", format!("{:.1}", report.elapsed_seconds)));
    rows.push(("messages a second", format!("{:.0}", report.messages_per_second)));
    if let Some(begun_at) = &report.begun_at {
        rows.push(("begun at", begun_at.clone()));
    }
    report::table(&rows, &report.next_steps)
}

/// An error of a comparison with its exit code and hint.
pub(super) fn failure(error: VerifyError) -> Failure {
    let (code, hint) = match &error {
        VerifyError::Refused(problem) => (ExitCode::Refused, problem.hint()),
        VerifyError::Stuck { problem, resumable } => (ExitCode::Stuck, problem.hint_under_way(*resumable)),
        VerifyError::Interrupted { resumable: true } => {
            (ExitCode::Interrupted, Some("run the same command again: it goes on where it was".to_owned()))
        }
        VerifyError::Interrupted { resumable: false } => (ExitCode::Interrupted, Some("nothing was recorded: it begins again".to_owned())),
    };
    let failure = Failure::from_error(code, &error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
