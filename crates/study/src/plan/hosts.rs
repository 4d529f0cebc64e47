//! What it means for a run that some of its machines are not this host's guests.

use std::collections::BTreeSet;

use tare_model::layout::ServicePlace;
use tare_model::study::{Arm, Attach, Case, CaseLoad, Study};

use crate::catalog::Catalog;

/// How such a run differs from one that is all on this host, each in a sentence.
pub(super) fn differences(study: &Study, catalog: &dyn Catalog) -> Vec<String> {
    let (outside, inside): (Vec<&Arm>, Vec<&Arm>) =
        study.arms.iter().partition(|arm| catalog.reaches_outside(&arm.platform, &arm.options));
    let mut all = Vec::new();
    if !outside.is_empty() {
        all.push(format!(
            "{} not made by tare: CPUs and memory are what the machine has, the lab's settings do not reach there, and no \
             service demand is reported",
            named(&outside)
        ));
    }
    if !outside.is_empty() && !inside.is_empty() {
        all.push(format!(
            "{} reached over a network that was there before the run, and {} over the lab's inside this host: a difference \
             between them is also one of these networks",
            named(&outside),
            named(&inside)
        ));
    }
    if !outside.is_empty() && study.cases.iter().any(|case| case.schedule.turns().is_some()) {
        all.push(format!(
            "{} driven in turns: CPU by a machine's own kernel is that of the whole block, turns of other arms included, and what the \
             machine does in these is not seen",
            named(&outside)
        ));
    }
    all.extend(held(study, catalog));
    all.extend(added(study, catalog));
    if let (Some(_), Some(rate)) = (&study.lab.wire, study.lab.link_rate) {
        all.push(format!("{rate} bounds the driver of this host alone: the card of the wire has a rate of its own"));
    }
    if let Some(wire) = &study.lab.wire {
        let then = match wire.attach {
            Attach::Bridge => "whose frames are the lab's while the run goes on: this host is not reached over it",
            Attach::Macvlan => {
                "each by a macvlan of its own: this host shares the card with the load, and what comes over it is received as the card \
                 is set"
            }
        };
        all.push(format!("guests are on the wire of `{}`, {then}", wire.interface));
    }
    if !study.roles.drives_locally() {
        let hosts: Vec<String> = study.roles.drivers.iter().map(|host| format!("`{host}`")).collect();
        all.push(format!(
            "load comes from {}: the placement of CPUs on this host does not concern drivers elsewhere",
            hosts.join(", ")
        ));
    }
    all.extend(study.cases.iter().filter_map(|case| idle_hosts(study, case)));
    all.extend(study.roles.services.as_ref().map(|host| services(study, host, catalog)));
    all
}

/// Arms that are machines which exist already, elsewhere.
fn existing<'s>(study: &'s Study, catalog: &dyn Catalog) -> Vec<&'s Arm> {
    let outside = study.arms.iter().filter(|arm| catalog.reaches_outside(&arm.platform, &arm.options));
    outside.filter(|arm| catalog.machines(&arm.platform, &arm.options).is_some()).collect()
}

/// By whose account the CPUs of machines elsewhere are busy to a share, where that is asked.
fn held(study: &Study, catalog: &dyn Catalog) -> Option<String> {
    let existing = existing(study, catalog);
    let is_held = study.cases.iter().any(|case| matches!(case.load, CaseLoad::CpuTarget { .. }));
    (is_held && !existing.is_empty()).then(|| {
        format!(
            "{} held to a share of CPU that its own kernel counts: time that the hypervisor took from it (steal) is no part of it, and \
             what the hypervisor itself does for it is not seen",
            named(&existing)
        )
    })
}

/// What is not known of machines elsewhere that are added one by one.
fn added(study: &Study, catalog: &dyn Catalog) -> Option<String> {
    let existing = existing(study, catalog);
    let adds = study.cases.iter().any(|case| case.load.is_density());
    (adds && !existing.is_empty()).then(|| {
        format!(
            "{} added machine by machine, on a host whose memory is not seen: what is kept back of this host's memory, and waiting for it, \
             bound no such scale-up, and no memory is reported of it",
            named(&existing)
        )
    })
}

/// What is served from the host that the study names for that, and in which cases nothing is.
fn services(study: &Study, host: &str, catalog: &dyn Catalog) -> String {
    let (mut served, mut idle) = (BTreeSet::new(), Vec::new());
    for case in &study.cases {
        let guests = catalog.traits(&case.into()).guests;
        let all = guests.into_iter().flat_map(|guest| guest.work.services);
        let of_case: Vec<String> = all.filter(|own| own.place == ServicePlace::Driver).map(|own| own.what).collect();
        if of_case.is_empty() {
            idle.push(format!("`{}`", case.id));
        }
        served.extend(of_case);
    }
    if served.is_empty() {
        return format!(
            "`services` names `{host}`, and the guests of no case ask the driver's side for anything: nothing is served there"
        );
    }
    let served = served.into_iter().collect::<Vec<_>>().join(", ");
    let but = if idle.is_empty() { String::new() } else { format!("; {} asks for nothing there", idle.join(", ")) };
    format!(
        "what guests ask the driver's side for ({served}) is served from `{host}`, for each guest by an agent of its own{but}"
    )
}

/// Which hosts offer no load in a case, for want of drivers.
fn idle_hosts(study: &Study, case: &Case) -> Option<String> {
    let guests = case.load.guests();
    let drivers = (guests.count * guests.drivers).max(1) as usize;
    let idle: Vec<String> = study.roles.drivers.iter().skip(drivers).map(|host| format!("`{host}`")).collect();
    (!idle.is_empty()).then(|| {
        format!(
            "`{}` has {drivers} driver(s), so {} offers no load in it (`drivers` says how many there are)",
            case.id,
            idle.join(", ")
        )
    })
}

/// Whether every guest is a machine that exists already, so that nothing is promised to guests on this host.
pub(super) fn all_outside(study: &Study, catalog: &dyn Catalog) -> bool {
    !study.arms.is_empty() && study.arms.iter().all(|arm| catalog.reaches_outside(&arm.platform, &arm.options))
}

fn named(arms: &[&Arm]) -> String {
    let ids: Vec<String> = arms.iter().map(|arm| format!("`{}`", arm.id)).collect();
    format!("{} {}", ids.join(", "), if ids.len() == 1 { "is" } else { "are" })
}
