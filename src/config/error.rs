//! Why a configuration cannot be used, and what to do about it.
//!
//! A text never repeats an address or a password: what cannot be parsed may hold one.

use std::io;
use std::path::PathBuf;

use super::address::AddressProblem;
use super::layers::nearest;
use super::migrate::ClientProblem;
use super::origin::Place;
use super::postgres::PostgresProblem;
use super::redis::RedisProblem;
use super::setting::Setting;
use super::tbmq_env::LineProblem;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value is not what its setting takes.
    #[error("{name}: {problem}")]
    Value {
        /// Where to change it, as [`super::Origin::name_of`] puts it.
        name: String,
        /// What is wrong.
        problem: Problem,
    },
    /// No layer has a value that is needed.
    #[error("--{} is not set", .0.spec().name)]
    NotSet(Setting),
    /// Two values that exclude each other, named as in [`ConfigError::Value`].
    #[error("{one} does not go with {other}")]
    Conflict {
        /// The one.
        one: String,
        /// The other.
        other: String,
        /// What to do.
        hint: &'static str,
    },
    /// A file of settings cannot be read.
    #[error("cannot read the {what} {}", path.display())]
    Unreadable {
        /// The kind of file.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The config file is not TOML.
    #[error("{place}: not TOML: {message}")]
    Toml {
        /// The line.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// The config file has a key that is no setting.
    #[error("{place}: unknown key {key:?}")]
    UnknownKey {
        /// The line.
        place: Place,
        /// The key.
        key: String,
    },
    /// The config file has a key that is an option of a single run.
    #[error("{place}: {name} is taken from the command line only")]
    CommandLineOnly {
        /// The line.
        place: Place,
        /// The option.
        name: &'static str,
    },
    /// The config file has a value of another type.
    #[error("{place}: {name} takes {expected}, not {found}")]
    WrongType {
        /// The line.
        place: Place,
        /// The key.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A line of a TBMQ env file cannot be read.
    #[error("{place}: {problem}")]
    EnvLine {
        /// The line.
        place: Place,
        /// Why.
        problem: LineProblem,
    },
}

/// What is wrong with one value.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum Problem {
    #[error("is empty")]
    Empty,
    #[error("is not UTF-8")]
    NotUtf8,
    #[error("holds a NUL character")]
    Nul,
    #[error("{0:?} is not a whole number")]
    NotANumber(String),
    #[error("{value} is not between {min} and {max}")]
    OutOfRange { value: String, min: u64, max: u64 },
    #[error("{0:?} is not a duration")]
    NotADuration(String),
    #[error("{0:?} has no unit")]
    NoUnit(String),
    #[error("{0:?} is not a count of seconds")]
    NotSeconds(String),
    #[error("{value:?} is not between {min_seconds} s and {max_seconds} s, in whole seconds")]
    DurationOutOfRange { value: String, min_seconds: u64, max_seconds: u64 },
    #[error("{0:?} is not a percentage from 0.01% to 100%")]
    NotAShare(String),
    #[error("{value:?} is none of {}", words.join(", "))]
    NotAChoice { value: String, words: &'static [&'static str] },
    #[error("cannot read {}: {reason}", path.display())]
    UnreadableFile { path: PathBuf, reason: io::ErrorKind },
    #[error("{0}")]
    Address(#[from] AddressProblem),
    #[error("{0}")]
    Postgres(#[from] PostgresProblem),
    #[error("{0}")]
    Redis(#[from] RedisProblem),
    #[error("{0}")]
    Client(#[from] ClientProblem),
}

impl Problem {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotADuration(_) => Some("write it as in 30s, 5min or 7d".into()),
            Self::NotAShare(_) => Some("write it as in 5% or 0.5%".into()),
            Self::NoUnit(value) => Some(format!("say the unit, as in {value}s")),
            Self::NotAChoice { value, words } => nearest(value, words.iter().copied()).map(|word| format!("did you mean {word}?")),
            Self::Address(problem) => problem.hint().map(Into::into),
            Self::Postgres(problem) => problem.hint(),
            Self::Redis(problem) => problem.hint().map(Into::into),
            Self::Client(problem) => problem.hint().map(Into::into),
            Self::Empty
            | Self::NotUtf8
            | Self::Nul
            | Self::NotANumber(_)
            | Self::OutOfRange { .. }
            | Self::NotSeconds(_)
            | Self::DurationOutOfRange { .. }
            | Self::UnreadableFile { .. } => None,
        }
    }
}

impl ConfigError {
    /// What a person can do about it, as a fragment.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Value { problem, .. } => problem.hint(),
            Self::NotSet(setting) => Some(ways_to_give(*setting)),
            Self::Conflict { hint, .. } => Some((*hint).into()),
            Self::UnknownKey { key, .. } => {
                let known = super::setting::SETTINGS.iter().filter(|spec| spec.in_file).map(|spec| spec.name);
                nearest(key, known).map(|name| format!("did you mean {name}?"))
            }
            Self::CommandLineOnly { name, .. } => Some(format!("give it as --{name}, for the run that it is about")),
            Self::EnvLine { problem, .. } => Some(problem.hint().into()),
            Self::Unreadable { .. } | Self::Toml { .. } | Self::WrongType { .. } => None,
        }
    }
}

/// Every place where a setting can be given, strongest first.
fn ways_to_give(setting: Setting) -> String {
    let spec = setting.spec();
    let mut ways = vec![format!("--{} {}", spec.name, spec.placeholder)];
    ways.extend(spec.variable.map(|name| format!("the variable {name}")));
    if spec.in_file {
        ways.push(format!("{} in the --config file", spec.name));
    }
    // The address of Redis has no single name there.
    let broker = if setting == Setting::RedisUrl { Some("REDIS_HOST") } else { spec.broker_variable };
    ways.extend(broker.map(|name| format!("{name} in a --tbmq-env file")));
    format!("give it by {}", ways.join(", or "))
}
