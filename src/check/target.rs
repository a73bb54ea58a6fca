//! What was seen of Redis, judged. Pure.

use super::activity::clock;
use super::finding::{Area, Finding, told};
use crate::model::EscapedText;
use crate::target::{ClientFacts, Need, NodeSurvey, Standing, TargetError, TargetFacts, Topology};

const AREA: Area = Area::Redis;
/// Addresses that are named.
const EXAMPLES: usize = 3;
/// Libraries of the broker: 2.x has Lettuce, earlier versions had Jedis.
const BROKER_LIBRARIES: [&str; 2] = ["lettuce", "jedis"];

/// The one finding of a side that cannot be reached.
pub(super) fn unreachable(error: &TargetError) -> Finding {
    Finding::blocker(AREA, "connection", told(error)).maybe_mend(error.hint())
}

/// Everything but the memory.
pub(super) fn findings(facts: &TargetFacts, unfinished_run: Option<i64>) -> Vec<Finding> {
    let mut found = vec![topology(facts)];
    found.extend(prefix(facts));
    for node in &facts.nodes {
        found.extend(of_node(node));
    }
    found.extend(rights(facts));
    match &facts.derived_keys {
        Some(Ok(())) => found.push(Finding::ok(AREA, "derived_keys", "a script may use keys that it derives, as those of the broker do")),
        Some(Err(error)) => found.push(
            Finding::blocker(AREA, "derived_keys", format!("a script may not use keys that it derives: {}", told(error)))
                .mend("the scripts of the 2.x broker do that: it needs a server that allows it"),
        ),
        None => {}
    }
    match &facts.standing {
        Ok(standing) => found.extend(self::standing(standing, facts.target.prefix.as_str(), unfinished_run)),
        Err(error) => found.push(Finding::unknown(AREA, "session_keys", error).maybe_mend(error.hint())),
    }
    found
}

fn topology(facts: &TargetFacts) -> Finding {
    let masters: Vec<&str> = facts.nodes.iter().map(|node| node.address.as_str()).collect();
    let kind = match facts.target.topology() {
        Topology::Standalone => "a single server",
        Topology::Sentinel => "a master behind sentinels",
        Topology::Cluster => "a cluster",
    };
    let user = match &facts.user {
        Ok(user) => format!("user {}", EscapedText(user)),
        Err(_) => "the user is unknown".to_owned(),
    };
    Finding::ok(AREA, "topology", format!("{kind}: {}; {user}", masters.join(", ")))
}

fn prefix(facts: &TargetFacts) -> Vec<Finding> {
    if let Err(error) = facts.target.check_prefix() {
        return vec![Finding::blocker(AREA, "key_prefix", error.to_string()).maybe_mend(error.hint())];
    }
    match (facts.target.topology(), facts.target.prefix.own_hash_tag()) {
        (Topology::Cluster, Some(tag)) => {
            let text = format!("the key prefix holds the hash tag {tag:?}: every session goes to the one node that serves its slot");
            vec![Finding::warning(AREA, "key_prefix", text).mend("use a cache prefix without {…}, here and in the 2.x broker")]
        }
        _ => Vec::new(),
    }
}

fn of_node(node: &NodeSurvey) -> Vec<Finding> {
    let (address, facts) = (&node.address, &node.facts);
    let mut found: Vec<Finding> = Vec::new();
    for error in facts.problems(address) {
        let name = match error {
            TargetError::TooOld { .. } => "version",
            TargetError::Replica { .. } => "replica",
            _ => "eviction_policy",
        };
        found.push(Finding::blocker(AREA, name, error.to_string()).maybe_mend(error.hint()));
    }
    if !found.iter().any(|finding| finding.name == "version") {
        found.push(Finding::ok(AREA, "version", format!("{address}: Redis {}", facts.version)));
    }
    match &facts.eviction_policy {
        None => found.push(
            Finding::warning(AREA, "eviction_policy", format!("unknown: {address} does not say whether it deletes keys when memory runs out"))
                .mend("look it up in the settings of the service: it must be noeviction"),
        ),
        Some(policy) if policy == "noeviction" => found.push(Finding::ok(AREA, "eviction_policy", format!("{address}: noeviction"))),
        Some(_) => {}
    }
    found.push(persistence(node));
    found.push(match facts.replicas {
        Some(count) => Finding::ok(AREA, "replicas", format!("{address}: {count}")),
        None => Finding::warning(AREA, "replicas", format!("unknown: {address} does not say how many follow it")),
    });
    found.push(match &node.clock {
        Ok(reading) => clock(AREA, &format!("Redis at {address}"), reading),
        Err(error) => Finding::unknown(AREA, "clock", error),
    });
    found.push(match &node.clients {
        Ok(clients) => self::clients(address, clients),
        Err(error) => Finding::unknown(AREA, "clients", error).mend("make sure that no 2.x broker is connected before `migrate` has ended"),
    });
    found
}

fn persistence(node: &NodeSurvey) -> Finding {
    let address = &node.address;
    let mend = "on the server: CONFIG SET appendonly yes (and in its configuration file)";
    match (node.facts.append_only, &node.snapshots) {
        (Some(true), _) if node.facts.last_save_worked == Some(false) => {
            Finding::warning(AREA, "persistence", format!("{address}: appends each write to a file; its last snapshot failed"))
                .mend("see the log of the server")
        }
        (Some(true), _) => Finding::ok(AREA, "persistence", format!("{address}: appends each write to a file")),
        (Some(false), Ok(when)) if when.is_empty() => {
            Finding::warning(AREA, "persistence", format!("{address}: keeps nothing on disk: a restart loses every session")).mend(mend)
        }
        (Some(false), Ok(_)) => {
            Finding::warning(AREA, "persistence", format!("{address}: writes snapshots only: a crash loses what came after the last one")).mend(mend)
        }
        (Some(false), Err(_)) => {
            Finding::warning(AREA, "persistence", format!("{address}: appends no write to a file; whether it writes snapshots is unknown")).mend(mend)
        }
        (None, _) => Finding::warning(AREA, "persistence", format!("unknown: {address} does not say what it keeps on disk")),
    }
}

fn clients(address: &str, clients: &[ClientFacts]) -> Finding {
    let named = |client: &ClientFacts| {
        let library = client.library.as_deref().unwrap_or_default().to_lowercase();
        let name = client.name.to_lowercase();
        BROKER_LIBRARIES.iter().any(|known| library.contains(known) || name.contains(known)) || name.contains("tbmq")
    };
    let list = |some: &[&ClientFacts]| {
        let shown: Vec<String> = some.iter().take(EXAMPLES).map(|client| EscapedText(&client.address).to_string()).collect();
        let more = some.len().saturating_sub(EXAMPLES);
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    let mend = "stop every 2.x broker until `migrate` has ended; on the server: CLIENT LIST";
    let brokers: Vec<&ClientFacts> = clients.iter().filter(|client| named(client)).collect();
    let silent: Vec<&ClientFacts> = clients.iter().filter(|client| client.library.is_none() || client.library.as_deref() == Some("")).collect();
    if !brokers.is_empty() {
        return Finding::warning(AREA, "clients", format!("{address}: clients of a 2.x broker may be connected, from {}", list(&brokers))).mend(mend);
    }
    if !silent.is_empty() {
        let text = format!("{address}: clients that do not say what they are, a 2.x broker perhaps, are connected from {}", list(&silent));
        return Finding::warning(AREA, "clients", text).mend(mend);
    }
    match clients.len() {
        0 => Finding::ok(AREA, "clients", format!("{address}: nobody else is connected")),
        count => Finding::ok(AREA, "clients", format!("{address}: {count} others are connected, none by a library of the broker")),
    }
}

fn rights(facts: &TargetFacts) -> Vec<Finding> {
    let user = facts.user.as_deref().unwrap_or("USER");
    let refused =
        |need: Need| facts.commands.iter().filter(move |tried| tried.need == need && tried.outcome.as_ref().is_err_and(TargetError::lacks_a_right));
    let prefix = EscapedText(facts.target.prefix.as_str()).to_string();
    let grant = |need: Need| {
        let mut words: Vec<String> = Vec::new();
        for tried in refused(need) {
            match tried.outcome.as_ref().is_err_and(TargetError::lacks_a_key) {
                true if words.iter().any(|word| word.starts_with('~')) => {}
                true => words.push(format!("~{prefix}{{* ~{prefix}tbmq-migrate:*")),
                false => words.push(format!("+{}", tried.name)),
            }
        }
        format!("on the server: ACL SETUSER {user} {}", words.join(" "))
    };
    let names = |need: Need| refused(need).map(|tried| tried.name).collect::<Vec<_>>().join(", ");
    let mut found = Vec::new();
    match &facts.probe {
        Some(Ok(())) => found.push(Finding::ok(AREA, "rights", "a session was written and removed again on scratch keys")),
        Some(Err(error)) => {
            let name = if error.lacks_a_right() { "rights" } else { "writing" };
            found.push(Finding::blocker(AREA, name, told(error)).maybe_mend(error.hint()));
        }
        None => match refused(Need::Copy).next() {
            Some(_) => found.push(Finding::blocker(AREA, "rights", format!("user {user} may not use {}", names(Need::Copy))).mend(grant(Need::Copy))),
            None => found.push(Finding::warning(AREA, "rights", "unknown: nothing is tried on a server that is not fit for a copy")),
        },
    }
    if refused(Need::Compare).next().is_some() {
        let text = format!("user {user} may not use {}, which comparing Redis with PostgreSQL afterwards needs", names(Need::Compare));
        found.push(Finding::warning(AREA, "rights_to_compare", text).mend(grant(Need::Compare)));
    }
    found
}

fn standing(standing: &Standing, prefix: &str, unfinished_run: Option<i64>) -> Vec<Finding> {
    let bound = if standing.complete { "" } else { " (the search ended at its time limit: there may be more)" };
    let own = match (standing.own, unfinished_run) {
        (0, _) if standing.complete => Finding::ok(AREA, "session_keys", "no session stands under the key prefix"),
        (0, _) => Finding::warning(AREA, "session_keys", "unknown: none was met, but the search ended at its time limit"),
        (count, Some(run)) => {
            let text = format!("sessions stand under the key prefix ({count}){bound}, and run {run} was interrupted: they may be its own");
            Finding::warning(AREA, "session_keys", text).mend("tbmq-migrate migrate, with the settings of that run: it goes on where it was")
        }
        (count, None) => {
            let examples: Vec<String> = standing.examples.iter().map(ToString::to_string).collect();
            let text = format!("sessions stand under the key prefix already ({count}){bound}, such as that of {}", examples.join(", of "));
            Finding::warning(AREA, "session_keys", text).mend(
                "a 2.x broker may own them. If they are from an earlier copy and no 2.x broker has used them: tbmq-migrate migrate --on-existing replace",
            )
        }
    };
    let mut found = vec![own];
    for (other, count) in &standing.others {
        let text = format!(
            "sessions stand under the prefix \"{}\" ({count}), which is not the key prefix \"{}\"{bound}",
            EscapedText(other),
            EscapedText(prefix)
        );
        found.push(Finding::warning(AREA, "other_prefix", text).mend(
            "if that is the cache prefix of the broker (CACHE_PREFIX), give it as --key-prefix; a broker with another one does not find what is copied",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::finding::Level;
    use crate::target::NodeFacts;

    fn client(name: &str, library: Option<&str>) -> ClientFacts {
        ClientFacts { address: "10.0.0.1:5".into(), name: name.into(), library: library.map(Into::into) }
    }

    #[test]
    fn a_client_of_the_broker_is_told_by_its_library_or_its_name() {
        for found in [client("", Some("Lettuce")), client("tbmq-1", None), client("x", Some("jedis"))] {
            let finding = clients("n", &[client("", Some("redis-py")), found]);
            assert!(finding.level == Level::Warning && finding.measured.contains("of a 2.x broker may be connected, from 10.0.0.1:5"), "{finding:?}");
        }
        let finding = clients("n", &[client("", None)]);
        assert!(finding.level == Level::Warning && finding.measured.contains("do not say what they are"), "{finding:?}");
        assert_eq!(clients("n", &[client("", Some("redis-py"))]).level, Level::Ok);
        assert_eq!(clients("n", &[]).level, Level::Ok);
    }

    fn node(facts: NodeFacts) -> NodeSurvey {
        let none = || TargetError::Reply { doing: "asking" };
        NodeSurvey {
            address: "n".into(),
            slots: 16_384,
            ranges: vec![(0, 16_383)],
            facts,
            clock: Err(none()),
            clients: Err(none()),
            snapshots: Err(none()),
        }
    }

    #[test]
    fn an_old_server_is_a_blocker_and_what_it_does_not_say_is_unknown() {
        let found = of_node(&node(NodeFacts { version: "6.2.14".into(), ..NodeFacts::default() }));
        let level = |name: &str| found.iter().find(|finding| finding.name == name).map(|finding| finding.level);
        assert_eq!(level("version"), Some(Level::Blocker));
        for name in ["eviction_policy", "persistence", "replicas", "clock", "clients"] {
            assert_eq!(level(name), Some(Level::Warning), "{name}");
        }
    }

    #[test]
    fn a_search_that_ended_early_is_never_well() {
        let part = Standing { complete: false, ..Standing::default() };
        assert_eq!(standing(&part, "", None)[0].level, Level::Warning);
        assert_eq!(standing(&Standing { complete: true, ..part }, "", None)[0].level, Level::Ok);
    }
}
