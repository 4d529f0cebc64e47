//! What differs between the runs, and what was warned of in them.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::environment::Environment;
use tare_model::findings::Findings;
use tare_model::study::Study;

use super::{Side, likeness, words};

/// What differs between plans and hosts, each in a sentence.
pub(super) fn all(before: &Side<'_>, after: &Side<'_>) -> Vec<String> {
    let sentence = |what: &str, of: &dyn Fn(&Findings) -> String| {
        let [x, y] = [before, after].map(|side| side.runs.iter().map(of).collect::<BTreeSet<String>>());
        (x.union(&y).count() > 1).then(|| {
            let [x, y] = [x, y].map(|own| own.into_iter().collect::<Vec<_>>().join(" or "));
            format!("{what}: {x} in {}, {y} in {}.", words(before, "first"), words(after, "second"))
        })
    };
    type OfRun = (&'static str, fn(&Findings) -> String);
    let of_run: [OfRun; 7] = [
        ("Version of tare", |run| run.run.tare_version.clone()),
        ("Study", |run| run.plan.study.name.clone()),
        ("Blocks", |run| run.plan.study.blocks.to_string()),
        ("Seed", |run| run.plan.study.seed.to_string()),
        ("Margin", |run| run.plan.study.margin.map_or_else(|| "none".to_owned(), |margin| margin.to_string())),
        ("Sample interval", |run| run.plan.study.lab.sample_interval.to_string()),
        ("CPU placement", |run| run.plan.cpus.note.clone()),
    ];
    let mut found: Vec<String> = of_run.iter().filter_map(|(what, of)| sentence(what, of)).collect();
    if let (Some(a), Some(b)) = (before.runs.first(), after.runs.first()) {
        found.extend(of_plans(&a.plan.study, &b.plan.study));
    }
    let keys: BTreeSet<_> = before.runs.iter().chain(after.runs).flat_map(|run| facts(run).into_keys()).collect();
    found.extend(keys.iter().filter_map(|key| {
        let of = |run: &Findings| facts(run).remove(key).unwrap_or_else(|| "not known".to_owned());
        sentence(&format!("{}, {}", key.0, key.1), &of)
    }));
    found
}

/// Arms and cases that are not the same. That a case differs in what its figures depend on is refused before.
fn of_plans(a: &Study, b: &Study) -> Vec<String> {
    let mut found = Vec::new();
    for arm in &a.arms {
        match b.arms.iter().find(|other| other.id == arm.id) {
            None => found.push(format!("Arm {} is in the first plan alone.", arm.id)),
            Some(other) if likeness::measured(other) != likeness::measured(arm) => {
                found.push(format!("Arm {} has another platform or other options in the second plan.", arm.id));
            }
            Some(_) => {}
        }
    }
    let only = b.arms.iter().filter(|arm| !a.arms.iter().any(|own| own.id == arm.id));
    found.extend(only.map(|arm| format!("Arm {} is in the second plan alone.", arm.id)));
    for (x, y, which) in [(a, b, "first"), (b, a, "second")] {
        let only = x.cases.iter().filter(|case| !y.cases.iter().any(|own| own.id == case.id));
        found.extend(only.map(|case| format!("Case {} is in the {which} plan alone.", case.id)));
    }
    found
}

/// What must be read before the figures of some run.
pub(super) fn warnings(before: &Side<'_>, after: &Side<'_>) -> Vec<String> {
    let mut of: Vec<(&String, Vec<&str>)> = Vec::new();
    let runs: Vec<(&str, &Findings)> = before.named().chain(after.named()).collect();
    for (name, run) in &runs {
        for warning in &run.warnings {
            match of.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, names)) => names.push(name),
                None => of.push((warning, vec![name])),
            }
        }
    }
    let said = of.into_iter().map(|(warning, names)| match names.len() {
        n if n == runs.len() => format!("In every run: {warning}"),
        _ => format!("In {}: {warning}", names.join(", ")),
    });
    said.collect()
}

/// Facts about the host and the machines beside it, by section and name; of devices, a fact each.
fn facts(run: &Findings) -> BTreeMap<(String, &str), String> {
    let Environment { sections, hardware, machines, .. } = &run.environment;
    let mut facts = BTreeMap::new();
    let own = std::iter::once(("", sections, hardware));
    for (of, sections, hardware) in own.chain(machines.iter().map(|m| (m.name.as_str(), &m.sections, &m.hardware))) {
        let titled = |title: &str| if of.is_empty() { title.to_owned() } else { format!("{of}: {title}") };
        for section in sections {
            let own = section.facts.iter();
            facts.extend(own.map(|(name, value)| ((titled(&section.title), name.as_str()), value.clone())));
        }
        for table in hardware {
            let rows = table.rows.iter().filter_map(|row| row.split_first());
            facts.extend(rows.map(|(name, cells)| ((titled(&table.title), name.as_str()), cells.join(", "))));
        }
    }
    facts
}
