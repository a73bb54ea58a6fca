//! The other direction: each key of a session in Redis, looked up in PostgreSQL.
//!
//! A bounded scan of each master; ids are asked for exactly, many at a time. Messages are looked up by the reference to
//! them: one with a reference is compared with its session, one without belongs to nobody.

use std::collections::BTreeMap;

use super::settle::{Settled, Sides, Suspect};
use crate::copy::CopyError;
use crate::model::{ClientId, KeyKind};
use crate::target::FoundKey;

/// Suspects that are settled together.
const SUSPECTS_TOGETHER: usize = 500;

impl Sides<'_> {
    /// Looks at every key of a session.
    pub(super) async fn scan(&mut self) -> Result<Settled, CopyError> {
        let comparer = self.comparer;
        let mut settled = Settled::default();
        let mut suspects: BTreeMap<ClientId, Suspect> = BTreeMap::new();
        for node in &mut comparer.target.masters().await? {
            let mut cursor = 0;
            loop {
                comparer.target.check_stop()?;
                let (found, next) = node.scan(&comparer.target.prefix, cursor).await?;
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
        let target = &self.comparer.target;
        let mut sessions: BTreeMap<ClientId, Vec<u16>> = BTreeMap::new();
        for key in doubtful.into_iter().filter(|key| target.group(key.client.as_str()).is_some()) {
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
