//! Real servers and the real binary for the tests.
//!
//! Every server is the child of a small watchdog shell (see [`guard`]) and lives in a temporary directory of its own:
//! it goes away on drop, and also when the test process is killed. Nothing here needs root, and nothing minds it.
#![allow(dead_code)] // the harness offers more than the tests of one moment use

pub mod certificates;
pub mod cluster;
mod guard;
pub mod keyspace;
pub mod poll;
pub mod pooler;
pub mod postgres;
pub mod redis;
mod selftest;
pub mod sentinel;
pub mod tool;
