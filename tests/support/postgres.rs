//! PostgreSQL servers and databases.
//!
//! A data directory is initialised once for each version and user, kept under the build's target directory, and copied
//! for each server: a start takes a tenth of a second.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::guard::{Guard, StartError, run};
use super::poll::{free_port, wait_until};

/// The superuser of every test server.
pub const USER: &str = "postgres";
/// Its password; the servers ask for it (SCRAM), so a wrong one is refused.
pub const PASSWORD: &str = "correct horse";
const PASSWORD_IN_URL: &str = "correct%20horse";
const READY: &str = "database system is ready to accept connections";
const READY_TO_READ: &str = "database system is ready to accept read-only connections";

/// The two tables as TBMQ 1.4 makes them.
const TABLES: &str = "
create table device_session_ctx (
    client_id varchar(255) not null primary key,
    last_updated_time bigint not null,
    last_serial_number bigint,
    last_packet_id int
);
create table device_publish_msg (
    client_id varchar(255) not null,
    serial_number bigint not null,
    topic varchar not null,
    time bigint not null,
    packet_id int,
    packet_type varchar(255),
    qos int not null,
    payload bytea not null,
    user_properties varchar,
    retain boolean,
    msg_expiry_interval int,
    payload_format_indicator int,
    content_type varchar(255),
    response_topic varchar(255),
    correlation_data bytea,
    primary key (client_id, serial_number)
);
create index idx_device_publish_msg_packet_id on device_publish_msg (client_id, packet_id);
";

/// A server on 127.0.0.1.
pub struct Postgres {
    guard: Guard,
    port: u16,
    settings: Vec<(String, String)>,
    databases: AtomicU32,
}

impl Postgres {
    /// The server that all tests of this process share; each takes a database of its own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A private server, for tests that stop it or need `settings` of their own (they win over the harness's).
    pub fn start(settings: &[(&str, &str)]) -> Self {
        let guard = Guard::new("QUIT");
        run(Command::new("cp").arg("-a").arg(template()).arg(guard.path().join("data")));
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::begin(guard, settings, READY)
    }

    fn begin(guard: Guard, settings: Vec<(String, String)>, ready: &str) -> Self {
        let mut server = Self { guard, port: 0, settings, databases: AtomicU32::new(0) };
        for _ in 0..20 {
            server.port = free_port();
            let command = server.command();
            match server.guard.start(&command, ready) {
                Ok(()) => return server,
                Err(StartError::PortTaken | StartError::StillInUse) => {}
            }
        }
        panic!("every port was taken");
    }

    /// A hot standby that follows this server.
    pub fn standby(&self) -> Self {
        let guard = Guard::new("QUIT");
        let data = guard.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mut words = as_server_user();
        if !words.is_empty() {
            run(Command::new("chown").arg("postgres:postgres").arg(&data));
        }
        words.push(binary("pg_basebackup").display().to_string());
        let source = format!("postgres://{USER}:{PASSWORD_IN_URL}@127.0.0.1:{}", self.port);
        words.extend(["-d", &source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-D"].map(str::to_owned));
        run(Command::new(&words[0]).args(&words[1..]).arg(&data).current_dir("/"));
        run(Command::new("chmod").arg("700").arg(&data));
        Self::begin(guard, self.settings.clone(), READY_TO_READ)
    }

    /// Stops the server in order, cutting off its clients.
    pub fn stop_fast(&mut self) {
        self.guard.stop("INT");
    }

    /// Kills the server without warning.
    pub fn kill9(&mut self) {
        self.guard.stop("KILL");
    }

    /// Starts the server again: same port, same data.
    pub fn start_again(&mut self) {
        let command = self.command();
        wait_until("the killed server's children to end", || match self.guard.start(&command, READY) {
            Ok(()) => true,
            Err(StartError::StillInUse) => false,
            Err(StartError::PortTaken) => panic!("port {} was taken meanwhile", self.port),
        });
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.guard.log()
    }

    /// Where its files are; gone after drop.
    pub fn directory(&self) -> &Path {
        self.guard.path()
    }

    /// The database `postgres`, for statements about the server.
    pub fn admin(&self) -> Database {
        self.existing("postgres")
    }

    /// A fresh, empty database.
    pub fn database(&self) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.admin().psql(&format!("create database {name}"));
        self.existing(&name)
    }

    fn existing(&self, name: &str) -> Database {
        let port = self.port;
        let url = format!("postgres://{USER}:{PASSWORD_IN_URL}@127.0.0.1:{port}/{name}");
        Database { url, name: name.to_owned(), port }
    }

    fn command(&self) -> Vec<String> {
        let mut words = as_server_user();
        words.push(binary("postgres").display().to_string());
        words.push("-D".to_owned());
        words.push(self.guard.path().join("data").display().to_string());
        let port = self.port.to_string();
        let ours = [
            ("listen_addresses", "127.0.0.1"),
            ("port", port.as_str()),
            ("unix_socket_directories", ""),
            ("fsync", "off"),
            ("wal_level", "logical"),
            ("max_connections", "200"),
            ("max_wal_senders", "20"),
            ("max_replication_slots", "20"),
            ("shared_buffers", "64MB"),
        ];
        let theirs = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in ours.into_iter().chain(theirs) {
            words.push("-c".to_owned());
            words.push(format!("{name}={value}"));
        }
        words
    }
}

/// One database of a server. Dropping it removes nothing: the server goes as a whole.
#[derive(Clone)]
pub struct Database {
    /// `postgres://user:password@127.0.0.1:port/name`
    pub url: String,
    /// Its name.
    pub name: String,
    /// The server's port.
    pub port: u16,
}

impl Database {
    /// Makes the two tables of TBMQ 1.4, empty.
    pub fn create_tables(&self) {
        self.psql(TABLES);
    }

    /// A connection pool.
    pub async fn pool(&self) -> sqlx::PgPool {
        sqlx::PgPool::connect(&self.url).await.unwrap()
    }

    /// Runs statements, each in its own transaction, and gives the rows unaligned (`a|b`), one a line.
    ///
    /// Panics with the server's message at the first that fails.
    pub fn psql(&self, sql: &str) -> String {
        self.try_psql(sql).unwrap_or_else(|message| panic!("psql on {}: {message}\n{sql}", self.name))
    }

    /// The same with the server's message as the error.
    pub fn try_psql(&self, sql: &str) -> Result<String, String> {
        self.feed(&["-f", "-"], sql.as_bytes())
    }

    /// Loads a CSV file as PostgreSQL writes it, its first line being the columns' names.
    pub fn load_csv(&self, table: &str, path: impl AsRef<Path>) {
        let path = path.as_ref();
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let columns = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let copy = format!("copy {table} ({}) from stdin with (format csv, header)", columns.trim());
        self.feed(&["-c", &copy], &bytes).unwrap_or_else(|message| panic!("{}: {message}", path.display()));
    }

    fn feed(&self, arguments: &[&str], input: &[u8]) -> Result<String, String> {
        let mut child = Command::new(client())
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url])
            .args(arguments)
            .env("PGOPTIONS", "-c client_min_messages=warning")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // Beside the reading of the output, or both sides may wait for each other. A psql that gave up closes the pipe.
        let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &input).is_ok());
        let output = child.wait_with_output().unwrap();
        let written = writer.join().unwrap();
        if output.status.success() {
            assert!(written, "psql did not read its input");
            Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }
}

/// PostgreSQL refuses to run as root: then its server runs as the user `postgres`.
fn as_server_user() -> Vec<String> {
    if !is_root() {
        return Vec::new();
    }
    ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"].map(str::to_owned).to_vec()
}

fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| run(Command::new("id").arg("-u")).trim() == "0")
}

/// A program of PostgreSQL: from the search path, else of the newest version in Debian's place.
fn binary(name: &str) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut versions: Vec<(u32, PathBuf)> =
            debian.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))).collect();
        versions.sort_by(|a, b| b.cmp(a));
        std::env::split_paths(&path)
            .chain(versions.into_iter().map(|(_, directory)| directory))
            // Through a link, which may stand alone: the other programs are beside the file itself.
            .find_map(|directory| Some(directory.join("initdb").canonicalize().ok()?.parent()?.to_owned()))
            .expect("no initdb in PATH nor in /usr/lib/postgresql/*/bin: install PostgreSQL")
    });
    DIRECTORY.get().unwrap().join(name)
}

/// `psql`: beside the server, or where only the client package put it (Debian's there is a slow wrapper).
fn client() -> PathBuf {
    let beside = binary("psql");
    if beside.is_file() { beside } else { PathBuf::from("psql") }
}

/// The initialised data directory of this version and user.
///
/// Made in a directory of its own and renamed into place: of several processes that make it at once, one wins.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let version = run(Command::new(binary("postgres")).arg("--version"));
        let version = version.split_whitespace().nth(2).unwrap();
        let user = run(Command::new("id").arg("-u"));
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-servers");
        let place = home.join(format!("postgres-{version}-uid{}", user.trim()));
        if place.is_dir() {
            return place;
        }
        std::fs::create_dir_all(&home).unwrap();
        // Initialised in the guarded directory: the server's user may have no way into the target directory.
        let guard = Guard::new("QUIT");
        let data = guard.path().join("data");
        let password = guard.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        std::fs::create_dir(&data).unwrap();
        let mut words = as_server_user();
        if !words.is_empty() {
            run(Command::new("chown").arg("postgres:postgres").arg(&data));
        }
        words.push(binary("initdb").display().to_string());
        run(Command::new(&words[0])
            .args(&words[1..])
            .args(["-U", USER, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
            .arg("--pwfile")
            .arg(&password)
            .arg("-D")
            .arg(&data)
            .current_dir("/"));
        let draft = tempfile::Builder::new().prefix("draft-").tempdir_in(&home).unwrap();
        run(Command::new("cp").arg("-a").arg(&data).arg(draft.path().join("data")));
        if let Err(error) = std::fs::rename(draft.path().join("data"), &place) {
            assert!(place.is_dir(), "{}: {error}", place.display());
        }
        place
    })
}
