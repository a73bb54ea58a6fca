//! What is printed on stderr, and in which form the result comes.

use super::error::ConfigError;
use super::layers::Layers;
use super::setting::Setting;

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for a person.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// The words of `log-format`, in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = &["text", "json"];
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];
}

/// When stderr is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal.
    Auto,
    /// Into a file or pipe as well.
    Always,
    /// Not at all.
    Never,
}

impl ColorChoice {
    /// The words of `color`, in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = &["auto", "always", "never"];
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    /// Whether to colour a stream that is a terminal, or is not.
    pub fn colored(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => is_terminal,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How much the log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Warnings and errors (`--quiet`).
    Quiet,
    /// Changes of phase as well.
    Normal,
    /// Batches as well (`-v`).
    Batches,
    /// Every step (`-vv`).
    Steps,
}

/// What is printed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputConfig {
    /// The result is one JSON document.
    pub json: bool,
    /// How much the log says.
    pub verbosity: Verbosity,
    /// The form of the log.
    pub log_format: LogFormat,
    /// Whether progress may be shown, given that stderr is a terminal.
    pub progress: bool,
    /// When stderr is coloured.
    pub color: ColorChoice,
    /// Directives of `TBMQ_MIGRATE_LOG` for single parts of the program, as in `tbmq_migrate::target=trace`.
    pub log_directives: Option<String>,
}

impl OutputConfig {
    pub(super) fn read(layers: &Layers, log_directives: Option<String>) -> Result<Self, ConfigError> {
        let quiet = layers.flag(Setting::Quiet)?;
        let verbosity = match layers.count(Setting::Verbose)? {
            _ if quiet => Verbosity::Quiet,
            0 => Verbosity::Normal,
            1 => Verbosity::Batches,
            _ => Verbosity::Steps,
        };
        Ok(Self {
            json: layers.flag(Setting::Json)?,
            verbosity,
            log_format: layers.choice(Setting::LogFormat, &LogFormat::ALL)?,
            progress: !quiet && !layers.flag(Setting::NoProgress)?,
            color: layers.choice(Setting::Color, &ColorChoice::ALL)?,
            log_directives,
        })
    }
}
