//! The real binary.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::guard::run;
use super::poll::wait_until;

/// The figures of a run's report that count something, by their names in the JSON.
pub const FIGURES: [&str; 11] = [
    "sessions",
    "rows_read",
    "messages_migrated",
    "expired_by_interval",
    "expired_by_ttl",
    "superseded",
    "trimmed",
    "quarantined",
    "orphan_messages",
    "invalid_contexts",
    "sessions_removed",
];

/// How long one run may take before the test kills it.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// All that the binary inherits: none of the variables it reads as settings.
const INHERITED: [&str; 5] = ["PATH", "HOME", "TMPDIR", "LANG", "LLVM_PROFILE_FILE"];

/// A call of the binary that is being put together.
pub struct Tool {
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it printed as its result.
    pub stdout: String,
    /// Everything else it printed.
    pub stderr: String,
}

/// A run that has not ended.
pub struct RunningTool {
    child: Child,
    stdout: Output,
    stderr: Output,
}

struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Tool {
    /// The binary without arguments, in a clean environment.
    pub fn new() -> Self {
        Self { arguments: Vec::new(), variables: Vec::new() }
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs it to its end; panics with its output after two minutes.
    pub fn run(self) -> Outcome {
        self.spawn().wait()
    }

    /// Starts it.
    pub fn spawn(self) -> RunningTool {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tbmq-migrate"));
        command.args(self.arguments).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(self.variables).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Output::collect(child.stdout.take().unwrap());
        let stderr = Output::collect(child.stderr.take().unwrap());
        RunningTool { child, stdout, stderr }
    }
}

impl Outcome {
    /// The result as JSON; panics with everything printed when it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON: {error}\n{self:#?}"))
    }
}

impl RunningTool {
    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: `INT`, `TERM`, `KILL`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        run(Command::new("kill").args(["-s", name, &self.child.id().to_string()]));
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has printed `text` on its standard error.
    pub fn wait_for_stderr(&self, text: &str) {
        wait_until(&format!("{text:?} on stderr"), || self.stderr.text().contains(text));
    }

    /// Waits for its end; panics with its output after two minutes.
    pub fn wait(mut self) -> Outcome {
        let deadline = Instant::now() + TIME_LIMIT;
        let status: ExitStatus = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                panic!("no end after {TIME_LIMIT:?}\n{}\n{}", self.stdout.finish(), self.stderr.finish());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Outcome { code: status.code(), stdout: self.stdout.finish(), stderr: self.stderr.finish() }
    }
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
        if std::thread::panicking() {
            eprintln!("--- stderr of the tool ---\n{}", self.stderr.text());
        }
    }
}

impl Output {
    fn collect(mut source: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 8192];
            loop {
                match source.read(&mut chunk).unwrap() {
                    0 => return,
                    count => sink.lock().unwrap().extend_from_slice(&chunk[..count]),
                }
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}
