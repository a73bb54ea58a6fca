//! `--max-rate`: how many messages a second may go to Redis, all jobs of the process together.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Hands out the time at which messages may be sent.
#[derive(Debug)]
pub struct Pace {
    a_second: Option<NonZeroU32>,
    free_at: Mutex<Instant>,
}

impl Pace {
    /// `None` is no limit.
    pub fn new(a_second: Option<NonZeroU32>) -> Self {
        Self { a_second, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until `messages` more may be sent, or until `stop`: then what is in work ends at full speed.
    pub async fn wait(&self, messages: usize, stop: &CancellationToken) {
        if let Some(at) = self.reserve(messages, Instant::now()) {
            tokio::select! {
                () = tokio::time::sleep_until(at.into()) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    fn reserve(&self, messages: usize, now: Instant) -> Option<Instant> {
        let rate = f64::from(self.a_second?.get());
        let Ok(mut free_at) = self.free_at.lock() else { return None };
        let start = (*free_at).max(now);
        // Lossless: batches are small.
        #[allow(clippy::cast_precision_loss)]
        let cost = Duration::from_secs_f64(messages as f64 / rate);
        *free_at = start + cost;
        Some(start)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_a_second_takes_a_tenth_for_a_hundred() {
        let pace = Pace::new(NonZeroU32::new(1000));
        let now = Instant::now() + Duration::from_secs(1);
        assert_eq!(pace.reserve(100, now), Some(now));
        assert_eq!(pace.reserve(100, now), Some(now + Duration::from_millis(100)));
        assert_eq!(pace.reserve(1, now + Duration::from_secs(9)), Some(now + Duration::from_secs(9)));
    }

    #[test]
    fn no_limit_never_waits() {
        assert_eq!(Pace::new(None).reserve(1_000_000, Instant::now()), None);
    }
}
