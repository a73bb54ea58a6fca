//! The `tbmq-migrate` binary.

use std::process::ExitCode;

use tbmq_migrate::cli::Program;

fn main() -> ExitCode {
    let program = match Program::from_process() {
        Ok(program) => program,
        Err(code) => return code.into(),
    };
    // Two crates bring rustls, each able to bring a provider of its own. Without a choice made here TLS panics at the first connection; the only
    // error is that a choice was made already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    program.run().into()
}
