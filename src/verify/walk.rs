//! Going over sessions as they stream from PostgreSQL, each judged by the law and read back from Redis part by part.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::balance::Balance;
use super::part::{Kept, Part, Session};
use crate::config::Level;
use crate::copy::{Clock, CopyError, InFlight, Meter, Pace};
use crate::model::{ClientId, ContextRow, Judgement, Outcome, QuarantineReason, Rules, SessionLaw, Tally, Tolerance};
use crate::source::{ChunkReader, JoinedRow, Part as Rows, Scope, Tables};
use crate::target::{Link, Reading, ScoreRange, Target};

/// What all comparisons of a process share.
pub(super) struct Comparer {
    pub tables: Tables,
    pub rules: Rules,
    pub target: Target,
    pub level: Level,
    pub tolerance: Tolerance,
    pub settle_timeout: Duration,
    pub chunk_time: Duration,
    pub pace: Pace,
    pub meter: Arc<Meter>,
    pub stop: CancellationToken,
    pub in_flight: InFlight,
    /// What the first pass over all rows has explained of Redis.
    pub balance: Balance,
}

/// What a walk is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To find the sessions that may differ, as fast as can be.
    Suspects,
    /// To compare each session as a whole.
    ForGood,
    /// To see what the rows are, without Redis.
    RowsOnly,
}

/// Calls of one walk that may wait for their reply. What is compared for good comes back in order.
const CALLS_IN_FLIGHT: usize = 4;
/// Messages of a call: some hundred µs of the server's time.
const MESSAGES_A_CALL: usize = 100;
/// Bytes of rows of a call: what comes back for them takes Redis about a millisecond.
const BYTES_A_CALL: usize = 128 * 1024;
/// Rows between two steps of the meter.
const ROWS_A_LOOK: u64 = 256;
/// What a person is made to wait for after the first Ctrl-C.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// More suspects than these end the chunk: they are settled before the rest of it is read.
const MOST_SUSPECTS: usize = 5_000;

/// What a walk met.
pub(super) struct Walked {
    pub tally: Tally,
    /// All sessions in the order of PostgreSQL where they were compared for good, else the suspects.
    pub sessions: Vec<Arc<Session>>,
    /// Messages that must be in Redis.
    pub wanted: u64,
    pub covered: Scope,
    pub rest: Vec<Scope>,
}

/// One walk.
pub(super) struct Walk<'a> {
    comparer: &'a Comparer,
    link: &'a Link,
    clock: Clock,
    purpose: Purpose,
    law: SessionLaw,
    tally: Tally,
    wanted: u64,
    sessions: Vec<Arc<Session>>,
    passing: Option<Passing>,
    batch: Batch,
    in_flight: FuturesUnordered<BoxFuture<'a, Result<Vec<Arc<Session>>, CopyError>>>,
    started: Instant,
    stopped: Option<Instant>,
    unshown_rows: u64,
}

/// The session whose rows are passing.
struct Passing {
    bytes: Box<[u8]>,
    session: Arc<Session>,
    /// `None` for one that no key of Redis can hold.
    group: Option<u16>,
    is_text: bool,
    context: Option<ContextRow>,
    has_rows: bool,
    kept: Vec<Kept>,
    kept_bytes: usize,
    /// Where the part before ended.
    end: Option<i64>,
    digest: DefaultHasher,
    tally: Tally,
}

/// Parts of one call.
#[derive(Default)]
struct Batch {
    parts: Vec<Part>,
    group: Option<u16>,
    messages: usize,
    bytes: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(comparer: &'a Comparer, link: &'a Link, clock: Clock, purpose: Purpose) -> Self {
        Self {
            comparer,
            link,
            clock,
            purpose,
            law: SessionLaw::new(comparer.rules),
            tally: Tally::default(),
            wanted: 0,
            sessions: Vec::new(),
            passing: None,
            batch: Batch::default(),
            in_flight: FuturesUnordered::new(),
            started: Instant::now(),
            stopped: None,
            unshown_rows: 0,
        }
    }

    /// Walks over the sessions of a scope in one snapshot. Where the walk ends before the end of the scope, the connection
    /// still has rows to give, and only closing it stops them.
    pub(super) async fn run(mut self, connection: &mut PgConnection, scope: &Scope) -> Result<Walked, CopyError> {
        let mut reader = ChunkReader::begin(connection, &self.comparer.tables).await?;
        let (covered, rest) = self.read(&mut reader, scope).await?;
        if rest.is_empty() {
            reader.end().await?;
        }
        self.show_rows();
        self.dispatch().await?;
        while !self.in_flight.is_empty() {
            self.take_reply().await?;
        }
        Ok(Walked { tally: self.tally, sessions: self.sessions, wanted: self.wanted, covered, rest })
    }

    async fn read(&mut self, reader: &mut ChunkReader<'_>, scope: &Scope) -> Result<(Scope, Vec<Scope>), CopyError> {
        let border = match scope.part {
            Rows::All | Rows::RowsOnly => self.messages(reader, scope).await?,
            Rows::ContextsOnly => self.lone_contexts(reader, scope).await?,
            Rows::TargetOnly => None,
        };
        match (scope.part, border) {
            (Rows::All, None) if !self.is_over() => {
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
            if self.passing.as_ref().is_none_or(|passing| *passing.bytes != *client) {
                let finished = self.finish_session().await?;
                if let Some(border) = finished.filter(|_| self.is_over()) {
                    return Ok(Some(border));
                }
                self.begin_session(client, row.context()?);
            }
            self.row(row).await?;
        }
        self.finish_session().await?;
        Ok(None)
    }

    /// Passes the contexts that have no rows; the id of the last one when it ended early, as a chunk of contexts alone may.
    async fn lone_contexts(&mut self, reader: &mut ChunkReader<'_>, scope: &Scope) -> Result<Option<String>, CopyError> {
        let mut rows = reader.lone_contexts(scope);
        while let Some(row) = rows.next_context().await? {
            let finished = self.finish_session().await?;
            if let Some(border) = finished.filter(|_| scope.part == Rows::ContextsOnly && self.is_over()) {
                return Ok(Some(border));
            }
            self.begin_session(row.client()?, Some(row.context()?));
        }
        self.finish_session().await?;
        Ok(None)
    }

    /// Whether the walk shall end at this border; one for a few sessions goes to its end.
    fn is_over(&self) -> bool {
        let Purpose::Suspects = self.purpose else { return false };
        self.started.elapsed() >= self.comparer.chunk_time || self.comparer.stop.is_cancelled() || self.sessions.len() >= MOST_SUSPECTS
    }

    fn begin_session(&mut self, bytes: &[u8], context: Option<ContextRow>) {
        let text = std::str::from_utf8(bytes).ok();
        let group = text.and_then(|id| self.comparer.target.group(id));
        self.law.begin(group.is_some() || text.is_none());
        self.tally.sessions += 1;
        self.comparer.meter.add_session();
        self.tally.invalid_contexts += u64::from(group.is_some() && context.as_ref().is_some_and(ContextRow::is_invalid));
        let client = ClientId::new(text.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), str::to_owned));
        let session = Arc::new(Session::new(client, (self.purpose == Purpose::ForGood).then_some(self.comparer.tolerance)));
        let mut digest = DefaultHasher::new();
        if let Some(context) = &context {
            (context.last_serial_number, context.last_packet_id).hash(&mut digest);
        }
        self.passing = Some(Passing {
            bytes: bytes.into(),
            session,
            group,
            is_text: text.is_some(),
            context,
            has_rows: false,
            kept: Vec::new(),
            kept_bytes: 0,
            end: None,
            digest,
            tally: Tally::default(),
        });
    }

    /// Judges a row, and keeps it where Redis has or had a message for it.
    async fn row(&mut self, row: JoinedRow) -> Result<(), CopyError> {
        self.unshown_rows += 1;
        if self.unshown_rows == ROWS_A_LOOK {
            self.show_rows();
            self.check_grace()?;
        }
        let Some(passing) = &mut self.passing else { return Ok(()) };
        passing.has_rows = true;
        self.tally.orphan_messages += u64::from(passing.context.is_none());
        if self.purpose != Purpose::Suspects {
            row.digest(&mut passing.digest);
        }
        let message = row.message()?;
        let judgement = match passing.is_text {
            true => self.law.judge(&message, self.clock.now()),
            false => Judgement::Left(Outcome::Quarantined(QuarantineReason::NotUtf8)),
        };
        self.tally.count(judgement.outcome());
        passing.tally.count(judgement.outcome());
        let (serial, bytes) = (message.serial_number, message.payload.map_or(0, <[u8]>::len) + ROW_BYTES);
        let (Judgement::Wanted(wanted) | Judgement::Expired(_, wanted)) = &judgement else { return Ok(()) };
        let is_wanted = matches!(judgement, Judgement::Wanted(_));
        let (packet_id, score, deadline) = (wanted.packet_id, wanted.score, wanted.deadline);
        self.wanted += u64::from(is_wanted);
        passing.session.wanted.fetch_add(u64::from(is_wanted), Ordering::Relaxed);
        passing.kept.push(Kept { row, packet_id, score, deadline, is_wanted });
        passing.kept_bytes += bytes;
        if self.batch.messages + passing.kept.len() >= MESSAGES_A_CALL || self.batch.bytes + passing.kept_bytes >= BYTES_A_CALL {
            let lowest = serial.saturating_add(1);
            self.close_part(Some(lowest), None).await?;
        }
        Ok(())
    }

    /// Ends the session in work; its id, where it can be a border.
    async fn finish_session(&mut self) -> Result<Option<String>, CopyError> {
        let Some(passing) = &self.passing else { return Ok(None) };
        self.tally.invalid_contexts += u64::from(passing.group.is_none() && !passing.has_rows);
        let (session, is_text, last) = (Arc::clone(&passing.session), passing.is_text, self.law.last_packet_id(passing.context.as_ref()));
        session.whole().judged(passing.digest.finish(), passing.tally, last);
        if self.purpose == Purpose::RowsOnly || (self.purpose == Purpose::ForGood && passing.group.is_some()) {
            self.sessions.push(Arc::clone(&session));
        }
        self.close_part(None, Some(last)).await?;
        self.passing = None;
        Ok(is_text.then(|| session.client.as_str().to_owned()))
    }

    /// Puts what was kept of the session into the batch.
    async fn close_part(&mut self, lowest: Option<i64>, head: Option<Option<crate::model::LastPacketId>>) -> Result<(), CopyError> {
        let Some(passing) = &mut self.passing else { return Ok(()) };
        let range = ScoreRange { lowest, end: passing.end };
        passing.end = lowest;
        let kept = std::mem::take(&mut passing.kept);
        let bytes = std::mem::take(&mut passing.kept_bytes);
        let Some(group) = passing.group.filter(|_| self.purpose != Purpose::RowsOnly) else { return Ok(()) };
        let part = Part { session: Arc::clone(&passing.session), range, head, kept };
        if self.batch.group != Some(group) {
            self.dispatch().await?;
            self.batch.group = Some(group);
        }
        self.batch.messages += part.kept.len();
        self.batch.bytes += bytes;
        self.batch.parts.push(part);
        if self.batch.messages + self.batch.parts.len() / 2 >= MESSAGES_A_CALL || self.batch.bytes >= BYTES_A_CALL {
            self.dispatch().await?;
        }
        Ok(())
    }

    /// Sends the batch.
    async fn dispatch(&mut self) -> Result<(), CopyError> {
        let batch = std::mem::take(&mut self.batch);
        if batch.parts.is_empty() {
            return Ok(());
        }
        let most = if self.purpose == Purpose::ForGood { 1 } else { CALLS_IN_FLIGHT };
        while self.in_flight.len() >= most {
            self.take_reply().await?;
        }
        let comparer = self.comparer;
        comparer.pace.wait(batch.messages, &comparer.stop).await;
        // The rows, and what comes back for them in base64.
        let permit = loop {
            // Own calls hold permits too: their replies must be taken while waiting.
            tokio::select! {
                permit = comparer.in_flight.take(2 * batch.bytes) => break permit,
                reply = self.in_flight.next(), if !self.in_flight.is_empty() => self.keep(reply)?,
            }
        };
        let (link, clock, purpose) = (self.link, self.clock, self.purpose);
        self.in_flight.push(Box::pin(async move {
            let _permit = permit;
            compare(comparer, link, clock, purpose, batch.parts).await
        }));
        // Started now, not when its reply is asked for.
        if let std::task::Poll::Ready(reply) = futures_util::poll!(self.in_flight.next()) {
            self.keep(reply)?;
        }
        Ok(())
    }

    async fn take_reply(&mut self) -> Result<(), CopyError> {
        let reply = self.in_flight.next().await;
        self.keep(reply)
    }

    fn keep(&mut self, reply: Option<Result<Vec<Arc<Session>>, CopyError>>) -> Result<(), CopyError> {
        let Some(reply) = reply else { return Ok(()) };
        if self.purpose == Purpose::Suspects {
            self.sessions.extend(reply?);
        } else {
            reply?;
        }
        Ok(())
    }

    fn show_rows(&mut self) {
        if self.purpose == Purpose::Suspects {
            self.comparer.meter.add_rows(self.unshown_rows);
        }
        self.unshown_rows = 0;
    }

    /// A long session is waited for after a Ctrl-C, but not for ever.
    fn check_grace(&mut self) -> Result<(), CopyError> {
        if !self.comparer.stop.is_cancelled() {
            return Ok(());
        }
        let since = *self.stopped.get_or_insert_with(Instant::now);
        if since.elapsed() >= STOP_GRACE { Err(CopyError::Stopped) } else { Ok(()) }
    }
}

/// What a row takes beside its payload.
const ROW_BYTES: usize = 200;

/// Reads the parts of one call back and compares them; the sessions of which it is the first difference.
async fn compare(comparer: &Comparer, link: &Link, clock: Clock, purpose: Purpose, parts: Vec<Part>) -> Result<Vec<Arc<Session>>, CopyError> {
    let level = if purpose == Purpose::ForGood { Level::Full } else { comparer.level };
    let mut reading = Reading::default();
    for part in &parts {
        let messages = match level {
            Level::Full => part.kept.as_slice(),
            Level::Count => &[],
        };
        reading.add(&comparer.target.prefix, &part.request(true), messages.iter().map(|kept| kept.packet_id.get()));
    }
    let mut suspects = Vec::new();
    for (part, found) in parts.iter().zip(&link.read(&reading).await?) {
        if purpose == Purpose::Suspects {
            part.balance(&comparer.balance, found);
        }
        let was_suspect = part.session.suspect.load(Ordering::Relaxed);
        match level {
            Level::Full => part.compare(comparer, link, found, clock).await?,
            Level::Count if part.counts_agree(found, comparer.tolerance, clock.now()) => {}
            Level::Count => part.session.suspect.store(true, Ordering::Relaxed),
        }
        if !was_suspect && part.session.suspect.load(Ordering::Relaxed) {
            suspects.push(Arc::clone(&part.session));
        }
    }
    Ok(suspects)
}
