//! Rows of a few ranges spread over the tables, judged by the law and encoded as a copy would; nothing is written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::model::{ClientId, Encoder, Judgement, KeyPrefix, Millis, Outcome, QuarantineReason, Rules, SessionLaw, Tally};
use crate::source::{ChunkReader, JoinedRow, LoneContext, Part, PlannedChunk, Rows, Source, SourceError, Tables};
use crate::target::{ScratchMessage, Target};

/// Ranges that are looked into: enough that one odd range does not decide.
const RANGES: usize = 8;
/// Rows that are looked at in all, and contexts without rows: some 100 ms of reading.
const ROWS: u64 = 20_000;
/// A person waits for it.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Messages that are kept to be measured in Redis, and their bytes: one call of ordinary size.
const KEPT_MESSAGES: usize = 100;
const KEPT_BYTES: usize = 128 * 1024;

/// What the rows that were looked at came to.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Rows of the whole table, as estimated from a few hundred blocks.
    pub estimated_rows: u64,
    /// Whether every row and every context was looked at.
    pub complete: bool,
    /// Outcomes; `sessions` are those that were met, with and without rows.
    pub tally: Tally,
    /// Sessions without rows among them.
    pub lone_contexts: u64,
    /// Why rows are quarantined.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Bytes of the JSON and of the keys of all wanted messages.
    pub json_bytes: u64,
    pub key_bytes: u64,
    /// The longest session as far as it was read, and its rows.
    pub longest: Option<(ClientId, u64)>,
    /// Bytes of the largest payload.
    pub largest_payload: usize,
    /// How long reading, judging and encoding took.
    pub elapsed: Duration,
    /// Some messages as they would be written.
    pub kept: Vec<ScratchMessage>,
    pub kept_bytes: usize,
}

impl Sample {
    /// Rows in a second of reading; `None` where nothing was read.
    pub fn rows_per_second(&self) -> Option<f64> {
        // Lossless: counts of rows are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        (self.tally.rows_read > 0).then(|| self.tally.rows_read as f64 / self.elapsed.as_secs_f64().max(1e-6))
    }
}

/// What is sampled, and by which rules.
pub(super) struct Sampler<'a> {
    pub source: &'a Source,
    pub tables: &'a Tables,
    pub rules: Rules,
    pub prefix: &'a KeyPrefix,
    /// `None` where Redis cannot be reached: every session counts as one that it can hold.
    pub target: Option<&'a Target>,
    pub now: Millis,
    pub stop: &'a CancellationToken,
}

impl Sampler<'_> {
    /// Looks into ranges until the rows or the time are used up.
    pub async fn take(&self) -> Result<Sample, SourceError> {
        let planned = self.tables.plan_at_a_glance(&mut self.source.connect().await?).await?;
        let ranges = planned.len().min(RANGES);
        let mut sample = Sample { complete: ranges == planned.len(), ..Sample::default() };
        sample.estimated_rows = planned.iter().filter_map(|chunk| chunk.estimated_rows).sum();
        let started = Instant::now();
        let deadline = tokio::time::Instant::now() + TIME_LIMIT;
        for number in 0..ranges {
            let at = number * (planned.len() - 1) / (ranges - 1).max(1);
            let glance = Glance {
                sampler: self,
                deadline,
                rows: ROWS / ranges as u64,
                keep: KEPT_MESSAGES * (number + 1) / ranges,
                law: SessionLaw::new(self.rules),
                encoder: Encoder::default(),
                json: Vec::new(),
            };
            sample.complete &= glance.read(&planned[at], &mut sample).await?;
        }
        sample.elapsed = started.elapsed();
        // Rows that were seen are there, whatever the estimate was.
        sample.estimated_rows = if sample.complete { sample.tally.rows_read } else { sample.estimated_rows.max(sample.tally.rows_read) };
        Ok(sample)
    }
}

/// One range.
struct Glance<'a> {
    sampler: &'a Sampler<'a>,
    deadline: tokio::time::Instant,
    rows: u64,
    /// Messages that may have been kept after this range.
    keep: usize,
    law: SessionLaw,
    encoder: Encoder,
    json: Vec<u8>,
}

/// The session whose rows are passing.
struct Session {
    bytes: Box<[u8]>,
    client: Option<ClientId>,
    rows: u64,
}

impl Glance<'_> {
    /// Whether the range was read to its end. The connection is its own: one with rows still to give is closed with it.
    async fn read(mut self, chunk: &PlannedChunk, sample: &mut Sample) -> Result<bool, SourceError> {
        let mut connection = self.sampler.source.connect().await?;
        let mut reader = ChunkReader::begin_glance(&mut connection, self.sampler.tables).await?;
        if !self.messages(reader.messages(&chunk.scope), sample).await? {
            return Ok(false);
        }
        let complete = self.contexts(reader.lone_contexts(&chunk.scope.only(Part::ContextsOnly)), sample).await?;
        if complete {
            reader.end().await?;
        }
        Ok(complete)
    }

    async fn messages(&mut self, mut rows: Rows<'_>, sample: &mut Sample) -> Result<bool, SourceError> {
        let mut session: Option<Session> = None;
        let mut left = self.rows;
        loop {
            let over = left == 0 || self.sampler.stop.is_cancelled();
            let next = match over {
                true => None,
                false => tokio::time::timeout_at(self.deadline, rows.next_message()).await.ok().transpose()?,
            };
            match next {
                None => return Ok(false),
                Some(None) => return Ok(true),
                Some(Some(row)) => {
                    left -= 1;
                    self.row(&row, &mut session, sample)?;
                }
            }
        }
    }

    fn row(&mut self, row: &JoinedRow, current: &mut Option<Session>, sample: &mut Sample) -> Result<(), SourceError> {
        let bytes = row.client()?;
        let context = row.context()?;
        if current.as_ref().is_none_or(|session| *session.bytes != *bytes) {
            let client = std::str::from_utf8(bytes).ok().map(ClientId::new);
            let servable = client.as_ref().is_none_or(|client| self.servable(client));
            self.law.begin(servable);
            sample.tally.sessions += 1;
            sample.tally.invalid_contexts += u64::from(servable && client.is_some() && context.is_some_and(|context| context.is_invalid()));
            *current = Some(Session { bytes: bytes.into(), client, rows: 0 });
        }
        let Some(session) = current else { return Ok(()) };
        session.rows += 1;
        sample.tally.orphan_messages += u64::from(context.is_none());
        let message = row.message()?;
        sample.largest_payload = sample.largest_payload.max(message.payload.map_or(0, <[u8]>::len));
        let Some(client) = &session.client else {
            sample.quarantine(QuarantineReason::NotUtf8);
            return Ok(());
        };
        if sample.longest.as_ref().is_none_or(|(_, rows)| session.rows > *rows) {
            sample.longest = Some((client.clone(), session.rows));
        }
        match self.law.judge(&message, self.sampler.now) {
            Judgement::Left(Outcome::Quarantined(reason)) => sample.quarantine(reason),
            Judgement::Left(outcome) | Judgement::Expired(outcome, _) => sample.tally.count(outcome),
            Judgement::Wanted(wanted) => {
                sample.tally.count(Outcome::Migrated);
                self.json.clear();
                self.encoder.encode(client.as_str(), wanted.packet_id, &wanted.content, self.sampler.rules.topic_field, &mut self.json);
                let key = KeyPrefix::message(&self.sampler.prefix.messages(client.as_str()), wanted.packet_id.get());
                sample.want(key, &self.json, self.keep);
            }
        }
        Ok(())
    }

    async fn contexts(&mut self, mut rows: Rows<'_>, sample: &mut Sample) -> Result<bool, SourceError> {
        for _ in 0..self.rows {
            match tokio::time::timeout_at(self.deadline, rows.next_context()).await.ok().transpose()? {
                None => return Ok(false),
                Some(None) => return Ok(true),
                Some(Some(context)) => self.context(&context, sample)?,
            }
        }
        Ok(false)
    }

    fn context(&self, row: &LoneContext, sample: &mut Sample) -> Result<(), SourceError> {
        let servable = std::str::from_utf8(row.client()?).is_ok_and(|id| self.servable(&ClientId::new(id)));
        sample.tally.sessions += 1;
        sample.lone_contexts += 1;
        sample.tally.invalid_contexts += u64::from(!servable || row.context()?.is_invalid());
        Ok(())
    }

    fn servable(&self, client: &ClientId) -> bool {
        self.sampler.target.is_none_or(|target| target.group(client.as_str()).is_some())
    }
}

impl Sample {
    fn quarantine(&mut self, reason: QuarantineReason) {
        self.tally.count(Outcome::Quarantined(reason));
        *self.reasons.entry(reason.name()).or_default() += 1;
    }

    fn want(&mut self, key: String, json: &[u8], keep: usize) {
        self.json_bytes += json.len() as u64;
        self.key_bytes += key.len() as u64;
        if self.kept.len() < keep && self.kept_bytes + json.len() <= KEPT_BYTES {
            self.kept_bytes += json.len();
            self.kept.push(ScratchMessage { key, json: json.to_vec() });
        }
    }
}
