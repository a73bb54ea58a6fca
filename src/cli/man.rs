//! `man`: the manual page of the program and of each command.

use clap_mangen::Man;

use super::exit::ExitCode;
use super::failure::Failure;
use super::{stdout, with_example};

pub(super) const NAME: &str = "man";
const EXAMPLE: &[&str] = &["tbmq-migrate man | man -l -"];

/// The command.
pub(super) fn command() -> clap::Command {
    with_example(clap::Command::new(NAME).about("Print the manual pages of all commands, in roff"), EXAMPLE)
}

/// Prints the pages, one after the other.
///
/// # Errors
/// A page cannot be written.
pub(super) fn run() -> Result<ExitCode, Failure> {
    let mut program = super::command();
    program.build();
    let mut pages = Vec::new();
    let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
    for page in std::iter::once(&program).chain(commands) {
        Man::new(page.clone()).render(&mut pages).map_err(anyhow::Error::from)?;
    }
    stdout::write(&String::from_utf8_lossy(&pages))?;
    Ok(ExitCode::Done)
}
