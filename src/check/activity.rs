//! Others at work on PostgreSQL, and the clocks of both sides. Pure.

use super::finding::{Area, Finding};
use crate::model::EscapedText;
use crate::observe::clock::ClockReading;
use crate::source::{OpenTransaction, SourceFacts, quoted};

const AREA: Area = Area::Postgresql;
/// A broker's own transactions take a fraction of it.
const LONG_SECONDS: f64 = 60.0;
/// A client that holds a transaction and does nothing with it for so long has forgotten it, or waits for somebody.
const IDLE_SECONDS: f64 = 5.0;
/// A deadline is judged by the clock of Redis and made by that of the broker.
const SKEW_MS: i64 = 1_000;
const LARGE_SKEW_MS: i64 = 60_000;

/// Open transactions and other sessions.
pub(super) fn findings(facts: &SourceFacts) -> Vec<Finding> {
    let activity = match &facts.activity {
        Err(error) => return vec![Finding::unknown(AREA, "open_transactions", error), Finding::unknown(AREA, "sessions", error)],
        Ok(activity) => activity,
    };
    let long: Vec<&OpenTransaction> = activity.transactions.iter().filter(|open| is_long(open)).collect();
    let transactions = match long.as_slice() {
        [] if activity.all_seen => Finding::ok(AREA, "open_transactions", "none is open for long"),
        [] => {
            let grant = format!("as a superuser: grant pg_read_all_stats to {};", quoted(&facts.server.role));
            Finding::warning(AREA, "open_transactions", "unknown: this role does not see the transactions of others").mend(grant)
        }
        long => {
            let told: Vec<String> = long.iter().take(3).map(|open| describe(open)).collect();
            let text = format!(
                "{}: rows that were deleted meanwhile cannot be cleaned up, and a replication slot is not made before it ends",
                told.join("; ")
            );
            Finding::warning(AREA, "open_transactions", text).mend(end(long[0]))
        }
    };
    let sessions = match activity.sessions.as_slice() {
        [] => Finding::ok(AREA, "sessions", "nobody else is connected to the database"),
        others => {
            let told: Vec<String> = others.iter().map(|(name, count)| format!("{} ({count})", EscapedText(name))).collect();
            let text = format!("others are connected to the database: {}", told.join(", "));
            Finding::warning(AREA, "sessions", text).mend("stop every 1.x broker before `migrate`: what they write afterwards is not followed")
        }
    };
    vec![transactions, sessions]
}

fn is_long(open: &OpenTransaction) -> bool {
    open.pid.is_none() || open.age_seconds > LONG_SECONDS || (open.idle && open.age_seconds > IDLE_SECONDS)
}

fn describe(open: &OpenTransaction) -> String {
    let owner = EscapedText(&open.owner);
    match open.pid {
        Some(pid) => {
            format!("a transaction of {owner} (process {pid}) is open for {:.0} s{}", open.age_seconds, if open.idle { ", idle" } else { "" })
        }
        None => format!("the prepared transaction {owner} is open for {:.0} s", open.age_seconds),
    }
}

fn end(open: &OpenTransaction) -> String {
    match open.pid {
        Some(pid) => format!("if it can go, as a superuser: select pg_terminate_backend({pid});"),
        None => format!("if it can go, as its owner: rollback prepared '{}';", open.owner.replace('\'', "''")),
    }
}

/// How far a clock is from that of this machine.
pub(super) fn clock(area: Area, whose: &str, reading: &ClockReading) -> Finding {
    let skew_ms = reading.skew_ms();
    // Lossless: a clock that is off by 2^53 ms is off enough.
    #[allow(clippy::cast_precision_loss)]
    let seconds = skew_ms.abs() as f64 / 1000.0;
    let direction = if skew_ms < 0 { "behind" } else { "ahead of" };
    match skew_ms.abs() {
        0..=SKEW_MS => Finding::ok(area, "clock", format!("the clock of {whose} is within a second of this machine's")),
        _ => {
            let effect = match skew_ms.abs() > LARGE_SKEW_MS {
                true => "messages expire that much too early or too late, and short intervals are lost",
                false => "messages expire that much too early or too late",
            };
            Finding::warning(area, "clock", format!("the clock of {whose} is {seconds:.1} s {direction} this machine's: {effect}"))
                .mend("set the clocks by NTP on the servers and on this machine")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::finding::Level;
    use crate::model::Millis;

    #[test]
    fn a_clock_is_told_from_a_second_on_and_in_stronger_words_from_a_minute_on() {
        let at =
            |ms: i64| clock(Area::Redis, "redis", &ClockReading { before: Millis(100_000), server: Millis(100_000 + ms), after: Millis(100_000) });
        assert_eq!([1000, -1000].map(|ms| at(ms).level), [Level::Ok; 2]);
        assert_eq!([1001, -1001, 61_000].map(|ms| at(ms).level), [Level::Warning; 3]);
        assert!(at(-1500).measured.contains("1.5 s behind") && at(1500).measured.contains("1.5 s ahead of"));
        assert!(at(60_001).measured.contains("short intervals are lost") && !at(60_000).measured.contains("short intervals are lost"));
    }

    #[test]
    fn a_transaction_is_long_when_old_idle_or_prepared() {
        let open = |pid, age_seconds, idle| OpenTransaction { pid, owner: "x".into(), age_seconds, idle };
        assert!(!is_long(&open(Some(1), 59.0, false)) && is_long(&open(Some(1), 61.0, false)));
        assert!(!is_long(&open(Some(1), 4.0, true)) && is_long(&open(Some(1), 6.0, true)));
        assert!(is_long(&open(None, 0.1, true)));
    }
}
