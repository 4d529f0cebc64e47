//! What neighbours do to a victim: ratios within one and the same guest, over blocks (`docs/adr/0035-isolation.md`).

use std::collections::BTreeMap;

use tare_model::aggressor::Aggressor;
use tare_model::count;
use tare_model::findings::{ArmIsolation, Estimate, IsolationCell, IsolationFindings, Survival};
use tare_model::flag;
use tare_model::metric::{Better, MetricSpec, common, isolation};
use tare_model::plan::Plan;
use tare_model::study::{Case, Condition};
use tare_model::trial::{Outcome, TrialRecord};

use crate::distribution::completed;
use crate::estimate::{self, Sample};

mod words;

/// A neighbour that achieves less than this share of what it does on the baseline is starved.
pub(crate) const STARVED: f64 = 0.9;

/// The trials of a condition on one arm, by block.
type ByBlock<'a> = BTreeMap<u32, &'a TrialRecord>;

/// What each victim's neighbours do to it, in the order of the study.
pub(crate) fn of_run(plan: &Plan, trials: &[TrialRecord]) -> Vec<IsolationFindings> {
    let families = plan.study.cases.chunk_by(|one, other| one.family() == other.family());
    families.filter_map(|family| Victim::of(plan, family, trials)).map(|victim| victim.findings()).collect()
}

/// How conditions were measured; nothing where the study has none.
pub(crate) fn method(plan: &Plan) -> Option<String> {
    plan.study.cases.iter().any(|case| case.schedule.condition().is_some()).then(|| {
        format!(
            "Where neighbours do one thing after another, one guest of each arm and block met all of it in turns, in random order, beside one set of \
             neighbours; these began with the gap before a turn and stood still at its end. Each ratio is to the turns of the same guest in \
             which they stood idle, paired in the block; its interval is made as that of every other ratio and is not corrected for their number. \
             The arms of a block followed one another, so no figure of one arm is compared with another\u{2019}s. A neighbour is starved \
             where the interval of what it achieves lies below {:.0} % of what it does on the baseline. A neighbour that ends, such as for want of memory, is contained \
             where victim and host go on.",
            STARVED * 100.0
        )
    })
}

/// A victim and what was measured of it.
struct Victim<'a> {
    plan: &'a Plan,
    family: &'a [Case],
    label: &'a str,
    trials: &'a [TrialRecord],
    /// A figure of time, of which less is better; `None`: it is the inverse of its speed.
    time: Option<&'a MetricSpec>,
    /// A figure of how much it gets done.
    speed: Option<&'a MetricSpec>,
}

impl<'a> Victim<'a> {
    fn of(plan: &'a Plan, family: &'a [Case], trials: &'a [TrialRecord]) -> Option<Self> {
        let Condition { label, .. } = family.first()?.schedule.condition()?;
        let is_own = |record: &&TrialRecord| family.iter().any(|case| case.id == record.planned.case);
        let measured = || trials.iter().filter(is_own).filter_map(|record| Some((completed(record)?, &record.metrics)));
        // Those that trials have, and not only name.
        let has = |id: &str| measured().any(|(measurement, _)| measurement.metrics.contains_key(id));
        let specs = || measured().flat_map(|(_, specs)| specs);
        let named = |id: &str| specs().find(|spec| spec.id == id && has(id));
        let own = |spec: &&MetricSpec| spec.better == Better::Higher && spec.id != isolation::WORK && has(&spec.id);
        Some(Self {
            plan,
            family,
            label,
            trials,
            time: named(common::RESPONSE_P99).or_else(|| named(common::RESPONSE_MEAN)),
            speed: named(common::OPERATIONS).or_else(|| specs().find(own)),
        })
    }

    fn findings(&self) -> IsolationFindings {
        let works = self.conditions().map(|(_, work)| work).collect();
        let arms: Vec<ArmIsolation> = self.plan.study.arms.iter().map(|arm| self.arm(&arm.id)).collect();
        let label = |spec: Option<&MetricSpec>| spec.map(|spec| spec.label.clone());
        let mut found = IsolationFindings {
            victim: self.family.first().map_or("", Case::family).to_owned(),
            label: self.label.to_owned(),
            time: label(self.time).unwrap_or_else(|| "time of a unit of work".to_owned()),
            speed: label(self.speed).unwrap_or_else(|| "work".to_owned()),
            works,
            arms,
            sentences: Vec::new(),
        };
        found.sentences = words::sentences(&found, &self.plan.study);
        found
    }

    /// The conditions in which neighbours work.
    fn conditions(&self) -> impl Iterator<Item = (&'a Case, Aggressor)> {
        self.family.iter().filter_map(|case| Some((case, case.schedule.condition()?.work?)))
    }

    /// The trials of a case on an arm.
    fn of_case(&self, case: &str, arm: &str) -> ByBlock<'a> {
        let own = |record: &&TrialRecord| record.planned.case == case && record.planned.arm == arm;
        self.trials.iter().filter(own).map(|record| (record.planned.block, record)).collect()
    }

    fn arm(&self, arm: &str) -> ArmIsolation {
        let idle = self.family.first().map(|case| self.of_case(&case.id, arm)).unwrap_or_default();
        let cells = self.conditions().map(|(case, work)| self.cell(arm, &idle, case, work)).collect();
        ArmIsolation { arm: arm.to_owned(), cells }
    }

    fn cell(&self, arm: &str, idle: &ByBlock<'_>, case: &Case, work: Aggressor) -> IsolationCell {
        let own = self.of_case(&case.id, arm);
        let of = |spec: Option<&MetricSpec>| spec.and_then(|spec| ratio(&own, idle, |record| value(record, &spec.id)));
        let inverse = || ratio(idle, &own, |record| value(record, &self.speed?.id));
        let achieved = |record: &TrialRecord| value(record, isolation::WORK);
        let values: Vec<f64> = own.values().filter_map(|record| achieved(record)).collect();
        let baseline = &self.plan.study.baseline;
        let share = (arm != baseline).then(|| ratio(&own, &self.of_case(&case.id, baseline), achieved)).flatten();
        let survival = survival(own.values().copied());
        IsolationCell {
            case: case.id.clone(),
            work,
            time: if self.time.is_some() { of(self.time) } else { inverse() },
            // Where time is the inverse of speed, that says it all.
            speed: of(self.speed.filter(|_| self.time.is_some())),
            starved: share.as_ref().and_then(|share| share.high).is_some_and(|high| high < STARVED)
                || values.iter().any(|own| *own <= 0.0),
            achieved_per_s: estimate::of_values(&values),
            achieved_share: share,
            survival,
        }
    }
}

/// A figure of a completed trial.
fn value(record: &TrialRecord, id: &str) -> Option<f64> {
    completed(record)?.metrics.get(id).copied()
}

/// The ratio of a figure within blocks. A block that has both trials and not both figures may have had any ratio.
fn ratio(own: &ByBlock<'_>, to: &ByBlock<'_>, figure: impl Fn(&TrialRecord) -> Option<f64>) -> Option<Estimate> {
    let both = own.iter().filter_map(|(block, own)| Some((*own, *to.get(block)?)));
    let log = |(own, to): (&TrialRecord, &TrialRecord)| {
        let ratio = figure(own)? / figure(to)?;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
    };
    let all: Vec<Option<f64>> = both.map(log).collect();
    let values: Vec<f64> = all.iter().copied().flatten().collect();
    let missing = all.len() - values.len();
    let (located, procedure) = Sample { values: &values, missing, by_width: false }.location()?;
    Some(estimate::from_logs(located, procedure, values.len(), "log ratios to the same guest with its neighbours idle"))
}

/// How all came through these trials. A trial that ended because another condition of its guest failed says nothing.
fn survival<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Survival {
    let mut survival = Survival::default();
    let (mut failed, mut due) = (0, 0);
    for record in trials.filter(|own| own.flags.iter().all(|flag| flag.kind != flag::OTHER_ARM_FAILED)) {
        survival.trials += 1;
        let measurement = match &record.outcome {
            Outcome::Completed(measurement) => measurement,
            Outcome::Invalid { .. } | Outcome::Failed { .. } => {
                survival.victim_lost += 1;
                continue;
            }
        };
        let count = |name: &str| measurement.counts.get(name).copied().unwrap_or(0);
        let lost: u64 = count::MISSING.iter().map(|name| count(name)).sum();
        failed += lost;
        due += lost.saturating_add(count(count::OPERATIONS));
        survival.contained += u32::from(count(count::AGGRESSOR_ENDED) > 0);
        survival.refused = survival.refused.saturating_add(count(count::AGGRESSOR_REFUSED));
        let delay = measurement.metrics.get(isolation::HOST_DELAY).copied().unwrap_or(0.0);
        survival.host_delay_max_s = survival.host_delay_max_s.max(delay);
    }
    survival.failed_share = if due > 0 { failed as f64 / due as f64 } else { 0.0 };
    survival
}
