//! Integration tests: the real binary against real PostgreSQL and Redis servers.
#![allow(clippy::unwrap_used)]

mod config;
