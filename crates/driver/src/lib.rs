//! Load drivers: load models, schedules, clients and servers of raw sockets, histograms.
//!
//! Both ends are here. [`serve::start`] runs in the guest, [`drive::run`] on the client's side, and
//! [`busy::start`] keeps CPUs busy. A connection is one blocking thread at each end, and an operation
//! costs one clock read and one histogram entry: that is what was measured to be the cheapest design
//! for request and response (`bench/README.md`).
//!
//! # What a run is
//! [`drive::prepare`] opens every connection and sees each server answer. [`drive::Prepared::run`] then
//! waits for the start and goes through the phases:
//!
//! | phase | closed loop and bulk | open loop |
//! |---|---|---|
//! | warm-up | every client at full load | the full rate |
//! | ramp-up | client *i* of *n* pauses, and joins after *i*/*n* of the phase | the rate grows linearly from nothing |
//! | steady state | measured | measured |
//! | ramp-down | load goes on, unmeasured | load goes on, unmeasured |
//!
//! A Java application in the guest offers its load to itself, at once and at the full rate in all phases; the driver
//! tells it when, and counts.
//!
//! The users of a web site are sessions on a few threads, each an epoll state machine ([`web`]). They join evenly over the warm-up, or
//! over the ramp-up where there is no warm-up, and none pauses.
//!
//! The clients of a store start within the warm-up, after a jitter and one after another, as its published flow has it.
//!
//! An operation of a closed loop belongs to the measured window by its *end*, one of an open loop by its
//! *intended start*, so that those who waited behind a stall are counted however late they ended.
//! What was never answered is in the response times too, with the time it was waited for (a lost datagram) or
//! would have been when the driver gave up (unfinished): leaving it out would flatter a server that drops.
//! A run ends at the latest [`drive::GRACE_CLOSED_NS`] or [`drive::GRACE_NS`] after the end of its last
//! phase, in turns after the last turn of all drivers: whatever still waits for a server then is cut off and
//! shown as an error or as unfinished.

pub mod busy;
pub mod clock;
pub mod drive;
mod error;
mod exchange;
mod link;
pub mod memory;
mod net;
pub mod pg;
pub mod protocol;
mod registry;
pub mod schedule;
pub mod serve;
mod session;

mod aggressor;
mod backlog;
mod bulk;
mod closed;
mod compute;
mod connections;
mod control;
mod course;
mod crew;
mod crr;
mod door;
mod fill;
mod head;
mod null;
mod open;
mod operation;
mod outcome;
mod payload;
mod pipelined;
mod record;
mod serve_crr;
mod serve_rr;
mod serve_stream;
mod serve_udp;
mod server;
mod sockopt;
mod spin;
mod stream;
mod supervise;
mod sys;
mod tally;
mod task;
mod tcp;
mod timeline;
mod times;
mod turn_counts;
mod udp;
mod usage;
mod workloads;

#[cfg(test)]
#[path = "../tests/common/noting.rs"]
mod noting;

pub use error::DriverError;
pub use registry::call;
pub use workloads::{java, social, store, web};
