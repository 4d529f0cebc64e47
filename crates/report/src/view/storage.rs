//! What the data of each arm lie on, how they got there, and which server works on them.

use std::collections::BTreeSet;

use tare_model::findings::{ArmAccount, CaseFindings};

use super::table::{Cell, Column, Table};
use crate::plot::arms::{ArmLook, Arms};

/// Facts of the storage and the server in the order in which they are shown, each with the head of its column.
const FACTS: [(&str, &str); 9] = [
    ("data on", "Data on"),
    ("data restored by", "Restored by"),
    ("data restored in", "Restored in"),
    ("data loaded in", "Loaded in"),
    ("PostgreSQL", "PostgreSQL"),
    ("PostgreSQL version", "PostgreSQL"),
    ("server started in", "Server started in"),
    ("checkpoint", "CHECKPOINT in"),
    ("server killed and recovered in", "Killed on purpose, recovered in"),
];

/// What the processes of the server did, a sentence that is too long for a column among others.
const PROCESSES: &str = "server: what its clients' processes did";

/// What the name of a fact about the database server's settings begins with.
const SETTING: &str = "PostgreSQL ";

/// Settings that name addresses and folders of one guest: they differ everywhere and tell nothing of the server's work.
const PLACES: [&str; 5] = ["listen_addresses", "data_directory", "config_file", "hba_file", "ident_file"];

/// The name of a fact without the guest that it is about, and that guest's number: `guest 2: data on`.
pub(super) fn plain(name: &str) -> (&str, Option<u32>) {
    let parts = name.strip_prefix("guest ").and_then(|rest| rest.split_once(": "));
    match parts.and_then(|(number, plain)| Some((plain, number.parse().ok()?))) {
        Some((plain, number)) => (plain, Some(number)),
        None => (name, None),
    }
}

/// The arms of a case that have facts, and the guests that have some of their own.
struct Shown<'a> {
    arms: Vec<(&'a ArmLook, &'a ArmAccount)>,
    others: BTreeSet<u32>,
}

impl<'a> Shown<'a> {
    fn new(case: &'a CaseFindings, arms: &'a Arms) -> Self {
        let of = |arm: &ArmLook| case.accounts.iter().find(|account| account.arm == arm.id);
        let arms: Vec<_> = arms.iter().filter_map(|arm| Some((arm, of(arm)?))).collect();
        let names = arms.iter().flat_map(|(_, account)| account.facts.keys());
        let others = names.filter_map(|name| plain(name).1).collect();
        Self { arms, others }
    }

    /// The facts that any arm has, of whichever guest.
    fn names(&self) -> BTreeSet<&'a str> {
        self.arms.iter().flat_map(|(_, account)| account.facts.keys()).map(|name| plain(name).0).collect()
    }

    /// A fact on one arm: what the first guest said, and under it what others said, where that is something else.
    fn cell(&self, account: &ArmAccount, name: &str) -> Cell {
        let short = |text: &String| match name {
            "PostgreSQL" | "PostgreSQL version" => version(text),
            _ => text.clone(),
        };
        let other = |guest: &u32| {
            let value = short(account.facts.get(&format!("guest {guest}: {name}"))?);
            Some(format!("guest {guest}: {value}"))
        };
        let others: Vec<String> = self.others.iter().filter_map(other).collect();
        match account.facts.get(name) {
            None if others.is_empty() => Cell::none(),
            first => Cell::with_note(first.map_or_else(String::new, short), others.join("; ")),
        }
    }

    fn table(&self, caption: String, columns: &[(&str, &str)], arms: &Arms) -> Option<Table> {
        let heads = columns.iter().map(|(_, title)| Column::text(title));
        let mut table = Table::new(caption, std::iter::once(Column::text("Arm")).chain(heads).collect());
        if columns.is_empty() {
            return None;
        }
        for (arm, account) in &self.arms {
            let name = Cell { key: arms.key(&arm.id), ..Cell::text(&arm.label) };
            let cells = columns.iter().map(|(name, _)| self.cell(account, name));
            table.rows.push(std::iter::once(name).chain(cells).collect());
        }
        table.filled()
    }
}

/// `18.6` of `PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by ..`, which the disclosure has whole.
fn version(text: &str) -> String {
    let number = text.strip_prefix(SETTING).and_then(|rest| rest.split_whitespace().next());
    number.unwrap_or(text).to_owned()
}

/// Where the data lie, how they got there and how long that and the server's start took, a line an arm, with the settings
/// in which arms differ; `None` where no arm said anything of the kind.
pub(crate) fn table(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let shown = Shown::new(case, arms);
    let names = shown.names();
    let mut columns: Vec<(&str, &str)> = FACTS.into_iter().filter(|(name, _)| names.contains(name)).collect();
    let settings = names.iter().filter_map(|name| Some((*name, name.strip_prefix(SETTING)?)));
    columns.extend(settings.filter(|(name, setting)| {
        let known = FACTS.iter().any(|(fact, _)| fact == name) || PLACES.contains(setting);
        let mut cells = shown.arms.iter().map(|(_, account)| shown.cell(account, name));
        let first = cells.next();
        !known && cells.any(|cell| Some(&cell) != first.as_ref())
    }));
    let put_back = if names.contains("data restored by") {
        " Before every trial the data of each guest are restored to their state at the start of the run, and the \
         server is restarted. Neither is part of the measured time."
    } else {
        ""
    };
    let others = if shown.others.is_empty() {
        ""
    } else {
        " Values are those of the first guest; those of other guests follow where they differ."
    };
    let caption = format!(
        "Data and server on each arm, first completed trial.{put_back}{others} Other settings of the server are in the \
         disclosure."
    );
    shown.table(caption, &columns, arms)
}

/// Least share, in percent, that a state must have on some arm to be shown.
const SHARE_MIN: f64 = 1.0;

/// What the processes that serve clients did, a line a state, a column an arm.
pub(crate) fn processes(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let of = |arm: &ArmLook| case.accounts.iter().find(|account| account.arm == arm.id)?.facts.get(PROCESSES);
    let shown: Vec<(&ArmLook, Vec<(f64, &str)>)> =
        arms.iter().filter_map(|arm| Some((arm, shares(of(arm)?)))).collect();
    let mut states: Vec<&str> = Vec::new();
    for (share, state) in shown.iter().flat_map(|(_, shares)| shares) {
        if *share >= SHARE_MIN && !states.contains(state) {
            states.push(state);
        }
    }
    let caption = "States of the server\u{2019}s client processes under load, in percent of samples of the first guest \
                   in the first completed trial. States under 1 % on every arm are left out. LWLock, Lock and IO are \
                   PostgreSQL\u{2019}s names for what a process waits for.";
    let heads = shown.iter().map(|(arm, _)| Column { key: arms.key(&arm.id), ..Column::numeric(&arm.label) });
    let mut table = Table::new(caption, std::iter::once(Column::text("State")).chain(heads).collect());
    for state in states {
        let cell = |(_, shares): &(&ArmLook, Vec<(f64, &str)>)| {
            let found = shares.iter().find(|(_, own)| *own == state);
            Cell::text(found.map_or_else(|| "0".to_owned(), |(share, _)| format!("{share:.1}")))
        };
        table.rows.push(std::iter::once(Cell::text(state)).chain(shown.iter().map(cell)).collect());
    }
    table.filled()
}

/// The shares of a text such as `80.1 % running, or ready to, 4.3 % IO WalSync`, in percent, each with its state.
fn shares(text: &str) -> Vec<(f64, &str)> {
    let mut shares: Vec<(f64, &str)> = Vec::new();
    let mut rest = text;
    while let Some((number, after)) = rest.split_once(" % ") {
        let Ok(share) = number.parse() else { break };
        // A state ends where the next number begins, for it may hold a comma itself.
        let ends = after.match_indices(", ").map(|(at, _)| at);
        let end = ends.into_iter().find(|at| after[at + 2..].starts_with(|c: char| c.is_ascii_digit()));
        let state = &after[..end.unwrap_or(after.len())];
        shares.push((share, state));
        rest = end.map_or("", |end| &after[end + 2..]);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_from_the_text_and_a_state_may_hold_a_comma() {
        let text = "56.1 % running, or ready to, 34.9 % waiting for the client's next statement, 0.2 % IO WalSync";
        let expected =
            [(56.1, "running, or ready to"), (34.9, "waiting for the client's next statement"), (0.2, "IO WalSync")];
        assert_eq!(shares(text), expected);
        assert_eq!(shares("nothing of the kind"), []);
    }

    #[test]
    fn numbers_of_guests_and_versions_are_separated_from_the_rest() {
        assert_eq!(plain("guest 12: data on"), ("data on", Some(12)));
        assert_eq!(plain("guest clock"), ("guest clock", None));
        assert_eq!(version("PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc"), "18.6");
        assert_eq!(version("15.14"), "15.14");
    }
}
