//! Memory of a guest that the host may merge: offered when that is asked for, and only then.

use std::fs;

use tare_model::Refusal;
use tare_model::guest::GuestSpec;

use super::{Broken, Ground, hold, skip};
use crate::{Guest, merging};

/// Processes in a guest's control groups whose memory may be merged; none where the kernel does not tell.
fn open_processes(guest: &dyn Guest) -> Vec<u32> {
    let members = guest.groups().into_iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
    let mut processes: Vec<u32> =
        members.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect();
    processes.sort_unstable();
    processes.dedup();
    processes.retain(|&process| merging::is_open(process) == Some(true));
    processes
}

impl Ground<'_> {
    /// A guest that is to be merged says that it is; one that is not to be says nothing of it. A platform that
    /// can never merge memory gives the reason and refuses the guest.
    pub(super) fn offers_memory(&self) -> Result<(), Broken> {
        let mut apart = self.start("apart")?;
        let found = |guest: &dyn Guest| guest.parity().into_iter().find(|row| row.resource == merging::RESOURCE);
        hold(found(&*apart).is_none(), || format!("asked for nothing, it tells of merging: {:?}", found(&*apart)))?;
        let open = open_processes(&*apart);
        hold(open.is_empty(), || format!("asked for nothing, memory of its processes {open:?} may be merged"))?;
        apart.destroy().map_err(|error| error.to_string())?;
        let spec = GuestSpec { merge: true, ..self.spec("merged") };
        if let Some(Refusal { reason, remedy }) = self.platform.merging_refusal() {
            hold(!reason.is_empty() && !remedy.is_empty(), || "it cannot merge, and does not say why".into())?;
            return match self.start_as(&spec) {
                Ok(guest) => hold(found(&*guest).is_some_and(|row| !row.equal), || {
                    format!("what cannot be merged is called merged: {:?}", found(&*guest))
                }),
                Err(why) => hold(why.contains(&reason), || format!("refused without the reason: {why}")),
            };
        }
        // The same file as the guest's, for a process that is there for certain.
        if merging::is_open(std::process::id()).is_none() {
            skip("memory merging: this kernel does not tell of it (Linux 6.12 with KSM)");
            return Ok(());
        }
        let mut guest = self.start_as(&spec)?;
        hold(found(&*guest).is_some_and(|row| row.equal), || {
            format!("asked to be merged, it tells {:?}", found(&*guest))
        })?;
        let open = open_processes(&*guest);
        hold(!open.is_empty() || guest.groups().is_empty(), || "of none of its processes memory may be merged".into())?;
        guest.destroy().map_err(|error| error.to_string())?;
        self.is_clean("after guests whose memory may be merged")
    }
}
