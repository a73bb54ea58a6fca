//! Options over environment over config file over TBMQ env files over defaults: one checked, immutable [`Config`].
//!
//! Each value knows where it came from, for `config` and for every error. Nothing is connected to here; files that are named are opened, so that
//! a wrong path is told before anything starts.

mod address;
mod contradiction;
mod error;
mod file;
mod layers;
mod listing;
mod migrate;
mod origin;
mod output;
mod postgres;
mod redis;
mod setting;
mod tbmq_env;
mod verify;

use std::ffi::OsString;
use std::path::Path;

pub use address::AddressProblem;
pub use contradiction::Contradiction;
pub use error::{ConfigError, Problem};
pub use layers::{Given, Layers};
pub use listing::{Listed, is_listed};
pub use migrate::{ClientProblem, IdPlace, MigrateConfig, OnExisting};
pub use origin::{Origin, Place};
pub use output::{ColorChoice, LogFormat, OutputConfig, Verbosity};
pub use postgres::{PostgresConfig, PostgresProblem};
pub use redis::{RedisConfig, RedisMode, RedisProblem, RedisSeed};
pub use setting::{Command, Group, Kind, SETTINGS, Setting, Spec};
pub use tbmq_env::LineProblem;
pub use verify::{CompareConfig, ExplainConfig, Level, RepairConfig, Share, VerifyConfig};

use crate::model::Rules;

/// The variable with directives for the log, as `tracing_subscriber::EnvFilter` reads them.
pub const LOG_VARIABLE: &str = "TBMQ_MIGRATE_LOG";

/// What every command that works on the two servers needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// The source.
    pub postgres: PostgresConfig,
    /// The target, and what does not depend on the source.
    pub target: TargetConfig,
}

/// What a command needs that works on Redis, with or without PostgreSQL.
#[derive(Debug, Clone)]
pub struct TargetConfig {
    /// The target.
    pub redis: RedisConfig,
    /// What every key begins with; may be empty.
    pub key_prefix: String,
    /// What decides the outcome of a row.
    pub rules: Rules,
    /// What is printed, and how.
    pub output: OutputConfig,
}

/// All layers, laid over each other but not yet checked as a whole.
#[derive(Debug, Clone)]
pub struct Settings {
    layers: Layers,
    log_directives: Option<String>,
    contradictions: Vec<Contradiction>,
}

impl Settings {
    /// Reads the layers below the options. `lookup` is `std::env::var_os`, or a table in a test.
    ///
    /// # Errors
    /// A file that cannot be read or has something in it that is no setting; a variable that is not text.
    pub fn load(options: Layers, lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let environment = Layers::from_environment(lookup)?;
        let mut layers = options.over(environment.clone());
        let mut file = Layers::default();
        if let Some(path) = layers.path(Setting::Config)? {
            file = file::read(&path)?;
            layers = layers.over(file.clone());
        }
        let broker_file = tbmq_env::BrokerSettings::read(layers.texts(Setting::TbmqEnv)?.iter().map(Path::new))?;
        let broker = broker_file.layer(&layers)?;
        // An address of the broker that is not used need not be one that could be.
        let contradictions = contradiction::find(&layers, &[&environment, &file], broker_file.layer(&Layers::default()).ok().as_ref());
        let log_directives = lookup(LOG_VARIABLE).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty());
        Ok(Self { layers: layers.over(broker).over(Layers::defaults()), log_directives, contradictions })
    }

    /// What is printed, and how.
    ///
    /// # Errors
    /// A value that cannot be used.
    pub fn output(&self) -> Result<OutputConfig, ConfigError> {
        OutputConfig::read(&self.layers, self.log_directives.clone())
    }

    /// The settings of a command that works on both servers.
    ///
    /// # Errors
    /// A value that cannot be used, or an address that is not set.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Ok(Config { postgres: PostgresConfig::read(&self.layers)?.ok_or(ConfigError::NotSet(Setting::PostgresUrl))?, target: self.target()? })
    }

    /// The settings of a command that works on Redis alone.
    ///
    /// # Errors
    /// A value that cannot be used, or an address that is not set.
    pub fn target(&self) -> Result<TargetConfig, ConfigError> {
        Ok(TargetConfig {
            redis: RedisConfig::read(&self.layers)?.ok_or(ConfigError::NotSet(Setting::RedisUrl))?,
            key_prefix: self.layers.text(Setting::KeyPrefix)?.unwrap_or_default().to_owned(),
            rules: self.rules()?,
            output: self.output()?,
        })
    }

    /// The settings of `migrate` alone.
    ///
    /// # Errors
    /// A value that cannot be used, or two that exclude each other.
    pub fn migrate(&self) -> Result<MigrateConfig, ConfigError> {
        MigrateConfig::read(&self.layers)
    }

    /// The settings of `verify` alone.
    ///
    /// # Errors
    /// A value that cannot be used, or two that exclude each other.
    pub fn verify(&self) -> Result<VerifyConfig, ConfigError> {
        VerifyConfig::read(&self.layers)
    }

    /// The settings of `repair` alone.
    ///
    /// # Errors
    /// A value that cannot be used, or no report.
    pub fn repair(&self) -> Result<RepairConfig, ConfigError> {
        RepairConfig::read(&self.layers)
    }

    /// The settings of `explain` alone.
    ///
    /// # Errors
    /// A value that cannot be used.
    pub fn explain(&self) -> Result<ExplainConfig, ConfigError> {
        ExplainConfig::read(&self.layers)
    }

    /// Where layers disagree on what must be the broker's own setting.
    pub fn contradictions(&self) -> &[Contradiction] {
        &self.contradictions
    }

    /// Every setting as it may be shown, checked as far as it is set.
    ///
    /// # Errors
    /// A value that cannot be used.
    pub fn list(&self) -> Result<Vec<Listed>, ConfigError> {
        PostgresConfig::read(&self.layers)?;
        RedisConfig::read(&self.layers)?;
        self.rules()?;
        self.output()?;
        self.migrate()?;
        self.verify()?;
        listing::list(&self.layers)
    }

    fn rules(&self) -> Result<Rules, ConfigError> {
        Ok(Rules {
            message_limit: self.layers.set_integer(Setting::MessageLimit)?,
            default_ttl: self.layers.duration(Setting::DefaultTtl)?,
            topic_field: self.layers.choice(Setting::TopicField, &setting::TOPIC_FIELDS)?,
            max_payload_bytes: self.layers.set_integer(Setting::MaxPayloadBytes)?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
