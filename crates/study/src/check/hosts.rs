//! `[hosts]`: the machines that take part beside the host that tare is started on; `[roles]`: who does what.

use std::net::IpAddr;

use tare_model::density::metric;
use tare_model::study::{Arm, Case, Host, LOCAL, LabSpec, Roles, Wire};

use super::{Context, listed, schema_of};
use crate::file;
use crate::language::shape::{Own, Shape};
use crate::language::table::Field;
use crate::language::tree::Cursor;
use crate::suggest;

/// The machines beside the host that tare is started on.
pub(super) fn hosts(field: &Field<'_, Vec<Field<'_, ()>>>, context: &Context<'_>) -> Vec<Host> {
    field.value.iter().flatten().filter_map(|item| host(item, context)).collect()
}

/// A table with one key: the platform that leads to the machine.
fn host(item: &Cursor<'_>, context: &Context<'_>) -> Option<Host> {
    let ways: Vec<&str> = context
        .platforms
        .iter()
        .map(|entry| entry.name.as_str())
        .filter(|name| context.catalog.is_outside(name))
        .collect();
    let help = || match ways.first() {
        Some(way) => format!("write the way to the machine, as `{{ {way} = {{ ... }} }}`"),
        None => "leave it out".to_owned(),
    };
    let id = item.key().to_owned();
    if id == LOCAL {
        let what =
            "is the host that tare is started on, which is always there: guests are on it, and load comes from it";
        item.wrong_key(what, "leave it out, and write \"local\" where a role is to be on that host");
        return None;
    }
    let keys = item.named()?;
    let [way] = keys.as_slice() else {
        let what = format!("has {} keys; one is expected, the platform that leads to the machine", keys.len());
        item.wrong(&what, help());
        return None;
    };
    let platform = way.key();
    if !listed(way, platform, "platform", &context.platforms) {
        return None;
    }
    if !context.catalog.is_outside(platform) {
        way.wrong_key("is a platform of guests inside this host, and leads to no other machine", help());
        return None;
    }
    let options = Own::read(way)?;
    match context.catalog.check_platform(platform, &options) {
        Ok(options) => Some(Host { id, platform: platform.to_owned(), options }),
        Err(error) => {
            way.foreign(&[], error, schema_of(platform, &context.platforms));
            None
        }
    }
}

/// Who does what.
pub(super) fn roles(
    file: &file::Study<'_>,
    hosts: &[Host],
    context: &Context<'_>,
    (arms, lab): (&[Arm], &LabSpec),
) -> Roles {
    let table = file.roles.value.as_ref();
    let written = table.and_then(|roles| roles.drivers.value.as_deref()).unwrap_or_default();
    let mut drivers: Vec<String> = Vec::new();
    let known = || std::iter::once(LOCAL).chain(file.hosts.value.iter().flatten().map(|host| host.key()));
    let serving = table.map(|roles| &roles.services).filter(|services| services.value.is_some());
    for field in written {
        let Some(id) = field.value else { continue };
        if !known().any(|host| host == id) {
            field.wrong(&format!("names the host `{id}`, which is not there"), suggest::help(id, "hosts", known()));
        } else if drivers.iter().any(|other| other == id) {
            field.wrong(
                &format!("names `{id}` a second time"),
                "name each host once; `drivers` of a case says how many drivers there are",
            );
        } else if id == LOCAL
            || (hosts.iter().any(|host| host.id == id)
                && (lab.wire.is_some() || reaches(field, "write `drivers = [\"local\"]`", context, arms)))
        {
            // One that is wrong is reported where it stands.
            drivers.push(id.to_owned());
        }
    }
    let idle = file.hosts.value.iter().flatten().filter(|host| host.key() != LOCAL);
    let named = |id: &str| written.iter().chain(serving).any(|field| field.value == Some(id));
    for host in idle.filter(|host| !named(host.key())) {
        let help = "name it in `[roles]`, such as `drivers = [\"NAME\"]`, or leave it out";
        host.wrong_key("has no role, so it would take no part", help);
    }
    let services = serving.and_then(|field| {
        let id = field.value?;
        if known().any(|host| host == id) {
            return serves(id, field, hosts, context, (arms, lab)).then(|| id.to_owned());
        }
        field.wrong(&format!("names the host `{id}`, which is not there"), suggest::help(id, "hosts", known()));
        None
    });
    let drivers = if drivers.is_empty() { Roles::default().drivers } else { drivers };
    Roles { drivers, services }
}

/// Whether guests of all arms reach a host that serves them.
fn serves(
    id: &str,
    field: &Cursor<'_>,
    hosts: &[Host],
    context: &Context<'_>,
    (arms, lab): (&[Arm], &LabSpec),
) -> bool {
    let outside = |arm: &&Arm| context.catalog.reaches_outside(&arm.platform, &arm.options);
    if id == LOCAL {
        let outside = arms.iter().find(outside);
        if let Some(arm) = outside {
            let what = format!("is this host, and no address is known at which the machine of `{}` finds it", arm.id);
            field.wrong(&what, "name a host of `[hosts]` that this machine reaches");
        }
        return outside.is_none();
    }
    // One that is wrong is reported where it stands.
    let Some(host) = hosts.iter().find(|host| host.id == id) else { return false };
    match &lab.wire {
        None => reaches(field, "leave `services` out", context, arms),
        Some(wire) => arms.iter().all(|arm| outside(&arm)) || is_on(wire, field, host, context),
    }
}

/// Whether the options of a host say where it is on the wire, which is the only network of guests there.
fn is_on(wire: &Wire, field: &Cursor<'_>, host: &Host, context: &Context<'_>) -> bool {
    let Some(range) = wire.addresses else { return true };
    let (what, help) = match context.catalog.machine_address(&host.platform, &host.options) {
        None => (
            format!("names `{}`, which has no address on the wire", host.id),
            "write its address there into its table in `[hosts]`",
        ),
        Some(IpAddr::V4(address)) if range.has(address) => (
            format!("names `{}`, which has the address {address}, and that is one of the lab's own", host.id),
            "leave it out of `addresses` of `[lab] wire`",
        ),
        Some(IpAddr::V4(address)) if range.shares_network_with(address) => return true,
        Some(address) => (
            format!("names `{}`, whose address {address} is not in the network of the wire ({range})", host.id),
            "write its address there into its table in `[hosts]`: guests have no way to other networks",
        ),
    };
    field.wrong(&what, help);
    false
}

/// Whether all arms can be reached: a machine elsewhere cannot send a packet into the lab. `local`: how to do without such a machine.
fn reaches(item: &Cursor<'_>, local: &str, context: &Context<'_>, arms: &[Arm]) -> bool {
    let inside: Vec<String> = arms
        .iter()
        .filter(|arm| !arm.platform.is_empty() && !context.catalog.reaches_outside(&arm.platform, &arm.options))
        .map(|arm| format!("`{}`", arm.id))
        .collect();
    if !inside.is_empty() {
        let what = format!(
            "is a machine of its own and cannot reach {}: their network is inside this host and has no way out",
            inside.join(", ")
        );
        let others =
            "compare only arms that are machines of their own, or put the lab on a card of this host by `[lab] wire`";
        item.wrong(&what, format!("{local}, {others}"));
    }
    inside.is_empty()
}

/// What exists already is there in the numbers in which it exists.
pub(super) fn in_numbers(context: &Context<'_>, arms: &[Arm], cases: &[Case]) {
    let machines = |arm: &Arm| context.catalog.machines(&arm.platform, &arm.options);
    let outside = || arms.iter().filter(|arm| context.catalog.reaches_outside(&arm.platform, &arm.options));
    // What has a network card or a machine of this host has no next one.
    let single = outside().find(|arm| machines(arm).is_none());
    // What holds for the one with the fewest holds for all.
    let Some(arm) = outside().min_by_key(|arm| machines(arm).unwrap_or(u32::MAX)) else { return };
    let there = machines(arm).unwrap_or(u32::MAX);
    for case in cases {
        let refuse = |key: &str, asks: &str, help: &str| {
            let what = format!("asks for {asks}, and the arm `{}` is a machine that tare does not make", arm.id);
            context.case(case).get(key).wrong(&what, help);
        };
        if let Some(single) = single.filter(|_| case.load.is_density()) {
            let what = format!(
                "adds guests one by one, and the guest of `{}` is the one that has what its options name",
                single.id
            );
            let help = "measure one guest, or leave the arm out; such arms go into a study of their own";
            context.case(case).get("density").wrong(&what, help);
        }
        if case.made > 0 {
            let help = "leave the arm out; such arms go into a study of their own";
            refuse("workload", &format!("`{}`, which makes guests", case.workload), help);
        }
        for asked in case
            .qos
            .iter()
            .filter(|asked| case.load.is_density() && metric::OF_THE_HOST.contains(&asked.metric.as_str()))
        {
            let what = format!(
                "is about the host under the guests, which is not seen where they are machines elsewhere, as those of `{}`",
                arm.id
            );
            let help = "ask for what drivers see, such as `response_time_p99_s`, or leave the arm out";
            context.case(case).get("qos").get(&asked.metric).wrong(&what, help);
        }
        if context.catalog.traits(&case.into()).services() {
            let what =
                format!("`{}`, which takes a database or the like beside the guest, on this host", case.workload);
            let help = "leave the arm out: its machine cannot reach the lab's network, in which that would be";
            refuse("workload", &what, help);
        }
        let (guests, beside) = (case.load.most_guests(), case.neighbours.map_or(0, |neighbours| neighbours.count));
        if guests.saturating_add(beside) > there {
            let help =
                "name more machines for the arm, or ask for fewer guests; such arms may go into a study of their own";
            let what = format!("{} guests at one time, of which the arm has {there}", guests + beside);
            let key = match beside {
                0 if case.load.is_density() => "density",
                0 => "guests",
                _ => "neighbours",
            };
            refuse(key, &what, help);
        }
    }
}
