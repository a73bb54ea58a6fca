//! The rows of the table of settings as options of clap, and what was given as the strongest layer.
//!
//! clap takes every value as text: whether it can be used is decided where the values of all layers are, and ends with another exit code
//! than an option that does not exist.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use crate::config::{Command, Kind, Layers, Origin, SETTINGS, Spec, is_listed};

/// The options that every command takes.
pub(super) fn of_every_command() -> impl Iterator<Item = Arg> {
    options(|spec| spec.commands.is_empty()).map(|arg| arg.global(true))
}

/// The options that this command takes and not every command does.
pub(super) fn of(command: Command) -> impl Iterator<Item = Arg> {
    options(move |spec| spec.is_of(command))
}

/// The options of single commands that `config` shows too.
pub(super) fn of_config() -> impl Iterator<Item = Arg> {
    options(|spec| !spec.commands.is_empty() && is_listed(spec))
}

/// The options that are kept; what one excludes is told to clap where that is kept too.
fn options(keep: impl Fn(&Spec) -> bool + Copy) -> impl Iterator<Item = Arg> {
    SETTINGS.iter().filter(move |spec| keep(spec)).map(move |spec| {
        let excluded = spec.excludes.iter().map(|other| other.spec()).filter(|other| keep(other)).map(|other| other.name);
        option(spec).conflicts_with_all(excluded.collect::<Vec<_>>())
    })
}

/// What was given on the command line.
pub(super) fn layer(matches: &ArgMatches) -> Layers {
    let mut layer = Layers::default();
    for spec in &SETTINGS {
        let known = matches.try_contains_id(spec.name).is_ok();
        if !known || matches.value_source(spec.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let texts = match spec.kind {
            Kind::Flag => vec![matches.get_flag(spec.name).to_string()],
            Kind::Count => vec![matches.get_count(spec.name).to_string()],
            _ => matches.get_many::<String>(spec.name).into_iter().flatten().cloned().collect(),
        };
        layer.set(spec.setting, texts, Origin::Option);
    }
    layer
}

fn option(spec: &Spec) -> Arg {
    let arg = Arg::new(spec.name).long(spec.name).help(help(spec)).help_heading(spec.group.heading());
    let arg = if let Some(short) = spec.short { arg.short(short) } else { arg };
    match spec.kind {
        Kind::Flag => arg.action(ArgAction::SetTrue),
        Kind::Count => arg.action(ArgAction::Count),
        _ => {
            let action = if spec.is_list() { ArgAction::Append } else { ArgAction::Set };
            let arg = arg.action(action).value_name(spec.placeholder);
            match spec.kind {
                Kind::Choice(words) => arg.value_parser(Suggested(words)).hide_possible_values(true),
                Kind::Path | Kind::Paths => arg.value_hint(ValueHint::FilePath),
                Kind::PostgresUrl | Kind::RedisUrls => arg.value_hint(ValueHint::Url),
                _ => arg,
            }
        }
    }
}

/// The sentence of the table, and what else a person would look for: the words, the variable, the default.
fn help(spec: &Spec) -> String {
    let words = match spec.kind {
        Kind::Choice(words) => Some(words.join("|")),
        _ => None,
    };
    let variable = spec.variable.map(|name| format!("env: {name}"));
    let is_counted = matches!(spec.kind, Kind::Flag | Kind::Count);
    let default = spec.default.filter(|text| !text.is_empty() && !is_counted).map(|text| format!("default: {text}"));
    [words, variable, default].into_iter().flatten().fold(spec.help.to_owned(), |text, note| format!("{text} [{note}]"))
}

/// Offers words to a shell's completion without refusing another one.
#[derive(Clone)]
struct Suggested(&'static [&'static str]);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &std::ffi::OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
