//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::exit::ExitCode;
use super::failure::Failure;

/// The first SIGINT or SIGTERM lets what is in flight end; the second one ends the process at once.
pub(super) fn stop_on_signals(stop: CancellationToken) -> Result<(), Failure> {
    stop_with_notice(stop, "stopping at the next session border")
}

/// The same with what the person is told to be waiting for.
pub(super) fn stop_with_notice(stop: CancellationToken, notice: &'static str) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(anyhow::Error::from)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(anyhow::Error::from)?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.is_cancelled() {
                std::process::exit(i32::from(ExitCode::Interrupted.number()));
            }
            tracing::warn!("{notice}; a second signal stops at once");
            stop.cancel();
        }
    });
    Ok(())
}
