//! What a copy would come to, from a sample: counts, memory and time. Pure.

use serde::Serialize;

use super::sample::Sample;
use crate::target::Sizes;

/// What is to be expected of a copy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Rows of `device_publish_msg`.
    pub rows: u64,
    /// Sessions with a row in either table.
    pub sessions: u64,
    /// Rows that would stand in Redis.
    pub messages_migrated: u64,
    /// Rows that cannot be carried.
    pub quarantined: u64,
    /// Rows whose own interval has passed.
    pub expired_by_interval: u64,
    /// Rows that are older than the default TTL.
    pub expired_by_ttl: u64,
    /// Rows whose packet id a newer one has.
    pub superseded: u64,
    /// Rows beyond the limit of their session.
    pub trimmed: u64,
    /// Rows that were looked at for it.
    pub rows_looked_at: u64,
    /// Whether every row was looked at: then the counts are no estimates.
    pub exact: bool,
    /// Bytes that the sessions take in each master; empty where Redis could not be seen.
    pub memory_bytes_per_shard: Vec<Shard>,
    /// Whether the size of a message was measured in Redis, and not calculated.
    pub memory_measured: bool,
    /// Seconds that a copy takes; `None` where a rate is not known.
    pub copy_seconds: Option<f64>,
}

/// The memory of one master.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shard {
    /// host:port.
    pub node: String,
    /// Bytes that its share of the sessions takes.
    pub needed_bytes: u64,
    /// Bytes that are in use.
    pub used_bytes: Option<u64>,
    /// `maxmemory`; 0 is no limit.
    pub maxmemory_bytes: Option<u64>,
    /// Bytes of the machine's memory.
    pub system_bytes: Option<u64>,
}

/// Beside what MEMORY USAGE counts, a key with a deadline has an entry in the table of deadlines, and each table has a
/// pointer for each entry, and up to as many empty ones.
const DEADLINE_BYTES: u64 = 24 + 2 * 16;
const SLOT_IN_TABLE_BYTES: u64 = 16;
/// What Redis 7 keeps for a key with a string: the entry of the table, the headers of key and value, and rounding.
const STRING_BYTES: u64 = 24 + 16 + 2 * 9 + 16;
/// A member of a set over 128: its node, its entry, its text's header, and rounding.
const MEMBER_BYTES: u64 = 24 + 56 + 9 + 8;
/// A last packet id and its set without members.
const SESSION_BYTES: u64 = 250;

impl Forecast {
    /// Extrapolates. `contexts` is the number of contexts as the last ANALYZE counted them, `rows_over_limit` the exact
    /// number of rows beyond the limit; each `None` where it is not known.
    pub(super) fn new(sample: &Sample, contexts: Option<u64>, rows_over_limit: Option<u64>) -> Self {
        let tally = &sample.tally;
        let whole = |count: u64| scaled(count, sample.estimated_rows, tally.rows_read);
        // Of a session that was not read to its end, what is beyond the limit was not seen.
        let trimmed = if sample.complete { tally.trimmed } else { rows_over_limit.unwrap_or_else(|| whole(tally.trimmed)) };
        let sessions = if sample.complete { tally.sessions } else { contexts.unwrap_or(0).max(whole(tally.sessions)) };
        Self {
            rows: sample.estimated_rows,
            sessions,
            messages_migrated: whole(tally.messages_migrated),
            quarantined: whole(tally.quarantined),
            expired_by_interval: whole(tally.expired_by_interval),
            expired_by_ttl: whole(tally.expired_by_ttl),
            superseded: whole(tally.superseded),
            trimmed,
            rows_looked_at: tally.rows_read,
            exact: sample.complete,
            memory_bytes_per_shard: Vec::new(),
            memory_measured: false,
            copy_seconds: None,
        }
    }

    /// Bytes that the sessions take in all masters together.
    pub(super) fn total_bytes(&self, sample: &Sample, measured: Option<Sizes>) -> u64 {
        let wanted = sample.tally.messages_migrated;
        if wanted == 0 {
            return self.sessions * SESSION_BYTES;
        }
        let (json, key) = (sample.json_bytes / wanted, sample.key_bytes / wanted);
        let kept = sample.kept.len() as u64;
        let (string, member, session) = match measured.filter(|_| kept > 0) {
            Some(measured) => {
                let texts: u64 = sample.kept.iter().map(|message| (message.json.len() + message.key.len()) as u64).sum();
                let overhead = measured.message_bytes.saturating_sub(texts) / kept;
                let members = measured.set_bytes.saturating_sub(sample.kept.iter().map(|message| message.key.len() as u64).sum());
                (json + key + overhead, key + members / kept, measured.last_packet_id_bytes + 2 * SLOT_IN_TABLE_BYTES + key)
            }
            None => (json + key + STRING_BYTES, key + MEMBER_BYTES, SESSION_BYTES),
        };
        self.messages_migrated * (string + member + DEADLINE_BYTES + SLOT_IN_TABLE_BYTES) + self.sessions * session
    }

    /// Seconds of a copy: it reads, judges and writes side by side, so the slower side decides.
    pub(super) fn seconds(&self, rows_per_second: Option<f64>, messages_per_second: Option<f64>) -> Option<f64> {
        // Lossless: counts are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let of = |count: u64, rate: f64| count as f64 / rate.max(1e-6);
        let reading = of(self.rows, rows_per_second?);
        let writing = if self.messages_migrated == 0 { 0.0 } else { of(self.messages_migrated, messages_per_second?) };
        Some(reading.max(writing))
    }
}

/// A count in a part as the count in the whole.
fn scaled(count: u64, whole: u64, part: u64) -> u64 {
    if part == 0 { 0 } else { u64::try_from(u128::from(count) * u128::from(whole) / u128::from(part)).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tally;

    fn sample(complete: bool) -> Sample {
        let tally =
            Tally { rows_read: 1000, sessions: 10, messages_migrated: 900, expired_by_ttl: 50, quarantined: 30, trimmed: 20, ..Tally::default() };
        Sample { complete, estimated_rows: if complete { 1000 } else { 50_000 }, tally, json_bytes: 180_000, key_bytes: 27_000, ..Sample::default() }
    }

    #[test]
    fn a_part_is_extrapolated_and_the_whole_is_not() {
        let part = Forecast::new(&sample(false), None, None);
        assert_eq!((part.rows, part.sessions, part.messages_migrated, part.trimmed, part.exact), (50_000, 500, 45_000, 1000, false));
        let whole = Forecast::new(&sample(true), Some(77), Some(5));
        assert_eq!((whole.rows, whole.sessions, whole.messages_migrated, whole.trimmed, whole.exact), (1000, 10, 900, 20, true));
    }

    #[test]
    fn what_is_counted_exactly_is_believed_over_a_part() {
        let forecast = Forecast::new(&sample(false), Some(4000), Some(5));
        assert_eq!((forecast.sessions, forecast.trimmed), (4000, 5));
    }

    #[test]
    fn memory_grows_with_messages_and_not_only_with_their_payloads() {
        let (sample, forecast) = (sample(true), Forecast::new(&sample(true), None, None));
        let bytes = forecast.total_bytes(&sample, None);
        // 900 messages of 200 bytes of JSON under a key of 30 that stands in the set as well.
        assert!((900 * (200 + 60 + 150)..900 * (200 + 60 + 350)).contains(&bytes), "{bytes}");
    }

    #[test]
    fn the_slower_side_decides_on_the_time_and_an_unknown_rate_makes_it_unknown() {
        let forecast = Forecast::new(&sample(true), None, None);
        assert_eq!(forecast.seconds(Some(100.0), Some(900.0)), Some(10.0));
        assert_eq!(forecast.seconds(Some(1000.0), Some(90.0)), Some(10.0));
        assert_eq!(forecast.seconds(Some(1000.0), None), None);
        assert_eq!(forecast.seconds(None, Some(90.0)), None);
    }
}
