//! The command line: what was asked for, made into one checked configuration and one command to run.
//!
//! The words of the commands are in their files; the options are rows of the table in `config`. clap ends here.

mod arguments;
mod check;
mod completions;
mod config;
mod exit;
mod explain;
mod failure;
mod man;
mod migrate;
mod repair;
mod report;
mod signals;
mod stdout;
mod usage;
mod verify;

use std::ffi::OsString;
use std::io::IsTerminal;

use clap_complete::Shell;

pub use exit::ExitCode;
pub use failure::Failure;

use crate::config::{
    ColorChoice, Config, Contradiction, ExplainConfig, Layers, Listed, MigrateConfig, OutputConfig, RepairConfig, Setting, Settings, TargetConfig,
    VerifyConfig,
};
use crate::observe::log;

const PROGRAM: &str = "tbmq-migrate";
const EXAMPLE: &[&str] = &["tbmq-migrate check --tbmq-env tb-mqtt-broker.env", "tbmq-migrate migrate --tbmq-env tb-mqtt-broker.env"];

/// A command with everything that it needs.
enum Action {
    /// A text that clap made: `--help`, `--version`.
    Show(String),
    Check(Box<(Config, Vec<Contradiction>)>),
    Migrate(Box<(Config, MigrateConfig)>),
    Verify(Box<(Config, VerifyConfig)>),
    VerifyRedis(Box<(TargetConfig, VerifyConfig)>),
    Explain(Box<(Config, ExplainConfig, explain::Subject)>),
    Repair(Box<(Config, RepairConfig)>),
    Config(Vec<Listed>),
    Completions(Shell),
    Man,
}

/// One call of the program, checked and ready to run.
pub struct Program {
    action: Action,
    output: Option<OutputConfig>,
}

impl Program {
    /// Reads the command line, the environment and the files that they name.
    ///
    /// # Errors
    /// The exit code, after the reason was printed on stderr.
    pub fn from_process() -> Result<Self, ExitCode> {
        let arguments: Vec<_> = std::env::args_os().collect();
        let matches = match command().try_get_matches_from(&arguments) {
            Ok(matches) => matches,
            Err(error) if !error.use_stderr() => return Ok(Self { action: Action::Show(error.to_string()), output: None }),
            Err(error) => return Err(usage::report(&error, &arguments)),
        };
        // clap has refused a command line without a command.
        let (name, matches) = matches.subcommand().unwrap_or(("", &matches));
        let lookup = |name: &str| std::env::var_os(name);
        let options = arguments::layer(matches);
        let color = early_color(&options, &lookup);
        Self::new(name, matches, options, &lookup).map_err(|failure| print(&failure, color))
    }

    fn new(name: &str, matches: &clap::ArgMatches, options: Layers, lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        if name == man::NAME {
            return Ok(Self { action: Action::Man, output: None });
        }
        if let Ok(Some(shell)) = matches.try_get_one::<Shell>(completions::SHELL) {
            return Ok(Self { action: Action::Completions(*shell), output: None });
        }
        let settings = Settings::load(options, lookup)?;
        let output = Some(settings.output()?);
        let action = match name {
            check::NAME => Action::Check(Box::new((settings.config()?, settings.contradictions().to_vec()))),
            config::NAME => Action::Config(settings.list()?),
            "verify" => {
                let verify = settings.verify()?;
                match verify.redis_only {
                    true => Action::VerifyRedis(Box::new((settings.target()?, verify))),
                    false => Action::Verify(Box::new((settings.config()?, verify))),
                }
            }
            explain::NAME => Action::Explain(Box::new((settings.config()?, settings.explain()?, explain::Subject::of(matches)))),
            "repair" => Action::Repair(Box::new((settings.config()?, settings.repair()?))),
            _ => Action::Migrate(Box::new((settings.config()?, settings.migrate()?))),
        };
        Ok(Self { action, output })
    }

    /// Runs the command; what goes wrong is printed on stderr.
    pub fn run(self) -> ExitCode {
        let color = self.output.as_ref().map_or(ColorChoice::Auto, |output| output.color);
        self.try_run().unwrap_or_else(|failure| print(&failure, color))
    }

    fn try_run(self) -> Result<ExitCode, Failure> {
        if let Some(output) = &self.output {
            log::init(output)?;
        }
        let json = self.output.is_some_and(|output| output.json);
        match self.action {
            Action::Show(text) => stdout::write(&text).map(|()| ExitCode::Done),
            Action::Config(list) => config::run(&list, json),
            Action::Completions(shell) => completions::run(shell),
            Action::Man => man::run(),
            Action::Check(settings) => runtime()?.block_on(check::run(settings.0, settings.1)),
            Action::Migrate(settings) => runtime()?.block_on(migrate::run(settings.0, settings.1)),
            Action::Verify(settings) => runtime()?.block_on(verify::run(settings.0, settings.1)),
            Action::VerifyRedis(settings) => runtime()?.block_on(verify::run_on_redis(settings.0, settings.1)),
            Action::Explain(settings) => runtime()?.block_on(explain::run(settings.0, settings.1, settings.2)),
            Action::Repair(settings) => runtime()?.block_on(repair::run(settings.0, settings.1)),
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Runtime::new().map_err(anyhow::Error::from)?)
}

/// The whole command line, as clap knows it.
fn command() -> clap::Command {
    let program = clap::Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(arguments::of_every_command())
        .subcommands([
            check::command(),
            migrate::command(),
            verify::command(),
            explain::command(),
            repair::command(),
            config::command(),
            completions::command(),
            man::command(),
        ]);
    with_example(program, EXAMPLE)
}

/// Ends the help of a command with how it is called and the exit codes.
fn with_example(command: clap::Command, example: &[&str]) -> clap::Command {
    let calls: String = example.iter().map(|call| format!("  {call}\n")).collect();
    let codes: String = ExitCode::ALL.iter().map(|code| format!("  {:>3}  {}\n", code.number(), code.meaning())).collect();
    command.after_help(format!("Example:\n{calls}\nExit codes:\n{codes}"))
}

/// The colour that was asked for, where the settings as a whole cannot be read.
fn early_color(options: &Layers, lookup: &dyn Fn(&str) -> Option<OsString>) -> ColorChoice {
    let environment = Layers::from_environment(lookup).unwrap_or_default();
    options.clone().over(environment).choice(Setting::Color, &ColorChoice::ALL).unwrap_or(ColorChoice::Auto)
}

/// Prints a failure, and gives the code to end with.
fn print(failure: &Failure, color: ColorChoice) -> ExitCode {
    failure.print(std::io::stderr(), color.colored(std::io::stderr().is_terminal()));
    failure.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_one_that_clap_accepts() {
        command().debug_assert();
    }
}
