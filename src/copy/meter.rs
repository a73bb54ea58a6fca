//! What the copy has done so far, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Live counts of this process; they run ahead of what is recorded.
#[derive(Debug, Default)]
pub struct Meter {
    rows: AtomicU64,
    sessions: AtomicU64,
    counted_rows: AtomicU64,
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

    /// Adds the rows of a chunk that is recorded as done.
    pub fn add_counted_rows(&self, rows: u64) {
        self.counted_rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows of the chunks that this process did; rows of a chunk that was tried again are in it once.
    pub fn counted_rows(&self) -> u64 {
        self.counted_rows.load(Ordering::Relaxed)
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
