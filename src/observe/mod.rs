//! What a person sees of a run while it goes on.

pub mod log;
