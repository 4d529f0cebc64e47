//! How the agent ends: what each exit code means.

/// The controller said goodbye or closed the channel.
pub const DONE: u8 = 0;
/// The arguments were wrong.
pub const USAGE: u8 = 2;
/// The other end of the channel is not a tare of this version, or sent what is no message.
pub const BAD_CHANNEL: u8 = 3;
/// The agent outlived the time that the controller gave it.
pub const LIFETIME_OVER: u8 = 4;
/// The guest could not be entered.
pub const NOT_ENTERED: u8 = 5;

/// Kills everything the agent started and ends the process.
pub fn now(code: u8) -> ! {
    crate::children::kill_all();
    std::process::exit(i32::from(code))
}
