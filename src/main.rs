//! The `tbmq-migrate` binary.
fn main() {}
