//! What a plan has to know of the host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
    /// All memory (MemTotal).
    pub memory_total: ByteSize,
    /// Free space for unprivileged users where the run folder will be.
    pub disk_free: ByteSize,
    /// Where what is kept from run to run is; `None`: on the file system of the run folder.
    pub cache: Option<FileSystem>,
    /// Where guests keep what they write to disk; `None`: on the file system of the run folder.
    pub guests: Option<FileSystem>,
    /// Arms whose guests are emulated here, by their ids. A host does not know them by itself: whoever plans a study on it says which.
    pub emulated: Vec<String>,
    /// What is kept from earlier runs for guests' data, bytes: as much of it need not be made again.
    pub kept: ByteSize,
}

/// A file system, as far as a plan must know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSystem {
    /// Its number: directories with the same number share what is free.
    pub device: u64,
    /// The directory that is meant, or will be there.
    pub path: PathBuf,
    /// Free space for unprivileged users.
    pub free: ByteSize,
}

impl FileSystem {
    /// The file system that holds a directory, or will.
    fn of(path: &Path) -> Result<Self, HostError> {
        let existing = nearest_existing(path);
        let failed =
            |error: &dyn std::fmt::Display| HostError { what: "the free disk space", reason: error.to_string() };
        let disk = rustix::fs::statvfs(existing).map_err(|error| failed(&error))?;
        let device = fs::metadata(existing).map_err(|error| failed(&error))?.dev();
        let free = ByteSize(disk.f_bavail.saturating_mul(disk.f_frsize));
        Ok(Self { device, path: path.to_owned(), free })
    }
}

/// Directories of a host that a run uses beside its run folder; they need not exist yet.
#[derive(Debug, Clone, Copy)]
pub struct Directories<'a> {
    /// Where runs are kept.
    pub out: &'a Path,
    /// Where what is kept from run to run is.
    pub cache: &'a Path,
    /// Where, below the cache, guests' data are kept from run to run.
    pub gold: &'a Path,
    /// Where guests keep what they write to disk.
    pub guests: &'a Path,
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
    /// Reads this host.
    ///
    /// # Errors
    /// When the affinity mask, `/proc/meminfo` or one of the file systems cannot be read.
    pub fn read(directories: Directories<'_>) -> Result<Self, HostError> {
        let failed = |what| move |error: &dyn std::fmt::Display| HostError { what, reason: error.to_string() };
        // The kernel leaves CPUs that are offline out of the mask.
        let allowed = sched_getaffinity(None).map_err(|error| failed("the CPUs")(&error))?;
        let online = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let cpus: Vec<u32> = online.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
        let memory = procfs::Meminfo::current().map_err(|error| failed("the memory")(&error))?;
        // MemAvailable is there since Linux 3.14; MemFree is the cautious stand-in.
        let memory_available = ByteSize(memory.mem_available.unwrap_or(memory.mem_free));
        let memory_total = ByteSize(memory.mem_total);
        let disk = FileSystem::of(directories.out)?;
        let other = |path| FileSystem::of(path).map(|found| (found.device != disk.device).then_some(found));
        let (cache, guests) = (other(directories.cache)?, other(directories.guests)?);
        let kept = ByteSize(allocated(directories.gold));
        let shared_cores = shared_cores(&cpus);
        let (disk_free, emulated) = (disk.free, Vec::new());
        Ok(Self { cpus, shared_cores, memory_available, memory_total, disk_free, cache, guests, emulated, kept })
    }
}

/// Disk that a directory and all below it take. What cannot be read counts as nothing.
fn allocated(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .map(|(found, path)| found.blocks() * 512 + if found.is_dir() { allocated(&path) } else { 0 })
        .sum()
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
    use super::*;

    #[test]
    fn this_host_has_cpus_memory_and_disk() {
        let folder = tempfile::tempdir().unwrap();
        let gold = folder.path().join("gold");
        std::fs::create_dir_all(gold.join("of/a")).unwrap();
        std::fs::write(gold.join("of/a/copy"), vec![1; 1 << 20]).unwrap();
        let out = Path::new("not-there/yet");
        let directories = Directories { out, cache: folder.path(), gold: &gold, guests: Path::new("/proc/self") };
        let facts = HostFacts::read(directories).unwrap();
        assert!(facts.guests.as_ref().is_some_and(|other| other.path == Path::new("/proc/self")), "{facts:?}");
        assert!(facts.kept.0 >= 1 << 20 && facts.kept.0 < 2 << 20, "{}", facts.kept);
        assert!(!facts.cpus.is_empty() && facts.cpus.is_sorted());
        assert!(facts.memory_available.0 > 1 << 20, "{}", facts.memory_available);
        assert!(facts.memory_total > facts.memory_available, "{}", facts.memory_total);
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
