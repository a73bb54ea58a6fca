//! Both sides looked at before anything starts: what is ready, what is not, and what mends it. Nothing is changed.
//!
//! Facts are read first, thin and in `source` and `target`; what they mean is decided by pure functions here, one file a
//! subject. What could not be seen is a fact too: it ends nothing and is never taken for well.

mod activity;
mod capture;
mod data;
mod finding;
mod forecast;
mod memory;
mod sample;
mod settings;
mod source;
mod target;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use finding::{Area, Finding, Level};
pub use forecast::{Forecast, Shard};

use crate::config::{Config, Contradiction};
use crate::control::Control;
use crate::model::KeyPrefix;
use crate::observe::clock::wall_clock;
use crate::source::{Exact, Source, SourceError, SourceFacts};
use crate::target::{Measured, Patience, TargetFacts, Topology};
use sample::{Sample, Sampler};

/// A person waits for the answer: a server that is not ready in this time is told as such.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything that `check` says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Whether no blocker stands.
    pub ready: bool,
    /// How many do.
    pub blockers: usize,
    /// How many findings are warnings.
    pub warnings: usize,
    /// By area, the heaviest first.
    pub findings: Vec<Finding>,
    /// What a copy would come to; `None` where the rows could not be read.
    pub forecast: Option<Forecast>,
    /// What to do.
    pub next_steps: Vec<String>,
}

/// A person stopped it.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the end")]
pub struct Stopped;

/// What was read of the rows.
struct Data {
    sample: Result<Sample, SourceError>,
    exact: Result<Exact, SourceError>,
    contexts: Option<u64>,
}

/// Looks at both sides.
///
/// # Errors
/// [`Stopped`] alone: everything else is a finding.
pub async fn check(config: &Config, contradictions: &[Contradiction], stop: &CancellationToken) -> Result<Report, Stopped> {
    let going_on = || if stop.is_cancelled() { Err(Stopped) } else { Ok(()) };
    let prefix = KeyPrefix::new(config.target.key_prefix.as_str());
    let patience = Arc::new(Patience::new(PATIENCE, stop.clone()));
    let target = TargetFacts::read(&config.target.redis, prefix.clone(), patience).await;
    going_on()?;
    // Reading changes nothing, so a person who wants to stop need not wait for it.
    let source = tokio::select! {
        source = read_source(config) => source,
        () = stop.cancelled() => return Err(Stopped),
    };
    let unfinished_run = match &source {
        Ok((source, facts)) => unfinished_run(source, facts).await,
        Err(_) => None,
    };
    let data = match &source {
        Ok((source, facts)) => tokio::select! {
            data = read_data(source, facts, config, &prefix, target.as_ref().ok(), stop) => data,
            () = stop.cancelled() => return Err(Stopped),
        },
        Err(_) => None,
    };
    let mut findings = settings::findings(config, contradictions);
    match &source {
        Ok((source, facts)) => {
            findings.extend(source::findings(facts, source.place()));
            findings.extend(capture::findings(facts));
            findings.extend(activity::findings(facts));
            findings.push(match &facts.clock {
                Ok(reading) => activity::clock(Area::Postgresql, "PostgreSQL", reading),
                Err(error) => Finding::unknown(Area::Postgresql, "clock", error),
            });
        }
        Err(error) => findings.push(source::unreachable(error)),
    }
    match &target {
        Ok(facts) => findings.extend(target::findings(facts, unfinished_run)),
        Err(error) => findings.push(target::unreachable(error)),
    }
    let forecast = match data {
        Some(data) => judge_data(&data, config, target.as_ref().ok(), &mut findings).await,
        None => {
            findings.push(Finding::warning(Area::Data, "rows", "unknown: the tables could not be read, so nothing is forecast"));
            None
        }
    };
    going_on()?;
    let blockers: Vec<&'static str> = findings.iter().filter(|finding| finding.level == Level::Blocker).map(|finding| finding.name).collect();
    findings.extend(capture::modes(source.as_ref().map(|(_, facts)| facts), &blockers));
    Ok(report(findings, forecast, unfinished_run, target.as_ref().is_ok_and(stands)))
}

async fn read_source(config: &Config) -> Result<(Source, SourceFacts), SourceError> {
    let source = Source::new(&config.postgres)?;
    let mut connection = source.connect().await?;
    let facts = SourceFacts::read(&source, &mut connection).await?;
    Ok((source, facts))
}

/// A run that waits to go on; `None`, too, where that cannot be seen: then the rights to the schema are a finding.
async fn unfinished_run(source: &Source, facts: &SourceFacts) -> Option<i64> {
    let readable = matches!(&facts.control_schema, Ok(Some(schema)) if schema.readable);
    if !readable {
        return None;
    }
    let mut connection = source.connect().await.ok()?;
    Control::unfinished_run(&mut connection).await.ok().flatten()
}

/// The rows, where both tables are as they should be.
async fn read_data(
    source: &Source,
    facts: &SourceFacts,
    config: &Config,
    prefix: &KeyPrefix,
    target: Option<&TargetFacts>,
    stop: &CancellationToken,
) -> Option<Data> {
    let (Some(Ok(tables)), Some(Ok(storage))) = (&facts.ordered, &facts.storage) else { return None };
    let rules = config.target.rules;
    let sampler = Sampler {
        source,
        tables,
        rules,
        prefix,
        target: target.map(|facts| &facts.target),
        now: target.map_or_else(wall_clock, |facts| facts.now),
        stop,
    };
    let exact = match source.connect().await {
        Ok(mut connection) => Ok(Exact::count(&mut connection, tables, storage, data::borders(&rules)).await),
        Err(error) => Err(error),
    };
    let contexts = storage[1].analyzed_rows.and_then(|rows| u64::try_from(rows).ok());
    Some(Data { sample: sampler.take().await, exact, contexts })
}

/// The forecast, with what Redis says to the size of a message.
async fn judge_data(data: &Data, config: &Config, target: Option<&TargetFacts>, findings: &mut Vec<Finding>) -> Option<Forecast> {
    let sample = match &data.sample {
        Ok(sample) => sample,
        Err(error) => {
            findings.push(Finding::unknown(Area::Data, "rows", error).maybe_mend(error.hint()));
            return None;
        }
    };
    let over_limit = data.exact.as_ref().ok().and_then(|exact| exact.over_limit.as_ref().ok());
    let over_limit = over_limit.and_then(|counted| u64::try_from(counted.rows_beyond).ok());
    let mut forecast = Forecast::new(sample, data.contexts, over_limit);
    if let Some(facts) = target {
        let measured = measure(facts, sample).await;
        let sizes = measured.as_ref().and_then(|measured| measured.sizes);
        let total = forecast.total_bytes(sample, sizes);
        forecast.memory_bytes_per_shard = memory::shards(&facts.nodes, facts.target.topology(), &facts.target.prefix, total);
        forecast.memory_measured = sizes.is_some();
        forecast.copy_seconds = forecast.seconds(sample.rows_per_second(), measured.map(|measured| measured.messages_per_second));
        findings.extend(memory::findings(&forecast, stands(facts)));
    }
    let on_cluster = target.map(|facts| facts.target.topology() == Topology::Cluster);
    findings.extend(data::findings(sample, &forecast, &data.exact, &config.target.rules, on_cluster));
    Some(forecast)
}

/// What the kept messages take in Redis; `None` where nothing may be written, or there is nothing to measure.
async fn measure(facts: &TargetFacts, sample: &Sample) -> Option<Measured> {
    if !facts.writable() || sample.kept.is_empty() {
        return None;
    }
    match facts.target.measure(&facts.target.brief_link(), facts.now, &sample.kept).await {
        Ok(measured) => Some(measured),
        Err(error) => {
            tracing::debug!(%error, "nothing could be measured in Redis");
            None
        }
    }
}

/// Whether sessions stand under the key prefix.
fn stands(facts: &TargetFacts) -> bool {
    facts.standing.as_ref().is_ok_and(|standing| standing.own > 0)
}

fn report(mut findings: Vec<Finding>, forecast: Option<Forecast>, unfinished_run: Option<i64>, standing: bool) -> Report {
    findings.sort_by_key(|finding| (finding.area, std::cmp::Reverse(finding.level)));
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let (blockers, warnings) = (count(Level::Blocker), count(Level::Warning));
    let next_steps = next_steps(&findings, blockers, unfinished_run, standing);
    Report { ready: blockers == 0, blockers, warnings, findings, forecast, next_steps }
}

fn next_steps(findings: &[Finding], blockers: usize, unfinished_run: Option<i64>, standing: bool) -> Vec<String> {
    if blockers > 0 {
        return vec!["mend what blocks, then run `tbmq-migrate check` again".to_owned()];
    }
    let stateless = findings.iter().any(|finding| finding.name == "mode_migrate" && finding.level == Level::Warning);
    let mut command = "tbmq-migrate migrate".to_owned();
    if stateless {
        command += " --stateless";
    }
    match (unfinished_run, standing) {
        (Some(run), _) if !stateless => {
            return vec![format!("go on with the interrupted run {run}: `{command}` with the same settings")];
        }
        (_, true) => command += " --on-existing replace",
        _ => {}
    }
    let mut steps = vec![
        "judge every row and write nothing: `tbmq-migrate migrate --dry-run`".to_owned(),
        format!("stop every 1.x broker and start no 2.x broker, then: `{command}`"),
    ];
    if standing {
        steps.insert(0, "find out whose the sessions in Redis are: replacing them makes Redis equal to PostgreSQL".to_owned());
    }
    steps
}
