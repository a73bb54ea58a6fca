//! The table of every setting: its names in each layer, its kind, its default and its help stand here once.
//!
//! The command line, the environment, the config file, the TBMQ env files, the output of `config` and the error texts are all read from it,
//! so a name cannot differ between two of them. A setting is added by one variant and one row.

use crate::config::{migrate::OnExisting, output::ColorChoice, output::LogFormat, redis::RedisMode, verify::Level};
use crate::model::{Rules, TopicField};

/// One setting. The order is that of [`SETTINGS`], of `--help` and of the output of `config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the row of the table says what each is")]
pub enum Setting {
    PostgresUrl,
    PostgresSchema,
    RedisUrl,
    RedisMode,
    RedisSentinelMaster,
    RedisSentinelPassword,
    RedisCaCert,
    RedisClientCert,
    RedisClientKey,
    KeyPrefix,
    MessageLimit,
    DefaultTtl,
    TopicField,
    MaxPayloadBytes,
    Config,
    TbmqEnv,
    Json,
    Quiet,
    Verbose,
    LogFormat,
    NoProgress,
    Color,
    DryRun,
    Client,
    ClientsFile,
    Jobs,
    MaxRate,
    OnExisting,
    AllowRemovals,
    Restart,
    Stateless,
    ChunkTime,
    RetryTimeout,
    QuarantineFile,
    Level,
    Sample,
    SettleTimeout,
    DeadlineTolerance,
    Report,
    RedisOnly,
    Execute,
    DeleteExtra,
    ShowPayload,
}

/// A command that has options of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the words of the command line")]
pub enum Command {
    Migrate,
    Verify,
    Repair,
    Explain,
}

/// What the text of a setting must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// The address of a server; shown without its password.
    PostgresUrl,
    /// One or several addresses; shown without their passwords.
    RedisUrls,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number, both bounds allowed.
    Integer {
        /// The lowest value allowed.
        min: u64,
        /// The highest value allowed.
        max: u64,
    },
    /// Whole seconds, both bounds allowed, written with a unit (`30s`, `5min`, `7d`). A variable holds bare seconds, as the broker writes them.
    Duration {
        /// The shortest, in seconds.
        min_seconds: u64,
        /// The longest, in seconds.
        max_seconds: u64,
    },
    /// The path of a file.
    Path,
    /// Paths of files, in the order given.
    Paths,
    /// Client ids, in the order given.
    ClientIds,
    /// A part of the whole as a percentage, from 0.01% to 100%.
    Share,
    /// Off unless given.
    Flag,
    /// A flag that counts how often it was given.
    Count,
}

/// The group under which `--help` lists an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Where to read.
    Source,
    /// Where to write.
    Target,
    /// What a row becomes.
    Data,
    /// Where settings are read from.
    Files,
    /// What is printed.
    Output,
    /// What one run of a command is told to do.
    Run,
}

impl Group {
    /// The heading in `--help`.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Source => "Source (PostgreSQL)",
            Self::Target => "Target (Redis)",
            Self::Data => "Data",
            Self::Files => "Settings from files",
            Self::Output => "Output",
            Self::Run => "The run",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The setting that this row is about.
    pub setting: Setting,
    /// The long option without its dashes, and the key in the config file.
    pub name: &'static str,
    /// The short option.
    pub short: Option<char>,
    /// What the value must be.
    pub kind: Kind,
    /// The group in `--help`.
    pub group: Group,
    /// The commands that take it; none named: every command.
    pub commands: &'static [Command],
    /// Whether the config file may hold it. A decision about one run (what to remove, what to forget) must not outlive that run in a file.
    pub in_file: bool,
    /// The environment variable.
    pub variable: Option<&'static str>,
    /// What the variable means when it is there and not empty, whatever it holds (`NO_COLOR`).
    pub variable_means: Option<&'static str>,
    /// The broker's own name, in a TBMQ env file. The address of Redis has several: see `tbmq_env`.
    pub broker_variable: Option<&'static str>,
    /// An empty text is a value of its own and not "not given".
    pub may_be_empty: bool,
    /// Settings that make no sense beside this one.
    pub excludes: &'static [Setting],
    /// The value where no layer has one, as it would be given.
    pub default: Option<&'static str>,
    /// The placeholder in `--help`.
    pub placeholder: &'static str,
    /// The sentence in `--help`.
    pub help: &'static str,
}

impl Spec {
    const fn new(setting: Setting, name: &'static str, kind: Kind, group: Group, placeholder: &'static str, help: &'static str) -> Self {
        Self {
            setting,
            name,
            short: None,
            kind,
            group,
            commands: &[],
            in_file: true,
            variable: None,
            variable_means: None,
            broker_variable: None,
            may_be_empty: false,
            excludes: &[],
            default: None,
            placeholder,
            help,
        }
    }

    const fn flag(setting: Setting, name: &'static str, group: Group, help: &'static str) -> Self {
        Self::new(setting, name, Kind::Flag, group, "", help).default("false")
    }

    const fn of(self, commands: &'static [Command]) -> Self {
        Self { commands, ..self }
    }

    const fn command_line_only(self) -> Self {
        Self { in_file: false, ..self }
    }

    const fn variable(self, name: &'static str) -> Self {
        Self { variable: Some(name), ..self }
    }

    const fn variable_means(self, meaning: &'static str) -> Self {
        Self { variable_means: Some(meaning), ..self }
    }

    const fn broker_variable(self, name: &'static str) -> Self {
        Self { broker_variable: Some(name), ..self }
    }

    const fn excludes(self, others: &'static [Setting]) -> Self {
        Self { excludes: others, ..self }
    }

    const fn default(self, text: &'static str) -> Self {
        Self { default: Some(text), ..self }
    }

    /// Whether a command takes it as an option of its own.
    pub fn is_of(&self, command: Command) -> bool {
        self.commands.contains(&command)
    }

    /// Whether it may be given several times.
    pub fn is_list(&self) -> bool {
        matches!(self.kind, Kind::RedisUrls | Kind::Paths | Kind::ClientIds)
    }
}

impl Setting {
    /// The row of this setting.
    pub fn spec(self) -> &'static Spec {
        &SETTINGS[self as usize]
    }
}

const LIMIT_VARIABLE: &str = "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_LIMIT";
const TTL_VARIABLE: &str = "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL";

/// The broker keeps a TTL as a 32-bit count of seconds.
const TTL_CEILING_SECONDS: u64 = i32::MAX as u64;
/// A chunk's transaction holds back the clean-up of dead rows in PostgreSQL for as long as it is open.
const CHUNK_TIME_CEILING_SECONDS: u64 = 3_600;
/// A server that is away for longer than a day does not come back by waiting.
const RETRY_CEILING_SECONDS: u64 = 86_400;

/// A session that is written to without a pause for longer than this cannot be compared by waiting.
const SETTLE_CEILING_SECONDS: u64 = 3_600;
/// A deadline that is off by more than a day is wrong by any measure.
const TOLERANCE_CEILING_SECONDS: u64 = 86_400;

const MIGRATE: &[Command] = &[Command::Migrate];
const VERIFY: &[Command] = &[Command::Verify];
const REPAIR: &[Command] = &[Command::Repair];
/// Those that go over all sessions or over named ones.
const SESSIONS: &[Command] = &[Command::Migrate, Command::Verify];
const WRITERS_AND_VERIFY: &[Command] = &[Command::Migrate, Command::Verify, Command::Repair];
const COMPARERS: &[Command] = &[Command::Verify, Command::Repair];
const ALL_COMPARERS: &[Command] = &[Command::Verify, Command::Repair, Command::Explain];
const SHOWERS: &[Command] = &[Command::Verify, Command::Explain];

/// Every setting, in the order of [`Setting`].
#[rustfmt::skip] // A row stays a row.
pub static SETTINGS: [Spec; 43] = [
    Spec::new(Setting::PostgresUrl, "postgres-url", Kind::PostgresUrl, Group::Source, "URL",
        "TBMQ 1.x: postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…, libpq's parameters included, or jdbc:postgresql://… as TBMQ writes it")
        .variable("DATABASE_URL").broker_variable("SPRING_DATASOURCE_URL"),
    Spec::new(Setting::PostgresSchema, "postgres-schema", Kind::Text, Group::Source, "NAME",
        "The schema of the two tables; without it the search path decides"),
    Spec::new(Setting::RedisUrl, "redis-url", Kind::RedisUrls, Group::Target, "URL",
        "TBMQ 2.x: redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS; several (repeated, or by commas) are cluster seeds, or sentinels")
        .variable("REDIS_URL"),
    Spec::new(Setting::RedisMode, "redis-mode", Kind::Choice(RedisMode::NAMES), Group::Target, "MODE",
        "What kind of Redis it is; `auto` asks the server")
        .broker_variable("REDIS_CONNECTION_TYPE").default("auto"),
    Spec::new(Setting::RedisSentinelMaster, "redis-sentinel-master", Kind::Text, Group::Target, "NAME",
        "The name under which the sentinels know the master; the URLs are then those of the sentinels")
        .broker_variable("REDIS_MASTER"),
    Spec::new(Setting::RedisSentinelPassword, "redis-sentinel-password", Kind::Secret, Group::Target, "PASSWORD",
        "The password of the sentinels themselves. The config file and a TBMQ env file keep it out of the process list")
        .broker_variable("REDIS_SENTINEL_PASSWORD"),
    Spec::new(Setting::RedisCaCert, "redis-ca-cert", Kind::Path, Group::Target, "FILE",
        "Trust the authorities in this PEM file, and not those of the system"),
    Spec::new(Setting::RedisClientCert, "redis-client-cert", Kind::Path, Group::Target, "FILE",
        "Show Redis this PEM certificate"),
    Spec::new(Setting::RedisClientKey, "redis-client-key", Kind::Path, Group::Target, "FILE",
        "The PEM key of --redis-client-cert"),
    Spec { may_be_empty: true, ..Spec::new(Setting::KeyPrefix, "key-prefix", Kind::Text, Group::Target, "TEXT",
        "The cache prefix of the broker, which every key begins with") }
        .variable("CACHE_PREFIX").broker_variable("CACHE_PREFIX").default(""),
    Spec::new(Setting::MessageLimit, "message-limit", Kind::Integer { min: 1, max: Rules::MESSAGE_LIMIT_CEILING as u64 }, Group::Data, "N",
        "A session keeps its newest N messages")
        .variable(LIMIT_VARIABLE).broker_variable(LIMIT_VARIABLE).default("10000"),
    Spec::new(Setting::DefaultTtl, "default-ttl", Kind::Duration { min_seconds: 1, max_seconds: TTL_CEILING_SECONDS }, Group::Data, "DURATION",
        "The life of a message that brings no expiry interval, and of every PUBREL. The variable holds seconds")
        .variable(TTL_VARIABLE).broker_variable(TTL_VARIABLE).default("7d"),
    Spec::new(Setting::TopicField, "topic-field", Kind::Choice(TOPIC_FIELD_NAMES), Group::Data, "NAME",
        "The JSON field of the topic: `topicName` for targets from 2.0.1 on, `topic` for 2.0.0")
        .default("topicName"),
    Spec::new(Setting::MaxPayloadBytes, "max-payload-bytes", Kind::Integer { min: 1, max: Rules::PAYLOAD_BYTES_CEILING as u64 }, Group::Data, "N",
        "Quarantine a message with a larger payload; the broker's JSON parser takes no more than the default")
        .default("15000000"),
    Spec::new(Setting::Config, "config", Kind::Path, Group::Files, "FILE",
        "A TOML file with the same names as the options")
        .variable("TBMQ_MIGRATE_CONFIG").command_line_only(),
    Spec::new(Setting::TbmqEnv, "tbmq-env", Kind::Paths, Group::Files, "FILE",
        "A TBMQ env file (KEY=value lines, the names of the broker's own settings); of several the later wins"),
    Spec::flag(Setting::Json, "json", Group::Output, "Print the result as one JSON document"),
    Spec { short: Some('q'), ..Spec::flag(Setting::Quiet, "quiet", Group::Output, "Log warnings and errors only") }
        .command_line_only().excludes(&[Setting::Verbose]),
    Spec { short: Some('v'), ..Spec::new(Setting::Verbose, "verbose", Kind::Count, Group::Output, "",
        "Log every batch; twice: every step") }.command_line_only().default("0"),
    Spec::new(Setting::LogFormat, "log-format", Kind::Choice(LogFormat::NAMES), Group::Output, "FORMAT",
        "The form of the log on stderr")
        .default("text"),
    Spec::flag(Setting::NoProgress, "no-progress", Group::Output, "Show no progress; it is shown on a terminal only"),
    Spec::new(Setting::Color, "color", Kind::Choice(ColorChoice::NAMES), Group::Output, "WHEN",
        "Colour on stderr; `auto`: on a terminal. NO_COLOR means `never`")
        .variable("NO_COLOR").variable_means("never").default("auto"),
    Spec::flag(Setting::DryRun, "dry-run", Group::Run, "Read, decide and report; write nothing").of(MIGRATE).command_line_only(),
    Spec { may_be_empty: true, ..Spec::new(Setting::Client, "client", Kind::ClientIds, Group::Run, "ID",
        "Only this session; may be given several times") }.of(SESSIONS).command_line_only(),
    Spec::new(Setting::ClientsFile, "clients-file", Kind::Path, Group::Run, "FILE",
        "Only the sessions in this file, one client id a line, taken byte for byte").of(SESSIONS).command_line_only(),
    Spec::new(Setting::Jobs, "jobs", Kind::Integer { min: 1, max: 64 }, Group::Run, "N",
        "Work on this many ranges side by side")
        .of(SESSIONS).default("4"),
    Spec::new(Setting::MaxRate, "max-rate", Kind::Integer { min: 1, max: u32::MAX as u64 }, Group::Run, "N",
        "At most this many messages a second; without it as fast as both servers allow").of(WRITERS_AND_VERIFY),
    Spec::new(Setting::OnExisting, "on-existing", Kind::Choice(OnExisting::NAMES), Group::Run, "WHAT",
        "Where session keys stand in Redis already: refuse, or make Redis equal to PostgreSQL")
        .of(MIGRATE).default("refuse"),
    Spec::new(Setting::AllowRemovals, "allow-removals", Kind::Integer { min: 0, max: u64::MAX }, Group::Run, "N",
        "With `--on-existing replace`: remove up to N sessions that PostgreSQL does not know, however many that is of all")
        .of(MIGRATE).command_line_only(),
    Spec::flag(Setting::Restart, "restart", Group::Run, "Forget an interrupted run and begin again")
        .of(SESSIONS).command_line_only().excludes(&[Setting::Stateless, Setting::DryRun]),
    Spec::flag(Setting::Stateless, "stateless", Group::Run, "Write nothing in PostgreSQL; an interrupted run then begins again").of(SESSIONS),
    Spec::new(Setting::ChunkTime, "chunk-time", Kind::Duration { min_seconds: 1, max_seconds: CHUNK_TIME_CEILING_SECONDS }, Group::Run,
        "DURATION",
        "End a transaction in PostgreSQL at the next session after this time")
        .of(WRITERS_AND_VERIFY).default("30s"),
    Spec::new(Setting::RetryTimeout, "retry-timeout", Kind::Duration { min_seconds: 0, max_seconds: RETRY_CEILING_SECONDS }, Group::Run,
        "DURATION",
        "Give up when a server stays away, or Redis stays full, for this long")
        .of(WRITERS_AND_VERIFY).default("5min"),
    Spec::new(Setting::QuarantineFile, "quarantine-file", Kind::Path, Group::Run, "FILE",
        "Write every quarantined row to this file, one JSON object a line").of(MIGRATE),
    Spec::new(Setting::Level, "level", Kind::Choice(Level::NAMES), Group::Run, "LEVEL",
        "Compare everything, or only how many messages each session has and its last packet id")
        .of(VERIFY).default("full"),
    Spec::new(Setting::Sample, "sample", Kind::Share, Group::Run, "PERCENT",
        "Compare only this share of the sessions, such as 5%, chosen by a hash of the client id: the same ones each time")
        .of(VERIFY).command_line_only().excludes(&[Setting::Client, Setting::ClientsFile]),
    Spec::new(Setting::SettleTimeout, "settle-timeout", Kind::Duration { min_seconds: 0, max_seconds: SETTLE_CEILING_SECONDS }, Group::Run,
        "DURATION",
        "Give up on a session that differs and never holds still for this long: it counts as not checked")
        .of(COMPARERS).default("30s"),
    Spec::new(Setting::DeadlineTolerance, "deadline-tolerance", Kind::Duration { min_seconds: 0, max_seconds: TOLERANCE_CEILING_SECONDS },
        Group::Run, "DURATION",
        "A deadline may be off by this much")
        .of(ALL_COMPARERS).default("1s"),
    Spec::new(Setting::Report, "report", Kind::Path, Group::Run, "FILE",
        "The findings, one JSON object a line: `verify` writes the file, `repair` works by it").of(COMPARERS).command_line_only(),
    Spec::flag(Setting::RedisOnly, "redis-only", Group::Run, "Look at the sessions of Redis by themselves, without PostgreSQL")
        .of(VERIFY).command_line_only()
        .excludes(&[Setting::Client, Setting::ClientsFile, Setting::Sample, Setting::Level, Setting::Restart, Setting::Stateless]),
    Spec::flag(Setting::Execute, "execute", Group::Run, "Do what the plan says").of(REPAIR).command_line_only(),
    Spec::flag(Setting::DeleteExtra, "delete-extra", Group::Run, "Also remove sessions that PostgreSQL does not know").of(REPAIR).command_line_only(),
    Spec::flag(Setting::ShowPayload, "show-payload", Group::Run, "Show payloads, and not only their size and digest")
        .of(SHOWERS).command_line_only(),
];

/// The names of [`TOPIC_FIELDS`], in its order.
const TOPIC_FIELD_NAMES: &[&str] = &["topicName", "topic"];
/// What `topic-field` may choose.
pub(super) const TOPIC_FIELDS: [TopicField; 2] = [TopicField::TopicName, TopicField::Topic];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, spec) in SETTINGS.iter().enumerate() {
            assert_eq!(spec.setting as usize, index, "{}", spec.name);
        }
    }

    #[test]
    fn no_name_is_used_twice() {
        let mut names: Vec<_> = SETTINGS.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SETTINGS.len());
    }

    #[test]
    fn every_choice_has_its_default_among_its_words() {
        for spec in &SETTINGS {
            if let Kind::Choice(words) = spec.kind {
                assert!(words.contains(&spec.default.unwrap_or_default()), "{}", spec.name);
            }
        }
    }
}
