//! A guest whose first process another program has started, outside of tare's control groups and perhaps without a link: it is
//! taken in before its agent begins, so that all that the agent touches counts.

use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tare_lab::{NetNs, processes_in};
use tare_wire::WireError;
use tare_wire::launch::WAITING;

use super::GuestBuilder;
use crate::error::Result;
use crate::{merging, parity};

/// Where processes of a guest are to be.
const IN_GROUP: &str = "in the guest's control group";

impl GuestBuilder<'_> {
    /// Links the network namespace of that process to the lab.
    pub(crate) fn attach_process(&mut self, process: u32) -> Result<()> {
        let port = NetNs::of_process(process).and_then(|netns| self.site.lab.attach_in(&self.spec.name, Some(netns)));
        self.parts.port = Some(port.map_err(|source| self.lab_error(source))?);
        Ok(())
    }

    /// Moves that process into the guest's control group, and `monitor` with it: the process that stands above it for as long
    /// as it runs, so that its CPU time counts too. What came of that is read back.
    pub(crate) fn take_in(&mut self, process: u32, monitor: Option<u32>) -> Result<()> {
        let Some(group) = self.parts.cgroup.as_ref().filter(|group| !group.paths().is_empty()) else { return Ok(()) };
        let moved = monitor.into_iter().chain([process]).try_for_each(|process| group.add(process));
        let members = processes_in(group.paths());
        moved.map_err(|source| self.lab_error(source))?;
        let granted = monitor.is_some_and(|monitor| members.contains(&monitor));
        let note = monitor.map_or_else(
            || "there is no process above the guest's first whose name is the monitor's".into(),
            |monitor| format!("process {monitor}, looked for in cgroup.procs"),
        );
        let granted = if granted { IN_GROUP } else { "elsewhere" };
        self.note(parity::row("CPU time of the engine's monitor", IN_GROUP, Some(granted.into()), note));
        Ok(())
    }

    /// Moves further processes that carry the guest into its control group, each with the name that a reader knows it by.
    /// What came of that is read back.
    pub(crate) fn take_in_carriers(&mut self, carriers: &[(u32, String)]) -> Result<()> {
        let Some(group) = self.parts.cgroup.as_ref().filter(|group| !group.paths().is_empty()) else { return Ok(()) };
        for (process, _) in carriers {
            let moved = group.add(*process);
            // One that ended by itself meanwhile needs no place.
            if moved.is_err() && Path::new("/proc").join(process.to_string()).exists() {
                moved.map_err(|source| self.lab_error(source))?;
            }
        }
        let members = processes_in(group.paths());
        let granted = !carriers.is_empty() && carriers.iter().all(|(process, _)| members.contains(process));
        let names: Vec<String> = carriers.iter().map(|(process, name)| format!("{name} ({process})")).collect();
        let note = match names.is_empty() {
            true => "none was found, so it is not known where they are".into(),
            false => {
                format!("{}, looked for in cgroup.procs; others may be there that were not found", names.join(", "))
            }
        };
        let granted = (!carriers.is_empty()).then(|| if granted { IN_GROUP } else { "elsewhere" }.into());
        self.note(parity::row("processes that carry the guest", IN_GROUP, granted, note));
        Ok(())
    }

    /// Kills that process when the guest is to be killed: it may be in no control group of tare's, and it is no child.
    pub(crate) fn kill_process_with_guest(&mut self, process: u32) {
        let held = i32::try_from(process).ok().and_then(Pid::from_raw);
        let Some(held) = held.and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok()) else { return };
        self.kill_by(Box::new(move || match pidfd_send_signal(&held, Signal::KILL) {
            Err(error) if error != rustix::io::Errno::SRCH => Err(format!("its first process was not killed: {error}")),
            _ => Ok(()),
        }));
    }

    /// Waits until the agent's program says that it is there and has not begun.
    pub(crate) fn hear_waiting(&mut self) -> Result<()> {
        let timeout = self.site.timeout;
        let heard = self.parts.channel.as_mut().map(|channel| channel.hear(WAITING, timeout));
        heard.unwrap_or_else(|| Err(no_channel())).map_err(|error| self.no_answer(&error))
    }

    /// Lets the agent begin.
    pub(crate) fn let_begin(&mut self) -> Result<()> {
        let said = self.parts.channel.as_mut().map(|channel| channel.say(b"\n"));
        said.unwrap_or_else(|| Err(no_channel())).map_err(|error| self.no_answer(&error))
    }
}

fn no_channel() -> WireError {
    WireError::Gone { reason: "it has no channel".into() }
}

/// The process above this one, if that is its name (the kernel keeps 15 characters).
pub(crate) fn parent_named(process: u32, name: &str) -> Option<u32> {
    let parent = merging::parent(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    let is_called = std::fs::read_to_string(Path::new("/proc").join(parent.to_string()).join("comm")).ok()?;
    (parent > 1 && is_called.trim_end() == name).then_some(parent)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::Stdio;

    use tare_lab::{RUN_VARIABLE, is_of_run};

    use super::*;

    #[test]
    fn a_process_is_known_by_its_environment_and_by_the_name_above_it() {
        let mut child = std::process::Command::new("cat")
            .env(RUN_VARIABLE, "taken-1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A process that has just been started shows an empty environment until its program runs: its echo says that it does.
        child.stdin.as_mut().unwrap().write_all(b".").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let own = std::fs::read_to_string("/proc/self/comm").unwrap();
        let (of_run, of_other) = (is_of_run(child.id(), "taken-1"), is_of_run(child.id(), "taken"));
        let (above, other) = (parent_named(child.id(), own.trim_end()), parent_named(child.id(), "no-such"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(of_run && !of_other);
        assert_eq!((above, other), (Some(std::process::id()), None));
    }
}
