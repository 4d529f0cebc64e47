//! Whether a trial left the host as it found it.

use tare_lab::Resource;

use crate::ledger::Book;

/// What is still there of a trial although nothing of it should be, in words; `None` when the host is
/// clean. Both are asked: the list of what was made, and the host itself.
pub fn left_behind(run_id: &str, book: &Book) -> Option<String> {
    left_of_try(run_id, book, &[])
}

/// The same of one try of a trial that goes on: what was there `around` it stays.
pub fn left_of_try(run_id: &str, book: &Book, around: &[Resource]) -> Option<String> {
    let held = book.held();
    // What is on a machine that is lost is not on this host; the end of the run tries it again, and says so.
    let ours = held.iter().filter(|own| !own.is_lost() && !around.contains(own));
    let mut left: Vec<String> = ours.map(ToString::to_string).collect();
    match tare_lab::left_by_guests(run_id) {
        Ok(found) => left.extend(found),
        Err(error) => left.push(format!("what guests left is unknown: {error}")),
    }
    (!left.is_empty()).then(|| left.join("; "))
}
