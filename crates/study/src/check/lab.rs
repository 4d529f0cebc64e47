//! `[lab]`.

use tare_model::study::{LabSpec, Placement};
use tare_model::units::Span;

use super::size;
use crate::cpus;
use crate::fields;
use crate::tree::{Cursor, Table};

/// Least MTU: what every IPv4 host has to take (RFC 791, section 3.1).
const MIN_MTU: u32 = 576;
/// Most: the total length of an IPv4 packet is 16 bits.
const MAX_MTU: u32 = 65_535;
/// Shortest sample interval: below it the probes are part of the load.
const MIN_SAMPLE: Span = Span::from_millis(10);
/// Longest: a trial without samples says nothing about what disturbed it.
const MAX_SAMPLE: Span = Span::from_secs(60);
/// Longest name of a congestion control (TCP_CA_NAME_MAX of the kernel, less its NUL).
const MAX_ALGORITHM: usize = 15;

const DEFAULT: LabSpec = LabSpec {
    mtu: 1500,
    offloads: true,
    congestion_control: None,
    placement: Placement::Separate,
    sample_interval: Span::from_millis(200),
};

/// The lab, with its defaults.
pub(super) fn lab(study: &Table<'_>) -> LabSpec {
    let Some(table) = study.get("lab").and_then(|cursor| cursor.table(fields::LAB)) else { return DEFAULT };
    LabSpec {
        mtu: table.get("mtu").and_then(|c| c.integer32(MIN_MTU..=MAX_MTU)).unwrap_or(DEFAULT.mtu),
        offloads: table.get("offloads").and_then(|c| c.boolean()).unwrap_or(DEFAULT.offloads),
        congestion_control: table.get("congestion-control").and_then(|c| algorithm(&c)),
        placement: table.get("placement").and_then(|c| placement(&c)).unwrap_or(DEFAULT.placement),
        sample_interval: table.get("sample-interval").and_then(|c| interval(&c)).unwrap_or(DEFAULT.sample_interval),
    }
}

fn algorithm(cursor: &Cursor<'_>) -> Option<String> {
    let name = cursor.text()?;
    let fits = name.len() <= MAX_ALGORITHM && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'));
    if !fits {
        let help = "write it as in /proc/sys/net/ipv4/tcp_available_congestion_control, such as \"cubic\"";
        cursor.wrong(&format!("is {name:?}, which is no name of a TCP congestion control"), help);
    }
    fits.then(|| name.to_owned())
}

fn interval(cursor: &Cursor<'_>) -> Option<Span> {
    let interval: Span = size::span(cursor)?;
    if !(MIN_SAMPLE..=MAX_SAMPLE).contains(&interval) {
        let what = format!("is {interval}; it must be from {MIN_SAMPLE} to {MAX_SAMPLE}");
        cursor.wrong(&what, "\"200ms\" shows what disturbs a trial without disturbing it");
    }
    Some(interval)
}

fn placement(cursor: &Cursor<'_>) -> Option<Placement> {
    if !cursor.is_table() {
        let words = [("separate", 0), ("same-cpu", 1), ("unpinned", 2)];
        return cursor.choice(&words).map(|choice| match choice {
            0 => Placement::Separate,
            1 => Placement::SameCpu,
            _ => Placement::Unpinned,
        });
    }
    let table = cursor.table(fields::PLACEMENT)?;
    let client = table.require("client-cpus").and_then(|c| cpu_list(&c));
    let guests = table.require("guest-cpus").and_then(|c| cpu_list(&c));
    let (client_cpus, guest_cpus) = client.zip(guests)?;
    let shared: Vec<u32> = client_cpus.iter().copied().filter(|cpu| guest_cpus.contains(cpu)).collect();
    if !shared.is_empty() {
        let what = format!("gives CPU {} to the driver and to the guests", cpus::list(&shared));
        cursor.wrong(&what, "give each CPU to one side; to share one on purpose write `placement = \"same-cpu\"`");
    }
    Some(Placement::Explicit { client_cpus, guest_cpus })
}

fn cpu_list(cursor: &Cursor<'_>) -> Option<Vec<u32>> {
    let text = cursor.text()?;
    let parsed = cpus::parse(text);
    if parsed.is_none() {
        cursor.wrong(&format!("is {text:?}, which is no list of CPUs"), "write numbers and ranges, such as \"0,2-3\"");
    }
    parsed
}
