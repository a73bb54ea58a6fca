//! Moments and spans, in words of a bounded length.

use std::time::{Duration, UNIX_EPOCH};

/// The last millisecond of the year 9999, the last that has a date of four digits.
const LAST_MS: i64 = 253_402_300_799_999;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// Milliseconds since the epoch as `2026-12-01T06:12:45.123Z`; `None` where no date says it.
pub(super) fn rfc3339(ms: i64) -> Option<String> {
    let since = Duration::from_millis(u64::try_from(ms).ok().filter(|_| ms <= LAST_MS)?);
    Some(humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string())
}

/// Milliseconds since the epoch as `2026-12-01 06:12:45`, in UTC: 19 characters at most.
pub(super) fn date(ms: i64) -> String {
    match rfc3339(ms) {
        Some(text) => text[..19].replace('T', " "),
        None if ms < 0 => "before 1970".to_owned(),
        None => "after 9999".to_owned(),
    }
}

/// How long from `now` to a moment: `in 3d 4h`, `2h ago`; 10 characters at most.
pub(super) fn left(ms: i64, now: i64) -> String {
    let seconds = ms.abs_diff(now) / 1000;
    match ms >= now {
        _ if seconds == 0 => "now".to_owned(),
        true if seconds >= 10_000 * YEAR => "in >9999y".to_owned(),
        false if seconds >= 10_000 * YEAR => "long ago".to_owned(),
        true => format!("in {}", span(seconds)),
        false => format!("{} ago", largest(seconds)),
    }
}

/// A difference of milliseconds: `+12s`, `-3d`, `same` for less than a second; 6 characters at most up to ten thousand years.
pub(super) fn difference(ms: i64) -> String {
    let seconds = ms.unsigned_abs() / 1000;
    match seconds {
        0 => "same".to_owned(),
        _ => format!("{}{}", if ms < 0 { '-' } else { '+' }, largest(seconds)),
    }
}

/// In its two largest units.
fn span(seconds: u64) -> String {
    match seconds {
        MINUTE..HOUR => format!("{}m {}s", seconds / MINUTE, seconds % MINUTE),
        HOUR..DAY => format!("{}h {}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ if (DAY..100 * DAY).contains(&seconds) => format!("{}d {}h", seconds / DAY, seconds % DAY / HOUR),
        _ => largest(seconds),
    }
}

/// In its largest unit alone, cut and not rounded.
fn largest(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 3 * YEAR => format!("{}d", seconds / DAY),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_and_a_time_left() {
        assert_eq!(date(1_796_073_271_729), "2026-11-30 21:14:31");
        assert_eq!((date(-1), date(i64::MAX), date(0)), ("before 1970".into(), "after 9999".into(), "1970-01-01 00:00:00".into()));
        let from = |seconds: i64| left(seconds * 1000, 0);
        assert_eq!(from(3 * 86_400 + 4 * 3600 + 59), "in 3d 4h");
        assert_eq!((from(59), from(61), from(86_399)), ("in 59s".into(), "in 1m 1s".into(), "in 23h 59m".into()));
        assert_eq!((from(0), from(-7200), from(-86_399)), ("now".into(), "2h ago".into(), "23h ago".into()));
        assert_eq!((from(366 * 86_400), from(40 * 365 * 86_400)), ("in 366d".into(), "in 40y".into()));
    }

    #[test]
    fn no_moment_is_longer_than_its_column() {
        for ms in [i64::MIN, -1, 0, 1 << 53, i64::MAX, 253_402_300_799_999] {
            assert!(date(ms).len() <= 19, "{}", date(ms));
        }
        for ms in [i64::MIN, i64::MAX, 1 << 53, -(1 << 53), -9999 * 365 * 86_400_000, 86_399_000, 99 * 86_400_000 + 86_399_000, -94_607_999_000] {
            assert!(left(ms, 0).len() <= 10, "{}", left(ms, 0));
        }
        assert_eq!((difference(999), difference(-12_000), difference(400 * 86_400_000)), ("same".into(), "-12s".into(), "+400d".into()));
    }
}
