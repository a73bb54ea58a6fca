//! Every setting with its value and origin, as `config` shows them. No secret gets in here.

use super::error::ConfigError;
use super::layers::Layers;
use super::redis::RedisMode;
use super::setting::{Group, Kind, SETTINGS, Setting, Spec};
use super::{postgres, redis};

/// What stands in place of a secret.
const MASK: &str = "******";

/// One setting as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name of the option, without its dashes.
    pub name: &'static str,
    /// The value, with every secret masked; `None`: not set.
    pub value: Option<String>,
    /// The layer that it came from, with its place; `None`: not set.
    pub origin: Option<String>,
}

/// Whether `config` shows, and takes, this setting: all but what is about one single run of a command.
pub fn is_listed(spec: &Spec) -> bool {
    spec.in_file || spec.group != Group::Run
}

pub(super) fn list(layers: &Layers) -> Result<Vec<Listed>, ConfigError> {
    SETTINGS
        .iter()
        .filter(|spec| is_listed(spec))
        .map(|spec| {
            let value = value(layers, spec.setting)?;
            let origin = layers.get(spec.setting).map(|given| given.origin.to_string());
            Ok(Listed { name: spec.name, origin: value.as_ref().and(origin), value })
        })
        .collect()
}

fn value(layers: &Layers, setting: Setting) -> Result<Option<String>, ConfigError> {
    let spec = setting.spec();
    let texts = layers.texts(setting)?;
    let Some(last) = texts.last() else { return Ok(None) };
    let shown = match spec.kind {
        Kind::Secret => MASK.to_owned(),
        Kind::PostgresUrl => postgres::redacted(last).map_err(|problem| layers.wrong(setting, problem))?,
        Kind::RedisUrls => {
            let mode = if layers.get(Setting::RedisSentinelMaster).is_some() {
                RedisMode::Sentinel
            } else {
                layers.choice(Setting::RedisMode, &RedisMode::ALL)?
            };
            redis::redacted(texts, mode).map_err(|problem| layers.wrong(setting, problem))?
        }
        Kind::Paths | Kind::ClientIds => texts.join(", "),
        Kind::Text | Kind::Share | Kind::Choice(_) | Kind::Integer { .. } | Kind::Duration { .. } | Kind::Path | Kind::Flag | Kind::Count => {
            last.clone()
        }
    };
    Ok(Some(shown))
}
