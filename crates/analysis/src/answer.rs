//! What a run says, finding by finding.

use tare_model::findings::{Answer, CaseFindings, Comparison, Estimate, MetricFindings, Verdict, verdict_id};
use tare_model::metric::{MetricSpec, common};
use tare_model::plan::Plan;
use tare_model::study::Arm;

/// The findings of a run: what the guest itself weighs, the primary metric of each case, and where its effect is clear the CPU time of an
/// operation. Effects come first, the largest foremost, then what is equivalent, then what was not detected, then what cannot be said; within
/// each in the order of the study.
pub(crate) fn of_run(plan: &Plan, cases: &[CaseFindings], across: &[MetricFindings]) -> Vec<Answer> {
    let study = &plan.study;
    let arms: Vec<&Arm> =
        study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none()).collect();
    let mut found: Vec<Answer> = Vec::new();
    for metric in across.iter().filter(|metric| common::OF_THE_GUEST.contains(&metric.spec.id.as_str())) {
        found.extend(arms.iter().filter_map(|arm| Some(Answer::of(None, &metric.spec.id, of_arm(metric, arm)?))));
    }
    for case in cases {
        let primary = case.metrics.iter().find(|metric| metric.spec.primary);
        found.extend(arms.iter().map(|arm| of_case(&case.id, arm, primary)));
        for metric in case.metrics.iter().filter(|metric| is_demand(&metric.spec)) {
            let clear = arms.iter().filter_map(|arm| of_arm(metric, arm)).filter(|own| own.verdict == Verdict::Lead);
            found.extend(clear.map(|own| Answer::of(Some(&case.id), &metric.spec.id, own)));
        }
    }
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a))));
    found
}

fn of_arm<'a>(metric: &'a MetricFindings, arm: &Arm) -> Option<&'a Comparison> {
    metric.comparisons.iter().find(|comparison| comparison.arm == arm.id)
}

fn is_demand(spec: &MetricSpec) -> bool {
    spec.id == common::SERVICE_DEMAND && !spec.primary
}

fn of_case(case: &str, arm: &Arm, primary: Option<&MetricFindings>) -> Answer {
    if let Some((metric, comparison)) = primary.and_then(|metric| Some((metric, of_arm(metric, arm)?))) {
        return Answer::of(Some(case), &metric.spec.id, comparison);
    }
    let metric = primary.map_or_else(String::new, |metric| metric.spec.id.clone());
    Answer {
        id: verdict_id(Some(case), &arm.id, &metric),
        case: Some(case.to_owned()),
        arm: arm.id.clone(),
        metric,
        ratio: Estimate { value: 1.0, ..Estimate::default() },
        verdict: Verdict::CannotSay,
        sentence: format!("{}: cannot say: no trial of this case was run", arm.label),
    }
}

const fn rank(answer: &Answer) -> u8 {
    match answer.verdict {
        Verdict::Better | Verdict::Worse | Verdict::Lead => 0,
        Verdict::Equivalent => 1,
        Verdict::NoDifferenceSeen | Verdict::WithinFloor | Verdict::NoiseFloor => 2,
        Verdict::TooNoisy => 3,
        Verdict::CannotSay => 4,
        Verdict::NotComparable => 5,
    }
}

/// Only effects have a size worth an order.
fn size(answer: &Answer) -> f64 {
    if rank(answer) == 0 { answer.ratio.value.ln().abs() } else { 0.0 }
}
