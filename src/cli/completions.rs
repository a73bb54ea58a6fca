//! `completions`: a script that teaches a shell the commands and options.

use clap::{Arg, value_parser};
use clap_complete::Shell;

use super::exit::ExitCode;
use super::failure::Failure;
use super::{PROGRAM, stdout, with_example};

const EXAMPLE: &[&str] = &["tbmq-migrate completions bash > /etc/bash_completion.d/tbmq-migrate"];
pub(super) const SHELL: &str = "shell";

/// The command and its argument.
pub(super) fn command() -> clap::Command {
    let shell = Arg::new(SHELL).value_name("SHELL").required(true).value_parser(value_parser!(Shell)).help("The shell to write for");
    with_example(clap::Command::new("completions").about("Print the completion script of a shell").arg(shell), EXAMPLE)
}

/// Prints the script.
///
/// # Errors
/// The script cannot be written.
pub(super) fn run(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::command(), PROGRAM, &mut script);
    stdout::write(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Done)
}
