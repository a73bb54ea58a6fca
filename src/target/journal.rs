//! What each shard itself remembers of a run: one field a finished chunk.
//!
//! Redis acknowledges a write before it is on disk or on a replica, so a restart or a failover may take back what was
//! acknowledged. Replication and the append-only file keep the order of writes: where the field of a chunk, written after
//! the chunk's last acknowledgement, is still there, everything of that chunk on that shard is there too. A chunk whose
//! field is missing on a shard is copied again. Nothing else could tell an emptied Redis from a full one.

use redis::Cmd;

use super::node::Node;
use super::{Link, TargetError, link};
use crate::model::KeyPrefix;

/// The journal keys of one run, one a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    keys: Vec<String>,
}

/// A journal that nobody removes, since its run was never finished, does not stay for ever: 30 days.
const LIFE_SECONDS: u32 = 30 * 24 * 3600;
/// Enough tries to meet a slot of any shard that has at least a few slots.
const TAG_TRIES: u32 = 200_000;

impl Journal {
    /// One key in the slots of each master.
    pub(super) fn new(prefix: &KeyPrefix, run: i64, masters: &[Node]) -> Self {
        let key_of = |tag: u32| format!("{}tbmq-migrate:{{{tag}}}:run-{run}", prefix.as_str());
        let key_for = |node: &Node| {
            (0..TAG_TRIES).map(key_of).find(|key| {
                let slot = crate::model::slot_of_key(key.as_bytes());
                node.slots.iter().any(|&(first, last)| (first..=last).contains(&slot))
            })
        };
        // A shard that no tag reaches (the prefix holds a hash tag of its own) has no sessions either.
        Self { keys: masters.iter().filter_map(key_for).collect() }
    }

    /// The keys, for a later run to look at.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// A journal as it was stored.
    pub fn from_keys(keys: Vec<String>) -> Self {
        Self { keys }
    }

    /// Notes a finished chunk on every shard.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn note(&self, link: &Link, chunk: i64) -> Result<(), TargetError> {
        for key in &self.keys {
            link.call("noting a chunk", Cmd::new().arg("HSET").arg(key).arg(chunk).arg(1)).await?;
            link.call("noting a chunk", Cmd::new().arg("EXPIRE").arg(key).arg(LIFE_SECONDS)).await?;
        }
        Ok(())
    }

    /// The chunks that every shard remembers, sorted.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn remembered(&self, link: &Link) -> Result<Vec<i64>, TargetError> {
        let doing = "reading what was noted";
        let mut common: Option<Vec<i64>> = None;
        for key in &self.keys {
            let mut chunks: Vec<i64> = link::reply(doing, link.call(doing, Cmd::new().arg("HKEYS").arg(key)).await?)?;
            chunks.sort_unstable();
            common = Some(match common {
                None => chunks,
                Some(before) => before.into_iter().filter(|chunk| chunks.binary_search(chunk).is_ok()).collect(),
            });
        }
        Ok(common.unwrap_or_default())
    }

    /// Removes the journal of a finished run.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn remove(&self, link: &Link) -> Result<(), TargetError> {
        for key in &self.keys {
            link.call("removing a journal", Cmd::new().arg("DEL").arg(key)).await?;
        }
        Ok(())
    }
}
