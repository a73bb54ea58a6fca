//! Integration tests: the real binary against real PostgreSQL and Redis servers.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod cases;
mod config;
mod faults;
mod layers;
mod readme;
mod real_rows;
mod refusals;
mod rules;
mod runs;
mod scripts;
mod sessions;
mod support;
mod topologies;
mod verify;
