//! CPU time of a machine by kind of thread.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Charge;

/// The threads of one machine.
#[derive(Debug, Clone)]
pub(super) struct Threads {
    /// QEMU's process.
    pub process: u32,
    pub vcpus: Vec<u32>,
    pub iothreads: Vec<u32>,
    /// A directory of the guest's control group, to find what runs beside QEMU.
    pub group: Option<PathBuf>,
}

impl Threads {
    /// CPU seconds of each kind. A kind that the machine does not have is left out; a process that is gone charges
    /// nothing more.
    pub(super) fn charges(&self) -> Vec<Charge> {
        let task = |thread: u32| ticks(&format!("/proc/{}/task/{thread}/stat", self.process)).unwrap_or(0);
        let sum = |threads: &[u32]| threads.iter().map(|&thread| task(thread)).sum::<u64>();
        let (vcpus, iothreads) = (sum(&self.vcpus), sum(&self.iothreads));
        let vhost: Vec<u32> = self.tasks().into_iter().filter(|&thread| self.is_vhost(thread)).collect();
        let (beside, kernel) = self.beside();
        let inside = sum(&vhost);
        // The process's own figure has its ended threads too, such as those that read and write files.
        let all = ticks(&format!("/proc/{}/stat", self.process)).unwrap_or(0);
        let rest = all.saturating_sub(vcpus + iothreads + inside);
        let mut charges = vec![charge("virtual CPUs", vcpus), charge("main loop and others", rest)];
        if !self.iothreads.is_empty() {
            charges.push(charge("I/O threads", iothreads));
        }
        if !vhost.is_empty() || kernel.is_some() {
            charges.push(charge("vhost", inside + kernel.unwrap_or(0)));
        }
        charges.extend(beside.map(|ticks| charge("file server", ticks)));
        charges
    }

    fn tasks(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(format!("/proc/{}/task", self.process)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Newer kernels do vhost's work in threads of QEMU's process.
    fn is_vhost(&self, thread: u32) -> bool {
        thread != self.process && is_named_vhost(&format!("/proc/{}/task/{thread}/comm", self.process))
    }

    /// Ticks of what is in the control group beside QEMU: other programs, and vhost's threads of older kernels.
    fn beside(&self) -> (Option<u64>, Option<u64>) {
        let Some(group) = &self.group else { return (None, None) };
        let (mut programs, mut kernel) = (None, None);
        for process in members(group).into_iter().filter(|&process| process != self.process) {
            let used = ticks(&format!("/proc/{process}/stat")).unwrap_or(0);
            let kind = if is_named_vhost(&format!("/proc/{process}/comm")) { &mut kernel } else { &mut programs };
            *kind = Some(kind.unwrap_or(0) + used);
        }
        (programs, kernel)
    }
}

/// Processes in a control group.
fn members(group: &Path) -> BTreeSet<u32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn is_named_vhost(comm: &str) -> bool {
    std::fs::read_to_string(comm).is_ok_and(|name| name.starts_with("vhost-"))
}

fn charge(kind: &str, ticks: u64) -> Charge {
    Charge { kind: kind.to_owned(), cpu_s: ticks as f64 / rustix::param::clock_ticks_per_second() as f64 }
}

/// User and system time of a process or thread, clock ticks; `None` when it is gone.
fn ticks(stat: &str) -> Option<u64> {
    parse(&std::fs::read_to_string(stat).ok()?)
}

/// Fields 14 and 15 of proc_pid_stat(5). The name before may have blanks and brackets in it.
fn parse(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "12 (CPU 0) R (x) S 1 2 3 4 5 6 7 8 9 10 70 3 0 0 20 0 1 0";
        assert_eq!(parse(stat), Some(73));
        assert_eq!(parse("12 (x) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_is_charged_for_all_of_its_threads() {
        let process = std::process::id();
        let spin = std::thread::spawn(|| {
            let began = std::time::Instant::now();
            while began.elapsed().as_millis() < 60 {}
        });
        assert!(spin.join().is_ok());
        let threads = Threads { process, vcpus: vec![process], iothreads: Vec::new(), group: None };
        let charges = threads.charges();
        let rest = charges.iter().find(|charge| charge.kind == "main loop and others");
        assert!(rest.is_some_and(|charge| charge.cpu_s > 0.0), "an ended thread is forgotten: {charges:?}");
        assert_eq!(charges.len(), 2, "{charges:?}");
    }
}
