//! What each session would get; nothing is changed.

use std::collections::HashMap;

use serde::Serialize;

use super::sort::{Left, Sort};
use super::{Repair, TOGETHER};
use crate::copy::{Clock, CopyError};
use crate::model::{ClientId, Tally};
use crate::source::Scope;
use crate::verify::Problem;
use crate::verify::walk::{Purpose, Walk};

/// What a repair would do.
#[derive(Debug, Default, Serialize)]
pub struct Plan {
    /// Each session that the report names, in the order of their ids.
    pub sessions: Vec<Planned>,
    /// What to do now.
    pub next_steps: Vec<String>,
}

/// What a repair would do with one session.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// Its exact id.
    pub client_id: String,
    /// The kinds of its findings.
    pub findings: Vec<&'static str>,
    /// What it would get.
    #[serde(flatten)]
    pub fate: Fate,
}

/// What a session would get.
#[derive(Debug, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Fate {
    /// What PostgreSQL has for it.
    Replace {
        /// Messages to write.
        messages_migrated: u64,
        /// Rows whose own interval has passed.
        expired_by_interval: u64,
        /// Rows whose default time has passed.
        expired_by_ttl: u64,
        /// Rows whose packet id a newer row has.
        superseded: u64,
        /// Rows beyond the limit of a session.
        trimmed: u64,
        /// Rows that cannot be carried.
        quarantined: u64,
        /// `None`: it gets none.
        last_packet_id: Option<u16>,
    },
    /// It would go.
    Remove,
    /// It would stay as it is.
    LeaveAlone {
        /// Why.
        reason: Left,
    },
}

impl Fate {
    fn replace(tally: Tally, last_packet_id: Option<u16>) -> Self {
        Self::Replace {
            messages_migrated: tally.messages_migrated,
            expired_by_interval: tally.expired_by_interval,
            expired_by_ttl: tally.expired_by_ttl,
            superseded: tally.superseded,
            trimmed: tally.trimmed,
            quarantined: tally.quarantined,
            last_packet_id,
        }
    }
}

impl Repair {
    /// Looks at each named session.
    pub(super) async fn look(&self) -> Result<Plan, Problem> {
        let mut connection = self.source.connect().await?;
        let link = self.comparer.target.link();
        let clients = self.named.clients();
        let mut plan = Plan::default();
        for some in clients.chunks(TOGETHER) {
            if self.stop.is_cancelled() {
                return Err(CopyError::Stopped.into());
            }
            let sorted = self.sorter(&link).sort(&mut connection, some).await?;
            let known = some.iter().zip(&sorted).filter(|(_, sort)| **sort == Sort::Copy).map(|(id, _)| id.clone()).collect();
            let clock = Clock::new(link.time().await?);
            let scope = Scope { listed: Some(known), ..Scope::everything() };
            let walked = Walk::new(&self.comparer, &link, clock, Purpose::RowsOnly).run(&mut connection, &scope).await?;
            let mut rows: HashMap<ClientId, Fate> = HashMap::new();
            for session in walked.sessions {
                let whole = session.whole();
                rows.insert(session.client.clone(), Fate::replace(whole.tally, whole.last_packet_id.map(crate::model::LastPacketId::get)));
            }
            for (id, sort) in some.iter().zip(sorted) {
                let fate = match sort {
                    // It went from PostgreSQL between the two looks.
                    Sort::Copy => rows.remove(&ClientId::new(id.as_str())).unwrap_or(Fate::LeaveAlone { reason: Left::GoneFromPostgresql }),
                    Sort::Remove => Fate::Remove,
                    Sort::Leave(reason) => Fate::LeaveAlone { reason },
                };
                let findings = self.named.0.get(id).map(|complaint| complaint.kinds.iter().map(|kind| kind.name()).collect());
                plan.sessions.push(Planned { client_id: id.clone(), findings: findings.unwrap_or_default(), fate });
            }
        }
        plan.next_steps = next_steps(&plan.sessions);
        Ok(plan)
    }
}

fn next_steps(sessions: &[Planned]) -> Vec<String> {
    let mut steps = Vec::new();
    if sessions.iter().any(|session| !matches!(session.fate, Fate::LeaveAlone { .. })) {
        steps.push("do it: run again with --execute".to_owned());
    }
    steps.extend(super::advice(sessions.iter().filter_map(|session| match session.fate {
        Fate::LeaveAlone { reason } => Some(reason),
        Fate::Replace { .. } | Fate::Remove => None,
    })));
    steps
}
