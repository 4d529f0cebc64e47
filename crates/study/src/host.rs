//! What a plan has to know of the host.

use std::fs;
use std::path::Path;

use procfs::Current;
use rustix::thread::{CpuSet, sched_getaffinity};
use tare_model::units::ByteSize;

use crate::cpus;

/// Facts about a host that decide whether and how a study fits on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFacts {
    /// CPUs that are online and that this process may use, ascending.
    pub cpus: Vec<u32>,
    /// Sets of those CPUs that share a physical core, each ascending. CPUs in no set have a core of their own.
    pub shared_cores: Vec<Vec<u32>>,
    /// Memory that can be taken without swapping (MemAvailable).
    pub memory_available: ByteSize,
    /// Free space for unprivileged users where the run folder will be.
    pub disk_free: ByteSize,
}

/// A fact about the host that could not be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot tell {what} of this host: {reason}")]
#[diagnostic(help("tare needs Linux with /proc mounted, and a folder for the run that exists or can be made"))]
pub struct HostError {
    /// What was asked.
    pub what: &'static str,
    /// What the system said.
    pub reason: String,
}

impl HostFacts {
    /// Reads this host. `out` is the folder in which runs are kept; it need not exist yet.
    ///
    /// # Errors
    /// When the affinity mask, `/proc/meminfo` or the file system of `out` cannot be read.
    pub fn read(out: &Path) -> Result<Self, HostError> {
        let failed = |what| move |error: &dyn std::fmt::Display| HostError { what, reason: error.to_string() };
        // The kernel leaves CPUs that are offline out of the mask.
        let allowed = sched_getaffinity(None).map_err(|error| failed("the CPUs")(&error))?;
        let online = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let cpus: Vec<u32> = online.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
        let memory = procfs::Meminfo::current().map_err(|error| failed("the memory")(&error))?;
        // MemAvailable is there since Linux 3.14; MemFree is the cautious stand-in.
        let memory_available = ByteSize(memory.mem_available.unwrap_or(memory.mem_free));
        let disk = rustix::fs::statvfs(nearest_existing(out)).map_err(|error| failed("the free disk space")(&error))?;
        let disk_free = ByteSize(disk.f_bavail.saturating_mul(disk.f_frsize));
        Ok(Self { shared_cores: shared_cores(&cpus), cpus, memory_available, disk_free })
    }
}

/// The folder itself or the first above it that exists.
fn nearest_existing(folder: &Path) -> &Path {
    let existing = folder.ancestors().find(|ancestor| ancestor.exists());
    existing.filter(|found| !found.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Sets of CPUs that share a core. A host that does not tell (an old kernel, a container) has none that is known.
fn shared_cores(cpus: &[u32]) -> Vec<Vec<u32>> {
    let siblings = |cpu: &u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let mut set = cpus::parse(fs::read_to_string(path).ok()?.trim())?;
        set.retain(|sibling| cpus.contains(sibling));
        (set.len() > 1).then_some(set)
    };
    let mut sets: Vec<Vec<u32>> = cpus.iter().filter_map(siblings).collect();
    sets.sort();
    sets.dedup();
    sets
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn this_host_has_cpus_memory_and_disk() {
        let facts = HostFacts::read(Path::new("not-there/yet")).unwrap();
        assert!(!facts.cpus.is_empty() && facts.cpus.is_sorted());
        assert!(facts.memory_available.0 > 1 << 20, "{}", facts.memory_available);
        for set in &facts.shared_cores {
            assert!(set.len() > 1 && set.iter().all(|cpu| facts.cpus.contains(cpu)), "{set:?}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_yet_counts_where_it_will_be() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(nearest_existing(&folder.path().join("a/b")), folder.path());
        assert_eq!(nearest_existing(Path::new("not-there/yet")), Path::new("."));
    }
}
