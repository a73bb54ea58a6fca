//! Results on stdout.

use std::io::{ErrorKind, Write};

use super::exit::ExitCode;
use super::failure::Failure;

/// Writes a result. A reader that has seen enough and left (`| head`) is no error.
///
/// # Errors
/// Anything else that keeps the result from being written, such as a full disk.
pub fn write(result: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(result.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(ExitCode::Unexpected, "cannot write the result to stdout").detail(error.to_string()))
        }
        _ => Ok(()),
    }
}
