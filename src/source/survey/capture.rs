//! What following the changes of the tables needs from the server.

use sqlx::postgres::types::Oid;
use sqlx::{PgConnection, Row as _};

use super::rows;
use crate::source::{Server, SourceError};

/// The means of logical decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// `replica`, `logical`, …
    pub wal_level: String,
    /// Slots in use.
    pub slots: i64,
    /// Slots that there may be.
    pub most_slots: i64,
    /// Slots that nobody reads from.
    pub idle_slots: Vec<String>,
    /// Senders at work.
    pub senders: i64,
    /// Senders that there may be.
    pub most_senders: i64,
}

/// A publication that has one of the tables in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Its name.
    pub name: String,
    /// Whether it is of all tables of the database, or of a schema.
    pub whole: bool,
    /// Whether it leaves out columns.
    pub lists_columns: bool,
    /// Whether it leaves out a column of a primary key: then the server refuses UPDATE and DELETE on the table.
    pub leaves_key_out: bool,
    /// Whether it leaves out rows.
    pub filters_rows: bool,
    /// The tables of ours that are in it by name, quoted.
    pub tables: Vec<String>,
}

/// Lists of columns, conditions on rows and whole schemas came with this version.
const VERSION_WITH_LISTS: i32 = 150_000;

impl Capture {
    pub(super) async fn read(connection: &mut PgConnection) -> Result<Self, SourceError> {
        let sql = "select current_setting('wal_level'), (select count(*) from pg_replication_slots), current_setting('max_replication_slots')::int8,
                array(select slot_name::text from pg_replication_slots where not active order by 1), (select count(*) from pg_stat_replication),
                current_setting('max_wal_senders')::int8";
        let row = super::row(connection, "looking at replication slots and senders", sql).await?;
        Ok(Self {
            wal_level: row.get(0),
            slots: row.get(1),
            most_slots: row.get(2),
            idle_slots: row.get(3),
            senders: row.get(4),
            most_senders: row.get(5),
        })
    }
}

impl Publication {
    pub(super) async fn read(connection: &mut PgConnection, server: &Server, oids: &[Oid]) -> Result<Vec<Self>, SourceError> {
        let (columns, key, condition, schema) = match server.version_number >= VERSION_WITH_LISTS {
            true => (
                "r.prattrs is not null",
                "r.prattrs is not null and exists (select from pg_index i, unnest(i.indkey) as k(attnum)
                     where i.indrelid = r.prrelid and i.indisprimary and k.attnum <> all(r.prattrs))",
                "r.prqual is not null",
                "exists (select from pg_publication_namespace s join pg_class c on c.relnamespace = s.pnnspid where s.pnpubid = p.oid and c.oid = any($1))",
            ),
            false => ("false", "false", "false", "false"),
        };
        let sql = format!(
            "select p.pubname::text, p.puballtables or {schema}, coalesce(bool_or({columns}), false), coalesce(bool_or({key}), false),
                    coalesce(bool_or({condition}), false),
                    array_agg(case when c.oid is not null then format('%I.%I', n.nspname, c.relname) end order by c.relname)
             from pg_publication p
             left join (pg_publication_rel r join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace)
                 on r.prpubid = p.oid and r.prrelid = any($1)
             where p.puballtables or {schema} or r.oid is not null group by p.oid, p.pubname, p.puballtables order by 1"
        );
        let found = rows(connection, "looking at publications", &sql, Some(oids)).await?;
        Ok(found
            .iter()
            .map(|row| Self {
                name: row.get(0),
                whole: row.get(1),
                lists_columns: row.get(2),
                leaves_key_out: row.get(3),
                filters_rows: row.get(4),
                tables: row.get::<Vec<Option<String>>, _>(5).into_iter().flatten().collect(),
            })
            .collect())
    }
}
