//! `exec`: any command of the user's in the guest, its figure taken from what it prints.
//!
//! So sysbench, fio or redis-benchmark run on every arm with no code. Where arms take turns, each turn is one run of the command, and a
//! trial's value is the mean over its runs; otherwise it runs once a trial. Its start and end, taken outside the guest, are what is measured.

mod metric;

use std::collections::BTreeMap;
use tare_model::guest::GuestSize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::secret::SecretSource;
use tare_model::traits::TurnTraits;
use tare_model::trial::Measurement;
use tare_model::turns::{TurnCount, Turns, TurnsDone};
use tare_wire::ExecSpec;

use crate::clock::monotonic_ns;
use crate::command::{self, OUTPUT_BYTES, tail};
use crate::entry::{Entry, normalise, read, schema};
use crate::secret;
use crate::{Baton, Driven, Prepared, Schedule, Traits, WorkSite, Workload, WorkloadError};
use metric::{Extractor, MetricParameters};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "exec",
    summary: "any command in the guest; its figure by regular expression or JSON path from what it prints",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        if !matches!(load, LoadModel::Closed { clients: 1, .. }) {
            return Err(FieldError::new(&["load"], "a command is run as it is, whatever the load")
                .help("leave `load` out, and give the command itself its parallelism"));
        }
        let extractors = extractors(&parameters)?;
        Ok(Box::new(Exec { parameters, extractors }))
    },
    normalise: |parameters: &Value| -> Result<Value, FieldError> {
        extractors(&checked(parameters)?)?;
        normalise::<Parameters>(parameters)
    },
    view: None,
};

/// Parameters of `exec`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Parameters {
    /// Program and arguments. No shell is used; write `["sh", "-c", "..."]` for one. Where arms take turns, each turn is one run of it in the same guest: `rounds` of
    /// `turns` says how many (5), and a trial's value is the mean over them, of the wall time as of each figure of `metrics`. With `schedule = "trials"` it runs once a trial.
    pub command: Vec<String>,
    /// Environment variables added to the guest's, which has those of the container image that it was made of, if any: each a text, or where its value is found when the run needs it,
    /// `{ from-env = "NAME" }` or `{ from-file = "/path" }`. The values are secrets: no report shows them.
    #[serde(default)]
    pub env: BTreeMap<String, SecretSource>,
    /// Working directory in the guest. Left out: that of the container image that the guest was made of, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Runs of the command in each fresh guest before those that count, at most 1000. Nothing is taken from them, but one that fails ends the trial.
    #[serde(default)]
    pub warm_up: u32,
    /// The command is killed, and the trial failed, after this long.
    #[serde(default = "ten_minutes")]
    pub timeout: Span,
    /// Figures taken from the output, by id, beside the command's wall time.
    #[serde(default)]
    pub metrics: BTreeMap<String, MetricParameters>,
    /// Id of the metric that the verdict is about; absent: the only one, or the wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

const fn ten_minutes() -> Span {
    Span::from_secs(600)
}

/// Id of the metric that every command yields.
const WALL: &str = common::WALL_TIME;
/// How often the command runs in a block on each arm: the mean of five has less than half of the noise of one, and a block stays short.
const RUNS: u32 = 5;
/// Between two commands the guest ends what the first left and CPU time is read.
const GAP: Span = Span::from_millis(10);
/// Most unmeasured runs in a guest: each is waited for, and shown by nothing.
const MOST_WARM_UP: u32 = 1000;

fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    if read.command.first().is_none_or(|program| program.is_empty()) {
        return Err(FieldError::new(&["command"], "there is no program to run")
            .help("write the program and its arguments as a list: [\"sysbench\", \"cpu\", \"run\"]"));
    }
    for (name, source) in &read.env {
        secret::look(source).map_err(|error| error.within(&["env", name]))?;
    }
    if read.timeout == Span::ZERO {
        return Err(FieldError::new(&["timeout"], "0s leaves the command no time"));
    }
    if read.warm_up > MOST_WARM_UP {
        return Err(FieldError::new(&["warm-up"], format!("{} is more than {MOST_WARM_UP}", read.warm_up)));
    }
    if read.metrics.contains_key(WALL) {
        return Err(
            FieldError::new(&["metrics", WALL], "every command yields this one already").help("choose another id")
        );
    }
    if let Some(id) = &read.verdict {
        if id != WALL && !read.metrics.contains_key(id) {
            let known: Vec<&str> = read.metrics.keys().map(String::as_str).chain([WALL]).collect();
            return Err(FieldError::new(&["verdict"], format!("there is no metric `{id}`"))
                .help(format!("choose one of: {}", known.join(", "))));
        }
    } else if read.metrics.len() > 1 {
        return Err(FieldError::new(
            &["verdict"],
            "there are several metrics, and it is not said which the verdict is about",
        )
        .help("write `verdict = \"ID\"`"));
    }
    Ok(read)
}

fn extractors(parameters: &Parameters) -> Result<BTreeMap<String, Extractor>, FieldError> {
    parameters
        .metrics
        .iter()
        .map(|(id, metric)| {
            let extractor = Extractor::new(metric).map_err(|error| error.within(&["metrics", id]))?;
            Ok((id.clone(), extractor))
        })
        .collect()
}

struct Exec {
    parameters: Parameters,
    extractors: BTreeMap<String, Extractor>,
}

impl Exec {
    fn verdict(&self) -> &str {
        let only = || self.parameters.metrics.keys().next().map_or(WALL, String::as_str);
        self.parameters.verdict.as_deref().unwrap_or_else(only)
    }
}

impl Workload for Exec {
    fn metrics(&self) -> Vec<MetricSpec> {
        let mut metrics = vec![MetricSpec::new(WALL, "wall time of the command", Unit::Seconds, Better::Lower)];
        metrics.extend(self.parameters.metrics.iter().map(|(id, metric)| metric.spec(id)));
        MetricSpec::with_primary(metrics, self.verdict())
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let (turn, warm_up, commands) = (Span::ZERO, Span::ZERO, Some(RUNS));
        let turns = Some(TurnTraits { turn, warm_up, gap: GAP, renewed: None, freezes: false, commands });
        Traits { longest: Some(self.parameters.timeout), turns, ..Traits::of(*guest) }
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        if self.parameters.warm_up > 0 {
            let spec = self.spec(site)?;
            (0..self.parameters.warm_up).try_for_each(|_| self.run(site, spec.clone()).map(drop))?;
        }
        Ok(Box::new(Self { parameters: self.parameters.clone(), extractors: self.extractors.clone() }))
    }
}

/// One run of the command.
struct Ran {
    /// Start and end, seen from outside the guest: the clock of every verdict is there.
    window_ns: (u64, u64),
    metrics: BTreeMap<String, f64>,
}

impl Exec {
    /// What the guest's agent is asked to run.
    fn spec(&self, site: &WorkSite<'_>) -> Result<ExecSpec, WorkloadError> {
        let env = self.parameters.env.iter().map(|(name, source)| {
            let secret = secret::resolve(source).map_err(|error| error.within(&["env", name]))?;
            Ok((name.clone(), secret.reveal().to_owned()))
        });
        let env = env.collect::<Result<Vec<_>, FieldError>>();
        let env = env.map_err(|error| WorkloadError::Command(error.to_string()))?;
        // What the study says comes after what the guest's image says, and so holds.
        let (image, at) = site.commands.map(|image| (image.env.clone(), image.directory.clone())).unwrap_or_default();
        Ok(ExecSpec {
            user: None,
            argv: self.parameters.command.clone(),
            env: [image, env].concat(),
            directory: self.parameters.directory.clone().or(at),
            timeout_ns: self.parameters.timeout.ns,
            output_limit_bytes: OUTPUT_BYTES,
        })
    }

    /// Runs the command once.
    fn run(&self, site: &WorkSite<'_>, spec: ExecSpec) -> Result<Ran, WorkloadError> {
        let start_ns = monotonic_ns();
        let result = command::run(site.guest, spec, site.timeout)?;
        let window_ns = (start_ns, monotonic_ns());
        let wall_s = window_ns.1.saturating_sub(start_ns) as f64 / 1e9;
        let mut metrics = BTreeMap::from([(WALL.to_owned(), wall_s)]);
        let stdout = String::from_utf8_lossy(&result.stdout);
        for (id, extractor) in &self.extractors {
            let value = extractor.extract(&stdout).map_err(|why| {
                WorkloadError::Command(format!("metric `{id}`: {why}; the command printed: {}", tail(&result.stdout)))
            })?;
            metrics.insert(id.clone(), value);
        }
        Ok(Ran { window_ns, metrics })
    }

    /// Runs the command in each of its arm's turns.
    fn take_turns(
        &self,
        site: &WorkSite<'_>,
        spec: &ExecSpec,
        (turns, baton): (&Turns, &Baton),
    ) -> Result<Vec<Ran>, WorkloadError> {
        let of = turns.places.len();
        let run = |(round, &place): (u64, &u32)| {
            if !baton.take(round.saturating_mul(turns.arms.into()).saturating_add(place.into())) {
                return Err(WorkloadError::Command("the set ended before its turn came".to_owned()));
            }
            let ran = self.run(site, spec.clone()).map_err(|error| match error {
                WorkloadError::Command(why) if of > 1 => {
                    WorkloadError::Command(format!("round {} of {of}: {why}", round + 1))
                }
                other => other,
            })?;
            baton.pass();
            Ok(ran)
        };
        (0..).zip(&turns.places).map(run).collect()
    }
}

impl Prepared for Exec {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let spec = self.spec(site)?;
        let turns = schedule.turns.as_deref().zip(schedule.baton.as_deref());
        let ran = match turns {
            Some(turns) => self.take_turns(site, &spec, turns)?,
            None => vec![self.run(site, spec)?],
        };
        Ok(driven(&self.parameters, &ran, turns.is_some()))
    }

    fn verify(&mut self, _: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        // The command's own exit code was its verification: `drive` fails on any other than 0.
        Ok(None)
    }
}

/// What all runs of the command came to: of each metric the mean.
fn driven(parameters: &Parameters, ran: &[Ran], in_turns: bool) -> Driven {
    let runs = ran.len().max(1) as f64;
    let mut metrics: BTreeMap<String, f64> = BTreeMap::new();
    for (id, value) in ran.iter().flat_map(|ran| &ran.metrics) {
        *metrics.entry(id.clone()).or_default() += value;
    }
    metrics.values_mut().for_each(|sum| *sum /= runs);
    let count = |ran: &Ran| {
        let ns = ran.window_ns.1.saturating_sub(ran.window_ns.0);
        TurnCount { operations: 1, bytes: 0, measured_ns: ns, response_ns: ns }
    };
    let counts: Vec<TurnCount> = ran.iter().map(count).collect();
    let turns = in_turns.then(|| TurnsDone {
        measured_ns: counts.iter().map(|count| count.measured_ns).sum(),
        counts,
        overran: 0,
        began_ns: ran.iter().map(|ran| ran.window_ns.0).collect(),
    });
    let measurement = Measurement {
        metrics,
        counts: BTreeMap::from([(tare_model::count::OPERATIONS.to_owned(), ran.len() as u64)]),
        ..Measurement::default()
    };
    let (first, last) = (ran.first().map(|ran| ran.window_ns.0), ran.last().map(|ran| ran.window_ns.1));
    Driven {
        measurement,
        window_ns: (first.unwrap_or_default(), last.unwrap_or_default()),
        turns,
        work: ran.len() as f64,
        facts: BTreeMap::from([("command".to_owned(), parameters.command.join(" "))]),
        ..Driven::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_verdict_needs_to_be_named_only_where_it_is_open() {
        let metric = |pattern: &str| json!({"regex": pattern, "unit": "events/s", "better": "higher"});
        let one = checked(&json!({"command": ["x"], "metrics": {"events": metric("e (.*)")}})).unwrap();
        let exec = Exec { extractors: extractors(&one).unwrap(), parameters: one };
        assert_eq!(exec.metrics()[0].id, "events");
        let two = json!({"command": ["x"], "metrics": {"a": metric("(a)"), "b": metric("(b)")}});
        assert_eq!(checked(&two).unwrap_err().path, ["verdict"]);
    }

    #[test]
    fn the_value_of_several_runs_is_their_mean_and_each_is_a_turn() {
        let parameters = checked(&json!({"command": ["x"]})).unwrap();
        let ran = |from: u64, to: u64, score: f64| {
            let metrics = BTreeMap::from([(WALL.to_owned(), (to - from) as f64 / 1e9), ("score".to_owned(), score)]);
            Ran { window_ns: (from, to), metrics }
        };
        let all = driven(&parameters, &[ran(10, 1_000_000_010, 5.0), ran(2_000_000_000, 4_000_000_000, 10.0)], true);
        assert_eq!((all.measurement.metrics[WALL], all.measurement.metrics["score"]), (1.5, 7.5));
        assert_eq!((all.work, all.window_ns, all.measured_s()), (2.0, (10, 4_000_000_000), 3.0));
        let turns = all.turns.unwrap();
        assert_eq!(turns.commands(), [(10, 1_000_000_010), (2_000_000_000, 4_000_000_000)]);
        assert!(turns.counts.iter().all(|turn| turn.operations == 1 && turn.response_ns == turn.measured_ns));
        assert_eq!(driven(&parameters, &[ran(1, 2, 1.0)], false).turns, None);
    }
}
