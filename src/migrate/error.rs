//! What keeps a run from its end.

use crate::control::ControlError;
use crate::copy::CopyError;
use crate::model::{ClientId, Consequence};
use crate::source::SourceError;
use crate::target::TargetError;

use super::removal::GuardError;

/// What every hint says of a run that can go on.
const GOES_ON: &str = "run the same command again: it goes on where it was";

/// Why there is no finished run.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A check before the start said no: nothing was changed.
    #[error(transparent)]
    Refused(Problem),
    /// It came up while copying: what is done is recorded.
    #[error("{problem}")]
    Stuck {
        /// What came up.
        #[source]
        problem: Problem,
        /// Whether another call goes on where this one was.
        resumable: bool,
    },
    /// A person stopped it: what is done is recorded.
    #[error("stopped before the end")]
    Interrupted {
        /// Whether another call goes on where this one was.
        resumable: bool,
    },
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// PostgreSQL.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Redis.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The control schema.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The copy.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// Removing sessions that PostgreSQL does not know.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Sessions stand in Redis, and nobody said that they may be replaced.
    #[error("sessions stand in Redis already, such as that of {}", .examples.iter().map(ToString::to_string).collect::<Vec<_>>().join(", of "))]
    Standing {
        /// Some of them.
        examples: Vec<ClientId>,
        /// The run with the same settings that finished last, and when.
        finished: Option<(i64, String)>,
    },
    /// Progress cannot be kept on a standby.
    #[error("{place} is a standby, where progress cannot be recorded")]
    Standby {
        /// Which server.
        place: String,
    },
    /// The file for the quarantine list cannot be written.
    #[error("cannot write {path}")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Redis lost what it had acknowledged, again and again.
    #[error("Redis lost acknowledged writes {times} times during the run")]
    Forgetful {
        /// How often chunks had to be copied again.
        times: u32,
    },
}

impl Problem {
    /// Whether it only says that the person's wish to stop was followed.
    pub(super) fn is_the_stop_itself(&self) -> bool {
        match self {
            Self::Copy(error) => error.is_the_stop_itself(),
            Self::Target(error) => matches!(error, TargetError::Stopped),
            Self::Control(error) => matches!(error, ControlError::Stopped { .. }),
            _ => false,
        }
    }

    /// Whether it says that this process may not write any more.
    pub(super) fn is_the_lost_lease(&self) -> bool {
        match self {
            Self::Copy(error) => error.is_the_lost_lease(),
            Self::Control(error) => matches!(error, ControlError::LeaseLost { .. }),
            _ => false,
        }
    }

    /// Whether PostgreSQL went away and did not come back in time.
    fn is_lost_postgresql(&self) -> bool {
        let consequence = match self {
            Self::Source(error) | Self::Copy(CopyError::Source(error)) => error.consequence(),
            Self::Control(error) | Self::Copy(CopyError::Control(error)) => error.consequence(),
            Self::Target(_)
            | Self::Copy(_)
            | Self::Guard(_)
            | Self::Standing { .. }
            | Self::Standby { .. }
            | Self::File { .. }
            | Self::Forgetful { .. } => return false,
        };
        consequence == Consequence::Retry
    }

    /// Whether it may pass by itself.
    pub(super) fn may_pass(&self) -> bool {
        let consequence = match self {
            Self::Source(error) => error.consequence(),
            Self::Target(error) => error.consequence(),
            Self::Control(error) => error.consequence(),
            Self::Copy(_) | Self::Guard(_) | Self::Standing { .. } | Self::Standby { .. } | Self::File { .. } | Self::Forgetful { .. } => {
                return false;
            }
        };
        consequence == Consequence::Retry
    }

    /// What a person can do about it once the run has begun.
    pub fn hint_under_way(&self, resumable: bool) -> Option<String> {
        let hint = match self.is_lost_postgresql() {
            true => format!("bring PostgreSQL back, then {GOES_ON}"),
            false => self.hint()?,
        };
        // Where nothing is recorded, what was written is in the way of another call.
        Some(if resumable { hint } else { hint.replace(GOES_ON, "run again with --on-existing replace: nothing was recorded") })
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Target(error) => error.hint(),
            Self::Control(error) => error.hint(),
            Self::Copy(error) => error.hint(),
            Self::Guard(error) => Some(error.hint()),
            Self::Standing { finished, .. } => {
                let earlier = match finished {
                    Some((run, at)) => format!("run {run} with the same settings finished at {at}, so there may be nothing left to do. "),
                    None => String::new(),
                };
                Some(format!(
                    "{earlier}a 2.x broker may own them. If they are from an earlier copy and no 2.x broker has used them, make Redis equal to PostgreSQL \
                     with --on-existing replace"
                ))
            }
            Self::Standby { .. } => {
                Some("name the primary in --postgres-url, or run with --stateless, which cannot go on after an interruption".to_owned())
            }
            Self::File { .. } => Some("check the path and the rights of --quarantine-file".to_owned()),
            Self::Forgetful { .. } => Some("find out why Redis restarts, then run the same command again: it goes on where it was".to_owned()),
        }
    }
}
