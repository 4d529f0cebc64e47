//! Filling databases of PostgreSQL: rows that follow from their numbers, over several connections side by side.
//!
//! What is common to all databases that are filled here: who is let in ([`server`]), how rows are sent ([`rows`]), how tables are cut
//! and who does what ([`work`], [`crew`]), what rows are drawn from ([`draw`]) and how they are written ([`copy`]).

pub mod copy;
pub(crate) mod crew;
pub mod draw;
pub(crate) mod rows;
pub(crate) mod server;
pub(crate) mod words;
pub(crate) mod work;
