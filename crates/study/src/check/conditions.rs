//! `neighbours.work` of a case: one victim under several conditions, in turns. Why: `docs/adr/0035-isolation.md`.

use tare_model::aggressor::Aggressor;
use tare_model::study::{Arm, Case, CaseSchedule, Condition, Roles};
use tare_model::traits::TurnTraits;
use tare_model::turns::TurnSpec;
use tare_model::units::Span;

use super::case::LOAD_SEPARATOR;
use super::{Able, Context, schedule};
use crate::file;
use crate::language::shape::{Or, Words};
use crate::language::table::Field;

/// Turns where the study does not say how long they are. What a neighbour does to caches, to a disk's queue or to a CPU quota that is counted
/// over 100 ms takes some tens of milliseconds to come and to go: it begins with the gap, and the first part of a turn does not count.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(500),
    warm_up: Span::from_millis(100),
    gap: Span::from_millis(200),
    renewed: None,
    freezes: false,
    commands: None,
};

/// What neighbours do, as a field of a file.
type Listed<'f> = Field<'f, Vec<Field<'f, Option<Aggressor>>>>;

fn listed<'c, 'f>(case: &'c file::Case<'f>) -> Option<&'c Listed<'f>> {
    case.neighbours.value.as_ref().map(|neighbours| &neighbours.work).filter(|work| work.is_there())
}

/// Whether the neighbours of a case have a list of what they do, right or wrong.
pub(super) fn are_meant(case: &file::Case<'_>) -> bool {
    listed(case).is_some()
}

/// The cases of a written one: itself or, where its neighbours have a list of what they do, one for each.
pub(super) fn expanded(written: &file::Case<'_>, able: Able<'_>, cases: Vec<Case>) -> Vec<Case> {
    let Some(work) = listed(written) else { return cases };
    can(written, work, able);
    let ([case], Some(turns)) = (cases.as_slice(), turns(written, able, &cases)) else { return cases };
    let known = work.value.iter().flatten().filter_map(|work| work.value);
    let one = |work: Option<Aggressor>| {
        let name = Option::<Aggressor>::WORDS.iter().find(|(_, own)| *own == work).map_or("", |(name, _)| name);
        let said = if work.is_some() { format!("neighbours: {name}") } else { "neighbours idle".to_owned() };
        let (victim, own) = (case.id.clone(), case.label.clone());
        Case {
            id: format!("{}{LOAD_SEPARATOR}{name}", case.id),
            label: format!("{}, {said}", case.label),
            schedule: CaseSchedule::Conditions(Condition { victim, label: own, work, turns }),
            ..case.clone()
        }
    };
    known.map(one).collect()
}

/// How conditions take turns; that a steady state is too short for them is reported.
fn turns(written: &file::Case<'_>, able: Able<'_>, cases: &[Case]) -> Option<TurnSpec> {
    let steady_state = cases.first()?.phases.steady_state;
    let spec = schedule::of_conditions(written, &able.context.schedule, &TURNS, steady_state);
    if spec.is_none() {
        let length = written.turns.value.as_ref().and_then(|turns| turns.length.value).unwrap_or(TURNS.turn);
        let what = format!("take turns of {length}, and a steady state of {steady_state} does not hold two of them");
        written.neighbours.wrong(&what, "measure longer, or write a shorter `length` in `turns`");
    }
    spec
}

/// Reports what is wrong with the list, and what cannot stand beside it.
fn can(case: &file::Case<'_>, work: &Listed<'_>, able: Able<'_>) {
    let what = "says what neighbours do beside one guest for each set-up of the workload, and {} cannot be set up twice in a guest";
    able.check(work, |traits| traits.several_set_ups && traits.turns.is_some(), what, "it can be had with");
    let known: Vec<(&Field<'_, Option<Aggressor>>, Option<Aggressor>)> =
        work.value.iter().flatten().filter_map(|own| Some((own, own.value?))).collect();
    if let Some((first, _)) = known.first().filter(|(_, first)| first.is_some()) {
        first.wrong("is not \"none\", which the others are held against", "write \"none\" first");
    } else if known.len() == 1 {
        work.wrong("lists nothing that a neighbour does", "for example `work = [\"none\", \"spin\"]`");
    }
    for (n, (at, own)) in known.iter().enumerate() {
        if known[..n].iter().any(|(_, other)| other == own) {
            at.wrong("is there twice", "leave it out");
        }
    }
    let one = |field: &Field<'_, u32>| field.value.is_none_or(|count| count == 1);
    let counts = [&case.guests, &case.drivers].into_iter().filter(|field| !one(field)).map(|field| &**field);
    let searches = [&*case.loads, &*case.capacity, &*case.load_from, &*case.cpu_target].into_iter();
    let off = |field: &Field<'_, bool>| field.value != Some(true);
    let switches = [&case.busy_target, &case.held_out].into_iter().filter(|field| !off(field)).map(|field| &**field);
    let others = searches.chain([&*case.schedule]).filter(|field| field.is_there());
    for field in counts.chain(switches).chain(others) {
        let what = "cannot stand beside `neighbours.work`: one guest with one driver meets one condition after another, under one load";
        field.wrong_key(what, "leave one of them out");
    }
}

/// Reports arms and blocks with which conditions cannot be had.
pub(super) fn fit(file: &file::Study<'_>, context: &Context<'_>, (arms, roles): (&[Arm], &Roles), cases: &[Case]) {
    let Some(case) = cases.iter().find(|case| case.schedule.condition().is_some()) else { return };
    let work = context.case(case).get("neighbours").get("work");
    if let Some(Or::Table(_)) = file.blocks.value {
        let what = "is a table, and the conditions of one guest have as many blocks as each other";
        file.blocks.wrong(what, "write a number, such as `blocks = 8`");
    }
    if file.spare_blocks.or(0) > 0 {
        let what = "replaces blocks case by case, and the conditions of one guest have the same blocks";
        file.spare_blocks.wrong(what, "leave it out");
    }
    if !roles.drives_locally() {
        let what = "takes turns with load from another machine, and when a turn begins there is known only as exactly as the way to it allows";
        work.wrong_key(what, "write `drivers = [\"local\"]`");
    }
    let limitless = arms.iter().find(|arm| !context.catalog.limits_guests(&arm.platform, &arm.options));
    if let Some(arm) = limitless {
        let what = format!("has neighbours work against a guest, and `{}` sets no limits to them", arm.id);
        work.wrong_key(&what, "leave the arm out, or the list: neighbours then run busy loops");
    }
    if let Some(arm) = arms.iter().find(|arm| context.catalog.reaches_outside(&arm.platform, &arm.options)) {
        let what =
            format!("has neighbours work against a guest, and tare limits nothing on the machines of `{}`", arm.id);
        work.wrong_key(&what, "leave the arm out, or the list: neighbours then run busy loops");
    }
}
