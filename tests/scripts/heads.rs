//! Every script says what it takes, what it gives, and why it may run twice.

use std::path::Path;

const PARTS: [&str; 4] = ["KEYS", "ARGV", "RETURNS", "TWICE"];

/// The text of one part of a head: what follows `-- NAME:` up to the next part or the end of the comment.
fn part(script: &str, name: &str) -> Option<String> {
    let head = script.lines().take_while(|line| line.starts_with("--"));
    let lines: Vec<&str> = head.map(|line| line.trim_start_matches('-').trim()).collect();
    let begins = |line: &str, name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    let first = lines.iter().position(|line| begins(line, name))?;
    let follows = |line: &&str| !PARTS.iter().any(|part| begins(line, part));
    let rest = lines[first + 1..].iter().copied().take_while(follows);
    let text: Vec<&str> = std::iter::once(&lines[first][name.len() + 1..]).chain(rest).map(str::trim).collect();
    Some(text.join(" ").trim().to_owned()).filter(|text| !text.is_empty())
}

/// The names of the missing or empty parts.
fn missing(script: &str) -> Vec<&'static str> {
    PARTS.into_iter().filter(|name| part(script, name).is_none()).collect()
}

#[test]
fn every_script_has_a_complete_head() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let script = std::fs::read_to_string(&path).unwrap();
        assert_eq!(missing(&script), [] as [&str; 0], "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    let expected = [
        "add_messages.lua",
        "create_sessions.lua",
        "get_messages.lua",
        "measure_messages.lua",
        "note_chunk.lua",
        "remove_message.lua",
        "remove_messages.lua",
        "replace_sessions.lua",
        "trim_sessions.lua",
        "update_packet_type.lua",
    ];
    assert_eq!(names, expected, "a test file belongs to each script");
}

#[test]
fn an_empty_part_counts_as_missing() {
    assert_eq!(missing("return 1"), PARTS);
    let script = "-- Does.\n-- KEYS: none\n-- ARGV:\n-- RETURNS:\n--   one\n-- TWICE: yes\nreturn 1";
    assert_eq!(missing(script), ["ARGV"]);
    assert_eq!(part(script, "RETURNS").as_deref(), Some("one"));
    assert_eq!(missing("local a\n-- KEYS: a\n-- ARGV: b\n-- RETURNS: c\n-- TWICE: d"), PARTS);
}
