//! `check`: both sides looked at, told as a page or as one JSON document.

use std::fmt::Write as _;

use tokio_util::sync::CancellationToken;

use super::exit::ExitCode;
use super::failure::Failure;
use super::{signals, stdout, with_example};
use crate::check::{Finding, Level, Report, Stopped, check};
use crate::config::{Config, Contradiction};

pub(super) const NAME: &str = "check";
const EXAMPLE: &[&str] = &["tbmq-migrate check --tbmq-env tb-mqtt-broker.env", "tbmq-migrate check --json"];
/// A page is not wider.
const WIDTH: usize = 100;
/// Where the text of a finding begins: after its level and its name.
const INDENT: usize = 2 + LEVEL_WIDTH + 1 + NAME_WIDTH + 1;
const LEVEL_WIDTH: usize = 7;
const NAME_WIDTH: usize = 23;

/// The command; it has no options of its own.
pub(super) fn command() -> clap::Command {
    let command = clap::Command::new(NAME).about("Look at both sides and say what is ready, what is not, and what mends it; changes nothing");
    with_example(command, EXAMPLE)
}

/// Runs the command.
///
/// # Errors
/// A signal; everything else is a finding.
pub(super) async fn run(config: Config, contradictions: Vec<Contradiction>) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    signals::stop_with_notice(stop.clone(), "stopping after what is being looked at")?;
    let report = check(&config, &contradictions, &stop).await.map_err(|error: Stopped| Failure::from_error(ExitCode::Interrupted, &error))?;
    stdout::write(&match config.target.output.json {
        true => json(&report)?,
        false => text(&report),
    })?;
    Ok(if report.ready { ExitCode::Done } else { ExitCode::Refused })
}

fn json(report: &Report) -> Result<String, Failure> {
    let document = serde_json::to_string_pretty(report).map_err(anyhow::Error::from)?;
    Ok(document + "\n")
}

fn text(report: &Report) -> String {
    let fine = report.findings.len() - report.blockers - report.warnings;
    let verdict = if report.ready { "ready" } else { "not ready" };
    let mut text = format!("{}, {}, {fine} ok: {verdict}\n", counted(report.blockers, "blocker"), counted(report.warnings, "warning"));
    let mut area = None;
    for finding in &report.findings {
        if area != Some(finding.area) {
            area = Some(finding.area);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{}", finding.area.heading());
        }
        write_finding(&mut text, finding);
    }
    text.push('\n');
    for step in &report.next_steps {
        write_wrapped(&mut text, "next: ", step, 6);
    }
    text
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn write_finding(text: &mut String, finding: &Finding) {
    let level = match finding.level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Blocker => "BLOCKER",
    };
    let head = format!("  {level:LEVEL_WIDTH$} {:NAME_WIDTH$} ", finding.name);
    write_wrapped(text, &head, &printable(&finding.measured), INDENT);
    if let Some(mend) = &finding.mend {
        let head = format!("{}mend: ", " ".repeat(INDENT));
        write_wrapped(text, &head, &printable(mend), INDENT + 6);
    }
}

/// What a server said in an error may hold anything; what stands there escaped already stays as it is.
fn printable(text: &str) -> String {
    text.chars().flat_map(|letter| if is_unsafe(letter) { letter.escape_unicode().collect::<Vec<_>>() } else { vec![letter] }).collect()
}

fn is_unsafe(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A paragraph of words, its first line after `head`, the others indented; a word that is too long stands alone.
fn write_wrapped(text: &mut String, head: &str, paragraph: &str, indent: usize) {
    text.push_str(head);
    let mut column = head.chars().count();
    let mut first = true;
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if !first && column + 1 + length > WIDTH {
            let _ = write!(text, "\n{}", " ".repeat(indent));
            column = indent;
        } else if !first {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
        first = false;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Area;

    fn report(findings: Vec<Finding>) -> Report {
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let (blockers, warnings) = (count(Level::Blocker), count(Level::Warning));
        Report { ready: blockers == 0, blockers, warnings, findings, forecast: None, next_steps: vec!["do it".into()] }
    }

    #[test]
    fn a_page_has_a_summary_the_areas_and_the_next_steps() {
        let page =
            text(&report(vec![Finding::blocker(Area::Postgresql, "tables", "gone").mend("bring them"), Finding::ok(Area::Redis, "version", "7")]));
        let expected = "\
1 blocker, 0 warnings, 1 ok: not ready

PostgreSQL
  BLOCKER tables                  gone
                                  mend: bring them

Redis
  ok      version                 7

next: do it
";
        assert_eq!(page, expected);
    }

    #[test]
    fn no_line_is_wider_than_a_page_unless_one_word_is() {
        let long = "word ".repeat(100);
        let page =
            text(&report(vec![Finding::warning(Area::Data, "rows", long.trim()).mend(long.trim()), Finding::ok(Area::Data, "x", "y".repeat(200))]));
        for line in page.lines().filter(|line| !line.contains("yyy")) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert_eq!(page.matches("word").count(), 200);
    }

    #[test]
    fn a_page_cannot_steer_a_terminal() {
        let page = text(&report(vec![Finding::ok(Area::Data, "x", "a\u{1b}[2J\u{202e}\nb")]));
        assert!(page.contains("a\\u{1b}[2J\\u{202e}\\u{a}b"), "{page}");
    }
}
