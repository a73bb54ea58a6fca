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
    /// What the chunk wrote before is in doubt.
    #[error("Redis restarted, or another server took its place, in the middle of a chunk")]
    HistoryBroken,
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
            // Another one may be had; where the run itself is over, the process is told to stop.
            Self::LeaseLost | Self::HistoryBroken => Consequence::Retry,
            Self::Occupied { .. } | Self::Stopped => Consequence::Operator,
        }
    }

    /// Whether it only says that the person's wish to stop was followed.
    pub fn is_the_stop_itself(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Target(error) => matches!(error, TargetError::Stopped),
            Self::Control(error) => matches!(error, ControlError::Stopped { .. }),
            Self::Source(_) | Self::Occupied { .. } | Self::LeaseLost | Self::HistoryBroken => false,
        }
    }

    /// Whether it says that this process may not write any more.
    pub fn is_the_lost_lease(&self) -> bool {
        match self {
            Self::LeaseLost => true,
            Self::Control(error) => matches!(error, ControlError::LeaseLost { .. }),
            Self::Source(_) | Self::Target(_) | Self::Occupied { .. } | Self::HistoryBroken | Self::Stopped => false,
        }
    }

    /// Whether Redis can be expected to answer after this, and this process may still write there.
    pub(super) fn leaves_redis_in_reach(&self) -> bool {
        match self {
            Self::LeaseLost | Self::Target(TargetError::Connect { .. } | TargetError::Lost { .. }) => false,
            Self::Source(_) | Self::Control(_) | Self::Target(_) | Self::Occupied { .. } | Self::HistoryBroken | Self::Stopped => true,
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
            Self::HistoryBroken => Some("find out why Redis restarts, then run the same command again: it goes on where it was".to_owned()),
            Self::LeaseLost | Self::Stopped => Some("run the same command again: it goes on where it was".to_owned()),
        }
    }
}
