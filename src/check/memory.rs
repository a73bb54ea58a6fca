//! Whether the sessions fit into the memory of Redis. Pure.

use super::finding::{Area, Finding, Level, bytes};
use super::forecast::{Forecast, Shard};
use crate::model::{KeyPrefix, SLOTS, slot_of_key};
use crate::target::{NodeSurvey, Topology};

const AREA: Area = Area::Redis;
/// Beyond this share there is no room for what the brokers write next, for replicas and for the copies of a snapshot.
const WARN_PERCENT: u128 = 80;

/// The sessions' share of each master: by its slots, or all of it where the prefix puts every key into one slot.
pub(super) fn shards(nodes: &[NodeSurvey], topology: Topology, prefix: &KeyPrefix, total_bytes: u64) -> Vec<Shard> {
    let one_slot = match (topology, prefix.own_hash_tag()) {
        (Topology::Cluster, Some(tag)) if !tag.is_empty() => Some(slot_of_key(prefix.messages("x").as_bytes())),
        _ => None,
    };
    let share = |node: &NodeSurvey| match one_slot {
        Some(slot) => u64::from(node.serves(slot)) * total_bytes,
        None => u64::try_from(u128::from(total_bytes) * u128::from(node.slots) / u128::from(SLOTS)).unwrap_or(u64::MAX),
    };
    nodes
        .iter()
        .map(|node| Shard {
            node: node.address.clone(),
            needed_bytes: share(node),
            used_bytes: node.facts.used_memory,
            maxmemory_bytes: node.facts.maxmemory,
            system_bytes: node.facts.system_memory,
        })
        .collect()
}

/// One finding a master. Of sessions that stand already nobody knows how much they take: what is in use counts them once
/// more, so what does not fit is no more than a warning then.
pub(super) fn findings(forecast: &Forecast, standing: bool) -> Vec<Finding> {
    let of = |shard: &Shard| match finding(shard, forecast) {
        found if standing && found.level == Level::Blocker => {
            let measured = format!("{}; the sessions that stand already are in it, and go when they are replaced", found.measured);
            Finding { level: Level::Warning, measured, ..found }
        }
        found => found,
    };
    forecast.memory_bytes_per_shard.iter().map(of).collect()
}

fn finding(shard: &Shard, forecast: &Forecast) -> Finding {
    let how = if forecast.memory_measured { "measured on sampled messages" } else { "calculated, nothing could be measured" };
    let (Some(used), Some(maxmemory)) = (shard.used_bytes, shard.maxmemory_bytes) else {
        let text = format!("unknown: {} does not say how much memory it has; about {} are needed ({how})", shard.node, bytes(shard.needed_bytes));
        return Finding::warning(AREA, "memory", text);
    };
    let then = used.saturating_add(shard.needed_bytes);
    let needs = format!("{}: about {} are needed ({how}) beside the {} in use", shard.node, bytes(shard.needed_bytes), bytes(used));
    let over = |limit: u64, percent: u128| u128::from(then) * 100 > u128::from(limit) * percent;
    let enough = u64::try_from(u128::from(then) * 100 / WARN_PERCENT).unwrap_or(u64::MAX).div_ceil(1 << 20);
    let mend = format!(
        "on the server: CONFIG SET maxmemory {enough}mb (and in its configuration file), where the machine has it; or add nodes to a cluster"
    );
    match (maxmemory, shard.system_bytes) {
        (0, Some(system)) if over(system, WARN_PERCENT) => {
            let text = format!("{needs}; there is no maxmemory, and the machine has {}", bytes(system));
            Finding::warning(AREA, "memory", text).mend("give the machine more memory, or add nodes to a cluster")
        }
        (0, Some(system)) => Finding::ok(AREA, "memory", format!("{needs}; there is no maxmemory, and the machine has {}", bytes(system))),
        (0, None) => Finding::warning(AREA, "memory", format!("{needs}; there is no maxmemory, and what the machine has is unknown")),
        (limit, _) if over(limit, 100) => Finding::blocker(AREA, "memory", format!("{needs}; maxmemory is {}", bytes(limit))).mend(mend),
        (limit, _) if over(limit, WARN_PERCENT) => {
            Finding::warning(AREA, "memory", format!("{needs}: more than {WARN_PERCENT} % of maxmemory, {}", bytes(limit))).mend(mend)
        }
        (limit, _) => Finding::ok(AREA, "memory", format!("{needs}; maxmemory is {}", bytes(limit))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample::Sample;

    fn level(needed: u64, used: Option<u64>, maxmemory: Option<u64>, system: Option<u64>) -> Level {
        let shard = Shard { node: "n".into(), needed_bytes: needed, used_bytes: used, maxmemory_bytes: maxmemory, system_bytes: system };
        finding(&shard, &Forecast::new(&Sample::default(), None, None)).level
    }

    #[test]
    fn what_does_not_fit_is_a_blocker_and_what_fits_barely_a_warning() {
        for (needed, expected) in [(60, Level::Ok), (70, Level::Ok), (71, Level::Warning), (90, Level::Warning), (91, Level::Blocker)] {
            assert_eq!(level(needed, Some(10), Some(100), Some(1)), expected, "{needed}");
        }
    }

    #[test]
    fn without_a_limit_the_machine_is_the_measure_and_without_figures_nothing_is_well() {
        assert_eq!(level(70, Some(10), Some(0), Some(100)), Level::Ok);
        assert_eq!(level(200, Some(10), Some(0), Some(100)), Level::Warning);
        assert_eq!(level(1, Some(10), Some(0), None), Level::Warning);
        assert_eq!(level(1, None, Some(100), None), Level::Warning);
        assert_eq!(level(1, Some(10), None, None), Level::Warning);
    }
}
