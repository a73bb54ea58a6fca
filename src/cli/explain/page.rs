//! An explanation as text: no line longer than 100 columns, and nothing in it that a terminal would obey.

use super::super::report::grouped;
use super::width::{LINE, beginning, pieces, wrapped};
use super::{moment, table};
use crate::model::EscapedText;
use crate::verify::{Explanation, SeenKey, SeenPayload, SeenString, Standing};

/// Columns of the names of the fields.
const NAMES: usize = 16;
/// Differences that are told one by one; more are in the JSON.
const MOST_FINDINGS: usize = 200;
/// Columns of what a reference refers to that is no message.
const MEMBER: usize = 60;
/// Digits of milliseconds since the epoch, from 1973 on.
const SHORTEST_MOMENT: usize = 12;

/// The whole page.
pub(super) fn text(explanation: &Explanation) -> String {
    let mut page = Page::default();
    page.head(explanation);
    page.rows(explanation);
    page.unexplained(explanation);
    page.differences(explanation);
    page.end(explanation);
    page.0
}

/// A text that is growing.
#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    /// A name and what belongs to it, over as many lines as it takes.
    fn field(&mut self, name: &str, text: &str) {
        for (at, piece) in wrapped(text, LINE - NAMES).iter().enumerate() {
            self.line(&format!("{:NAMES$}{piece}", if at == 0 { name } else { "" }));
        }
    }

    fn head(&mut self, explanation: &Explanation) {
        let now = explanation.now.0;
        let id = format!("\"{}\"", EscapedText(explanation.client.as_str()));
        for (at, piece) in pieces(&id, LINE - NAMES).iter().enumerate() {
            // A space at the end of a piece belongs to the id.
            self.0 += &format!("{:NAMES$}{piece}\n", if at == 0 { "client id" } else { "" });
        }
        let node = explanation.node.as_deref().map_or_else(|| "none".to_owned(), |node| EscapedText(node).to_string());
        let place = match (explanation.is_cluster, explanation.slot) {
            (true, Some(slot)) => format!("slot {slot}, on {node}"),
            (true, None) => "no node of a cluster can hold it: its keys span slots".to_owned(),
            (false, Some(slot)) => format!("{node} (on a cluster: slot {slot})"),
            (false, None) => format!("{node} (a cluster could not hold it)"),
        };
        self.field("place", &place);
        let or_null = |number: Option<i64>| number.map_or_else(|| "null".to_owned(), |number| number.to_string());
        let context = match &explanation.context {
            Some(context) => {
                let updated = explanation.last_updated.map(|ms| format!(", updated {} UTC ({})", moment::date(ms), moment::left(ms, now)));
                let (serial, packet_id) = (or_null(context.last_serial_number), or_null(context.last_packet_id.map(i64::from)));
                format!("last serial {serial}, last packet id {packet_id}{}", updated.unwrap_or_default())
            }
            None => "none in PostgreSQL".to_owned(),
        };
        self.field("context", &context);
        self.field("last packet id", &last_packet_id(explanation));
        let references = match (explanation.references, &explanation.head.set_of_other_type) {
            (_, Some(name)) => format!("the key of the sorted set holds a {}", EscapedText(name)),
            (None, None) => "Redis was not asked".to_owned(),
            (Some(count), None) => format!("{} references in Redis", grouped(count)),
        };
        self.field("messages", &format!("{} rows in PostgreSQL, {references}", grouped(explanation.tally.rows_read)));
        self.field("seen at", &format!("{} UTC, by the clock of Redis", moment::date(now)));
        let known = match (explanation.in_postgresql, explanation.in_redis) {
            (false, false) => "by neither side: no row in PostgreSQL, no key in Redis",
            (true, false) => "by PostgreSQL alone: no key in Redis",
            (false, true) => "by Redis alone: no row in PostgreSQL",
            (true, true) => return,
        };
        self.field("known", known);
    }

    fn rows(&mut self, explanation: &Explanation) {
        let listed = u64::try_from(explanation.rows.len()).unwrap_or(u64::MAX);
        let hidden = explanation.tally.rows_read.saturating_sub(listed);
        let lines = table::lines(explanation);
        if hidden > 0 || !lines.is_empty() {
            self.line("");
        }
        let mut lines = lines.iter();
        if let Some(header) = lines.next() {
            self.line(header);
        }
        if hidden > 0 {
            self.line(&format!("… {} older rows are not shown; --rows N shows more", grouped(hidden)));
        }
        lines.for_each(|line| self.line(line));
    }

    fn unexplained(&mut self, explanation: &Explanation) {
        if explanation.unexplained == 0 {
            return;
        }
        self.line("");
        self.line("in Redis, and no row explains it:");
        self.line(&format!("{:>6} {:>9} {:19} {:10} what", "packet", "score", "deadline (UTC)", "left"));
        for key in &explanation.unexplained_keys {
            self.key(key, explanation.now.0);
        }
        let hidden = explanation.unexplained - u64::try_from(explanation.unexplained_keys.len()).unwrap_or(0);
        if hidden > 0 {
            self.line(&format!("… {} more are not shown; --rows N shows more", grouped(hidden)));
        }
    }

    fn key(&mut self, key: &SeenKey, now: i64) {
        let packet_id = key.packet_id.map_or_else(|| "-".to_owned(), |packet_id| packet_id.to_string());
        let (date, left) = match (key.deadline, &key.string) {
            (Some(end), _) => (moment::date(end.0), moment::left(end.0, now)),
            (None, SeenString::Missing) => Default::default(),
            (None, SeenString::Message { .. } | SeenString::Unreadable(_) | SeenString::Other(_)) => (String::new(), "never".to_owned()),
        };
        let start = format!("{packet_id:>6} {:>9} {date:19} {left:10} ", table::score(key.score));
        let unreferenced = if key.score.is_none() { ", and nothing refers to it" } else { "" };
        let (what, payload) = match (&key.string, &key.member) {
            (_, Some(member)) => {
                (format!("a reference to \"{}\", no message of the session", beginning(&EscapedText(member).to_string(), MEMBER)), None)
            }
            (SeenString::Missing, None) => ("a reference; its message is gone".to_owned(), None),
            (SeenString::Other(name), None) => (format!("a {}{unreferenced}", EscapedText(name)), None),
            (SeenString::Unreadable(bytes), None) => (format!("a message that no broker can read, {bytes} bytes{unreferenced}"), None),
            (SeenString::Message { packet_type, qos, payload }, None) => {
                let qos = qos.map_or_else(String::new, |qos| format!(" qos {qos}"));
                (format!("{}{qos}, {} bytes{unreferenced}", packet_type.name(), payload.bytes), Some(payload))
            }
        };
        let (first, indent) = (start.chars().count(), " ".repeat(start.chars().count()));
        for (at, piece) in wrapped(&what, LINE - first).iter().enumerate() {
            self.line(&format!("{}{piece}", if at == 0 { &start } else { &indent }));
        }
        content(None, payload).iter().for_each(|line| self.line(line));
    }

    fn differences(&mut self, explanation: &Explanation) {
        let findings = &explanation.findings;
        if findings.is_empty() {
            return;
        }
        self.line("");
        self.line("differences:");
        for finding in findings.iter().take(MOST_FINDINGS) {
            let serial = finding.serial_number.map(|serial| format!("serial {serial}"));
            let packet_id = finding.packet_id.map(|packet_id| format!("packet id {packet_id}"));
            let subject: Vec<String> = [serial, packet_id].into_iter().flatten().collect();
            let subject = if subject.is_empty() { "the session".to_owned() } else { subject.join(", ") };
            let told = format!("{} ({subject}): {}", finding.kind.name(), dated(&finding.detail));
            for (at, piece) in wrapped(&told, LINE - 2).iter().enumerate() {
                self.line(&format!("{} {piece}", if at == 0 { "≠" } else { " " }));
            }
        }
        let hidden = u64::try_from(findings.len().saturating_sub(MOST_FINDINGS)).unwrap_or(0) + explanation.unlisted_findings;
        if hidden > 0 {
            self.line(&format!("… {} more; --json lists the first 10,000", grouped(hidden)));
        }
    }

    fn end(&mut self, explanation: &Explanation) {
        self.line("");
        let tally = &explanation.tally;
        let outcomes = [
            ("migrated", tally.messages_migrated),
            ("expired by interval", tally.expired_by_interval),
            ("expired by ttl", tally.expired_by_ttl),
            ("superseded", tally.superseded),
            ("trimmed", tally.trimmed),
            ("quarantined", tally.quarantined),
        ];
        let outcomes: Vec<String> =
            outcomes.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{} {name}", grouped(*count))).collect();
        self.field("outcomes", &if outcomes.is_empty() { "no rows".to_owned() } else { outcomes.join(", ") });
        if tally.orphan_messages > 0 {
            self.field("orphans", "the rows have no context: normal for a shared subscription");
        }
        if tally.invalid_contexts > 0 {
            self.field("context", "its last packet id is outside 0..65535 and counts as null");
        }
        let count = u64::try_from(explanation.findings.len()).unwrap_or(0) + explanation.unlisted_findings;
        let result = match (explanation.standing, explanation.in_postgresql || explanation.in_redis) {
            (_, false) => "neither side knows this session".to_owned(),
            (Standing::Equal, true) => "no difference: Redis holds what the rows say".to_owned(),
            (Standing::Different, true) if count == 1 => "1 difference".to_owned(),
            (Standing::Different, true) => format!("{} differences", grouped(count)),
            (Standing::Moving, true) => {
                "moving: it did not hold still for 5 s. What is shown is one moment of it; a difference is listed only if it stayed".to_owned()
            }
        };
        self.field("result", &result);
        for step in &explanation.next_steps {
            for (at, piece) in wrapped(step, LINE - 6).iter().enumerate() {
                self.line(&format!("{}{piece}", if at == 0 { "next: " } else { "      " }));
            }
        }
    }
}

fn last_packet_id(explanation: &Explanation) -> String {
    let head = &explanation.head;
    let wanted = explanation.wanted_last_packet_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let found = match (&head.last_packet_id, &head.last_packet_id_type) {
        (_, Some(name)) => format!("a {}", EscapedText(name)),
        (Some(text), None) => beginning(&EscapedText(text).to_string(), 40),
        (None, None) => "none".to_owned(),
    };
    let end = head.last_packet_id_deadline.map(|end| format!(", which ends at {} UTC and must stay", moment::date(end.0)));
    format!("{wanted} by the rows, {found} in Redis{}", end.unwrap_or_default())
}

/// The words of a finding with dates for the milliseconds in them.
fn dated(detail: &str) -> String {
    let words: Vec<&str> = detail.split(' ').collect();
    let is_moment = |word: &str| word.len() >= SHORTEST_MOMENT && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut dated: Vec<String> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| words[before].parse().ok()).filter(|_| is_moment(words[at - 1]));
        match (before, word.strip_prefix("ms"), dated.last_mut()) {
            (Some(ms), Some(end), Some(last)) => *last = format!("{} UTC{end}", moment::date(ms)),
            _ => dated.push((*word).to_owned()),
        }
    }
    dated.join(" ")
}

/// Topic and payload on lines of their own, where payloads are to be shown.
pub(super) fn content(topic: Option<&str>, payload: Option<&SeenPayload>) -> Vec<String> {
    let Some(SeenPayload { bytes, beginning: Some(shown), .. }) = payload else { return Vec::new() };
    let more = if shown.len() < *bytes { format!(" (the first {} of {bytes} bytes)", shown.len()) } else { String::new() };
    let topic = topic.map(|topic| format!("topic   \"{}\"", EscapedText(topic)));
    let payload = format!("payload \"{}\"{more}", EscapedText(&String::from_utf8_lossy(shown)));
    let texts = topic.into_iter().chain([payload]);
    texts.flat_map(|text| pieces(&text, LINE - 10)).map(|piece| format!("{:10}{piece}", "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_milliseconds_of_a_finding_are_told_as_dates() {
        let detail = "it is 1796073271729 ms instead of 1796073206729 ms: +65 s, 12 ms";
        assert_eq!(dated(detail), "it is 2026-11-30 21:14:31 UTC instead of 2026-11-30 21:13:26 UTC: +65 s, 12 ms");
        assert_eq!(dated("no  moment \"999999999999\" ms"), "no  moment \"999999999999\" ms");
    }
}
