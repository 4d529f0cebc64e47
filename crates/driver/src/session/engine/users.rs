//! What a workload says of its users: the one trait between the engine and a workload.

use std::fmt::Debug;
use std::net::SocketAddr;

use crate::session::fault::Fault;
use crate::session::http::Head;
use crate::timeline::Stage;

/// The users of one thread: what they ask for and when, what an answer must be, and what is counted of it.
///
/// The engine calls for each session:
///
/// ```text
/// user(client)                                    before anybody has joined
/// loop {
///     arrive                                      a user begins a session
///     while let Some(due) = next {                waits until then
///         begin                                   the operation begins
///         while ask { sent; (heard; head | body)*; answered }
///         completed | failed | unfinished
///     }
/// }
/// ```
///
/// Requests of one operation are under way on as many connections at one time as [`super::Settings`] allows. A fault of `head` or `body` closes the
/// connection at once; one of `answered` does not, for the answer has come in full. Both end the operation.
pub(crate) trait Users {
    /// One user: who they are, and the operation that they are at.
    type User: Debug;
    /// A request, and what its answer must be. Its memory serves one request after the other.
    type Request: Debug + Default;

    /// Whether requests wait until all answers that are there have been read, so that no answer waits for a request to be timed and the server is
    /// woken once for all of them. Otherwise what becomes due meanwhile is begun between two answers.
    const GATHERS: bool;
    /// Longest answer, head and all, bytes.
    const ANSWER_MAX: u64;

    /// The first user of a client of the load, from 0, before they have joined.
    fn user(&self, client: u32) -> Self::User;

    /// Where a user's requests go at this moment.
    fn target(&self, user: &Self::User) -> Target;

    /// A session begins with a new user, whose number nobody else in the run has.
    fn arrive(&mut self, _user: &mut Self::User, _number: u64) {}

    /// When the next operation of a user is due, by the driver's own clock; `None`: the session ends. `from` is when the operation before ended, or when the session was due,
    /// `earliest` the moment before which nothing is begun after a failure.
    fn next(&mut self, user: &mut Self::User, from: u64, earliest: u64) -> Option<u64>;

    /// An operation begins.
    fn begin(&mut self, user: &mut Self::User, now: u64, in_window: bool);

    /// Writes the next request of the operation into one that is empty, and returns its length in bytes; `None`: there is nothing to ask for, or not
    /// before one of the `outstanding` requests has been answered. It is called again after each answer. `so_far`: how long the operation has taken,
    /// nanoseconds.
    fn ask(&mut self, user: &mut Self::User, outstanding: u16, request: &mut Self::Request, so_far: u64)
    -> Option<u64>;

    /// The bytes of a request from `at` on, as many as there are in one piece; `at` is not its end.
    fn piece<'r>(&'r mut self, request: &'r Self::Request, at: u64) -> &'r [u8];

    /// The request has been used, and is kept for the next.
    fn clear(request: &mut Self::Request);

    /// Whether the request under way may be sent once more after the server may have seen it.
    fn may_repeat(&self, _user: &Self::User) -> bool {
        true
    }

    /// A request was sent in full, for the first time or once more (`again`).
    fn sent(&mut self, user: &mut Self::User, again: bool, in_window: bool);

    /// Something has come for a user.
    fn heard(&mut self, _user: &Self::User, _now: u64) {}

    /// Judges the head of an answer.
    ///
    /// # Errors
    /// When the rest is of no use.
    fn head(
        &mut self,
        user: &mut Self::User,
        request: &mut Self::Request,
        head: Head,
        in_window: bool,
    ) -> Result<(), Fault>;

    /// Judges the next bytes of a body, in any pieces.
    ///
    /// # Errors
    /// When the rest is of no use.
    fn body(&mut self, user: &mut Self::User, request: &mut Self::Request, piece: &[u8]) -> Result<(), Fault>;

    /// Judges an answer that has come in full, when the operation has taken `so_far` nanoseconds.
    ///
    /// # Errors
    /// What was wrong with it.
    fn answered(&mut self, user: &mut Self::User, request: &mut Self::Request, so_far: u64) -> Result<(), Fault>;

    /// Counts an operation that was right.
    fn completed(&mut self, user: &mut Self::User, ended: &Ended, window: Window);

    /// What an operation has failed for, where something was wrong before its connection broke.
    fn cause(&self, _user: &Self::User, fault: Fault) -> Fault {
        fault
    }

    /// Counts an operation that has failed. `broken`: with its connection, so that it is open how much of what was asked for has been done.
    fn failed(&mut self, user: &mut Self::User, ended: &Ended, window: Window, broken: bool);

    /// Counts an operation that was under way when the run was cut off, by the stage that it was due in. `silent`: nothing has come for it for as long
    /// as a run waits for its end.
    fn unfinished(&mut self, user: &mut Self::User, cut: &Ended, due: Stage, silent: bool);

    /// When the operation after the one under way is due, where that is known.
    fn next_due(&self, _user: &Self::User) -> Option<u64> {
        None
    }

    /// Counts an operation that was due in the measured window and that nobody had begun when the run was cut off: of a user, or of an arrival for
    /// which no session was free.
    fn never_begun(&mut self, user: Option<&mut Self::User>, cut: &Ended);

    /// Gives back memory that only operations under way need: the run is over.
    fn release(&mut self) {}
}

/// Where requests go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub address: SocketAddr,
    /// Over TLS.
    pub secure: bool,
}

/// An operation that is over, with all requests that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// From the intended start until the last answer had come, or until it was given up, nanoseconds.
    pub response_ns: u64,
    /// Bytes that came, heads and all files counted.
    pub bytes: u64,
    /// The first thing that was wrong with it, if anything was.
    pub fault: Option<Fault>,
    /// Whether it did not come to its end, for the run was over before.
    pub cut: bool,
}

/// Which moments of an operation lie in the measured window. In turns it has ended where it was due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub due: bool,
    pub ended: bool,
}
