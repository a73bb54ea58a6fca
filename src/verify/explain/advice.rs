//! What a person can do about a session.

use super::seen::{Explanation, Standing};
use crate::model::FindingKind;

/// Characters of a call that still fit a line of a terminal, and can be copied from it.
const LONGEST_ID: usize = 48;
/// Characters that no shell gives a meaning to.
const PLAIN: &str = "-_./:@%+,=";

/// The next steps, in their order.
pub(super) fn next_steps(explanation: &Explanation) -> Vec<String> {
    let mut steps = Vec::new();
    if !explanation.in_postgresql && !explanation.in_redis {
        steps.push("compare the id with the broker's, letter by letter: case and spaces count".to_owned());
        steps.push("see which servers, schema and key prefix were asked: tbmq-migrate config".to_owned());
        return steps;
    }
    let named = named(explanation.client.as_str());
    match explanation.standing {
        Standing::Equal => {}
        Standing::Different => {
            let has = |kind| explanation.findings.iter().any(|finding| finding.kind == kind);
            steps.push(format!("write the differences down: tbmq-migrate verify {named} --report FILE"));
            let extra = if has(FindingKind::ExtraSession) { " --delete-extra" } else { "" };
            steps.push(format!("see what a repair would do, then add --execute: tbmq-migrate repair --report FILE{extra}"));
            if has(FindingKind::ForeignType) {
                steps.push("a key of another type is never overwritten: look at it with redis-cli, then rename or delete it".to_owned());
            }
        }
        Standing::Moving => {
            steps.push("brokers were at work on the session: run the same command again when the device is quiet".to_owned());
            steps.push(format!("or wait longer for a quiet moment: tbmq-migrate verify {named} --settle-timeout 5min"));
        }
    }
    if explanation.tally.anything_quarantined() {
        steps.push("mend or delete in PostgreSQL what cannot be carried; the reason stands beside it".to_owned());
    }
    steps
}

/// The option that names the session, as a shell takes it.
fn named(client: &str) -> String {
    let option = if client.is_empty() || client.starts_with('-') { "--client=" } else { "--client " };
    let quoted = match client {
        plain if !plain.is_empty() && plain.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c)) => plain.to_owned(),
        printable if printable.chars().all(|c| (' '..='~').contains(&c)) => format!("'{}'", printable.replace('\'', r"'\''")),
        // The form that bash, zsh and ksh share.
        other => {
            let bytes = other.bytes().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(byte)),
                b' '..=b'~' => char::from(byte).to_string(),
                _ => format!("\\{byte:03o}"),
            });
            format!("$'{}'", bytes.collect::<String>())
        }
    };
    match quoted.len() <= LONGEST_ID {
        true => format!("{option}{quoted}"),
        false => "--clients-file IDS, a file with the id in it,".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The quoted forms are those that `printf %s` gives back in bash.
    #[test]
    fn an_id_is_named_as_a_shell_takes_it() {
        for (client, expected) in [
            ("dev-1", "--client dev-1"),
            ("-5", "--client=-5"),
            ("", "--client=''"),
            ("a b", "--client 'a b'"),
            ("it's", r"--client 'it'\''s'"),
            ("$(x)`y`", "--client '$(x)`y`'"),
            ("~", "--client '~'"),
            ("\u{1b}[2J", r"--client $'\033[2J'"),
            ("ü'\\", r"--client $'\303\274\'\\'"),
        ] {
            assert_eq!(named(client), expected, "{client:?}");
        }
        assert!(named(&"x".repeat(255)).starts_with("--clients-file IDS"));
    }
}
