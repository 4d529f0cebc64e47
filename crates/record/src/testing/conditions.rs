//! Trials that are conditions of one guest.

use tare_model::Span;
use tare_model::aggressor::Aggressor;
use tare_model::metric::{Better, MetricSpec, Unit, common, isolation};
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::{Case, CaseSchedule, Condition};
use tare_model::trial::{Outcome, TrialRecord};
use tare_model::turns::{TrialTurns, TurnSpec, Turns, TurnsDone, Waiting};

use super::{ARMS, noise, plan, trial};

/// What the neighbours do in the plan.
const WORKS: [Option<Aggressor>; 3] = [None, Some(Aggressor::Spin), Some(Aggressor::Cache)];

const fn turn_spec() -> TurnSpec {
    let (turn, warm_up, gap) = (Span::from_millis(500), Span::from_millis(100), Span::from_millis(200));
    TurnSpec { turn, warm_up, gap, waiting: Waiting::Idle, commands: None }
}

/// A study of one victim on two arms, `native` and `container`: neighbours that stand idle, that spin, and that take the caches.
pub fn conditions_plan(blocks: u32) -> Plan {
    let mut plan = plan(blocks);
    plan.study.arms.retain(|arm| arm.replica_of.is_none());
    let victim = plan.study.cases.remove(0);
    let case = |work: &Option<Aggressor>| {
        let name = work.map_or("none", Aggressor::name);
        let (victim_id, label) = ("rr".to_owned(), "small requests".to_owned());
        let condition = Condition { victim: victim_id, label, work: *work, turns: turn_spec() };
        Case {
            id: format!("rr@{name}"),
            label: format!("small requests, neighbours: {name}"),
            schedule: CaseSchedule::Conditions(condition),
            ..victim.clone()
        }
    };
    plan.study.cases = WORKS.iter().map(case).collect();
    let (arms, cases) = (&plan.study.arms, &plan.study.cases);
    let sets = (1..=blocks).flat_map(|block| arms.iter().map(move |arm| (block, arm)));
    let trials = sets.flat_map(|(block, arm)| cases.iter().map(move |case| (block, arm.id.clone(), case.id.clone())));
    let trials = trials.zip(0..).map(|((block, arm, case), index)| PlannedTrial { index, block, case, arm });
    plan.trials = trials.collect();
    let each = WORKS.len() as u32;
    plan.sets = (0..plan.trials.len() as u32 / each).map(|set| (set * each..(set + 1) * each).collect()).collect();
    plan
}

/// A completed trial of it. Instances differ by 20 %, and what is measured of one by half a percent. Natively a neighbour that spins doubles the
/// victim's time; in the container it has a tenth of the CPU and does nothing to it. One that takes the caches makes it 1.3 on both.
pub fn conditions_trial(plan: &Plan, index: u32) -> TrialRecord {
    let mut record = trial(plan, index);
    let planned = record.planned.clone();
    let spec = |id: &str, unit, better| MetricSpec::new(id, id, unit, better);
    record.metrics.push(MetricSpec::new(
        common::RESPONSE_P99,
        "response time, 99th percentile",
        Unit::Seconds,
        Better::Lower,
    ));
    record.metrics.push(spec(isolation::HOST_DELAY, Unit::Seconds, Better::Lower));
    let Outcome::Completed(measurement) = &mut record.outcome else { return record };
    let work = plan.study.cases.iter().find(|case| case.id == planned.case);
    let work = work.and_then(|case| case.schedule.condition()).and_then(|condition| condition.work);
    let in_container = planned.arm == ARMS[1];
    let (slower, achieved) = match work {
        None => (1.0, 0.0),
        Some(Aggressor::Spin) if in_container => (1.0, 1e8),
        Some(Aggressor::Spin) => (2.0, 1e9),
        Some(_) => (1.3, 5e7),
    };
    let instance = 1.0 + 0.2 * noise(u64::from(planned.block) * 2 + u64::from(in_container));
    let time = 40e-6 * instance * slower * (1.0 + 0.005 * noise(u64::from(index) + 77));
    measurement.metrics.insert("response_time_p50_s".to_owned(), time);
    measurement.metrics.insert(common::RESPONSE_P99.to_owned(), time * 3.0);
    measurement.metrics.insert(common::OPERATIONS.to_owned(), 1.0 / time);
    measurement.metrics.insert(isolation::HOST_DELAY.to_owned(), 0.0004);
    if work.is_some() {
        let rate = achieved * (1.0 + 0.01 * noise(u64::from(index) + 999));
        measurement.metrics.insert(isolation::WORK.to_owned(), rate);
        record.metrics.push(spec(isolation::WORK, Unit::Other("iterations/s".to_owned()), Better::Higher));
    }
    let conditions = WORKS.len() as u32;
    let places = (0..16).map(|round| (index + round) % conditions).collect();
    let turns = Turns { spec: turn_spec(), arms: conditions, places };
    record.turns = Some(TrialTurns { start_ns: 1_000_000_000, turns, done: TurnsDone::default(), waiting_cpus: None });
    record
}
