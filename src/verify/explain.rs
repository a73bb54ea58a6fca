//! One session in the hands of a person: its rows, its keys, what each row became and why, and the differences.
//!
//! It is read as a comparison reads a session that seems to differ, P1, R1, P2, R2, P3, until it holds still or the time
//! for that is over. What is shown is P2 and R2, so the differences are those of what is shown. Nothing is written.

mod advice;
mod leftover;
mod look;
mod seen;

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use seen::{Explanation, SeenHead, SeenKey, SeenPayload, SeenRow, SeenString, Side, Standing};

use super::balance::Balance;
use super::error::{Problem, VerifyError};
use super::preflight::Answered;
use super::settle::Sides;
use super::tolerance;
use super::walk::Comparer;
use crate::config::{Config, ExplainConfig, Level};
use crate::copy::{CopyError, InFlight, Meter, Pace};
use crate::model::{Applied, ClientId, Differences, Round, Verdict};
use crate::target::{Patience, Target, TargetError, Topology};
use look::{Look, Question, Strays};

/// A person waits for the answer.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);
/// How long a server may stay away.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause of a session that moves; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Explains a session; at most `most_rows` of its rows are listed, the newest ones.
///
/// # Errors
/// [`VerifyError::Refused`] for a side that cannot be asked, [`VerifyError::Stuck`] for one that is lost on the way, and
/// [`VerifyError::Interrupted`].
pub async fn explain(
    config: &Config,
    settings: &ExplainConfig,
    client: &str,
    most_rows: usize,
    stop: CancellationToken,
) -> Result<Explanation, VerifyError> {
    let ended = |problem: Problem, began: bool| match (stop.is_cancelled() && problem.is_the_stop_itself(), began) {
        (true, _) => VerifyError::Interrupted { resumable: false },
        (false, true) => VerifyError::Stuck { problem, resumable: false },
        (false, false) => VerifyError::Refused(problem),
    };
    let prepare = async {
        let answered = Answered::connect(config, Patience::new(PATIENCE, stop.clone())).await?;
        let link = answered.target.brief_link();
        answered.target.may_read(&link).await?;
        Ok::<_, Problem>((answered, link))
    };
    let (answered, link) = prepare.await.map_err(|problem| ended(problem, false))?;
    let Answered { source, connection, tables, target, .. } = answered;
    let comparer = Comparer {
        tables,
        rules: config.target.rules,
        target,
        level: Level::Full,
        tolerance: tolerance(settings.deadline_tolerance, settings.show_payload),
        settle_timeout: SETTLE_LIMIT,
        chunk_time: SETTLE_LIMIT,
        pace: Pace::new(None),
        meter: std::sync::Arc::<Meter>::default(),
        stop: stop.clone(),
        in_flight: InFlight::default(),
        balance: Balance::default(),
    };
    let mut connection = Some(connection);
    let mut sides = Sides { comparer: &comparer, source: &source, connection: &mut connection, link: &link };
    sides.explain(&ClientId::new(client), most_rows).await.map_err(|problem| ended(problem, true))
}

impl Sides<'_> {
    async fn explain(&mut self, client: &ClientId, most_rows: usize) -> Result<Explanation, Problem> {
        let (look, verdict) = self.settle_one(client, most_rows).await?;
        let last_updated = match look.context {
            Some(_) => {
                let tables = &self.comparer.tables;
                tables.last_updated(self.connected().await?, client.as_str()).await?
            }
            None => None,
        };
        let node = serving(&self.comparer.target, client.as_str()).await?;
        let (standing, differences) = match verdict {
            Verdict::Equal => (Standing::Equal, Differences::default()),
            Verdict::Different(differences) => (Standing::Different, differences),
            Verdict::Moving(differences) => (Standing::Moving, differences),
        };
        let mut explanation = Explanation {
            client: client.clone(),
            is_cluster: self.comparer.target.topology() == Topology::Cluster,
            slot: self.comparer.target.prefix.slot(client.as_str()),
            node,
            in_postgresql: look.rows_digest.is_some(),
            in_redis: look.stands_in_redis(),
            context: look.context,
            last_updated,
            wanted_last_packet_id: look.wanted_last_packet_id.map(crate::model::LastPacketId::get),
            head: look.head,
            rows: look.rows,
            references: look.references,
            unexplained: look.unexplained,
            unexplained_keys: look.unexplained_keys,
            tally: look.tally,
            message_limit: self.comparer.rules.message_limit,
            standing,
            findings: differences.findings,
            unlisted_findings: differences.unlisted,
            now: look.now,
            next_steps: Vec::new(),
        };
        explanation.next_steps = advice::next_steps(&explanation);
        Ok(explanation)
    }

    /// Looks until the session holds still; what was seen last.
    async fn settle_one(&mut self, client: &ClientId, most_rows: usize) -> Result<(Look, Verdict), CopyError> {
        let (started, mut pause) = (Instant::now(), FIRST_PAUSE);
        let all = Question { client, most_rows, side: Side::Both, strays: Strays::All };
        loop {
            let first = self.look_closely(&all).await?;
            let writers_had_ended = self.writers_end(started).await?;
            let second = self.look_closely(&Question { strays: Strays::These(&first.strays), ..all }).await?;
            let third = self.look_closely(&Question { side: Side::PostgreSql, most_rows: 0, ..all }).await?;
            let round = Round {
                rows_held_still: first.rows_digest == second.rows_digest && second.rows_digest == third.rows_digest,
                writers_had_ended,
                applied: Applied::NothingFollows,
                first: &first.differences,
                second: &second.differences,
            };
            match round.verdict() {
                Verdict::Moving(_) if started.elapsed() < SETTLE_LIMIT => {}
                verdict => return Ok((second, verdict)),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.comparer.stop.cancelled() => return Err(CopyError::Stopped),
            }
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }
}

/// The server that holds the session, or would; `None` where none can.
async fn serving(target: &Target, client: &str) -> Result<Option<String>, TargetError> {
    let Some(group) = target.group(client) else { return Ok(None) };
    let masters = target.masters().await?;
    // Outside a cluster one server has all slots.
    Ok(masters.into_iter().find(|node| node.slots.iter().any(|(first, last)| (*first..=*last).contains(&group))).map(|node| node.address))
}
