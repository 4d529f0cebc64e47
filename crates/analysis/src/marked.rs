//! Arms whose figures are shown but never compared, and the mark that their names bear wherever they appear.

use tare_model::findings::Findings;
use tare_model::flag;
use tare_model::plan::Plan;
use tare_model::study::Arm;
use tare_model::trial::TrialRecord;

use crate::comparison::Role;

/// What an arm is to the baseline. Where the baseline's own figures must not be compared, nobody is compared with it.
pub(crate) fn role<'a>(baseline: &str, arm: &Arm, trials: impl Iterator<Item = &'a TrialRecord> + Clone) -> Role {
    if arm.replica_of.as_deref() == Some(baseline) {
        return Role::Replica;
    }
    if let Some(why) = why_not(&arm.id, trials.clone()) {
        return Role::NotComparable(why.to_owned());
    }
    // Said of the baseline, or a reader would take this arm for the emulated one.
    why_not(baseline, trials)
        .map_or(Role::Ordinary, |why| Role::NotComparable(format!("the baseline must not be compared: {why}")))
}

/// Why the figures of an arm must not be compared, if one of its trials says so.
fn why_not<'a>(arm: &str, trials: impl IntoIterator<Item = &'a TrialRecord>) -> Option<&'a str> {
    let own = trials.into_iter().filter(|record| record.planned.arm == arm);
    own.flat_map(|record| &record.flags).find(|flag| flag.kind == flag::NOT_COMPARABLE).map(|flag| flag.detail.as_str())
}

/// The same of findings: whether a completed trial of the arm says that its figures must not be compared.
pub(crate) fn is_apart(findings: &Findings, arm: &str) -> bool {
    let mut own = findings.flagged.iter().filter(|trial| trial.arm == arm);
    own.any(|trial| trial.flags.iter().any(|flag| flag.kind == flag::NOT_COMPARABLE))
}

/// The word that a reason begins with, before a colon: `emulated: there is no KVM here`.
fn first_word(why: &str) -> Option<&str> {
    let (word, _) = why.split_once(':')?;
    (!word.is_empty() && word.chars().all(char::is_alphanumeric)).then_some(word)
}

/// The plan with the names of such arms marked by the first word of the reason: `machine (emulated)`. Every table, figure
/// and sentence takes its names from the plan of the findings, so none can forget the mark.
pub(crate) fn marked(plan: &Plan, trials: &[TrialRecord]) -> Plan {
    let baseline = plan.study.baseline.clone();
    let mut plan = plan.clone();
    for arm in &mut plan.study.arms {
        let Some(why) = why_not(&arm.id, trials) else { continue };
        let reference = arm.id == baseline || arm.replica_of.as_ref() == Some(&baseline);
        let word = match first_word(why) {
            Some(word) => word,
            // The instrument's own floor, as the reference of a study of the instrument.
            None if reference => continue,
            None => "not comparable",
        };
        if !arm.label.contains(word) {
            arm.label = format!("{} ({word})", arm.label);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::trial::Flag;
    use tare_record::testing;

    #[test]
    fn the_name_of_an_arm_that_must_not_be_compared_bears_the_first_word_of_the_reason() {
        let plan = testing::plan(1);
        let mut trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
        assert_eq!(marked(&plan, &trials), plan);
        for (detail, label) in [
            ("emulated: this host has no KVM", "container (emulated)"),
            ("the floor of the instrument", "container (not comparable)"),
            ("container: of another kind", "container"),
        ] {
            for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
                record.flags = vec![Flag { kind: flag::NOT_COMPARABLE.into(), detail: detail.into() }];
            }
            let labels: Vec<String> = marked(&plan, &trials).study.arms.into_iter().map(|arm| arm.label).collect();
            assert!(labels.iter().any(|own| own == label), "{labels:?}");
            assert!(labels.iter().any(|own| own == "native"), "{labels:?}");
        }
    }

    #[test]
    fn nothing_is_compared_with_a_baseline_that_must_not_be_compared_and_a_floor_as_reference_needs_no_mark() {
        let plan = testing::plan(1);
        let mut trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
        for record in trials.iter_mut().filter(|record| record.planned.arm == "native") {
            record.flags = vec![Flag { kind: flag::NOT_COMPARABLE.into(), detail: "it is the floor: no link".into() }];
        }
        let arm = |id: &str| plan.study.arms.iter().find(|arm| arm.id == id).unwrap();
        let why = "the baseline must not be compared: it is the floor: no link".to_owned();
        assert_eq!(role("native", arm("container"), trials.iter()), Role::NotComparable(why));
        assert_eq!(role("native", arm(testing::ARMS[2]), trials.iter()), Role::Replica);
        assert_eq!(marked(&plan, &trials), plan);
    }
}
