//! The clock of this machine, and how far that of a server is from it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::Millis;

/// A server's clock, read between two looks at our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Our own before the question.
    pub before: Millis,
    /// The server's.
    pub server: Millis,
    /// Our own after the answer.
    pub after: Millis,
}

impl ClockReading {
    /// How far the server is ahead in ms, negative when behind, as far as that is certain: what the way there and back may
    /// account for is left out.
    pub fn skew_ms(&self) -> i64 {
        if self.server < self.before {
            self.server.0 - self.before.0
        } else if self.server > self.after {
            self.server.0 - self.after.0
        } else {
            0
        }
    }
}

/// Milliseconds since the epoch by the clock of this machine.
pub fn wall_clock() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_way_there_and_back_does_not_explain_is_skew() {
        for (server, skew) in [(90, -10), (100, 0), (130, 0), (150, 0), (1150, 1000)] {
            assert_eq!(ClockReading { before: Millis(100), server: Millis(server), after: Millis(150) }.skew_ms(), skew);
        }
    }
}
