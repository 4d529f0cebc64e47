//! Which arms of a study this host can run, where the study lets the others be left out.

use std::path::Path;

use tare_controller::May;
use tare_model::Refusal;
use tare_model::plan::{LeftOut, Plan};
use tare_model::study::{Arm, Study};
use tare_record::RunFolder;

use crate::exit::{Exit, Failure};
use crate::place;

/// Fewest arms that there is something to compare between, the baseline among them.
const FEWEST_ARMS: usize = 2;

/// The study with the arms that can be run here, and those that cannot. A study that does not ask for that stays as it
/// is. A run that is `resumed` keeps the arms that it began with: what was installed or removed since would make
/// another plan of it. Machines that would be emulated are left out too, unless `emulated` asks for them. With `what_can` another arm
/// takes the place of a baseline that cannot be run, where the study repeats a published one.
///
/// # Errors
/// When the baseline cannot be run, or fewer than two arms remain.
pub fn reduced(
    study: &Study,
    resumed: Option<&Path>,
    may: May,
    (emulated, what_can): (bool, bool),
) -> Result<(Study, Vec<LeftOut>), Failure> {
    if !study.skip_unavailable {
        return Ok((study.clone(), Vec::new()));
    }
    // A run that began without what it is about goes on without it.
    let what_can = what_can || resumed.is_some();
    let left_out = match resumed {
        // The run reports a folder that cannot be read: it reads it next.
        Some(folder) => RunFolder::open(folder).map(|folder| folder.plan().left_out.clone()).unwrap_or_default(),
        None => unavailable(study, may, emulated),
    };
    without(study, left_out, what_can)
}

/// Why a run of a study is refused that repeats a published one, where an arm is missing that the publication is about: with the reasons
/// and the remedies. `None` where all are there.
pub fn without_subject(plan: &Plan) -> Option<String> {
    let (study, missing) = (&plan.study, plan.study.missing_subject());
    let original = study.original.as_ref().filter(|_| !missing.is_empty())?;
    let listed = missing.iter().map(|id| match plan.left_out.iter().find(|left| left.arm == *id) {
        Some(left) => format!("  - {}", sentence(left)),
        None => format!("  - `{id}` is left out by the command line. Remedy: keep it"),
    });
    Some(format!(
        "`{}` repeats report {}, and arms that the report is about cannot run here. Without them it would compare something else under its \
         name:\n{}\n  or run the arms that can by `--what-can`: the report then opens with that",
        study.name,
        original.report,
        listed.collect::<Vec<_>>().join("\n")
    ))
}

/// The arms that cannot be run here. The baseline's replica shares its fate and is not listed.
fn unavailable(study: &Study, may: May, emulated: bool) -> Vec<LeftOut> {
    let arms: Vec<_> = study.arms.iter().filter(|arm| arm.replica_of.is_none()).cloned().collect();
    let study = Study { arms: arms.clone(), ..study.clone() };
    let label = |id: &str| arms.iter().find(|arm| arm.id == id).map_or_else(|| id.to_owned(), |arm| arm.label.clone());
    let refused = refused(&study, may);
    let others: Vec<Arm> = arms.iter().filter(|arm| refused.iter().all(|(id, _)| *id != arm.id)).cloned().collect();
    let in_software =
        if emulated { Vec::new() } else { tare_controller::emulated_unasked(&others, &place::agent(), may) };
    let in_software = in_software.into_iter().map(|(arm, why)| {
        let reason = format!("its machines would be emulated, and say nothing about machines: {why}");
        (arm, Refusal::new(reason, "use a host where KVM runs guests, or ask for emulated arms by `--emulated`"))
    });
    refused
        .into_iter()
        .chain(in_software)
        .map(|(arm, Refusal { reason, remedy })| LeftOut { label: label(&arm), arm, reason, remedy })
        .collect()
}

/// Arms that cannot be run here, each with the refusal: their platform cannot be used, the host cannot
/// merge memory or stop guests as they ask, or their storage has no place for the guests' data. That a platform cannot merge is an error of
/// the study.
pub fn refused(study: &Study, may: May) -> Vec<(String, Refusal)> {
    let arms = &study.arms;
    let unavailable = tare_controller::unavailable(arms, &place::agent(), may);
    let mut known = with_merging(arms, unavailable, tare_controller::cannot_merge);
    let unknown: Vec<&Arm> = arms.iter().filter(|arm| known.iter().all(|(id, _)| *id != arm.id)).collect();
    known.extend(unknown.into_iter().filter_map(|arm| Some((arm.id.clone(), tare_controller::cannot_start(arm)?))));
    let mut no_place = tare_controller::no_place_for_data(study);
    no_place.retain(|(arm, _)| known.iter().all(|(other, _)| other != arm));
    known.into_iter().chain(no_place).collect()
}

/// Those that are known to be `unavailable`, and the others whose memory is to be merged and `cannot` be.
fn with_merging(
    arms: &[Arm],
    unavailable: Vec<(String, Refusal)>,
    cannot: impl Fn(&Arm) -> Option<Refusal>,
) -> Vec<(String, Refusal)> {
    let known = |arm: &Arm| unavailable.iter().any(|(id, _)| *id == arm.id);
    let merging = arms.iter().filter(|arm| arm.host_memory.merging.is_some() && !known(arm));
    let more: Vec<_> = merging.filter_map(|arm| Some((arm.id.clone(), cannot(arm)?))).collect();
    unavailable.into_iter().chain(more).collect()
}

fn without(study: &Study, left_out: Vec<LeftOut>, what_can: bool) -> Result<(Study, Vec<LeftOut>), Failure> {
    let mut study = study.clone();
    if left_out.is_empty() {
        return Ok((study, left_out));
    }
    if what_can && study.original.is_some() {
        study = other_baseline(study, &left_out);
    }
    if let Some(baseline) = left_out.iter().find(|left| left.arm == study.baseline) {
        let LeftOut { arm, reason, remedy, .. } = baseline;
        let message = format!(
            "the baseline `{arm}`, which all others are compared with, cannot run here: {reason}\n  remedy: {remedy}"
        );
        return Err(Failure::new(message, Exit::HostUnfit));
    }
    study.arms.retain(|arm| left_out.iter().all(|left| left.arm != arm.id));
    if study.arms.iter().filter(|arm| arm.replica_of.is_none()).count() < FEWEST_ARMS {
        let listed: Vec<String> = left_out.iter().map(|left| format!("  - {}", sentence(left))).collect();
        let message =
            format!("nothing is left to compare `{}` with on this host:\n{}", study.baseline, listed.join("\n"));
        return Err(Failure::new(message, Exit::HostUnfit));
    }
    Ok((study, left_out))
}

/// The study with the first arm that can be run as its baseline, where its own cannot; a replica then repeats that one.
fn other_baseline(mut study: Study, left_out: &[LeftOut]) -> Study {
    let can = |id: &str| left_out.iter().all(|left| left.arm != id);
    let first = study.arms.iter().find(|arm| arm.replica_of.is_none() && can(&arm.id)).cloned();
    let Some(first) = first.filter(|_| !can(&study.baseline)) else { return study };
    for arm in study.arms.iter_mut().filter(|arm| arm.replica_of.is_some()) {
        let (id, label) = (format!("{}-again", first.id), format!("{}, again", first.label));
        *arm = Arm { id, label, replica_of: Some(first.id.clone()), ..first.clone() };
    }
    study.baseline = first.id;
    study
}

/// What plan, terminal and report say of an arm that is left out.
pub fn sentence(left: &LeftOut) -> String {
    let name = if left.label == left.arm { String::new() } else { format!(" ({})", left.label) };
    format!("not measured here: `{}`{name}: {}. Remedy: {}", left.arm, ended(&left.reason), ended(&left.remedy))
}

/// A sentence without the full stop at its end.
fn ended(text: &str) -> &str {
    text.trim().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Registries;

    const STUDY: &str = r#"
schema = 1
name = "some"
question = "Which?"
baseline = "native"
blocks = 2
skip-unavailable = true
[arms.native]
platform = "native"
[arms.other]
label = "the other"
platform = "container"
[arms.third]
platform = "container"
[guest]
cpus = 1
memory = "64MiB"
[phases]
steady-state = "1s"
[cases.idle]
workload = "rr"
"#;

    fn study() -> Study {
        tare_study::parse("some", STUDY, &Registries).unwrap_or_else(|error| panic!("{error}")).study
    }

    fn left(arm: &str) -> LeftOut {
        let (reason, remedy) = ("there is no such program.".to_owned(), "install it".to_owned());
        LeftOut { arm: arm.to_owned(), label: format!("the {arm}"), reason, remedy }
    }

    #[test]
    fn what_cannot_run_is_left_out_and_listed_and_the_replica_stays() {
        let (reduced, omitted) =
            without(&study(), vec![left("other")], false).unwrap_or_else(|failure| panic!("{failure:?}"));
        let arms: Vec<&str> = reduced.arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(arms, ["native", "third", "native-again"]);
        assert_eq!(
            sentence(&omitted[0]),
            "not measured here: `other` (the other): there is no such program. Remedy: install it"
        );
    }

    #[test]
    fn arms_that_merge_cannot_run_where_the_kernel_cannot_and_each_is_listed_once() {
        let text = STUDY
            .replace("blocks = 2", "blocks = 2\ntrust-domain = \"mine\"")
            .replace("platform = \"container\"", "platform = \"container\"\nmerging = \"tare\"");
        let study = tare_study::parse("some", &text, &Registries).unwrap_or_else(|error| panic!("{error}")).study;
        let known = vec![("other".to_owned(), Refusal::new("there is no such program", "install it"))];
        let cannot = |_: &Arm| Some(Refusal::new("no merging", "another kernel"));
        let found = with_merging(&study.arms, known.clone(), cannot);
        let found: Vec<(&str, &str)> = found.iter().map(|(arm, why)| (arm.as_str(), why.reason.as_str())).collect();
        assert_eq!(found, [("other", "there is no such program"), ("third", "no merging")]);
        assert_eq!(with_merging(&study.arms, known.clone(), |_| None), known);
        let plain: Vec<Arm> = study.arms.into_iter().filter(|arm| arm.host_memory.merging.is_none()).collect();
        assert_eq!(with_merging(&plain, Vec::new(), |_| panic!("nobody merges")), []);
    }

    #[test]
    fn the_baseline_and_something_to_compare_it_with_must_remain() {
        assert!(without(&study(), vec![left("native")], false).is_err());
        assert!(without(&study(), vec![left("other"), left("third")], false).is_err());
    }

    #[test]
    fn a_published_study_refuses_without_its_subject_and_runs_what_can_with_another_baseline() {
        let text =
            STUDY.replace("[arms.native]", "[published]\nreport = \"000\"\nsubject = [\"native\"]\n[arms.native]");
        let study = tare_study::parse("some", &text, &Registries).unwrap_or_else(|error| panic!("{error}")).study;
        let refused = without(&study, vec![left("native")], false).expect_err("the baseline cannot run");
        assert!(format!("{refused:?}").contains("the baseline `native`"), "{refused:?}");
        let (reduced, left_out) =
            without(&study, vec![left("native")], true).unwrap_or_else(|failure| panic!("{failure:?}"));
        let arms: Vec<&str> = reduced.arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(
            (reduced.baseline.as_str(), arms.as_slice()),
            ("other", ["other", "third", "other-again"].as_slice())
        );
        assert_eq!((reduced.missing_subject(), left_out.len()), (vec!["native"], 1));
        // A study of nobody's else has no other baseline than its own.
        assert!(without(&self::study(), vec![left("native")], true).is_err());
    }
}
