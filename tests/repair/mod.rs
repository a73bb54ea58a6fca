//! `repair`: each kind of finding planted, found, repaired, and compared again.

mod deaths;
mod plan;
mod planted;
mod refusals;
mod scene;
