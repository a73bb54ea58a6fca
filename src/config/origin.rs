//! Where a value came from, in the words that lead a person to it.

use std::fmt;
use std::path::PathBuf;

use super::setting::Setting;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path as it was given.
    pub path: PathBuf,
    /// The first line is 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// The layer, and the place in it, that a value was read from. The variants stand from the strongest to the weakest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An option on the command line.
    Option,
    /// An environment variable.
    Variable(&'static str),
    /// A key of the config file.
    ConfigFile(Place),
    /// A line of a TBMQ env file, with the broker's name of the setting.
    TbmqEnv(&'static str, Place),
    /// No layer has it.
    Default,
}

impl Origin {
    /// What a person has to look for to change the value: `--jobs`, `DATABASE_URL`, `jobs (tbmq.toml:3)`.
    pub fn name_of(&self, setting: Setting) -> String {
        let name = setting.spec().name;
        match self {
            Self::Option | Self::Default => format!("--{name}"),
            Self::Variable(variable) => format!("{variable} in the environment"),
            Self::ConfigFile(place) => format!("{name} ({place})"),
            Self::TbmqEnv(variable, place) => format!("{variable} ({place})"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option => f.write_str("option"),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::ConfigFile(place) => write!(f, "config file {place}"),
            Self::TbmqEnv(name, place) => write!(f, "TBMQ env file {place} ({name})"),
            Self::Default => f.write_str("default"),
        }
    }
}
