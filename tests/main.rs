//! Integration tests: the real binary against real PostgreSQL and Redis servers.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod cases;
mod check;
mod config;
mod explain;
mod faults;
mod layers;
mod readme;
mod real_rows;
mod redis_only;
mod refusals;
mod repair;
mod rules;
mod runs;
mod scripts;
mod sessions;
mod support;
mod topologies;
mod verify;
mod verify_live;
