//! What a run has otherwise than the published study that it repeats.

use tare_model::deviation::Deviation;
use tare_model::flag;
use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

/// The study's own deviations, then those of workloads and platforms by the trials, each once with the cases and arms that have it.
pub(crate) fn of_run(plan: &Plan, trials: &[&TrialRecord]) -> Vec<Deviation> {
    let study = plan.study.original.iter().flat_map(|original| original.deviations.iter().cloned());
    let mut of_trials: Vec<Deviation> = Vec::new();
    for record in trials {
        let platform = platform(record).filter(|_| plan.study.original.is_some());
        for own in record.deviations.iter().cloned().chain(platform) {
            let at = of_trials.iter().position(|known| known.says_the_same(&own)).unwrap_or_else(|| {
                of_trials.push(Deviation { cases: Vec::new(), arms: Vec::new(), ..own });
                of_trials.len() - 1
            });
            add(&mut of_trials[at].cases, &record.planned.case);
            add(&mut of_trials[at].arms, &record.planned.arm);
        }
    }
    for own in &mut of_trials {
        all_or_some(&mut own.cases, plan.study.cases.len());
        all_or_some(&mut own.arms, plan.study.arms.len());
    }
    study.chain(of_trials).collect()
}

/// What a trial's platform has otherwise than any that is published: its figures may not be compared.
fn platform(record: &TrialRecord) -> Option<Deviation> {
    let marked = record.flags.iter().find(|flag| flag.kind == flag::NOT_COMPARABLE)?;
    Some(Deviation::new(
        "how guests are run",
        ("by a platform whose speed may be compared", marked.detail.as_str()),
        "this host, or the options of the arm, allow nothing else",
        "these arms are slower by far than the published ones, or have no cost at all: they are compared with nothing",
    ))
}

fn add(ids: &mut Vec<String>, id: &str) {
    if !ids.iter().any(|known| known == id) {
        ids.push(id.to_owned());
    }
}

/// Ids of all that there are become none.
fn all_or_some(ids: &mut Vec<String>, all: usize) {
    if ids.len() == all {
        ids.clear();
    }
}

/// A warning where an arm did not run that the published study is about.
pub(crate) fn warning(plan: &Plan) -> Option<String> {
    let original = plan.study.original.as_ref()?;
    let missing = plan.study.missing_subject();
    if missing.is_empty() {
        return None;
    }
    let why = missing.iter().map(|id| match plan.left_out.iter().find(|left| left.arm == *id) {
        Some(left) => {
            let (reason, remedy) = (left.reason.trim_end_matches('.'), left.remedy.trim_end_matches('.'));
            format!("`{id}` ({}) cannot run here: {reason} (remedy: {remedy})", left.label)
        }
        None => format!("`{id}` was left out by the command line"),
    });
    Some(format!(
        "This is not the published study. Report {} is about arms that did not run: {}. What follows compares only the arms that this host \
         can run, and answers nothing about the others.",
        original.report,
        why.collect::<Vec<_>>().join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use tare_model::deviation::Original;
    use tare_model::plan::LeftOut;
    use tare_model::trial::Flag;
    use tare_record::testing;

    use super::*;

    fn deviation(what: &str) -> Deviation {
        Deviation::new(what, ("that", "this"), "so it is", "little")
    }

    fn repeating(subject: &str) -> Plan {
        let mut plan = testing::plan(2);
        let (report, subject) = ("000".to_owned(), vec![subject.to_owned()]);
        plan.study.original = Some(Original { report, subject, deviations: vec![deviation("study")] });
        plan
    }

    #[test]
    fn each_is_listed_once_with_what_it_concerns_and_the_study_s_own_come_first() {
        let plan = repeating("native");
        let mut records: Vec<TrialRecord> =
            (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
        let native = records[0].planned.arm.clone();
        for record in &mut records {
            record.deviations = vec![deviation("all")];
            if record.planned.arm == native {
                record.deviations.push(deviation("one arm"));
            }
        }
        let found = |plan: &Plan, records: &[TrialRecord]| {
            let found = of_run(plan, &records.iter().collect::<Vec<_>>());
            assert!(found.iter().all(|own| own.cases.is_empty()), "all cases have it: {found:?}");
            found.into_iter().map(|own| (own.what, own.arms)).collect::<Vec<_>>()
        };
        let row = |what: &str, arms: &[&String]| (what.to_owned(), arms.iter().map(|arm| (*arm).clone()).collect());
        let mut expected = vec![row("study", &[]), row("all", &[]), row("one arm", &[&native])];
        assert_eq!(found(&plan, &records), expected);
        // What cannot be compared is a deviation from what was published, and of a study of one's own none.
        for record in records.iter_mut().filter(|record| record.planned.arm == native) {
            record.flags = vec![Flag { kind: flag::NOT_COMPARABLE.into(), detail: "emulated: no KVM".into() }];
        }
        expected.push(row("how guests are run", &[&native]));
        assert_eq!(found(&plan, &records), expected);
        let mut own = plan.clone();
        own.study.original = None;
        assert_eq!(found(&own, &records), expected[1..3]);
    }

    #[test]
    fn a_study_without_its_subject_says_so_with_reason_and_remedy() {
        let mut plan = repeating("native");
        assert_eq!(warning(&plan), None);
        plan = repeating("vm");
        assert!(warning(&plan).unwrap().contains("`vm` was left out by the command line"));
        let (label, reason, remedy) = ("VM".into(), "there is no KVM.".into(), "use another host".into());
        plan.left_out.push(LeftOut { arm: "vm".into(), label, reason, remedy });
        let said = warning(&plan).unwrap();
        let expected = "Report 000 is about arms that did not run: `vm` (VM) cannot run here: there is no KVM (remedy: use another host). What";
        assert!(said.starts_with("This is not the published study. ") && said.contains(expected), "{said}");
    }
}
