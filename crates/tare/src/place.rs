//! Where things are: the agent's program, run folders, run ids.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use tare_platform::agent;

/// This program once more, as the reaper of the run with that id. The file may have been replaced since this process began.
pub fn reaper(run_id: &str) -> Command {
    let agent = agent();
    let mut command = Command::new("/proc/self/exe");
    // It works in another directory.
    command.arg0("tare").args(["reaper", run_id]).env("TARE_AGENT", std::path::absolute(&agent).unwrap_or(agent));
    command
}

/// Time of day for names, UTC: `20261121-214502`.
fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// A new run id: time and four random hexadecimal digits.
pub fn new_run_id() -> String {
    format!("{}-{:04x}", stamp(), rand::random::<u16>())
}

/// Where run folders are made by default.
pub const RUNS: &str = "runs";

/// The default run folder of a study.
pub fn default_folder(study: &str) -> PathBuf {
    Path::new(RUNS).join(format!("{study}-{}", stamp()))
}
