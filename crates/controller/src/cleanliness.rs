//! Whether a trial left the host as it found it.

use crate::ledger::Book;

/// What is still there of a trial although nothing of it should be, in words; `None` when the host is
/// clean. Both are asked: the list of what was made, and the host itself.
pub fn left_behind(run_id: &str, book: &Book) -> Option<String> {
    let mut left: Vec<String> = book.held().iter().map(ToString::to_string).collect();
    match tare_lab::left_by_guests(run_id) {
        Ok(found) => left.extend(found),
        Err(error) => left.push(format!("it cannot be told: {error}")),
    }
    (!left.is_empty()).then(|| left.join("; "))
}
