//! What can go wrong with PostgreSQL, and what it means.

use crate::model::Consequence;

/// An error of the source side.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The server cannot be reached, or refuses the login.
    #[error("cannot connect to PostgreSQL at {place}")]
    Connect {
        /// host:port/database and user, no secret.
        place: String,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// A statement failed.
    #[error("PostgreSQL: {doing}")]
    Statement {
        /// What was being done, as a fragment.
        doing: &'static str,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// No row came for so long that the connection counts as lost.
    #[error("PostgreSQL sent nothing for {seconds} s while {doing}")]
    Stalled {
        /// What was being done.
        doing: &'static str,
        /// The limit that passed.
        seconds: u64,
    },
    /// The server is older than anything this tool was tried on.
    #[error("PostgreSQL {version} is too old: 12 or later is needed")]
    TooOld {
        /// As the server names itself.
        version: String,
    },
    /// A table of the broker is not there.
    #[error("table {table} does not exist in {place}")]
    MissingTable {
        /// Its name as asked for.
        table: String,
        /// Where it was looked for.
        place: String,
        /// Schemas that hold a table of this name.
        elsewhere: Vec<String>,
    },
    /// It is there but is no table that rows can be read from in order.
    #[error("{table} is not an ordinary or partitioned table")]
    NotATable {
        /// Its name.
        table: String,
    },
    /// A column that every 1.x schema has is not there.
    #[error("table {table} lacks the column {column}")]
    MissingColumn {
        /// Its table.
        table: String,
        /// Its name.
        column: &'static str,
    },
    /// The role may not look into the schema.
    #[error("role {role} may not use the schema {schema}")]
    MissingUsage {
        /// Who is logged in.
        role: String,
        /// The schema, as it was given.
        schema: String,
    },
    /// The role may not read a table.
    #[error("role {role} may not read {table}")]
    MissingRight {
        /// Who is logged in.
        role: String,
        /// What may not be read.
        table: String,
    },
    /// Text indexes may be out of order after an upgrade of the operating system's collations.
    #[error("the collation of {table}.client_id changed from version {recorded} to {actual}: its index may skip rows silently")]
    CollationChanged {
        /// The table whose index is in doubt.
        table: String,
        /// The version that the index was built with.
        recorded: String,
        /// The version that the server has.
        actual: String,
        /// The statements that put both indexes in order.
        mend: String,
    },
    /// A value came in a form that its column type does not have.
    #[error("column {column} of {table} has an unexpected form")]
    Form {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
}

impl SourceError {
    /// A failed statement, named by what it was for.
    pub(super) fn statement(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Statement { doing, source }
    }

    /// Whether a text has a letter that the database's encoding lacks.
    pub fn is_untranslatable(&self) -> bool {
        matches!(self, Self::Statement { source, .. } if code(source).as_deref() == Some("22P05"))
    }

    /// Whether trying again can help.
    pub fn consequence(&self) -> Consequence {
        match self {
            Self::Connect { source, .. } | Self::Statement { source, .. } => consequence_of(source),
            Self::Stalled { .. } => Consequence::Retry,
            Self::TooOld { .. }
            | Self::MissingTable { .. }
            | Self::NotATable { .. }
            | Self::MissingColumn { .. }
            | Self::MissingUsage { .. }
            | Self::MissingRight { .. }
            | Self::CollationChanged { .. }
            | Self::Form { .. } => Consequence::Operator,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Connect { source, .. } => Some(connect_hint(source).to_owned()),
            Self::Statement { source, .. } => match code(source).as_deref() {
                Some("42501") => Some("grant the missing right to the role, or run as the owner of the tables".to_owned()),
                _ => None,
            },
            Self::Stalled { .. } | Self::Form { .. } => None,
            Self::TooOld { .. } => Some("upgrade the server, or restore a dump of the two tables on a newer one and migrate from there".to_owned()),
            Self::MissingTable { elsewhere, .. } => {
                let found = match elsewhere.as_slice() {
                    [] => "is this the database of a TBMQ 1.x broker?".to_owned(),
                    schemas => format!("there is one in the schema {}.", schemas.join(", and in ")),
                };
                Some(format!("{found} Name another schema with --postgres-schema, or another database in --postgres-url"))
            }
            Self::MissingUsage { role, schema } => Some(format!("as the owner: grant usage on schema {} to {};", quoted(schema), quoted(role))),
            Self::NotATable { .. } => Some("point --postgres-schema at the schema that holds the broker's own tables".to_owned()),
            Self::MissingColumn { .. } => Some("this is not the table of a TBMQ 1.x broker; check --postgres-url and --postgres-schema".to_owned()),
            Self::MissingRight { role, table } => Some(format!("as the owner: grant select on {table} to {};", quoted(role))),
            Self::CollationChanged { mend, .. } => Some(format!("as the owner: {mend} then run again")),
        }
    }
}

/// The class of what the driver says; used for the control schema too, which lives on the same server.
pub fn consequence_of(error: &sqlx::Error) -> Consequence {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => Consequence::Retry,
        sqlx::Error::Protocol(_) => Consequence::Retry,
        sqlx::Error::Database(_) => match code(error).as_deref() {
            // Shutdown, crash, starting up, connection lost, too many clients, serialization, deadlock, recovery conflict.
            Some("57P01" | "57P02" | "57P03" | "53300" | "40001" | "40P01" | "55P03") => Consequence::Retry,
            Some(code) if code.starts_with("08") => Consequence::Retry,
            _ => Consequence::Operator,
        },
        _ => Consequence::Operator,
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned())
}

fn connect_hint(error: &sqlx::Error) -> &'static str {
    match code(error).as_deref() {
        Some("28P01" | "28000") => "check user and password in --postgres-url, and pg_hba.conf on the server",
        Some("3D000") => "check the database name in --postgres-url",
        Some("53300") => "the server has no free connection: lower --jobs, or raise max_connections",
        Some("08P01") => "is this a pooler? Give the server's own address in --postgres-url",
        _ => match error {
            sqlx::Error::Tls(_) => "check sslmode and sslrootcert in --postgres-url",
            _ => "check host and port in --postgres-url, and that the server accepts connections from here",
        },
    }
}

/// A name as SQL wants it where it may hold anything.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
