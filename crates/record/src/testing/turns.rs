//! Trials whose arms take turns.

use tare_model::Span;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::CaseSchedule;
use tare_model::trial::{Outcome, TrialRecord};
use tare_model::turns::{TrialTurns, TurnCount, TurnSpec, Turns, TurnsDone, Waiting};

use super::{ARMS, noise, plan, trial};

/// The plan of [`plan`] whose arms take turns.
pub fn turns_plan(blocks: u32) -> Plan {
    let mut plan = plan(blocks);
    plan.study.cases[0].schedule = CaseSchedule::Turns(turn_spec());
    let arms = ARMS.len() as u32;
    plan.sets = (0..blocks).map(|block| (block * arms..(block + 1) * arms).collect()).collect();
    plan
}

/// The plan of [`plan`] whose arms take turns in pairs with the baseline.
pub fn pairs_plan(blocks: u32) -> Plan {
    let mut plan = turns_plan(blocks);
    let (pairs, why) = (ARMS.len() as u32 - 1, "this host has room for two of them".to_owned());
    plan.study.cases[0].schedule = CaseSchedule::Pairs { turns: turn_spec(), pairs, why };
    plan.sets = (0..blocks * pairs).map(|block| vec![2 * block, 2 * block + 1]).collect();
    let arm = |index: u32| ARMS[if index.is_multiple_of(2) { 0 } else { 1 + (index / 2 % pairs) as usize }].to_owned();
    let trial = |index: u32| PlannedTrial { index, block: index / 2 + 1, case: "idle".to_owned(), arm: arm(index) };
    plan.trials = (0..2 * blocks * pairs).map(trial).collect();
    plan
}

const fn turn_spec() -> TurnSpec {
    let (turn, warm_up, gap) = (Span::from_millis(20), Span::from_millis(2), Span::from_millis(1));
    TurnSpec { turn, warm_up, gap, waiting: Waiting::Idle, commands: None }
}

/// The same trial in turns with the other arms: its first and its last fifty turns are warm-up and ramp-down.
pub fn turns_trial(plan: &Plan, index: u32) -> TrialRecord {
    let mut record = trial(plan, index);
    let Outcome::Completed(measurement) = &mut record.outcome else { return record };
    let in_pairs = matches!(plan.study.cases[0].schedule, CaseSchedule::Pairs { .. });
    let (arms, rounds) = (if in_pairs { 2 } else { ARMS.len() as u32 }, 500_u64);
    let rate = measurement.metrics["operations_per_s"];
    let start_ns = 1_000_000_000 * (50 + 50 * u64::from(record.planned.block));
    let places = (0..rounds as u32).map(|round| (index + round) % arms).collect();
    let turns = Turns { spec: turn_spec(), arms, places };
    let count = |round: u64| {
        let host = 1.0 + 0.05 * noise(round + 1000 * u64::from(record.planned.block - 1));
        let operations = (rate * 0.018 * host * (1.0 + 0.02 * noise(round * 7 + u64::from(index) * 9001))) as u64;
        TurnCount { operations, bytes: operations * 256, measured_ns: 18_000_000, response_ns: 17_500_000 }
    };
    let steady = 50..rounds - 50;
    let counts: Vec<TurnCount> =
        (0..rounds).map(|round| if steady.contains(&round) { count(round) } else { TurnCount::default() }).collect();
    let sum = counts.iter().fold(TurnCount::default(), |sum, own| sum.plus(*own));
    measurement.metrics.insert("operations_per_s".to_owned(), sum.operations as f64 / (sum.measured_ns as f64 / 1e9));
    let window = |round: u64| turns.windows(start_ns).nth(round as usize).unwrap();
    record.window_ns = Some((window(50).0, window(rounds - 51).1));
    let done = TurnsDone { measured_ns: sum.measured_ns, counts, overran: 1, began_ns: Vec::new() };
    record.turns = Some(TrialTurns { start_ns, turns, done, waiting_cpus: Some(0.002) });
    record
}
