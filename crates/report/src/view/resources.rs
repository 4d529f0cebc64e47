//! What was used of host and guest: the published tables of CPU, memory, disk and network, an arm a column.

use tare_model::findings::{ArmResources, CaseFindings, Findings};
use tare_model::metric::Unit;

use super::capacity::{load_text, noun};
use super::table::{Cell, Table};
use crate::format;
use crate::plot::arms::Arms;
use crate::words;

/// The names of the shares of CPU time, in the order of the findings.
const KINDS: [&str; 4] = ["user", "system", "idle", "waiting for disks"];

/// One figure of an arm, where it was seen.
type Of<'a> = &'a dyn Fn(&ArmResources) -> Option<String>;

/// The table; `None` where nothing was seen.
pub(super) fn table(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Table> {
    let noun = words::sentence_case(noun(case, findings));
    let shown = arms.having(|id| case.resources.iter().find(|own| own.arm == id));
    let caption = if findings.plan.study.published.is_some() {
        "Resources used at this load, as far as published."
    } else {
        "Resources used at this load: means over the completed trials. CPU: that of the system under test. As the \
         guest sees it: counted by the guest\u{2019}s kernel, which is the host\u{2019}s in a container."
    };
    let mut table = Table::by_arm(caption, "Resource", shown.iter().map(|(_, look)| look));
    let mut row = |name: &str, note: &str, of: Of<'_>| {
        let cells: Vec<Option<String>> = shown.iter().map(|(own, _)| of(own)).collect();
        // A row that nobody has a figure for tells nothing.
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|text| text.map_or_else(Cell::none, Cell::text));
            table.rows.push(std::iter::once(Cell::with_note(name, note)).chain(cells).collect());
        }
    };
    row(&noun, "", &|own| (own.load > 0.0).then(|| load_text(own.load)));
    row("Mean response time", "", &|own| Some(format::value(own.response_s?, &Unit::Seconds)));
    row("CPU of the system under test", "host\u{2019}s own work included", &|own| cores(own.host_cpu_cores));
    row("of which the guest, user", "as the host accounts it", &|own| cores(Some(own.guest_cpu_cores?.0)));
    row("of which the guest, system", "as the host accounts it", &|own| cores(Some(own.guest_cpu_cores?.1)));
    // A row a kind: four shares in one cell would make the columns of many arms wider than a page.
    for (at, kind) in KINDS.iter().enumerate() {
        row(&format!("Host CPU, {kind}"), "", &|own| Some(percent(own.host_cpu_shares?[at])));
    }
    for (at, kind) in KINDS.iter().enumerate() {
        row(&format!("CPU as the guest sees it, {kind}"), "", &|own| Some(percent(own.inside_cpu_shares?[at])));
    }
    row("Memory of the guest", "largest, as the host sees it", &|own| Some(bytes(own.memory_bytes?)));
    row("Swapped by the host", "in / out", &|own| {
        own.swapped_bytes.map(|(to, from)| format!("{} / {}", bytes(to), bytes(from)))
    });
    row("Disk, mean time of a request", "", &|own| Some(format::value(own.disk_s?, &Unit::Seconds)));
    row("Network, sent by the guest", "", &|own| Some(format::value(own.network_bits_per_s?, &Unit::BitsPerSecond)));
    // The load alone is in every other table.
    (table.rows.len() > 1).then_some(table)
}

fn cores(cores: Option<f64>) -> Option<String> {
    Some(format!("{} cores", format::fixed(cores?, 2)))
}

fn percent(share: f64) -> String {
    format!("{} %", format::fixed(share * 100.0, 1))
}

fn bytes(bytes: f64) -> String {
    if bytes == 0.0 { "0 B".to_owned() } else { format::value(bytes, &Unit::Bytes) }
}
