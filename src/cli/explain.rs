//! `explain`: one session, both sides of it side by side.

mod document;
mod moment;
mod page;
mod table;
mod width;

use clap::builder::StringValueParser;
use clap::{Arg, ArgMatches, value_parser};
use tokio_util::sync::CancellationToken;

use super::exit::ExitCode;
use super::failure::Failure;
use super::verify::failure;
use super::{arguments, signals, stdout, with_example};
use crate::config::{Command, Config, ExplainConfig};
use crate::verify::{Explanation, Standing, explain};

pub(super) const NAME: &str = "explain";
const CLIENT_ID: &str = "client-id";
const ROWS: &str = "rows";
/// The most rows that may be asked for: more than any broker keeps of a session, and some MB.
const MOST_ROWS: u64 = 100_000;
const EXAMPLE: &[&str] =
    &["tbmq-migrate explain dev-1 --tbmq-env tb-mqtt-broker.env", "tbmq-migrate explain --json -- --an-id-that-looks-like-an-option"];

/// Which session, and how much of it.
pub(super) struct Subject {
    client: String,
    most_rows: usize,
}

/// The command and its options.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new(NAME)
        .about("Show one session: its rows and keys side by side, what each row became and why, and the differences; changes nothing")
        .arg(
            Arg::new(CLIENT_ID)
                .value_name("CLIENT_ID")
                .help("The client id, byte for byte; put -- before one that is the name of an option")
                .required(true)
                .allow_hyphen_values(true)
                .value_parser(StringValueParser::new()),
        )
        .arg(
            Arg::new(ROWS)
                .long("rows")
                .value_name("N")
                .help("Show the newest N rows; all are counted and compared")
                .default_value("200")
                .value_parser(value_parser!(u64).range(..=MOST_ROWS)),
        )
        .args(arguments::of(Command::Explain));
    with_example(command, EXAMPLE)
}

impl Subject {
    pub(super) fn of(matches: &ArgMatches) -> Self {
        // clap has seen to it that both are there.
        let client = matches.get_one::<String>(CLIENT_ID).cloned().unwrap_or_default();
        let rows = matches.get_one::<u64>(ROWS).copied().unwrap_or_default();
        Self { client, most_rows: usize::try_from(rows).unwrap_or(usize::MAX) }
    }
}

/// Runs the command.
///
/// # Errors
/// What kept the session from being explained, with the exit code for it.
pub(super) async fn run(config: Config, settings: ExplainConfig, subject: Subject) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    signals::stop_on_signals(stop.clone())?;
    let explanation = explain(&config, &settings, &subject.client, subject.most_rows, stop).await.map_err(failure)?;
    stdout::write(&match config.target.output.json {
        true => document::json(&explanation)?,
        false => page::text(&explanation),
    })?;
    Ok(code(&explanation))
}

/// An id that neither side knows is nothing that could be explained: like a table that is not there.
fn code(explanation: &Explanation) -> ExitCode {
    match explanation {
        Explanation { in_postgresql: false, in_redis: false, .. } => ExitCode::Refused,
        Explanation { standing: Standing::Different, .. } => ExitCode::Different,
        Explanation { standing: Standing::Moving, findings, .. } if !findings.is_empty() => ExitCode::Different,
        Explanation { standing: Standing::Moving, .. } => ExitCode::NotChecked,
        Explanation { standing: Standing::Equal, tally, .. } if tally.anything_quarantined() => ExitCode::Quarantined,
        Explanation { standing: Standing::Equal, .. } => ExitCode::Done,
    }
}

/// Why a row became what it did, where its name alone does not say.
fn reason(row: &crate::verify::SeenRow, message_limit: u32) -> Option<String> {
    use crate::model::Outcome;
    match row.outcome {
        Outcome::Quarantined(reason) => Some(reason.to_string()),
        Outcome::Superseded => Some(row.superseded_by.map_or_else(|| "by a newer row".to_owned(), |serial| format!("by serial {serial}"))),
        Outcome::Trimmed => Some(format!("beyond the newest {} rows", super::report::grouped(message_limit.into()))),
        Outcome::ExpiredByInterval => Some("its own interval is over".to_owned()),
        Outcome::ExpiredByTtl => Some("the default TTL is over".to_owned()),
        Outcome::Migrated => None,
    }
}
