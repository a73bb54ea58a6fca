//! Sessions that PostgreSQL does not know, and the probe that proves the rights of the Redis user.

use redis::Cmd;

use super::batch::{Batch, WriteMode};
use super::{Journal, Link, PartRequest, Reading, ScoreRange, Target, TargetError, link};
use crate::model::{ClientId, KeyKind, KeyPrefix, LastPacketId, Millis, PacketId, SerialNumber};
use crate::observe::failpoint;

impl Link {
    /// Removes a session: its messages, a bounded number a call, its set and its last packet id. Keys of another type
    /// stay.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn remove_session(&self, prefix: &KeyPrefix, client: &ClientId) -> Result<(), TargetError> {
        let (set, last) = (prefix.messages(client.as_str()), prefix.last_packet_id(client.as_str()));
        self.clear(&[(set.as_bytes(), last.as_bytes())]).await
    }

    /// Removes one message string that no session refers to; a key of another type stays. Replies whether it was there.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn remove_string(&self, key: &str) -> Result<bool, TargetError> {
        let doing = "removing a message";
        if self.type_of(key).await? != "string" {
            return Ok(false);
        }
        Ok(link::reply::<u64>(doing, self.call(doing, Cmd::new().arg("DEL").arg(key)).await?)? > 0)
    }

    /// The type of a key as the server names it; `none` where there is none.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn type_of(&self, key: &str) -> Result<String, TargetError> {
        let doing = "asking for a key's type";
        link::reply(doing, self.call(doing, Cmd::new().arg("TYPE").arg(key)).await?)
    }
}

impl Target {
    /// Writes a session and a note of the tool's own and removes them again, so that a missing right shows before any real
    /// one.
    ///
    /// # Errors
    /// What the copy itself would meet.
    pub async fn probe(&self, link: &Link, now: Millis) -> Result<(), TargetError> {
        let name = format!("{PROBE}{}:{}", std::process::id(), now.0);
        let note = Journal::from_keys(vec![format!("{}{name}", self.prefix.as_str())]);
        let client = ClientId::new(name);
        let probed = self.try_all(link, &client, &note, now).await;
        if probed.is_err() {
            // Whatever it was that the user may not do: nothing of the probe stays, as far as that can be had.
            for kind in [KeyKind::Messages, KeyKind::LastPacketId, KeyKind::Message(1)] {
                if let Err(error) = link.call("removing a probe", Cmd::new().arg("DEL").arg(self.key(&client, kind))).await {
                    tracing::debug!(%error, "a probe is left");
                }
            }
            if let Err(error) = note.remove(link).await {
                tracing::debug!(%error, "a note of a probe is left");
            }
        }
        probed
    }

    async fn try_all(&self, link: &Link, client: &ClientId, note: &Journal, now: Millis) -> Result<(), TargetError> {
        let mut batch = Batch::new(WriteMode::Replace);
        batch.begin_session(&self.prefix, client, LastPacketId::from_column(1));
        if let (Some(packet_id), Some(serial)) = (PacketId::from_column(1), SerialNumber::from_column(0)) {
            batch.push(packet_id, serial.score(), Millis(now.0 + PROBE_LIFE_MS), |out| out.extend_from_slice(b"{}"));
        }
        link.write(&batch).await?;
        failpoint::reach("probe_written");
        link.remove_session(&self.prefix, client).await?;
        note.note(link, (0, 0)).await?;
        note.remembered(link).await?;
        note.remove(link).await
    }

    /// Tries what a comparison does, so that a missing right shows before the first session.
    ///
    /// # Errors
    /// What the comparison itself would meet.
    pub async fn may_read(&self, link: &Link) -> Result<(), TargetError> {
        let mut reading = Reading::default();
        let request = PartRequest { client: PROBE, range: ScoreRange::default(), head: true, values: true };
        reading.add(&self.prefix, &request, std::iter::once(1));
        link.read(&reading).await?;
        link.references(&self.prefix, PROBE, ScoreRange::default(), 0).await?;
        link.time().await?;
        for node in &mut self.masters().await? {
            node.scan(&self.prefix, 0).await?;
        }
        Ok(())
    }

    /// The first keys of sessions that stand under the prefix, at most `most`; each node is looked through to its end when
    /// there are none. A probe whose process died is no session: it is removed, by `link` where one may write.
    ///
    /// # Errors
    /// A failed command.
    pub async fn standing_sessions(&self, link: Option<&Link>, most: usize) -> Result<Vec<ClientId>, TargetError> {
        let mut standing: Vec<ClientId> = Vec::new();
        for node in &mut self.masters().await? {
            let mut cursor = 0;
            loop {
                self.check_stop()?;
                let (found, next) = node.scan(&self.prefix, cursor).await?;
                for key in found {
                    if key.client.as_str().starts_with(PROBE) {
                        if let Some(link) = link {
                            link.remove_session(&self.prefix, &key.client).await?;
                        }
                        continue;
                    }
                    if !standing.contains(&key.client) {
                        standing.push(key.client);
                    }
                    if standing.len() >= most {
                        return Ok(standing);
                    }
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(standing)
    }

    /// The full key of a found one.
    pub fn key(&self, client: &ClientId, kind: KeyKind) -> String {
        match kind {
            KeyKind::Messages => self.prefix.messages(client.as_str()),
            KeyKind::LastPacketId => self.prefix.last_packet_id(client.as_str()),
            KeyKind::Message(number) => KeyPrefix::message(&self.prefix.messages(client.as_str()), number),
        }
    }
}

/// How the ids of probes begin.
const PROBE: &str = "tbmq-migrate:probe:";
/// The probe's message is gone by itself should the process die between the two calls.
const PROBE_LIFE_MS: i64 = 60_000;
