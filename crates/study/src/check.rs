//! What a study file means: its tables, read by their shapes, become a `Study`, or it is said why not.
//!
//! After a problem the check goes on with a stand-in value, so that later problems are found too. A study
//! is returned only when there was none, so no stand-in ever leaves this module.

mod beside;
mod capacity;
mod case;
mod conditions;
mod control;
mod cpu_target;
mod density;
mod hosts;
mod instances;
mod lab;
mod load;
mod memory;
mod published;
mod schedule;
mod size;
mod start;

use serde_json::{Value as Json, json};
use tare_model::load::{LoadModel, Phases};
use tare_model::study::Precision;
use tare_model::study::{Arm, Case, STUDY_SCHEMA, Study};
use tare_model::traits::{ANY_SIZE, Traits};
use tare_model::units::Span;

use crate::catalog::{Catalog, CatalogEntry, WorkloadAsked};
use crate::file;
use crate::language::shape::{Or, Shape, check_id};
use crate::language::table::Field;
use crate::language::tree::Cursor;
use crate::suggest;
use size::Asked;

pub(crate) use beside::{COUNTS_AND_SWITCHES, NOT_BESIDE};
pub(crate) use memory::rules;
pub(crate) use schedule::too_short;

/// What is added to the baseline's id for the arm that repeats it.
const REPLICA_SUFFIX: &str = "-again";

/// What the check needs everywhere.
struct Context<'c> {
    catalog: &'c dyn Catalog,
    platforms: Vec<CatalogEntry>,
    workloads: Vec<CatalogEntry>,
    /// The whole file.
    root: &'c Cursor<'c>,
    /// Ids of cases that look for a capacity, right or wrong.
    searching: Vec<&'c str>,
    /// What is said of the guests of all cases.
    guest: Option<Asked>,
    /// What is said of the phases of all cases.
    phases: Option<Phases>,
    /// Where these two would be said, if nothing is said of them anywhere.
    unsaid: (Option<Cursor<'c>>, Option<Cursor<'c>>),
    /// What is said of the schedule of all cases.
    schedule: schedule::OfStudy<'c>,
}

/// The workload of a case by its name, and what it can do with each of the loads; of refused parameters there are no traits.
#[derive(Clone, Copy)]
struct Able<'c> {
    context: &'c Context<'c>,
    workload: Option<&'c str>,
    traits: &'c [Traits],
}

impl Able<'_> {
    /// Reports a field that asks the workload for what it cannot do. `what` is said of it with the workload as `{}`; `how` others can.
    fn check(&self, at: &Cursor<'_>, can: impl Fn(&Traits) -> bool, what: &str, how: &str) {
        let Some(name) = self.workload.filter(|_| !self.traits.iter().all(&can)) else { return };
        let what = what.replace("{}", &format!("`{name}` as it is set here"));
        at.wrong_key(&what, format!("leave `{}` out{}", at.key(), self.context.others(how, can)));
    }
}

impl<'c> Context<'c> {
    /// Where a case is in the file.
    fn case(&self, case: &Case) -> Cursor<'c> {
        self.root.get("cases").get(case.id.split('@').next().unwrap_or(&case.id))
    }

    /// The end of a remedy: the workloads that can do it as they are by themselves; empty where none can.
    fn others(&self, how: &str, can: impl Fn(&Traits) -> bool) -> String {
        let (parameters, load) = (&json!({}), LoadModel::Closed { clients: 1, think_time: Span::ZERO });
        let able = |entry: &&CatalogEntry| {
            let asked = WorkloadAsked { name: &entry.name, parameters, load, guest: ANY_SIZE, instances: 1 };
            can(&self.catalog.traits(&asked))
        };
        let names: Vec<String> = self.workloads.iter().filter(able).map(|entry| format!("`{}`", entry.name)).collect();
        if names.is_empty() { String::new() } else { format!("; {how} {}", names.join(", ")) }
    }
}

/// The study in a file's tree. Meaningless unless the cursor's sink stayed empty.
pub(crate) fn study(root: &Cursor<'_>, catalog: &dyn Catalog) -> Option<Study> {
    if written_by_a_newer_tare(root) {
        return None;
    }
    let file = file::Study::read(root)?;
    let guest = file.guest.is_there().then(|| size::guest(&file.guest, None, None));
    let phases = file.phases.is_there().then(|| size::phases(&file.phases, None, None));
    let (platforms, workloads) = (catalog.platforms(), catalog.workloads());
    let searching = load::searching(&file);
    let schedule = schedule::OfStudy::of(&file);
    let unsaid = (
        unsaid(&file, &file.guest, |case| case.guest.is_meant()),
        unsaid(&file, &file.phases, |case| case.phases.is_meant()),
    );
    let mut context = Context { catalog, platforms, workloads, root, searching, guest, phases, unsaid, schedule };
    let (mut arms, baseline) = arms(&file, &context);
    noise_floor(&file, &baseline, &mut arms, root);
    let hosts = hosts::hosts(&file.hosts, &context);
    let lab = lab::lab(file.lab.value.as_ref());
    lab::attaching(&file, &context, &lab, &arms);
    let roles = hosts::roles(&file, &hosts, &context, (&arms, &lab));
    context.schedule.learn(&arms, (&roles, &lab), catalog);
    let (blocks, precision) = blocks(&file);
    let cases = case::cases(&file, &context);
    context.schedule.hold_for_none(&cases);
    hosts::in_numbers(&context, &arms, &cases);
    conditions::fit(&file, &context, (&arms, &roles), &cases);
    control::fit(&file, &context, (&arms, &baseline), &cases);
    start::fit(&context, &arms, &cases);
    Some(Study {
        schema: file.schema.or(STUDY_SCHEMA),
        name: file.name.or("").to_owned(),
        question: file.question.or("").to_owned(),
        blocks,
        spare_blocks: spare_blocks(&file),
        precision,
        margin: file.margin.value,
        seed: file.seed.or(1),
        baseline,
        lab,
        scale: 1.0,
        skip_unavailable: file.skip_unavailable.or(false),
        hosts,
        roles,
        trust_domain: memory::trust_domain(&file, root, &arms),
        published: None,
        compare_with: file.compare_with.value,
        original: published::original(&file, &arms),
        score: capacity::score(&file, &context, &cases),
        arms,
        cases,
    })
}

/// The field for all cases, where neither it nor that of any case is there: its absence is then one mistake and not as many as there
/// are cases.
fn unsaid<'a, T>(
    file: &file::Study<'a>,
    of_all: &Field<'a, T>,
    has: impl Fn(&file::Case<'a>) -> bool,
) -> Option<Cursor<'a>> {
    let cases = file.cases.value.as_deref().unwrap_or_default();
    let said = of_all.is_meant() || cases.iter().any(|case| case.value.as_ref().is_some_and(&has));
    (!said).then(|| (**of_all).clone())
}

/// A newer file may be wrong in every line to this tare: only its schema number is worth reporting.
fn written_by_a_newer_tare(root: &Cursor<'_>) -> bool {
    let field = root.get("schema");
    let number = if field.is_there() { field.json().and_then(|number| number.as_i64()).unwrap_or(0) } else { 0 };
    if number <= i64::from(STUDY_SCHEMA) {
        return false;
    }
    let what = format!("is {number}: this study was written by a newer tare; this one reads up to {STUDY_SCHEMA}");
    field.wrong(&what, "update tare, or write the study for this version (`tare init`)");
    true
}

/// The arms as written, and the id of the baseline.
fn arms(file: &file::Study<'_>, context: &Context<'_>) -> (Vec<Arm>, String) {
    let written = file.arms.value.as_deref().unwrap_or_default();
    let arms: Vec<Arm> = written.iter().map(|written| arm(written, context)).collect();
    let labels = written
        .iter()
        .zip(&arms)
        .map(|(field, arm)| (field.value.as_ref().map(|own| &*own.label), &arm.id, &arm.label));
    labelled_twice(labels);
    let baseline = file.baseline.or("");
    if file.baseline.value.is_some() && !arms.is_empty() && arms.iter().all(|arm| arm.id != baseline) {
        let help = suggest::help(baseline, "arms of this study", arms.iter().map(|arm| arm.id.as_str()));
        file.baseline.wrong(&format!("is {baseline:?}, but no arm has that id"), help);
    }
    (arms, baseline.to_owned())
}

fn arm(field: &Field<'_, file::Arm<'_>>, context: &Context<'_>) -> Arm {
    check_id(field);
    let id = field.key().to_owned();
    let arm = field.value.as_ref();
    let platform = arm.and_then(|arm| known(&arm.platform, "platform", &context.platforms));
    let options = arm.and_then(|arm| arm.options.unless_absent(json!({})));
    let checked = platform.zip(options).and_then(|(platform, options)| {
        let checked = context.catalog.check_platform(platform, &options);
        checked.map_err(|error| field.foreign(&["options"], error, schema_of(platform, &context.platforms))).ok()
    });
    let host_memory = arm.map(|arm| memory::of_arm(arm, context, platform.zip(checked.as_ref()))).unwrap_or_default();
    let start = arm.map(|arm| start::of_arm(arm, context, platform.zip(checked.as_ref()))).unwrap_or_default();
    Arm {
        label: arm.map_or(id.as_str(), |arm| arm.label.or(&id)).to_owned(),
        id,
        platform: platform.unwrap_or_default().to_owned(),
        options: checked.unwrap_or_default(),
        replica_of: None,
        slowed_permille: arm.map_or(0, control::permille),
        host_memory,
        start,
    }
}

/// What a platform or a workload says about its own fields.
fn schema_of<'e>(name: &str, entries: &'e [CatalogEntry]) -> Option<&'e Json> {
    entries.iter().find(|entry| entry.name == name).map(|entry| &entry.schema)
}

/// The name in a field, if the catalog lists it; if not, that is reported.
fn known<'a>(field: &Field<'a, &'a str>, kind: &str, entries: &[CatalogEntry]) -> Option<&'a str> {
    let name = field.value?;
    listed(field, name, kind, entries).then_some(name)
}

/// Whether the catalog lists a name; if not, that is reported.
fn listed(at: &Cursor<'_>, name: &str, kind: &str, entries: &[CatalogEntry]) -> bool {
    let there = entries.iter().any(|entry| entry.name == name);
    if !there {
        let by_kind = entries.iter().filter(|entry| entry.kinds.iter().any(|kind| suggest::names(kind, name)));
        let by_kind: Vec<String> = by_kind.map(|entry| format!("`{}`", entry.name)).collect();
        let help = match by_kind.as_slice() {
            [] => suggest::help(name, &format!("{kind}s"), entries.iter().map(|entry| entry.name.as_str())),
            meant => format!(
                "{name} is a kind of {}; `tare schema` with that name says how to ask for it",
                meant.join(" and of ")
            ),
        };
        at.wrong(&format!("is {name:?}, but there is no such {kind}"), help);
    }
    there
}

/// Reports labels that two arms or two cases have: no reader could tell them apart. Each with where it is written, if it is, and the id.
fn labelled_twice<'a, 'c: 'a>(all: impl Iterator<Item = (Option<&'a Cursor<'c>>, &'a String, &'a String)>) {
    let mut seen: Vec<(&String, &String)> = Vec::new();
    for (at, id, label) in all {
        if let Some((other, _)) = seen.iter().find(|(_, own)| *own == label)
            && let Some(at) = at
        {
            at.wrong(
                &format!("is {label:?}, as that of `{other}` is"),
                "write another label, or leave it out: the id stands for it then",
            );
        }
        seen.push((id, label));
    }
}

/// The most blocks of a case, and when it has enough.
fn blocks(file: &file::Study<'_>) -> (u32, Option<Precision>) {
    let table = match &file.blocks.value {
        Some(Or::Table(table)) => table,
        Some(Or::Plain(blocks)) => return (*blocks, None),
        None => return (1, None),
    };
    let (least, most) = (table.at_least.value, table.at_most.value);
    if let Some((least, most)) = least.zip(most).filter(|(least, most)| most < least) {
        let help = "write a larger number, or a smaller `at-least`; a fixed number is written `blocks = 12`";
        table.at_most.wrong(&format!("is {most}, and `at-least` is {least}"), help);
    }
    let precision = least.zip(table.until.value).map(|(at_least, until)| Precision { at_least, until });
    (most.unwrap_or(1), precision)
}

/// Blocks that may replace disturbed ones.
fn spare_blocks(file: &file::Study<'_>) -> u32 {
    if file.spare_blocks.is_there() && matches!(file.blocks.value, Some(Or::Table(_))) {
        let what = "goes with a fixed number of blocks, and `blocks` is a table: its cases run on until their intervals are narrow";
        file.spare_blocks.wrong(what, "remove `spare-blocks`, or write `blocks = 12`");
    }
    file.spare_blocks.or(0)
}

/// Adds the second baseline, unless it was switched off.
fn noise_floor(file: &file::Study<'_>, baseline: &str, arms: &mut Vec<Arm>, root: &Cursor<'_>) {
    if file.noise_floor.unless_absent(true) != Some(true) {
        return;
    }
    if matches!(file.blocks.value, Some(Or::Plain(1))) {
        let what = "is 1, but a noise floor takes at least 2: one pair of equal arms shows no spread";
        let help =
            "ask for more blocks (6 give an interval of 95 % without assumptions), or write `noise-floor = false`";
        file.blocks.wrong(what, help);
    }
    let Some(original) = arms.iter().find(|arm| arm.id == baseline) else { return };
    let id = format!("{baseline}{REPLICA_SUFFIX}");
    if arms.iter().any(|arm| arm.id == id) {
        let what = "has the id of the arm that `noise-floor` adds to repeat the baseline";
        root.get("arms").get(&id).wrong(what, "rename this arm, or write `noise-floor = false`");
        return;
    }
    let label = format!("{}, again", original.label);
    let replica = Arm { id, label, replica_of: Some(baseline.to_owned()), ..original.clone() };
    arms.push(replica);
}
