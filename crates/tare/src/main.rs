//! The command line: arguments, progress, exit codes.
fn main() {}
