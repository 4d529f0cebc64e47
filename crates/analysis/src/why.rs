//! Where nothing could be said: the cause that the trials show, and how many blocks would be enough.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::findings::{Comparison, PrecisionLimits, Verdict};
use tare_model::flag;
use tare_model::plan::Plan;
use tare_model::trial::{Outcome, TrialRecord};
use tare_model::written::percent;

use crate::comparison::{NOISY_MIN, family};
use crate::flags::{self, STEAL_MAX};
use crate::power::Rule;
use crate::student;

/// Share of the SUT's CPU time from which other programs are named as a cause; the probe flags a trial from there on.
const FOREIGN_MIN: f64 = 0.05;
/// Most blocks that are proposed.
const BLOCKS_MAX: usize = 1000;
/// Most characters of the reason of a failure.
const REASON_MAX: usize = 160;

/// What a run holds of why.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub plan: &'a Plan,
    pub trials: &'a [TrialRecord],
    /// Wall time of a block of all cases, seconds.
    pub block_s: f64,
}

impl<'a> Ground<'a> {
    pub(crate) fn of(plan: &'a Plan, trials: &'a [TrialRecord]) -> Self {
        let blocks = trials.iter().map(|record| plan.study_block(&record.planned)).max().unwrap_or(1);
        let wall_s: f64 = trials.iter().map(|record| record.wall_s).filter(|s| s.is_finite()).sum();
        Self { plan, trials, block_s: wall_s / f64::from(blocks) }
    }

    /// `Other programs used 13 % of the CPUs in its trials; 24 blocks (16 min) would detect 10 %`, where a comparison says nothing; `None` where it
    /// says something. `case`: `None` of all cases.
    pub(crate) fn why(
        &self,
        case: Option<&str>,
        comparison: &Comparison,
        limits: Option<&PrecisionLimits>,
    ) -> Option<String> {
        let undecided = comparison.verdict == Verdict::NoDifferenceSeen && wanted(comparison).is_some();
        if comparison.verdict == Verdict::CannotSay {
            return self.failure(case, comparison);
        }
        if comparison.verdict != Verdict::TooNoisy && !undecided {
            return None;
        }
        let said = [self.cause(case, comparison, limits), self.remedy(comparison)];
        Some(said.into_iter().flatten().collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
    }

    /// The trials of both arms.
    fn own(&self, case: Option<&str>, comparison: &Comparison) -> Vec<&'a TrialRecord> {
        let of = |record: &&TrialRecord| {
            let arm = &record.planned.arm;
            case.is_none_or(|case| record.planned.case == case)
                && (*arm == comparison.arm || *arm == comparison.baseline)
        };
        self.trials.iter().filter(of).collect()
    }

    /// The first trial that failed, other than by an arm with which it took turns.
    fn failure(&self, case: Option<&str>, comparison: &Comparison) -> Option<String> {
        if comparison.missing == 0 && comparison.ratio.n > 0 {
            return None;
        }
        let own = self.own(case, comparison);
        let failed = |record: &&TrialRecord| match &record.outcome {
            Outcome::Completed(_) => None,
            _ if record.flags.iter().any(|own| own.kind == flag::OTHER_ARM_FAILED) => None,
            Outcome::Failed { reason, .. } | Outcome::Invalid { reason } => Some(reason.clone()),
        };
        let reason = own.iter().find_map(failed)?;
        let line = reason.lines().find(|line| !line.trim().is_empty())?.trim();
        let cut: String = line.chars().take(REASON_MAX).collect();
        let more = if cut.len() < line.len() { "..." } else { "" };
        Some(format!("the first trial without a figure: {}{more}", cut.trim_end_matches('.')))
    }

    /// What made its blocks differ: what was done to the trials from outside, then what they say of themselves, then what the turns show.
    fn cause(&self, case: Option<&str>, comparison: &Comparison, limits: Option<&PrecisionLimits>) -> Option<String> {
        let own = self.own(case, comparison);
        let accounts = || own.iter().filter_map(|record| record.cpu);
        let capacity: f64 = accounts().map(|cpu| cpu.window_s * f64::from(cpu.cpus)).sum();
        let stolen = accounts().map(|cpu| cpu.steal_s).sum::<f64>() / capacity;
        let foreign = accounts().map(|cpu| cpu.foreign_s).sum::<f64>() / capacity;
        if stolen > STEAL_MAX {
            return Some(format!("the hypervisor under this host took {} of its CPUs", share(stolen)));
        }
        if foreign > FOREIGN_MIN {
            return Some(format!("other programs used {} of the CPUs in its trials", share(foreign)));
        }
        if let Some((kind, times)) = self.flagged(&own) {
            return Some(format!("{} in {times} of {} trials", named(&kind), own.len()));
        }
        let spread = student::deviation(&logs(comparison))?.exp_m1();
        let (fresh, blocks) = ("each block has fresh guests, and they differ", "from block to block");
        Some(match limits.filter(|own| own.instances_seen) {
            Some(own) => format!("{fresh} by {} {blocks}", share(own.instances.sqrt().exp_m1())),
            None if case.is_none() => format!("{fresh} by {} {blocks}", share(spread)),
            None => format!("its ratio differs by {} {blocks}", share(spread)),
        })
    }

    /// The flag that most of the trials bear, where at least half of them do.
    fn flagged(&self, own: &[&TrialRecord]) -> Option<(String, usize)> {
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        for record in own {
            // A trial may bear a flag more than once, as a search does by its tries.
            let kinds = flags::of_trial(record, self.plan.study.lab.sample_interval).into_iter().map(|flag| flag.kind);
            for kind in kinds.collect::<BTreeSet<String>>() {
                *counted.entry(kind).or_default() += 1;
            }
        }
        let quiet = ["parity", flag::NOT_COMPARABLE, flag::UNSAFE];
        counted.retain(|kind, times| 2 * *times >= own.len() && !quiet.contains(&kind.as_str()));
        counted.into_iter().max_by_key(|(_, times)| *times)
    }

    /// How many blocks would be enough for a difference worth knowing, and how long they take.
    fn remedy(&self, comparison: &Comparison) -> Option<String> {
        let spread = student::deviation(&logs(comparison)).filter(|spread| *spread > 0.0)?;
        let with_floor = comparison.floor.is_some();
        let rule = |blocks| Rule { blocks, with_floor, comparisons: family(comparison) };
        let enough = |size: &f64| {
            let blocks = (2..=BLOCKS_MAX)
                .find(|blocks| rule(*blocks).about().is_some_and(|deviations| deviations * spread <= size.ln_1p()))?;
            Some((*size, blocks))
        };
        let sizes = [wanted(comparison), Some(NOISY_MIN / 2.0), Some(NOISY_MIN)];
        let useful = sizes.into_iter().flatten().filter(|size| comparison.detectable.is_none_or(|now| now > *size));
        let all: Vec<(f64, usize)> = useful.filter_map(|size| enough(&size)).collect();
        // A few times as many is a proposal; more is one only where nothing less would help.
        let most = 5 * comparison.planned.max(1) as usize;
        let (size, blocks) = all.iter().find(|(_, blocks)| *blocks <= most).or(all.last()).copied()?;
        let took = minutes(self.block_s * blocks as f64);
        Some(format!("{blocks} blocks ({took}) would detect {}", percent(size)))
    }
}

/// The margin, where it is smaller than what is detected: the study asks for more than it can tell.
fn wanted(comparison: &Comparison) -> Option<f64> {
    comparison.margin.filter(|margin| comparison.detectable.is_none_or(|size| size > *margin))
}

fn logs(comparison: &Comparison) -> Vec<f64> {
    comparison.blocks.iter().map(|(_, ratio)| ratio.ln()).collect()
}

/// A flag in words.
fn named(kind: &str) -> String {
    let words = match kind {
        flag::DRIVER_STARVED => "the driver waited for a CPU",
        flag::DRIVER_SATURATED => "the driver was at its limit",
        flag::BUSY_WHILE_WAITING => "waiting guests used CPU",
        flag::TURN_OVERRUN => "operations reached into the turns of other arms",
        "not-steady" => "the load was not steady",
        "acceptance" => "what users did missed a requirement of the workload",
        "few-operations" => "some operations were too few for a percentile",
        "throttled" => "the guest used up its CPU quota",
        "alongside" => "another run of tare used this host",
        "lost-samples" => "the host was too busy to be watched",
        other => return format!("flag {other}"),
    };
    words.to_owned()
}

fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn minutes(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use tare_model::trial::Flag;
    use tare_record::testing;

    use super::*;

    #[test]
    fn a_trial_that_bears_a_flag_twice_counts_once() {
        let plan = testing::plan(2);
        let mut trials: Vec<TrialRecord> = (0..4).map(|index| testing::trial(&plan, index)).collect();
        let flag = || Flag { kind: "throttled".to_owned(), detail: "the guest used up its CPU quota".to_owned() };
        trials[0].flags = vec![flag(), flag()];
        trials[1].flags = vec![flag()];
        let ground = Ground::of(&plan, &trials);
        let own: Vec<&TrialRecord> = trials.iter().collect();
        assert_eq!(ground.flagged(&own), Some(("throttled".to_owned(), 2)));
        assert_eq!(ground.flagged(&own[1..]), None, "one of three is no cause");
    }
}
