//! How long the tool waits for a Redis that does not answer, and what it says meanwhile.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use redis::RedisError;
use tokio_util::sync::CancellationToken;

/// The first pause: a slot migration or a reconnect is often over by then.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause: an operator who freed memory should not have to wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// What a person is made to wait for a server that is loading or moving slots, before a run begins.
const BRIEF: Duration = Duration::from_secs(5);
/// What a call in flight has after a stop: a server that answers does so within it.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Between two lines of the same complaint, whatever the number of calls that wait.
const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// The limits of waiting, shared by all calls of a process.
#[derive(Debug)]
pub struct Patience {
    /// A call that could not be made for so long is given up.
    pub limit: Duration,
    /// Ends all waiting at once.
    pub stop: CancellationToken,
    last_notice: Mutex<Option<Instant>>,
}

impl Patience {
    /// Waits up to `limit`, and never after `stop`.
    pub fn new(limit: Duration, stop: CancellationToken) -> Self {
        Self { limit, stop, last_notice: Mutex::new(None) }
    }

    /// The same end, with a limit for a person who waits.
    pub(super) fn brief(&self) -> Self {
        Self::new(self.limit.min(BRIEF), self.stop.clone())
    }

    /// Waits until a call in flight is to be given up after a stop.
    pub(super) async fn over(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep(STOP_LIMIT).await;
    }

    /// Says what is being waited for, not more often than every ten seconds for the whole process.
    pub(super) fn notice(&self, what: &str, since: Instant, error: &RedisError) {
        let Ok(mut last) = self.last_notice.lock() else { return };
        if last.is_none_or(|at| at.elapsed() >= NOTICE_EVERY) {
            *last = Some(Instant::now());
            tracing::warn!(
                waiting_seconds = since.elapsed().as_secs(),
                limit_seconds = self.limit.as_secs(),
                error = %error,
                "{what}; trying again",
            );
        }
    }
}

/// The pauses of one call.
pub(super) fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default().with_min_delay(FIRST_PAUSE).with_max_delay(LONGEST_PAUSE).with_jitter().without_max_times().build()
}
