//! What a run says, finding by finding.

use tare_model::findings::{Answer, CaseFindings, Comparison, MetricFindings, Verdict, verdict_id};
use tare_model::metric::{MetricSpec, common};
use tare_model::study::Arm;

use crate::why::Ground;

/// The findings of a run: what the guest itself weighs, the primary metric of each case, and where its effect is clear the CPU time of an
/// operation. Effects come first, the largest foremost, then what is equivalent, then what was not detected, then what cannot be said; within
/// each in the order of the study.
pub(crate) fn of_run(ground: &Ground<'_>, cases: &[CaseFindings], across: &[MetricFindings]) -> Vec<Answer> {
    let study = &ground.plan.study;
    let arms: Vec<&Arm> =
        study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none()).collect();
    let mut found: Vec<Answer> = Vec::new();
    let is_condition = |id: &str| study.cases.iter().any(|case| case.id == id && case.schedule.condition().is_some());
    // A study of conditions alone asks what neighbours do, and not what a guest weighs.
    let asks = cases.is_empty() || cases.iter().any(|case| !is_condition(&case.id));
    for metric in across.iter().filter(|metric| asks && common::OF_THE_GUEST.contains(&metric.spec.id.as_str())) {
        let compared = arms.iter().filter_map(|arm| of_arm(metric, arm));
        found.extend(compared.map(|own| said(Answer::of(None, &metric.spec.id, own), ground.why(None, own, None))));
    }
    for case in cases.iter().filter(|case| !is_condition(&case.id)) {
        let primary = case.metrics.iter().find(|metric| metric.spec.primary);
        found.extend(arms.iter().map(|arm| of_case(ground, case, arm, primary)));
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

/// The finding with why it says nothing.
fn said(mut answer: Answer, why: Option<String>) -> Answer {
    if let Some(why) = why {
        let mut rest = why.chars();
        let first = rest.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
        answer.sentence = format!("{}. {first}{}", answer.sentence, rest.as_str());
    }
    answer
}

fn of_case(ground: &Ground<'_>, found: &CaseFindings, arm: &Arm, primary: Option<&MetricFindings>) -> Answer {
    let case = found.id.as_str();
    if let Some((metric, comparison)) = primary.and_then(|metric| Some((metric, of_arm(metric, arm)?))) {
        let limits = found.limits.iter().find(|own| own.arm == arm.id);
        let why = ground.why(Some(case), comparison, limits);
        return said(Answer::of(Some(case), &metric.spec.id, comparison), why);
    }
    let metric = primary.map_or_else(String::new, |metric| metric.spec.id.clone());
    Answer {
        id: verdict_id(Some(case), &arm.id, &metric),
        case: Some(case.to_owned()),
        arm: arm.id.clone(),
        metric,
        ratio: None,
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
    answer.ratio.as_ref().filter(|_| rank(answer) == 0).map_or(0.0, |ratio| ratio.value.ln().abs())
}
