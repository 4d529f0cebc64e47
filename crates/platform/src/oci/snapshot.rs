//! Snapshots of guests, by the runtime's own `checkpoint` and `restore`.
//!
//! Only of gVisor's: its kernel is a program, which writes itself down and takes the new ends of the guest's standard input and output when it is
//! restored, so that the agent inside reads on where it was.

use std::path::{Path, PathBuf};

use tare_model::Refusal;

use super::gvisor::is_gvisor;
use super::options::Options;
use super::runtime::Held;
use crate::guest::Snapshot;

/// What the runtime calls the directory of a snapshot.
const PLACE: &str = "--image-path";

/// Why no snapshots of its guests can be taken, and the remedy.
pub(super) fn refusal(options: &Options) -> Option<Refusal> {
    if is_gvisor(Path::new(&options.runtime)) {
        return None;
    }
    Some(Refusal::new(
        format!("`{}` takes snapshots of processes of the host's by CRIU, which tare does not drive", options.runtime),
        "write `runtime = \"runsc\"`, whose kernel writes itself down, or `start = { pool = N }`, or leave `start` out",
    ))
}

/// The command that makes a container, of a snapshot if there is one.
pub(super) fn argv(held: &Held, bundle: &Path, snapshot: Option<&Path>) -> Vec<String> {
    let bundle = bundle.to_string_lossy();
    match snapshot {
        None => held.command(&["run", "--bundle", &bundle]),
        Some(from) => held.command(&["restore", "--bundle", &bundle, PLACE, &from.to_string_lossy()]),
    }
}

/// What takes a snapshot of a container, which ends with it.
pub(super) fn by(held: Held, agent: PathBuf) -> Snapshot {
    Box::new(move |into| {
        let ran = held.run(&agent, &["checkpoint", PLACE, &into.to_string_lossy()])?;
        if ran.success { Ok(()) } else { Err(ran.output.trim().to_owned()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_runtime_with_a_kernel_of_its_own_takes_snapshots() {
        let of = |runtime: &str| refusal(&Options { runtime: runtime.into(), ..Options::default() });
        assert_eq!(of("/opt/runsc"), None);
        let Refusal { reason, remedy } = of("crun").unwrap();
        assert!(reason.contains("`crun`") && reason.contains("CRIU") && remedy.contains("pool"), "{reason}: {remedy}");
    }
}
