//! What keeps a comparison from its end.

use crate::control::{ControlError, OpenRun};
use crate::copy::CopyError;
use crate::model::Consequence;
use crate::source::SourceError;
use crate::target::TargetError;

/// Why a comparison was not finished.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A check before the start said no.
    #[error(transparent)]
    Refused(Problem),
    /// It came up while comparing.
    #[error("{problem}")]
    Stuck {
        /// What came up.
        #[source]
        problem: Problem,
        /// Whether another call goes on where this one was.
        resumable: bool,
    },
    /// A person stopped it.
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
    /// A chunk.
    #[error(transparent)]
    Chunk(#[from] CopyError),
    /// What is written on the primary reaches a standby later, and what carries changes to Redis does not wait for it.
    #[error("{place} is a standby: what it lacks may be on its way, so no difference could be told from a delay")]
    Standby {
        /// Which server.
        place: String,
    },
    /// A file cannot be read or written.
    #[error("cannot open {path}")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line of a report is none of a report.
    #[error("{path}:{line} is no finding")]
    Report {
        /// Which file.
        path: String,
        /// Its line, from 1.
        line: usize,
    },
    /// Somebody else writes, or left half a copy: a repair beside it would overwrite it, or be overwritten.
    #[error("{}", told(.0))]
    Beside(Box<OpenRun>),
    /// Between the begin of a repair and its lease another run was begun.
    #[error("another run was begun at the same moment")]
    NotAlone,
    /// With such a source every session would be removed.
    #[error("both tables are empty, and sessions would be removed because PostgreSQL does not know them")]
    EmptySource,
}

fn told(open: &OpenRun) -> String {
    let (id, settings) = (open.run.id, &open.run.settings);
    match open.workers.is_empty() {
        true => format!("run {id} was interrupted and has not ended: {settings}"),
        false => format!("run {id} is in progress ({settings}), worked on by {}", open.workers.join(", ")),
    }
}

impl Problem {
    /// Whether it only says that the person's wish to stop was followed.
    pub(super) fn is_the_stop_itself(&self) -> bool {
        match self {
            Self::Chunk(error) => error.is_the_stop_itself(),
            Self::Target(error) => matches!(error, TargetError::Stopped),
            Self::Control(error) => matches!(error, ControlError::Stopped { .. }),
            Self::Source(_) | Self::Standby { .. } | Self::File { .. } | Self::Report { .. } => false,
            Self::Beside(_) | Self::NotAlone | Self::EmptySource => false,
        }
    }

    fn is_lost_postgresql(&self) -> bool {
        let consequence = match self {
            Self::Source(error) | Self::Chunk(CopyError::Source(error)) => error.consequence(),
            Self::Control(error) | Self::Chunk(CopyError::Control(error)) => error.consequence(),
            Self::Target(_) | Self::Chunk(_) | Self::Standby { .. } | Self::File { .. } | Self::Report { .. } => return false,
            Self::Beside(_) | Self::NotAlone | Self::EmptySource => return false,
        };
        consequence == Consequence::Retry
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Target(error) | Self::Chunk(CopyError::Target(error)) => error.hint_to_read(),
            Self::Control(error) => error.hint(),
            Self::Chunk(error) => error.hint(),
            Self::Standby { .. } => Some("name the primary in --postgres-url".to_owned()),
            Self::File { .. } => Some("check the path and the rights of --report".to_owned()),
            Self::Report { .. } => Some("give the file that verify --report has written".to_owned()),
            Self::Beside(open) if open.workers.is_empty() => Some(
                "finish it with the same migrate command, or give it up with migrate --restart; then compare again, and repair by the new report"
                    .to_owned(),
            ),
            Self::Beside(_) => {
                Some("wait until it has ended (a process that was killed counts for 20 s), then run the same command again".to_owned())
            }
            Self::NotAlone => Some("run the same command again".to_owned()),
            Self::EmptySource => Some("check --postgres-url; without --delete-extra no session is removed".to_owned()),
        }
    }

    /// What a person can do about it once the comparison has begun.
    pub fn hint_under_way(&self, resumable: bool) -> Option<String> {
        let hint = match self.is_lost_postgresql() {
            true => "bring PostgreSQL back, then run the same command again: it goes on where it was".to_owned(),
            false => self.hint()?,
        };
        Some(if resumable { hint } else { hint.replace(": it goes on where it was", ": it begins again") })
    }
}
