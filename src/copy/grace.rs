//! What is left of the time after a person asked to stop.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// What a person is made to wait for after the first Ctrl-C: a session of ordinary length ends within it.
const LENGTH: Duration = Duration::from_secs(10);

/// A stop and the time that work in hand has after it, the same for all jobs of a process.
#[derive(Debug)]
pub struct Grace {
    stop: CancellationToken,
    since: OnceLock<Instant>,
}

impl Grace {
    /// The time begins when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self { stop, since: OnceLock::new() }
    }

    /// Whether work shall end at the next session border.
    pub fn has_begun(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Whether work shall end where it is.
    pub fn is_over(&self) -> bool {
        self.stop.is_cancelled() && self.began().elapsed() >= LENGTH
    }

    /// Waits until [`Self::is_over`].
    pub async fn over(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep_until((self.began() + LENGTH).into()).await;
    }

    /// When the stop was first seen here.
    fn began(&self) -> Instant {
        *self.since.get_or_init(Instant::now)
    }
}
