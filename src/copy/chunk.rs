//! One chunk: its sessions stream from PostgreSQL through the law into Redis.
//!
//! A session is never split over chunks: the chunk ends at a border between two of them, and what is left becomes a chunk
//! of its own. All replies are checked before the chunk counts as done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::sender::{InFlight, Route, Sender};
use super::{Clock, CopyError, Meter, Pace};
use crate::control::{FinishedChunk, Quarantine, Term};
use crate::model::{ClientId, Compared, ContextRow, Encoder, Judgement, Outcome, QuarantineReason, Rules, SessionLaw, Tally, WantedMessage};
use crate::source::{ChunkReader, JoinedRow, Part, Scope, Tables};
use crate::target::{Link, Target, WriteMode};

/// What a person is made to wait for after the first Ctrl-C: a session of ordinary length ends within it.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Rows between two looks at whether a person wants to stop, and between two steps of the meter: some milliseconds.
const ROWS_A_LOOK: u64 = 256;

/// What all chunks of a process share.
pub struct Copier {
    /// The two tables.
    pub tables: Tables,
    /// The rules.
    pub rules: Rules,
    /// Where the sessions go.
    pub target: Target,
    /// False for a dry run: everything is read and judged, nothing is written.
    pub writes: bool,
    /// A chunk ends at the next session border after this time.
    pub chunk_time: Duration,
    /// The rate limit.
    pub pace: Pace,
    /// Live counts.
    pub meter: Arc<Meter>,
    /// Cancelled when the work shall end at the next session border.
    pub stop: CancellationToken,
    /// The bytes that all calls may hold at once.
    pub in_flight: InFlight,
}

/// What one job brings along.
pub struct Job<'a> {
    /// Its connection to Redis.
    pub link: &'a Link,
    /// The right to write, where it is leased.
    pub lease: Option<Term<'a>>,
    /// The time.
    pub clock: Clock,
}

impl Copier {
    /// Makes Redis equal to PostgreSQL for the sessions of a scope, as they are at one moment.
    ///
    /// # Errors
    /// Nothing of the chunk counts then. Where Redis can still be reached and written to, no session is left half-written.
    pub async fn chunk(
        &self,
        connection: &mut PgConnection,
        job: &Job<'_>,
        scope: &Scope,
        mode: WriteMode,
        quarantine: &mut Quarantine,
    ) -> Result<FinishedChunk, CopyError> {
        let route =
            Route { link: job.link, prefix: &self.target.prefix, lease: job.lease, pace: &self.pace, in_flight: &self.in_flight, stop: &self.stop };
        let mut pass = Pass {
            copier: self,
            clock: job.clock,
            mode,
            sender: Sender::new(route, mode),
            law: SessionLaw::new(self.rules),
            encoder: Encoder::default(),
            tally: Tally::default(),
            quarantine,
            started: Instant::now(),
            stopped: None,
            session: None,
            unshown_rows: 0,
        };
        let result = pass.run(connection, scope).await;
        match result {
            Ok((covered, rest)) => Ok(FinishedChunk { tally: pass.tally, compared: Compared::default(), covered, rest }),
            Err(error) => {
                if error.leaves_redis_in_reach() {
                    let half_written = pass.sender.half_written().await;
                    self.remove(job.link, &half_written).await;
                }
                Err(error)
            }
        }
    }

    /// Best effort, after an error that is told whatever comes of this: what stays half-written is written by the next try.
    async fn remove(&self, link: &Link, half_written: &[ClientId]) {
        for client in half_written {
            if let Err(error) = link.remove_session(&self.target.prefix, client).await {
                tracing::warn!(%client, %error, "a session stays half-written until the run goes on");
                return;
            }
        }
    }
}

/// One pass over the rows of a chunk.
struct Pass<'a> {
    copier: &'a Copier,
    clock: Clock,
    mode: WriteMode,
    sender: Sender<'a>,
    law: SessionLaw,
    encoder: Encoder,
    tally: Tally,
    quarantine: &'a mut Quarantine,
    started: Instant,
    stopped: Option<Instant>,
    session: Option<Session>,
    /// Rows not yet added to the meter.
    unshown_rows: u64,
}

/// The session whose rows are passing.
struct Session {
    bytes: Box<[u8]>,
    /// `None` where the id is no text: nothing of it can be carried.
    client: Option<ClientId>,
    /// The slot group of a session that can live on the target.
    group: Option<u16>,
    context: Option<ContextRow>,
    /// Whether a row of it has passed: then the rows stand for the session in the quarantine list.
    has_rows: bool,
    /// Whether its first part is in a batch.
    open: bool,
    /// Whether more than one part was sent.
    long: bool,
    /// Whether Redis holds another type under its keys.
    refused: bool,
}

impl Session {
    /// Why nothing of it can be carried, whatever its rows and its context say.
    fn unservable(&self) -> Option<QuarantineReason> {
        match (&self.client, self.group) {
            (None, _) => Some(QuarantineReason::NotUtf8),
            (Some(_), None) => Some(QuarantineReason::SpansSlots),
            (Some(_), Some(_)) => None,
        }
    }
}

impl Pass<'_> {
    /// What was covered, and what is left when the time was over before the end: then the connection still has rows to
    /// give, and only closing it stops them.
    async fn run(&mut self, connection: &mut PgConnection, scope: &Scope) -> Result<(Scope, Vec<Scope>), CopyError> {
        let mut reader = ChunkReader::begin(connection, &self.copier.tables).await?;
        let (covered, rest) = self.read(&mut reader, scope).await?;
        if rest.is_empty() {
            reader.end().await?;
        }
        self.show_rows();
        self.sender.settle().await?;
        self.sender.account(&mut self.tally, self.quarantine).await?;
        self.quarantine.flush().await?;
        Ok((covered, rest))
    }

    async fn read(&mut self, reader: &mut ChunkReader<'_>, scope: &Scope) -> Result<(Scope, Vec<Scope>), CopyError> {
        let border = match scope.part {
            Part::All | Part::RowsOnly => self.messages(reader, scope).await?,
            Part::ContextsOnly => self.lone_contexts(reader, scope).await?,
            Part::TargetOnly => None,
        };
        match (scope.part, border) {
            (Part::All, None) if !self.time_is_over() => {
                self.lone_contexts(reader, scope).await?;
                Ok((scope.clone(), Vec::new()))
            }
            (_, border) => Ok(scope.split(border.as_deref())),
        }
    }

    /// Passes all rows; the id of the last finished session when it ended early.
    async fn messages(&mut self, reader: &mut ChunkReader<'_>, scope: &Scope) -> Result<Option<String>, CopyError> {
        let mut rows = reader.messages(scope);
        while let Some(row) = rows.next_message().await? {
            let client = row.client()?;
            if self.session.as_ref().is_none_or(|session| *session.bytes != *client) {
                let finished = self.finish_session().await?;
                if let Some(border) = finished.filter(|_| self.time_is_over()) {
                    return Ok(Some(border));
                }
                self.begin_session(client, row.context()?).await?;
            }
            self.row(&row).await?;
        }
        self.finish_session().await?;
        Ok(None)
    }

    /// Passes the contexts that have no rows; the id of the last one when it ended early, as a chunk of contexts alone may.
    async fn lone_contexts(&mut self, reader: &mut ChunkReader<'_>, scope: &Scope) -> Result<Option<String>, CopyError> {
        let mut rows = reader.lone_contexts(scope);
        while let Some(row) = rows.next_context().await? {
            let finished = self.finish_session().await?;
            if let Some(border) = finished.filter(|_| scope.part == Part::ContextsOnly && self.time_is_over()) {
                return Ok(Some(border));
            }
            self.begin_session(row.client()?, Some(row.context()?)).await?;
        }
        self.finish_session().await?;
        Ok(None)
    }

    /// Whether the chunk shall end at this border.
    fn time_is_over(&self) -> bool {
        self.started.elapsed() >= self.copier.chunk_time || self.copier.stop.is_cancelled()
    }

    async fn begin_session(&mut self, bytes: &[u8], context: Option<ContextRow>) -> Result<(), CopyError> {
        let client = std::str::from_utf8(bytes).ok().map(ClientId::new);
        let group = client.as_ref().and_then(|client| self.copier.target.group(client.as_str()));
        self.law.begin(group.is_some() || client.is_none());
        self.tally.sessions += 1;
        self.copier.meter.add_session();
        // Of a session that cannot be carried at all, that is told instead.
        if group.is_some() && context.as_ref().is_some_and(ContextRow::is_invalid) {
            self.tally.invalid_contexts += 1;
            self.quarantine.add(&shown(client.as_ref(), bytes), None, INVALID_CONTEXT).await?;
        }
        self.session = Some(Session { bytes: bytes.into(), client, group, context, has_rows: false, open: false, long: false, refused: false });
        Ok(())
    }

    /// Judges a row, and sends it on when it is wanted.
    async fn row(&mut self, row: &JoinedRow) -> Result<(), CopyError> {
        self.unshown_rows += 1;
        if self.unshown_rows == ROWS_A_LOOK {
            self.show_rows();
            self.check_grace()?;
        }
        let Some(session) = &mut self.session else { return Ok(()) };
        session.has_rows = true;
        self.tally.orphan_messages += u64::from(session.context.is_none());
        let message = row.message()?;
        let judgement = match session.client {
            Some(_) => self.law.judge(&message, self.clock.now()),
            None => Judgement::Left(Outcome::Quarantined(QuarantineReason::NotUtf8)),
        };
        let outcome = match &judgement {
            Judgement::Wanted(_) if session.refused => Outcome::Quarantined(QuarantineReason::ForeignType),
            judgement => judgement.outcome(),
        };
        self.tally.count(outcome);
        match (outcome, judgement) {
            (Outcome::Quarantined(reason), _) => {
                let client = shown(session.client.as_ref(), &session.bytes);
                self.quarantine.add(&client, Some(message.serial_number), reason.name()).await?;
            }
            (Outcome::Migrated, Judgement::Wanted(wanted)) if self.copier.writes => self.send(wanted).await?,
            _ => {}
        }
        Ok(())
    }

    async fn send(&mut self, wanted: WantedMessage<'_>) -> Result<(), CopyError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let (Some(client), Some(group)) = (&session.client, session.group) else { return Ok(()) };
        if !session.open {
            // Rule 5 gives one to every session that has a message; by the first wanted message it is final.
            let last = self.law.last_packet_id(session.context.as_ref()).unwrap_or(wanted.packet_id.into());
            self.sender.begin(client, group, last).await?;
            session.open = true;
        } else if self.sender.is_full() {
            self.sender.next_part(client, !session.long).await?;
            session.long = true;
            session.refused = self.sender.refuses(client);
            if session.refused {
                self.sender.forget_part();
                self.tally.refuse_migrated();
                self.quarantine.add(client, Some(wanted.score.get() - 1), QuarantineReason::ForeignType.name()).await?;
                return Ok(());
            }
        }
        let (encoder, field) = (&mut self.encoder, self.copier.rules.topic_field);
        self.sender.push(&wanted, |out| encoder.encode(client.as_str(), wanted.packet_id, &wanted.content, field, out));
        Ok(())
    }

    /// Ends the session in work; its id, where it can be a border.
    async fn finish_session(&mut self) -> Result<Option<String>, CopyError> {
        let Some(session) = self.session.take() else { return Ok(None) };
        if let (Some(reason), false) = (session.unservable(), session.has_rows) {
            self.tally.invalid_contexts += 1;
            self.quarantine.add(&shown(session.client.as_ref(), &session.bytes), None, reason.name()).await?;
        }
        let Some(client) = session.client else { return Ok(None) };
        if let (false, Some(group), true) = (session.open, session.group, self.copier.writes) {
            match (self.law.last_packet_id(session.context.as_ref()), self.mode) {
                (Some(last), _) => self.sender.begin(&client, group, last).await?,
                (None, WriteMode::Replace) => self.sender.remove(&client).await?,
                (None, WriteMode::Fresh) => {}
            }
        }
        Ok(Some(client.as_str().to_owned()))
    }

    fn show_rows(&mut self) {
        self.copier.meter.add_rows(std::mem::take(&mut self.unshown_rows));
    }

    /// A long session is waited for after a Ctrl-C, but not for ever.
    fn check_grace(&mut self) -> Result<(), CopyError> {
        if !self.copier.stop.is_cancelled() {
            return Ok(());
        }
        let since = *self.stopped.get_or_insert_with(Instant::now);
        if since.elapsed() >= STOP_GRACE { Err(CopyError::Stopped) } else { Ok(()) }
    }
}

/// The reason under which a context stands in the quarantine list whose last packet id counts as NULL.
const INVALID_CONTEXT: &str = "context_packet_id_out_of_range";

/// An id for a list: what is no text stands there with replacement characters.
fn shown(client: Option<&ClientId>, bytes: &[u8]) -> ClientId {
    client.cloned().unwrap_or_else(|| ClientId::new(String::from_utf8_lossy(bytes).into_owned()))
}
