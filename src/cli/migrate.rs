//! `migrate`: the one-off copy.

use super::exit::ExitCode;
use super::failure::Failure;
use super::{arguments, with_example};
use crate::config::{Config, MigrateConfig};

const EXAMPLE: &[&str] = &[
    "tbmq-migrate migrate --tbmq-env tb-mqtt-broker.env --dry-run",
    "tbmq-migrate migrate --postgres-url postgres://tbmq@db/tbmq --redis-url redis://redis:6379",
];

/// The command and its options.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new("migrate")
        .about("Copy all persistent device sessions from PostgreSQL to Redis, once; run again, an interrupted run goes on")
        .args(arguments::of_migrate(|_| true));
    with_example(command, EXAMPLE)
}

/// Runs the command.
///
/// # Errors
/// What kept the run from its end, with the exit code for it.
pub async fn run(config: Config, migrate: MigrateConfig) -> Result<ExitCode, Failure> {
    tracing::debug!(source = config.postgres.display, target = config.redis.display, jobs = migrate.jobs, "settings read");
    Err(Failure::new(ExitCode::Unexpected, "this build has no copy"))
}
