//! What a run prints, and where.

use std::process::{Command, Stdio};

use super::scene::{FIGURES, OUTCOMES, Scene, assert_ends};

#[test]
fn the_json_report_is_all_that_is_on_stdout_and_has_the_names_of_the_manual() {
    let scene = Scene::stocked();
    let outcome = scene.migrate_stock().run();
    assert_ends(&outcome, 0, &["both sides answer"]);
    let report = outcome.json();
    for name in FIGURES.iter().map(|(name, _)| *name).chain(OUTCOMES) {
        assert!(report[name].is_u64(), "{name} in {report:#}");
    }
    assert!(report["elapsed_seconds"].as_f64().unwrap() > 0.0);
    assert!(report["next_steps"].as_array().unwrap().iter().all(serde_json::Value::is_string));
    assert_eq!(report["run"], 1);
}

#[test]
fn the_table_has_a_line_for_each_figure() {
    let scene = Scene::stocked();
    let outcome = scene.migrate().args(["--message-limit", super::scene::LIMIT]).run();
    assert_ends(&outcome, 0, &[]);
    let figure = |name: &str| {
        let line = outcome.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("no {name} in {outcome:#?}"));
        line.split("  ").last().unwrap().trim().to_owned()
    };
    for (name, expected) in [
        ("sessions", "293"),
        ("rows read", "5,422"),
        ("migrated", "4,931"),
        ("expired by interval", "240"),
        ("expired by ttl", "240"),
        ("superseded", "1"),
        ("trimmed", "10"),
        ("quarantined", "0"),
        ("orphans", "5"),
    ] {
        assert_eq!(figure(name), expected, "{name}");
    }
    assert!(figure("seconds").parse::<f64>().unwrap() > 0.0 && figure("rows a second").replace(',', "").parse::<u64>().unwrap() > 0);
    assert!(outcome.stdout.contains("\nnext: trimmed rows were beyond --message-limit"), "{outcome:#?}");
}

#[test]
fn a_quiet_run_prints_its_result_and_nothing_else() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    let outcome = scene.migrate().args(["--quiet", "--json"]).run();
    assert_ends(&outcome, 0, &[]);
    assert_eq!(outcome.stderr, "");
    assert_eq!(outcome.json()["sessions"], 2);
}

#[test]
fn the_log_can_be_json_too() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    let outcome = scene.migrate().args(["-v", "--log-format", "json", "--json"]).run();
    assert_ends(&outcome, 0, &[]);
    let events: Vec<serde_json::Value> = outcome.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["level"] == "DEBUG" && event["fields"]["message"] == "chunk done"), "{events:#?}");
}

#[test]
fn no_secret_is_in_any_stream() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    scene.redis.cli(&["CONFIG", "SET", "requirepass", "topsecret-right"]);
    let right = format!("redis://:topsecret-right@127.0.0.1:{}", scene.redis.port);
    let postgres = scene.database.url.replace("correct%20horse", "topsecret-wrong");
    let wrong = format!("redis://:topsecret-wrong@127.0.0.1:{}", scene.redis.port);
    let call = |postgres: &str, redis: &str| {
        crate::support::tool::Tool::new()
            .args(["migrate", "-vv", "--postgres-url", postgres, "--redis-url", redis])
            .env("TBMQ_MIGRATE_LOG", "trace")
            .run()
    };
    for (outcome, code, text) in [
        (call(&postgres, &right), 4, "error: cannot connect to PostgreSQL at postgres@127.0.0.1:"),
        (call(&scene.database.url, &wrong), 4, "error: cannot connect to Redis at redis://127.0.0.1:"),
        (call(&scene.database.url, &right), 0, ""),
    ] {
        assert_ends(&outcome, code, &[text]);
        for stream in [&outcome.stdout, &outcome.stderr] {
            for secret in ["topsecret", "correct horse", "correct%20horse"] {
                assert!(!stream.contains(secret), "{secret} in {stream}");
            }
        }
    }
}

#[test]
fn on_a_terminal_there_is_a_bar_and_the_result_is_whole() {
    let scene = Scene::empty();
    scene.add_sessions("a", 60);
    let directory = tempfile::tempdir().unwrap();
    let result = directory.path().join("result");
    let call = format!(
        "'{}' migrate --json --max-rate 600 --postgres-url '{}' --redis-url '{}' > '{}'",
        env!("CARGO_BIN_EXE_tbmq-migrate"),
        scene.database.url,
        scene.redis.url(),
        result.display()
    );
    // util-linux's script gives the program a terminal of its own; here only its stderr is one.
    let shown = Command::new("script").args(["-q", "-e", "-c", &call, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null()).output();
    let Ok(shown) = shown else {
        eprintln!("skipped: no script from util-linux");
        return;
    };
    let screen = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success(), "{screen}");
    assert!(screen.contains("of about 600 rows") && screen.contains("both sides answer"), "{screen}");
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    assert_eq!(report["rows_read"], 600);
}

#[test]
fn a_result_that_cannot_be_written_ends_with_1() {
    let scene = Scene::empty();
    scene.add_sessions("a", 2);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tbmq-migrate"))
        .args(["migrate", "--postgres-url", &scene.database.url, "--redis-url", &scene.redis.url()])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error: cannot write the result to stdout\n"), "{stderr}");
    assert_eq!(scene.keys(), 24);
}
