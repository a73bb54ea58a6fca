//! A master, a replica, and three sentinels that watch them.

use super::guard::{Guard, StartError};
use super::poll::{free_port, wait_until};
use super::redis::Redis;

const MASTER: &str = "tbmq-master";

/// The whole group.
pub struct Sentinel {
    /// The two data servers; the first one is the master at the start.
    pub servers: Vec<Redis>,
    sentinels: Vec<Watcher>,
}

struct Watcher {
    guard: Guard,
    port: u16,
}

impl Sentinel {
    /// Starts all five and waits until the sentinels know each other and the replica is in step.
    pub fn start() -> Self {
        let master = Redis::start_with(&["--repl-diskless-sync-delay", "0"]);
        let port = master.port.to_string();
        let replica = Redis::start_with(&["--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", &port]);
        wait_until("the replica to be in step", || replica.cli(&["INFO", "replication"]).contains("master_link_status:up"));
        let sentinels = (0..3).map(|_| Watcher::start(master.port)).collect();
        let group = Self { servers: vec![master, replica], sentinels };
        for watcher in &group.sentinels {
            wait_until("the sentinels to know each other", || {
                let state = watcher.cli(&["SENTINEL", "MASTER", MASTER]);
                let value = |name: &str| state.lines().skip_while(|line| *line != name).nth(1).map(str::to_owned);
                value("num-other-sentinels").as_deref() == Some("2") && value("num-slaves").as_deref() == Some("1")
            });
        }
        group
    }

    /// The name under which the sentinels know the master.
    pub fn master_name(&self) -> &'static str {
        MASTER
    }

    /// `redis://127.0.0.1:port` of each sentinel.
    pub fn sentinel_urls(&self) -> Vec<String> {
        self.sentinels.iter().map(|watcher| format!("redis://127.0.0.1:{}", watcher.port)).collect()
    }

    /// The index in `servers` of the master that the first sentinel names.
    pub fn master(&self) -> usize {
        let answer = self.sentinels[0].cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]);
        let port: u16 = answer.lines().nth(1).unwrap().parse().unwrap();
        self.servers.iter().position(|server| server.port == port).unwrap()
    }

    /// Kills the master; returns when every sentinel names the other server and that one takes writes.
    pub fn kill_master(&mut self) {
        let old = self.master();
        self.servers[old].kill9();
        self.wait_for_master(1 - old);
    }

    /// Makes the sentinels change the master in order; the old one becomes a replica.
    pub fn failover(&self) {
        let old = self.master();
        wait_until("the sentinels to accept a failover", || self.sentinels[0].try_cli(&["SENTINEL", "FAILOVER", MASTER]).is_ok());
        self.wait_for_master(1 - old);
    }

    fn wait_for_master(&self, server: usize) {
        let port = self.servers[server].port.to_string();
        for watcher in &self.sentinels {
            wait_until("the sentinels to name the next master", || {
                watcher.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).lines().nth(1) == Some(port.as_str())
            });
        }
        wait_until("the next master to take writes", || self.servers[server].cli(&["ROLE"]).starts_with("master"));
    }
}

impl Watcher {
    fn start(master_port: u16) -> Self {
        let mut guard = Guard::new("KILL");
        let file = guard.path().join("sentinel.conf");
        let dir = guard.path().display().to_string();
        for _ in 0..20 {
            let port = free_port();
            let config = format!(
                "port {port}\nbind 127.0.0.1\ndir {dir}\n\
                 sentinel monitor {MASTER} 127.0.0.1 {master_port} 2\n\
                 sentinel down-after-milliseconds {MASTER} 1000\n\
                 sentinel failover-timeout {MASTER} 5000\n"
            );
            std::fs::write(&file, config).unwrap();
            let command = ["redis-server".to_owned(), file.display().to_string(), "--sentinel".to_owned()];
            match guard.start(&command, "+monitor master") {
                Ok(()) => return Self { guard, port },
                Err(StartError::PortTaken | StartError::StillInUse) => {}
            }
        }
        panic!("every port was taken");
    }

    fn cli(&self, arguments: &[&str]) -> String {
        self.try_cli(arguments).unwrap_or_else(|message| panic!("redis-cli {arguments:?}: {message}"))
    }

    fn try_cli(&self, arguments: &[&str]) -> Result<String, String> {
        super::redis::cli(self.port, None, arguments)
    }
}
