//! The memory of the host that carries the guests, as a run looks at it.

use std::path::{Path, PathBuf};

use tare_memory::Kernel;
use tare_memory::cost::{self, Cost};
use tare_memory::host::HostNow;

/// How a run looks at this host's memory. The one that comes with tare reads the kernel's files; tests put a host in its
/// place that runs short when they want it to.
pub trait HostAccess: Send + Sync {
    /// Merging of memory on this host.
    fn kernel(&self) -> Kernel;

    /// The host's memory now.
    ///
    /// # Errors
    /// What could not be read, and why.
    fn now(&self) -> Result<HostNow, String>;

    /// What these processes take of it.
    ///
    /// # Errors
    /// What could not be read, and why.
    fn cost(&self, pids: &[u32]) -> Result<Cost, String>;
}

/// This host.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisHost;

impl HostAccess for ThisHost {
    fn kernel(&self) -> Kernel {
        Kernel::host()
    }

    fn now(&self) -> Result<HostNow, String> {
        HostNow::read().map_err(|error| error.to_string())
    }

    fn cost(&self, pids: &[u32]) -> Result<Cost, String> {
        cost::of_processes(pids).map_err(|error| error.to_string())
    }
}

/// CPU seconds that the group with these directories has used; `None` where none of them tells.
pub fn cpu_s(directories: &[PathBuf]) -> Option<f64> {
    let version_2 = |directory: &PathBuf| {
        let text = std::fs::read_to_string(directory.join("cpu.stat")).ok()?;
        Some(number(&text, "usage_usec")? as f64 / 1e6)
    };
    let version_1 = |directory: &PathBuf| {
        let text = std::fs::read_to_string(directory.join("cpuacct.usage")).ok()?;
        Some(text.trim().parse::<u64>().ok()? as f64 / 1e9)
    };
    directories.iter().find_map(version_2).or_else(|| directories.iter().find_map(version_1))
}

/// Processes of the group with these directories that the kernel killed for memory.
pub fn oom_kills(directories: &[PathBuf]) -> u64 {
    let told = |directory: &PathBuf, file: &str| {
        let text = std::fs::read_to_string(directory.join(file)).ok()?;
        number(&text, "oom_kill")
    };
    let by_group = directories
        .iter()
        .find_map(|directory| told(directory, "memory.events").or_else(|| told(directory, "memory.oom_control")));
    by_group.unwrap_or(0)
}

/// Virtual and resident size of processes, bytes: cheap enough to be asked every second.
pub fn sizes(pids: &[u32]) -> (u64, u64) {
    let page = rustix::param::page_size() as u64;
    let one = |pid: &u32| {
        let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("statm")).ok()?;
        let mut fields = text.split_whitespace().map_while(|field| field.parse::<u64>().ok());
        Some((fields.next()? * page, fields.next()? * page))
    };
    pids.iter().filter_map(one).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// The number after a key, in a file of one key and number a line.
fn number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(' ').filter(|(own, _)| *own == key)?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A directory of a control group as the kernel shows it.
    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn cpu_and_kills_of_a_group_are_read_in_both_versions() {
        let unified = group(&[("cpu.stat", "usage_usec 2500000\n"), ("memory.events", "low 0\noom 3\noom_kill 2\n")]);
        let cpuacct = group(&[("cpuacct.usage", "1500000000\n"), ("cpu.stat", "nr_periods 1\nthrottled_time 0\n")]);
        let memory = group(&[("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")]);
        let of = |all: &[&tempfile::TempDir]| all.iter().map(|one| one.path().to_owned()).collect::<Vec<_>>();
        assert_eq!((cpu_s(&of(&[&unified])), oom_kills(&of(&[&unified]))), (Some(2.5), 2));
        assert_eq!((cpu_s(&of(&[&cpuacct, &memory])), oom_kills(&of(&[&cpuacct, &memory]))), (Some(1.5), 1));
        assert_eq!(cpu_s(&of(&[&cpuacct, &unified])), Some(2.5), "the finer of the two");
        assert_eq!((cpu_s(&[]), oom_kills(&[])), (None, 0));
    }

    #[test]
    fn sizes_of_processes_add_up_and_one_that_is_gone_has_none() {
        let own = std::process::id();
        let (virtual_bytes, resident) = sizes(&[own]);
        assert!(virtual_bytes >= resident && resident > 0);
        assert_eq!(sizes(&[u32::MAX]), (0, 0));
    }
}
