//! Repository chores written in Rust.
fn main() {}
