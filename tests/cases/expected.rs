//! What must come of a case, and where it differs from what came.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value as Json;

use crate::support::keyspace::{Keyspace, Value};
use crate::support::tool::{FIGURES, Outcome};

/// `expected.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The exit code.
    exit: i32,
    /// The figures of `--json`, those that are 0 left out; none where the run ends without a report.
    counts: Option<BTreeMap<String, u64>>,
    /// The quarantine list, in any order.
    #[serde(default)]
    quarantine: Vec<Quarantined>,
    /// Every key, without the key prefix, also in the members of a set.
    keys: BTreeMap<String, Wanted>,
    /// Texts that stand somewhere on the standard error.
    #[serde(default)]
    stderr: Vec<String>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(deny_unknown_fields)]
struct Quarantined {
    client_id: String,
    serial_number: Option<i64>,
    reason: String,
}

/// A key's value.
#[derive(Deserialize, Debug)]
#[serde(untagged, deny_unknown_fields)]
enum Wanted {
    /// A sorted set in its order: members with their scores.
    Set(Vec<(String, f64)>),
    /// A string that stays for ever.
    Text(String),
    /// A string that is compared as JSON, and when it ends.
    Message { json: Json, deadline: i64 },
    /// Any other string.
    Plain { text: String, deadline: Option<i64> },
    /// A key of another type.
    Other { r#type: String },
}

impl Expected {
    /// All differences, in words.
    pub fn differences(&self, outcome: &Outcome, quarantine: &str, keys: &Keyspace) -> Vec<String> {
        let mut found = Vec::new();
        if outcome.code != Some(self.exit) {
            found.push(format!("exit code {:?} instead of {}", outcome.code, self.exit));
        }
        self.compare_counts(outcome, &mut found);
        self.compare_quarantine(quarantine, &mut found);
        self.compare_keys(keys, &mut found);
        let missing = self.stderr.iter().filter(|text| !outcome.stderr.contains(*text));
        found.extend(missing.map(|text| format!("{text:?} is not on stderr")));
        found
    }

    fn compare_counts(&self, outcome: &Outcome, found: &mut Vec<String>) {
        let Some(counts) = &self.counts else {
            if !outcome.stdout.is_empty() {
                found.push(format!("a report where none was expected: {}", outcome.stdout));
            }
            return;
        };
        if let Some(name) = counts.keys().find(|name| !FIGURES.contains(&name.as_str())) {
            found.push(format!("expected.json: no count is called {name}"));
        }
        let Ok(report) = serde_json::from_str::<Json>(&outcome.stdout) else {
            found.push(format!("no JSON report: {:?}", outcome.stdout));
            return;
        };
        for name in FIGURES {
            let wanted = counts.get(name).copied().unwrap_or(0);
            if report[name].as_u64() != Some(wanted) {
                found.push(format!("{name} is {} instead of {wanted}", report[name]));
            }
        }
    }

    fn compare_quarantine(&self, list: &str, found: &mut Vec<String>) {
        let parsed: Result<BTreeSet<Quarantined>, _> = list.lines().map(serde_json::from_str).collect();
        match parsed {
            Err(error) => found.push(format!("the quarantine list cannot be read: {error}\n{list}")),
            Ok(listed) => {
                let missing = self.quarantine.iter().filter(|row| !listed.contains(row));
                found.extend(missing.map(|row| format!("not in the quarantine list: {row:?}")));
                let extra = listed.iter().filter(|row| !self.quarantine.contains(row));
                found.extend(extra.map(|row| format!("extra in the quarantine list: {row:?}")));
                if list.lines().count() != listed.len() {
                    found.push("the quarantine list repeats a row".to_owned());
                }
            }
        }
    }

    fn compare_keys(&self, keys: &Keyspace, found: &mut Vec<String>) {
        for (name, wanted) in &self.keys {
            match keys.get(name) {
                None => found.push(format!("{name} is missing")),
                Some(value) => {
                    if let Some(difference) = wanted.difference(value) {
                        found.push(format!("{name}: {difference}"));
                    }
                }
            }
        }
        let extra = keys.0.iter().filter(|(key, _)| !self.keys.contains_key(&*String::from_utf8_lossy(key)));
        found.extend(extra.map(|(key, value)| format!("extra key {}: {value:?}", String::from_utf8_lossy(key))));
    }
}

impl Wanted {
    fn difference(&self, value: &Value) -> Option<String> {
        let equal = match (self, value) {
            (Self::Set(members), Value::ZSet(found)) => {
                members.len() == found.len() && members.iter().zip(found).all(|(a, b)| a.0.as_bytes() == b.0 && a.1.to_bits() == b.1.to_bits())
            }
            (Self::Text(text), Value::Str { bytes, pexpiretime_ms: None }) => text.as_bytes() == bytes,
            (Self::Plain { text, deadline }, Value::Str { bytes, pexpiretime_ms }) => text.as_bytes() == bytes && deadline == pexpiretime_ms,
            (Self::Message { json, deadline }, Value::Str { bytes, pexpiretime_ms }) => {
                *pexpiretime_ms == Some(*deadline)
                    && serde_json::from_slice::<Json>(bytes).is_ok_and(|found| found == *json)
                    && !bytes.contains(&b'\n')
            }
            (Self::Other { r#type }, Value::Other(found)) => r#type == found,
            _ => false,
        };
        (!equal).then(|| format!("is {value:?} instead of {self:?}"))
    }
}
