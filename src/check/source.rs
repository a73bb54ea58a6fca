//! What was seen of PostgreSQL, judged: the server, the tables, the rights to record a run. Pure.

use super::finding::{Area, Finding, bytes, grouped};
use crate::control::missing_grants;
use crate::source::{ControlSchema, SourceError, SourceFacts, Storage, Table, quoted};

const AREA: Area = Area::Postgresql;
/// Columns of `device_publish_msg` that came after 1.0, and the version that brought each.
const LATER_COLUMNS: [(&str, &str); 5] = [
    ("msg_expiry_interval", "1.1"),
    ("payload_format_indicator", "1.2.1"),
    ("content_type", "1.2.1"),
    ("response_topic", "1.3"),
    ("correlation_data", "1.3"),
];

/// The one finding of a side that cannot be reached.
pub(super) fn unreachable(error: &SourceError) -> Finding {
    Finding::blocker(AREA, "connection", super::finding::told(error)).maybe_mend(error.hint())
}

/// Everything but what others do and what a capture needs.
pub(super) fn findings(facts: &SourceFacts, place: &str) -> Vec<Finding> {
    let mut found = vec![version(facts), standby(facts, place), pooler(facts)];
    found.extend(tables(facts));
    found.extend(storage(facts));
    found.extend(settings(facts));
    found.push(state_schema(facts));
    found
}

fn version(facts: &SourceFacts) -> Finding {
    let server = &facts.server;
    match server.check() {
        Ok(()) => {
            let text = format!("PostgreSQL {}, database {}, role {}", server.version, server.database, server.role);
            Finding::ok(AREA, "version", text)
        }
        Err(error) => Finding::blocker(AREA, "version", error.to_string()).maybe_mend(error.hint()),
    }
}

fn standby(facts: &SourceFacts, place: &str) -> Finding {
    match facts.server.in_recovery {
        false => Finding::ok(AREA, "standby", "the server is a primary"),
        true => Finding::warning(AREA, "standby", format!("{place} is a standby, where progress cannot be recorded"))
            .mend("name the primary in --postgres-url, or run with --stateless, which cannot go on after an interruption"),
    }
}

fn pooler(facts: &SourceFacts) -> Finding {
    match &facts.pooled {
        Ok(false) => Finding::ok(AREA, "pooler", "two connections are two sessions of the server: no transaction pooler was noticed"),
        Ok(true) => {
            Finding::warning(AREA, "pooler", "a pooler hands out sessions of the server by the transaction: what a session must keep is lost")
                .mend("give the server's own address in --postgres-url")
        }
        Err(error) => Finding::unknown(AREA, "pooler", error).maybe_mend(error.hint()),
    }
}

fn tables(facts: &SourceFacts) -> Vec<Finding> {
    let wrong = |name: &'static str, error: &SourceError| Finding::blocker(AREA, name, super::finding::told(error)).maybe_mend(error.hint());
    let found = match &facts.tables {
        Err(error) => return vec![wrong("tables", error)],
        Ok(found) => found,
    };
    let mut findings: Vec<Finding> = found.iter().filter_map(|table| table.as_ref().err()).map(|error| wrong("tables", error)).collect();
    if let [Ok(messages), Ok(contexts)] = found {
        findings.push(Finding::ok(AREA, "tables", format!("{} and {} can be read", messages.name, contexts.name)));
        findings.push(columns(messages));
    }
    match &facts.ordered {
        Some(Ok(_)) => {
            findings.push(Finding::ok(AREA, "collation", "the text indexes are of the collation version that the server has, or it keeps none"))
        }
        Some(Err(error @ SourceError::CollationChanged { .. })) => findings.push(wrong("collation", error)),
        Some(Err(error)) => findings.push(Finding::unknown(AREA, "collation", error)),
        None => {}
    }
    findings
}

fn columns(messages: &Table) -> Finding {
    let absent: Vec<String> =
        LATER_COLUMNS.iter().filter(|(name, _)| !messages.has(name)).map(|(name, version)| format!("{name} (since {version})")).collect();
    let text = match absent.as_slice() {
        [] => format!("{} has every column of 1.4", messages.name),
        absent => format!("{} is of an older schema and lacks {}: each counts as NULL", messages.name, absent.join(", ")),
    };
    Finding::ok(AREA, "columns", text)
}

fn storage(facts: &SourceFacts) -> Vec<Finding> {
    let tables = match &facts.storage {
        None => return Vec::new(),
        Some(Err(error)) => return vec![Finding::unknown(AREA, "size", error)],
        Some(Ok(tables)) => tables,
    };
    let mut findings = vec![size(tables)];
    let role = quoted(&facts.server.role);
    for table in tables {
        let name = &table.name;
        if !table.primary_key && !table.partitioned {
            let key = if name.contains("device_session_ctx") { "client_id" } else { "client_id, serial_number" };
            findings.push(
                Finding::warning(AREA, "primary_key", format!("{name} has no valid primary key: each range is searched for and sorted"))
                    .mend(format!("as the owner: alter table {name} add primary key ({key});")),
            );
        }
        if table.rows_hidden {
            findings.push(
                Finding::blocker(AREA, "row_security", format!("policies of {name} may hide rows from this role, and no count would tell"))
                    .mend(format!("as a superuser: alter role {role} bypassrls;")),
            );
        }
        if table.partitioned {
            findings.push(Finding::ok(AREA, "partitions", format!("{name} is partitioned; it is read as one table")));
        }
        if table.unlogged {
            findings.push(
                Finding::warning(
                    AREA,
                    "unlogged",
                    format!("{name} is unlogged: a crash of the server empties it, and its changes cannot be decoded"),
                )
                .mend(format!("as the owner, it rewrites the table: alter table {name} set logged;")),
            );
        }
    }
    findings
}

fn size(tables: &[Storage; 2]) -> Finding {
    let described: Vec<String> = tables
        .iter()
        .map(|table| {
            let rows = match table.analyzed_rows {
                Some(rows) => format!("about {} rows", grouped(u64::try_from(rows).unwrap_or(0))),
                None => "an unknown number of rows (never analyzed)".to_owned(),
            };
            format!("{}: {}, {rows}", table.name, bytes(u64::try_from(table.total_bytes).unwrap_or(0)))
        })
        .collect();
    Finding::ok(AREA, "size", described.join("; "))
}

fn settings(facts: &SourceFacts) -> Vec<Finding> {
    let settings = match &facts.settings {
        Err(error) => return vec![Finding::unknown(AREA, "settings", error)],
        Ok(settings) => settings,
    };
    let database = quoted(&facts.server.database);
    let bytea = match settings.bytea_output.as_str() {
        "hex" => Finding::ok(AREA, "bytea_output", "hex"),
        other => Finding::warning(
            AREA,
            "bytea_output",
            format!(
                "{other}: payloads leave the server as text in this form, in COPY and in the broker's own upgrade; this program reads them in binary"
            ),
        )
        .mend(format!("not needed for this program; as the owner of the database: alter database {database} set bytea_output = 'hex';")),
    };
    let encoding = match settings.encoding.as_str() {
        "SQL_ASCII" => {
            Finding::warning(AREA, "encoding", "SQL_ASCII: the database may hold text that is not UTF-8, and each such row is quarantined")
        }
        other => Finding::ok(AREA, "encoding", other),
    };
    vec![bytea, encoding]
}

/// Why a run cannot be recorded, and what mends it.
pub(super) fn unrecordable(facts: &SourceFacts) -> Option<(String, Option<String>)> {
    let server = &facts.server;
    let stateless = "or run with --stateless, which cannot go on after an interruption";
    if let Ok(settings) = &facts.settings
        && settings.read_only
        && !server.in_recovery
    {
        let role = quoted(&server.role);
        let mend = format!("as the role itself or a superuser: alter role {role} set default_transaction_read_only = off; {stateless}");
        return Some(("the role's transactions are read-only (default_transaction_read_only)".to_owned(), Some(mend)));
    }
    let (role, schema) = match (&facts.role, &facts.control_schema) {
        (Ok(role), Ok(schema)) => (role, schema),
        (Err(error), _) | (_, Err(error)) => return Some((format!("unknown: {}", super::finding::told(error)), None)),
    };
    let writable = schema.as_ref().is_none_or(|ControlSchema { writable, .. }| *writable);
    if role.creates && writable {
        return None;
    }
    let grants = missing_grants(&server.database, &server.role, schema.is_some() && !writable);
    let what = if writable {
        "the role may not create a schema in the database"
    } else {
        "the role may not use the schema tbmq_migrate that another role made"
    };
    Some((what.to_owned(), Some(format!("{grants} {stateless}"))))
}

fn state_schema(facts: &SourceFacts) -> Finding {
    match unrecordable(facts) {
        None if matches!(facts.control_schema, Ok(Some(_))) => {
            Finding::ok(AREA, "state_schema", "the schema tbmq_migrate is there and may be written to: a run can be recorded")
        }
        None => Finding::ok(AREA, "state_schema", "the role may make the schema tbmq_migrate: a run can be recorded"),
        Some((why, mend)) => {
            Finding::warning(AREA, "state_schema", format!("role {} cannot record a run: {why}", facts.server.role)).maybe_mend(mend)
        }
    }
}
