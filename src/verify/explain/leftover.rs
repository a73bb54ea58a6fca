//! What Redis has for a session, and no row explains: references, and messages that not even a reference leads to.

use std::collections::HashSet;

use super::look::{Gathering, Strays};
use super::seen::SeenKey;
use crate::copy::CopyError;
use crate::model::{Comparison, KeyKind};
use crate::target::{FoundPart, PartRequest, Reading, ScoreRange};
use crate::verify::part::{Present, present};

/// Packet ids that are probed in one call: half a millisecond of the server's time.
const PROBES_A_CALL: usize = 500;

impl Gathering<'_> {
    /// Lists the references that no row explains; the packet ids of them.
    pub(super) async fn unexplained_references(&mut self) -> Result<HashSet<u16>, CopyError> {
        let mut referenced = HashSet::new();
        let prefix = &self.comparer.target.prefix;
        if self.look.references.is_none() || self.look.head.set_of_other_type.is_some() {
            return Ok(referenced);
        }
        let mut skip = 0;
        loop {
            let page = self.link.references(prefix, self.client(), ScoreRange::default(), skip).await?;
            if page.is_empty() {
                return Ok(referenced);
            }
            skip += page.len();
            for (member, score) in page {
                match prefix.parse(&member) {
                    Some((id, KeyKind::Message(packet_id))) if id.as_str() == self.client() => {
                        if !self.explains(packet_id) {
                            referenced.insert(packet_id);
                            self.list(packet_id).await?;
                        }
                    }
                    _ => {
                        self.look.unexplained += 1;
                        if self.look.unexplained_keys.len() < self.question.most_rows {
                            self.look.unexplained_keys.push(SeenKey::strange(&member, score));
                        }
                    }
                }
            }
        }
    }

    fn explains(&self, packet_id: u16) -> bool {
        self.session.whole().explains(packet_id)
    }

    /// Counts a key that no row explains, and reads it where it is listed: one a call, since its size is not known.
    async fn list(&mut self, packet_id: u16) -> Result<(), CopyError> {
        self.look.unexplained += 1;
        if self.look.unexplained_keys.len() >= self.question.most_rows {
            return Ok(());
        }
        let mut reading = Reading::default();
        let request = PartRequest { client: self.client(), range: ScoreRange::default(), head: false, values: true };
        reading.add(&self.comparer.target.prefix, &request, std::iter::once(packet_id));
        let parts = self.link.read(&reading).await?;
        let messages = parts.iter().flat_map(FoundPart::messages);
        self.look.unexplained_keys.extend(messages.map(|message| SeenKey::new(packet_id, &message, self.comparer.tolerance.show_payload)));
        Ok(())
    }

    /// Looks for messages that neither a reference nor a row leads to.
    pub(super) async fn strays(&mut self, referenced: &HashSet<u16>, mut comparison: Option<&mut Comparison>) -> Result<(), CopyError> {
        let all: Vec<u16> = match self.question.strays {
            Strays::All => (1..=u16::MAX).collect(),
            Strays::These(some) => some.to_vec(),
        };
        let asked: Vec<u16> = all.into_iter().filter(|packet_id| !referenced.contains(packet_id) && !self.explains(*packet_id)).collect();
        for some in asked.chunks(PROBES_A_CALL) {
            self.comparer.target.check_stop()?;
            for (found, &packet_id) in present(self.comparer, self.link, self.client(), some.iter().copied()).await?.iter().zip(some) {
                match (found, &mut comparison) {
                    (Present::Not | Present::Message { is_referenced: true }, _) => continue,
                    (Present::Message { is_referenced: false }, Some(comparison)) => comparison.extra(packet_id, None),
                    (Present::Other(name), Some(comparison)) => comparison.foreign_message(packet_id, name),
                    (Present::Message { .. } | Present::Other(_), None) => {}
                }
                self.look.strays.push(packet_id);
                self.list(packet_id).await?;
            }
        }
        Ok(())
    }
}
