//! Where TBMQ 1.x keeps its sessions: a libpq URI, libpq's `name=value` text, or the JDBC URL that the broker itself uses.
//!
//! The three are read into libpq's names and values and checked once. What comes out is an address in which each value stands as a parameter,
//! because that is the one form in which an IPv6 host, a socket directory and any password survive every parser.

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;

use super::address::{self, Address, AddressProblem, Host, Plus, encode};
use super::error::{ConfigError, Problem};
use super::layers::{Layers, check_readable, meant, nearest};
use super::setting::Setting;

/// The checked address of the source.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// `postgres:///?host=…&port=…`, each value escaped; ready for sqlx.
    pub url: SecretString,
    /// `user@host:port/database` as far as they were given, without a secret.
    pub display: String,
    /// The schema of the two tables; `None`: the search path decides.
    pub schema: Option<String>,
}

/// Why an address of PostgreSQL cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum PostgresProblem {
    #[error("is not an address of PostgreSQL")]
    Scheme,
    #[error("names several hosts")]
    SeveralHosts,
    #[error("has a port that is not between 1 and 65535")]
    Port,
    #[error("has the sslmode {mode:?}, which is none of {}", SSL_MODES.join(", "), mode = .0)]
    SslMode(String),
    #[error("has the parameter {name}, which libpq does not know")]
    UnknownParameter { name: String, nearest: String },
    #[error("has a parameter that libpq does not know")]
    UnnamedParameter,
    #[error("requires {0}, which this program cannot give")]
    Unsupported(&'static str),
    #[error("has sslrootcert=system with a weaker sslmode than verify-full")]
    SystemRootsUnchecked,
    #[error("has a quote that does not end, or a name without a value")]
    Conninfo,
    #[error("names several schemas in currentSchema")]
    SeveralSchemas,
    #[error("names no schema that PostgreSQL could have: 1 to 63 bytes")]
    SchemaName,
}

impl PostgresProblem {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Scheme => Some("write postgres://USER:PASSWORD@HOST:PORT/DATABASE, or jdbc:postgresql://HOST:PORT/DATABASE".into()),
            Self::SeveralHosts => Some("name the primary alone: a copy must not change servers half way".into()),
            Self::SslMode(value) => meant(value, SSL_MODES.iter().copied()).map(|mode| format!("did you mean {mode}?")),
            Self::UnknownParameter { nearest, .. } => Some(format!("did you mean {nearest}?")),
            Self::UnnamedParameter => Some("in a password write ? as %3F and & as %26".into()),
            Self::Unsupported(_) => Some("leave it out, if the connection is safe without it".into()),
            Self::SystemRootsUnchecked => Some("leave sslmode out, or write sslmode=verify-full".into()),
            Self::Conninfo => Some("write it as in host=db dbname=tbmq password='a b'".into()),
            Self::SeveralSchemas => Some("name the schema of the two tables with --postgres-schema".into()),
            Self::Port | Self::SchemaName => None,
        }
    }
}

const DEFAULT_PORT: u16 = 5432;
const SSL_MODES: &[&str] = &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
/// The parameters that are files.
const FILES: [&str; 3] = ["sslrootcert", "sslcert", "sslkey"];
/// The parameters that reach the connection, in the order in which they are written.
const CARRIED: [&str; 11] = ["host", "hostaddr", "port", "dbname", "user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey", "options"];
/// Names the schema, in JDBC; taken from a libpq URI as well.
const SCHEMA: &str = "currentSchema";
/// libpq's other parameters that change nothing that matters here: the program sets its own name, encoding and timeouts.
const WITHOUT_EFFECT: [&str; 14] = [
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslcompression",
    "sslsni",
    "sslnegotiation",
    "target_session_attrs",
    "load_balance_hosts",
];
/// libpq's parameters that demand something. To ignore one would be to connect in a way that was ruled out.
const DEMANDS: [&str; 9] =
    ["channel_binding", "gssencmode", "require_auth", "requirepeer", "sslcrl", "sslcrldir", "sslpassword", "service", "passfile"];
/// Values of [`DEMANDS`] that demand nothing.
const NO_DEMAND: [&str; 3] = ["", "prefer", "disable"];

/// libpq's names and values; of a name given twice the last.
type Conninfo = BTreeMap<String, String>;

impl PostgresConfig {
    pub(super) fn read(layers: &Layers) -> Result<Option<Self>, ConfigError> {
        let wrong = |problem: Problem| layers.wrong(Setting::PostgresUrl, problem);
        let Some(text) = layers.text(Setting::PostgresUrl)? else { return Ok(None) };
        let conninfo = checked(text).map_err(wrong)?;
        for name in FILES {
            if let Some(path) = conninfo.get(name) {
                check_readable(Path::new(path)).map_err(wrong)?;
            }
        }
        let schema = match layers.text(Setting::PostgresSchema)? {
            Some(schema) => Some(check_schema(schema).map_err(|problem| layers.wrong(Setting::PostgresSchema, problem))?),
            None => conninfo.get(SCHEMA).map(|schema| check_schema(schema)).transpose().map_err(|problem| wrong(problem.into()))?,
        };
        Ok(Some(Self { url: url(&conninfo).into(), display: display(&conninfo), schema }))
    }
}

/// The address as it may be shown.
pub(super) fn redacted(text: &str) -> Result<String, Problem> {
    let conninfo = checked(text)?;
    let user = conninfo.get("user").map(|user| encode(user)).unwrap_or_default();
    let password = if conninfo.contains_key("password") { ":******" } else { "" };
    let at = if user.is_empty() && password.is_empty() { "" } else { "@" };
    let parameters: Vec<_> = conninfo
        .iter()
        .filter(|(name, _)| !["host", "port", "dbname", "user", "password"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
    Ok(format!("postgres://{user}{password}{at}{}/{}{query}", server(&conninfo), conninfo.get("dbname").map_or("", String::as_str)))
}

/// Reads any of the three forms and refuses what cannot be used, before a file or server is touched.
fn checked(text: &str) -> Result<Conninfo, Problem> {
    let text = text.trim();
    let mut conninfo = if let Some(jdbc) = text.strip_prefix("jdbc:") {
        from_jdbc(jdbc.strip_prefix("postgresql:").ok_or(PostgresProblem::Scheme)?)?
    } else if text.contains("://") {
        from_uri(text)?
    } else if text.contains('=') {
        from_key_values(text)?
    } else {
        return Err(AddressProblem::NoScheme.into());
    };
    conninfo.retain(|_, value| !value.is_empty());
    if conninfo.get("host").is_some_and(|host| host.contains(',')) || conninfo.get("port").is_some_and(|port| port.contains(',')) {
        return Err(PostgresProblem::SeveralHosts.into());
    }
    if conninfo.get("port").is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
        return Err(PostgresProblem::Port.into());
    }
    check_tls(&mut conninfo)?;
    Ok(conninfo)
}

fn check_tls(conninfo: &mut Conninfo) -> Result<(), PostgresProblem> {
    if let Some(mode) = conninfo.get("sslmode").filter(|mode| !SSL_MODES.contains(&mode.as_str())) {
        return Err(PostgresProblem::SslMode(mode.clone()));
    }
    // libpq 16: the authorities of the system, and then never less than a full check.
    if conninfo.get("sslrootcert").is_some_and(|file| file == "system") {
        conninfo.remove("sslrootcert");
        let mode = conninfo.entry("sslmode".into()).or_insert_with(|| "verify-full".into());
        if mode != "verify-full" {
            return Err(PostgresProblem::SystemRootsUnchecked);
        }
    }
    Ok(())
}

fn from_uri(text: &str) -> Result<Conninfo, Problem> {
    let address = Address::parse(text, Plus::Plus)?;
    if !["postgres", "postgresql"].contains(&address.scheme.as_str()) {
        return Err(PostgresProblem::Scheme.into());
    }
    let parameters = address.parameters.clone();
    let mut conninfo = from_address(address)?;
    for (name, value) in parameters {
        accept(&mut conninfo, name, value)?;
    }
    Ok(conninfo)
}

/// Takes libpq's parameters, and only those: a misspelt `sslmode` must not become a connection without TLS.
fn accept(conninfo: &mut Conninfo, name: String, value: String) -> Result<(), PostgresProblem> {
    if CARRIED.contains(&name.as_str()) || name == SCHEMA {
        conninfo.insert(name, value);
    } else if let Some(demand) = DEMANDS.iter().find(|demand| **demand == name) {
        if !NO_DEMAND.contains(&value.as_str()) {
            return Err(PostgresProblem::Unsupported(demand));
        }
    } else if !WITHOUT_EFFECT.contains(&name.as_str()) {
        // What follows a raw `?` in a password looks like a parameter, but hardly like a word.
        if !name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
            return Err(PostgresProblem::UnnamedParameter);
        }
        let nearest = nearest(&name, CARRIED.into_iter().chain([SCHEMA])).unwrap_or_default().into();
        return Err(PostgresProblem::UnknownParameter { name, nearest });
    }
    Ok(())
}

fn from_address(address: Address) -> Result<Conninfo, PostgresProblem> {
    let [host] = address.hosts.as_slice() else { return Err(PostgresProblem::SeveralHosts) };
    let parts = [
        ("host", Some(host.name.clone())),
        ("port", host.port.map(|port| port.to_string())),
        ("dbname", Some(address.path)),
        ("user", address.user),
        ("password", address.password),
    ];
    Ok(parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// What follows `jdbc:postgresql:`, with the defaults of that driver.
fn from_jdbc(rest: &str) -> Result<Conninfo, Problem> {
    let (mut conninfo, parameters) = if rest.starts_with("//") {
        let address = Address::parse(&format!("postgresql:{rest}"), Plus::Space)?;
        let parameters = address.parameters.clone();
        (from_address(address)?, parameters)
    } else {
        let (database, query) = rest.split_once('?').unwrap_or((rest, ""));
        let dbname = address::decode(database.trim_start_matches('/'))?;
        (Conninfo::from([("dbname".to_owned(), dbname)]), address::parse_parameters(query, Plus::Space)?)
    };
    conninfo.retain(|_, value| !value.is_empty());
    conninfo.entry("host".into()).or_insert_with(|| "localhost".into());
    let mut parameters: BTreeMap<_, _> = parameters.into_iter().collect();
    // `ssl=true` alone is the driver's way to ask for a full check, unless its factory is the one that checks nothing.
    let ssl = parameters.remove("ssl").is_some_and(|value| value.is_empty() || value.eq_ignore_ascii_case("true"));
    if ssl && !parameters.contains_key("sslmode") {
        let unchecked = parameters.get("sslfactory").is_some_and(|factory| factory.ends_with("NonValidatingFactory"));
        parameters.insert("sslmode".into(), if unchecked { "require" } else { "verify-full" }.into());
    }
    // The driver has dozens of parameters of its own, and ignores what it does not know.
    conninfo.extend(parameters.into_iter().filter(|(name, _)| CARRIED.contains(&name.as_str()) || name == SCHEMA));
    Ok(conninfo)
}

/// libpq's `name=value name='a value'`; a backslash keeps the character that follows.
fn from_key_values(text: &str) -> Result<Conninfo, PostgresProblem> {
    let mut conninfo = Conninfo::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or(PostgresProblem::Conninfo)?;
        let after = after.trim_start();
        let quoted = after.strip_prefix('\'');
        let mut letters = quoted.unwrap_or(after).char_indices();
        let mut value = String::new();
        let mut end = None;
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
                '\'' if quoted.is_some() => end = Some(at + 1),
                _ if quoted.is_none() && letter.is_whitespace() => end = Some(at),
                _ => value.push(letter),
            }
            if end.is_some() {
                break;
            }
        }
        rest = match (quoted, end) {
            (Some(_), None) => return Err(PostgresProblem::Conninfo),
            (Some(inner), Some(end)) => &inner[end..],
            (None, end) => &after[end.unwrap_or(after.len())..],
        }
        .trim_start();
        accept(&mut conninfo, name.trim().to_owned(), value)?;
    }
    Ok(conninfo)
}

fn url(conninfo: &Conninfo) -> String {
    let parameters: Vec<_> = CARRIED.iter().filter_map(|name| Some(format!("{name}={}", encode(conninfo.get(*name)?)))).collect();
    format!("postgres:///?{}", parameters.join("&"))
}

fn server(conninfo: &Conninfo) -> String {
    let port = conninfo.get("port").and_then(|port| port.parse().ok()).unwrap_or(DEFAULT_PORT);
    conninfo.get("host").or_else(|| conninfo.get("hostaddr")).map_or_else(String::new, |host| Host::display(host, port))
}

fn display(conninfo: &Conninfo) -> String {
    let user = conninfo.get("user").map(|user| format!("{user}@")).unwrap_or_default();
    let database = conninfo.get("dbname").or_else(|| conninfo.get("user")).map(|name| format!("/{name}")).unwrap_or_default();
    format!("{user}{}{database}", server(conninfo))
}

fn check_schema(schema: &str) -> Result<String, PostgresProblem> {
    /// PostgreSQL cuts a longer name, and would then look for another one.
    const LONGEST_NAME_BYTES: usize = 63;
    if schema.contains(',') {
        return Err(PostgresProblem::SeveralSchemas);
    }
    if (1..=LONGEST_NAME_BYTES).contains(&schema.len()) { Ok(schema.to_owned()) } else { Err(PostgresProblem::SchemaName) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::origin::Origin;
    use secrecy::ExposeSecret;

    fn layers(url: &str) -> Layers {
        let mut layers = Layers::default();
        layers.set(Setting::PostgresUrl, vec![url.into()], Origin::Option);
        layers
    }

    fn read(url: &str) -> PostgresConfig {
        PostgresConfig::read(&layers(url)).unwrap().unwrap()
    }

    fn refusal(url: &str) -> (String, Option<String>) {
        let error = PostgresConfig::read(&layers(url)).unwrap_err();
        (error.to_string(), error.hint())
    }

    fn parameters(url: &str) -> BTreeMap<String, String> {
        let config = read(url);
        address::parse_parameters(config.url.expose_secret().strip_prefix("postgres:///?").unwrap(), Plus::Plus).unwrap().into_iter().collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_dash_in_the_database_name_survives_in_every_form() {
        for url in [
            "postgres://u:p@h:5433/tbmq-prod",
            "postgresql://u:p@h:5433/tbmq-prod",
            "jdbc:postgresql://h:5433/tbmq-prod?user=u&password=p",
            "host=h port=5433 dbname=tbmq-prod user=u password=p",
        ] {
            let expected = pairs(&[("host", "h"), ("port", "5433"), ("dbname", "tbmq-prod"), ("user", "u"), ("password", "p")]);
            assert_eq!(parameters(url), expected, "{url}");
            assert_eq!(read(url).display, "u@h:5433/tbmq-prod", "{url}");
        }
    }

    #[test]
    fn a_jdbc_url_has_the_defaults_of_its_driver() {
        assert_eq!(parameters("jdbc:postgresql:tbmq"), pairs(&[("host", "localhost"), ("dbname", "tbmq")]));
        assert_eq!(parameters("jdbc:postgresql://h/tbmq"), pairs(&[("host", "h"), ("dbname", "tbmq")]));
        assert_eq!(parameters("jdbc:postgresql:///tbmq"), pairs(&[("host", "localhost"), ("dbname", "tbmq")]));
        assert_eq!(read("jdbc:postgresql:tbmq").display, "localhost:5432/tbmq");
    }

    #[test]
    fn ssl_true_of_a_jdbc_url_is_a_full_check() {
        let sslmode = |query: &str| parameters(&format!("jdbc:postgresql://h/d?{query}")).get("sslmode").cloned();
        assert_eq!(sslmode("ssl=true").as_deref(), Some("verify-full"));
        assert_eq!(sslmode("ssl=true&sslmode=require").as_deref(), Some("require"));
        assert_eq!(sslmode("ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory").as_deref(), Some("require"));
        assert_eq!(sslmode("ssl=false"), None);
        assert_eq!(sslmode("reWriteBatchedInserts=true"), None);
    }

    #[test]
    fn the_schema_comes_from_the_option_before_the_url() {
        let mut layers = layers("jdbc:postgresql://h/d?currentSchema=of_url");
        let schema = |layers: &Layers| PostgresConfig::read(layers).unwrap().unwrap().schema;
        assert_eq!(schema(&layers).as_deref(), Some("of_url"));
        layers.set(Setting::PostgresSchema, vec!["of_option".into()], Origin::Option);
        assert_eq!(schema(&layers).as_deref(), Some("of_option"));
        assert_eq!(read("postgres://h/d").schema, None);
    }

    #[test]
    fn an_ipv6_host_a_socket_directory_and_any_password_are_carried() {
        assert_eq!(parameters("postgres://[::1]:5433/d")["host"], "::1");
        assert_eq!(read("postgres://[::1]:5433/d").display, "[::1]:5433/d");
        assert_eq!(parameters("postgres:///d?host=/var/run/postgresql")["host"], "/var/run/postgresql");
        assert_eq!(parameters("postgres://u:%25a+b%26c@h/d")["password"], "%a+b&c");
        assert_eq!(parameters(r"host=h password='a b\'c'")["password"], "a b'c");
        assert_eq!(parameters("postgres://h/d?user=a@srv&password=x")["user"], "a@srv");
    }

    #[test]
    fn the_driver_reads_the_address_that_is_handed_on() {
        let config = read("postgres://u%40x:p%2Fw@[::1]:5433/tbmq-prod?sslmode=require");
        let options: sqlx::postgres::PgConnectOptions = config.url.expose_secret().parse().unwrap();
        assert_eq!((options.get_host(), options.get_port()), ("::1", 5433));
        assert_eq!((options.get_username(), options.get_database()), ("u@x", Some("tbmq-prod")));
        assert!(matches!(options.get_ssl_mode(), sqlx::postgres::PgSslMode::Require));
    }

    #[test]
    fn the_authorities_of_the_system_mean_a_full_check() {
        assert_eq!(parameters("postgres://h/d?sslrootcert=system"), pairs(&[("host", "h"), ("dbname", "d"), ("sslmode", "verify-full")]));
        assert!(refusal("postgres://h/d?sslrootcert=system&sslmode=require").0.contains("weaker"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_way_out() {
        for (url, text, hint) in [
            ("mysql://h/d", "is not an address of PostgreSQL", Some("write postgres://")),
            ("jdbc:mysql://h/d", "is not an address of PostgreSQL", Some("write postgres://")),
            ("tbmq", "is not a URL", Some("begins with a scheme")),
            ("postgres://a:1,b:2/d", "names several hosts", Some("primary")),
            ("jdbc:postgresql://a,b/d", "names several hosts", Some("primary")),
            ("host=a,b dbname=d", "names several hosts", Some("primary")),
            (
                "postgres://h/d?sslmode=verify-fully",
                "has the sslmode \"verify-fully\", which is none of disable, allow",
                Some("did you mean verify-full?"),
            ),
            ("jdbc:postgresql://h/d?sslmode=on", "has the sslmode \"on\"", None),
            ("postgres://h/d?sslmod=require", "has the parameter sslmod, which", Some("did you mean sslmode?")),
            ("postgres://h/d?channel_binding=require", "requires channel_binding", Some("leave it out")),
            ("postgres://h/d?port=none", "has a port that is not", None),
            ("postgres://h/d?currentSchema=a,b", "names several schemas", Some("--postgres-schema")),
            ("host=h password='open", "has a quote that does not end", Some("host=db")),
        ] {
            let (error, advice) = refusal(url);
            assert!(error.starts_with("--postgres-url: ") && error.contains(text), "{url}: {error}");
            assert_eq!(advice.is_some(), hint.is_some(), "{url}: {advice:?}");
            assert!(advice.unwrap_or_default().contains(hint.unwrap_or_default()), "{url}");
        }
    }

    #[test]
    fn a_parameter_that_demands_nothing_is_let_pass() {
        assert!(!parameters("postgres://h/d?channel_binding=prefer&connect_timeout=3").contains_key("channel_binding"));
    }

    #[test]
    fn a_certificate_that_is_not_there_is_named() {
        assert_eq!(refusal("postgres://h/d?sslrootcert=/no/such.pem").0, "--postgres-url: cannot read /no/such.pem: entity not found");
    }

    #[test]
    fn no_form_of_output_holds_the_password() {
        for url in [
            "postgres://u:s3cret@h/d?sslmode=require",
            "jdbc:postgresql://h/d?user=u&password=s3cret&sslmode=require",
            "host=h dbname=d user=u password=s3cret sslmode=require",
        ] {
            let config = read(url);
            assert!(!format!("{config:?}").contains("s3cret"), "{url}");
            assert_eq!(redacted(url).unwrap(), "postgres://u:******@h:5432/d?sslmode=require");
        }
        for url in [
            "postgres://u:s3cret#x@h/d",
            "postgres://u:s3cret/x@h/d",
            "postgres://u:s3cret?x@h/d",
            "u:s3cret@h/d",
            "postgres://u:%s3cret@h",
            "postgres://u:1?s3cret@h/d",
        ] {
            let (error, hint) = refusal(url);
            assert!(!error.contains("s3cret") && !hint.clone().unwrap_or_default().contains("s3cret"), "{error} {hint:?}");
        }
    }
}
