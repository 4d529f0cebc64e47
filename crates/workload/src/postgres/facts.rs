//! What a running server tells of itself, as facts of a trial, and how a report shows them.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::fact;
use tare_model::findings::section::{Cell, Column, Table};
use tare_model::findings::{ArmAccount, CaseFindings};
use tare_model::sql::SqlRows;
use tare_model::trial::Flag;

use super::settings::unsafe_flags;

/// Its version, whole.
pub(crate) const VERSION: &str = "PostgreSQL";
/// How long the checkpoint before the trial took.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// What stands before the name of a setting.
const SETTING: &str = "PostgreSQL ";
/// Settings that name addresses and folders of one guest: they differ everywhere and tell nothing of the server's work.
const PLACES: [&str; 5] = ["listen_addresses", "data_directory", "config_file", "hba_file", "ident_file"];

/// Adds version and settings to the facts, and what is unsafe in them to the flags. `rows`: the answers to `SELECT version()` and to
/// [`SETTINGS`](super::server::SETTINGS).
pub(crate) fn describe(rows: &[SqlRows], facts: &mut BTreeMap<String, String>, flags: &mut Vec<Flag>) {
    let of = |at: usize| rows.get(at).map(|rows| rows.rows.as_slice()).unwrap_or_default();
    let cell = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten();
    let settings: Vec<(String, String)> = of(1).iter().filter_map(|row| Some((cell(row, 0)?, cell(row, 1)?))).collect();
    flags.extend(unsafe_flags(&settings));
    facts.insert(VERSION.to_owned(), of(0).first().and_then(|row| cell(row, 0)).unwrap_or_default());
    facts.extend(settings.into_iter().map(|(name, value)| (format!("{SETTING}{name}"), value)));
}

/// A line an arm: these facts, each with the head of its column, as far as any arm has them, and the settings in which arms differ.
pub(crate) fn table(found: &CaseFindings, facts: &[(&str, &str)], about: &str) -> Option<Table> {
    let names: BTreeSet<&str> =
        found.accounts.iter().flat_map(|own| own.facts.keys()).map(|name| fact::plain(name).0).collect();
    let mut columns: Vec<(&str, &str)> = facts.iter().filter(|(name, _)| names.contains(name)).copied().collect();
    let settings = names.iter().filter_map(|name| Some((*name, name.strip_prefix(SETTING)?)));
    columns.extend(settings.filter(|(name, setting)| {
        let mut cells = found.accounts.iter().map(|own| cell(own, name));
        let first = cells.next();
        !PLACES.contains(setting) && cells.any(|cell| Some(&cell) != first.as_ref())
    }));
    if columns.is_empty() {
        return None;
    }
    let caption = format!(
        "{about} First completed trial of each arm; values of other guests follow where they differ from the first guest\u{2019}s. Other \
         settings of the server are in the disclosure."
    );
    let heads = columns.iter().map(|(_, title)| Column::text(*title));
    let mut table = Table::new(caption, std::iter::once(Column::text("Arm")).chain(heads).collect());
    for own in &found.accounts {
        let cells = columns.iter().map(|(name, _)| cell(own, name));
        table.rows.push(std::iter::once(Cell::arm(&own.arm)).chain(cells).collect());
    }
    table.filled()
}

/// A fact on one arm: the first guest's, and beside it those of other guests that differ.
fn cell(account: &ArmAccount, name: &str) -> Cell {
    let short = |value: &String| if name == VERSION { number(value) } else { value.clone() };
    let others = account.facts.iter().filter_map(|(own, value)| match fact::plain(own) {
        (plain, Some(guest)) if plain == name => Some(fact::of_guest(guest, &short(value))),
        _ => None,
    });
    let others: Vec<String> = others.collect();
    let first = account.facts.get(name).map(short);
    match first {
        None if others.is_empty() => Cell::count(None),
        first => Cell::text(first.unwrap_or_default()).noted(others.join("; ")),
    }
}

/// `18.6` of `PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by ..`, which the disclosure has whole.
fn number(version: &str) -> String {
    let number = version.strip_prefix(SETTING).and_then(|rest| rest.split_whitespace().next());
    number.unwrap_or(version).to_owned()
}
