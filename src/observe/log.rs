//! The log on stderr: its form, and how much it says.
//!
//! A level is a duty: error, data is at risk; warn, look tomorrow; info, a phase changed; debug, a batch; trace, a step.

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Registry, fmt};

use super::progress::AboveBars;
use crate::config::{LOG_VARIABLE, LogFormat, OutputConfig, Verbosity};

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The variable holds no directives.
    #[error("{LOG_VARIABLE} in the environment: not directives for the log")]
    Directives(#[source] ParseError),
    /// The process has a log already.
    #[error("the log is set up already")]
    SetUp(#[source] TryInitError),
}

/// Sets up the log of the process, on stderr.
///
/// # Errors
/// Directives that cannot be read, or a second call.
pub fn init(output: &OutputConfig) -> Result<(), LogError> {
    let colored = output.color.colored(std::io::stderr().is_terminal());
    subscriber(output, colored, || AboveBars)?.try_init().map_err(LogError::SetUp)
}

/// The log into any writer.
fn subscriber<W>(output: &OutputConfig, colored: bool, writer: W) -> Result<impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync + use<W>, LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(colored).with_target(false);
    let lines = match output.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let filter = EnvFilter::try_new(directives(output)).map_err(LogError::Directives)?;
    // Not as the filter of that one layer: such a one remembers for a thread that it said no, and when the question came from a library that only
    // wanted to know (the PostgreSQL driver does), the next event of the thread is lost.
    Ok(Registry::default().with(filter).with(lines))
}

/// Other crates speak up only where something is wrong; those of the variable come last, and of two for one part the later holds.
fn directives(output: &OutputConfig) -> String {
    let level = match output.verbosity {
        Verbosity::Quiet => "warn",
        Verbosity::Normal => "info",
        Verbosity::Batches => "debug",
        Verbosity::Steps => "trace",
    };
    let own = format!("warn,tbmq_migrate={level}");
    output.log_directives.iter().fold(own, |all, more| format!("{all},{more}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::ColorChoice;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn output(verbosity: Verbosity, log_format: LogFormat, directives: Option<&str>) -> OutputConfig {
        OutputConfig { json: false, verbosity, log_format, progress: false, color: ColorChoice::Never, log_directives: directives.map(Into::into) }
    }

    /// What one event of each level, of this crate and of another one, leaves in the log.
    fn written(output: &OutputConfig) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(subscriber(output, false, move || writer.clone()).unwrap(), || {
            tracing::warn!("own-warn");
            tracing::info!("own-info");
            tracing::debug!(rows = 7, "own-debug");
            tracing::trace!("own-trace");
            tracing::warn!(target: "sqlx::query", "other-warn");
            tracing::info!(target: "sqlx::query", "other-info");
        });
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    fn names(log: &str) -> Vec<&str> {
        ["own-warn", "own-info", "own-debug", "own-trace", "other-warn", "other-info"].into_iter().filter(|name| log.contains(name)).collect()
    }

    #[test]
    fn each_verbosity_adds_a_level_of_this_program_and_none_of_others() {
        for (verbosity, expected) in [
            (Verbosity::Quiet, &["own-warn", "other-warn"][..]),
            (Verbosity::Normal, &["own-warn", "own-info", "other-warn"]),
            (Verbosity::Batches, &["own-warn", "own-info", "own-debug", "other-warn"]),
            (Verbosity::Steps, &["own-warn", "own-info", "own-debug", "own-trace", "other-warn"]),
        ] {
            assert_eq!(names(&written(&output(verbosity, LogFormat::Text, None))), expected, "{verbosity:?}");
        }
    }

    #[test]
    fn directives_reach_what_the_verbosity_leaves_out() {
        let log = written(&output(Verbosity::Quiet, LogFormat::Text, Some("sqlx=info")));
        assert_eq!(names(&log), ["own-warn", "other-warn", "other-info"]);
    }

    #[test]
    fn what_a_library_only_asked_about_does_not_swallow_the_next_event() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(&output(Verbosity::Normal, LogFormat::Text, None), false, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let asked = tracing::info_span!(target: "sqlx::query", "asked").metadata().unwrap();
            assert!(!tracing::dispatcher::get_default(|log| log.enabled(asked)));
            tracing::warn!("own-warn");
        });
        assert_eq!(names(&String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()), ["own-warn"]);
    }

    #[test]
    fn the_json_log_is_one_object_a_line() {
        let log = written(&output(Verbosity::Batches, LogFormat::Json, None));
        let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[2]["fields"], serde_json::json!({ "message": "own-debug", "rows": 7 }));
        assert_eq!(lines[2]["level"], "DEBUG");
    }

    #[test]
    fn directives_that_cannot_be_read_are_an_error() {
        let result = subscriber(&output(Verbosity::Normal, LogFormat::Text, Some("sqlx=loud")), false, std::io::sink).map(|_| ());
        assert!(result.unwrap_err().to_string().starts_with("TBMQ_MIGRATE_LOG in the environment"));
    }
}
