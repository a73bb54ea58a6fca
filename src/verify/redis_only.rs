//! The sessions of Redis by themselves, for those who run 2.x already.
//!
//! A scan of all masters; each session is looked at once, where its last packet id is met, or its set when it has none, and
//! each message that nothing refers to. A broker may go on writing: what seems wrong is looked at again, and counts when it stands in two looks
//! between which the session's references and its last packet id did not move.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::error::{Problem, VerifyError};
use super::report::{Circumstances, Report};
use crate::config::{TargetConfig, VerifyConfig};
use crate::control::{FindingCounts, append_findings};
use crate::copy::{Clock, Meter, Pace};
use crate::model::{
    Applied, ClientId, Compared, Consequence, Differences, FoundString, KeyKind, KeyPrefix, Millis, QueueCheck, Round, Rules, Verdict,
};
use crate::target::{FoundKey, Link, PartRequest, Patience, Reading, ScoreRange, Target};

/// A look at Redis in the hands of this process.
pub struct RedisOnly {
    target: Target,
    rules: Rules,
    config: VerifyConfig,
    stop: CancellationToken,
    pace: Pace,
    started: Instant,
    /// Live counts.
    pub meter: Arc<Meter>,
}

/// One look at a session.
struct Look {
    /// A digest of its references and its last packet id.
    state: u64,
    differences: Differences,
    messages: u64,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    compared: Compared,
    counts: FindingCounts,
    list: Option<File>,
}

/// Sessions that are looked at side by side, for each job: a look is a few round trips.
const SESSIONS_A_JOB: usize = 8;
/// Messages whose sizes, and then values, are asked for in one go.
const MESSAGES_A_CALL: usize = 100;
/// Values that one go may bring; a larger message comes alone.
const BYTES_A_CALL: u64 = 1024 * 1024;
/// Between two looks at a session that moves.
const PAUSE: Duration = Duration::from_millis(5);
/// After a lost connection.
const AGAIN: Duration = Duration::from_millis(500);

impl RedisOnly {
    /// Looks at the servers.
    ///
    /// # Errors
    /// [`VerifyError::Refused`] with what is in the way.
    pub async fn prepare(config: &TargetConfig, settings: &VerifyConfig, stop: CancellationToken) -> Result<Self, VerifyError> {
        let started = Instant::now();
        let patience = Arc::new(Patience::new(settings.retry_timeout, stop.clone()));
        let open = async {
            let target = Target::open_to_read(&config.redis, KeyPrefix::new(config.key_prefix.as_str()), patience).await?;
            target.may_read(&target.brief_link()).await?;
            tracing::info!(target = target.identity(), "Redis answers");
            Ok(target)
        };
        let target = open.await.map_err(|error| VerifyError::Refused(Problem::Target(error)))?;
        let pace = Pace::new(settings.max_rate);
        Ok(Self { target, rules: config.rules, config: settings.clone(), stop, pace, started, meter: Arc::default() })
    }

    /// Looks at every session.
    ///
    /// # Errors
    /// [`VerifyError::Stuck`] or [`VerifyError::Interrupted`].
    pub async fn run(self) -> Result<Report, VerifyError> {
        let mut failing_since: Option<Instant> = None;
        loop {
            match self.pass().await {
                Ok(found) => return Ok(self.report(&found)),
                Err(_) if self.stop.is_cancelled() => return Err(VerifyError::Interrupted { resumable: false }),
                Err(problem) => {
                    let may_pass = matches!(&problem, Problem::Target(error) if error.consequence() == Consequence::Retry);
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if !may_pass || since.elapsed() >= self.config.retry_timeout {
                        return Err(VerifyError::Stuck { problem, resumable: false });
                    }
                    tracing::warn!(waiting_seconds = since.elapsed().as_secs(), %problem, "it begins again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn pass(&self) -> Result<Found, Problem> {
        let problem = |path: &std::path::PathBuf| {
            let path = path.display().to_string();
            move |source| Problem::File { path, source }
        };
        let list = self.config.report.as_ref().map(|path| File::create(path).map_err(problem(path))).transpose()?;
        let mut found = Found { list, ..Found::default() };
        let link = self.target.link();
        for node in &mut self.target.masters().await? {
            let mut cursor = 0;
            loop {
                self.target.check_stop()?;
                let (keys, next) = node.scan(&self.target.prefix, cursor).await?;
                let doubtful = node.doubtful(&self.target.prefix, keys).await?;
                self.step(&link, doubtful, &mut found).await?;
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Looks at the sessions of one step of the scan.
    async fn step(&self, link: &Link, keys: Vec<FoundKey>, found: &mut Found) -> Result<(), Problem> {
        let mut sessions: BTreeMap<ClientId, (bool, Vec<u16>)> = BTreeMap::new();
        // A session that no call can reach was made by no broker.
        for key in keys.into_iter().filter(|key| self.target.group(key.client.as_str()).is_some()) {
            let (whole, strays) = sessions.entry(key.client).or_default();
            match key.kind {
                KeyKind::Message(packet_id) => strays.push(packet_id),
                KeyKind::Messages | KeyKind::LastPacketId => *whole = true,
            }
        }
        let looks = stream::iter(sessions).map(|(client, (whole, strays))| async move {
            let settled = self.settle(link, &client, whole, &strays).await?;
            Ok::<_, Problem>((whole, settled))
        });
        let mut looks = looks.buffer_unordered(self.config.jobs * SESSIONS_A_JOB);
        while let Some((whole, (verdict, messages))) = looks.try_next().await? {
            self.meter.add_session();
            self.meter.add_rows(messages);
            found.add(whole, verdict, messages)?;
        }
        Ok(())
    }

    /// Looks at one session until it holds still.
    async fn settle(&self, link: &Link, client: &ClientId, whole: bool, strays: &[u16]) -> Result<(Verdict, u64), Problem> {
        let mut before = self.look(link, client, whole, strays).await?;
        if before.differences.is_none() {
            return Ok((Verdict::Equal, before.messages));
        }
        let since = Instant::now();
        loop {
            let second = self.look(link, client, whole, strays).await?;
            let third = self.look(link, client, whole, strays).await?;
            let round = Round {
                rows_held_still: before.state == second.state && second.state == third.state,
                writers_had_ended: true,
                applied: Applied::NothingFollows,
                first: &before.differences,
                second: &second.differences,
            };
            match round.verdict() {
                Verdict::Moving(_) if since.elapsed() < self.config.compare.settle_timeout => {
                    self.target.check_stop()?;
                    tokio::time::sleep(PAUSE).await;
                    before = third;
                }
                verdict => return Ok((verdict, second.messages)),
            }
        }
    }

    async fn look(&self, link: &Link, client: &ClientId, whole: bool, strays: &[u16]) -> Result<Look, Problem> {
        let clock = Clock::new(link.time().await?);
        let tolerance_ms = i64::try_from(self.config.compare.deadline_tolerance.as_millis()).unwrap_or(i64::MAX);
        let mut check = QueueCheck::new(client.clone(), &self.rules, tolerance_ms);
        let mut state = DefaultHasher::new();
        if whole {
            self.references(link, client, &mut check, &mut state, clock).await?;
        }
        for some in strays.chunks(MESSAGES_A_CALL) {
            let mut reading = Reading::default();
            let request = PartRequest { client: client.as_str(), range: ScoreRange::default(), head: false, values: false };
            reading.add(&self.target.prefix, &request, some.iter().copied());
            for part in link.read(&reading).await? {
                let unreferenced = part.messages().zip(some).filter(|(message, _)| message.string != FoundString::Missing && message.score.is_none());
                unreferenced.for_each(|(_, packet_id)| check.orphan(*packet_id));
            }
        }
        let (differences, messages) = check.finish();
        Ok(Look { state: state.finish(), differences, messages })
    }

    /// Passes all references of a session, newest first, and then its last packet id.
    async fn references(
        &self,
        link: &Link,
        client: &ClientId,
        check: &mut QueueCheck,
        state: &mut DefaultHasher,
        clock: Clock,
    ) -> Result<(), Problem> {
        let prefix = &self.target.prefix;
        let mut reading = Reading::default();
        let request = PartRequest { client: client.as_str(), range: ScoreRange::default(), head: true, values: false };
        reading.add(prefix, &request, std::iter::empty());
        let parts = link.read(&reading).await?;
        let mut skip = 0;
        while parts.first().is_some_and(|part| part.references.is_ok()) {
            let page = link.references(prefix, client.as_str(), ScoreRange::default(), skip).await?;
            if page.is_empty() {
                break;
            }
            skip += page.len();
            let mut messages = Vec::new();
            for (member, score) in page {
                member.hash(state);
                score.to_bits().hash(state);
                match prefix.parse(&member) {
                    Some((id, KeyKind::Message(packet_id))) if id == *client => messages.push((packet_id, score)),
                    _ => check.strange_reference(&member, score),
                }
            }
            for some in messages.chunks(MESSAGES_A_CALL) {
                self.pace.wait(some.len(), &self.stop).await;
                self.messages(link, client, some, check, clock.now()).await?;
            }
        }
        for part in &parts {
            let head = part.head();
            if let FoundString::Text(last) = head.last_packet_id {
                last.hash(state);
            }
            check.head(&head);
        }
        Ok(())
    }

    /// Reads messages in their order, as many at a time as their sizes allow.
    async fn messages(&self, link: &Link, client: &ClientId, messages: &[(u16, f64)], check: &mut QueueCheck, now: Millis) -> Result<(), Problem> {
        let sizes = link.sizes(&self.target.prefix, client.as_str(), messages.iter().map(|(packet_id, _)| *packet_id)).await?;
        let mut from = 0;
        while from < messages.len() {
            let mut bytes = 0;
            let fits = sizes[from..].iter().take_while(|&&size| {
                bytes += size;
                bytes <= BYTES_A_CALL
            });
            let to = from + fits.count().max(1);
            let mut reading = Reading::default();
            let request = PartRequest { client: client.as_str(), range: ScoreRange::default(), head: false, values: true };
            reading.add(&self.target.prefix, &request, messages[from..to].iter().map(|(packet_id, _)| *packet_id));
            for part in link.read(&reading).await? {
                for (message, &(packet_id, score)) in part.messages().zip(&messages[from..to]) {
                    check.reference(packet_id, score, &message, now);
                }
            }
            from = to;
        }
        Ok(())
    }

    fn report(&self, found: &Found) -> Report {
        let circumstances = Circumstances {
            level: "redis_only",
            sample: None,
            run: None,
            begun_at: None,
            report_file: self.config.report.as_ref().map(|path| path.display().to_string()),
            elapsed: self.started.elapsed(),
            messages: found.compared.messages,
        };
        Report::new(None, &found.compared, &found.counts, circumstances)
    }
}

impl Found {
    fn add(&mut self, whole: bool, verdict: Verdict, messages: u64) -> Result<(), Problem> {
        let differences = match verdict {
            Verdict::Moving(standing) if standing.is_none() => {
                self.compared.sessions += u64::from(whole);
                self.compared.not_checked += 1;
                return Ok(());
            }
            Verdict::Equal => Differences::default(),
            Verdict::Different(standing) | Verdict::Moving(standing) => standing,
        };
        self.compared.sessions += u64::from(whole);
        self.compared.messages += messages;
        self.compared.differing_sessions += u64::from(!differences.is_none());
        self.compared.unlisted_findings += differences.unlisted;
        differences.findings.iter().for_each(|finding| *self.counts.entry(finding.kind).or_default() += 1);
        if let Some(list) = &mut self.list {
            append_findings(list, &differences.findings)?;
        }
        Ok(())
    }
}
