//! When a message ends to exist (contract rule 3).

use super::QuarantineReason;
use super::rules::Rules;

/// Milliseconds since the epoch, by the Redis server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// Whether a packet is a message or the release of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketType {
    /// A message to deliver.
    Publish,
    /// The second half of QoS 2: always resent, never expired by the message's own interval.
    Pubrel,
}

impl PacketType {
    /// The broker's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Publish => "PUBLISH",
            Self::Pubrel => "PUBREL",
        }
    }
}

/// What the clock says of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Alive up to this moment.
    Until(Millis),
    /// Its own interval has passed at this moment; one that is negative, at its very beginning.
    OverByInterval(Millis),
    /// The default TTL has passed at this moment.
    OverByTtl(Millis),
}

/// A `time` further ahead than this is a broken clock: one leap year.
const FUTURE_LIMIT_MS: i64 = 366 * 24 * 3600 * 1000;

/// The latest deadline that a Redis double and a script's number hold exactly.
const LATEST_DEADLINE_MS: i64 = (1 << 53) - 1;

/// Judges a message by the clock: `time` in ms and `interval` in seconds as their columns hold them.
///
/// # Errors
/// A `time` more than 366 days ahead of `now` is quarantined.
pub fn life(packet: PacketType, time: i64, interval: Option<i32>, rules: &Rules, now: Millis) -> Result<Life, QuarantineReason> {
    if time.saturating_sub(now.0) > FUTURE_LIMIT_MS {
        return Err(QuarantineReason::TimeTooFarAhead);
    }
    let own_interval = match packet {
        PacketType::Pubrel => None,
        // 0 means "never" in every version: like none, except that the JSON keeps it.
        PacketType::Publish => interval.filter(|&seconds| seconds != 0),
    };
    let interval_ms = match own_interval {
        Some(seconds) => i64::from(seconds.max(0)) * 1000,
        None => i64::try_from(rules.default_ttl.as_millis()).unwrap_or(i64::MAX),
    };
    let deadline = Millis(time.saturating_add(interval_ms).min(LATEST_DEADLINE_MS));
    // A time before the epoch is no time: then the default TTL is told, whatever the interval. Redis deletes at once what
    // has a deadline of this very millisecond.
    Ok(match own_interval {
        _ if time <= 0 => Life::OverByTtl(deadline),
        Some(seconds) if seconds < 0 || deadline <= now => Life::OverByInterval(deadline),
        None if deadline <= now => Life::OverByTtl(deadline),
        Some(_) | None => Life::Until(deadline),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_073_271_729;
    const WEEK_MS: i64 = 604_800_000;

    fn of(packet: PacketType, time: i64, interval: Option<i32>) -> Result<Life, QuarantineReason> {
        life(packet, time, interval, &Rules::default(), Millis(NOW))
    }

    #[test]
    fn the_age_of_a_message_counts() {
        assert_eq!(of(PacketType::Publish, NOW - 600_000, Some(3600)), Ok(Life::Until(Millis(NOW + 3_000_000))));
        assert_eq!(of(PacketType::Publish, NOW - 86_400_000, None), Ok(Life::Until(Millis(NOW + 518_400_000))));
    }

    #[test]
    fn an_interval_of_zero_lives_by_the_default_ttl() {
        assert_eq!(of(PacketType::Publish, NOW, Some(0)), Ok(Life::Until(Millis(NOW + WEEK_MS))));
        assert_eq!(of(PacketType::Publish, NOW - WEEK_MS, Some(0)), Ok(Life::OverByTtl(Millis(NOW))));
    }

    #[test]
    fn a_negative_interval_is_never_delivered() {
        assert_eq!(of(PacketType::Publish, NOW, Some(-1)), Ok(Life::OverByInterval(Millis(NOW))));
        assert_eq!(of(PacketType::Publish, NOW, Some(i32::MIN)), Ok(Life::OverByInterval(Millis(NOW))));
    }

    #[test]
    fn a_pubrel_ignores_its_interval() {
        for interval in [Some(60), Some(-1), Some(0), None] {
            assert_eq!(of(PacketType::Pubrel, NOW - 86_400_000, interval), Ok(Life::Until(Millis(NOW + 518_400_000))));
        }
        assert_eq!(of(PacketType::Pubrel, NOW - WEEK_MS, Some(1_000_000_000)), Ok(Life::OverByTtl(Millis(NOW))));
    }

    #[test]
    fn the_last_millisecond_is_over_and_the_one_before_is_not() {
        assert_eq!(of(PacketType::Publish, NOW - 1000, Some(1)), Ok(Life::OverByInterval(Millis(NOW))));
        assert_eq!(of(PacketType::Publish, NOW - 999, Some(1)), Ok(Life::Until(Millis(NOW + 1))));
        assert_eq!(of(PacketType::Publish, NOW - WEEK_MS, None), Ok(Life::OverByTtl(Millis(NOW))));
    }

    #[test]
    fn a_broker_with_a_fast_clock_is_believed_for_366_days() {
        let limit = 366 * 86_400_000;
        assert_eq!(of(PacketType::Publish, NOW + limit, Some(1)), Ok(Life::Until(Millis(NOW + limit + 1000))));
        assert_eq!(of(PacketType::Publish, NOW + limit + 1, Some(1)), Err(QuarantineReason::TimeTooFarAhead));
        assert_eq!(of(PacketType::Publish, i64::MAX, None), Err(QuarantineReason::TimeTooFarAhead));
    }

    #[test]
    fn an_ancient_time_is_expired_by_ttl_without_overflow() {
        for time in [0, -1, i64::MIN] {
            assert_eq!(of(PacketType::Publish, time, Some(i32::MAX)), Ok(Life::OverByTtl(Millis(time.saturating_add(i64::from(i32::MAX) * 1000)))));
            assert_eq!(of(PacketType::Pubrel, time, None), Ok(Life::OverByTtl(Millis(time.saturating_add(WEEK_MS)))));
        }
    }
}
