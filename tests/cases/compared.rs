//! What a comparison after a case must find.

use serde::Deserialize;

use crate::support::tool::Outcome;

/// `verify.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The exit code.
    exit: i32,
    /// All findings, in any order, without their words.
    findings: Vec<Finding>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug, Clone)]
struct Finding {
    client_id: String,
    kind: String,
    packet_id: Option<i64>,
    serial_number: Option<i64>,
}

impl Comparison {
    /// No finding; the same exit code as the copy.
    pub fn equal(exit: i32) -> Self {
        Self { exit, findings: Vec::new() }
    }

    /// All differences, in words; `list` is the report file.
    pub fn differences(&self, outcome: &Outcome, list: &str) -> Vec<String> {
        let mut differences = Vec::new();
        if outcome.code != Some(self.exit) {
            differences.push(format!("verify: exit code {:?} instead of {}: {}", outcome.code, self.exit, outcome.stderr.trim()));
        }
        let parsed: Result<Vec<Finding>, _> = list.lines().map(serde_json::from_str).collect();
        match parsed {
            Err(error) => differences.push(format!("verify: the report cannot be read: {error}\n{list}")),
            Ok(mut found) => {
                let mut wanted = self.findings.clone();
                found.sort();
                wanted.sort();
                if found != wanted {
                    differences.push(format!("verify: {wanted:?} should be found, and this is:\n{list}"));
                }
            }
        }
        differences
    }
}
