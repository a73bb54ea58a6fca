//! The rows of a session in columns, PostgreSQL to the left and Redis to the right.

use std::collections::HashSet;

use super::reason;
use super::width::{LINE, beginning, end, width, wrapped};
use super::{moment, page};
use crate::model::{EscapedText, Millis, Outcome};
use crate::verify::{Explanation, SeenKey, SeenRow, SeenString};

/// The columns: the name, and the most that a cell takes. Together with what stands between them they fill a line.
const LEFT: [(&str, usize); 7] = [("serial", 9), ("packet", 6), ("type qos", 9), ("bytes", 7), ("became", 13), ("deadline (UTC)", 19), ("left", 10)];
const RIGHT: [(&str, usize); 3] = [("score", 9), ("ends", 6), ("", 1)];
/// The column from which on a row says why it is not in Redis.
const REASON: usize = 5;

/// A row as cells.
struct Line {
    left: [String; 7],
    right: [String; 3],
    reason: Option<String>,
    /// What follows on lines of its own.
    below: Vec<String>,
}

/// The lines of the table; none for a session without rows that are listed.
pub(super) fn lines(explanation: &Explanation) -> Vec<String> {
    let differing: HashSet<i64> = explanation.findings.iter().filter_map(|finding| finding.serial_number).collect();
    let rows: Vec<Line> = explanation.rows.iter().map(|row| line(row, explanation, &differing)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let widest = |name: &str, cell: &dyn Fn(&Line) -> usize| rows.iter().map(cell).chain([width(name)]).max().unwrap_or(0);
    let left: Vec<usize> = LEFT.iter().enumerate().map(|(at, (name, _))| widest(name, &|row| width(&row.left[at]))).collect();
    let right: Vec<usize> = RIGHT.iter().enumerate().map(|(at, (name, _))| widest(name, &|row| width(&row.right[at]))).collect();
    let mut lines = vec![header(&left, &right)];
    for row in &rows {
        lines.extend(row.lines(&left, &right));
    }
    lines
}

fn header(left: &[usize], right: &[usize]) -> String {
    let names = |columns: &[(&str, usize)], widths: &[usize]| {
        let cells = columns.iter().zip(widths).enumerate().map(|(at, ((name, _), width))| padded(name, *width, is_number(columns.len(), at)));
        cells.collect::<Vec<_>>().join(" ")
    };
    format!("{} │ {}", names(&LEFT, left), names(&RIGHT, right)).trim_end().to_owned()
}

/// Numbers stand to the right of their column.
fn is_number(columns: usize, at: usize) -> bool {
    if columns == LEFT.len() { matches!(at, 0 | 1 | 3) } else { at == 0 }
}

fn padded(text: &str, most: usize, to_the_right: bool) -> String {
    let blank = " ".repeat(most.saturating_sub(width(text)));
    if to_the_right { blank + text } else { text.to_owned() + &blank }
}

impl Line {
    fn lines(&self, left: &[usize], right: &[usize]) -> Vec<String> {
        let cell = |at: usize| padded(&self.left[at], left[at], is_number(LEFT.len(), at));
        let start: String = (0..REASON).map(|at| cell(at) + " ").collect();
        let room = left[REASON] + 1 + left[REASON + 1];
        let side = (0..RIGHT.len()).map(|at| padded(&self.right[at], right[at], is_number(RIGHT.len(), at))).collect::<Vec<_>>().join(" ");
        let mut lines = match &self.reason {
            None => vec![format!("{start}{} {} │ {side}", cell(REASON), cell(REASON + 1))],
            Some(reason) if width(reason) <= room => vec![format!("{start}{} │ {side}", padded(reason, room, false))],
            Some(reason) => {
                let indent = " ".repeat(width(&start));
                let pieces = wrapped(reason, LINE - width(&start));
                pieces.iter().enumerate().map(|(at, piece)| format!("{}{piece}", if at == 0 { &start } else { &indent })).collect()
            }
        };
        lines.extend(self.below.iter().cloned());
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn line(row: &SeenRow, explanation: &Explanation, differing: &HashSet<i64>) -> Line {
    let number = |number: Option<i32>| number.map_or_else(|| "null".to_owned(), |number| number.to_string());
    let packet_type = beginning(&EscapedText(row.packet_type.as_deref().unwrap_or("PUBLISH")).to_string(), 7);
    let now = explanation.now.0;
    let (date, left) = row.deadline.map_or_else(Default::default, |Millis(ms)| (moment::date(ms), moment::left(ms, now)));
    let became = match row.outcome {
        Outcome::Quarantined(_) => "quarantined",
        Outcome::Superseded => "superseded",
        Outcome::Trimmed => "trimmed",
        Outcome::ExpiredByInterval => "expired (own)",
        Outcome::ExpiredByTtl => "expired (ttl)",
        Outcome::Migrated => "migrated",
    };
    let left = [
        end(&row.serial_number.to_string(), LEFT[0].1),
        end(&number(row.packet_id), LEFT[1].1),
        beginning(&format!("{packet_type} {}", number(row.qos)), LEFT[2].1),
        row.payload.as_ref().map_or_else(|| "null".to_owned(), |payload| bytes(payload.bytes)),
        became.to_owned(),
        date,
        left,
    ];
    let mark = if differing.contains(&row.serial_number) { "≠" } else { "" };
    let right = match &row.found {
        Some(found) => [score(found.score), ends(found, row.deadline), mark.to_owned()],
        None => [String::new(), String::new(), mark.to_owned()],
    };
    let reason = row.deadline.is_none().then(|| reason(row, explanation.message_limit).unwrap_or_default());
    Line { left, right, reason, below: page::content(row.topic.as_deref(), row.payload.as_ref()) }
}

/// A size that takes seven columns at most: exact up to 9,999,999.
pub(super) fn bytes(bytes: usize) -> String {
    if bytes < 10_000_000 { bytes.to_string() } else { format!("{}K", bytes / 1024) }
}

/// A score as it stands there, or that there is none.
pub(super) fn score(score: Option<f64>) -> String {
    let most = RIGHT[0].1;
    match score {
        None => "-".to_owned(),
        Some(score) if score.fract() == 0.0 && score.abs() < 1e16 => end(&score.to_string(), most),
        Some(score) => beginning(&score.to_string(), most),
    }
}

/// When the string ends: by how much it is off.
fn ends(found: &SeenKey, wanted: Option<Millis>) -> String {
    match (&found.string, found.deadline, wanted) {
        (SeenString::Missing, _, _) => "gone".to_owned(),
        (SeenString::Other(name), _, _) => beginning(&EscapedText(name).to_string(), RIGHT[1].1),
        (SeenString::Message { .. } | SeenString::Unreadable(_), None, _) => "never".to_owned(),
        (_, Some(deadline), Some(wanted)) => beginning(&moment::difference(deadline.0.saturating_sub(wanted.0)), RIGHT[1].1),
        (_, Some(_), None) => String::new(),
    }
}
