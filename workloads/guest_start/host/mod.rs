//! `guest-start`: guests are made, answer, and are taken away, over and over; or are made, run a command each, and are taken away.
//!
//! Guests are made in bursts of as many at one time as the load has clients: one by default, so that each start has the host to itself. Where
//! arms take turns, each turn is one burst. In an open loop they are made at times that are fixed in advance. The measured guest stands beside
//! them and is idle.

mod burst;
mod figures;
mod open;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::traits::TurnTraits;
use tare_model::turns::Turns;

use crate::clock::monotonic_ns;
use crate::command;
use crate::entry::{Entry, normalise, read, schema};
use crate::{Baton, Driven, Failure, Prepared, Schedule, Starter, Traits, WorkSite, Workload, WorkloadError};
use burst::Burst;
use open::OpenLoad;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "guest-start",
    summary: "starts as operations: a guest is made, answers (and runs a command of yours), and is taken away; one by one or in bursts",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        Ok(Box::new(Start { parameters, most: most_of(load)?, open: OpenLoad::of(load) }))
    },
    normalise: |parameters: &Value| -> Result<Value, FieldError> {
        checked(parameters)?;
        normalise::<Parameters>(parameters)
    },
    view: None,
};

/// Parameters of `guest-start`. How many guests are made at one time are the clients of `load` (1); how many times in a block, the `rounds` of `turns` (20).
/// With an open load so many a second are made, and at one time there are at most as many as its `connections`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Parameters {
    /// Program and arguments that each guest runs once it answers. No shell is used; write `["sh", "-c", "..."]` for one. The time from the first act of making the guest to the command's end
    /// is then what is compared, beside that to the first answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The command is killed, and the start counted as failed, after this long.
    #[serde(default = "command::minute")]
    pub timeout: Span,
    /// Bursts before those that count, at most 100: files that a start reads are in the host's page cache then.
    #[serde(default = "one")]
    pub warm_up: u32,
}

const fn one() -> u32 {
    1
}

/// Bursts of an arm in a block where the study does not say.
const ROUNDS: u32 = 20;
/// Between two bursts the kernel takes apart what the last one left, such as namespaces.
const GAP: Span = Span::from_millis(20);
/// Most guests of a burst.
const MOST_AT_ONCE: u32 = 256;
/// Most bursts that do not count.
const MOST_WARM_UP: u32 = 100;

fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    command::check(&read.command, read.timeout)?;
    if read.warm_up > MOST_WARM_UP {
        return Err(FieldError::new(&["warm-up"], format!("{} is more than {MOST_WARM_UP}", read.warm_up)));
    }
    Ok(read)
}

/// Most guests that there are at one time.
fn most_of(load: &LoadModel) -> Result<u32, FieldError> {
    let (kind, field) = match load {
        LoadModel::Closed { .. } => ("closed", "clients"),
        LoadModel::Open { .. } => ("open", "connections"),
    };
    if load.connections() > MOST_AT_ONCE {
        let too_many = format!("{} guests at one time are more than {MOST_AT_ONCE}", load.connections());
        return Err(FieldError::new(&["load", kind, field], too_many));
    }
    match load {
        LoadModel::Closed { think_time, .. } if *think_time != Span::ZERO => {
            Err(FieldError::new(&["load", "closed", "think-time"], "a burst is made once the last one is gone")
                .help("leave `think-time` out, or write `load = { open = { rate = \"2/s\" } }`"))
        }
        _ => Ok(load.connections()),
    }
}

struct Start {
    parameters: Parameters,
    /// Guests at one time, beside the measured one: of a burst, or in an open loop at most.
    most: u32,
    open: Option<OpenLoad>,
}

impl Start {
    /// The metric that the verdict is about.
    fn verdict(&self) -> &'static str {
        if self.parameters.command.is_empty() { common::STARTS_MEAN } else { common::TASKS_MEAN }
    }
}

impl Workload for Start {
    fn metrics(&self) -> Vec<MetricSpec> {
        let from = if self.open.is_some() { "due" } else { "create" };
        let each = |what: &str, ids: [&'static str; 3]| {
            let words = ["mean", "median", "99th percentile"];
            ids.into_iter().zip(words.map(|word| format!("{what}, {word}"))).collect::<Vec<_>>()
        };
        let mut ids = each(
            &format!("start, {from} to first answer"),
            [common::STARTS_MEAN, figures::START_P50, figures::START_P99],
        );
        if !self.parameters.command.is_empty() {
            let task = [common::TASKS_MEAN, figures::TASK_P50, figures::TASK_P99];
            ids.extend(each(&format!("task, {from} to the command's end"), task));
        }
        if self.most > 1 && self.open.is_none() {
            ids.push((figures::BURST_MEAN, "burst, first create to last answer, mean".to_owned()));
        }
        ids.push((figures::STOP_MEAN, "taking a guest away, mean".to_owned()));
        let spec =
            |unit: Unit| move |(id, label): (&str, String)| MetricSpec::new(id, &label, unit.clone(), Better::Lower);
        let faults = faults(!self.parameters.command.is_empty()).into_iter().map(spec(Unit::Count));
        MetricSpec::with_primary(ids.into_iter().map(spec(Unit::Seconds)).chain(faults).collect(), self.verdict())
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let (turn, warm_up, commands) = (Span::ZERO, Span::ZERO, Some(ROUNDS));
        let turns = TurnTraits { turn, warm_up, gap: GAP, renewed: None, freezes: false, commands };
        let no_turns = self.open.map(|_| "starts of an open loop go on beside one another for longer than a turn");
        Traits { made: self.most, turns: self.open.is_none().then_some(turns), no_turns, ..Traits::of(*guest) }
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let running = Running { parameters: self.parameters.clone(), most: self.most, open: self.open };
        let starter = starter(site)?;
        burst::make_ready(starter)?;
        for _ in 0..self.parameters.warm_up {
            Burst::of(self.most, starter, &self.parameters)?.mostly_started()?;
        }
        Ok(Box::new(running))
    }
}

/// Metrics of page faults, by what they are for people.
fn faults(command: bool) -> Vec<(&'static str, String)> {
    let of = |[all, major]: [&'static str; 2], until: &str| {
        [(all, format!("page faults {until}, mean")), (major, format!("page faults {until} that read a disk, mean"))]
    };
    let mut faults = of(figures::START_FAULTS, "to first answer").to_vec();
    if command {
        faults.extend(of(figures::TASK_FAULTS, "of the task"));
    }
    faults
}

fn starter<'a>(site: &WorkSite<'a>) -> Result<&'a dyn Starter, WorkloadError> {
    site.starter.ok_or_else(|| {
        let why = "guests of this arm are not made by tare";
        Failure::new("start further guests", why, "leave the arm out, or the case").into()
    })
}

struct Running {
    parameters: Parameters,
    most: u32,
    open: Option<OpenLoad>,
}

impl Running {
    fn one(&self, starter: &dyn Starter) -> Result<Burst, WorkloadError> {
        Burst::of(self.most, starter, &self.parameters)
    }

    /// A burst in each of its arm's turns.
    fn take_turns(&self, starter: &dyn Starter, turns: &Turns, baton: &Baton) -> Result<Vec<Burst>, WorkloadError> {
        let take = |(round, &place): (u64, &u32)| {
            if !baton.take(round.saturating_mul(turns.arms.into()).saturating_add(place.into())) {
                return Err(WorkloadError::Command("the set ended before its turn came".to_owned()));
            }
            let burst = self.one(starter)?;
            baton.pass();
            Ok(burst)
        };
        (0..).zip(&turns.places).map(take).collect()
    }

    /// Bursts one after the other until steady state is over; those that began before it do not count. At least one does.
    fn until_over(&self, starter: &dyn Starter, schedule: &Schedule) -> Result<Vec<Burst>, WorkloadError> {
        let start_ns = if schedule.start_at_ns == 0 { monotonic_ns() } else { schedule.start_at_ns };
        let from_ns = start_ns + schedule.phases.steady_offset_ns();
        let to_ns = from_ns + schedule.phases.steady_state.ns;
        let mut bursts = Vec::new();
        while bursts.is_empty() || monotonic_ns() < to_ns {
            let burst = self.one(starter)?;
            if burst.window_ns.0 >= from_ns {
                bursts.push(burst);
            }
        }
        Ok(bursts)
    }
}

impl Prepared for Running {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let starter = starter(site)?;
        let turns: Option<(&Arc<Turns>, &Arc<Baton>)> = schedule.turns.as_ref().zip(schedule.baton.as_ref());
        let bursts = match (self.open, turns) {
            (Some(open), _) => open.drive(starter, &self.parameters, schedule)?,
            (None, Some((turns, baton))) => self.take_turns(starter, turns, baton)?,
            (None, None) => self.until_over(starter, schedule)?,
        };
        Burst::mostly_started_in(&bursts)?;
        let mut driven = figures::driven(&bursts, !self.parameters.command.is_empty(), turns.is_some());
        driven.facts.extend(starter.facts());
        Ok(driven)
    }

    fn verify(&mut self, _: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        // Each guest answered, its command ended well, and it was seen to be gone; what did otherwise was counted as failed.
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tare_model::Rate;
    use tare_model::load::Arrivals;

    #[test]
    fn what_is_compared_is_the_task_where_there_is_one() {
        let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
        let primary = |parameters: &Value| (ENTRY.make)(parameters, &load).unwrap().metrics()[0].id.clone();
        assert_eq!(primary(&json!({})), common::STARTS_MEAN);
        assert_eq!(primary(&json!({"command": ["true"]})), common::TASKS_MEAN);
    }

    #[test]
    fn what_it_cannot_do_is_refused_by_its_field() {
        let refused = |parameters: Value, load: LoadModel| {
            (ENTRY.make)(&parameters, &load).err().map(|error| error.path.join(".")).unwrap_or_default()
        };
        let closed = |clients, ns| LoadModel::Closed { clients, think_time: Span { ns } };
        assert_eq!(refused(json!({"command": [""]}), closed(1, 0)), "command");
        assert_eq!(refused(json!({"timeout": "0s"}), closed(1, 0)), "timeout");
        assert_eq!(refused(json!({"warm-up": 101}), closed(1, 0)), "warm-up");
        assert_eq!(refused(json!({}), closed(257, 0)), "load.closed.clients");
        assert_eq!(refused(json!({}), closed(1, 5)), "load.closed.think-time");
        assert_eq!(refused(json!({}), closed(256, 0)), "");
        let open = |connections| LoadModel::Open { rate: Rate(2.0), arrivals: Arrivals::Poisson, connections };
        assert_eq!(refused(json!({}), open(300)), "load.open.connections");
        assert_eq!(refused(json!({}), open(8)), "");
    }
}
