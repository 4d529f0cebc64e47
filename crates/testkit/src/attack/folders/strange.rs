//! Folders whose hashes are all right: runs that nobody measured.

use std::path::Path;

use tare_model::plan::Plan;
use tare_model::study::{CaseLoad, CaseSchedule, Guests};
use tare_model::trial::{Flag, Outcome, TrialRecord};
use tare_model::turns::{TurnCount, TurnSpec};
use tare_record::testing;

use super::{Case, Must};

const COMMANDS: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}tx\u{2066}\u{0}\r=HYPERLINK(\"x\")<script>alert(1)</script>";

/// A run: what it is, what must hold, and what makes it from a plan and its trials.
type Run = (&'static str, Must, fn(&mut Plan, &mut Vec<TrialRecord>));

const RUNS: [Run; 15] = [
    ("with doubled figures and all hashes computed anew", Must::OtherRoot, |_, trials| {
        each(trials, |m| m.metrics.values_mut().for_each(|value| *value *= 2.0));
    }),
    ("whose names command a terminal", Must::Sound, |plan, _| {
        plan.study.question = COMMANDS.to_owned();
        plan.study.arms.iter_mut().for_each(|arm| arm.label = COMMANDS.to_owned());
        plan.study.cases[0].label = COMMANDS.to_owned();
        plan.differences.push(COMMANDS.to_owned());
    }),
    ("whose reasons command a terminal", Must::Sound, |_, trials| {
        trials[1].outcome = Outcome::Invalid { reason: COMMANDS.to_owned() };
        trials[2].flags.push(Flag { kind: COMMANDS.to_owned(), detail: COMMANDS.to_owned() });
        trials[2].facts.insert(COMMANDS.to_owned(), COMMANDS.to_owned());
        trials[2].started_at = COMMANDS.to_owned();
    }),
    ("whose metrics' names command a terminal", Must::Sound, |_, trials| {
        trials.iter_mut().flat_map(|trial| &mut trial.metrics).for_each(|spec| spec.label = COMMANDS.to_owned());
        trials.iter_mut().flat_map(|trial| &mut trial.parity).for_each(|row| row.resource = COMMANDS.to_owned());
    }),
    ("whose figures are no numbers", Must::Sound, |_, trials| {
        each(trials, |m| m.metrics.values_mut().for_each(|value| *value = f64::NAN));
    }),
    ("whose figures are endless", Must::Sound, |_, trials| {
        each(trials, |m| m.metrics.values_mut().for_each(|value| *value = f64::INFINITY));
    }),
    ("whose figures are as large as numbers can be", Must::Sound, |_, trials| {
        each(trials, |m| m.metrics.values_mut().for_each(|value| *value = f64::MAX));
        trials.iter_mut().for_each(|trial| (trial.wall_s, trial.load_s) = (f64::MAX, f64::MAX));
    }),
    ("whose figures are zero or less", Must::Sound, |_, trials| {
        each(trials, |m| m.metrics.values_mut().enumerate().for_each(|(at, value)| *value = -(at as f64)));
    }),
    ("whose counts are as large as stored numbers can be", Must::Sound, |_, trials| {
        each(trials, |m| {
            m.counts.values_mut().for_each(|count| *count = i64::MAX as u64);
            let times = m.histograms.values_mut();
            // All of them together must fit into the database.
            times.for_each(|times| {
                times.bins.truncate(1);
                times.bins.iter_mut().for_each(|bin| bin.count = i64::MAX as u64);
                (times.max, times.sum) = (i64::MAX as u64, u128::MAX);
            });
        });
    }),
    ("whose times run backwards", Must::Sound, |_, trials| {
        trials.iter_mut().for_each(|trial| trial.window_ns = Some((i64::MAX as u64, 0)));
        let samples = trials.iter_mut().flat_map(|trial| &mut trial.samples);
        samples.enumerate().for_each(|(at, sample)| sample.at_ns = (i64::MAX as u64) - at as u64 * 1_000_000_007);
    }),
    ("with 4294967295 guests, drivers and instances", Must::Sound, |plan, _| {
        let case = &mut plan.study.cases[0];
        let guests = Guests { count: u32::MAX, drivers: u32::MAX };
        case.load = CaseLoad::Fixed { load: case.load.largest(), guests };
        case.instances = u32::MAX;
    }),
    ("with phases of centuries and samples of no length", Must::Sound, |plan, _| {
        plan.study.cases[0].phases.steady_state = tare_model::Span::from_secs(u32::MAX.into());
        plan.study.lab.sample_interval = tare_model::Span::ZERO;
        plan.study.scale = 1e300;
    }),
    ("in turns of no length, of 4294967295 arms and of all counts there are", Must::Sound, |plan, trials| {
        for trial in trials.iter_mut() {
            *trial = testing::turns_trial(plan, trial.planned.index);
            let Some(taken) = &mut trial.turns else { continue };
            let none = tare_model::Span::ZERO;
            taken.turns.spec = TurnSpec { turn: none, warm_up: none, gap: none, ..taken.turns.spec };
            (taken.start_ns, taken.turns.arms, taken.done.overran) = (i64::MAX as u64, u32::MAX, u32::MAX);
            taken.turns.places.iter_mut().for_each(|place| *place = u32::MAX);
            let most = i64::MAX as u64;
            let all = TurnCount { operations: most, bytes: most, measured_ns: most, response_ns: most };
            taken.done.counts.iter_mut().for_each(|count| *count = all);
            taken.waiting_cpus = Some(f64::MAX);
            plan.study.cases[0].schedule = CaseSchedule::Turns(taken.turns.spec);
        }
    }),
    ("without a trial", Must::Sound, |_, trials| trials.clear()),
    ("with a thousand metrics", Must::Sound, |_, trials| {
        for trial in trials {
            let spec = trial.metrics[1].clone();
            trial
                .metrics
                .extend((0..1000).map(|at| tare_model::metric::MetricSpec { id: format!("m{at}"), ..spec.clone() }));
            if let Outcome::Completed(m) = &mut trial.outcome {
                m.metrics.extend((0..1000).map(|at| (format!("m{at}"), f64::from(at))));
            }
        }
    }),
];

/// How many cases there are.
pub(super) const CASES: u32 = RUNS.len() as u32;

/// Makes a case.
pub(super) fn make(number: u32, folder: &Path) -> Case {
    let (name, must, alter) = RUNS[number as usize];
    let mut plan = testing::plan(1);
    let mut trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
    alter(&mut plan, &mut trials);
    if trials.is_empty() {
        plan.trials.clear();
    }
    testing::write_run(folder, &plan, &trials);
    Case::new(format!("a run {name}"), must)
}

fn each(trials: &mut [TrialRecord], alter: impl Fn(&mut tare_model::trial::Measurement)) {
    for trial in trials {
        if let Outcome::Completed(measurement) = &mut trial.outcome {
            alter(measurement);
        }
    }
}
