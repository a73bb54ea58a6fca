//! The end of a run, as a table or as one JSON document.

use std::fmt::Write as _;

use super::exit::ExitCode;
use super::failure::Failure;
use crate::migrate::Report;

/// A report as one JSON document.
///
/// # Errors
/// None that can happen: a report is text and numbers.
pub(super) fn json(report: &impl serde::Serialize) -> Result<String, Failure> {
    let mut document = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::new(ExitCode::Unexpected, "cannot write the report").detail(error.to_string()))?;
    document.push('\n');
    Ok(document)
}

/// The report as a table, and the next steps.
pub(super) fn text(report: &Report) -> String {
    let tally = &report.tally;
    let mut rows = vec![
        ("sessions", grouped(tally.sessions)),
        ("rows read", grouped(tally.rows_read)),
        ("  migrated", grouped(tally.messages_migrated)),
        ("  expired by interval", grouped(tally.expired_by_interval)),
        ("  expired by ttl", grouped(tally.expired_by_ttl)),
        ("  superseded", grouped(tally.superseded)),
        ("  trimmed", grouped(tally.trimmed)),
        ("  quarantined", grouped(tally.quarantined)),
        ("orphans among the rows", grouped(tally.orphan_messages)),
        ("seconds", format!("{:.1}", report.elapsed_seconds)),
        ("rows a second", format!("{:.0}", report.rows_per_second)),
    ];
    if tally.invalid_contexts > 0 {
        rows.push(("contexts that cannot be carried", grouped(tally.invalid_contexts)));
    }
    if report.sessions_removed > 0 {
        rows.push(("sessions removed from Redis", grouped(report.sessions_removed)));
    }
    if report.rows_of_other_calls > 0 {
        rows.push(("rows read by earlier or other calls", grouped(report.rows_of_other_calls)));
    }
    match report.source_changed {
        Some(true) => rows.push(("rows changed meanwhile", "yes".to_owned())),
        None => rows.push(("rows changed meanwhile", "unknown".to_owned())),
        Some(false) => {}
    }
    let head = if report.dry_run { "dry run, nothing was written\n" } else { "" };
    head.to_owned() + &table(&rows, &report.next_steps)
}

/// Names and values in two columns, and the next steps.
pub(super) fn table(rows: &[(&str, String)], next_steps: &[String]) -> String {
    let mut text = String::new();
    let (names, values) = (width(rows.iter().map(|row| row.0)), width(rows.iter().map(|row| row.1.as_str())));
    for (name, value) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:names$}  {value:>values$}");
    }
    for step in next_steps {
        let _ = writeln!(text, "next: {step}");
    }
    text
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0)
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
    }
}
