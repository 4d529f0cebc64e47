//! What ran in a case: workload, load, guests, phases and blocks.

use tare_model::findings::{CaseFindings, Findings};
use tare_model::precision::WhyEnded;
use tare_model::study::{Case, CaseLoad};
use tare_model::written;

use super::{capacity, cpu_targets, density};
use crate::format;
use crate::words;

/// How load is offered.
pub(super) fn load(planned: &Case, findings: &Findings) -> String {
    match &planned.load {
        CaseLoad::Fixed { load, guests } => words::load_of_each(load, *guests),
        CaseLoad::Density { load, .. } => {
            let found = findings.cases.iter().find(|found| found.id == planned.id);
            let found = found.and_then(|found| found.density.as_ref()?.offered_per_guest_per_s);
            density::load(planned, load, found)
        }
        CaseLoad::Capacity(spec) => capacity::searched(planned, spec, findings),
        CaseLoad::ShareOf { share, .. } => capacity::shared(planned, share, findings),
        CaseLoad::CpuTarget { target, .. } => cpu_targets::load(planned, target, findings),
    }
}

/// The parameters that tell a case from others of its workload: ` (direction receive)`.
fn parameters(planned: &Case, findings: &Findings) -> String {
    let cases = &findings.plan.study.cases;
    let Some(own) = planned.parameters.as_object() else { return String::new() };
    let differs = |name: &str, value: &serde_json::Value| {
        let mut alike = cases.iter().filter(|case| case.workload == planned.workload);
        alike.any(|case| case.parameters.get(name) != Some(value))
    };
    let word = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let words = own.iter().filter(|(name, value)| differs(name, value));
    let words: Vec<String> = words.filter_map(|(name, value)| Some(format!("{name} {}", word(value)?))).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// Workload, load and guest in a line: what a reader needs beside the figure.
pub(super) fn line(case: &CaseFindings, findings: &Findings) -> String {
    let Some(planned) = findings.plan.study.cases.iter().find(|planned| planned.id == case.id) else {
        return String::new();
    };
    let workload = format!("Workload {}{}", planned.workload, parameters(planned, findings));
    let mut said = vec![workload, load(planned, findings)];
    said.extend(of_guests(planned));
    format!("{}.", said.join("; "))
}

/// The guests of a case, and what else is on the host.
fn of_guests(planned: &Case) -> Vec<String> {
    let size = |guest: &tare_model::guest::GuestSize| {
        format!("{} and {}", format::plural(u64::from(guest.cpus), "CPU", "CPUs"), guest.memory)
    };
    let guest = size(&planned.guest);
    let mut said =
        vec![density::guests(planned, &guest).unwrap_or_else(|| format!("{} of {guest}", words::guests(planned)))];
    if planned.instances > 1 {
        said.push(format!(
            "{} of the application in it, which share the load",
            format::plural(u64::from(planned.instances), "instance", "instances")
        ));
    }
    if planned.held_out {
        said.push("held out: no model is fitted to it".to_owned());
    }
    if planned.busy_target {
        said.push("the guest itself kept busy".to_owned());
    }
    if let Some(neighbours) = &planned.neighbours {
        let count = format::plural(u64::from(neighbours.count), "busy neighbour", "busy neighbours");
        said.push(format!("{count} of {}", size(&neighbours.guest)));
    }
    said
}

/// What ran, in full: with its phases, its blocks, and how the arms shared the time.
pub(super) fn in_full(case: &CaseFindings, findings: &Findings) -> String {
    let Some(planned) = findings.plan.study.cases.iter().find(|planned| planned.id == case.id) else {
        return String::new();
    };
    let mut said =
        vec![format!("Workload {}", planned.workload), load(planned, findings), words::phases(&planned.phases)];
    said.extend(of_guests(planned));
    said.extend(blocks(case, findings));
    let setup = format!("{}.", said.join("; "));
    if findings.plan.study.published.is_some() || findings.plan.study.arms.len() < 2 {
        return setup;
    }
    format!("{setup} {}", words::schedule(planned))
}

/// The blocks that a case took and why no more, where that followed from its intervals.
pub(crate) fn blocks(case: &CaseFindings, findings: &Findings) -> Option<String> {
    let study = &findings.plan.study;
    let ended = case.blocks.as_ref().filter(|ended| study.precision.is_some() || ended.blocks > study.blocks)?;
    let (until, most) = (written::percent(study.precision.map_or(0.0, |rule| rule.until)), study.most_blocks());
    let reaches = |width| format!("the widest interval reaches {} from its estimate", format::relative(width));
    let widest = ended.width.map_or_else(|| "an interval is missing".to_owned(), reaches);
    let each = if findings.plan.pairs(&case.id) > 1 { " of each pair" } else { "" };
    let blocks = format::plural(u64::from(ended.blocks), "block", "blocks") + each;
    Some(match ended.why {
        WhyEnded::Precise => {
            format!("{blocks}, precise enough: {widest}, {until} was asked")
        }
        WhyEnded::AtMost => {
            format!("{blocks} of at most {most}, not precise enough: {widest}, {until} was asked")
        }
        WhyEnded::NothingCompared => {
            format!("{blocks}: no arm has a ratio to the baseline, so no further block was run")
        }
        WhyEnded::Undisturbed => {
            format!("{blocks}, of which the {} that were not disturbed from outside count", study.blocks)
        }
        WhyEnded::SparesUsed => format!(
            "{blocks}, all spare ones included, of which {} count: those that were not disturbed from outside, and the first of the others",
            study.blocks
        ),
    })
}
