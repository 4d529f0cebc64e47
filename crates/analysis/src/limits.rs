//! What limits the precision of a case in turns: its instances, or what changes from turn to turn, and what more effort would buy.

use std::collections::BTreeMap;

use tare_model::findings::{CaseFindings, Comparison, PrecisionLimits, TurnFigure, Verdict};
use tare_model::metric::MetricSpec;
use tare_model::trial::TrialRecord;
use tare_model::turns::{TrialTurns, TurnCount};

use crate::comparison;
use crate::components::{self, BLOCKS_MIN, Round};
use crate::distribution::completed;
use crate::effort::Run;
use crate::{student, turns};

/// The limits of each comparison of the primary metric but the replica's, where both arms took turns in enough blocks to tell. `trials`: those of the case
/// by arm.
pub(crate) fn of_case(
    trials: &BTreeMap<&str, Vec<&TrialRecord>>,
    (baseline, pairs): (&str, u32),
    (spec, comparisons): (&MetricSpec, &[Comparison]),
) -> Vec<PrecisionLimits> {
    let sets = Sets::of(trials);
    let taken = sets.0.iter().flatten().find_map(|record| record.turns.as_ref());
    let commands = taken.is_some_and(|taken| taken.turns.spec.commands.is_some());
    let Some(figure) = turns::figure_of(spec, commands) else { return Vec::new() };
    let limits = |comparison: &Comparison| sets.limits((baseline, pairs), comparison, figure);
    comparisons.iter().filter(|comparison| comparison.verdict != Verdict::NoiseFloor).filter_map(limits).collect()
}

/// The trials of each block that ran in turns and completed.
struct Sets<'a>(Vec<Vec<&'a TrialRecord>>);

impl<'a> Sets<'a> {
    fn of(trials: &BTreeMap<&str, Vec<&'a TrialRecord>>) -> Self {
        let mut blocks: BTreeMap<u32, Vec<&TrialRecord>> = BTreeMap::new();
        let all = trials.values().flatten().copied();
        for record in all.filter(|record| record.turns.is_some() && completed(record).is_some()) {
            blocks.entry(record.planned.block).or_default().push(record);
        }
        Self(blocks.into_values().collect())
    }

    fn limits(
        &self,
        (baseline, pairs): (&str, u32),
        comparison: &Comparison,
        (figure, of_primary): (TurnFigure, bool),
    ) -> Option<PrecisionLimits> {
        let rounds = self.0.iter().filter_map(|set| rounds(set, (&comparison.arm, baseline), figure));
        let rounds: Vec<Vec<Round>> = rounds.collect();
        let components = components::components(&rounds)?;
        let mean = |of: &dyn Fn(&Vec<&TrialRecord>) -> Option<f64>| {
            student::mean(&self.0.iter().filter_map(of).collect::<Vec<f64>>())
        };
        // A block of the study has a set for each pair.
        let sets = f64::from(pairs);
        let wall_s = sets * mean(&|set| set.first().map(|record| turns::wall_s(record)))?;
        let steady_wall_s = sets * mean(&|set| steady_wall_s(set))?;
        let run = Run {
            blocks: rounds.len() as u32,
            comparisons: comparison::family(comparison),
            with_floor: comparison.floor.is_some(),
            components,
            around_s: (wall_s - steady_wall_s).max(0.0),
            steady_wall_s,
            steady_s: mean(&|set| set.first()?.measured_s())?,
        };
        let detectable = comparison.detectable.filter(|size| size.is_finite())?;
        Some(PrecisionLimits {
            arm: comparison.arm.clone(),
            figure,
            of_primary,
            rounds: rounds.iter().map(Vec::len).sum::<usize>() as f64 / rounds.len() as f64,
            instances: components.instances,
            turns: components.turns,
            instances_seen: components.seen,
            detectable,
            spent: run.effort(run.blocks, 1.0),
            by_blocks: run.by_blocks(),
            by_length: run.by_length(),
            least: run.least(),
            quiet_host: (detectable.ln_1p() * run.quiet()).exp_m1(),
        })
    }
}

/// What an arm and the baseline did in each round in which both were measured; `None` where either is not of the set.
fn rounds(set: &[&TrialRecord], (arm, baseline): (&str, &str), figure: TurnFigure) -> Option<Vec<Round>> {
    let counts = |arm: &str| {
        let own = set.iter().find(|record| record.planned.arm == arm)?;
        Some(&own.turns.as_ref()?.done.counts)
    };
    let both = counts(arm)?.iter().zip(counts(baseline)?);
    let both = both.filter(|(own, base)| own.measured_ns > 0 && base.measured_ns > 0);
    let round = |(own, base): (&TurnCount, &TurnCount)| [turns::parts(own, figure), turns::parts(base, figure)];
    Some(both.map(round).collect())
}

/// Wall time of the steady state of all arms of a set together, seconds.
fn steady_wall_s(set: &[&TrialRecord]) -> Option<f64> {
    let own = |taken: &TrialTurns| {
        let (slot, measured) = (taken.turns.spec.slot().ns as f64, turns::measured(taken));
        let commands = if taken.turns.spec.commands.is_some() { taken.done.measured_ns as f64 } else { 0.0 };
        f64::from(taken.turns.arms) * (measured.count() as f64 * slot + commands) * 1e-9
    };
    // Commands of one arm may take longer than those of another.
    let each: Vec<f64> = set.iter().filter_map(|record| record.turns.as_ref().map(own)).collect();
    student::mean(&each)
}

/// How the limits were found, in a paragraph; nothing where there are none.
pub(crate) fn method(cases: &[CaseFindings]) -> Option<String> {
    cases.iter().any(|case| !case.limits.is_empty()).then(|| {
        format!(
            "What limits a case in turns, from {BLOCKS_MIN} blocks on: the log ratio of a block spreads because each block has fresh \
             instances, and because the host changes from turn to turn. The second part is the variance of batches of rounds over their \
             number (batch means, so neighbouring rounds need not be independent); the first is the variance between blocks less the second \
             (Kalibera and Jones, ISMM 2013). It counts as seen where an F test rejects at 5 % that turns explain all. Both are uncertain: of \
             a variance from 6 blocks, 95 % intervals reach from 0.4 to 6 times its value. Turns hold sums and no percentiles, so a median \
             response time is represented by the mean."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::testing;

    #[test]
    fn limits_come_from_six_blocks_in_turns_on() {
        let plan = testing::turns_plan(8);
        let records: Vec<_> = (0..24).map(|index| testing::turns_trial(&plan, index)).collect();
        let found = |blocks: u32, spec: usize| {
            let mut by_arm: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
            for record in records.iter().filter(|record| record.planned.block <= blocks) {
                by_arm.entry(&record.planned.arm).or_default().push(record);
            }
            let comparison = Comparison { arm: testing::ARMS[1].to_owned(), detectable: Some(0.04), ..comparison() };
            of_case(&by_arm, (testing::ARMS[0], 1), (&testing::metrics()[spec], &[comparison]))
        };
        assert_eq!(found(5, 1), []);
        let [limits] = &found(8, 1)[..] else { panic!("one arm") };
        assert_eq!((limits.figure, limits.of_primary, limits.rounds), (TurnFigure::Operations, true, 400.0));
        assert!(limits.turns > 0.0 && limits.quiet_host < 0.04, "{limits:?}");
        assert_eq!(limits.spent.blocks, 8);
        assert!((limits.spent.steady_s - 400.0 * 0.018).abs() < 1e-9);
        // Each of 3 trials has 10.5 s of its set.
        assert!((limits.spent.minutes - 8.0 * 31.5 / 60.0).abs() < 1e-9, "{limits:?}");
        let [median] = &found(8, 0)[..] else { panic!("one arm") };
        assert_eq!((median.figure, median.of_primary), (TurnFigure::MeanResponse, false));
        assert_eq!(found(8, 2), [], "turns hold no CPU time");
    }

    fn comparison() -> Comparison {
        let pairs = vec![(0, 1.0, 1.0), (1, 1.0, 1.1)];
        let (spec, role) = (&testing::metrics()[1], crate::comparison::Role::Ordinary);
        let of = crate::comparison::Subject { spec, arm: "", baseline: "" };
        let (ids, missing, planned, by_width, replica, margin) = (("", ""), 0, 2, false, None, None);
        let driver_limited = tare_model::findings::DriverLimited::default();
        let paired = crate::comparison::Paired {
            of,
            ids,
            pairs,
            missing,
            planned,
            by_width,
            replica,
            margin,
            driver_limited,
            role,
        };
        paired.compare()
    }
}
