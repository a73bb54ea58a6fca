//! Every kind of Redis that the broker can use, and what it asks of its client.

mod cluster;
pub mod login;
mod sentinel;
mod standalone;
mod tls;

use crate::support::tool::Outcome;

/// Fails unless the run ended before its start with this code, said these words, and showed no secret.
fn assert_refused(outcome: &Outcome, code: i32, words: &[&str]) {
    assert_eq!(outcome.code, Some(code), "{outcome:#?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word:?} is missing\n{}", outcome.stderr);
    }
    assert_eq!(outcome.stdout, "");
    assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
}
