//! Batches on their way to Redis: gathered, bounded in flight, each reply checked.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{CopyError, Pace};
use crate::control::{Quarantine, Term};
use crate::model::{ClientId, KeyPrefix, LastPacketId, QuarantineReason, Score, Tally, WantedMessage};
use crate::observe::failpoint;
use crate::target::{Batch, Link, Refused, TargetError, WriteMode};

/// Calls of one chunk that may wait for their reply: enough to keep Redis busy while rows are read and encoded.
const CALLS_IN_FLIGHT: usize = 4;
/// What all calls of the process may hold at once. The largest message alone is larger: it then travels alone.
const BYTES_IN_FLIGHT: usize = 4 * 1024 * 1024;
/// The unit in which those bytes are handed out.
const PERMIT_BYTES: usize = 1024;

/// The bytes that all calls of a process may hold at once.
#[derive(Debug, Clone)]
pub struct InFlight(Arc<Semaphore>);

impl Default for InFlight {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_IN_FLIGHT / PERMIT_BYTES)))
    }
}

impl InFlight {
    /// The right to hold so many bytes; waits until others have given theirs back. `None`: the process is ending.
    pub async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = u32::try_from((bytes / PERMIT_BYTES).clamp(1, BYTES_IN_FLIGHT / PERMIT_BYTES)).unwrap_or(u32::MAX);
        Arc::clone(&self.0).acquire_many_owned(wanted).await.ok()
    }
}

/// After an error the replies of the other calls are waited for this long: a call takes milliseconds.
const LAST_REPLIES_LIMIT: Duration = Duration::from_secs(1);

/// What the sender needs of its surroundings.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    pub link: &'a Link,
    pub prefix: &'a KeyPrefix,
    pub lease: Option<Term<'a>>,
    pub pace: &'a Pace,
    pub in_flight: &'a InFlight,
    pub stop: &'a CancellationToken,
}

/// The calls of one chunk.
pub(super) struct Sender<'a> {
    route: Route<'a>,
    mode: WriteMode,
    batch: Batch,
    group: Option<u16>,
    in_flight: FuturesUnordered<BoxFuture<'a, (u64, Result<Refused, TargetError>)>>,
    refused: Vec<Refused>,
    /// The number of the call that is being gathered.
    next_call: u64,
    /// Calls whose effect is not known, or not all that was wanted.
    unanswered: BTreeMap<u64, Arc<Batch>>,
    /// The last sessions with parts in several calls, and the numbers of those; of earlier ones all calls are answered.
    long_sessions: Vec<(ClientId, RangeInclusive<u64>)>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(route: Route<'a>, mode: WriteMode) -> Self {
        Self {
            route,
            mode,
            batch: Batch::new(mode),
            group: None,
            in_flight: FuturesUnordered::new(),
            refused: Vec::new(),
            next_call: 0,
            unanswered: BTreeMap::new(),
            long_sessions: Vec::new(),
        }
    }

    /// Begins a session of a slot group; a call carries sessions of one group only.
    pub(super) async fn begin(&mut self, client: &ClientId, group: u16, last: LastPacketId) -> Result<(), CopyError> {
        if self.group != Some(group) || self.batch.is_full() {
            self.dispatch().await?;
            self.group = Some(group);
        }
        self.batch.begin_session(self.route.prefix, client, Some(last));
        Ok(())
    }

    /// Adds a message of the session begun last.
    pub(super) fn push(&mut self, message: &WantedMessage<'_>, encode: impl FnOnce(&mut Vec<u8>)) {
        self.batch.push(message.packet_id, message.score, message.deadline, encode);
    }

    /// Whether the batch must go before another message is added.
    pub(super) fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// Sends the first part of a long session and waits for its reply, so that nothing of the session follows when it
    /// was refused; then makes room for the next part.
    pub(super) async fn next_part(&mut self, client: &ClientId, first: bool) -> Result<(), CopyError> {
        self.dispatch().await?;
        if first {
            self.long_sessions.push((client.clone(), self.next_call - 1..=self.next_call));
            self.settle().await?;
            self.long_sessions.drain(..self.long_sessions.len() - 1);
        } else if let Some((_, calls)) = self.long_sessions.last_mut() {
            *calls = *calls.start()..=self.next_call;
        }
        self.batch.begin_session(self.route.prefix, client, None);
        Ok(())
    }

    /// After an error: sessions that would stay half-written, or half of what they were, when nothing more is sent. Only
    /// such as are ours to remove: in [`WriteMode::Fresh`] those whose first part was taken.
    pub(super) async fn half_written(mut self) -> Vec<ClientId> {
        // What is not answered after a while is waiting for a server that does not take it.
        let _ = tokio::time::timeout(LAST_REPLIES_LIMIT, async {
            while let Some((number, reply)) = self.in_flight.next().await {
                if reply.is_ok_and(|refused| refused.occupied.is_empty()) {
                    self.unanswered.remove(&number);
                }
            }
        })
        .await;
        let is_open = |call: u64| call >= self.next_call || self.unanswered.contains_key(&call);
        let long = self.long_sessions.iter().filter(|(_, calls)| match self.mode {
            WriteMode::Fresh => !is_open(*calls.start()) && calls.clone().any(is_open),
            WriteMode::Replace => calls.clone().any(is_open),
        });
        let mut clients: Vec<ClientId> = long.map(|(client, _)| client.clone()).collect();
        if self.mode == WriteMode::Replace {
            clients.extend(self.unanswered.values().flat_map(|batch| batch.clients().cloned()));
        }
        clients
    }

    /// Drops the part just begun: its session was refused.
    pub(super) fn forget_part(&mut self) {
        self.batch = Batch::new(self.mode);
    }

    /// Makes a session absent that has nothing to hold.
    pub(super) async fn remove(&mut self, client: &ClientId) -> Result<(), CopyError> {
        self.check_lease()?;
        Ok(self.route.link.remove_session(self.route.prefix, client).await?)
    }

    /// Sends what is gathered and waits for every reply.
    pub(super) async fn settle(&mut self) -> Result<(), CopyError> {
        self.dispatch().await?;
        while !self.in_flight.is_empty() {
            self.take_reply().await?;
        }
        Ok(())
    }

    /// Whether a session was refused in a call that was answered.
    pub(super) fn refuses(&self, client: &ClientId) -> bool {
        self.refused.iter().any(|refused| refused.foreign_sessions.iter().any(|(id, _)| id == client))
    }

    /// Counts what was refused as quarantined, and writes it down.
    pub(super) async fn account(&mut self, tally: &mut Tally, quarantine: &mut Quarantine) -> Result<(), CopyError> {
        for refused in self.refused.drain(..) {
            // A call without messages is the whole of a session that has none: its context alone is lost.
            for (client, _) in refused.foreign_sessions.iter().filter(|(_, scores)| scores.is_empty()) {
                tally.invalid_contexts += 1;
                quarantine.add(client, None, QuarantineReason::ForeignType.name()).await?;
            }
            let sessions =
                refused.foreign_sessions.into_iter().flat_map(|(client, scores)| scores.into_iter().map(move |score| (client.clone(), score)));
            for (client, score) in sessions.chain(refused.foreign_messages) {
                tally.refuse_migrated();
                quarantine.add(&client, Some(Score::get(score) - 1), QuarantineReason::ForeignType.name()).await?;
            }
        }
        Ok(())
    }

    async fn dispatch(&mut self) -> Result<(), CopyError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = Arc::new(std::mem::replace(&mut self.batch, Batch::new(self.mode)));
        let number = self.next_call;
        self.next_call += 1;
        self.unanswered.insert(number, Arc::clone(&batch));
        while self.in_flight.len() >= CALLS_IN_FLIGHT {
            self.take_reply().await?;
        }
        self.route.pace.wait(batch.messages(), self.route.stop).await;
        let permit = loop {
            // Own calls hold permits too: their replies must be taken while waiting.
            tokio::select! {
                permit = self.route.in_flight.take(batch.bytes()) => break permit.ok_or(CopyError::LeaseLost)?,
                reply = self.in_flight.next(), if !self.in_flight.is_empty() => self.keep(reply)?,
            }
        };
        self.check_lease()?;
        let link = self.route.link;
        self.in_flight.push(Box::pin(async move {
            let _permit = permit;
            let reply = link.write(&batch).await;
            failpoint::reach("batch_written");
            (number, reply)
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

    fn keep(&mut self, reply: Option<(u64, Result<Refused, TargetError>)>) -> Result<(), CopyError> {
        let Some((number, reply)) = reply else { return Ok(()) };
        let refused = reply?;
        // A call that met somebody else's session stays unanswered: it may be the first of a long session.
        if let Some(client) = refused.occupied.first() {
            return Err(CopyError::Occupied { client: client.clone() });
        }
        self.unanswered.remove(&number);
        if refused != Refused::default() {
            self.refused.push(refused);
        }
        Ok(())
    }

    fn check_lease(&self) -> Result<(), CopyError> {
        match self.route.lease {
            Some(term) if !term.holds() => Err(CopyError::LeaseLost),
            _ => Ok(()),
        }
    }
}
