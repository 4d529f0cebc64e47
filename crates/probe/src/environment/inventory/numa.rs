//! NUMA nodes.

use tare_model::environment::HardwareTable;

use super::{UNREPORTED, View, gib, none, table};

const PATH: &str = "sys/devices/system/node";

/// The nodes, in order of their numbers.
pub(super) fn nodes(view: &View<'_>) -> HardwareTable {
    const TITLE: &str = "NUMA nodes";
    const COLUMNS: [&str; 4] = ["Node", "CPUs", "Memory", "Distances to nodes"];
    let names = match view.devices(PATH) {
        Ok(names) => names,
        Err(why) => return none(TITLE, &COLUMNS, why),
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    numbers.sort_unstable();
    let mut nodes = table(TITLE, &COLUMNS);
    nodes.rows = numbers.iter().map(|number| row(view, *number)).collect();
    if nodes.rows.is_empty() {
        nodes.notes.push(format!("not available: no node is listed (/{PATH})."));
    }
    nodes
}

fn row(view: &View<'_>, number: u32) -> Vec<String> {
    let node = format!("{PATH}/node{number}");
    // A node of memory alone has an empty list.
    let cpus = match view.text(&format!("{node}/cpulist")) {
        Ok(cpus) if cpus.is_empty() => "none".to_owned(),
        Ok(cpus) => super::fit(&cpus),
        Err(_) => UNREPORTED.to_owned(),
    };
    let memory = view.text(&format!("{node}/meminfo")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.split_once("MemTotal:"))?;
        let kib: u64 = line.1.split_whitespace().next()?.parse().ok()?;
        Some(gib(kib.checked_mul(1024)?))
    });
    let distances = view.cell(&format!("{node}/distance"));
    vec![number.to_string(), cpus, memory.unwrap_or_else(|| UNREPORTED.to_owned()), distances]
}
