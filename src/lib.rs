//! Online migration of TBMQ 1.x persistent device sessions from PostgreSQL to the Redis layout of TBMQ 2.x.

pub mod check;
pub mod cli;
pub mod config;
pub mod control;
pub mod copy;
pub mod migrate;
pub mod model;
pub mod observe;
pub mod source;
pub mod target;
pub mod verify;
