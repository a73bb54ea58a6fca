//! What an error means for the work: the one word that decides whether it is tried again.

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// It may pass by itself: tried again, within a limit.
    Retry,
    /// Trying again is useless until a person has done something.
    Operator,
}
