//! Redis, where 2.x brokers will read: connecting to the three topologies, the scripts, batches, scans.

mod batch;
mod error;
mod journal;
mod link;
mod measure;
mod node;
mod patience;
mod place;
mod reading;
mod rights;
mod script;
mod session;
mod standing;
mod survey;

use std::sync::Arc;

pub use batch::{Batch, Refused, WriteMode};
pub use error::TargetError;
pub use journal::{Journal, NotedChunk};
pub use link::Link;
pub use measure::{Measured, ScratchMessage, Sizes};
pub use node::{FoundKey, Node, NodeFacts};
pub use patience::Patience;
pub use place::Topology;
pub use reading::{FoundPart, PartRequest, Reading, ScoreRange};
pub use rights::{Need, TriedCommand};
pub use standing::Standing;
pub use survey::{ClientFacts, NodeSurvey, TargetFacts};

use crate::config::{RedisConfig, RedisMode};
use crate::model::KeyPrefix;
use place::Place;

/// A Redis deployment that was looked at and may be written to.
#[derive(Clone)]
pub struct Target {
    place: Arc<Place>,
    topology: Topology,
    /// The broker's cache prefix.
    pub prefix: KeyPrefix,
    patience: Arc<Patience>,
}

impl Target {
    /// Finds out what the servers are and whether they are fit to hold sessions. Tries once: at the start nobody wants to
    /// wait for a wrong address.
    ///
    /// # Errors
    /// No connection; too old; a replica; a policy that evicts; another topology than configured.
    pub async fn open(config: &RedisConfig, prefix: KeyPrefix, patience: Arc<Patience>) -> Result<Self, TargetError> {
        let (target, masters) = Self::look(config, prefix, patience).await?;
        target.check_prefix()?;
        let problem = masters.iter().find_map(|(node, facts)| facts.problems(&node.address).into_iter().next());
        problem.map_or(Ok(target), Err)
    }

    /// The same for a comparison, which a policy that evicts does not harm: it is only told.
    ///
    /// # Errors
    /// No connection; too old; a replica, which may lag; another topology than configured.
    pub async fn open_to_read(config: &RedisConfig, prefix: KeyPrefix, patience: Arc<Patience>) -> Result<Self, TargetError> {
        let (target, masters) = Self::look(config, prefix, patience).await?;
        target.check_prefix()?;
        for problem in masters.iter().flat_map(|(node, facts)| facts.problems(&node.address)) {
            match problem {
                TargetError::Evicts { .. } => tracing::warn!("{problem}"),
                problem => return Err(problem),
            }
        }
        Ok(target)
    }

    /// Finds out what the servers are, fit or not: the masters, and what each says of itself.
    ///
    /// # Errors
    /// No connection; another topology than configured.
    pub async fn look(config: &RedisConfig, prefix: KeyPrefix, patience: Arc<Patience>) -> Result<(Self, Vec<(Node, NodeFacts)>), TargetError> {
        let place = Place::new(config)?;
        let connect = |source| TargetError::Connect { place: place.display().to_owned(), source };
        let topology = match config.mode {
            RedisMode::Sentinel => Topology::Sentinel,
            RedisMode::Auto | RedisMode::Standalone | RedisMode::Cluster => {
                let (node, mut connection) = place.any_seed().await.map_err(connect)?;
                let facts = NodeFacts::read(&mut connection).await.map_err(connect)?;
                match (config.mode, facts.mode.as_str()) {
                    (RedisMode::Auto | RedisMode::Cluster, "cluster") => Topology::Cluster,
                    (RedisMode::Auto | RedisMode::Standalone, "standalone") => Topology::Standalone,
                    (RedisMode::Cluster, _) => return Err(TargetError::OtherMode { node, found: facts.mode, wanted: "cluster" }),
                    (RedisMode::Standalone, _) => return Err(TargetError::OtherMode { node, found: facts.mode, wanted: "standalone" }),
                    (RedisMode::Auto | RedisMode::Sentinel, _) => {
                        return Err(TargetError::OtherMode { node, found: facts.mode, wanted: "standalone or cluster" });
                    }
                }
            }
        };
        if topology == Topology::Standalone && config.seeds.len() > 1 {
            return Err(TargetError::SeveralServers { count: config.seeds.len() });
        }
        let target = Self { place: Arc::new(place.clone()), topology, prefix, patience };
        let mut masters = Vec::new();
        for mut node in target.masters().await? {
            let facts = NodeFacts::read(&mut node.connection).await.map_err(connect)?;
            masters.push((node, facts));
        }
        Ok((target, masters))
    }

    /// Whether sessions can live under the key prefix at all.
    ///
    /// # Errors
    /// [`TargetError::PrefixSpansSlots`] on a cluster.
    pub fn check_prefix(&self) -> Result<(), TargetError> {
        match self.topology == Topology::Cluster && self.prefix.own_hash_tag() == Some("") {
            true => Err(TargetError::PrefixSpansSlots),
            false => Ok(()),
        }
    }

    /// A connection of its own that comes back when it is lost.
    pub fn link(&self) -> Link {
        Link::new(Arc::clone(&self.place), self.topology, Arc::clone(&self.patience))
    }

    /// The same for the time before a run begins, when a person waits for the answer: it gives up after a few seconds.
    pub fn brief_link(&self) -> Link {
        Link::new(Arc::clone(&self.place), self.topology, Arc::new(self.patience.brief()))
    }

    /// All masters, each by a connection of its own.
    ///
    /// # Errors
    /// No connection.
    pub async fn masters(&self) -> Result<Vec<Node>, TargetError> {
        let masters = Node::masters(&self.place, self.topology).await;
        masters.map_err(|source| TargetError::Connect { place: self.place.display().to_owned(), source })
    }

    /// The journal of a run on the masters of this moment.
    ///
    /// # Errors
    /// No connection.
    pub async fn journal(&self, run: i64) -> Result<Journal, TargetError> {
        Ok(Journal::new(&self.prefix, run, &self.masters().await?))
    }

    /// Whether a session can live here, and in which group of sessions a call may put it: `None` for not at all. Outside a
    /// cluster all sessions are of one group.
    pub fn group(&self, client: &str) -> Option<u16> {
        match self.topology {
            Topology::Cluster => self.prefix.slot(client),
            Topology::Standalone | Topology::Sentinel => Some(0),
        }
    }

    /// Between two steps of something long: whether a person wants to stop.
    ///
    /// # Errors
    /// [`TargetError::Stopped`] when so.
    pub fn check_stop(&self) -> Result<(), TargetError> {
        if self.patience.stop.is_cancelled() { Err(TargetError::Stopped) } else { Ok(()) }
    }

    /// What the deployment is.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// The addresses and the database, without secrets; the same text means the same place.
    pub fn identity(&self) -> String {
        format!("{} database {} prefix {:?}", self.place.display(), self.place.database(), self.prefix.as_str())
    }
}
