//! A Redis Cluster of three masters.

use super::keyspace::Keyspace;
use super::poll::{free_port, wait_until};
use super::redis::Redis;

const SLOTS: u16 = 16_384;

/// Three masters, each with a third of the slots.
pub struct RedisCluster {
    /// Its nodes, in slot order at the start.
    pub nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts the nodes and waits until each of them calls the whole cluster well (two seconds: a master that has just
    /// started waits that long by itself before it takes writes).
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with arguments of `redis-server` for every node.
    pub fn start_with(arguments: &[&str]) -> Self {
        let mut buses = Vec::new();
        let nodes: Vec<Redis> = (0..3)
            .map(|_| {
                let bus = free_port().to_string();
                let mut all = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", &bus];
                all.extend(arguments);
                let node = Redis::start_with(&all);
                buses.push(bus);
                node
            })
            .collect();
        let share = SLOTS.div_ceil(3);
        for (number, node) in (0_u16..).zip(&nodes) {
            let first = (number * share).to_string();
            let last = ((number + 1) * share).min(SLOTS) - 1;
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &last.to_string()]);
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
        }
        for (node, bus) in nodes.iter().zip(&buses).skip(1) {
            nodes[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), bus]);
        }
        let cluster = Self { nodes };
        cluster.wait_until_well();
        cluster
    }

    /// Waits until every node sees all slots served and all nodes.
    pub fn wait_until_well(&self) {
        let wanted = ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"];
        for node in &self.nodes {
            wait_until("the cluster to be well", || {
                let info = node.cli(&["CLUSTER", "INFO"]);
                wanted.iter().all(|line| info.contains(line))
            });
        }
    }

    /// The address of each node.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// `redis-cli` on one node.
    pub fn cli(&self, node: usize, arguments: &[&str]) -> String {
        self.nodes[node].cli(arguments)
    }

    /// The slot of a key, by the server.
    pub fn slot(&self, key: &str) -> u16 {
        self.cli(0, &["CLUSTER", "KEYSLOT", key]).parse().unwrap()
    }

    /// The index of the node that owns a slot, in its own view.
    pub fn owner(&self, slot: u16) -> usize {
        let owns = |node: &Redis| {
            let own = node.cli(&["CLUSTER", "NODES"]);
            let line = own.lines().find(|line| line.contains("myself")).unwrap().to_owned();
            line.split_whitespace().skip(8).filter(|range| !range.starts_with('[')).any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                (first.parse::<u16>().unwrap()..=last.parse().unwrap()).contains(&slot)
            })
        };
        self.nodes.iter().position(owns).unwrap()
    }

    /// Begins to move a slot: its keys stay where they are for the moment.
    pub fn begin_migration(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.cli(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.cli(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves some keys of a slot in migration.
    pub fn move_keys(&self, keys: &[&str], from: usize, to: usize) {
        let port = self.nodes[to].port.to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys);
        self.cli(from, &words);
    }

    /// Moves the rest of a slot's keys and gives the slot to its new owner.
    pub fn finish_migration(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        loop {
            let mut connection = self.nodes[from].connection();
            let keys: Vec<Vec<u8>> = redis::cmd("CLUSTER").arg("GETKEYSINSLOT").arg(&slot).arg(100).query(&mut connection).unwrap();
            if keys.is_empty() {
                break;
            }
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(self.nodes[to].port).arg("").arg(0).arg(5000).arg("KEYS").arg(keys);
            migrate.exec(&mut connection).unwrap();
        }
        let owner = self.id(to);
        // The new owner first: no moment without one.
        for node in [to, from].into_iter().chain((0..self.nodes.len()).filter(|node| ![from, to].contains(node))) {
            self.cli(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &owner]);
        }
    }

    /// Everything on all masters.
    pub fn keyspace(&self) -> Keyspace {
        let mut all = Keyspace::default();
        for node in &self.nodes {
            all.merge(Keyspace::read_node(&mut node.connection()));
        }
        all
    }

    fn id(&self, node: usize) -> String {
        self.cli(node, &["CLUSTER", "MYID"])
    }
}
