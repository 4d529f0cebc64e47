//! What users of a site do and what answers must be: pure, without sockets or clocks.
//!
//! [`Site`] is a [`WebDrive`] compiled: checked, its probabilities as tables of aliases, its requests as pieces that are put
//! together. A [`User`] walks through it. An [`Asked`] is what was asked and judges the answer while it comes. A
//! [`Tally`] a thread counts what was done.
//!
//! An engine does, for each session:
//!
//! ```text
//! let mut user = User::fresh(&site, seed, number);          // number: unique in the run
//! loop {
//!     let Next::State(state) = user.next(&site) else { break };     // End: the session is over
//!     if user.thinks(&site) { wait for user.think_ns(&site) }        // never before the first request of a session
//!     // site.secure(state): which port
//!     let asked = user.ask(&site, cookie, &mut tokens, &mut out);    // page, file or download of the state
//!     // on the status:       asked.status(200)? -> Answer::Body or Answer::NotModified
//!     // on each piece:       asked.feed(&site, bytes)?              // bytes of the body, transfer coding removed
//!     // at the end of a body: asked.finish(&site)?
//!     for n in 0..site.embedded(state) { let asked = user.ask_embedded(&site, n, &mut out); ... }
//!     tally.record(&site, state, &Ended { response_ns, bytes, fault, cut }, in_window);   // record_late: see there
//! }
//! ```
//!
//! Nothing of it allocates but compiling, [`Tally::new`], the first fault of a kind and `out` when it grows.

mod ask;
mod asked;
mod compile;
mod simulate;
mod tally;
mod user;

pub(crate) use ask::Tokens;
pub(crate) use asked::{Answer, Asked};
pub(crate) use compile::Site;
pub use simulate::{Simulated, simulate};
pub(crate) use tally::Tally;
pub(crate) use user::{Next, User};

#[cfg(test)]
mod tests;
