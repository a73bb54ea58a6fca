//! The sessions that a report names, and what it says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use crate::model::FindingKind;
use crate::verify::Problem;

/// No line of a report comes near it.
const LONGEST_LINE: u64 = 1 << 20;

/// What a report says of a session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The kinds of its findings.
    pub kinds: BTreeSet<FindingKind>,
    /// Packet ids of messages that PostgreSQL has not; some of them nothing refers to.
    pub(super) strays: BTreeSet<u16>,
}

/// The sessions of a report, each once, in the order of their bytes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Named(pub BTreeMap<String, Complaint>);

/// A line of a report. What else stands in it is not needed.
#[derive(Deserialize)]
struct Line {
    client_id: String,
    kind: String,
    packet_id: Option<u16>,
}

impl Named {
    /// Reads a report line by line.
    ///
    /// # Errors
    /// [`Problem::File`], or [`Problem::Report`] with the first line that is no finding.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let shown = || path.display().to_string();
        let file = |source| Problem::File { path: shown(), source };
        let mut reader = BufReader::new(File::open(path).map_err(file)?);
        let mut named = Self::default();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text).map_err(file)? == 0 {
                break;
            }
            named.add(&text).ok_or_else(|| Problem::Report { path: shown(), line })?;
        }
        Ok(named)
    }

    /// Adds a line; `None` when it is no finding.
    fn add(&mut self, text: &[u8]) -> Option<()> {
        let line: Line = serde_json::from_slice(text).ok()?;
        let kind = FindingKind::from_name(&line.kind)?;
        let complaint = self.0.entry(line.client_id).or_default();
        complaint.kinds.insert(kind);
        if let (FindingKind::ExtraMessage | FindingKind::OrphanString, Some(packet_id)) = (kind, line.packet_id) {
            complaint.strays.insert(packet_id);
        }
        Some(())
    }

    /// Whether there is nothing to repair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their ids.
    pub(super) fn clients(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Whether the report says this of a session.
    pub(super) fn says(&self, client: &str, kind: FindingKind) -> bool {
        self.0.get(client).is_some_and(|complaint| complaint.kinds.contains(&kind))
    }

    pub(super) fn strays(&self, client: &str) -> Vec<u16> {
        self.0.get(client).map(|complaint| complaint.strays.iter().copied().collect()).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_once_with_all_that_is_said_of_it() {
        let mut named = Named::default();
        for line in [
            r#"{"client_id":"a","kind":"extra_message","packet_id":7,"serial_number":null,"detail":"x"}"#,
            r#"{"client_id":"a","kind":"wrong_score","packet_id":8,"serial_number":3,"detail":"x"}"#,
            r#"{"client_id":"a","kind":"extra_message","packet_id":7,"serial_number":null,"detail":"x"}"#,
        ] {
            named.add(line.as_bytes()).unwrap();
        }
        assert_eq!(named.clients(), ["a"]);
        assert_eq!(named.strays("a"), [7]);
        assert!(named.says("a", FindingKind::WrongScore) && !named.says("a", FindingKind::ExtraSession));
    }

    #[test]
    fn what_is_no_finding_is_told_from_one() {
        for line in ["", "{}", "junk", r#"{"client_id":"a","kind":"other"}"#, r#"{"client_id":1,"kind":"wrong_score"}"#] {
            assert_eq!(Named::default().add(line.as_bytes()), None, "{line}");
        }
        assert_eq!(Named::default().add(br#"{"client_id":"a","kind":"extra_message","packet_id":65536}"#), None);
    }
}
