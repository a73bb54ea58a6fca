//! Sessions in Redis that PostgreSQL does not know, behind a guard: an empty or wrong source must not wipe a Redis.
//!
//! The keys are found by a bounded scan; each id is asked for in PostgreSQL, and asked for again right before its keys
//! go. Only keys of the three kinds and of the right type, under exactly this prefix, are ever removed.

use std::collections::{BTreeMap, HashSet};

use sqlx::PgConnection;

use super::error::Problem;
use crate::control::Term;
use crate::copy::CopyError;
use crate::model::{ClientId, KeyKind};
use crate::source::Tables;
use crate::target::{FoundKey, Link, Target};

/// Without `--allow-removals`, at most one session in twenty may be removed: 5 %.
const FREE_SHARE: u64 = 20;

/// Why sessions are not removed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GuardError {
    /// PostgreSQL has no session at all.
    #[error("both tables are empty, and {removals} of {total} sessions in Redis would be removed")]
    EmptySource {
        /// Sessions that would go.
        removals: u64,
        /// Sessions in Redis.
        total: u64,
    },
    /// More than the share that needs no word.
    #[error("{removals} of {total} sessions in Redis are not in PostgreSQL and would be removed, more than 5 %")]
    TooMany {
        /// Sessions that would go.
        removals: u64,
        /// Sessions in Redis.
        total: u64,
    },
    /// More than was allowed.
    #[error("{removals} of {total} sessions in Redis are not in PostgreSQL and would be removed, more than the {allowed} allowed")]
    MoreThanAllowed {
        /// Sessions that would go.
        removals: u64,
        /// Sessions in Redis.
        total: u64,
        /// As given.
        allowed: u64,
    },
}

impl GuardError {
    /// What a person can do.
    pub fn hint(&self) -> String {
        let (Self::EmptySource { removals, .. } | Self::TooMany { removals, .. } | Self::MoreThanAllowed { removals, .. }) = self;
        format!("check --postgres-url, --redis-url and --key-prefix; if the sessions really are to go: --allow-removals {removals}")
    }
}

/// What a look at Redis found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Sessions in Redis, those counted that have a set or a last packet id.
    pub total: u64,
    /// Of them, those that PostgreSQL does not know.
    pub unknown: u64,
}

impl Census {
    /// Whether the unknown ones may be removed.
    ///
    /// # Errors
    /// The reason why not.
    pub fn guard(&self, source_is_empty: bool, allowed: Option<u64>) -> Result<(), GuardError> {
        let (removals, total) = (self.unknown, self.total);
        match allowed {
            _ if removals == 0 => Ok(()),
            Some(allowed) if removals <= allowed => Ok(()),
            Some(allowed) => Err(GuardError::MoreThanAllowed { removals, total, allowed }),
            None if source_is_empty => Err(GuardError::EmptySource { removals, total }),
            None if removals.saturating_mul(FREE_SHARE) > total => Err(GuardError::TooMany { removals, total }),
            None => Ok(()),
        }
    }
}

/// The two sides of a removal.
pub(super) struct Removal<'a> {
    pub target: &'a Target,
    pub link: &'a Link,
    pub tables: &'a Tables,
    /// Only these sessions, instead of all.
    pub listed: Option<&'a [String]>,
    /// The right to write, where it is leased.
    pub lease: Option<Term<'a>>,
}

/// What may be removed, and what was.
pub(super) struct Allowance<'r> {
    /// The most sessions that may go.
    pub most: u64,
    /// Those that went.
    pub removed: &'r mut u64,
}

impl Removal<'_> {
    /// Counts, and changes nothing.
    pub(super) async fn census(&self, connection: &mut PgConnection) -> Result<Census, Problem> {
        self.pass(connection, None).await
    }

    /// Removes what PostgreSQL does not know, as far as it may.
    ///
    /// # Errors
    /// [`GuardError::MoreThanAllowed`] when more sessions turn out to be unknown than were counted: the tables may have
    /// been emptied meanwhile.
    pub(super) async fn remove(&self, connection: &mut PgConnection, allowance: Allowance<'_>) -> Result<(), Problem> {
        self.pass(connection, Some(allowance)).await.map(drop)
    }

    async fn pass(&self, connection: &mut PgConnection, mut allowance: Option<Allowance<'_>>) -> Result<Census, Problem> {
        let mut census = Census::default();
        if let Some(listed) = self.listed {
            for part in listed.chunks(500) {
                let keys = part.iter().map(|id| FoundKey { client: ClientId::new(id.as_str()), kind: KeyKind::LastPacketId }).collect();
                self.step(connection, keys, allowance.as_mut(), &mut census).await?;
            }
            return Ok(census);
        }
        for node in &mut self.target.masters().await? {
            let mut cursor = 0;
            loop {
                let (keys, next) = node.scan(&self.target.prefix, cursor).await?;
                self.step(connection, keys, allowance.as_mut(), &mut census).await?;
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(census)
    }

    /// Judges the keys of one step of the scan, session by session.
    async fn step(
        &self,
        connection: &mut PgConnection,
        keys: Vec<FoundKey>,
        mut allowance: Option<&mut Allowance<'_>>,
        census: &mut Census,
    ) -> Result<(), Problem> {
        self.target.check_stop()?;
        if self.lease.is_some_and(|term| !term.holds()) {
            return Err(Problem::Copy(CopyError::LeaseLost));
        }
        let mut sessions: BTreeMap<ClientId, Vec<KeyKind>> = BTreeMap::new();
        for key in keys {
            sessions.entry(key.client).or_default().push(key.kind);
        }
        if sessions.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = sessions.keys().map(ClientId::as_str).collect();
        let unknown: HashSet<String> = self.tables.unknown_of(connection, &ids).await?.into_iter().collect();
        for (client, kinds) in sessions {
            if unknown.contains(client.as_str()) {
                if let Some(Allowance { most, removed }) = allowance.as_deref()
                    && **removed >= *most
                {
                    return Err(GuardError::MoreThanAllowed { removals: **removed + 1, total: census.total, allowed: *most }.into());
                }
                let counts = self.unknown(&client, &kinds, allowance.is_some()).await?;
                census.total += u64::from(counts);
                census.unknown += u64::from(counts);
                if let Some(allowance) = allowance.as_deref_mut() {
                    *allowance.removed += u64::from(counts);
                }
            } else if allowance.is_none() {
                census.total += u64::from(self.counts_here(&client, &kinds).await?);
            }
        }
        Ok(())
    }

    /// Whether an unknown session counts in this step; where sessions are removed, it counts when it goes.
    async fn unknown(&self, client: &ClientId, kinds: &[KeyKind], removes: bool) -> Result<bool, Problem> {
        if self.target.group(client.as_str()).is_none() {
            // No call can reach all its keys, and no broker made them.
            return Ok(false);
        }
        let types = [self.type_of(client, KeyKind::Messages).await?, self.type_of(client, KeyKind::LastPacketId).await?];
        match types.each_ref().map(String::as_str) {
            ["none", "none"] => self.strays(client, kinds, removes).await,
            ["none" | "zset", "none" | "string"] if removes => {
                self.link.remove_session(&self.target.prefix, client).await?;
                Ok(true)
            }
            ["none" | "zset", "none" | "string"] => self.counts_here(client, kinds).await,
            // A key of another type is somebody else's, and keeps the session from being removed.
            _ => Ok(false),
        }
    }

    /// Message strings of a session that has nothing else: what refers to none of them cannot take them along.
    async fn strays(&self, client: &ClientId, kinds: &[KeyKind], removes: bool) -> Result<bool, Problem> {
        let mut any = false;
        for &kind in kinds.iter().filter(|kind| matches!(kind, KeyKind::Message(_))) {
            any |= match removes {
                true => self.link.remove_string(&self.target.key(client, kind)).await?,
                false => self.type_of(client, kind).await? == "string",
            };
        }
        Ok(any)
    }

    /// Each session counts in one step of the scan: that of its last packet id, or that of its set when it has none.
    async fn counts_here(&self, client: &ClientId, kinds: &[KeyKind]) -> Result<bool, Problem> {
        if self.listed.is_some() {
            // There is one step for it, which was not told what stands there.
            return Ok(self.type_of(client, KeyKind::LastPacketId).await? != "none" || self.type_of(client, KeyKind::Messages).await? != "none");
        }
        Ok(kinds.contains(&KeyKind::LastPacketId)
            || kinds.contains(&KeyKind::Messages) && self.type_of(client, KeyKind::LastPacketId).await? == "none")
    }

    async fn type_of(&self, client: &ClientId, kind: KeyKind) -> Result<String, Problem> {
        Ok(self.link.type_of(&self.target.key(client, kind)).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(unknown: u64, total: u64, empty: bool, allowed: Option<u64>) -> Result<(), GuardError> {
        Census { total, unknown }.guard(empty, allowed)
    }

    #[test]
    fn five_percent_may_go_without_a_word_and_one_more_may_not() {
        assert_eq!(guard(5, 100, false, None), Ok(()));
        assert_eq!(guard(6, 100, false, None), Err(GuardError::TooMany { removals: 6, total: 100 }));
        assert_eq!(guard(0, 0, true, None), Ok(()));
    }

    #[test]
    fn an_empty_source_removes_nothing_by_itself() {
        assert_eq!(guard(1, 100, true, None), Err(GuardError::EmptySource { removals: 1, total: 100 }));
        assert_eq!(guard(1, 100, true, Some(1)), Ok(()));
    }

    #[test]
    fn what_is_allowed_is_a_limit_too() {
        assert_eq!(guard(7, 10, false, Some(7)), Ok(()));
        assert_eq!(guard(3, 100, false, Some(2)), Err(GuardError::MoreThanAllowed { removals: 3, total: 100, allowed: 2 }));
        assert_eq!(guard(1, 100, false, Some(0)), Err(GuardError::MoreThanAllowed { removals: 1, total: 100, allowed: 0 }));
    }
}
