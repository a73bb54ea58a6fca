//! What a comparison is told to do: `verify`, `repair` and `explain`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::error::{ConfigError, Problem};
use super::layers::Layers;
use super::migrate::read_clients;
use super::setting::Setting;

/// How much of a session is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// How many messages it has, and its last packet id.
    Count,
    /// Everything.
    Full,
}

impl Level {
    /// The words of `level`, in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = &["count", "full"];
    /// Every level.
    pub const ALL: [Self; 2] = [Self::Count, Self::Full];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Full => "full",
        }
    }
}

/// A part of all sessions, in steps of a hundredth of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// The whole in these steps.
    pub const WHOLE: u16 = 10_000;

    /// Of ten thousand sessions, this many: 1..=10000.
    pub fn of_ten_thousand(self) -> u16 {
        self.0
    }

    /// `5%`, `0.5%`, `100%`; two places after the point at most.
    fn parse(text: &str) -> Option<Self> {
        let (whole, part) = match text.strip_suffix('%')?.split_once('.') {
            Some((whole, part)) if (1..=2).contains(&part.len()) => (whole, part),
            Some(_) => return None,
            None => (text.strip_suffix('%')?, ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 3 || !digits(whole) || !digits(part) {
            return None;
        }
        let steps = format!("{whole}{part:0<2}").parse().ok()?;
        (1..=Self::WHOLE).contains(&steps).then_some(Self(steps))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 100.0)
    }
}

/// What counts as equal, and how long a session may go on moving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompareConfig {
    /// A session that differs and never holds still for this long is not checked.
    pub settle_timeout: Duration,
    /// A deadline may be off by this much.
    pub deadline_tolerance: Duration,
}

impl CompareConfig {
    fn read(layers: &Layers) -> Result<Self, ConfigError> {
        Ok(Self { settle_timeout: layers.duration(Setting::SettleTimeout)?, deadline_tolerance: layers.duration(Setting::DeadlineTolerance)? })
    }
}

/// The checked settings of `verify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyConfig {
    /// Look at Redis alone.
    pub redis_only: bool,
    /// How much of a session is compared.
    pub level: Level,
    /// Only this share of the sessions. Never with `clients`.
    pub sample: Option<Share>,
    /// Only these sessions, each once, at least one; `None`: all.
    pub clients: Option<Vec<String>>,
    /// Ranges compared side by side, 1..=64.
    pub jobs: usize,
    /// Messages a second; `None`: unlimited.
    pub max_rate: Option<NonZeroU32>,
    /// What counts as equal.
    pub compare: CompareConfig,
    /// Where each finding is written, one JSON object a line.
    pub report: Option<PathBuf>,
    /// Payloads stand in the findings.
    pub show_payload: bool,
    /// Forget an interrupted run.
    pub restart: bool,
    /// Write nothing in PostgreSQL.
    pub stateless: bool,
    /// A chunk's transaction ends at the next session border after this time.
    pub chunk_time: Duration,
    /// How long a server may stay away.
    pub retry_timeout: Duration,
}

impl VerifyConfig {
    pub(super) fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let config = Self {
            redis_only: layers.flag(Setting::RedisOnly)?,
            level: layers.choice(Setting::Level, &Level::ALL)?,
            sample: read_sample(layers)?,
            clients: read_clients(layers)?,
            jobs: layers.set_integer(Setting::Jobs)?,
            max_rate: layers.integer(Setting::MaxRate)?.and_then(NonZeroU32::new),
            compare: CompareConfig::read(layers)?,
            report: layers.path(Setting::Report)?,
            show_payload: layers.flag(Setting::ShowPayload)?,
            restart: layers.flag(Setting::Restart)?,
            stateless: layers.flag(Setting::Stateless)?,
            chunk_time: layers.duration(Setting::ChunkTime)?,
            retry_timeout: layers.duration(Setting::RetryTimeout)?,
        };
        super::migrate::restart_goes_with_state(layers, config.restart, config.stateless)?;
        Ok(config)
    }
}

/// The checked settings of `repair`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairConfig {
    /// The findings to work by, as `verify` wrote them.
    pub report: PathBuf,
    /// Do it, and not only say it.
    pub execute: bool,
    /// Also remove sessions that PostgreSQL does not know.
    pub delete_extra: bool,
    /// What counts as equal afterwards.
    pub compare: CompareConfig,
    /// Messages a second; `None`: unlimited.
    pub max_rate: Option<NonZeroU32>,
    /// A transaction ends at the next session border after this time.
    pub chunk_time: Duration,
    /// How long a server may stay away.
    pub retry_timeout: Duration,
}

impl RepairConfig {
    pub(super) fn read(layers: &Layers) -> Result<Self, ConfigError> {
        Ok(Self {
            report: layers.existing_file(Setting::Report)?.ok_or(ConfigError::NotSet(Setting::Report))?,
            execute: layers.flag(Setting::Execute)?,
            delete_extra: layers.flag(Setting::DeleteExtra)?,
            compare: CompareConfig::read(layers)?,
            max_rate: layers.integer(Setting::MaxRate)?.and_then(NonZeroU32::new),
            chunk_time: layers.duration(Setting::ChunkTime)?,
            retry_timeout: layers.duration(Setting::RetryTimeout)?,
        })
    }
}

/// The checked settings of `explain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainConfig {
    /// A deadline may be off by this much.
    pub deadline_tolerance: Duration,
    /// Payloads are shown as they are.
    pub show_payload: bool,
}

impl ExplainConfig {
    pub(super) fn read(layers: &Layers) -> Result<Self, ConfigError> {
        Ok(Self { deadline_tolerance: layers.duration(Setting::DeadlineTolerance)?, show_payload: layers.flag(Setting::ShowPayload)? })
    }
}

fn read_sample(layers: &Layers) -> Result<Option<Share>, ConfigError> {
    let Some(text) = layers.text(Setting::Sample)? else { return Ok(None) };
    Share::parse(text).map(Some).ok_or_else(|| layers.wrong(Setting::Sample, Problem::NotAShare(text.to_owned())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::origin::Origin;

    #[test]
    fn a_share_is_a_percentage_with_two_places_at_most() {
        for (text, steps) in [("5%", 500), ("0.5%", 50), ("0.01%", 1), ("100%", 10_000), ("12.34%", 1234), ("007%", 700)] {
            assert_eq!(Share::parse(text).map(Share::of_ten_thousand), Some(steps), "{text}");
        }
        for text in ["5", "0%", "100.01%", "101%", "-1%", "1.234%", "1.%", ".5%", "%", "5 %", "1e1%", ""] {
            assert_eq!(Share::parse(text), None, "{text}");
        }
        assert_eq!([50, 500, 1234].map(|steps| Share(steps).to_string()), ["0.5%", "5%", "12.34%"]);
    }

    #[test]
    fn the_defaults_are_those_of_the_manual() {
        let config = VerifyConfig::read(&Layers::defaults()).unwrap();
        assert_eq!(config.compare, CompareConfig { settle_timeout: Duration::from_secs(30), deadline_tolerance: Duration::from_secs(1) });
        assert_eq!((config.level, config.sample, config.clients, config.jobs), (Level::Full, None, None, 4));
        assert!(!config.redis_only && !config.restart && !config.stateless && !config.show_payload);
    }

    #[test]
    fn what_is_no_share_says_how_to_write_one() {
        let mut layers = Layers::defaults();
        layers.set(Setting::Sample, vec!["5".into()], Origin::Option);
        let error = VerifyConfig::read(&layers).unwrap_err();
        assert_eq!(error.to_string(), "--sample: \"5\" is not a percentage from 0.01% to 100%");
        assert_eq!(error.hint().as_deref(), Some("write it as in 5% or 0.5%"));
    }

    #[test]
    fn a_repair_needs_a_report() {
        assert!(matches!(RepairConfig::read(&Layers::defaults()), Err(ConfigError::NotSet(Setting::Report))));
    }
}
