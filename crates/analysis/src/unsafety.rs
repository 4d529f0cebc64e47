//! Settings under which what was acknowledged may be lost: said first, and with every answer that rests on them.

use std::collections::BTreeMap;

use tare_model::findings::{CaseFindings, Comparison};
use tare_model::flag;
use tare_model::plan::Plan;
use tare_model::study::Study;
use tare_model::trial::TrialRecord;

/// The unsafe settings of a run.
#[derive(Debug, Default)]
pub(crate) struct Unsafe<'a> {
    /// What is unsafe: where, as (case id, arm id).
    found: BTreeMap<&'a str, Vec<(&'a str, &'a str)>>,
}

impl<'a> Unsafe<'a> {
    pub(crate) fn of(trials: &'a [TrialRecord]) -> Self {
        let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for record in trials {
            for flag in record.flags.iter().filter(|flag| flag.kind == flag::UNSAFE) {
                let place = (record.planned.case.as_str(), record.planned.arm.as_str());
                let places = found.entry(flag.detail.as_str()).or_default();
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        Self { found }
    }

    /// A sentence for each, with the arms and the cases that it concerns.
    pub(crate) fn warnings(&self, plan: &Plan) -> Vec<String> {
        let study = &plan.study;
        let sentences = self.found.iter().map(|(detail, places)| {
            let detail = detail.trim_end_matches('.');
            format!("Unsafe settings: {detail}. This concerns {}.", concerned(study, places))
        });
        sentences.collect()
    }

    /// Says of each comparison of a case which unsafe settings it rests on, in the arm's own trials or the baseline's.
    pub(crate) fn qualify(&self, plan: &Plan, case: &mut CaseFindings) {
        let id = case.id.clone();
        for comparison in case.metrics.iter_mut().flat_map(|metric| &mut metric.comparisons) {
            let said: Vec<String> = self
                .found
                .iter()
                .filter_map(|(detail, places)| qualification(plan, detail, places, &id, comparison))
                .collect();
            if !said.is_empty() {
                comparison.sentence = format!("{}; unsafe: {}", comparison.sentence, said.join(", "));
            }
        }
    }
}

/// `fsync is off`, with the arm where only one of the two has it.
fn qualification(
    plan: &Plan,
    detail: &str,
    places: &[(&str, &str)],
    case: &str,
    comparison: &Comparison,
) -> Option<String> {
    let has = |arm: &str| places.contains(&(case, arm));
    let short = detail.split_once(':').map_or(detail, |(short, _)| short);
    match (has(&comparison.arm), has(&comparison.baseline)) {
        (true, true) => Some(short.to_owned()),
        (true, false) => Some(format!("{short} on {}", arm_label(&plan.study, &comparison.arm))),
        (false, true) => Some(format!("{short} on {}", arm_label(&plan.study, &comparison.baseline))),
        (false, false) => None,
    }
}

fn arm_label<'a>(study: &'a Study, id: &'a str) -> &'a str {
    study.arms.iter().find(|arm| arm.id == id).map_or(id, |arm| arm.label.as_str())
}

/// Arms and cases in the order of the study: `every arm in every case`, or by name.
fn concerned(study: &Study, places: &[(&str, &str)]) -> String {
    let cases: Vec<_> = study.cases.iter().filter(|case| places.iter().any(|(own, _)| *own == case.id)).collect();
    let arms: Vec<_> = study.arms.iter().filter(|arm| places.iter().any(|(_, own)| *own == arm.id)).collect();
    let listed = |labels: Vec<&str>| labels.join("; ");
    // Where the pairs are not all combinations of these arms and cases, each pair must be named.
    if places.len() != cases.len() * arms.len() {
        let of = |case: &str, arm: &str| places.contains(&(case, arm));
        let mut pairs = Vec::new();
        for case in &cases {
            let own = arms.iter().filter(|arm| of(&case.id, &arm.id)).map(|arm| arm.label.as_str());
            pairs.push(format!("{}: {}", case.label, own.collect::<Vec<_>>().join(", ")));
        }
        return pairs.join("; ");
    }
    let arms = match arms.len() == study.arms.len() {
        true => "every arm".to_owned(),
        false => listed(arms.iter().map(|arm| arm.label.as_str()).collect()),
    };
    let cases = match (cases.len() == study.cases.len(), study.cases.len()) {
        (true, 1) => String::new(),
        (true, _) => " in every case".to_owned(),
        (false, _) => format!(" in {}", listed(cases.iter().map(|case| case.label.as_str()).collect())),
    };
    format!("{arms}{cases}")
}
