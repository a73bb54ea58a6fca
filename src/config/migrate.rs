//! What one `migrate` run is told to do.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::error::{ConfigError, Problem};
use super::layers::Layers;
use super::setting::Setting;

/// What to do where session keys stand in Redis before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Stop: a 2.x broker may have used them.
    Refuse,
    /// Make Redis equal to PostgreSQL, sessions that are gone there included.
    Replace,
}

impl OnExisting {
    /// The words of `on-existing`, in the order of [`Self::ALL`].
    pub const NAMES: &[&str] = &["refuse", "replace"];
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Replace];
}

/// The checked settings of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrateConfig {
    /// Read and report, write nothing.
    pub dry_run: bool,
    /// Only these sessions, each once, in the order given, at least one; `None`: all.
    pub clients: Option<Vec<String>>,
    /// Ranges copied side by side, 1..=64.
    pub jobs: usize,
    /// Messages a second; `None`: unlimited.
    pub max_rate: Option<NonZeroU32>,
    /// What to do where session keys stand already.
    pub on_existing: OnExisting,
    /// Sessions that may be removed as unknown to PostgreSQL, whatever share that is; `None`: the usual guard.
    pub allow_removals: Option<u64>,
    /// Forget an interrupted run. Never with `stateless` or `dry_run`.
    pub restart: bool,
    /// Write nothing in PostgreSQL.
    pub stateless: bool,
    /// A chunk's transaction ends at the next session border after this time.
    pub chunk_time: Duration,
    /// How long a server may stay away.
    pub retry_timeout: Duration,
    /// Where each quarantined row is written, one JSON object a line.
    pub quarantine_file: Option<PathBuf>,
}

/// Why a client id or a list of them cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ClientProblem {
    #[error("{0} has more than 255 characters")]
    TooLong(IdPlace),
    #[error("{0} holds a NUL character")]
    Nul(IdPlace),
    #[error("{0} is not UTF-8")]
    NotUtf8(IdPlace),
    #[error("{} names no client", .0.display())]
    EmptyFile(PathBuf),
}

/// Where a client id stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdPlace {
    /// A value of `--client`; the first is 1.
    Option(usize),
    /// A line of the file; the first is 1.
    Line(PathBuf, usize),
}

impl std::fmt::Display for IdPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Option(number) => write!(f, "client id number {number}"),
            Self::Line(path, line) => write!(f, "{}:{line}", path.display()),
        }
    }
}

impl ClientProblem {
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooLong(_) | Self::Nul(_) | Self::NotUtf8(_) => {
                Some("TBMQ cannot have such a client: PostgreSQL keeps an id as text of at most 255 characters")
            }
            Self::EmptyFile(_) => Some("write one client id a line, or leave the option out for all"),
        }
    }
}

impl MigrateConfig {
    pub(super) fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let config = Self {
            dry_run: layers.flag(Setting::DryRun)?,
            clients: read_clients(layers)?,
            jobs: layers.set_integer(Setting::Jobs)?,
            max_rate: layers.integer(Setting::MaxRate)?.and_then(NonZeroU32::new),
            on_existing: layers.choice(Setting::OnExisting, &OnExisting::ALL)?,
            allow_removals: layers.integer(Setting::AllowRemovals)?,
            restart: layers.flag(Setting::Restart)?,
            stateless: layers.flag(Setting::Stateless)?,
            chunk_time: layers.duration(Setting::ChunkTime)?,
            retry_timeout: layers.duration(Setting::RetryTimeout)?,
            quarantine_file: layers.path(Setting::QuarantineFile)?,
        };
        restart_goes_with_state(layers, config.restart, config.stateless)?;
        Ok(config)
    }
}

/// On the command line alone this is a wrong usage, and clap refuses it; here one of the two comes from a file.
pub(super) fn restart_goes_with_state(layers: &Layers, restart: bool, stateless: bool) -> Result<(), ConfigError> {
    if restart && stateless {
        return Err(ConfigError::Conflict {
            one: layers.name_of(Setting::Restart),
            other: layers.name_of(Setting::Stateless),
            hint: "a stateless run keeps nothing that could be forgotten: leave one of them out",
        });
    }
    Ok(())
}

pub(super) fn read_clients(layers: &Layers) -> Result<Option<Vec<String>>, ConfigError> {
    let mut clients = Vec::new();
    // Not by `texts`: a NUL there is told with the number of its id.
    if let Some(given) = layers.get(Setting::Client) {
        for (index, id) in given.texts.iter().enumerate() {
            let id = check(id.clone(), || IdPlace::Option(index + 1)).map_err(|problem| layers.wrong(Setting::Client, problem))?;
            clients.push(id);
        }
    }
    let file = layers.path(Setting::ClientsFile)?;
    if let Some(path) = &file {
        let wrong = |problem: Problem| layers.wrong(Setting::ClientsFile, problem);
        let bytes = std::fs::read(path).map_err(|error| wrong(Problem::UnreadableFile { path: path.clone(), reason: error.kind() }))?;
        let ids = parse_lines(&bytes, path).map_err(|problem| wrong(problem.into()))?;
        clients.extend(ids);
    }
    let named = file.is_some() || layers.get(Setting::Client).is_some();
    Ok(named.then(|| without_repeats(clients)))
}

/// One id a line, byte for byte but for the line end; empty lines are none.
fn parse_lines(bytes: &[u8], path: &std::path::Path) -> Result<Vec<String>, ClientProblem> {
    let mut ids = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let place = || IdPlace::Line(path.into(), index + 1);
        let id = String::from_utf8(line.to_vec()).map_err(|_| ClientProblem::NotUtf8(place()))?;
        ids.push(check(id, place)?);
    }
    if ids.is_empty() { Err(ClientProblem::EmptyFile(path.into())) } else { Ok(ids) }
}

fn check(id: String, place: impl Fn() -> IdPlace) -> Result<String, ClientProblem> {
    /// The width of `client_id` in both tables.
    const LONGEST_ID_CHARACTERS: usize = 255;
    if id.chars().count() > LONGEST_ID_CHARACTERS {
        return Err(ClientProblem::TooLong(place()));
    }
    if id.contains('\0') { Err(ClientProblem::Nul(place())) } else { Ok(id) }
}

fn without_repeats(ids: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::origin::{Origin, Place};
    use std::path::Path;

    fn layers(settings: &[(Setting, &[&str])]) -> Layers {
        settings.iter().fold(Layers::defaults(), |mut layers, (setting, texts)| {
            layers.set(*setting, texts.iter().map(|text| (*text).to_owned()).collect(), Origin::Option);
            layers
        })
    }

    fn read(settings: &[(Setting, &[&str])]) -> Result<MigrateConfig, ConfigError> {
        MigrateConfig::read(&layers(settings))
    }

    #[test]
    fn the_defaults_are_those_of_the_manual() {
        let expected = MigrateConfig {
            dry_run: false,
            clients: None,
            jobs: 4,
            max_rate: None,
            on_existing: OnExisting::Refuse,
            allow_removals: None,
            restart: false,
            stateless: false,
            chunk_time: Duration::from_secs(30),
            retry_timeout: Duration::from_secs(300),
            quarantine_file: None,
        };
        assert_eq!(read(&[]).unwrap(), expected);
    }

    #[test]
    fn clients_of_both_options_are_kept_once_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ids");
        std::fs::write(&file, "b \r\n\n\"c\"\na\nb \n d").unwrap();
        let clients = read(&[(Setting::Client, &["z", "a", "", "z"]), (Setting::ClientsFile, &[file.to_str().unwrap()])]).unwrap().clients;
        assert_eq!(clients.unwrap(), ["z", "a", "", "b ", "\"c\"", " d"]);
    }

    #[test]
    fn an_id_is_measured_in_characters() {
        let (fits, too_long) = ("é".repeat(255), "é".repeat(256));
        assert_eq!(read(&[(Setting::Client, &[&fits])]).unwrap().clients, Some(vec![fits]));
        let error = read(&[(Setting::Client, &["a", &too_long])]).unwrap_err();
        assert_eq!(error.to_string(), "--client: client id number 2 has more than 255 characters");
        assert!(error.hint().unwrap().contains("255"));
    }

    #[test]
    fn an_id_that_postgresql_cannot_hold_names_its_line() {
        let parse = |bytes: &[u8]| parse_lines(bytes, Path::new("ids")).unwrap_err().to_string();
        assert_eq!(parse(b"a\nb\0\n"), "ids:2 holds a NUL character");
        assert_eq!(parse(b"a\n\n\xff\n"), "ids:3 is not UTF-8");
        assert_eq!(parse(b"\n\r\n"), "ids names no client");
    }

    #[test]
    fn a_file_of_clients_that_is_not_there_is_named() {
        let error = read(&[(Setting::ClientsFile, &["/no/ids"])]).unwrap_err();
        assert_eq!(error.to_string(), "--clients-file: cannot read /no/ids: entity not found");
    }

    #[test]
    fn numbers_and_times_out_of_bounds_say_the_bounds() {
        for (setting, text, expected) in [
            (Setting::Jobs, "0", "--jobs: 0 is not between 1 and 64"),
            (Setting::Jobs, "65", "--jobs: 65 is not between 1 and 64"),
            (Setting::Jobs, "-1", "--jobs: -1 is not between 1 and 64"),
            (Setting::Jobs, "four", "--jobs: \"four\" is not a whole number"),
            (Setting::MaxRate, "0", "--max-rate: 0 is not between 1 and 4294967295"),
            (Setting::MaxRate, "4294967296", "--max-rate: 4294967296 is not between 1 and 4294967295"),
            (Setting::ChunkTime, "0s", "--chunk-time: \"0s\" is not between 1 s and 3600 s, in whole seconds"),
            (Setting::ChunkTime, "1500ms", "--chunk-time: \"1500ms\" is not between 1 s and 3600 s, in whole seconds"),
            (Setting::RetryTimeout, "2d", "--retry-timeout: \"2d\" is not between 0 s and 86400 s, in whole seconds"),
            (Setting::ChunkTime, "soon", "--chunk-time: \"soon\" is not a duration"),
            (Setting::ChunkTime, "", "--chunk-time: is empty"),
            (Setting::OnExisting, "replce", "--on-existing: \"replce\" is none of refuse, replace"),
        ] {
            assert_eq!(read(&[(setting, &[text])]).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_duration_without_a_unit_says_how_to_write_it() {
        let error = read(&[(Setting::ChunkTime, &["30"])]).unwrap_err();
        assert_eq!(error.to_string(), "--chunk-time: \"30\" has no unit");
        assert_eq!(error.hint().as_deref(), Some("say the unit, as in 30s"));
    }

    #[test]
    fn restart_with_a_stateless_of_the_config_file_names_both() {
        let mut layers = layers(&[(Setting::Restart, &["true"])]);
        layers.set(Setting::Stateless, vec!["true".into()], Origin::ConfigFile(Place { path: "t.toml".into(), line: 2 }));
        let error = MigrateConfig::read(&layers).unwrap_err();
        assert_eq!(error.to_string(), "--restart does not go with stateless (t.toml:2)");
        assert!(error.hint().unwrap().contains("leave one of them out"));
    }
}
