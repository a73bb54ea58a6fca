//! The README against the program: what it lists is what there is.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::tool::Tool;

const README: &str = include_str!("../../README.md");

/// The text between two headings.
fn section(heading: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("\n{heading}\n")).unwrap();
    let level = heading.split_once(' ').unwrap().0;
    rest.split(&format!("\n{level} ")).next().unwrap()
}

fn help(command: &str) -> String {
    let outcome = Tool::new().args([command, "--help"]).run();
    assert_eq!(outcome.code, Some(0));
    outcome.stdout
}

/// The options of a table, by the first cells of its rows.
fn options_under(heading: &str) -> BTreeSet<String> {
    let rows = section(heading).lines().filter_map(|line| line.strip_prefix("| `--")?.split_once('`').map(|(cell, _)| format!("--{cell}")));
    rows.collect()
}

#[test]
fn the_readme_opens_with_the_two_commands_and_both_can_be_run() {
    let (_, rest) = README.split_once("```\n").unwrap();
    let commands: Vec<&str> = rest.split("```").next().unwrap().lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(commands, ["scripts/demo", "scripts/test"]);
    for command in commands {
        let mode = std::fs::metadata(Path::new(env!("CARGO_MANIFEST_DIR")).join(command)).unwrap().permissions().mode();
        assert_ne!(mode & 0o111, 0, "{command} is executable");
    }
}

#[test]
fn the_option_tables_list_every_option_of_each_command_and_no_other() {
    let of_every = options_under("### Of every command");
    for command in ["check", "migrate", "verify", "repair", "explain"] {
        let help = help(command);
        let options = help.lines().filter_map(|line| {
            let line = line.trim_start();
            let long = line.split_whitespace().take(2).find(|word| word.starts_with("--"))?;
            (line.starts_with('-')).then(|| long.trim_end_matches([',', '.']).to_owned())
        });
        let there: BTreeSet<String> = options.filter(|option| option != "--help").collect();
        let own = if command == "check" { BTreeSet::new() } else { options_under(&format!("### Of `{command}`")) };
        assert_eq!(&of_every | &own, there, "{command}");
    }
}

#[test]
fn each_environment_variable_of_the_tables_is_that_of_its_option() {
    let help: String = help("migrate").replace("...", "").split_whitespace().collect::<Vec<_>>().join(" ");
    for line in section("### Of every command").lines().filter(|line| line.starts_with("| `--")) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (option, variable) = (cells[1], cells[2]);
        // An option's text ends where the next one begins.
        let (_, rest) = help.split_once(&format!("{option} ")).unwrap();
        let own = rest.split(" --").next().unwrap();
        match variable {
            "" => assert!(!own.contains("[env:"), "{option}"),
            _ => assert!(own.contains(&format!("[env: {variable}]")), "{option}: {own}"),
        }
    }
}

#[test]
fn the_exit_codes_of_the_readme_are_among_those_of_the_help() {
    let help = help("migrate");
    let (_, codes) = help.split_once("Exit codes:").unwrap();
    let known: BTreeSet<&str> = codes.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let listed = section("## Exit codes");
    let codes: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(code, _)| code)).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "5", "6", "9", "10", "130"]);
    assert!(codes.iter().all(|code| known.contains(code)));
}

#[test]
fn the_commands_of_the_quick_start_are_understood() {
    let block = section("## Quick start").split("```").nth(1).unwrap();
    let mut tool = Tool::new();
    for (name, value) in block.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('=')) {
        tool = tool.env(name, value);
    }
    let listing = tool.args(["config"]).run();
    assert_eq!(listing.code, Some(0), "{}", listing.stderr);
    assert!(listing.stdout.contains("DATABASE_URL"), "{}", listing.stdout);
    for line in block.lines().filter_map(|line| line.strip_prefix("tbmq-migrate ")) {
        let words = line.split('#').next().unwrap().split_whitespace();
        let outcome = Tool::new().args(words.chain(["--help"])).run();
        assert_eq!(outcome.code, Some(0), "{line}");
    }
}

#[test]
fn every_file_that_the_readme_points_to_is_there() {
    for target in README.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target)) {
        if !target.starts_with("http") {
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(target).exists(), "{target}");
        }
    }
}
