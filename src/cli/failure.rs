//! The one place where an error becomes lines on stderr: `error:`, `detail:` and `hint:`.

use std::error::Error;
use std::io::Write;

use super::exit::ExitCode;
use crate::config::ConfigError;
use crate::observe::log::LogError;

/// An error on its way to the person, with the exit code that it ends the program with.
#[derive(Debug)]
pub struct Failure {
    code: ExitCode,
    error: String,
    details: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// An error that is told by one fragment. It must hold no secret.
    pub fn new(code: ExitCode, error: impl Into<String>) -> Self {
        Self { code, error: error.into(), details: Vec::new(), hint: None }
    }

    /// The error and, as details, what caused it. An error that repeats its cause is told once.
    pub fn from_error(code: ExitCode, error: &dyn Error) -> Self {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let mut details: Vec<String> = causes.map(ToString::to_string).collect();
        details.dedup();
        Self { details, ..Self::new(code, error.to_string()) }
    }

    /// Adds what a person needs to know beside the error itself.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Says what a person can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code that the program ends with.
    pub fn code(&self) -> ExitCode {
        self.code
    }

    /// Writes the lines. Where stderr is gone there is nobody to tell.
    pub fn print(&self, mut stderr: impl Write, colored: bool) {
        let _ = stderr.write_all(self.lines(colored).as_bytes());
    }

    fn lines(&self, colored: bool) -> String {
        const RED: &str = "31";
        const CYAN: &str = "36";
        let details = self.details.iter().map(|detail| ("detail", CYAN, detail));
        let hint = self.hint.iter().map(|hint| ("hint", CYAN, hint));
        std::iter::once(("error", RED, &self.error))
            .chain(details)
            .chain(hint)
            .map(|(label, color, text)| if colored { format!("\x1b[1;{color}m{label}:\x1b[0m {text}\n") } else { format!("{label}: {text}\n") })
            .collect()
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = Self::from_error(ExitCode::Configuration, &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::from_error(ExitCode::Configuration, &error).hint("write it as in tbmq_migrate=debug,sqlx=info")
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::from_error(ExitCode::Unexpected, error.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn an_error_is_followed_by_its_causes_and_the_hint() {
        let failure = Failure::new(ExitCode::Refused, "no table").detail("one").detail("two").hint("do it");
        assert_eq!(failure.lines(false), "error: no table\ndetail: one\ndetail: two\nhint: do it\n");
        assert_eq!(Failure::new(ExitCode::Refused, "x").lines(true), "\x1b[1;31merror:\x1b[0m x\n");
    }

    #[test]
    fn an_error_without_a_class_is_unexpected_and_keeps_its_causes() {
        let error = Err::<(), _>(std::io::Error::other("disk")).context("cannot write").map_err(Failure::from);
        let Err(failure) = error else { unreachable!() };
        assert_eq!(failure.lines(false), "error: cannot write\ndetail: disk\n");
        assert_eq!(failure.code(), ExitCode::Unexpected);
    }
}
