//! The command line through the real binary: what it takes, what it prints where, and the code it ends with.

use std::process::Stdio;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, is_empty, starts_with};

/// The variables that the program reads, so that those of the machine do not reach a test.
const VARIABLES: [&str; 8] = [
    "DATABASE_URL",
    "REDIS_URL",
    "CACHE_PREFIX",
    "TBMQ_MIGRATE_CONFIG",
    "NO_COLOR",
    "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_LIMIT",
    "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL",
    "TBMQ_MIGRATE_LOG",
];
const COMMANDS: [&str; 8] = ["check", "migrate", "verify", "repair", "explain", "config", "completions", "man"];

fn program() -> Command {
    let mut command = Command::cargo_bin("tbmq-migrate").unwrap();
    VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

fn settings(arguments: &[&str]) -> serde_json::Value {
    let output = program().arg("config").arg("--json").args(arguments).assert().code(0).stderr(is_empty()).get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn help_of_every_command_ends_with_an_example_and_the_exit_codes() {
    for command in COMMANDS {
        let output = program().args([command, "--help"]).assert().code(0).stderr(is_empty()).get_output().stdout.clone();
        let help = String::from_utf8(output).unwrap();
        assert!(help.contains(&format!("Example:\n  tbmq-migrate {command} ")) || help.contains("Example:\n  tbmq-migrate man |"), "{help}");
        assert!(help.trim_end().ends_with("130  interrupted, safe to run again"), "{help}");
    }
    program().arg("--help").assert().code(0).stdout(contains("Exit codes:")).stderr(is_empty());
}

#[test]
fn version_is_a_result() {
    program().arg("--version").assert().code(0).stdout(starts_with("tbmq-migrate ")).stderr(is_empty());
}

#[test]
fn a_wrong_usage_ends_with_2_and_leaves_stdout_empty() {
    for arguments in [
        &[][..],
        &["migrat"],
        &["migrate", "--no-such-option"],
        &["migrate", "--jobs"],
        &["migrate", "--restart", "--stateless"],
        &["migrate", "--restart", "--dry-run"],
        &["migrate", "-v", "--quiet"],
        &["config", "--dry-run"],
        &["completions"],
        &["completions", "cmd"],
        &["migrate", "stray"],
    ] {
        program().args(arguments).assert().code(2).stdout(is_empty()).stderr(is_empty().not());
    }
}

#[test]
fn an_address_in_the_wrong_place_is_not_repeated() {
    program().args(["migrate", "redis://:s3cret@h"]).assert().code(2).stderr(contains("s3cret").not());
    program().args(["postgres://u:s3cret@h/d"]).assert().code(2).stderr(contains("s3cret").not());
}

#[test]
fn a_value_that_cannot_be_used_ends_with_3_and_says_what_to_do() {
    for (arguments, error, hint) in [
        (&["migrate"][..], "--postgres-url is not set", "DATABASE_URL"),
        (&["migrate", "--postgres-url", "postgres://h/d"], "--redis-url is not set", "REDIS_URL"),
        (&["config", "--postgres-url", "postgres://u:s3cret#@h/d"], "--postgres-url: holds a `#`", "%23"),
        (&["config", "--postgres-url", "postgres://h/d?sslmode=verify_full"], "--postgres-url: has the sslmode", "did you mean verify-full?"),
        (&["config", "--redis-url", "unix:///run/redis"], "--redis-url: is a Unix socket", "redis://HOST:PORT"),
        (&["config", "--redis-mode", "sentinel"], "--redis-sentinel-master is not set", "--redis-sentinel-master NAME"),
        (&["config", "--redis-mode", "clustr"], "--redis-mode: \"clustr\" is none of", "did you mean cluster?"),
        (&["config", "--chunk-time", "30"], "--chunk-time: \"30\" has no unit", "30s"),
    ] {
        let lines = format!("error: {error}");
        program().args(arguments).assert().code(3).stdout(is_empty()).stderr(starts_with(lines).and(contains("\nhint: ")).and(contains(hint)));
    }
    for arguments in [["--message-limit", "65536"], ["--jobs", "65"], ["--max-payload-bytes", "15000001"]] {
        program().arg("config").args(arguments).assert().code(3).stderr(contains("is not between 1 and"));
    }
}

#[test]
fn a_key_that_the_config_file_may_not_hold_is_named_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    std::fs::write(&file, "jobs = 2\nredis_url = 'redis://:s3cret@h'\n").unwrap();
    let path = file.to_str().unwrap();
    program()
        .args(["config", "--config", path])
        .assert()
        .code(3)
        .stderr(format!("error: {path}:2: unknown key \"redis_url\"\nhint: did you mean redis-url?\n"));
    program()
        .args(["config", "--config", "/no/such.toml"])
        .assert()
        .code(3)
        .stderr(starts_with("error: cannot read the config file /no/such.toml\ndetail: "));
}

#[test]
fn config_shows_each_origin_and_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let (config, env) = (directory.path().join("c.toml"), directory.path().join("b.env"));
    std::fs::write(&config, "# head\njobs = 2\nmessage-limit = 3\n").unwrap();
    std::fs::write(&env, "REDIS_HOST=r\r\nREDIS_PASSWORD='s3cret'\r\nCACHE_PREFIX=p:\r\n").unwrap();
    let (config, env) = (config.to_str().unwrap(), env.to_str().unwrap());
    let mut command = program();
    command.env("DATABASE_URL", "jdbc:postgresql://db/tbmq-prod?user=u&password=s3cret").args([
        "config",
        "--config",
        config,
        "--tbmq-env",
        env,
        "--jobs",
        "8",
    ]);
    let output = command.assert().code(0).stderr(is_empty()).stdout(contains("s3cret").not()).get_output().stdout.clone();
    let table = String::from_utf8(output).unwrap();
    let row = |name: &str| {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("postgres-url"), "postgres://u:******@db:5432/tbmq-prod environment DATABASE_URL");
    assert_eq!(row("redis-url"), format!("redis://:******@r:6379/0 TBMQ env file {env}:1 (REDIS_HOST)"));
    assert_eq!(row("key-prefix"), format!("p: TBMQ env file {env}:3 (CACHE_PREFIX)"));
    assert_eq!(row("jobs"), "8 option");
    assert_eq!(row("message-limit"), format!("3 config file {config}:3"));
    assert_eq!(row("default-ttl"), "7d default");
    assert_eq!(row("json"), "false default");
    assert_eq!(row("postgres-schema"), "(not set)");
}

#[test]
fn config_is_one_json_document_with_json() {
    let settings = settings(&["--redis-url", "redis://:s3cret@a", "--redis-url", "redis://:s3cret@b"]);
    assert_eq!(settings["redis-url"], serde_json::json!({ "value": "redis://:******@a:6379,b:6379/0", "origin": "option" }));
    assert_eq!(settings["postgres-url"], serde_json::json!({ "value": null, "origin": null }));
}

#[test]
fn an_option_may_stand_before_the_command() {
    let output = program().args(["--json", "--message-limit", "7", "config"]).assert().code(0).get_output().stdout.clone();
    let settings: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(settings["message-limit"]["value"], "7");
}

#[test]
fn color_is_for_those_who_ask() {
    let unset = ["migrate"];
    program().args(unset).assert().code(3).stderr(contains("\x1b[").not());
    program().args(unset).args(["--color", "always"]).assert().code(3).stderr(contains("\x1b[1;31merror:"));
    program().args(unset).args(["--color", "always"]).env("NO_COLOR", "1").assert().code(3).stderr(contains("\x1b["));
}

#[test]
fn directives_for_the_log_that_cannot_be_read_end_with_3() {
    program().arg("config").env("TBMQ_MIGRATE_LOG", "sqlx=loud").assert().code(3).stderr(starts_with("error: TBMQ_MIGRATE_LOG in the environment"));
}

#[test]
fn completions_know_commands_options_and_words_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = program().args(["completions", shell]).assert().code(0).stderr(is_empty());
        script.stdout(contains("migrate").and(contains("redis-url")).and(contains("--").or(contains("-l "))));
    }
    program().args(["completions", "bash"]).assert().stdout(contains("auto standalone cluster sentinel"));
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let pages = program().arg("man").assert().code(0).stderr(is_empty()).get_output().stdout.clone();
    let pages = String::from_utf8(pages).unwrap();
    assert_eq!(pages.lines().filter(|line| line.starts_with(".TH ")).count(), 1 + COMMANDS.len());
    for command in COMMANDS {
        assert!(pages.contains(&format!(".TH tbmq-migrate-{command} ")), "{command}");
    }
    assert!(pages.contains("interrupted, safe to run again"));
}

#[test]
fn a_reader_that_has_left_is_no_error() {
    for arguments in [&["config"][..], &["man"], &["completions", "zsh"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child =
            std::process::Command::new(assert_cmd::cargo::cargo_bin("tbmq-migrate")).args(arguments).stdout(writer).stderr(Stdio::piped()).spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("tbmq-migrate")).arg("config").stdout(full).stderr(Stdio::piped()).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: cannot write the result to stdout\ndetail: "));
}
