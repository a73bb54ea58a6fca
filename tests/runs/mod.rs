//! The life of a `migrate` run: interrupted, shared, repeated, restricted to some sessions, and what it says at its end.

mod deaths;
mod fences;
mod output;
mod quarantine;
mod rates;
pub mod scene;
mod selected;
mod signals;
mod standing;
pub mod stateless;
mod together;
mod writers;
