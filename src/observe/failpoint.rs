//! Places where a test ends the process as `kill -9` would: one at each durable step.
//!
//! Only builds with debug assertions look at the variable; a release build has none of this.

/// The name of a place, or `name:n` for the n-th time that it is reached.
#[cfg(debug_assertions)]
const VARIABLE: &str = "TBMQ_MIGRATE_FAILPOINT";

/// Ends the process here if it was asked to.
#[cfg(debug_assertions)]
pub fn reach(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WANTED: LazyLock<Option<(String, u32)>> = LazyLock::new(|| {
        let text = std::env::var(VARIABLE).ok()?;
        let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), times.parse().ok()?))
    });
    static REACHED: AtomicU32 = AtomicU32::new(0);
    if let Some((wanted, times)) = &*WANTED
        && wanted == name
        && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == *times
    {
        std::process::abort();
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn reach(_name: &str) {}
