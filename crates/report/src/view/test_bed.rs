//! The test bed as the plan has it: drivers, link, services, guests and what their data lie on, as boxes in the frames of their machines. Cases whose guests stand alike
//! share one.

use serde::Serialize;
use tare_model::findings::Findings;
use tare_model::guest::GuestSize;
use tare_model::layout::Layout;
use tare_model::study::{Arm, Attach, Case, CaseLoad, CaseSchedule, LOCAL, Study};

use super::case_label;
use super::layout::Works;
use crate::format::plural;
use crate::words;

/// One test bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TestBed {
    /// What it is of, in a sentence; empty where there is one for all cases.
    pub(crate) of: String,
    /// The machines beside the guests' host: those that load comes from, and the one that serves the guests.
    pub(crate) others: Vec<Frame>,
    /// What lies between these and the guests' host, where there are any.
    pub(crate) between: Option<Boxed>,
    /// What lies between driver and guests on one host; `None` where the driver is on another.
    pub(crate) link: Option<Boxed>,
    /// The machine of the guests.
    pub(crate) host: Frame,
}

/// A machine and what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// Which guests stand in it at one time; empty where none do.
    pub(crate) about: &'static str,
    /// What holds of the guests of every arm.
    pub(crate) lines: Vec<String>,
    /// Above the link.
    pub(crate) drivers: Vec<Boxed>,
    /// Below it.
    pub(crate) guests: Vec<Boxed>,
}

/// A box: what it is, and lines about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Boxed {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// Whether nothing in it is measured.
    pub(crate) beside: bool,
}

/// One for each way in which guests of cases stand; none of figures that others published.
pub(crate) fn of_run(findings: &Findings) -> Vec<TestBed> {
    let study = &findings.plan.study;
    if study.published.is_some() {
        return Vec::new();
    }
    let mut alike: Vec<Vec<&Case>> = Vec::new();
    for case in &study.cases {
        match alike.iter_mut().find(|known| stand_alike(known[0], case, &findings.plan.layout)) {
            Some(cases) => cases.push(case),
            None => alike.push(vec![case]),
        }
    }
    let alone = alike.len() == 1;
    let of = |cases: &[&Case]| {
        let labels: Vec<String> = cases.iter().map(|case| case_label(findings, &case.id)).collect();
        if alone { String::new() } else { labels.join("; ") }
    };
    alike.iter().map(|cases| TestBed { of: of(cases), ..bed(cases, findings) }).collect()
}

/// Whether the guests of two cases stand alike, whatever they do.
fn stand_alike(one: &Case, other: &Case, layout: &Layout) -> bool {
    let key = |case: &Case| {
        let guests = (case.load.guests(), case.load.most_guests(), case.instances.max(1));
        let schedule = std::mem::discriminant(&case.schedule);
        (guests, case.guest, case.neighbours, case.busy_target, schedule, layout.works(&case.id))
    };
    key(one) == key(other)
}

fn bed(cases: &[&Case], findings: &Findings) -> TestBed {
    let study = &findings.plan.study;
    let (driver, local, case) = (driver(cases, findings), study.roles.drives_locally(), cases[0]);
    let (plan, works) = (&findings.plan, Works::of(cases, &findings.plan.layout));
    let cpus = on(&plan.cpus.client);
    let arms = arms(study, &plan.layout).into_iter().map(|arms| guest(&arms, &plan.layout, &works));
    let served_elsewhere = study.roles.services.as_deref().filter(|host| *host != LOCAL);
    let (served, services) = match served_elsewhere {
        None => (works.on_services_host(Some(&cpus)), None),
        Some(host) => (None, works.on_services_host(None).map(|served| machine(services(host, study), vec![served]))),
    };
    let guests = arms.chain(works.beside(&cpus)).chain(served).chain(neighbours(case)).collect();
    let drivers: Vec<Boxed> = std::iter::once(driver).chain(works.with_driver()).collect();
    let (drivers, clients) =
        if local { (drivers, None) } else { (Vec::new(), Some(machine(clients(&study.roles.drivers), drivers))) };
    let others: Vec<Frame> = clients.into_iter().chain(services).collect();
    let title = if others.is_empty() { "One host" } else { "The guests' host" }.to_owned();
    let about = match &case.schedule {
        CaseSchedule::Turns(_) => "the guests of all arms stand at one time and take turns",
        CaseSchedule::Pairs { .. } => {
            "the guests of each arm stand beside those of the baseline and take turns with them"
        }
        CaseSchedule::Trials { .. } => "the guests of one arm stand at a time",
        CaseSchedule::Conditions(_) => {
            "one guest of one arm stands at a time, with its neighbours, and conditions take turns"
        }
    };
    TestBed {
        of: String::new(),
        between: (!others.is_empty()).then(|| between(study)),
        link: local.then(|| link(study)),
        others,
        host: Frame { title, about, lines: each(cases, &works, findings), drivers, guests },
    }
}

/// Hosts that are named one by one.
const NAMED: usize = 4;

/// The hosts that offer load.
fn clients(hosts: &[String]) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| if host == LOCAL { "the guests' host" } else { host }).collect();
    match names.as_slice() {
        [one] => format!("Client machine {one}"),
        few if few.len() <= NAMED => format!("{} client machines: {}", few.len(), few.join(", ")),
        many => format!("{} client machines", many.len()),
    }
}

/// The host that serves the guests.
fn services(host: &str, study: &Study) -> String {
    let drives = study.roles.drivers.iter().any(|other| other == host);
    format!("Services machine {host}{}", if drives { ", which offers load too" } else { "" })
}

/// A machine beside the guests' host.
fn machine(title: String, drivers: Vec<Boxed>) -> Frame {
    Frame { title, about: "", lines: Vec::new(), drivers, guests: Vec::new() }
}

/// What cases have, each once, in their order.
fn each_once(cases: &[&Case], what: impl Fn(&Case) -> String) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for own in cases.iter().map(|case| what(case)) {
        if !all.contains(&own) {
            all.push(own);
        }
    }
    all
}

fn driver(cases: &[&Case], findings: &Findings) -> Boxed {
    let guests = cases[0].load.guests();
    let title = match (guests.count, guests.drivers) {
        (0 | 1, 0 | 1) => "Driver".to_owned(),
        (_, drivers) => format!("{} for each guest", plural(u64::from(drivers.max(1)), "driver", "drivers")),
    };
    let load = |case: &Case| match &case.load {
        CaseLoad::Fixed { load, .. } | CaseLoad::Density { load, .. } => words::load(load),
        CaseLoad::Capacity(_) => "load: searched for".to_owned(),
        CaseLoad::ShareOf { .. } => "load: a share of what a search found".to_owned(),
        CaseLoad::CpuTarget { .. } => "load: searched for by the guests' CPU".to_owned(),
    };
    let loads = each_once(cases, load);
    let mut lines = match loads.len() {
        1..=3 => loads,
        n => vec![format!("{n} loads")],
    };
    if findings.plan.study.roles.drives_locally() {
        lines.push(on(&findings.plan.cpus.client));
    }
    Boxed { title, lines, beside: false }
}

/// How the lab is on a network card, where it is.
fn wire(study: &Study) -> Option<String> {
    study.lab.wire.as_ref().map(|wire| match wire.attach {
        Attach::Bridge => format!("the lab's bridge is on the card {} of the host", wire.interface),
        Attach::Macvlan => format!("guests are attached to the card {} of the host, each by a macvlan", wire.interface),
    })
}

fn between(study: &Study) -> Boxed {
    let lines = std::iter::once("as it was before the run".to_owned()).chain(wire(study)).collect();
    Boxed { title: "Network between the machines".to_owned(), lines, beside: false }
}

fn link(study: &Study) -> Boxed {
    let lab = &study.lab;
    let rate = lab.link_rate.map_or_else(|| "no bound of its rate".to_owned(), |rate| format!("{rate} each way"));
    let offloads = if lab.offloads { "offloads on" } else { "offloads off" };
    let bridge = (lab.attach() == Attach::Bridge).then(|| "a bridge in a network namespace".to_owned());
    let settings = format!("MTU {} B, {offloads}, {rate}", lab.mtu);
    let lines = bridge.into_iter().chain([settings]).chain(wire(study)).collect();
    Boxed { title: "Network of the lab".to_owned(), lines, beside: false }
}

/// The arms by how their guests are attached, or by their platform where that is not known; in the order of the study.
fn arms<'a>(study: &'a Study, layout: &Layout) -> Vec<Vec<&'a Arm>> {
    let mut groups: Vec<Vec<&Arm>> = Vec::new();
    for arm in &study.arms {
        let alike = |other: &Arm| match layout.attachment(&arm.id) {
            None => other.platform == arm.platform,
            own => layout.attachment(&other.id) == own,
        };
        match groups.iter_mut().find(|group| alike(group[0])) {
            Some(group) => group.push(arm),
            None => groups.push(vec![arm]),
        }
    }
    groups
}

/// What holds of the guests of every arm.
fn each(cases: &[&Case], works: &Works<'_>, findings: &Findings) -> Vec<String> {
    let case = cases[0];
    let many = match &case.load {
        CaseLoad::Density { spec, .. } => format!("1 to {} guests", spec.most_guests()),
        load => plural(u64::from(load.guests().count.max(1)), "guest", "guests"),
    };
    let guests = format!("each arm: {many} of {}, {}", size(&case.guest), on(&findings.plan.cpus.guests));
    let workloads = each_once(cases, |case| case.workload.clone()).join(", ");
    let work = match case.instances {
        0 | 1 => format!("each guest: workload {workloads}"),
        n => format!("each guest: {n} instances of workload {workloads}"),
    };
    let busy = case.busy_target.then(|| "a busy loop on each CPU".to_owned());
    let work = std::iter::once(work).chain(works.in_guest()).chain(busy).collect::<Vec<_>>();
    vec![guests, work.join("; ")]
}

fn guest(arms: &[&Arm], layout: &Layout, works: &Works<'_>) -> Boxed {
    let own = arms.iter().filter(|arm| arm.replica_of.is_none());
    let labels: Vec<&str> = own.map(|arm| arm.label.as_str()).collect();
    let mut lines = layout.attachment(&arms[0].id).map(|attachment| works.paths(attachment)).unwrap_or_default();
    let again = arms.iter().filter_map(|arm| arms.iter().find(|own| Some(&own.id) == arm.replica_of.as_ref()));
    lines.extend(again.map(|arm| match labels.len() {
        1 => "twice, to measure the noise floor".to_owned(),
        _ => format!("{} twice, to measure the noise floor", arm.label),
    }));
    Boxed { title: labels.join(", "), lines, beside: false }
}

fn neighbours(case: &Case) -> Option<Boxed> {
    let neighbours = case.neighbours?;
    let each = format!("each {}, with a busy loop on each CPU", size(&neighbours.guest));
    let title = plural(u64::from(neighbours.count), "busy neighbour", "busy neighbours");
    Some(Boxed { title, lines: vec!["of the arm's own platform".to_owned(), each], beside: true })
}

/// Where something runs.
fn on(cpus: &[u32]) -> String {
    match cpus {
        [] => "on any CPU of the host".to_owned(),
        [one] => format!("on CPU {one} of the host"),
        several => format!("on CPUs {} of the host", words::cpus(several)),
    }
}

fn size(guest: &GuestSize) -> String {
    format!("{} and {}", plural(u64::from(guest.cpus), "CPU", "CPUs"), guest.memory)
}
