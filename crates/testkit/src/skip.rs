//! Tests that need what a machine does not have.

use std::io::Write;

/// Tells that a test is skipped and why, in the form that `cargo xtask test` counts.
pub fn skipped(reason: &str) {
    // Standard output that cannot be written must not fail the test that skips.
    let _ = writeln!(std::io::stdout(), "SKIPPED: {reason}");
}
