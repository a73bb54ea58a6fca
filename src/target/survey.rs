//! Facts about Redis: what `check` needs to know, without a refusal.

use std::sync::Arc;

use redis::Cmd;

use super::{Node, NodeFacts, Patience, Standing, Target, TargetError, TriedCommand};
use crate::config::RedisConfig;
use crate::model::{KeyPrefix, Millis};
use crate::observe::clock::{ClockReading, wall_clock};

/// What was seen of a deployment. What could not be seen is the error that says why.
pub struct TargetFacts {
    /// The deployment.
    pub target: Target,
    /// Each master.
    pub nodes: Vec<NodeSurvey>,
    /// Who is logged in.
    pub user: Result<String, TargetError>,
    /// The commands that are needed; empty where the servers are not fit to be written to.
    pub commands: Vec<TriedCommand>,
    /// What writing a session, and removing it again, came to; `None` where it was not tried.
    pub probe: Option<Result<(), TargetError>>,
    /// Whether scripts may use keys that they derive; `None` where the servers are not fit to be asked.
    pub derived_keys: Option<Result<(), TargetError>>,
    /// Sessions that stand there.
    pub standing: Result<Standing, TargetError>,
    /// The time by one of them.
    pub now: Millis,
}

/// One master.
pub struct NodeSurvey {
    /// host:port.
    pub address: String,
    /// Slots that it serves, of all 16,384.
    pub slots: u32,
    /// Their ranges, both ends inclusive.
    pub ranges: Vec<(u16, u16)>,
    /// What it says of itself.
    pub facts: NodeFacts,
    /// Its clock.
    pub clock: Result<ClockReading, TargetError>,
    /// Who else is connected.
    pub clients: Result<Vec<ClientFacts>, TargetError>,
    /// When it writes snapshots, as its configuration says; empty for never.
    pub snapshots: Result<String, TargetError>,
}

/// A connection of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFacts {
    /// host:port.
    pub address: String,
    /// The name that it gave itself; may be empty.
    pub name: String,
    /// The library that it named; `None` before Redis 7.2, which does not keep it.
    pub library: Option<String>,
}

/// How this program's own connections call themselves on servers that keep it.
const OWN_LIBRARY: &str = "tbmq-migrate";

impl TargetFacts {
    /// Looks at all masters, and tries what a copy does on scratch keys.
    ///
    /// # Errors
    /// No connection, or another topology than configured: nothing can be seen.
    pub async fn read(config: &RedisConfig, prefix: KeyPrefix, patience: Arc<Patience>) -> Result<Self, TargetError> {
        let (target, masters) = Target::look(config, prefix, patience).await?;
        let link = target.brief_link();
        let mut nodes = Vec::new();
        let mut connections = Vec::new();
        for (mut node, facts) in masters {
            nodes.push(NodeSurvey::read(&mut node, facts).await);
            connections.push(node);
        }
        let now = link.time().await.unwrap_or_else(|_| wall_clock());
        let writable = target.check_prefix().is_ok() && nodes.iter().all(|node| node.facts.role != "slave" && node.facts.problems("").is_empty());
        let (mut commands, mut probe, mut derived_keys) = (Vec::new(), None, None);
        if writable {
            commands = target.try_commands(&link, now).await;
            derived_keys = Some(target.try_derived_key(&link, now).await);
            // Without one of the rights it is known by now that a copy would be refused, and what is written might stay.
            if !commands.iter().any(TriedCommand::is_in_the_way) {
                probe = Some(target.probe(&link, now).await);
            }
        }
        Ok(Self {
            user: target.user(&link).await,
            commands,
            probe,
            derived_keys,
            standing: target.look_for_sessions(&mut connections).await,
            nodes,
            target,
            now,
        })
    }

    /// Whether a copy could write.
    pub fn writable(&self) -> bool {
        matches!(self.probe, Some(Ok(())))
    }
}

impl NodeSurvey {
    async fn read(node: &mut Node, facts: NodeFacts) -> Self {
        let clock = clock(node).await;
        let clients = clients(node).await;
        let snapshots = snapshots(node).await;
        let slots = node.slots.iter().map(|&(first, last)| u32::from(last - first) + 1).sum();
        Self { address: node.address.clone(), slots, ranges: node.slots.clone(), facts, clock, clients, snapshots }
    }

    /// Whether it serves a slot.
    pub fn serves(&self, slot: u16) -> bool {
        self.ranges.iter().any(|&(first, last)| (first..=last).contains(&slot))
    }
}

async fn clock(node: &mut Node) -> Result<ClockReading, TargetError> {
    let before = wall_clock();
    let (seconds, micros): (i64, i64) = node.query("asking for the time", Cmd::new().arg("TIME")).await?;
    Ok(ClockReading { before, server: Millis(seconds * 1000 + micros / 1000), after: wall_clock() })
}

async fn snapshots(node: &mut Node) -> Result<String, TargetError> {
    let settings: Vec<String> = node.query("asking when snapshots are written", Cmd::new().arg("CONFIG").arg("GET").arg("save")).await?;
    Ok(settings.into_iter().nth(1).unwrap_or_default())
}

async fn clients(node: &mut Node) -> Result<Vec<ClientFacts>, TargetError> {
    let doing = "asking who is connected";
    let own: i64 = node.query(doing, Cmd::new().arg("CLIENT").arg("ID")).await?;
    let list: String = node.query(doing, Cmd::new().arg("CLIENT").arg("LIST")).await?;
    Ok(list.lines().filter_map(|line| ClientFacts::parse(line, own)).collect())
}

impl ClientFacts {
    /// One line of the list, unless it is another part of the deployment or this program: all that is connected later than
    /// `own` is, and what has just asked who the server is.
    fn parse(line: &str, own: i64) -> Option<Self> {
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let id: i64 = field("id")?.parse().ok()?;
        let just_asked = field("cmd") == Some("info") && field("age").and_then(|age| age.parse::<u32>().ok()).is_some_and(|age| age <= 1);
        let name = field("name").unwrap_or_default();
        let library = field("lib-name").map(str::to_owned);
        let of_the_deployment = field("flags").is_some_and(|flags| flags.contains(['S', 'M'])) || name.starts_with("sentinel-");
        if id >= own || just_asked || of_the_deployment || library.as_deref() == Some(OWN_LIBRARY) {
            return None;
        }
        Some(Self { address: field("addr")?.to_owned(), name: name.to_owned(), library })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_list_of_clients_only_other_programs_remain() {
        let line = |id: u32, rest: &str| format!("id={id} addr=10.0.0.1:5 laddr=10.0.0.2:6379 fd=8 name= age=9 idle=0 flags=N db=0 {rest} cmd=get");
        assert_eq!(
            ClientFacts::parse(&line(3, "lib-name=Lettuce lib-ver=6"), 7),
            Some(ClientFacts { address: "10.0.0.1:5".into(), name: String::new(), library: Some("Lettuce".into()) })
        );
        assert_eq!(ClientFacts::parse(&line(3, "user=default"), 7).and_then(|client| client.library), None);
        let gone = [
            line(7, ""),
            line(8, ""),
            line(3, "lib-name=tbmq-migrate"),
            line(3, "").replace("flags=N", "flags=S"),
            line(3, "").replace("name= ", "name=sentinel-1-cmd "),
            line(3, "").replace("cmd=get", "cmd=info").replace("age=9", "age=0"),
        ];
        for line in gone {
            assert_eq!(ClientFacts::parse(&line, 7), None, "{line}");
        }
    }
}
