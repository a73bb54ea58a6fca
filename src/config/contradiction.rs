//! Where two layers disagree on a setting that must be the broker's own.
//!
//! The stronger layer wins, and rightly; but a limit that the broker's env file puts at another number than the option does is
//! as often a slip as it is meant.

use super::layers::Layers;
use super::redis::RedisConfig;
use super::setting::Setting;

/// A value that is not used, beside the one that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The name of the option, without its dashes.
    pub name: &'static str,
    /// The value in use.
    pub used: String,
    /// Where it was read.
    pub used_from: String,
    /// The value of the weaker layer.
    pub other: String,
    /// Where that was read.
    pub other_from: String,
}

/// The settings that the tool and the broker must have in common, and that do not describe a server.
const COMMON: [Setting; 3] = [Setting::KeyPrefix, Setting::MessageLimit, Setting::DefaultTtl];

/// Compares what is used with each weaker layer, the strongest first.
pub(super) fn find(used: &Layers, weaker: &[&Layers], broker: Option<&Layers>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for setting in COMMON {
        let Some((value, from)) = value(used, setting) else { continue };
        for layer in weaker.iter().copied().chain(broker) {
            let Some((other, other_from)) = self::value(layer, setting).filter(|(other, _)| *other != value) else { continue };
            found.push(Contradiction { name: setting.spec().name, used: value.clone(), used_from: from.clone(), other, other_from });
        }
    }
    found.extend(broker.and_then(|broker| databases(used, broker)));
    found
}

/// A setting as it can be compared, and where it stands.
fn value(layer: &Layers, setting: Setting) -> Option<(String, String)> {
    let given = layer.get(setting)?;
    let text = given.texts.last()?.clone();
    let comparable = match setting {
        Setting::DefaultTtl => layer.duration(setting).map_or(text, |duration| format!("{} s", duration.as_secs())),
        Setting::KeyPrefix => format!("{text:?}"),
        _ => text,
    };
    Some((comparable, given.origin.to_string()))
}

/// The broker's database, where the address comes from a stronger layer: another one holds none of the broker's keys.
fn databases(used: &Layers, broker: &Layers) -> Option<Contradiction> {
    let of = |layers: &Layers| {
        let from = layers.get(Setting::RedisUrl)?.origin.to_string();
        let config = RedisConfig::read(&layers.clone().over(Layers::defaults())).ok()??;
        Some((config.database.to_string(), from))
    };
    let ((used, used_from), (other, other_from)) = (of(used)?, of(broker)?);
    (used != other).then_some(Contradiction {
        name: "redis-url",
        used: format!("database {used}"),
        used_from,
        other: format!("database {other}"),
        other_from,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::origin::{Origin, Place};

    fn layer(origin: &Origin, settings: &[(Setting, &str)]) -> Layers {
        settings.iter().fold(Layers::default(), |mut layer, (setting, text)| {
            layer.set(*setting, vec![(*text).to_owned()], origin.clone());
            layer
        })
    }

    fn of_broker(settings: &[(Setting, &str)]) -> Layers {
        layer(&Origin::TbmqEnv("X", Place { path: "t.env".into(), line: 2 }), settings)
    }

    #[test]
    fn another_value_of_the_broker_is_named_with_both_places() {
        let used = layer(&Origin::Option, &[(Setting::MessageLimit, "500")]);
        let broker = of_broker(&[(Setting::MessageLimit, "1000")]);
        let found = find(&used, &[&Layers::default()], Some(&broker));
        let expected = Contradiction {
            name: "message-limit",
            used: "500".into(),
            used_from: "option".into(),
            other: "1000".into(),
            other_from: "TBMQ env file t.env:2 (X)".into(),
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn one_time_in_two_units_is_no_contradiction() {
        let used = layer(&Origin::Option, &[(Setting::DefaultTtl, "7d"), (Setting::KeyPrefix, "")]);
        assert_eq!(find(&used, &[], Some(&of_broker(&[(Setting::DefaultTtl, "604800s")]))), []);
        assert_eq!(find(&used, &[&of_broker(&[(Setting::DefaultTtl, "86400s"), (Setting::KeyPrefix, "p")])], None).len(), 2);
    }

    #[test]
    fn another_database_than_that_of_the_broker_is_named() {
        let used = layer(&Origin::Option, &[(Setting::RedisUrl, "redis://elsewhere/0")]);
        let found = find(&used, &[], Some(&of_broker(&[(Setting::RedisUrl, "redis://h/3")])));
        assert_eq!((found[0].used.as_str(), found[0].other.as_str()), ("database 0", "database 3"));
        assert_eq!(find(&used, &[], Some(&of_broker(&[(Setting::RedisUrl, "redis://h/0")]))), []);
    }
}
