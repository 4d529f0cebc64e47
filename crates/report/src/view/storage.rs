//! What the data of each arm lie on, how they got there, and which server works on them.

use tare_model::findings::{ArmAccount, CaseFindings};

use super::table::{Cell, Column, Table};
use crate::plot::arms::{ArmLook, Arms};

/// Facts of the storage and the server in the order in which they are told, with their names for people.
const TOLD: [(&str, &str); 10] = [
    ("data on", "The data lie on"),
    ("data restored by", "How they are put back before a trial"),
    ("data restored in", "How long that takes"),
    ("data loaded in", "How long loading them takes"),
    ("PostgreSQL", "PostgreSQL"),
    ("PostgreSQL version", "PostgreSQL"),
    ("server started in", "Server started in"),
    ("checkpoint", "CHECKPOINT before the load"),
    ("server: what its clients' processes did", "What the server's processes for clients did under load"),
    ("server killed and recovered in", "Server killed on purpose, and recovered in"),
];

/// What the name of a fact about the database server's settings begins with.
const SETTING: &str = "PostgreSQL ";

/// Settings that name addresses and folders of one guest: they differ everywhere and tell nothing of the server's work.
const PLACES: [&str; 5] = ["listen_addresses", "data_directory", "config_file", "hba_file", "ident_file"];

/// The name of a fact without the guest that it is about, and that guest: `guest 2: data on`.
fn plain(name: &str) -> (&str, Option<&str>) {
    match name.split_once(": ") {
        Some((guest, plain)) if guest.starts_with("guest ") => (plain, Some(guest)),
        _ => (name, None),
    }
}

/// Whether a fact is told in the table of the case: what the data lie on and the server is always, a setting where arms differ.
fn rank(name: &str, arms: &[(&ArmLook, &ArmAccount)]) -> Option<usize> {
    let (plain, _) = plain(name);
    let known = TOLD.iter().position(|(own, _)| *own == plain);
    known.or_else(|| {
        let mut values = arms.iter().map(|(_, account)| account.facts.get(name));
        let first = values.next();
        let is_setting = plain.strip_prefix(SETTING).is_some_and(|setting| !PLACES.contains(&setting));
        (is_setting && values.any(|value| Some(value) != first)).then_some(TOLD.len())
    })
}

/// The table; `None` where no arm was given data.
pub(crate) fn table(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let of = |arm: &ArmLook| case.accounts.iter().find(|account| account.arm == arm.id);
    let shown: Vec<(&ArmLook, &ArmAccount)> = arms.iter().filter_map(|arm| Some((arm, of(arm)?))).collect();
    let mut names: Vec<(usize, &String)> = shown
        .iter()
        .flat_map(|(_, account)| account.facts.keys())
        .filter_map(|name| Some((rank(name, &shown)?, name)))
        .collect();
    names.sort_by(|a, b| (a.0, plain(a.1).1, a.1).cmp(&(b.0, plain(b.1).1, b.1)));
    names.dedup();
    let put_back = if names.iter().any(|(_, name)| name.ends_with("data restored by")) {
        " Before every trial the data of each guest are put back as they were when the run began, and the server starts anew."
    } else {
        ""
    };
    let caption = format!(
        "Data and server on each arm, first completed trial.{put_back} What else the server was set to is in the disclosure."
    );
    let head = shown.iter().map(|(arm, _)| Column { key: arms.key(&arm.id), ..Column::text(&arm.label) });
    let mut table = Table::new(caption, std::iter::once(Column::text("What")).chain(head).collect());
    for (rank, name) in names {
        let (plain, guest) = plain(name);
        let title = TOLD.get(rank).map_or(plain, |(_, title)| *title);
        let title = guest.map_or_else(|| title.to_owned(), |guest| format!("{title} ({guest})"));
        let value =
            |(_, account): &(&ArmLook, &ArmAccount)| account.facts.get(name).map_or_else(Cell::none, Cell::text);
        table.rows.push(std::iter::once(Cell::text(title)).chain(shown.iter().map(value)).collect());
    }
    table.filled()
}
