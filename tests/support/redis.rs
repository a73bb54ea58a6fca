//! Single Redis servers, with and without TLS.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::certificates::Certificates;
use super::guard::{Guard, StartError};
use super::keyspace::Keyspace;
use super::poll::free_port;

const READY: &str = "Ready to accept connections";

/// A server on 127.0.0.1 that holds nothing at its start and persists nothing (unless told to).
pub struct Redis {
    guard: Guard,
    arguments: Vec<String>,
    tls: bool,
    /// Where it listens.
    pub port: u16,
}

impl Redis {
    /// A fresh server with `maxmemory-policy noeviction`.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with arguments of `redis-server`, which win over the harness's.
    pub fn start_with(arguments: &[&str]) -> Self {
        Self::launch(Guard::new("KILL"), arguments, false)
    }

    /// A server that speaks TLS only, for 127.0.0.1 and localhost, under a certificate authority of its own.
    pub fn start_tls(arguments: &[&str]) -> Self {
        let guard = Guard::new("KILL");
        let made = Certificates::make(guard.path());
        let files = [made.server_certificate(), made.server_key(), made.authority()].map(|path| path.display().to_string());
        let mut all = vec!["--tls-auth-clients", "no"];
        all.extend(["--tls-cert-file", &files[0], "--tls-key-file", &files[1], "--tls-ca-cert-file", &files[2]]);
        all.extend(arguments);
        Self::launch(guard, &all, true)
    }

    fn launch(guard: Guard, arguments: &[&str], tls: bool) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        let mut server = Self { guard, arguments, tls, port: 0 };
        for _ in 0..20 {
            server.port = free_port();
            let command = server.command();
            match server.guard.start(&command, READY) {
                Ok(()) => return server,
                Err(StartError::PortTaken | StartError::StillInUse) => {}
            }
        }
        panic!("every port was taken");
    }

    /// Kills the server without warning.
    pub fn kill9(&mut self) {
        self.guard.stop("KILL");
    }

    /// Starts it again on the same port, with what it has persisted (nothing, by default).
    pub fn start_again(&mut self) {
        let command = self.command();
        let started = self.guard.start(&command, READY);
        assert!(started.is_ok(), "port {} was taken meanwhile", self.port);
    }

    /// `redis://127.0.0.1:port`, or `rediss://…`
    pub fn url(&self) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// The certificate authority of a TLS server, as a PEM file.
    pub fn authority(&self) -> PathBuf {
        assert!(self.tls, "no TLS server");
        Certificates::at(self.guard.path()).authority()
    }

    /// The pid of the running server.
    pub fn pid(&self) -> Option<u32> {
        self.guard.pid()
    }

    /// Where its files are; gone after drop.
    pub fn directory(&self) -> &Path {
        self.guard.path()
    }

    /// Runs `redis-cli` (raw output, no prompt); panics when the server answers with an error.
    pub fn cli(&self, arguments: &[&str]) -> String {
        self.try_cli(arguments).unwrap_or_else(|message| panic!("redis-cli {arguments:?}: {message}"))
    }

    /// The same with the server's error as the error.
    pub fn try_cli(&self, arguments: &[&str]) -> Result<String, String> {
        let authority = self.tls.then(|| self.authority());
        cli(self.port, authority.as_deref(), arguments)
    }

    /// A blocking connection (not for TLS servers: use [`Self::cli`]).
    pub fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Everything in database 0.
    pub fn keyspace(&self) -> Keyspace {
        Keyspace::read(&mut self.connection())
    }

    fn command(&self) -> Vec<String> {
        let port = self.port.to_string();
        let dir = self.guard.path().display().to_string();
        let mut words = vec!["redis-server"];
        if self.tls {
            words.extend(["--port", "0", "--tls-port", &port]);
        } else {
            words.extend(["--port", &port]);
        }
        words.extend(["--bind", "127.0.0.1", "--dir", &dir, "--save", "", "--appendonly", "no"]);
        words.extend(["--maxmemory-policy", "noeviction", "--daemonize", "no"]);
        words.into_iter().map(str::to_owned).chain(self.arguments.iter().cloned()).collect()
    }
}

/// Runs `redis-cli` on a port, with TLS when an authority is given; an error of the server is the error.
pub fn cli(port: u16, authority: Option<&Path>, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("redis-cli");
    command.args(["-e", "-h", "127.0.0.1", "-p", &port.to_string()]);
    if let Some(authority) = authority {
        command.arg("--tls").arg("--cacert").arg(authority);
    }
    let output = command.args(arguments).env_remove("REDISCLI_AUTH").stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    if output.status.success() { Ok(stdout) } else { Err(stdout + &String::from_utf8_lossy(&output.stderr)) }
}
