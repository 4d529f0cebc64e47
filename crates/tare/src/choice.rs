//! `--case`, `--arm` and `--metric`: which comparisons or figures of a run.

use std::collections::BTreeSet;

use tare_study::matches;

use crate::args::ChoiceArguments;
use crate::exit::{Exit, Failure};

/// Case (`None` of what is the guest's own over all cases), arm and metric, by their ids.
pub type Key<'a> = (Option<&'a str>, &'a str, &'a str);

/// Whether it is chosen. What is of no case is of none that is named; but an arm that never ran has neither case nor metric, and is missing
/// from every choice of it.
pub fn has(choice: &ChoiceArguments, (case, arm, metric): Key<'_>) -> bool {
    let any = |patterns: &[String], id: &str| patterns.is_empty() || patterns.iter().any(|own| matches(own, id));
    let of_case = case.map_or(choice.case.is_empty() || metric.is_empty(), |case| any(&choice.case, case));
    of_case && any(&choice.arm, arm) && (metric.is_empty() || any(&choice.metric, metric))
}

/// Refuses patterns that nothing matches, and a choice of nothing: a gate that was mistyped must not pass. `what` names what there is.
///
/// # Errors
/// With what there is to choose from.
pub fn check(choice: &ChoiceArguments, there: &[Key<'_>], what: &str) -> Result<(), Failure> {
    let cases: BTreeSet<&str> = there.iter().filter_map(|key| key.0).collect();
    let arms: BTreeSet<&str> = there.iter().map(|key| key.1).collect();
    let metrics: BTreeSet<&str> = there.iter().map(|key| key.2).filter(|metric| !metric.is_empty()).collect();
    for (option, patterns, ids) in
        [("--case", &choice.case, &cases), ("--arm", &choice.arm, &arms), ("--metric", &choice.metric, &metrics)]
    {
        if let Some(pattern) = patterns.iter().find(|pattern| !ids.iter().any(|id| matches(pattern, id))) {
            let ids = ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
            let there = if ids.is_empty() { "there are none".to_owned() } else { format!("there are {ids}") };
            let message = format!("{option} {pattern}: none of the {what} is of that name; {there}");
            return Err(Failure::new(message, Exit::Usage));
        }
    }
    match there.iter().any(|key| has(choice, *key)) {
        true => Ok(()),
        false => Err(Failure::new(
            format!("none of the {what} is chosen by --case, --arm and --metric together"),
            Exit::Usage,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(case: &[&str], arm: &[&str], metric: &[&str]) -> ChoiceArguments {
        let owned = |all: &[&str]| all.iter().map(|&own| own.to_owned()).collect();
        ChoiceArguments { case: owned(case), arm: owned(arm), metric: owned(metric) }
    }

    #[test]
    fn patterns_choose_and_a_mistyped_one_is_refused() {
        let there = [(Some("rr"), "kvm", "p50_s"), (Some("cpu"), "kvm", "rate"), (None, "kvm", "start_time_s")];
        let chosen = |own: &ChoiceArguments| there.iter().filter(|key| has(own, **key)).count();
        for (own, n) in [
            (choice(&[], &[], &[]), 3),
            (choice(&["*"], &[], &[]), 2),
            (choice(&["r*"], &[], &[]), 1),
            (choice(&[], &["k*"], &["*_s"]), 2),
            (choice(&["rr"], &["kvm"], &["p50_s"]), 1),
        ] {
            assert_eq!(chosen(&own), n, "{own:?}");
            assert!(check(&own, &there, "comparisons").is_ok());
        }
        let never_ran = (None, "qemu", "");
        assert!(has(&choice(&["rr"], &["q*"], &["p50_s"]), never_ran) && !has(&choice(&[], &["kvm"], &[]), never_ran));
        for (own, why) in [
            (choice(&["rrr"], &[], &[]), "--case rrr: none of the comparisons is of that name; there are `cpu`, `rr`"),
            (choice(&[], &["qemu"], &[]), "there are `kvm`"),
            (choice(&["rr"], &[], &["rate"]), "none of the comparisons is chosen"),
        ] {
            let refused = check(&own, &there, "comparisons").unwrap_err();
            assert!(refused.message.contains(why), "{}", refused.message);
        }
    }
}
