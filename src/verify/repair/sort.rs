//! What is to be done with each named session, from what both sides say at this moment.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::Named;
use crate::copy::CopyError;
use crate::model::{ClientId, FindingKind, KeyKind};
use crate::source::Tables;
use crate::target::{Link, Target};

/// What is to be done with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// PostgreSQL knows it: it becomes what PostgreSQL says.
    Copy,
    /// PostgreSQL does not know it, and it may go.
    Remove,
    /// It stays as it is.
    Leave(Left),
}

/// Why a session stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// PostgreSQL does not know it, and nobody said that it may go.
    NeedsDeleteExtra,
    /// PostgreSQL knew it when the report was made, and does not now.
    GoneFromPostgresql,
    /// A key of it holds another type, and so is somebody else's.
    OtherType,
}

impl Left {
    /// In words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NeedsDeleteExtra => "needs --delete-extra",
            Self::GoneFromPostgresql => "gone from PostgreSQL since the report: compare again",
            Self::OtherType => "another type",
        }
    }
}

/// Both sides, for a look.
pub(super) struct Sorter<'a> {
    pub tables: &'a Tables,
    pub target: &'a Target,
    pub link: &'a Link,
    pub named: &'a Named,
    pub delete_extra: bool,
}

impl Sorter<'_> {
    /// In the order of the ids.
    pub(super) async fn sort(&self, connection: &mut PgConnection, clients: &[String]) -> Result<Vec<Sort>, CopyError> {
        let ids: Vec<&str> = clients.iter().map(String::as_str).collect();
        let unknown: HashSet<String> = self.tables.unknown_of(connection, &ids).await?.into_iter().collect();
        let mut sorted = Vec::with_capacity(ids.len());
        for id in ids {
            let is_unknown = unknown.contains(id);
            // No call can reach all keys of a session without a group, and none was ever written.
            let is_foreign = match is_unknown || self.named.says(id, FindingKind::ForeignType) {
                true => self.target.group(id).is_none() || self.is_foreign(id).await?,
                false => false,
            };
            sorted.push(match (is_foreign, is_unknown) {
                (true, _) => Sort::Leave(Left::OtherType),
                (false, false) => Sort::Copy,
                // Two looks at PostgreSQL, at least, have to agree that there is no such session.
                (false, true) if !self.named.says(id, FindingKind::ExtraSession) => Sort::Leave(Left::GoneFromPostgresql),
                (false, true) if self.delete_extra => Sort::Remove,
                (false, true) => Sort::Leave(Left::NeedsDeleteExtra),
            });
        }
        Ok(sorted)
    }

    /// Whether the set or the last packet id holds another type. A single message that does is met by the copy.
    async fn is_foreign(&self, id: &str) -> Result<bool, CopyError> {
        let client = ClientId::new(id);
        for (kind, own) in [(KeyKind::Messages, "zset"), (KeyKind::LastPacketId, "string")] {
            let found = self.link.type_of(&self.target.key(&client, kind)).await?;
            if found != "none" && found != own {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
