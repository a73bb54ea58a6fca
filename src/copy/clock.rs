//! The Redis server's clock, asked once a chunk and carried on by the local monotonic one in between.

use std::time::Instant;

use crate::model::Millis;

/// A reading of the clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    server: Millis,
    read_at: Instant,
}

impl Clock {
    /// `server` was read at this moment.
    pub fn new(server: Millis) -> Self {
        Self { server, read_at: Instant::now() }
    }

    /// The server's time at this moment, a round trip late at most.
    pub fn now(&self) -> Millis {
        Millis(self.server.0.saturating_add(i64::try_from(self.read_at.elapsed().as_millis()).unwrap_or(i64::MAX)))
    }
}
