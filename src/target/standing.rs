//! Which session keys stand in Redis, under whatever prefix: two passes over the keys, within a time limit.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::Cmd;

use super::{Node, Target, TargetError};
use crate::model::{ClientId, KeyKind, prefix_of};

/// Sessions that a scan met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Sessions under the key prefix: as many as there are last packet ids, or sets, whichever is more.
    pub own: u64,
    /// Some of the sessions.
    pub examples: Vec<ClientId>,
    /// The same under other prefixes, by prefix.
    pub others: BTreeMap<String, u64>,
    /// Whether every key was passed; false when the time was over first.
    pub complete: bool,
}

/// A scan of more keys than this takes too long to wait for.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Some 100 µs of the server's time a step.
const KEYS_A_STEP: u32 = 1000;
/// How the key of a last packet id ends, of which every session has one. Nothing of an id is in a pattern.
const LAST_PACKET_IDS: &str = "*}_last_packet_id";
/// The same of a set, for sessions that have messages and no last packet id.
const SETS: &str = "*}_messages";
/// Sessions that are named.
const EXAMPLES: usize = 3;
/// Other prefixes that are told apart.
const PREFIXES: usize = 5;

impl Target {
    /// Passes the keys of all masters, within a time limit.
    ///
    /// # Errors
    /// A failed command.
    pub async fn look_for_sessions(&self, masters: &mut [Node]) -> Result<Standing, TargetError> {
        let mut standing = Standing { complete: true, ..Standing::default() };
        let started = Instant::now();
        for pattern in [LAST_PACKET_IDS, SETS] {
            let mut found = Standing { complete: true, ..Standing::default() };
            for node in &mut *masters {
                self.pass(node, pattern, started, &mut found).await?;
            }
            // Both kinds of one session are one session.
            standing.own = standing.own.max(found.own);
            for example in found.examples {
                if standing.examples.len() < EXAMPLES && !standing.examples.contains(&example) {
                    standing.examples.push(example);
                }
            }
            for (prefix, count) in found.others {
                let known = standing.others.entry(prefix).or_default();
                *known = count.max(*known);
            }
            standing.complete &= found.complete;
        }
        Ok(standing)
    }

    async fn pass(&self, node: &mut Node, pattern: &str, started: Instant, found: &mut Standing) -> Result<(), TargetError> {
        let mut cursor = 0_u64;
        loop {
            self.check_stop()?;
            if started.elapsed() > TIME_LIMIT {
                found.complete = false;
                return Ok(());
            }
            let mut command = Cmd::new();
            command.arg("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(KEYS_A_STEP);
            let (next, keys): (u64, Vec<Vec<u8>>) = node.query("looking for sessions under any prefix", &command).await?;
            for key in &keys {
                self.count(key, found);
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    fn count(&self, key: &[u8], found: &mut Standing) {
        match self.prefix.parse(key) {
            Some((_, KeyKind::Message(_))) => {}
            Some((client, _)) if client.as_str().starts_with("tbmq-migrate:probe:") => {}
            Some((client, _)) => {
                found.own += 1;
                if found.examples.len() < EXAMPLES {
                    found.examples.push(client);
                }
            }
            None => {
                let Some(prefix) = prefix_of(key) else { return };
                if found.others.len() < PREFIXES || found.others.contains_key(prefix.as_str()) {
                    *found.others.entry(prefix.as_str().to_owned()).or_default() += 1;
                }
            }
        }
    }
}
