//! What a driver and its server are given, and what they report back.
//!
//! All times are nanoseconds of CLOCK_MONOTONIC on the machine that runs the driver.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::busy::{BusyCount, BusyDone, BusyStretch, BusyWork};
pub use crate::service_time::ServiceTime;

use crate::Histogram;
use crate::load::{LoadModel, Phases};
use crate::packed::{PackError, Packed, Task, pack_outcome, unpack_outcome};
use crate::token::Token;
use crate::trial::Step;
use crate::turns::{Turns, TurnsDone};

/// The exchange that an `rr` operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// One request and one response on a connection that stays open.
    #[default]
    TcpRr,
    /// One datagram each way; a lost one is counted after a bounded wait.
    UdpRr,
    /// Connect, one exchange, close.
    TcpCrr,
}

/// Which way bulk data flows, seen from the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Client to guest.
    #[default]
    Receive,
    /// Guest to client.
    Send,
    /// Both at once, half of the streams each way.
    Both,
}

/// How the sending end hands bytes to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendMethod {
    /// write() from a buffer.
    Write,
    /// sendfile() from a file in memory.
    #[default]
    Sendfile,
}

/// How the receiving end takes bytes from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMethod {
    /// read() into a buffer, as applications do.
    #[default]
    Read,
    /// recv(MSG_TRUNC): the kernel drops the bytes uncopied. Flatters the receiver: a named mode.
    Truncate,
}

/// How a thread waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Sleeps in the kernel.
    #[default]
    Block,
    /// Polls without sleeping; needs a whole CPU at each end. A named mode.
    Spin,
}

/// Socket settings, the same at both ends. `None` leaves the kernel's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SocketOptions {
    /// SO_SNDBUF and SO_RCVBUF in bytes, as asked (the kernel doubles and clamps).
    pub buffer_bytes: Option<u32>,
    /// TCP congestion control, such as `cubic`.
    pub congestion_control: Option<String>,
}

/// How a server holds its answers back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Hold {
    /// By 20 us, and by so many thousandths of the whole exchange on top of it: the known difference of a positive control. A server
    /// that it is compared with has 0.
    Share(u32),
    /// By a service time, which the server records.
    Service(ServiceTime),
}

/// What the guest's end of raw sockets serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SocketServer {
    /// Answers each request of `request_bytes` with `response_bytes`.
    Rr {
        /// The exchange.
        exchange: Exchange,
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
        /// How the server's threads wait.
        wait: Wait,
        /// How answers are held back, over TCP connections that stay open; `None`: they are not.
        hold: Option<Hold>,
        /// Socket settings.
        socket: SocketOptions,
    },
    /// Takes or gives bulk data; the driver says at the start of each connection which.
    Stream {
        /// Send with.
        method: SendMethod,
        /// Receive with.
        receive: ReceiveMethod,
        /// Bytes handed to one send call.
        chunk_bytes: u32,
        /// Bytes of the file that sendfile cycles through.
        window_bytes: u32,
        /// Socket settings.
        socket: SocketOptions,
    },
}

impl Task for SocketServer {
    const KIND: &'static str = "sockets";
    type Outcome = ();
}

/// What a driver of raw sockets does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketDrive {
    /// Nothing but recording an operation: the floor of the instrument.
    Null,
    /// Request and response.
    Rr {
        /// The exchange.
        exchange: Exchange,
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
        /// How the driver's threads wait.
        wait: Wait,
    },
    /// Bulk data.
    Stream {
        /// Which way, seen from the guest.
        direction: Direction,
        /// Send with.
        method: SendMethod,
        /// Receive with.
        receive: ReceiveMethod,
        /// Bytes handed to one send call.
        chunk_bytes: u32,
        /// Bytes of the file that sendfile cycles through.
        window_bytes: u32,
    },
    /// Request and response over TCP, served as [`Self::Rr`] is: a request is sent when it is due, whether or not those before it were
    /// answered. Of an open loop.
    Pipelined {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
    },
}

impl Task for SocketDrive {
    const KIND: &'static str = "sockets";
    type Outcome = ();
}

/// One run of a driver, complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveSpec {
    /// What is done.
    pub task: Packed,
    /// Where the servers listen; connections are dealt to them in turn.
    pub targets: Vec<SocketAddr>,
    /// How operations are started.
    pub load: LoadModel,
    /// How long. In turns they pass only while it is the driver's turn.
    pub phases: Phases,
    /// When it is the driver's turn; `None`: all the time.
    pub turns: Option<Turns>,
    /// When the first phase starts; 0 means at once.
    pub start_at_ns: u64,
    /// Seed of everything random (arrivals).
    pub seed: u64,
    /// Socket settings.
    pub socket: SocketOptions,
    /// Whether each operation is recorded in a histogram; off only to measure what recording costs.
    pub record: bool,
    /// A UDP exchange unanswered for this long is lost.
    pub loss_timeout_ns: u64,
    /// Length of an interval of the series, nanoseconds.
    pub interval_ns: u64,
    /// What is shown to servers of tare's when a connection is opened. The agent puts it there that was given it ([`Token`]).
    #[serde(skip)]
    pub token: Option<Token>,
}

impl DriveSpec {
    /// A driver that begins at once and takes no turns, with the seed 1, default sockets and all operations recorded. What is unanswered for
    /// a second is lost, and an interval of the series is a tenth of one.
    pub fn new(task: Packed, targets: Vec<SocketAddr>, load: LoadModel, phases: Phases) -> Self {
        Self {
            task,
            targets,
            load,
            phases,
            turns: None,
            start_at_ns: 0,
            seed: 1,
            socket: SocketOptions::default(),
            record: true,
            loss_timeout_ns: 1_000_000_000,
            interval_ns: 100_000_000,
            token: None,
        }
    }
}

/// Work done in one interval of a driver's run, over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DriveInterval {
    /// End of the interval.
    pub end_ns: u64,
    /// Operations that ended in it (none in bulk transfer).
    pub operations: u64,
    /// Bytes carried in it (both ways together).
    pub bytes: u64,
    /// Sum of the response times of the operations that ended in it, nanoseconds; 0 where nobody knows.
    pub response_ns: u64,
}

impl DriveInterval {
    /// Adds what was done in another one.
    pub const fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.response_ns = self.response_ns.wrapping_add(other.response_ns);
    }

    /// What was done since an earlier reading of the same counters.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            end_ns: self.end_ns,
            operations: self.operations.saturating_sub(earlier.operations),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            response_ns: self.response_ns.wrapping_sub(earlier.response_ns),
        }
    }
}

/// The reason, in [`DriveResult::errors`], of an operation that was under way when time was up: it did not fail, nobody
/// waited for its end.
pub const CUT_OFF: &str = "no answer by the end of the run";

/// What a driver measured in steady state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DriveResult {
    /// When the first and the last of the drivers began, as their own processes saw it; 0: unknown.
    pub began_ns: (u64, u64),
    /// Start of the measured window.
    pub steady_start_ns: u64,
    /// End of the measured window.
    pub steady_end_ns: u64,
    /// Operations answered in the window. In an open loop the histograms hold those that were *due* in the
    /// window, whenever they ended, so their count may differ.
    pub operations: u64,
    /// Operations answered in all phases: what the server must have served, but for what was under way.
    pub answered_total: u64,
    /// Payload bytes that reached the guest in the window.
    pub bytes_to_guest: u64,
    /// Payload bytes that left the guest in the window.
    pub bytes_from_guest: u64,
    /// Bulk transfer: payload bytes that were sent to the guest in all phases.
    pub bytes_to_guest_total: u64,
    /// Bulk transfer: payload bytes that came from the guest in all phases.
    pub bytes_from_guest_total: u64,
    /// Operations that failed, by reason, in all phases.
    pub errors: Vec<(String, u64)>,
    /// UDP exchanges of the window that were lost.
    pub lost: u64,
    /// Open loop: arrivals due in the window that had not ended when the driver gave them up, some seconds
    /// after the last phase.
    pub unfinished: u64,
    /// Response time from the intended start, nanoseconds. Operations that were due in the window and did not complete are in it without
    /// a value, longer than all that did: those that failed, and those that were given up (lost, unfinished) with the time they were waited
    /// for.
    pub response: Histogram,
    /// Service time from the actual start, nanoseconds (equals response in a closed loop).
    pub service: Histogram,
    /// Open loop: actual minus intended start, nanoseconds.
    pub lateness: Histogram,
    /// Open loop: most arrivals that waited for their connection at one moment since the window began.
    pub backlog_max: u64,
    /// The whole run, all phases, in intervals.
    pub intervals: Vec<DriveInterval>,
    /// CPU the driver's threads spent in user mode in the window, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU the driver's threads spent in the kernel in the window, nanoseconds.
    pub cpu_system_ns: u64,
    /// Time in the window in which the driver's threads could have run but waited for a CPU, nanoseconds,
    /// summed over them (`/proc/thread-self/schedstat`); `None` where the kernel does not tell.
    pub run_delay_ns: Option<u64>,
    /// Threads of the driver: one a connection, and one that watches them.
    pub threads: u32,
    /// What the kernel granted of the socket settings, as name and value.
    pub granted: Vec<(String, String)>,
    /// Bulk transfer: whether bytes sent and bytes received agreed to the byte at the end of every stream.
    pub verified: bool,
    /// What was done in turns; `None` where the driver had all the time.
    pub turns: Option<TurnsDone>,
    /// The parts of an operation in the measured window, in the order in which they are done; empty where an operation
    /// has no parts.
    pub steps: Vec<Step>,
    /// What this kind of driver reports beside that, packed; see [`Self::outcome`].
    #[serde(with = "crate::bytes")]
    pub own: Vec<u8>,
}

impl DriveResult {
    /// Time in which load was measured, seconds: the window, or its part that was the driver's turn.
    pub fn measured_s(&self) -> f64 {
        let window = self.steady_end_ns.saturating_sub(self.steady_start_ns);
        self.turns.as_ref().map_or(window, |turns| turns.measured_ns) as f64 / 1e9
    }

    /// The result with what this kind of driver reports beside it.
    ///
    /// # Errors
    /// When it cannot be packed.
    pub fn with_outcome<T: Task>(self, outcome: &T::Outcome) -> Result<Self, PackError> {
        Ok(Self { own: pack_outcome::<T>(outcome)?, ..self })
    }

    /// What this kind of driver reports beside the figures that all have.
    ///
    /// # Errors
    /// When there is nothing of this kind.
    pub fn outcome<T: Task>(&self) -> Result<T::Outcome, PackError> {
        unpack_outcome::<T>(&self.own)
    }
}

/// What a server did in its life.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServeReport {
    /// Connections (UDP: drivers) served; a driver's hello before connect-request-response is one too.
    pub connections: u64,
    /// Payload bytes received.
    pub bytes_in: u64,
    /// Payload bytes sent.
    pub bytes_out: u64,
    /// What went wrong, by reason.
    pub errors: Vec<(String, u64)>,
    /// What the kernel granted of the socket settings, as name and value.
    pub granted: Vec<(String, String)>,
    /// Connections (UDP: datagrams to the server's own port) of those who are no drivers of the trial, and were closed (UDP: not answered).
    pub strangers: u64,
    /// Requests answered, where the server answers requests that it can tell apart.
    pub requests: u64,
    /// How long each took, from its last byte to the answer's, nanoseconds.
    pub service: Histogram,
    /// CPU that the server's threads took, nanoseconds.
    pub cpu_ns: u64,
}
