//! `[hosts]`: where the guests are and where load comes from.

use tare_model::study::{Arm, Case, CaseLoad, ClientHost};

use super::{Context, listed, schema_of};
use crate::file;
use crate::language::shape::{Own, Shape};
use crate::language::table::Field;
use crate::language::tree::Cursor;

/// The client, and what it cannot reach.
pub(super) fn client(hosts: &Field<'_, file::Hosts<'_>>, context: &Context<'_>, arms: &[Arm]) -> ClientHost {
    let Some(hosts) = &hosts.value else { return ClientHost::Local };
    sut(&hosts.sut);
    let clients = hosts.clients.value.as_deref().unwrap_or_default();
    let Some(item) = clients.first() else { return ClientHost::Local };
    let client = one(item, context).unwrap_or_default();
    if client.is_local() || reaches(item, context, arms) { client } else { ClientHost::Local }
}

fn sut(field: &Cursor<'_>) {
    let host = if field.is_there() { field.text() } else { None };
    if let Some(host) = host.filter(|&host| host != "local") {
        let what = format!("names the host {host:?}: tare makes guests only on the host it is started on");
        field.wrong(&what, "write \"local\", and start tare on that host; a guest elsewhere is an arm of its own");
    }
}

/// `"local"`, or a table with one key: the platform that leads to the machine.
fn one(item: &Cursor<'_>, context: &Context<'_>) -> Option<ClientHost> {
    let ways: Vec<&str> = context
        .platforms
        .iter()
        .map(|entry| entry.name.as_str())
        .filter(|name| context.catalog.is_outside(name))
        .collect();
    let help = || match ways.first() {
        Some(way) => format!("write \"local\", or a machine as `{{ {way} = {{ ... }} }}`"),
        None => "write \"local\"".to_owned(),
    };
    if !item.is_table() {
        let host = item.text()?;
        if host == "local" {
            return Some(ClientHost::Local);
        }
        item.wrong(&format!("names the host {host:?}, but not the way to it"), help());
        return None;
    }
    let keys = item.named()?;
    let [way] = keys.as_slice() else {
        item.wrong(
            &format!("has {} keys; one is expected, the platform that leads to the machine", keys.len()),
            help(),
        );
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
        Ok(options) => Some(ClientHost::Machine { platform: platform.to_owned(), options }),
        Err(error) => {
            way.foreign(&[], error, schema_of(platform, &context.platforms));
            None
        }
    }
}

/// Whether all arms can be reached: a machine elsewhere cannot send a packet into the lab.
fn reaches(item: &Cursor<'_>, context: &Context<'_>, arms: &[Arm]) -> bool {
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
        item.wrong(&what, "write `clients = [\"local\"]`, or compare only arms that are machines of their own");
    }
    inside.is_empty()
}

/// What exists already is not made in numbers.
pub(super) fn in_numbers(context: &Context<'_>, arms: &[Arm], cases: &[Case]) {
    let outside = arms.iter().find(|arm| context.catalog.reaches_outside(&arm.platform, &arm.options));
    let Some(arm) = outside else { return };
    for case in cases {
        let refuse = |key: &str, asks: &str, help: &str| {
            let what = format!("asks for {asks}, and the arm `{}` is a machine that tare does not make", arm.id);
            context.case(case).get(key).wrong(&what, help);
        };
        if case.neighbours.is_some() {
            let help = "leave the neighbours out, or the arm; such arms go into a study of their own";
            refuse("neighbours", "guests beside the measured one", help);
        }
        if case.load.is_density() {
            let help = "measure one guest, or leave the arm out; such arms go into a study of their own";
            refuse("density", "guests that are added one by one", help);
        }
        if matches!(case.load, CaseLoad::CpuTarget { .. }) {
            let help = "offer a fixed `load`, or leave the arm out; such arms go into a study of their own";
            refuse("cpu-target", "a share of the guests' CPUs as this host counts it", help);
        }
        if context.catalog.traits(&case.into()).services() {
            let what =
                format!("`{}`, which takes a database or the like beside the guest, on this host", case.workload);
            let help = "leave the arm out: its machine cannot reach the lab's network, in which that would be";
            refuse("workload", &what, help);
        }
        let guests = case.load.guests().count;
        if guests > 1 {
            let help = "measure one guest, or leave the arm out; such arms go into a study of their own";
            refuse("guests", &format!("{guests} guests at one time"), help);
        }
    }
}
