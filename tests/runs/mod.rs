//! The life of a `migrate` run: interrupted, shared, repeated, restricted to some sessions, and what it says at its end.

mod deaths;
pub mod scene;
