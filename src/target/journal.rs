//! What each shard itself remembers of a run: one field a finished chunk, with the number of the try that finished it.
//!
//! Redis acknowledges a write before it is on disk or on a replica, so a restart or a failover may take back what was
//! acknowledged. Replication and the append-only file keep the order of writes: where the field of a chunk, written after
//! the chunk's last acknowledgement, is still there, everything of that chunk on that shard is there too. That holds only
//! as long as no write of the chunk was taken back *before* the field was written, so the shard says with it in which
//! history of writes it is: another one than before the first write means that the chunk must be copied again. The number
//! of the try keeps the field of an earlier try, which a later one has begun to overwrite, from speaking for the later one.
//! A chunk whose field is missing on a shard is copied again. Nothing else could tell an emptied Redis from a full one.

use redis::Cmd;

use super::node::Node;
use super::script::{NOTE_CHUNK, ScriptCall};
use super::{Link, TargetError, link};
use crate::model::KeyPrefix;

/// The number of a chunk, and which try of it was finished.
pub type NotedChunk = (i64, i32);

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

    /// In which history of writes each shard is; it ends with a restart or a failover.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn histories(&self, link: &Link) -> Result<Vec<String>, TargetError> {
        self.on_each_shard(link, "asking for the history of a shard", &[]).await
    }

    /// Notes on every shard that a try of a chunk is finished. Only where the histories that come back are those from before
    /// the first write of that try does the note speak for all of it.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn note(&self, link: &Link, chunk: NotedChunk) -> Result<Vec<String>, TargetError> {
        self.on_each_shard(link, "noting a chunk", &[chunk.0, chunk.1.into(), LIFE_SECONDS.into()]).await
    }

    async fn on_each_shard(&self, link: &Link, doing: &'static str, arguments: &[i64]) -> Result<Vec<String>, TargetError> {
        let mut replies = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let mut call = ScriptCall::new(&NOTE_CHUNK);
            call.key(key.as_bytes());
            for argument in arguments {
                call.arg(argument.to_string().into_bytes());
            }
            replies.push(link::reply(doing, link.script(doing, &call).await?)?);
        }
        Ok(replies)
    }

    /// The tries of chunks that every shard remembers, sorted.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn remembered(&self, link: &Link) -> Result<Vec<NotedChunk>, TargetError> {
        let doing = "reading what was noted";
        let mut common: Option<Vec<NotedChunk>> = None;
        for key in &self.keys {
            let mut chunks: Vec<NotedChunk> = link::reply(doing, link.call(doing, Cmd::new().arg("HGETALL").arg(key)).await?)?;
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
