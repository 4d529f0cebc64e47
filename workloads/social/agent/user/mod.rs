//! What users of the social application do and what answers must be: pure, without sockets or clocks.
//!
//! A [`World`] is a drive compiled: its table of transitions, its static files, its hosts. A [`Member`] is a user: who they are, what their
//! browser has, which events they saw last. A [`Visit`] is the operation that is under way: it says what to ask for next, and judges
//! what comes. A [`Tally`] a thread counts what was done.
//!
//! An engine does, for each user:
//!
//! ```text
//! let operation = member.next(&world);
//! visit.begin(&world, &mut member, operation);
//! while visit.ask(&world, &mut member, cookie, &mut outgoing) {      // writes the next request
//!     // on the head:           visit.head(&world, &mut member, &head)? -> whether a body follows
//!     // on each piece:         visit.feed(&world, &mut member, bytes)?
//!     // at the end of all:     visit.finish(&world, &mut member)?
//! }
//! let cycle_ns = member.cycle_ns(&world, operation);                  // from the start of this to that of the next
//! ```

mod file;
mod form;
mod member;
mod outgoing;
mod page;
mod simulate;
mod tally;
mod visit;
mod world;

pub(crate) use member::Member;
pub(crate) use outgoing::{Outgoing, Template};
pub use simulate::{Simulated, simulate};
pub(crate) use tally::{Looks, Tally};
pub(crate) use visit::Visit;
pub(crate) use world::World;
