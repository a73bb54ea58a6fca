//! Waiting for a condition with a limit, and ports that are free.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// How long a condition may take on a busy machine before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `attempt` until it gives a value; panics with `what` after [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Calls `condition` until it holds; panics with `what` after [`PATIENCE`].
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// A port on 127.0.0.1 that nobody listens on.
///
/// Taken in turn from 11000..31000, below the range the kernel gives to outgoing connections: so no client of a
/// parallel test sits on the port of a server that is about to start again.
pub fn free_port() -> u16 {
    const FIRST: u16 = 11_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that start at the same moment begin far apart.
    let origin = (std::process::id().wrapping_mul(7919) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (origin + step) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port from {FIRST} on");
}
