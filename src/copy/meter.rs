//! What the copy has done so far, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Live counts of this process; they run ahead of what is recorded.
#[derive(Debug, Default)]
pub struct Meter {
    rows: AtomicU64,
    sessions: AtomicU64,
}

impl Meter {
    /// Adds rows read.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Adds a session.
    pub fn add_session(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    /// Rows read so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Sessions begun so far.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }
}
