//! `migrate`: the one-off copy.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::exit::ExitCode;
use super::failure::Failure;
use super::{arguments, report, signals, stdout, with_example};
use crate::config::{Command, Config, MigrateConfig};
use crate::migrate::{MigrateError, Migration};
use crate::observe::progress::{Progress, Sample};

const EXAMPLE: &[&str] = &[
    "tbmq-migrate migrate --tbmq-env tb-mqtt-broker.env --dry-run",
    "tbmq-migrate migrate --postgres-url postgres://tbmq@db/tbmq --redis-url redis://redis:6379",
];

/// The command and its options.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new("migrate")
        .about("Copy all persistent device sessions from PostgreSQL to Redis, once; run again, an interrupted run goes on")
        .args(arguments::of(Command::Migrate));
    with_example(command, EXAMPLE)
}

/// Runs the command.
///
/// # Errors
/// What kept the run from its end, with the exit code for it.
pub async fn run(config: Config, settings: MigrateConfig) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    signals::stop_on_signals(stop.clone())?;
    let migration = Migration::prepare(&config, &settings, stop).await.map_err(failure)?;
    let meter = Arc::clone(&migration.meter);
    let progress = Progress::start(&config.target.output, "copying", migration.estimated_rows(), move || Sample {
        rows: meter.rows(),
        sessions: meter.sessions(),
    });
    let result = migration.run().await;
    drop(progress);
    let report = result.map_err(failure)?;
    stdout::write(&match config.target.output.json {
        true => report::json(&report)?,
        false => report::text(&report),
    })?;
    Ok(if report.tally.anything_quarantined() { ExitCode::Quarantined } else { ExitCode::Done })
}

fn failure(error: MigrateError) -> Failure {
    let (code, hint) = match &error {
        MigrateError::Refused(problem) => (ExitCode::Refused, problem.hint()),
        MigrateError::Stuck { problem, resumable } => (ExitCode::Stuck, problem.hint_under_way(*resumable)),
        MigrateError::Interrupted { resumable: true } => {
            (ExitCode::Interrupted, Some("run the same command again: it goes on where it was; start no 2.x broker before it has ended".to_owned()))
        }
        MigrateError::Interrupted { resumable: false } => {
            (ExitCode::Interrupted, Some("nothing was recorded: run again, with --on-existing replace if anything was written".to_owned()))
        }
    };
    let failure = Failure::from_error(code, &error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
