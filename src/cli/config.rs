//! `config`: every setting, its value and where it came from.

use super::exit::ExitCode;
use super::failure::Failure;
use super::{arguments, stdout, with_example};
use crate::config::Listed;

pub(super) const NAME: &str = "config";
const EXAMPLE: &[&str] = &["tbmq-migrate config --config tbmq-migrate.toml --tbmq-env tb-mqtt-broker.env"];
const NOT_SET: &str = "(not set)";

/// The command; it takes the options of single commands too, so that it shows what they would come to.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new(NAME).about("Print each setting with the place that it came from, secrets hidden").args(arguments::of_config());
    with_example(command, EXAMPLE)
}

/// Prints the table, or the same as one JSON object with the names as keys.
///
/// # Errors
/// The result cannot be written.
pub(super) fn run(list: &[Listed], json: bool) -> Result<ExitCode, Failure> {
    stdout::write(&if json { document(list)? } else { table(list) })?;
    Ok(ExitCode::Done)
}

fn document(list: &[Listed]) -> Result<String, Failure> {
    let settings: serde_json::Map<_, _> =
        list.iter().map(|listed| (listed.name.to_owned(), serde_json::json!({ "value": listed.value, "origin": listed.origin }))).collect();
    let text = serde_json::to_string_pretty(&settings).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}

fn table(list: &[Listed]) -> String {
    let rows: Vec<_> = list
        .iter()
        .map(|listed| {
            let value = listed.value.as_deref().map_or_else(|| NOT_SET.to_owned(), quoted_if_needed);
            (listed.name, value, terminal_safe(listed.origin.as_deref().unwrap_or_default()))
        })
        .collect();
    let name_width = rows.iter().map(|(name, _, _)| name.chars().count()).max().unwrap_or_default();
    let value_width = rows.iter().map(|(_, value, _)| value.chars().count()).max().unwrap_or_default();
    rows.iter().map(|(name, value, origin)| format!("{name:name_width$}  {value:value_width$}  {origin}").trim_end().to_owned() + "\n").collect()
}

/// A text whose ends would not be seen stands in quotes.
fn quoted_if_needed(value: &str) -> String {
    let ends_are_seen = !value.is_empty() && value.trim() == value && value != NOT_SET;
    if ends_are_seen { terminal_safe(value) } else { format!("\"{}\"", terminal_safe(value)) }
}

/// Control characters by their escapes: a file must not steer the terminal.
fn terminal_safe(text: &str) -> String {
    text.chars().flat_map(|letter| if letter.is_control() { letter.escape_default().collect::<Vec<_>>() } else { vec![letter] }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn listed(name: &'static str, value: Option<&str>, origin: Option<&str>) -> Listed {
        Listed { name, value: value.map(Into::into), origin: origin.map(Into::into) }
    }

    #[test]
    fn the_columns_are_aligned_and_a_text_without_visible_ends_is_quoted() {
        let list = [
            listed("jobs", Some("8"), Some("option")),
            listed("key-prefix", Some(""), Some("default")),
            listed("redis-url", None, None),
            listed("postgres-schema", Some("a\x1b[2J"), Some("option")),
        ];
        let expected = "\
jobs             8           option
key-prefix       \"\"          default
redis-url        (not set)
postgres-schema  a\\u{1b}[2J  option
";
        assert_eq!(table(&list), expected);
    }

    #[test]
    fn the_document_has_the_same_figures() {
        let text = document(&[listed("jobs", Some("8"), Some("option")), listed("redis-url", None, None)]).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::json!({ "jobs": { "value": "8", "origin": "option" }, "redis-url": { "value": null, "origin": null } }));
    }
}
