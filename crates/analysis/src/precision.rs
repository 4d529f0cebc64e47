//! When a case has blocks enough: ADR 0025.

use std::collections::BTreeMap;

use tare_model::findings::{DriverLimited, Estimate};
use tare_model::metric::MetricSpec;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::precision::{Judged, WhyEnded};
use tare_model::study::Arm;
use tare_model::study::Precision;
use tare_model::trial::TrialRecord;

use crate::comparison::{Paired, Role, Subject};
use crate::estimate::RANK_BLOCKS_MIN;
use crate::marked;
use crate::missing;
use crate::sequential;
use crate::spare;

/// Blocks in a row after which every interval has to be as narrow as asked: one that is narrow by chance does not end a case.
pub(crate) const IN_A_ROW: u32 = 3;

/// Whether a case has enough after so many whole blocks. Only widths decide, never an estimate or a verdict; with spare blocks, only what
/// disturbed them. `None` where the study asks for a fixed number.
///
/// Every arm that is compared counts, the baseline's replica included: differences are judged by its estimate. An arm without any ratio (it
/// must not be compared, never completed, or has values of zero or below) does not count, for further blocks would not change that.
pub fn judge(plan: &Plan, case: &str, blocks: u32, trials: &[TrialRecord]) -> Option<Judged> {
    let Some(rule) = plan.study.precision else {
        return spare::judge(plan, case, blocks, trials);
    };
    let own = Case::of(plan, case, trials);
    let width = own.width(blocks);
    let in_a_row = blocks.saturating_sub(IN_A_ROW - 1)..=blocks;
    let narrow = |blocks: u32| blocks as usize >= RANK_BLOCKS_MIN && own.width(blocks).is_narrow(rule);
    let (least, most) = (blocks >= rule.at_least, blocks >= plan.study.blocks);
    let ended = match width {
        _ if !least && !most => None,
        Width::Nothing => Some(WhyEnded::NothingCompared),
        _ if in_a_row.into_iter().all(narrow) => Some(WhyEnded::Precise),
        _ if most => Some(WhyEnded::AtMost),
        _ => None,
    };
    let likely = if ended.is_some() { blocks } else { own.likely(blocks, rule) };
    Some(Judged { blocks, width: width.share(), ended, likely })
}

/// How far the widest interval of a case reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Width {
    /// No comparison has a ratio.
    Nothing,
    /// Some comparison has no interval yet.
    Unknown,
    /// Beyond its estimate, as a share of it.
    Of(f64),
}

impl Width {
    fn is_narrow(self, rule: Precision) -> bool {
        matches!(self, Self::Of(share) if share <= rule.until)
    }

    const fn share(self) -> Option<f64> {
        if let Self::Of(share) = self { Some(share) } else { None }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, known) | (known, Self::Nothing) => known,
            (Self::Of(a), Self::Of(b)) => Self::Of(a.max(b)),
            _ => Self::Unknown,
        }
    }
}

/// How far an interval reaches from its estimate, whichever end is further.
fn reach(ratio: &Estimate) -> Width {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => Width::Of((high / ratio.value).max(ratio.value / low) - 1.0),
        None => Width::Unknown,
    }
}

/// The primary metric of a case, by arm and block.
struct Case<'a> {
    plan: &'a Plan,
    trials: Vec<&'a TrialRecord>,
    spec: Option<&'a MetricSpec>,
}

impl<'a> Case<'a> {
    fn of(plan: &'a Plan, case: &str, trials: &'a [TrialRecord]) -> Self {
        let trials: Vec<&TrialRecord> = trials.iter().filter(|record| record.planned.case == case).collect();
        let spec = trials.iter().flat_map(|record| &record.metrics).find(|spec| spec.primary);
        Self { plan, trials, spec }
    }

    /// The widest interval after the first `blocks` blocks.
    fn width(&self, blocks: u32) -> Width {
        let study = &self.plan.study;
        let others = study.arms.iter().filter(|arm| arm.id != study.baseline);
        others.map(|arm| self.width_of(arm, blocks)).fold(Width::Nothing, Width::and)
    }

    fn width_of(&self, arm: &Arm, blocks: u32) -> Width {
        let (Some(spec), Some(pairs)) = (self.spec, self.pairs(arm, blocks)) else { return Width::Nothing };
        let role = self.role(arm);
        let baseline = self.plan.study.baseline.as_str();
        let [own, base] = [&arm.id, baseline].map(|id| self.of_arm(id, blocks));
        let missing = missing::blocks(&own, &base, &spec.id);
        let paired = Paired {
            of: Subject { spec, arm: "", baseline: "" },
            ids: (&arm.id, baseline),
            pairs,
            missing,
            planned: blocks,
            by_width: true,
            replica: None,
            margin: None,
            driver_limited: DriverLimited::default(),
            role,
        };
        reach(&paired.compare().ratio)
    }

    /// Blocks that the case is likely to take in all.
    fn likely(&self, blocks: u32, rule: Precision) -> u32 {
        let (study, until) = (&self.plan.study, rule.until.ln_1p());
        let logs = |pairs: Vec<(u32, f64, f64)>| pairs.iter().map(|(_, a, b)| (a / b).ln()).collect::<Vec<f64>>();
        let of = |arm| Some(sequential::foreseen(&logs(self.pairs(arm, blocks)?), until, study.blocks));
        let all = study.arms.iter().filter(|arm| arm.id != study.baseline).filter_map(of).max();
        all.unwrap_or(0).max(rule.at_least).max(blocks + 1).min(study.blocks)
    }

    fn role(&self, arm: &Arm) -> Role {
        marked::role(&self.plan.study.baseline, arm, self.trials.iter().copied())
    }

    /// An arm's values beside the baseline's; `None` where they have no ratio.
    fn pairs(&self, arm: &Arm, blocks: u32) -> Option<Vec<(u32, f64, f64)>> {
        let metric = &self.spec?.id;
        let base = self.values(&self.plan.study.baseline, metric, blocks);
        let own = self.values(&arm.id, metric, blocks).into_iter();
        let pairs: Vec<_> = own.filter_map(|(block, value)| Some((block, value, *base.get(&block)?))).collect();
        let has_ratio = pairs.iter().all(|&(_, a, b)| a > 0.0 && b > 0.0) || pairs.iter().all(|&(_, a, b)| a == b);
        let counts = has_ratio && !pairs.is_empty() && !matches!(self.role(arm), Role::NotComparable(_));
        counts.then_some(pairs)
    }

    /// Finite values of the completed trials of an arm in the first `blocks` blocks of the study, by block of the case.
    fn values(&self, arm: &str, metric: &str, blocks: u32) -> BTreeMap<u32, f64> {
        let value = |record: &TrialRecord| Some((record.planned.block, missing::value(record, metric)?));
        self.of_arm(arm, blocks).into_iter().filter_map(value).collect()
    }

    /// The trials of an arm in the first `blocks` blocks of the study.
    fn of_arm(&self, arm: &str, blocks: u32) -> Vec<&'a TrialRecord> {
        let among = |planned: &PlannedTrial| planned.arm == arm && self.plan.study_block(planned) <= blocks;
        self.trials.iter().copied().filter(|own| among(&own.planned)).collect()
    }
}
