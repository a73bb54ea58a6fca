//! The layers against each other.

use super::*;
use crate::model::TopicField;
use std::time::Duration;

const LIMIT: &str = "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_LIMIT";
const TTL: &str = "MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_TTL";

/// One value of `message-limit` or another setting in each layer that is given.
#[derive(Default)]
struct Sources<'a> {
    options: &'a [(Setting, &'a str)],
    environment: &'a [(&'a str, &'a str)],
    config_file: Option<&'a str>,
    tbmq_env: &'a [&'a str],
}

impl Sources<'_> {
    fn load(&self) -> Result<Settings, ConfigError> {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Layers::default();
        for (setting, text) in self.options {
            options.set(*setting, vec![(*text).into()], Origin::Option);
        }
        if let Some(text) = self.config_file {
            let path = directory.path().join("c.toml");
            std::fs::write(&path, text).unwrap();
            options.set(Setting::Config, vec![path.to_str().unwrap().into()], Origin::Option);
        }
        let files: Vec<_> = self
            .tbmq_env
            .iter()
            .enumerate()
            .map(|(number, text)| {
                let path = directory.path().join(format!("{number}.env"));
                std::fs::write(&path, text).unwrap();
                path.to_str().unwrap().to_owned()
            })
            .collect();
        if !files.is_empty() {
            options.set(Setting::TbmqEnv, files, Origin::Option);
        }
        let lookup = |name: &str| self.environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        Settings::load(options, &lookup)
    }

    fn limit(&self) -> u32 {
        self.load().unwrap().rules().unwrap().message_limit
    }
}

#[test]
fn a_stronger_layer_wins_over_each_weaker_one() {
    // One bit a layer, the strongest first; the value that each gives says which it is.
    for present in 0..16_u32 {
        let has = |layer: u32| present & (1 << layer) != 0;
        let sources = Sources {
            options: if has(0) { &[(Setting::MessageLimit, "1")] } else { &[] },
            environment: if has(1) { &[(LIMIT, "2")] } else { &[] },
            config_file: has(2).then_some("message-limit = 3"),
            tbmq_env: if has(3) { &["MQTT_PERSISTENT_SESSION_DEVICE_PERSISTED_MESSAGES_LIMIT=4"] } else { &[] },
        };
        let expected = if present == 0 { 10_000 } else { present.trailing_zeros() + 1 };
        assert_eq!(sources.limit(), expected, "layers {present:04b}");
    }
}

#[test]
fn of_several_tbmq_env_files_the_later_wins() {
    let sources = Sources { tbmq_env: &["CACHE_PREFIX=a\nREDIS_HOST=h", "CACHE_PREFIX=b"], ..Sources::default() };
    let settings = sources.load().unwrap();
    assert_eq!(settings.layers.text(Setting::KeyPrefix).unwrap(), Some("b"));
    assert_eq!(RedisConfig::read(&settings.layers).unwrap().unwrap().display, "redis://h:6379/0");
}

#[test]
fn the_config_file_may_come_from_the_environment_and_name_tbmq_env_files() {
    let directory = tempfile::tempdir().unwrap();
    let (config, env) = (directory.path().join("c.toml"), directory.path().join("b.env"));
    std::fs::write(&env, "CACHE_PREFIX=p").unwrap();
    std::fs::write(&config, format!("tbmq-env = ['{}']\ntopic-field = 'topic'", env.display())).unwrap();
    let path = config.to_str().unwrap();
    let settings = Sources { environment: &[("TBMQ_MIGRATE_CONFIG", path)], ..Sources::default() }.load().unwrap();
    assert_eq!(settings.layers.text(Setting::KeyPrefix).unwrap(), Some("p"));
    assert_eq!(settings.rules().unwrap().topic_field, TopicField::Topic);
}

#[test]
fn the_defaults_are_the_rules_of_the_contract() {
    assert_eq!(Sources::default().load().unwrap().rules().unwrap(), Rules::default());
    assert_eq!(Rules::default().default_ttl, Duration::from_secs(7 * 86_400));
}

#[test]
fn the_ttl_is_seconds_in_the_environment_and_a_duration_elsewhere() {
    let ttl = |sources: Sources<'_>| sources.load().unwrap().rules().unwrap().default_ttl.as_secs();
    assert_eq!(ttl(Sources { environment: &[(TTL, "3600")], ..Sources::default() }), 3_600);
    assert_eq!(ttl(Sources { options: &[(Setting::DefaultTtl, "2h")], ..Sources::default() }), 7_200);
    assert_eq!(ttl(Sources { config_file: Some("default-ttl = '3h'"), ..Sources::default() }), 10_800);
}

#[test]
fn an_empty_variable_is_not_given_except_for_the_prefix() {
    let sources = Sources {
        environment: &[("DATABASE_URL", ""), ("CACHE_PREFIX", ""), ("NO_COLOR", "")],
        config_file: Some("postgres-url = 'postgres://h/d'\nkey-prefix = 'p'\ncolor = 'always'"),
        ..Sources::default()
    };
    let settings = sources.load().unwrap();
    assert_eq!(PostgresConfig::read(&settings.layers).unwrap().unwrap().display, "h:5432/d");
    assert_eq!(settings.layers.text(Setting::KeyPrefix).unwrap(), Some(""));
    assert_eq!(settings.output().unwrap().color, ColorChoice::Always);
}

#[test]
fn no_color_wins_over_the_file_and_yields_to_the_option() {
    let color = |options| {
        let sources = Sources { options, environment: &[("NO_COLOR", "1")], config_file: Some("color = 'always'"), ..Sources::default() };
        sources.load().unwrap().output().unwrap().color
    };
    assert_eq!(color(&[]), ColorChoice::Never);
    assert_eq!(color(&[(Setting::Color, "auto")]), ColorChoice::Auto);
}

#[test]
fn an_empty_option_is_an_error_and_not_a_step_to_the_next_layer() {
    let sources = Sources { options: &[(Setting::PostgresUrl, "")], environment: &[("DATABASE_URL", "postgres://other/d")], ..Sources::default() };
    assert_eq!(sources.load().unwrap().config().unwrap_err().to_string(), "--postgres-url: is empty");
}

#[test]
fn an_address_that_is_nowhere_says_every_place_to_give_it() {
    let error = Sources::default().load().unwrap().config().unwrap_err();
    assert_eq!(error.to_string(), "--postgres-url is not set");
    assert_eq!(
        error.hint().unwrap(),
        "give it by --postgres-url URL, or the variable DATABASE_URL, or postgres-url in the --config file, or SPRING_DATASOURCE_URL in a --tbmq-env file"
    );
    let error = Sources { options: &[(Setting::PostgresUrl, "postgres://h/d")], ..Sources::default() }.load().unwrap().config().unwrap_err();
    assert_eq!(error.to_string(), "--redis-url is not set");
    assert!(error.hint().unwrap().ends_with("REDIS_HOST in a --tbmq-env file"));
}

#[test]
fn a_limit_that_redis_cannot_hold_is_named_by_its_layer() {
    for (sources, expected) in [
        (
            Sources { options: &[(Setting::MessageLimit, "65536")], ..Sources::default() },
            "--message-limit: 65536 is not between 1 and 65535".to_owned(),
        ),
        (Sources { environment: &[(LIMIT, "0")], ..Sources::default() }, format!("{LIMIT} in the environment: 0 is not between 1 and 65535")),
    ] {
        assert_eq!(sources.load().unwrap().rules().unwrap_err().to_string(), expected);
    }
    let error = Sources { config_file: Some("\nmessage-limit = 65536"), ..Sources::default() }.load().unwrap().rules().unwrap_err().to_string();
    assert!(error.starts_with("message-limit (") && error.ends_with("c.toml:2): 65536 is not between 1 and 65535"), "{error}");
}

#[test]
fn files_that_are_not_there_are_named_with_the_reason() {
    for (setting, expected) in [(Setting::Config, "cannot read the config file /no/f"), (Setting::TbmqEnv, "cannot read the TBMQ env file /no/f")] {
        let error = Sources { options: &[(setting, "/no/f")], ..Sources::default() }.load().unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[test]
fn the_list_names_each_origin_and_masks_each_secret() {
    let sources = Sources {
        options: &[(Setting::Jobs, "8")],
        environment: &[("DATABASE_URL", "postgres://u:s3cret@h/d")],
        config_file: Some("redis-sentinel-password = 's3cret'\nredis-url = 'redis://:s3cret@r'\nredis-sentinel-master = 'm'"),
        tbmq_env: &["CACHE_PREFIX=p"],
    };
    let settings = sources.load().unwrap();
    let list = settings.list().unwrap();
    assert!(!format!("{list:?} {settings:?}").contains("s3cret"));
    let find = |name| {
        let listed = list.iter().find(|listed| listed.name == name).unwrap();
        (listed.value.clone().unwrap_or_default(), listed.origin.clone().unwrap_or_default())
    };
    assert_eq!(find("jobs"), ("8".into(), "option".into()));
    assert_eq!(find("postgres-url"), ("postgres://u:******@h:5432/d".into(), "environment DATABASE_URL".into()));
    assert_eq!(find("redis-url").0, "redis://:******@r:26379/0");
    assert!(find("redis-url").1.starts_with("config file ") && find("redis-url").1.ends_with("c.toml:2"));
    assert_eq!(find("redis-sentinel-password").0, "******");
    assert!(find("key-prefix").1.starts_with("TBMQ env file ") && find("key-prefix").1.ends_with("0.env:1 (CACHE_PREFIX)"));
    assert_eq!(find("message-limit"), ("10000".into(), "default".into()));
    assert_eq!(find("postgres-schema"), (String::new(), String::new()));
    assert!(list.iter().all(|listed| listed.name != "dry-run" && listed.name != "client"));
}
