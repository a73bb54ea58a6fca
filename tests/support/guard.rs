//! A temporary directory and at most one server in it, both gone when the test process is.
//!
//! The owner is a shell whose standard input is a pipe held by this process. When the pipe closes, on drop or because
//! the process was killed, the shell stops its child and removes the directory. The shell leads a process group of its
//! own, so that Ctrl-C at the terminal does not hit it before its work is done. (PR_SET_PDEATHSIG would not do: it
//! fires when the *thread* that started the child ends, and each test is a thread.)

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::poll::PATIENCE;

/// Reads `start` or the name of a signal a line; answers with the pid or `gone`. The child's parent is the shell, so
/// a pid it signals can never have been given to another process.
const WATCHDOG: &str = r#"
trap '' PIPE
dir=$1 last=$2 pid=
stop() {
    [ -n "$pid" ] || return 0
    kill -s "$1" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pid=
}
while read -r word; do
    case $word in
        start) sh "$dir/command" </dev/null >>"$dir/log" 2>&1 & pid=$!; echo "$pid" ;;
        *) stop "$word"; echo gone ;;
    esac
done
stop "$last"
rm -rf "$dir"
"#;

/// A guarded directory; see the module.
pub struct Guard {
    dir: PathBuf,
    watchdog: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pid: Option<u32>,
}

/// Why a server did not become ready.
pub enum StartError {
    /// Somebody else got its port first: try another one.
    PortTaken,
    /// Children of a killed server still end: try again.
    StillInUse,
}

impl Guard {
    /// Makes the directory. `last_signal` is what stops the server at the end: `KILL`, or gentler where it has
    /// children or shared memory of its own.
    pub fn new(last_signal: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("tbmq-migrate-test-").tempdir().unwrap().keep();
        // The PostgreSQL server may run as another user.
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(&dir)
            .arg(last_signal)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let orders = watchdog.stdin.take();
        let answers = BufReader::new(watchdog.stdout.take().unwrap());
        Self { dir, watchdog, orders, answers, pid: None }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The pid of the running server.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Starts `command` and waits until its log says `ready`.
    ///
    /// Panics with the log when the server ends for another reason than a [`StartError`], or takes too long.
    pub fn start(&mut self, command: &[String], ready: &str) -> Result<(), StartError> {
        assert!(self.pid.is_none(), "a server runs here already");
        let words: Vec<String> = command.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        std::fs::write(self.dir.join("command"), format!("exec {}\n", words.join(" "))).unwrap();
        let offset = self.log().len();
        self.pid = Some(self.order("start").parse().unwrap());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = self.log();
            let recent = &log[offset.min(log.len())..];
            if recent.contains(ready) {
                return Ok(());
            }
            let ended = self.has_ended();
            if ended {
                self.stop("KILL");
                let log = self.log();
                let last_words = &log[offset.min(log.len())..];
                if last_words.contains("Address already in use") {
                    return Err(StartError::PortTaken);
                }
                if last_words.contains("pre-existing shared memory block") {
                    return Err(StartError::StillInUse);
                }
            }
            let failed = ended || Instant::now() > deadline;
            assert!(!failed, "the server does not start: {command:?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Whether the server has ended by itself: the watchdog has not asked for its status yet, so it is a zombie.
    fn has_ended(&self) -> bool {
        let path = format!("/proc/{}/stat", self.pid.unwrap());
        std::fs::read_to_string(path).map_or(true, |stat| stat.contains(") Z "))
    }

    /// Sends a signal (`INT`, `KILL`, …) that ends the server, and waits for that end.
    pub fn stop(&mut self, signal: &str) {
        let answer = self.order(signal);
        assert_eq!(answer, "gone");
        self.pid = None;
    }

    /// What the server has printed.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn order(&mut self, word: &str) -> String {
        writeln!(self.orders.as_mut().unwrap(), "{word}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(40)..].join("\n");
            eprintln!("--- end of the log in {} ---\n{tail}", self.dir.display());
        }
        drop(self.orders.take());
        if let Err(error) = self.watchdog.wait() {
            eprintln!("the watchdog of {} is lost: {error}", self.dir.display());
        }
    }
}

/// Runs a program to its end and gives its standard output; panics with its standard error when it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
