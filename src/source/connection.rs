//! Connecting to PostgreSQL.
//!
//! Every setting that a statement relies on is set inside its transaction, never at start-up or on the session: so the
//! same code works through a transaction pooler, which refuses start-up options and hands sessions around. For the same
//! reason no statement is prepared by name.

use std::str::FromStr;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use super::SourceError;
use crate::config::PostgresConfig;

/// What every session of this program calls itself.
pub(super) const APPLICATION: &str = "tbmq-migrate";
/// How a server that drops packets is told from a slow one: no login takes longer.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// Where the broker's tables are.
#[derive(Debug, Clone)]
pub struct Source {
    options: PgConnectOptionsWithoutDebug,
    place: String,
    schema: Option<String>,
}

/// The driver's own `Debug` prints the password.
#[derive(Clone)]
struct PgConnectOptionsWithoutDebug(PgConnectOptions);

impl std::fmt::Debug for PgConnectOptionsWithoutDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PgConnectOptions(…)")
    }
}

impl Source {
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// A URL that the driver does not take; the configuration has checked it before.
    pub fn new(config: &PostgresConfig) -> Result<Self, SourceError> {
        let place = config.display.clone();
        let options = PgConnectOptions::from_str(config.url.expose_secret())
            .map_err(|source| SourceError::Connect { place: place.clone(), source })?
            .application_name(APPLICATION)
            .extra_float_digits(None)
            .statement_cache_capacity(0)
            .disable_statement_logging();
        Ok(Self { options: PgConnectOptionsWithoutDebug(options), place, schema: config.schema.clone() })
    }

    /// host:port/database and user, without secrets.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The schema of the tables, where it is not left to the search path.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// How the control schema, which lives in the same database, connects.
    pub fn options(&self) -> PgConnectOptions {
        self.options.0.clone()
    }

    /// A connection of its own.
    ///
    /// # Errors
    /// [`SourceError::Connect`], also when the server does not answer in 15 s.
    pub async fn connect(&self) -> Result<PgConnection, SourceError> {
        let failed = |source| SourceError::Connect { place: self.place.clone(), source };
        match tokio::time::timeout(CONNECT_LIMIT, PgConnection::connect_with(&self.options.0)).await {
            Ok(connected) => connected.map_err(failed),
            Err(_) => Err(failed(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer to the login within 15 s")))),
        }
    }
}
