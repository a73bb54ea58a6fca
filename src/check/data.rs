//! What the rows would come to, judged. Pure.

use super::finding::{Area, Finding, grouped, told};
use super::forecast::Forecast;
use super::sample::Sample;
use crate::model::{ClientId, Rules};
use crate::source::{Borders, Exact, Named, SourceError};

const AREA: Area = Area::Data;
/// A session this near to the end of its packet ids begins them anew within one full queue of a 1.x broker.
const NEAR_WRAP: i32 = 65_535 - 1_000;

/// What the exact counts are to count.
pub(super) fn borders(rules: &Rules) -> Borders {
    Borders {
        last_packet_id: NEAR_WRAP,
        payload_bytes: i64::try_from(rules.max_payload_bytes).unwrap_or(i64::MAX),
        session_rows: rules.message_limit.into(),
    }
}

/// The findings of the forecast; `on_cluster` where the target is one, `None` where it is not known.
pub(super) fn findings(
    sample: &Sample,
    forecast: &Forecast,
    exact: &Result<Exact, SourceError>,
    rules: &Rules,
    on_cluster: Option<bool>,
) -> Vec<Finding> {
    let mut found =
        vec![rows(forecast), quarantined(sample, forecast), expired(forecast), superseded(forecast), trimmed(sample, forecast, exact, rules)];
    found.extend(contexts(sample, forecast));
    found.extend(named(sample, exact, rules, on_cluster));
    found.push(time(forecast));
    found
}

/// What the sample is worth.
fn basis(forecast: &Forecast) -> String {
    match forecast.exact {
        true => "every row was looked at".to_owned(),
        false => format!("a forecast: {} rows of about {} were looked at", grouped(forecast.rows_looked_at), grouped(forecast.rows)),
    }
}

fn rows(forecast: &Forecast) -> Finding {
    let text = format!(
        "{} rows of {} sessions, of which {} would be migrated; {}",
        grouped(forecast.rows),
        grouped(forecast.sessions),
        grouped(forecast.messages_migrated),
        basis(forecast)
    );
    match forecast.sessions {
        0 => Finding::warning(AREA, "rows", "both tables are empty: there is nothing to migrate")
            .mend("check the database in --postgres-url and the schema"),
        _ => Finding::ok(AREA, "rows", text),
    }
}

/// A count that is an estimate says so.
fn about(count: u64, forecast: &Forecast) -> String {
    if forecast.exact { grouped(count) } else { format!("about {}", grouped(count)) }
}

fn quarantined(sample: &Sample, forecast: &Forecast) -> Finding {
    if sample.tally.quarantined == 0 {
        return Finding::ok(AREA, "quarantined", format!("no row among those looked at would be quarantined; {}", basis(forecast)));
    }
    let reasons: Vec<String> = sample.reasons.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    let text = format!("rows that cannot be carried: {}; among those looked at: {}", about(forecast.quarantined, forecast), reasons.join(", "));
    Finding::warning(AREA, "quarantined", text).mend("to list them: tbmq-migrate migrate --dry-run --quarantine-file FILE")
}

fn contexts(sample: &Sample, forecast: &Forecast) -> Option<Finding> {
    let count = sample.tally.invalid_contexts;
    let text = format!("sessions whose context cannot be carried: {}; {}", grouped(count), basis(forecast));
    let mend = "to list them: tbmq-migrate migrate --dry-run --quarantine-file FILE";
    (count > 0).then(|| Finding::warning(AREA, "invalid_contexts", text).mend(mend))
}

fn expired(forecast: &Forecast) -> Finding {
    let text = format!(
        "rows that have expired by their own interval: {}, by the default TTL: {}; no broker would deliver them",
        about(forecast.expired_by_interval, forecast),
        about(forecast.expired_by_ttl, forecast)
    );
    Finding::ok(AREA, "expired", text)
}

fn superseded(forecast: &Forecast) -> Finding {
    let text =
        format!("rows with a packet id that a newer row of their session has: {}; Redis holds the newer one", about(forecast.superseded, forecast));
    match forecast.superseded {
        0 => Finding::ok(AREA, "superseded", text),
        _ => Finding::warning(AREA, "superseded", text),
    }
}

fn trimmed(sample: &Sample, forecast: &Forecast, exact: &Result<Exact, SourceError>, rules: &Rules) -> Finding {
    let limit = grouped(rules.message_limit.into());
    if forecast.trimmed > 0 {
        let text = format!("rows beyond the newest {limit} of their session: {}; they would be trimmed", about(forecast.trimmed, forecast));
        return Finding::warning(AREA, "trimmed", text).mend(
            "if the broker's limit is another one, give it as --message-limit; a 2.x broker trims to its own limit when it next adds a message",
        );
    }
    let counted = exact.as_ref().is_ok_and(|exact| exact.over_limit.is_ok());
    if !forecast.exact && !counted {
        let longest = sample.longest.as_ref().map_or(0, |(_, rows)| *rows);
        let text = format!(
            "unknown: the tables are too large to count each session, and a sample does not follow a session to its end; the longest that was met has \
             at least {} rows, the limit is {limit}",
            grouped(longest)
        );
        return Finding::warning(AREA, "trimmed", text).mend("to count them: tbmq-migrate migrate --dry-run");
    }
    Finding::ok(AREA, "trimmed", format!("no session has more than {limit} rows"))
}

fn named(sample: &Sample, exact: &Result<Exact, SourceError>, rules: &Rules, on_cluster: Option<bool>) -> Vec<Finding> {
    let exact = match exact {
        Ok(exact) => exact,
        Err(error) => return vec![Finding::unknown(AREA, "exact_counts", error)],
    };
    let mut found = Vec::new();
    let mut unseen: Vec<(&str, String)> = Vec::new();
    let payloads = format!("payloads over {} bytes", grouped(rules.max_payload_bytes as u64));
    match &exact.unservable {
        Ok(named) => found.push(unservable(named, on_cluster)),
        Err(why) => unseen.push(("client ids that no cluster can hold", told(why))),
    }
    match &exact.near_wrap {
        Ok(named) => found.push(wrap(named)),
        Err(why) => unseen.push(("sessions near the end of their packet ids", told(why))),
    }
    match &exact.oversized {
        Ok(named) => found.push(oversized(named, rules)),
        Err(why) => unseen.push((&payloads, told(why))),
    }
    if let Some((_, why)) = unseen.first() {
        let what: Vec<&str> = unseen.iter().map(|(what, _)| *what).collect();
        let text = format!(
            "unknown, since {why}: {}; the largest payload that was met has {} bytes",
            what.join(", "),
            grouped(sample.largest_payload as u64)
        );
        found.push(Finding::warning(AREA, "exact_counts", text).mend("to judge every row: tbmq-migrate migrate --dry-run --quarantine-file FILE"));
    }
    found
}

fn examples(named: &Named) -> String {
    let shown: Vec<String> = named.examples.iter().map(|id| format!("\"{}\"", ClientId::new(id.as_str()))).collect();
    shown.join(", ")
}

fn unservable(named: &Named, on_cluster: Option<bool>) -> Finding {
    let count = grouped(u64::try_from(named.count).unwrap_or(0));
    match (named.count, on_cluster) {
        (0, _) => Finding::ok(AREA, "cluster_ids", "no client id is empty or begins with a closing brace"),
        (_, Some(false)) => {
            let text = format!(
                "client ids that are empty or begin with a closing brace: {count} ({}); a single server holds them, a cluster could not",
                examples(named)
            );
            Finding::ok(AREA, "cluster_ids", text)
        }
        (_, on_cluster) => {
            let here = if on_cluster.is_none() { "if the target is a cluster, " } else { "" };
            let text = format!(
                "client ids that are empty or begin with a closing brace: {count} ({}); {here}neither this program nor the broker can hold their sessions \
                 there, and they are quarantined",
                examples(named)
            );
            Finding::warning(AREA, "cluster_ids", text).mend("let these clients connect with another id, or use a single server")
        }
    }
}

fn wrap(named: &Named) -> Finding {
    match named.count {
        0 => Finding::ok(AREA, "packet_id_wrap", format!("no session has given out packet ids beyond {NEAR_WRAP}")),
        count => {
            let text = format!(
                "sessions that have given out packet ids beyond {NEAR_WRAP}: {} ({}); they begin anew at 1 soon",
                grouped(u64::try_from(count).unwrap_or(0)),
                examples(named)
            );
            Finding::warning(AREA, "packet_id_wrap", text)
                .mend("have 2.1.0 or later as the target: 2.0.0 and 2.0.1 pass over live messages after that until the client connects again")
        }
    }
}

fn oversized(named: &Named, rules: &Rules) -> Finding {
    let limit = grouped(rules.max_payload_bytes as u64);
    match named.count {
        0 => Finding::ok(AREA, "payload_size", format!("no payload has more than {limit} bytes")),
        count => {
            let text = format!(
                "rows with a payload of more than {limit} bytes: {} ({}); they are quarantined",
                grouped(u64::try_from(count).unwrap_or(0)),
                examples(named)
            );
            let more = match rules.max_payload_bytes < Rules::PAYLOAD_BYTES_CEILING {
                true => format!("raise --max-payload-bytes, up to {}", grouped(Rules::PAYLOAD_BYTES_CEILING as u64)),
                false => "the broker's JSON parser takes no more: let these clients fetch them from 1.x first, or do without".to_owned(),
            };
            Finding::warning(AREA, "payload_size", text).mend(more)
        }
    }
}

fn time(forecast: &Forecast) -> Finding {
    match forecast.copy_seconds {
        Some(seconds) => {
            let told = if seconds < 1.0 { "less than a second".to_owned() } else { format!("about {}", duration(seconds)) };
            Finding::ok(AREA, "copy_time", format!("a copy takes {told}: a forecast by the rates of the sample, beside nothing else at work"))
        }
        None if forecast.rows == 0 => Finding::ok(AREA, "copy_time", "there are no rows to copy"),
        None => Finding::warning(AREA, "copy_time", "unknown: how fast Redis writes could not be measured"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::finding::Level;
    use crate::model::Tally;
    use crate::source::Uncounted;

    fn level(found: &[Finding], name: &str) -> Option<Level> {
        found.iter().find(|finding| finding.name == name).map(|finding| finding.level)
    }

    #[test]
    fn tables_that_are_too_large_to_count_leave_unknown_what_a_sample_cannot_tell() {
        let tally = Tally { rows_read: 100, sessions: 1, messages_migrated: 100, ..Tally::default() };
        let sample = Sample { tally, estimated_rows: 1_000_000, ..Sample::default() };
        let forecast = Forecast::new(&sample, None, None);
        let large = || Err(Uncounted::TooLarge);
        let exact = Exact { unservable: large(), near_wrap: Ok(Named::default()), oversized: large(), over_limit: large() };
        let found = findings(&sample, &forecast, &Ok(exact), &Rules::default(), Some(true));
        assert_eq!(level(&found, "trimmed"), Some(Level::Warning));
        let unseen = found.iter().find(|finding| finding.name == "exact_counts").map(|finding| finding.measured.as_str());
        let expected = "unknown, since the table is too large to be read as a whole: client ids that no cluster can hold, payloads over \
                        15,000,000 bytes; the largest payload that was met has 0 bytes";
        assert_eq!(unseen, Some(expected));
        assert_eq!((level(&found, "cluster_ids"), level(&found, "packet_id_wrap")), (None, Some(Level::Ok)));
        assert!(found[0].measured.contains("a forecast: 100 rows of about 1,000,000 were looked at"), "{:?}", found[0]);
        let none = || Ok(Named::default());
        let exact = Exact { unservable: none(), near_wrap: none(), oversized: none(), over_limit: none() };
        let counted = findings(&sample, &forecast, &Ok(exact), &Rules::default(), Some(true));
        assert_eq!((level(&counted, "trimmed"), level(&counted, "exact_counts")), (Some(Level::Ok), None));
    }

    #[test]
    fn a_time_is_told_in_the_unit_that_a_person_plans_in() {
        assert_eq!([119.0, 600.0, 36_000.0].map(duration), ["119 s", "10 min", "10.0 h"]);
    }
}
