//! What following the changes of the tables would need from PostgreSQL, and what each way to migrate is ready for. Pure.

use super::finding::{Area, Finding, Level};
use super::source::unrecordable;
use crate::source::{Publication, SourceError, SourceFacts, Storage, quoted};

const AREA: Area = Area::Postgresql;
/// The version from which `pgoutput` gives values in binary.
const WAL_VERSION: i32 = 140_000;
/// The version from which a snapshot can be compared by `xid8`.
const TRIGGER_VERSION: i32 = 130_000;

/// Settings and rights, one by one.
pub(super) fn findings(facts: &SourceFacts) -> Vec<Finding> {
    let mut found = wal(facts);
    found.push(replication_right(facts));
    match &facts.storage {
        Some(Ok(tables)) => found.push(replica_identity(tables)),
        Some(Err(error)) => found.push(Finding::unknown(AREA, "replica_identity", error)),
        None => {}
    }
    found.extend(publications(facts));
    found
}

fn wal(facts: &SourceFacts) -> Vec<Finding> {
    let capture = match &facts.capture {
        Err(error) => return vec![Finding::unknown(AREA, "wal_level", error)],
        Ok(capture) => capture,
    };
    let level = match capture.wal_level.as_str() {
        "logical" => Finding::ok(AREA, "wal_level", "logical"),
        other => Finding::warning(AREA, "wal_level", format!("{other}: changes cannot be read from the write-ahead log")).mend(
            "only to capture by WAL; as a superuser, and then restart PostgreSQL (on a managed server: in its parameters): \
             alter system set wal_level = 'logical';",
        ),
    };
    let slots = match capture.slots < capture.most_slots {
        true => Finding::ok(AREA, "replication_slots", format!("{} of {} in use", capture.slots, capture.most_slots)),
        false => {
            let idle = match capture.idle_slots.as_slice() {
                [] => String::new(),
                idle => format!("; nobody reads from {}", idle.join(", ")),
            };
            let text = format!("all {} are in use{idle}", capture.most_slots);
            Finding::warning(AREA, "replication_slots", text).mend(format!(
                "only to capture by WAL; drop a slot that nobody needs, or as a superuser, and then restart PostgreSQL: \
                 alter system set max_replication_slots = {};",
                capture.most_slots + 4
            ))
        }
    };
    let senders = match capture.senders < capture.most_senders {
        true => Finding::ok(AREA, "wal_senders", format!("{} of {} at work", capture.senders, capture.most_senders)),
        false => Finding::warning(AREA, "wal_senders", format!("all {} are at work", capture.most_senders)).mend(format!(
            "only to capture by WAL; as a superuser, and then restart PostgreSQL: alter system set max_wal_senders = {};",
            capture.most_senders + 4
        )),
    };
    vec![level, slots, senders]
}

fn replication_right(facts: &SourceFacts) -> Finding {
    let role = quoted(&facts.server.role);
    match &facts.role {
        Err(error) => Finding::unknown(AREA, "replication_right", error),
        Ok(found) if found.replication => Finding::ok(AREA, "replication_right", format!("role {} may replicate", facts.server.role)),
        Ok(_) => Finding::warning(AREA, "replication_right", format!("role {} may not replicate", facts.server.role)).mend(format!(
            "only to capture by WAL; on Amazon RDS: grant rds_replication to {role}; elsewhere as a superuser: alter role {role} replication;"
        )),
    }
}

/// With it, publishing the table makes the server refuse the broker's own UPDATE and DELETE.
fn has_no_identity(table: &Storage) -> bool {
    table.replica_identity == "n" || (table.replica_identity == "d" && !table.primary_key && !table.partitioned)
}

fn replica_identity(tables: &[Storage; 2]) -> Finding {
    let without: Vec<&Storage> = tables.iter().filter(|table| has_no_identity(table)).collect();
    if without.is_empty() {
        let kinds: Vec<String> = tables.iter().map(|table| format!("{}: {}", table.name, identity(&table.replica_identity))).collect();
        return Finding::ok(AREA, "replica_identity", kinds.join("; "));
    }
    let names: Vec<&str> = without.iter().map(|table| table.name.as_str()).collect();
    let mends: Vec<String> = names.iter().map(|name| format!("alter table {name} replica identity default;")).collect();
    let text = format!(
        "{} has none: as soon as a publication has the table in it, the server refuses the broker's own UPDATE and DELETE",
        names.join(" and ")
    );
    Finding::warning(AREA, "replica_identity", text).mend(format!("as the owner: {}", mends.join(" ")))
}

fn identity(letter: &str) -> &'static str {
    match letter {
        "d" => "its primary key",
        "f" => "the full row, which makes each change in the log larger",
        "i" => "an index",
        _ => "nothing",
    }
}

fn publications(facts: &SourceFacts) -> Vec<Finding> {
    let found = match &facts.publications {
        None => return Vec::new(),
        Some(Err(error)) => return vec![Finding::unknown(AREA, "publications", error)],
        Some(Ok(found)) => found,
    };
    match found.as_slice() {
        [] => vec![Finding::ok(AREA, "publications", "no publication has the tables in it")],
        found => found.iter().map(publication).collect(),
    }
}

fn publication(publication: &Publication) -> Finding {
    let Publication { name, tables, .. } = publication;
    let sql_name = quoted(name);
    let why = if publication.leaves_key_out {
        format!(
            "{name} publishes a list of columns without the primary key: the server refuses the broker's own UPDATE and DELETE, so nothing is acknowledged"
        )
    } else if publication.lists_columns {
        format!("{name} publishes a list of columns: whoever follows it does not see whole rows")
    } else if publication.filters_rows {
        format!("{name} publishes some of the rows: an UPDATE or DELETE whose condition needs more than the key is refused")
    } else if publication.whole {
        let text =
            format!("{name} publishes whole schemas or all tables, these two among them: every change of the broker goes to its subscribers too");
        return Finding::warning(AREA, "publications", text).mend(format!("if nobody subscribes to it, as its owner: drop publication {sql_name};"));
    } else {
        return Finding::ok(AREA, "publications", format!("{name} has {} in it, as whole rows", tables.join(" and ")));
    };
    let drops: Vec<String> = tables.iter().map(|table| format!("alter publication {sql_name} drop table {table};")).collect();
    Finding::warning(AREA, "publications", why).mend(format!("if its subscribers can do without, as its owner: {}", drops.join(" ")))
}

/// What each way to migrate is ready for; `blockers` are the names of what stands in the way of all of them.
pub(super) fn modes(facts: Result<&SourceFacts, &SourceError>, blockers: &[&'static str]) -> Vec<Finding> {
    let migrate = match (facts, blockers) {
        (_, [_, ..]) => mode("mode_migrate", "migrate", &[format!("of {}", blockers.join(", "))]),
        (Ok(facts), []) => match (facts.server.in_recovery, unrecordable(facts)) {
            (false, None) => mode("mode_migrate", "migrate", &[]),
            (standby, why) => {
                let why = if standby { "the server is a standby".to_owned() } else { why.map_or_else(String::new, |(why, _)| why) };
                let text = format!("mode migrate: ready with --stateless only, which cannot go on after an interruption: {why}");
                Finding::warning(Area::Modes, "mode_migrate", text).mend("tbmq-migrate migrate --stateless")
            }
        },
        (Err(_), []) => mode("mode_migrate", "migrate", &["PostgreSQL cannot be reached".to_owned()]),
    };
    let (wal, trigger) = match facts {
        Ok(facts) => (lacking_for_wal(facts), lacking_for_trigger(facts)),
        Err(_) => (vec!["PostgreSQL cannot be reached".to_owned()], vec!["PostgreSQL cannot be reached".to_owned()]),
    };
    vec![
        migrate,
        mode("mode_dual_write_wal", "dual-write by wal (not in this version)", &wal),
        mode("mode_dual_write_trigger", "dual-write by trigger (not in this version)", &trigger),
    ]
}

fn mode(name: &'static str, words: &str, lacking: &[String]) -> Finding {
    match lacking {
        [] if name == "mode_migrate" => Finding::ok(Area::Modes, name, format!("mode {words}: ready")),
        [] => Finding::ok(Area::Modes, name, format!("mode {words}: PostgreSQL is ready")),
        lacking => {
            Finding { level: Level::Warning, ..Finding::ok(Area::Modes, name, format!("mode {words}: not ready because {}", lacking.join("; "))) }
        }
    }
}

/// What both captures lack.
fn lacking_for_either(facts: &SourceFacts, oldest: i32) -> Vec<String> {
    let mut lacking = Vec::new();
    if facts.server.version_number < oldest {
        lacking.push(format!("PostgreSQL {} is older than {}", facts.server.version, oldest / 10_000));
    }
    if facts.server.in_recovery {
        lacking.push("the server is a standby".to_owned());
    }
    match facts.pooled {
        Ok(false) => {}
        Ok(true) => lacking.push("a pooler is in the path".to_owned()),
        Err(_) => lacking.push("unknown whether a pooler is in the path".to_owned()),
    }
    if let Some((why, _)) = unrecordable(facts).filter(|_| !facts.server.in_recovery) {
        lacking.push(why);
    }
    if facts.storage.as_ref().is_none_or(Result::is_err) {
        lacking.push("the tables cannot be looked at".to_owned());
    }
    lacking
}

fn lacking_for_wal(facts: &SourceFacts) -> Vec<String> {
    let mut lacking = lacking_for_either(facts, WAL_VERSION);
    match &facts.capture {
        Err(_) => lacking.push("unknown: wal_level, slots and senders".to_owned()),
        Ok(capture) => {
            if capture.wal_level != "logical" {
                lacking.push(format!("wal_level is {}", capture.wal_level));
            }
            if capture.slots >= capture.most_slots {
                lacking.push("no replication slot is free".to_owned());
            }
            if capture.senders >= capture.most_senders {
                lacking.push("no WAL sender is free".to_owned());
            }
        }
    }
    if !facts.role.as_ref().is_ok_and(|role| role.replication) {
        lacking.push("the role may not replicate".to_owned());
    }
    if let Some(Ok(tables)) = &facts.storage {
        let superuser = facts.role.as_ref().is_ok_and(|role| role.superuser);
        if !superuser && tables.iter().any(|table| !table.owned) {
            lacking.push("the role does not own both tables, so it cannot publish them".to_owned());
        }
        if tables.iter().any(has_no_identity) {
            lacking.push("a table has no replica identity".to_owned());
        }
        if tables.iter().any(|table| table.unlogged) {
            lacking.push("a table is unlogged".to_owned());
        }
    }
    lacking
}

fn lacking_for_trigger(facts: &SourceFacts) -> Vec<String> {
    let mut lacking = lacking_for_either(facts, TRIGGER_VERSION);
    if let Some(Ok(tables)) = &facts.storage {
        for table in tables.iter().filter(|table| !table.triggers) {
            let role = quoted(&facts.server.role);
            lacking.push(format!("the role may not create triggers on {0} (as the owner: grant trigger on {0} to {role};)", table.name));
        }
    }
    lacking
}
