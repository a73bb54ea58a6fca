//! The config file as a layer: TOML, the names of the options as keys, no tables. A path in it is relative to the working
//! directory, as on the command line.

use std::borrow::Cow;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::layers::{Layers, place};
use super::origin::{Origin, Place};
use super::setting::{Kind, SETTINGS, Spec};

/// Reads the file.
///
/// # Errors
/// Unreadable, not TOML, a key that is no setting or not for a file, a value of another type.
pub(super) fn read(path: &Path) -> Result<Layers, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { what: "config file", path: path.into(), source })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Layers, ConfigError> {
    // The parser's own display quotes the line, which may hold a password.
    let table = DeTable::parse(text).map_err(|error| ConfigError::Toml {
        place: place(path, text, error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let mut layer = Layers::default();
    for (key, value) in table.get_ref() {
        let place = place(path, text, key.span().start);
        let key: &Cow<'_, str> = key.get_ref();
        let Some(spec) = SETTINGS.iter().find(|spec| spec.name == key) else {
            return Err(ConfigError::UnknownKey { place, key: key.to_string() });
        };
        if !spec.in_file {
            return Err(ConfigError::CommandLineOnly { place, name: spec.name });
        }
        let texts = texts(spec, value.get_ref(), &place)?;
        layer.set(spec.setting, texts, Origin::ConfigFile(place));
    }
    Ok(layer)
}

/// The texts that the option would take.
fn texts(spec: &Spec, value: &DeValue<'_>, place: &Place) -> Result<Vec<String>, ConfigError> {
    let wrong_type = || ConfigError::WrongType { place: place.clone(), name: spec.name, expected: expected(spec), found: found(spec, value) };
    match (spec.kind, value) {
        (Kind::Flag, DeValue::Boolean(on)) => Ok(vec![on.to_string()]),
        (Kind::Integer { .. }, DeValue::Integer(number)) => {
            // More digits than the widest number has stay as they are written, and are then out of range.
            let written = number.as_str();
            Ok(vec![i128::from_str_radix(written, number.radix()).map_or_else(|_| written.to_owned(), |number| number.to_string())])
        }
        (Kind::Flag | Kind::Integer { .. } | Kind::Count, _) => Err(wrong_type()),
        (_, DeValue::String(text)) => Ok(vec![text.to_string()]),
        (_, DeValue::Array(values)) if spec.is_list() => {
            values.iter().map(|value| value.get_ref().as_str().map(str::to_owned).ok_or_else(wrong_type)).collect()
        }
        _ => Err(wrong_type()),
    }
}

fn expected(spec: &Spec) -> &'static str {
    match spec.kind {
        Kind::Flag => "true or false",
        Kind::Integer { .. } | Kind::Count => "a whole number",
        _ if spec.is_list() => "a string or an array of strings",
        Kind::Duration { .. } => "a string such as \"30s\"",
        _ => "a string",
    }
}

fn found(spec: &Spec, value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) if spec.is_list() => "an array of something else",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::setting::Setting;

    fn layer(text: &str) -> Layers {
        parse(Path::new("t.toml"), text).unwrap()
    }

    fn refusal(text: &str) -> (String, Option<String>) {
        let error = parse(Path::new("t.toml"), text).unwrap_err();
        (error.to_string(), error.hint())
    }

    #[test]
    fn each_kind_of_value_becomes_the_text_of_its_option() {
        let layer = layer(
            "jobs = 0x10\nmessage-limit = 1_000\nredis-url = [\"redis://a\", \"redis://b\"]\ntbmq-env = 'a.env'\nstateless = true\nchunk-time = '10s'\n",
        );
        for (setting, texts, line) in [
            (Setting::Jobs, &["16"][..], 1),
            (Setting::MessageLimit, &["1000"], 2),
            (Setting::RedisUrl, &["redis://a", "redis://b"], 3),
            (Setting::TbmqEnv, &["a.env"], 4),
            (Setting::Stateless, &["true"], 5),
            (Setting::ChunkTime, &["10s"], 6),
        ] {
            let given = layer.get(setting).unwrap();
            assert_eq!(given.texts, texts);
            assert_eq!(given.origin, Origin::ConfigFile(Place { path: "t.toml".into(), line }));
        }
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
        for (key, nearest) in [
            ("postgres_url", "postgres-url"),
            ("job", "jobs"),
            ("redis-urls", "redis-url"),
            ("ttl", "default-ttl"),
            ("josb", "jobs"),
            ("limit", "message-limit"),
        ] {
            let (error, hint) = refusal(&format!("# a comment\n\n{key} = 'x'\n"));
            assert_eq!(error, format!("t.toml:3: unknown key {key:?}"));
            assert_eq!(hint, Some(format!("did you mean {nearest}?")));
        }
    }

    #[test]
    fn an_option_of_one_run_is_not_for_the_file() {
        for key in ["dry-run", "restart", "client", "clients-file", "allow-removals", "config", "quiet", "verbose"] {
            let (error, hint) = refusal(&format!("{key} = true"));
            assert_eq!(error, format!("t.toml:1: {key} is taken from the command line only"));
            assert_eq!(hint, Some(format!("give it as --{key}, for the run that it is about")));
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        for (text, error) in [
            ("jobs = '4'", "t.toml:1: jobs takes a whole number, not a string"),
            ("json = 1", "t.toml:1: json takes true or false, not a whole number"),
            ("chunk-time = 30", "t.toml:1: chunk-time takes a string such as \"30s\", not a whole number"),
            ("redis-url = [1]", "t.toml:1: redis-url takes a string or an array of strings, not an array of something else"),
            ("postgres-url = ['a']", "t.toml:1: postgres-url takes a string, not an array"),
            ("[redis-url]\nhost = 'x'", "t.toml:1: redis-url takes a string or an array of strings, not a table"),
        ] {
            assert_eq!(refusal(text).0, error);
        }
    }

    #[test]
    fn text_that_is_not_toml_names_its_line_and_shows_nothing_of_it() {
        for text in ["jobs = 1\nredis-url = 'redis://:s3cret@h\n", "jobs = 1\nredis-url = redis://:s3cret@h\n", "jobs = 1\nredis-url 's3cret'\n"] {
            let (error, _) = refusal(text);
            assert!(error.starts_with("t.toml:2: not TOML: "), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_number_beyond_every_width_is_out_of_range() {
        let mut layers = layer("jobs = 99999999999999999999999999999999999999999999");
        layers = layers.over(Layers::defaults());
        let error = layers.set_integer::<usize>(Setting::Jobs).unwrap_err().to_string();
        assert_eq!(error, "jobs (t.toml:1): 99999999999999999999999999999999999999999999 is not between 1 and 64");
    }
}
