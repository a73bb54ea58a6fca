//! Bytes that are not to be shown, by what tells them from others.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes of the digest that are shown: enough to tell payloads apart, not to look one up by chance.
const SHOWN_BYTES: usize = 6;

/// Size and beginning of the SHA-256: `12 bytes (sha256 2cf24dba5fb0…)`.
pub fn digest_of(bytes: &[u8]) -> String {
    let mut text = format!("{} bytes (sha256 ", bytes.len());
    for byte in Sha256::digest(bytes).iter().take(SHOWN_BYTES) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text + "…)"
}

#[cfg(test)]
mod tests {
    use super::*;

    // The digest of "hello" is that of any sha256sum.
    #[test]
    fn bytes_are_told_by_size_and_digest() {
        assert_eq!(digest_of(b"hello"), "5 bytes (sha256 2cf24dba5fb0…)");
    }
}
