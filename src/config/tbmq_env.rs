//! The broker's own settings as a layer: TBMQ env files, `KEY=value` a line.
//!
//! The broker spells one address in several variables (host, port, database, password, …). Here they become the one address that the option
//! would take. They describe one server together: where a stronger layer gives the address, none of them is used, so that no password and no
//! topology of one server is tried on another.

use std::collections::BTreeMap;
use std::path::Path;

use super::address::{Host, encode};
use super::error::{ConfigError, Problem};
use super::layers::{Layers, from_variable, wrong};
use super::origin::{Origin, Place};
use super::redis::{RedisMode, RedisProblem};
use super::setting::{SETTINGS, Setting};

const DATABASE_USER: &str = "SPRING_DATASOURCE_USERNAME";
const DATABASE_PASSWORD: &str = "SPRING_DATASOURCE_PASSWORD";
const HOST: &str = "REDIS_HOST";
const PORT: &str = "REDIS_PORT";
const DB: &str = "REDIS_DB";
const PASSWORD: &str = "REDIS_PASSWORD";
const NODES: &str = "REDIS_NODES";
const SENTINELS: &str = "REDIS_SENTINELS";
/// The parts of an address, which are no settings by themselves.
const PARTS: [&str; 8] = [DATABASE_USER, DATABASE_PASSWORD, HOST, PORT, DB, PASSWORD, NODES, SENTINELS];
/// What the broker connects to when it is told only that Redis is a standalone server.
const BROKER_DEFAULT_HOST: &str = "localhost";

/// Why a line cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum LineProblem {
    #[error("is no line of an env file")]
    NoEquals,
    #[error("has a quote that does not end on the line")]
    OpenQuote,
    #[error("has text after the closing quote")]
    AfterQuote,
    #[error("refers to another variable by `${{…}}`")]
    Reference,
}

impl LineProblem {
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::NoEquals => "write NAME=value; a comment begins with #",
            Self::OpenQuote | Self::AfterQuote => "a value with quotes in it is written between single quotes",
            Self::Reference => "write the value itself, or put it between single quotes if it is meant literally",
        }
    }
}

struct Entry {
    name: &'static str,
    value: String,
    place: Place,
}

impl Entry {
    fn origin(&self) -> Origin {
        Origin::TbmqEnv(self.name, self.place.clone())
    }
}

/// What the files say, of the settings that matter here.
#[derive(Default)]
pub(super) struct BrokerSettings {
    entries: BTreeMap<&'static str, Entry>,
}

impl BrokerSettings {
    /// Reads the files in order; of a name that stands in several the last holds, and of an empty value none.
    pub fn read<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for path in paths {
            let text =
                std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { what: "TBMQ env file", path: path.into(), source })?;
            settings.parse(path, &text)?;
        }
        Ok(settings)
    }

    fn parse(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
            let place = Place { path: path.into(), line: index + 1 };
            let entry = parse_line(line).map_err(|problem| ConfigError::EnvLine { place: place.clone(), problem })?;
            if let Some((name, value)) = entry {
                self.entries.insert(name, Entry { name, value, place });
            }
        }
        Ok(())
    }

    /// The settings, without the address that `stronger` gives already.
    pub fn layer(&self, stronger: &Layers) -> Result<Layers, ConfigError> {
        let mut layer = Layers::default();
        for spec in &SETTINGS {
            let Some(entry) = spec.broker_variable.and_then(|name| self.entries.get(name)) else { continue };
            if entry.value.is_empty() && !spec.may_be_empty {
                continue;
            }
            let origin = entry.origin();
            layer.set(spec.setting, vec![from_variable(spec.setting, entry.value.clone(), &origin)?], origin);
        }
        const OF_REDIS: [Setting; 3] = [Setting::RedisMode, Setting::RedisSentinelMaster, Setting::RedisSentinelPassword];
        if stronger.get(Setting::RedisUrl).is_some() {
            OF_REDIS.into_iter().for_each(|setting| layer.unset(setting));
        } else {
            self.set_redis(&mut layer, stronger)?;
        }
        if stronger.get(Setting::PostgresUrl).is_some() {
            layer.unset(Setting::PostgresUrl);
        } else {
            self.add_credentials(&mut layer);
        }
        Ok(layer)
    }

    fn get(&self, name: &'static str) -> Option<&Entry> {
        self.entries.get(name).filter(|entry| !entry.value.is_empty())
    }

    /// Spring hands user and password to the driver beside the URL; a parameter of the URL wins over them.
    fn add_credentials(&self, layer: &mut Layers) {
        let Some(given) = layer.get(Setting::PostgresUrl).cloned() else { return };
        let credentials: Vec<_> = [("user", DATABASE_USER), ("password", DATABASE_PASSWORD)]
            .into_iter()
            .filter_map(|(parameter, name)| Some(format!("{parameter}={}", encode(&self.get(name)?.value))))
            .collect();
        let texts = given.texts.iter().map(|url| {
            let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
            let all: Vec<_> = credentials.iter().map(String::as_str).chain([parameters]).filter(|part| !part.is_empty()).collect();
            if all.is_empty() { base.to_owned() } else { format!("{base}?{}", all.join("&")) }
        });
        let texts = texts.collect();
        layer.set(Setting::PostgresUrl, texts, given.origin);
    }

    /// One address out of the variables of the topology in use; those of the other topologies may stand in the file unused.
    fn set_redis(&self, layer: &mut Layers, stronger: &Layers) -> Result<(), ConfigError> {
        let deciding = if stronger.get(Setting::RedisMode).is_some() { stronger } else { &*layer };
        let told = match deciding.get(Setting::RedisMode) {
            Some(_) => deciding.choice(Setting::RedisMode, &RedisMode::ALL)?,
            None => RedisMode::Auto,
        };
        let mode = match told {
            RedisMode::Auto if self.get(HOST).is_some() => RedisMode::Standalone,
            RedisMode::Auto if self.get(NODES).is_some() => RedisMode::Cluster,
            RedisMode::Auto if self.get(SENTINELS).is_some() => RedisMode::Sentinel,
            RedisMode::Auto => RedisMode::Standalone,
            RedisMode::Standalone | RedisMode::Cluster | RedisMode::Sentinel => told,
        };
        if mode != RedisMode::Sentinel {
            layer.unset(Setting::RedisSentinelMaster);
            layer.unset(Setting::RedisSentinelPassword);
        }
        let Some((hosts, origin)) = self.redis_hosts(layer, mode)? else { return Ok(()) };
        let password = self.get(PASSWORD).map(|entry| format!(":{}@", encode(&entry.value))).unwrap_or_default();
        let database = self.redis_database(mode)?;
        layer.set(Setting::RedisUrl, vec![format!("redis://{password}{hosts}/{database}")], origin);
        Ok(())
    }

    fn redis_database(&self, mode: RedisMode) -> Result<u32, ConfigError> {
        let Some(entry) = self.get(DB) else { return Ok(0) };
        let wrong = |problem: Problem| wrong(Setting::RedisUrl, &entry.origin(), problem);
        match entry.value.parse() {
            Ok(database) if mode == RedisMode::Cluster && database != 0 => Err(wrong(RedisProblem::DatabaseOfCluster.into())),
            Ok(database) => Ok(database),
            Err(_) => Err(wrong(Problem::NotANumber(entry.value.clone()))),
        }
    }

    fn redis_hosts(&self, layer: &Layers, mode: RedisMode) -> Result<Option<(String, Origin)>, ConfigError> {
        let list = match mode {
            RedisMode::Cluster => self.get(NODES),
            RedisMode::Sentinel => self.get(SENTINELS),
            RedisMode::Auto | RedisMode::Standalone => return self.standalone_host(layer),
        };
        let Some(entry) = list else { return Ok(None) };
        for host in entry.value.split(',') {
            Host::parse(host).map_err(|problem| wrong(Setting::RedisUrl, &entry.origin(), problem))?;
        }
        Ok(Some((entry.value.clone(), entry.origin())))
    }

    fn standalone_host(&self, layer: &Layers) -> Result<Option<(String, Origin)>, ConfigError> {
        let port = match self.get(PORT) {
            Some(entry) => {
                let port = entry.value.parse::<u16>().ok().filter(|port| *port != 0);
                let out_of_range = || Problem::OutOfRange { value: format!("{:?}", entry.value), min: 1, max: u16::MAX.into() };
                Some(port.ok_or_else(|| wrong(Setting::RedisUrl, &entry.origin(), out_of_range()))?)
            }
            None => None,
        };
        let (name, origin) = match (self.get(HOST), self.get(PORT), layer.get(Setting::RedisMode)) {
            (Some(host), _, _) => (host.value.as_str(), host.origin()),
            (None, Some(port), _) => (BROKER_DEFAULT_HOST, port.origin()),
            (None, None, Some(mode)) => (BROKER_DEFAULT_HOST, mode.origin.clone()),
            (None, None, None) => return Ok(None),
        };
        let bracketed = if name.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{name}]") } else { name.to_owned() };
        Host::parse(&bracketed).map_err(|problem| wrong(Setting::RedisUrl, &origin, problem))?;
        Ok(Some((port.map_or_else(|| bracketed.clone(), |port| format!("{bracketed}:{port}")), origin)))
    }
}

/// The known name and the value of a line; nothing for a comment, an empty line, or one of the broker's other settings.
fn parse_line(line: &str) -> Result<Option<(&'static str, String)>, LineProblem> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').ok_or(LineProblem::NoEquals)?;
    match known_name(name.trim()) {
        Some(name) => Ok(Some((name, unquote(value.trim())?))),
        None => Ok(None),
    }
}

fn known_name(name: &str) -> Option<&'static str> {
    SETTINGS.iter().filter_map(|spec| spec.broker_variable).chain(PARTS).find(|known| *known == name)
}

/// The value as a shell, or Docker Compose, would read it.
fn unquote(text: &str) -> Result<String, LineProblem> {
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            let (value, rest) = text[1..].split_once('\'').ok_or(LineProblem::OpenQuote)?;
            (value.to_owned(), rest)
        }
        Some('"') => {
            let (value, rest) = read_double_quoted(&text[1..])?;
            if value.contains("${") {
                return Err(LineProblem::Reference);
            }
            (value, rest)
        }
        _ if text.starts_with('#') => (String::new(), ""),
        _ => {
            let comment = text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len());
            if text[..comment].contains("${") {
                return Err(LineProblem::Reference);
            }
            (text[..comment].trim_end().to_owned(), "")
        }
    };
    let rest = rest.trim_start();
    if rest.is_empty() || rest.starts_with('#') { Ok(value) } else { Err(LineProblem::AfterQuote) }
}

/// Up to the closing quote; a backslash keeps a quote, a dollar sign or a backslash, and stands for itself before anything else.
fn read_double_quoted(text: &str) -> Result<(String, &str), LineProblem> {
    let mut value = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match letters.next_if(|(_, escaped)| "\"\\$`".contains(*escaped)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            _ => value.push(letter),
        }
    }
    Err(LineProblem::OpenQuote)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::postgres::PostgresConfig;
    use crate::config::redis::RedisConfig;
    use secrecy::ExposeSecret;

    fn settings(text: &str) -> Result<BrokerSettings, ConfigError> {
        let mut settings = BrokerSettings::default();
        settings.parse(Path::new("t.env"), text)?;
        Ok(settings)
    }

    fn layers(text: &str) -> Result<Layers, ConfigError> {
        Ok(settings(text)?.layer(&Layers::default())?.over(Layers::defaults()))
    }

    fn redis(text: &str) -> RedisConfig {
        RedisConfig::read(&layers(text).unwrap()).unwrap().unwrap()
    }

    fn value(line: &str) -> Result<String, LineProblem> {
        parse_line(line).map(|entry| entry.unwrap().1)
    }

    #[test]
    fn a_value_is_read_as_a_shell_reads_it() {
        for (line, expected) in [
            ("CACHE_PREFIX=a", "a"),
            ("  export CACHE_PREFIX=a  ", "a"),
            ("CACHE_PREFIX = a b ", "a b"),
            ("CACHE_PREFIX=a#b", "a#b"),
            ("CACHE_PREFIX=a # why", "a"),
            ("CACHE_PREFIX=# why", ""),
            ("CACHE_PREFIX=", ""),
            ("CACHE_PREFIX='a # \"${b}'", "a # \"${b}"),
            ("CACHE_PREFIX=\"a # b\" # why", "a # b"),
            (r#"CACHE_PREFIX="a\"b\\c\$d\e""#, r#"a"b\c$d\e"#),
            ("CACHE_PREFIX=a=b==", "a=b=="),
        ] {
            assert_eq!(value(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_not_shown() {
        for (line, problem) in [
            ("REDIS_PASSWORD: s3cret", LineProblem::NoEquals),
            ("REDIS_PASSWORD='s3cret", LineProblem::OpenQuote),
            ("REDIS_PASSWORD=\"s3cret\\\"", LineProblem::OpenQuote),
            ("REDIS_PASSWORD='s3'cret", LineProblem::AfterQuote),
            ("REDIS_PASSWORD=${s3cret}", LineProblem::Reference),
            ("REDIS_PASSWORD=\"${s3cret}\"", LineProblem::Reference),
        ] {
            let error = settings(&format!("# head\n\n{line}\n")).map(|_| ()).unwrap_err();
            assert_eq!(error.to_string(), format!("t.env:3: {problem}"));
            assert_eq!(error.hint().as_deref(), Some(problem.hint()));
            assert!(!format!("{error} {error:?}").contains("s3cret"));
        }
    }

    #[test]
    fn other_settings_of_the_broker_and_windows_line_ends_are_no_error() {
        let layers = layers("\u{feff}JAVA_OPTS=\"-Xmx1g\nHTTP_PORT=${PORT}\r\nCACHE_PREFIX=p\r\n").unwrap();
        assert_eq!(layers.text(Setting::KeyPrefix).unwrap(), Some("p"));
        assert_eq!(layers.get(Setting::KeyPrefix).unwrap().origin.to_string(), "TBMQ env file t.env:3 (CACHE_PREFIX)");
    }

    #[test]
    fn user_and_password_of_the_datasource_go_into_its_url_unless_it_has_them() {
        let url = |text: &str| {
            let layers = layers(text).unwrap();
            let config = PostgresConfig::read(&layers).unwrap().unwrap();
            (config.display, config.url.expose_secret().to_owned())
        };
        let user = "SPRING_DATASOURCE_USERNAME=post&gres\nSPRING_DATASOURCE_PASSWORD='p w/%+'\n";
        let (display, text) = url(&format!("SPRING_DATASOURCE_URL=jdbc:postgresql://db:5433/tbmq-prod\n{user}"));
        assert_eq!(display, "post&gres@db:5433/tbmq-prod");
        assert!(text.contains("user=post%26gres&password=p%20w%2F%25%2B"), "{text}");
        let (display, text) = url(&format!("SPRING_DATASOURCE_URL=jdbc:postgresql://db/t?user=own\n{user}"));
        assert_eq!(display, "own@db:5432/t");
        assert!(text.contains("password=p%20w"), "{text}");
    }

    #[test]
    fn a_standalone_server_is_put_together() {
        let config = redis(
            "REDIS_CONNECTION_TYPE=standalone\nREDIS_HOST=r\nREDIS_PORT=7000\nREDIS_DB=2\nREDIS_PASSWORD=p@:/w\nREDIS_NODES=x:1\nREDIS_MASTER=m\n",
        );
        assert_eq!(config.display, "redis://r:7000/2");
        assert_eq!(config.password.unwrap().expose_secret(), "p@:/w");
        assert_eq!((config.mode, config.sentinel_master), (RedisMode::Standalone, None));
        assert_eq!(redis("REDIS_HOST=::1\n").display, "redis://[::1]:6379/0");
        assert_eq!(redis("REDIS_CONNECTION_TYPE=standalone\n").display, "redis://localhost:6379/0");
        assert_eq!(redis("REDIS_PORT=7000\n").display, "redis://localhost:7000/0");
    }

    #[test]
    fn an_empty_password_of_redis_is_none() {
        assert!(redis("REDIS_HOST=r\nREDIS_PASSWORD=\n").password.is_none());
        assert!(redis("REDIS_HOST=r\nREDIS_PASSWORD=\"\"\n").password.is_none());
    }

    #[test]
    fn a_cluster_is_put_together() {
        let config = redis("REDIS_CONNECTION_TYPE=cluster\nREDIS_HOST=unused\nREDIS_NODES=a:1, b:2\nREDIS_PASSWORD=p\n");
        assert_eq!((config.mode, config.display.as_str()), (RedisMode::Cluster, "redis://a:1,b:2/0"));
    }

    #[test]
    fn sentinels_are_put_together() {
        let config = redis("REDIS_CONNECTION_TYPE=sentinel\nREDIS_SENTINELS=a:1,b\nREDIS_MASTER=m\nREDIS_PASSWORD=p\nREDIS_SENTINEL_PASSWORD=q\n");
        assert_eq!((config.mode, config.display.as_str()), (RedisMode::Sentinel, "redis://a:1,b:26379/0"));
        assert_eq!(config.sentinel_master.as_deref(), Some("m"));
        assert_eq!(config.sentinel_password.unwrap().expose_secret(), "q");
    }

    #[test]
    fn a_mode_of_a_stronger_layer_picks_the_variables() {
        let mut stronger = Layers::default();
        stronger.set(Setting::RedisMode, vec!["cluster".into()], Origin::Option);
        let broker = settings("REDIS_CONNECTION_TYPE=standalone\nREDIS_HOST=h\nREDIS_NODES=a:1,b:2\n").unwrap().layer(&stronger).unwrap();
        let config = RedisConfig::read(&stronger.over(broker).over(Layers::defaults())).unwrap().unwrap();
        assert_eq!((config.mode, config.display.as_str()), (RedisMode::Cluster, "redis://a:1,b:2/0"));
        assert_eq!(redis("REDIS_NODES=a:1").display, "redis://a:1/0");
    }

    #[test]
    fn an_address_of_a_stronger_layer_leaves_the_brokers_redis_and_database_unused() {
        let mut stronger = Layers::default();
        stronger.set(Setting::RedisUrl, vec!["redis://mine".into()], Origin::Option);
        stronger.set(Setting::PostgresUrl, vec!["postgres://mine/d".into()], Origin::Option);
        let redis = "REDIS_CONNECTION_TYPE=sentinel\nREDIS_SENTINELS=a\nREDIS_MASTER=m\nREDIS_PASSWORD=p\n";
        let rest = "SPRING_DATASOURCE_URL=jdbc:postgresql://theirs/d\nSPRING_DATASOURCE_PASSWORD=p\nCACHE_PREFIX=x\n";
        let broker = settings(&format!("{redis}{rest}")).unwrap().layer(&stronger).unwrap();
        for setting in [Setting::RedisUrl, Setting::RedisMode, Setting::RedisSentinelMaster, Setting::PostgresUrl] {
            assert!(broker.get(setting).is_none(), "{setting:?}");
        }
        assert_eq!(broker.text(Setting::KeyPrefix).unwrap(), Some("x"));
    }

    #[test]
    fn a_value_of_the_broker_that_cannot_be_used_names_its_line() {
        for (text, error) in [
            ("REDIS_HOST=r\nREDIS_PORT=0", "REDIS_PORT (t.env:2): \"0\" is not between 1 and 65535"),
            ("REDIS_HOST=r\nREDIS_DB=zero", "REDIS_DB (t.env:2): \"zero\" is not a whole number"),
            ("REDIS_CONNECTION_TYPE=cluster\nREDIS_NODES=a\nREDIS_DB=1", "REDIS_DB (t.env:3): names a database, and a cluster has only database 0"),
            ("REDIS_HOST=a b", "REDIS_HOST (t.env:1): has a character in the host that no host name has"),
            ("REDIS_CONNECTION_TYPE=cluster\nREDIS_NODES=a:x", "REDIS_NODES (t.env:2): has a port that is not between 1 and 65535"),
            ("REDIS_CONNECTION_TYPE=ring", "REDIS_CONNECTION_TYPE (t.env:1): \"ring\" is none of auto, standalone, cluster, sentinel"),
            (
                "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL=7d",
                "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL (t.env:1): \"7d\" is not a count of seconds",
            ),
        ] {
            assert_eq!(layers(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn every_name_of_a_part_is_known_and_no_setting() {
        for part in PARTS {
            assert_eq!(known_name(part), Some(part));
            assert!(SETTINGS.iter().all(|spec| spec.broker_variable != Some(part)));
        }
    }
}
