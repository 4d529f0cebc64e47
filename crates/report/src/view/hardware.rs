//! The devices of the host and of the machines beside it.

use tare_model::environment::{HardwareTable, Machine, UNREPORTED};

use super::disclosure::facts;
use super::table::{Cell, Column, Table};

/// A table a kind of device that is there, and one of the kinds that are not listed, with the reason. `of`: whose they are, for the captions;
/// empty: the host's.
pub(super) fn tables(of: &str, hardware: &[HardwareTable]) -> Vec<Table> {
    let (listed, others): (Vec<_>, Vec<_>) = hardware.iter().partition(|table| !table.rows.is_empty());
    let mut tables: Vec<Table> = listed.into_iter().map(|table| devices(of, table)).collect();
    let others: Vec<(String, String)> =
        others.into_iter().map(|table| (table.title.clone(), table.notes.join(" "))).collect();
    if !others.is_empty() {
        tables.push(facts(&titled(of, "Hardware that is not listed"), others));
    }
    tables
}

/// Name and tables of a machine.
pub(super) fn machine(machine: &Machine) -> (String, Vec<Table>) {
    let of = machine.name.as_str();
    let sections = machine.sections.iter().map(|section| facts(&titled(of, &section.title), section.facts.clone()));
    (of.to_owned(), sections.chain(tables(of, &machine.hardware)).collect())
}

fn titled(of: &str, title: &str) -> String {
    if of.is_empty() { title.to_owned() } else { format!("{of}: {title}") }
}

/// The devices. What none of them tells is said in the caption in place of a column.
fn devices(of: &str, hardware: &HardwareTable) -> Table {
    let cell = |row: &Vec<String>, at: usize| row.get(at).map_or(UNREPORTED, String::as_str).to_owned();
    let all = 0..hardware.columns.len();
    let (missing, shown): (Vec<usize>, Vec<usize>) =
        all.partition(|at| *at > 0 && hardware.rows.iter().all(|row| cell(row, *at) == UNREPORTED));
    let mut said = hardware.notes.clone();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|at| hardware.columns[*at].as_str()).collect();
        said.push(format!("Not reported by any: {}.", names.join(", ")));
    }
    let title = titled(of, &hardware.title);
    let caption = if said.is_empty() { title } else { format!("{title}. {}", said.join(" ")) };
    let columns = shown.iter().map(|at| Column::text(&hardware.columns[*at])).collect();
    let mut table = Table::new(caption, columns);
    let row = |row: &Vec<String>| shown.iter().map(|at| Cell::text(cell(row, *at))).collect();
    table.rows = hardware.rows.iter().map(row).collect();
    table
}
