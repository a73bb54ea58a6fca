//! What a person sees of a run while it goes on.

pub mod clock;
pub mod failpoint;
pub mod log;
pub mod progress;
