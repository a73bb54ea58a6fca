//! A command line that cannot be understood, told without repeating an address from it.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};

use super::exit::ExitCode;

/// Prints what clap says, and gives the code to end with.
pub(super) fn report(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let rendered = error.render();
    // `--color` cannot be known where the options were not understood.
    let colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let text = if colored { rendered.ansi().to_string() } else { rendered.to_string() };
    // Where stderr is gone there is nobody to tell.
    let _ = std::io::stderr().write_all(without_addresses(text, arguments).as_bytes());
    ExitCode::Usage
}

/// clap repeats an argument that it did not expect, and an address in the wrong place may hold a password.
fn without_addresses(text: String, arguments: &[OsString]) -> String {
    arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .flat_map(|argument| [Some(argument), argument.split_once('=').map(|(_, value)| value)])
        .flatten()
        .filter(|argument| argument.contains("://") || argument.contains('@') || argument.contains("password"))
        .filter(|argument| !argument.starts_with("--") || argument.contains('='))
        .fold(text, |text, argument| text.replace(argument, "******"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_the_wrong_place_is_not_repeated() {
        for argument in ["redis://:s3cret@h", "u:s3cret@h", "--postgres=postgres://u:s3cret@h/d", "host=h password=s3cret"] {
            let text = format!("error: unexpected argument '{argument}' found");
            assert!(!without_addresses(text, &[argument.into()]).contains("s3cret"), "{argument}");
        }
    }

    #[test]
    fn anything_else_is_repeated() {
        let text = "error: unexpected argument '--redis-sentinel-passwort' found";
        assert_eq!(without_addresses(text.into(), &["--redis-sentinel-passwort".into(), "migrate".into()]), text);
    }
}
