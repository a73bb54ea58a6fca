//! How the two tables are kept.

use sqlx::postgres::types::Oid;
use sqlx::{PgConnection, Row as _};

use super::rows;
use crate::source::SourceError;

/// What the catalogue says of one table beside its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Schema and name, quoted for SQL.
    pub name: String,
    /// Whether it is cut into partitions.
    pub partitioned: bool,
    /// Whether it is left out of the write-ahead log: a crash empties it, and nothing of it can be decoded.
    pub unlogged: bool,
    /// `d`efault, `n`othing, `f`ull or an `i`ndex.
    pub replica_identity: String,
    /// Whether it has a valid primary key.
    pub primary_key: bool,
    /// Whether policies may hide rows from this role.
    pub rows_hidden: bool,
    /// Whether the role may do what only the owner may.
    pub owned: bool,
    /// Whether the role may create triggers on it.
    pub triggers: bool,
    /// The role that owns it.
    pub owner: String,
    /// Bytes on disk, indexes and long values included.
    pub total_bytes: i64,
    /// Bytes of the rows alone, long values left out: what a full scan reads.
    pub heap_bytes: i64,
    /// Rows as the last ANALYZE counted them; `None` where there was none.
    pub analyzed_rows: Option<i64>,
}

impl Storage {
    pub(super) async fn read(connection: &mut PgConnection, oids: &[Oid]) -> Result<[Self; 2], SourceError> {
        let doing = "looking at the tables' files";
        let sql = "select format('%I.%I', n.nspname, c.relname), c.relkind = 'p', c.relpersistence = 'u', c.relreplident::text,
                exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indisvalid), row_security_active(c.oid),
                pg_has_role(c.relowner, 'usage'), has_table_privilege(c.oid, 'trigger'), c.relowner::regrole::text,
                coalesce(sum(pg_total_relation_size(part.oid)), 0)::int8, coalesce(sum(pg_relation_size(part.oid)), 0)::int8,
                case when bool_and(part.reltuples >= 0 and (part.relpages > 0 or part.reltuples > 0)) then sum(part.reltuples)::int8 end
             from unnest($1::oid[]) with ordinality as asked(oid, place)
             join pg_class c on c.oid = asked.oid join pg_namespace n on n.oid = c.relnamespace
             left join pg_class part on part.relkind = 'r' and (part.oid = c.oid or part.oid in (select relid from pg_partition_tree(c.oid)))
             group by asked.place, n.nspname, c.oid, c.relname, c.relkind, c.relpersistence, c.relreplident, c.relowner order by asked.place";
        let found = rows(connection, doing, sql, Some(oids)).await?;
        let read = |row: &sqlx::postgres::PgRow| Self {
            name: row.get(0),
            partitioned: row.get(1),
            unlogged: row.get(2),
            replica_identity: row.get(3),
            primary_key: row.get(4),
            rows_hidden: row.get(5),
            owned: row.get(6),
            triggers: row.get(7),
            owner: row.get(8),
            total_bytes: row.get(9),
            heap_bytes: row.get(10),
            analyzed_rows: row.get(11),
        };
        match found.as_slice() {
            [messages, contexts] => Ok([read(messages), read(contexts)]),
            _ => Err(SourceError::Statement { doing, source: sqlx::Error::RowNotFound }),
        }
    }
}
