//! What ends the copy of a chunk.

use crate::control::ControlError;
use crate::model::{ClientId, Consequence};
use crate::source::SourceError;
use crate::target::TargetError;

/// An error of the copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// PostgreSQL failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Redis failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The quarantine list could not be written.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A session that was not there when the run began, and is not ours.
    #[error("a session of {client} appeared in Redis while it was being copied, with another last packet id")]
    Occupied {
        /// Whose.
        client: ClientId,
    },
    /// The process may not write any more.
    #[error("the lease is lost")]
    LeaseLost,
    /// A person asked to stop, and the session in work was too long to wait for.
    #[error("stopped in the middle of a session")]
    Stopped,
}

impl CopyError {
    /// Whether the chunk may be tried again.
    pub fn consequence(&self) -> Consequence {
        match self {
            Self::Source(error) => error.consequence(),
            Self::Target(error) => error.consequence(),
            Self::Control(error) => error.consequence(),
            Self::Occupied { .. } | Self::LeaseLost | Self::Stopped => Consequence::Operator,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Target(error) => error.hint(),
            Self::Control(error) => error.hint(),
            Self::Occupied { .. } => Some(
                "is a 2.x broker running on this Redis already? Stop it, or use the right --key-prefix; to overwrite what stands there: --restart --on-existing replace".to_owned(),
            ),
            Self::LeaseLost | Self::Stopped => Some("run the same command again: it goes on where it was".to_owned()),
        }
    }
}
