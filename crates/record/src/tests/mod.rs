//! Tests of whole folders: what is written is read, what is damaged is told, what a crash leaves is repaired.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ascent;
mod crash;
mod folder;
mod hold;
mod schema;
mod search;
