//! Tests that need what a machine does not have.

/// Tells that a test is skipped and why, in the form that `cargo xtask test` counts.
#[expect(clippy::print_stdout, reason = "the test harness takes what is printed, and nothing else, for the test's own")]
pub fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
}
