//! How far a copy or a comparison is: a bar on a terminal, a line every ten seconds elsewhere.

use std::io::{IsTerminal as _, Write};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio_util::task::AbortOnDropHandle;

use crate::config::OutputConfig;

/// All bars of the process; lines of the log go above them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A glance sees movement at this pace.
const BAR_EVERY: Duration = Duration::from_millis(100);
/// A log of a long night stays short at this one.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Rows read so far.
    pub rows: u64,
    /// Sessions begun so far.
    pub sessions: u64,
}

/// A display that lasts as long as this value.
pub struct Progress {
    bar: Option<ProgressBar>,
    _task: Option<AbortOnDropHandle<()>>,
}

impl Progress {
    /// Shows what `sample` counts, under the word for `doing` it; `total` rows are expected, or nobody knows how many.
    pub fn start(output: &OutputConfig, doing: &'static str, total: Option<u64>, sample: impl Fn() -> Sample + Send + 'static) -> Self {
        if !output.progress {
            return Self { bar: None, _task: None };
        }
        if std::io::stderr().is_terminal() {
            let bar = BARS.add(bar(doing, total));
            let shown = bar.clone();
            let task = tokio::spawn(async move {
                loop {
                    let Sample { rows, sessions } = sample();
                    if shown.length().is_some_and(|length| rows > length) {
                        // More than estimated: what is left is not known any more.
                        shown.unset_length();
                        shown.set_style(style(doing, false));
                    }
                    shown.set_position(rows);
                    shown.set_message(format!("{sessions} sessions"));
                    tokio::time::sleep(BAR_EVERY).await;
                }
            });
            return Self { bar: Some(bar), _task: Some(AbortOnDropHandle::new(task)) };
        }
        let started = Instant::now();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LINE_EVERY).await;
                let now = sample();
                let rate = rate(now.rows, started.elapsed());
                let left = total.and_then(|total| seconds_left(now.rows, total, rate));
                tracing::info!(
                    rows = now.rows,
                    sessions = now.sessions,
                    estimated_rows = %total.map_or_else(|| "unknown".to_owned(), |total| total.to_string()),
                    rows_per_second = rate,
                    estimated_seconds_left = %left.map_or_else(|| "unknown".to_owned(), |left| left.to_string()),
                    "{doing}"
                );
            }
        });
        Self { bar: None, _task: Some(AbortOnDropHandle::new(task)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(doing: &str, total: Option<u64>) -> ProgressBar {
    match total {
        Some(total) => ProgressBar::new(total).with_style(style(doing, true)),
        None => ProgressBar::no_length().with_style(style(doing, false)),
    }
}

fn style(doing: &str, known: bool) -> ProgressStyle {
    let template = match known {
        true => "{bar:30} {human_pos} of about {human_len} rows, {per_sec}, about {eta} left, {msg}",
        false => "{spinner} {human_pos} rows (total unknown), {per_sec}, {msg}",
    };
    ProgressStyle::with_template(&format!("{doing} {template}")).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn rate(rows: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    rows.saturating_mul(1000) / millis
}

/// `None` when more was read than estimated, or nothing yet.
fn seconds_left(rows: u64, total: u64, rate: u64) -> Option<u64> {
    total.checked_sub(rows)?.checked_div(rate)
}

/// stderr for the log: a line never tears a bar.
#[derive(Debug, Clone, Copy)]
pub struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        BARS.suspend(|| std::io::stderr().write(line))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_unknown_without_a_rate_or_beyond_the_estimate() {
        assert_eq!(seconds_left(500, 1500, 100), Some(10));
        assert_eq!(seconds_left(0, 1500, 0), None);
        assert_eq!(seconds_left(1501, 1500, 100), None);
        assert_eq!(rate(3000, Duration::from_secs(2)), 1500);
    }
}
