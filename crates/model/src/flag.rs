//! Flags of trials, and the kinds of them that more than one crate knows.

use serde::{Deserialize, Serialize};

/// Something about a trial that a reader must know when trusting it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flag {
    /// Short name: `steal`, `drops`, `lost-samples`, `not-steady`, `parity`, `driver-starved`, `server-errors`.
    pub kind: String,
    /// What was seen, with the figure and the limit.
    pub detail: String,
}

/// What was acknowledged may be lost under the settings of the trial.
pub const UNSAFE: &str = "unsafe";
/// The arm's figures must not be compared with others.
pub const NOT_COMPARABLE: &str = "not-comparable";
/// The driver's threads waited for a CPU.
pub const DRIVER_STARVED: &str = "driver-starved";
/// Somebody connected to a server of the trial who is none of its drivers.
pub const STRANGER_CONNECTED: &str = "stranger-connected";
/// The driver ran short of ports.
pub const DRIVER_PORTS: &str = "driver-ports";
/// The driver's CPUs were busy.
pub const DRIVER_SATURATED: &str = "driver-saturated";
/// What stands behind the server was slow.
pub const BACKEND_LIMIT: &str = "backend-limit";
/// An arm's guests were busy while it was the turn of others.
pub const BUSY_WHILE_WAITING: &str = "busy-while-waiting";
/// What an arm did in its turns reached into the turns of others.
pub const TURN_OVERRUN: &str = "turn-overrun";
/// A trial ended because an arm with which it took turns failed.
pub const OTHER_ARM_FAILED: &str = "other-arm-failed";
/// A neighbour ended in a turn in which it was to work.
pub const AGGRESSOR_ENDED: &str = "aggressor-ended";
/// What the machine underneath, or something else on the host, did to a trial: causes outside its arm.
pub const OUTSIDE: [&str; 3] = ["steal", "foreign-load", "alongside"];
/// The instrument limited the trial, and not the guest.
pub const LIMITED: [&str; 4] = [DRIVER_STARVED, DRIVER_PORTS, DRIVER_SATURATED, BACKEND_LIMIT];
