//! The other direction: each key of a session in Redis, looked up in PostgreSQL.
//!
//! A bounded scan of each master beside the comparison of the rows: what both have met is accounted for by a balance
//! ([`super::balance`]). What that leaves is looked up by a second scan: ids are asked for exactly, many at a time; messages by the reference to them,
//! since one with a reference is compared with its session, and one without belongs to nobody.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::settle::{Settled, Sides, Suspect};
use super::walk::Comparer;
use crate::config::Level;
use crate::copy::CopyError;
use crate::model::{ClientId, KeyKind};
use crate::target::{FoundKey, TargetError};

/// Suspects that are settled together.
const SUSPECTS_TOGETHER: usize = 500;

impl Sides<'_> {
    /// Looks at every key of a session, unless all that `met` has counted is explained. The rows were all compared before.
    pub(super) async fn scan(&mut self, met: &mut watch::Receiver<Met>) -> Result<Settled, CopyError> {
        let met = tokio::select! {
            met = met.wait_for(|met| *met != Met::Counting) => met.map_or(Met::Failed, |met| *met),
            () = self.comparer.stop.cancelled() => return Err(CopyError::Stopped),
        };
        match met {
            Met::All if self.comparer.balance.is_all_even() => Ok(Settled::default()),
            Met::All | Met::Failed | Met::Counting => self.scan_for_good().await,
        }
    }

    /// Looks up whatever the comparison has not explained.
    async fn scan_for_good(&mut self) -> Result<Settled, CopyError> {
        let comparer = self.comparer;
        let mut settled = Settled::default();
        let mut suspects: BTreeMap<ClientId, Suspect> = BTreeMap::new();
        for node in &mut comparer.target.masters().await? {
            let mut cursor = 0;
            loop {
                comparer.target.check_stop()?;
                let (mut found, next) = node.scan(&comparer.target.prefix, cursor).await?;
                found.retain(|key| comparer.concerns(key) && !comparer.balance.is_even(&key.client));
                comparer.pace.wait(found.len(), &comparer.stop).await;
                let doubtful = node.doubtful(&comparer.target.prefix, found).await?;
                self.look_up(doubtful, &mut suspects).await?;
                if suspects.len() >= SUSPECTS_TOGETHER {
                    settled.merge(self.settle(std::mem::take(&mut suspects).into_values().collect()).await?);
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        settled.merge(self.settle(suspects.into_values().collect()).await?);
        Ok(settled)
    }

    /// Adds the sessions that PostgreSQL does not know, and those that have messages without a reference.
    async fn look_up(&mut self, doubtful: Vec<FoundKey>, suspects: &mut BTreeMap<ClientId, Suspect>) -> Result<(), CopyError> {
        let mut sessions: BTreeMap<ClientId, Vec<u16>> = BTreeMap::new();
        for key in doubtful {
            let strays = sessions.entry(key.client).or_default();
            if let KeyKind::Message(packet_id) = key.kind {
                strays.push(packet_id);
            }
        }
        if sessions.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = sessions.keys().map(ClientId::as_str).collect();
        let unknown = self.comparer.tables.unknown_of(self.connected().await?, &ids).await?;
        let with_strays: Vec<&str> = sessions.iter().filter(|(_, strays)| !strays.is_empty()).map(|(client, _)| client.as_str()).collect();
        let sampled = match with_strays.is_empty() {
            true => Vec::new(),
            false => self.comparer.tables.in_sample(self.connected().await?, &with_strays).await?,
        };
        let unknown: std::collections::HashSet<String> = unknown.into_iter().collect();
        let sampled: std::collections::HashSet<String> = sampled.into_iter().collect();
        for (client, strays) in sessions {
            let is_unknown = unknown.contains(client.as_str());
            if is_unknown || (!strays.is_empty() && sampled.contains(client.as_str())) {
                let suspect = suspects.entry(client.clone()).or_insert_with(|| Suspect { strays_only: true, ..Suspect::new(client, 0) });
                suspect.strays.extend(strays);
                suspect.strays_only &= !is_unknown;
            }
        }
        Ok(())
    }
}

/// How far the count of all keys is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// Under way, beside the comparison of the rows.
    Counting,
    /// Every key was counted.
    All,
    /// It was given up: then every key is looked up.
    Failed,
}

impl Comparer {
    /// Counts every key of a session into the balance, beside the comparison of the rows.
    pub(super) async fn count_keys(&self) -> Met {
        match self.try_to_count_keys().await {
            Ok(()) => Met::All,
            Err(error) => {
                tracing::debug!(%error, "the keys were not counted: each is looked up");
                Met::Failed
            }
        }
    }

    async fn try_to_count_keys(&self) -> Result<(), TargetError> {
        for node in &mut self.target.masters().await? {
            let mut cursor = 0;
            loop {
                self.target.check_stop()?;
                let (found, next) = node.scan(&self.target.prefix, cursor).await?;
                self.pace.wait(found.len(), &self.stop).await;
                found.iter().filter(|key| self.concerns(key)).for_each(|key| self.balance.met(&key.client, key.kind));
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a key is one to account for: a session that no call can reach was made by no broker, and where messages are
    /// only counted none of them was read.
    fn concerns(&self, key: &FoundKey) -> bool {
        let is_read = self.level == Level::Full || !matches!(key.kind, KeyKind::Message(_));
        is_read && self.target.group(key.client.as_str()).is_some()
    }
}
