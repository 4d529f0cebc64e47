//! What it takes to add guests until a host carries no more, and how the plan describes it.

use tare_model::density::{DensitySpec, TileGuest};
use tare_model::study::{Arm, Case, CaseLoad, Study};
use tare_model::units::Span;

use super::{PlanRefusal, human};
use crate::catalog::Catalog;
use crate::host::HostFacts;

/// Most numbers of guests to which a trial of this case offers load.
pub(super) fn levels(case: &Case) -> u64 {
    match &case.load {
        CaseLoad::Density { spec, .. } => spec.guests.levels_at_most().into(),
        _ => 1,
    }
}

/// Waits of one trial beside the starts of its guests, if each takes as long as it may: at each number of guests the rest,
/// and, where the arm merges, until merging has settled.
pub(super) fn waits(case: &Case, arm: &Arm) -> Span {
    let CaseLoad::Density { spec: density, .. } = &case.load else { return Span::ZERO };
    let settle = if arm.host_memory.merging.is_some() { density.settle.ns } else { 0 };
    Span { ns: density.rest.ns.saturating_add(settle).saturating_mul(levels(case)) }
}

/// Density cases of which not even one guest fits beside the reserve of this host, on which the guests of some arm are.
pub(super) fn refusals(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> Vec<PlanRefusal> {
    let one = |case: &Case| {
        let CaseLoad::Density { spec: density, .. } = &case.load else { return None };
        let touches = catalog.traits(&case.into()).touches();
        let (reserve, available) = (density.reserve_on(host.memory_total), host.memory_available);
        let fits = touches.0.saturating_add(reserve.0) <= available.0;
        let unit = if density.tile.is_empty() { "guest" } else { "tile" };
        (!fits).then(|| PlanRefusal::Density { case: case.id.clone(), unit, touches, reserve, available })
    };
    study.cases.iter().filter_map(one).collect()
}

/// How guests are added, and which bounds of this host end that, for all cases that do so. `host`: this one, where guests are on it.
pub(super) fn words(study: &Study, host: Option<&HostFacts>) -> Vec<String> {
    let groups = by_case(study, |case| {
        let CaseLoad::Density { spec: density, .. } = &case.load else { return None };
        let bounds = host.map(|host| {
            let reserve = human::size(density.reserve_on(host.memory_total));
            let pressure = (density.pressure * 1000.0).round() / 10.0;
            format!("{reserve} of memory kept back, at most {pressure} % of the time waited for memory")
        });
        Some((added(density), bounds))
    });
    let lines = groups
        .into_iter()
        .flat_map(|(cases, (added, bounds))| std::iter::once(format!("{cases}: {added}")).chain(bounds));
    let mut lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        let stops = if host.is_some() { STOPS } else { STOPS_ELSEWHERE };
        lines.extend(stops.map(str::to_owned));
    }
    lines
}

/// Which guests are added, and at how many load is offered.
fn added(density: &DensitySpec) -> String {
    let numbers = density.guests.words();
    if density.tile.is_empty() {
        return format!("guests are added one by one, load at {numbers}");
    }
    let one = |guest: &TileGuest| format!("{} ({} x {})", guest.name, guest.size.cpus, human::size(guest.size.memory));
    let guests: Vec<String> = density.tile.iter().map(one).collect();
    format!("tiles of {} are added guest by guest, load at {numbers} tiles", guests.join(", "))
}

/// The description of each case. Cases with the same description stand together.
pub(super) fn by_case<T: PartialEq>(study: &Study, describe: impl Fn(&Case) -> Option<T>) -> Vec<(String, T)> {
    let mut all: Vec<(String, T)> = Vec::new();
    for case in &study.cases {
        let Some(one) = describe(case) else { continue };
        match all.iter_mut().find(|(_, other)| *other == one) {
            Some((cases, _)) => cases.push_str(&format!(", `{}`", case.id)),
            None => all.push((format!("`{}`", case.id), one)),
        }
    }
    all
}

/// What ends every scale-up.
const STOPS: [&str; 2] = [
    "a scale-up stops before the next guest would not fit, when the host swaps or waits for memory, when a guest",
    "cannot start, is killed or does wrong work, and when an objective is missed",
];

/// What ends every scale-up of machines elsewhere.
const STOPS_ELSEWHERE: [&str; 2] = [
    "a scale-up stops when a machine cannot be started, is lost or does wrong work, and when an objective is missed; the memory",
    "of the host under them is not seen, so none is kept back",
];

/// What density cases promise on this host.
pub(super) fn promises(study: &Study, host: &HostFacts) -> Vec<String> {
    let groups = by_case(study, |case| {
        let CaseLoad::Density { spec, .. } = &case.load else { return None };
        let promised = spec.promised(case.guest.memory);
        let ratio = promised.0 as f64 / host.memory_total.0.max(1) as f64;
        Some(format!("{} on {} ({ratio:.1}x)", human::size(promised), human::size(host.memory_total)))
    });
    groups.into_iter().map(|(cases, promise)| format!("{cases}: promises up to {promise}")).collect()
}

/// What each arm asks of the host's memory, what the other arms get, and who may share it.
pub(super) fn host_memory(study: &Study) -> Vec<String> {
    let asked =
        study.arms.iter().filter_map(|arm| arm.host_memory.words().map(|words| format!("`{}`: {words}", arm.id)));
    let mut all: Vec<String> = asked.collect();
    if all.is_empty() {
        return all;
    }
    let others: Vec<String> = study
        .arms
        .iter()
        .filter(|arm| study.merges() && arm.host_memory.merging.is_none())
        .map(|arm| format!("`{}`", arm.id))
        .collect();
    if !others.is_empty() {
        all.push(format!("{}: merging stopped", others.join(", ")));
    }
    all.push("the whole host is set so for each trial, and put back as it was found".to_owned());
    all
}

/// Who may share memory, and why that has to be said.
pub(super) fn trust(study: &Study) -> Vec<String> {
    let Some(domain) = study.trust_domain.as_ref().filter(|_| study.merges()) else { return Vec::new() };
    let why = "pages that are merged can be read by timing by everybody else whose memory is merged on this host";
    vec![domain.clone(), why.to_owned()]
}
