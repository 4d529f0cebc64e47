//! The machines of a run: this host, and those beside it, each described once by the agent that runs there.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tare_model::environment::{Environment, Machine, Section};
use tare_record::{JournalEvent, RecordError};
use tare_wire::{Link, Reply, Request};

use crate::ledger::Book;
use crate::time_limits::TIMEOUT;

/// Most bytes of a description that are kept, as JSON: those of large servers have some tens of KiB. A line of the journal takes 1 MiB.
const MOST_BYTES: usize = 256 << 10;

/// This host, with the disks that the run folder and what guests write are on.
pub fn this_host(run_id: &str, run_folder: &Path, redact: bool) -> Environment {
    let guests = tare_lab::disk_path(run_id);
    tare_probe::environment::capture(redact, &[("the run folder", run_folder), ("guests' files", &guests)])
}

/// The machines that this part of the run has described.
#[derive(Debug, Default)]
pub struct Machines {
    known: Mutex<BTreeSet<String>>,
}

impl Machines {
    /// Has the agent at the other end of a link describe its machine, unless that was done, and writes it down. Without an answer, the
    /// reason is written down. `beside`: what others say of the machine.
    pub fn describe(
        &self,
        (book, redact): (&Book, bool),
        name: &str,
        link: &Link,
        beside: &[Section],
    ) -> Result<(), RecordError> {
        // Those who come at the same time for another machine wait: it takes some milliseconds, and nothing is measured yet.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.insert(name.to_owned()) {
            return Ok(());
        }
        let answer = match link.call(Request::Describe { redact }, TIMEOUT) {
            Ok(Reply::Described(machine)) => Ok(*machine),
            Ok(_) => Err("its agent answered something else".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let mut machine = answer.and_then(fits).unwrap_or_else(undescribed);
        machine.sections.extend_from_slice(beside);
        book.write(&JournalEvent::MachineDescribed(Machine { name: name.to_owned(), ..machine }))
    }
}

/// The description, unless it is longer than any machine's.
fn fits(machine: Machine) -> Result<Machine, String> {
    match serde_json::to_vec(&machine) {
        Ok(json) if json.len() <= MOST_BYTES => Ok(machine),
        Ok(json) => Err(format!("it has {} bytes, and no machine's has more than {MOST_BYTES}", json.len())),
        Err(error) => Err(error.to_string()),
    }
}

fn undescribed(why: String) -> Machine {
    let facts = vec![("description".to_owned(), format!("not available: {why}"))];
    Machine { sections: vec![Section { title: "Machine".to_owned(), facts }], ..Machine::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_that_is_too_long_is_replaced_by_the_reason() {
        let facts = |count: usize| vec![("f".to_owned(), "x".repeat(1000)); count];
        let machine = |count| Machine {
            sections: vec![Section { title: "CPU".to_owned(), facts: facts(count) }],
            ..Machine::default()
        };
        assert_eq!(fits(machine(10)), Ok(machine(10)));
        let shown = fits(machine(300)).unwrap_or_else(undescribed);
        assert!(shown.sections[0].facts[0].1.contains("no machine's has more than 262144"), "{shown:?}");
    }
}
