//! The rules of the data, pure: no I/O, no clock (`now` is an argument), no async.

mod rules;

pub use rules::{Rules, TopicField};
