//! The nouns of tare: studies, plans, trials, guests, loads, samples, outcomes, estimates.
//!
//! This crate does no I/O and depends on no other crate of the workspace. Every stage of tare
//! speaks in these types, and those that are written to files carry a schema number.

pub mod aggressor;
pub mod arrivals;
pub mod audit;
pub mod ballooning;
mod busy;
pub mod bytes;
pub mod capacity;
pub mod clean;
pub mod count;
pub mod cpu_target;
pub mod density;
pub mod deviation;
pub mod drive;
pub mod environment;
pub mod fact;
pub mod field;
pub mod findings;
pub mod flag;
pub mod guest;
pub mod histogram;
pub mod history;
pub mod hold;
pub mod hosts;
pub mod kvm;
pub mod layout;
pub mod load;
pub mod marker;
pub mod merging;
pub mod meter;
pub mod metric;
pub mod packed;
mod part;
pub mod plan;
pub mod precision;
pub mod published;
pub mod random;
pub mod redact;
pub mod refusal;
mod request_type;
pub mod sample;
pub mod secret;
pub mod service_time;
pub mod sql;
pub mod start;
pub mod study;
pub mod text;
pub mod token;
pub mod traits;
pub mod trial;
pub mod turns;
pub mod units;
pub mod written;

pub use histogram::Histogram;
pub use refusal::Refusal;
pub use units::{BitRate, ByteSize, Rate, Span};
