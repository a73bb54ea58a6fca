//! What can go wrong with the control schema.

use crate::model::Consequence;
use crate::source::consequence_of;

/// An error of the control schema.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The schema cannot be made or brought up to date.
    #[error("cannot prepare the schema tbmq_migrate")]
    Prepare {
        /// The database, for the hint.
        database: String,
        /// The role, for the hint.
        role: String,
        /// Whether the schema is there, made by another role.
        exists: bool,
        /// What the driver said.
        source: sqlx::migrate::MigrateError,
    },
    /// A statement failed, also after trying again for the time allowed.
    #[error("control schema: {doing}")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// A list cannot be written into its file.
    #[error("cannot write the file of the report")]
    File(#[source] std::io::Error),
    /// The person or the lease asked to stop, and the server did not answer in the time that was left.
    #[error("stopped while waiting for PostgreSQL ({doing})")]
    Stopped {
        /// What was being done.
        doing: &'static str,
    },
    /// Another run is at work.
    #[error("another run is in progress: run {run} ({settings}), worked on by {workers}")]
    Busy {
        /// Its number.
        run: i64,
        /// What it does.
        settings: String,
        /// host:pid of each process.
        workers: String,
    },
    /// An interrupted run did something else.
    #[error("run {run} was interrupted and had other settings: {settings}")]
    OtherSettings {
        /// Its number.
        run: i64,
        /// What it did.
        settings: String,
        /// What is asked for.
        asked: String,
    },
    /// The lease ran out, or somebody ended the run.
    #[error("the lease on run {run} is lost")]
    LeaseLost {
        /// Its number.
        run: i64,
    },
}

impl ControlError {
    pub(super) fn statement(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Statement { doing, source }
    }

    /// Whether trying again can help.
    pub fn consequence(&self) -> Consequence {
        match self {
            Self::Statement { source, .. } => consequence_of(source),
            Self::Prepare { .. } | Self::File(_) | Self::Stopped { .. } | Self::Busy { .. } | Self::OtherSettings { .. } | Self::LeaseLost { .. } => {
                Consequence::Operator
            }
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Prepare { database, role, exists, .. } => {
                Some(format!("{} or run with --stateless, which cannot go on after an interruption", missing_grants(database, role, *exists)))
            }
            Self::Statement { .. } => None,
            Self::File(_) => Some("check the disk, then run the same command again: it goes on where it was".to_owned()),
            Self::Stopped { .. } => Some("run the same command again: it goes on where it was".to_owned()),
            Self::Busy { .. } => Some(
                "wait until it has ended (a process that was killed counts for 20 s), or start this one with the same settings to work on the same run".to_owned(),
            ),
            Self::OtherSettings { asked, .. } => {
                Some(format!("asked for now: {asked}. Run with the settings of the interrupted run to go on with it, or forget it with --restart"))
            }
            Self::LeaseLost { .. } => Some("another process may go on with the run; when none does, run the same command again".to_owned()),
        }
    }
}

/// The statements that let a role make the schema `tbmq_migrate`, or use the one that another role made, and who runs them.
pub fn missing_grants(database: &str, role: &str, exists: bool) -> String {
    let (database, role) = (crate::source::quoted(database), crate::source::quoted(role));
    match exists {
        false => format!("as the owner of the database: grant create on database {database} to {role};"),
        true => format!(
            "as the role that made the schema, or as a superuser: grant usage, create on schema tbmq_migrate to {role}; \
             grant select, insert, update, delete on all tables in schema tbmq_migrate to {role}; grant create on database {database} to {role};"
        ),
    }
}
