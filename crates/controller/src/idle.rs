//! What a guest costs the host's memory while it does nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tare_lab::keyed_number;

/// The kernel brings the figures of a group up to date when many pages have changed (64 for every CPU), and else
/// every 2 s (mm/memcontrol.c: `FLUSH_TIME`). Until then, a guest of few pages may be reported as having none.
const UP_TO_DATE_WITHIN: Duration = Duration::from_millis(2200);
/// How often is looked whether they are.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// So small a part of all, one in so many, may be missing.
const MISSING_PART: u64 = 100;

/// Memory of a guest's control group, everything below the group included, bytes.
///
/// What the guest alone put into memory and what goes only when the guest goes: anonymous pages of all its
/// processes (a virtual machine's memory as a rule), shared memory and files in memory (an overlay in memory, a virtual
/// machine's memory behind memfd), and what the kernel holds for it (page tables, stacks, sockets, inodes). The page
/// cache is apart: it goes when somebody needs the memory, and who is charged for a file that several read is
/// chance. Huge pages of hugetlbfs are in no figure of the group, so its processes are asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleMemory {
    /// Anonymous pages.
    pub anonymous: u64,
    /// Shared memory and files of tmpfs.
    pub shared: u64,
    /// Memory of the kernel on behalf of the group; `None` where the kernel does not tell it apart.
    pub kernel: Option<u64>,
    /// Huge pages of hugetlbfs.
    pub huge: u64,
    /// Page cache of files on disks.
    pub cache: u64,
}

/// Reads the memory of the group that has these directories, once the group's figures have all that its processes
/// have; `None` where none of the directories accounts for memory.
pub fn read(groups: &[PathBuf]) -> Option<IdleMemory> {
    read_within(groups, UP_TO_DATE_WITHIN)
}

fn read_within(groups: &[PathBuf], timeout: Duration) -> Option<IdleMemory> {
    let directory = groups.iter().find(|directory| accounted(directory).is_some())?;
    let deadline = Instant::now() + timeout;
    loop {
        // The processes first: what grows between the two looks is then no reason to wait.
        let mapped = Mapped::by_all_below(directory);
        let idle = IdleMemory { huge: mapped.huge(), ..accounted(directory)? };
        if idle.anonymous + idle.bytes() / MISSING_PART >= mapped.anonymous || Instant::now() >= deadline {
            return Some(idle);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What the group's own figures say at this moment.
fn accounted(directory: &Path) -> Option<IdleMemory> {
    let stat = fs::read_to_string(directory.join("memory.stat")).ok()?;
    version_2(&stat).or_else(|| version_1(&stat, directory))
}

/// What processes have mapped, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mapped {
    /// Anonymous pages, each process's part of them.
    anonymous: u64,
    /// Huge pages that one process has alone.
    huge_private: u64,
    /// The most shared huge pages of any process: processes of one guest share the same, its memory.
    huge_shared: u64,
}

impl Mapped {
    /// By the processes in a group and in all groups below it. One that ended meanwhile has nothing.
    fn by_all_below(directory: &Path) -> Self {
        let mut all = Self::default();
        let members = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        for process in members.lines() {
            let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            all.add(Self::from_rollup(&rollup));
        }
        for below in fs::read_dir(directory).into_iter().flatten().flatten() {
            if below.file_type().is_ok_and(|kind| kind.is_dir()) {
                all.add(Self::by_all_below(&below.path()));
            }
        }
        all
    }

    fn from_rollup(text: &str) -> Self {
        let bytes = |key: &str| kilobytes(text, key).unwrap_or(0) << 10;
        Self {
            anonymous: bytes("Pss_Anon:"),
            huge_private: bytes("Private_Hugetlb:"),
            huge_shared: bytes("Shared_Hugetlb:"),
        }
    }

    fn add(&mut self, other: Self) {
        self.anonymous += other.anonymous;
        self.huge_private += other.huge_private;
        self.huge_shared = self.huge_shared.max(other.huge_shared);
    }

    const fn huge(self) -> u64 {
        self.huge_private + self.huge_shared
    }
}

/// The number of kilobytes behind a key of /proc.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

/// Version 2: `memory.stat` of a group covers what is below it. `file` contains `shmem`; `kernel` is there since
/// Linux 5.18, its parts before.
fn version_2(stat: &str) -> Option<IdleMemory> {
    let (anonymous, shared) = (keyed_number(stat, "anon")?, keyed_number(stat, "shmem")?);
    let parts = || {
        let parts = ["kernel_stack", "pagetables", "percpu", "sock", "slab"].map(|key| keyed_number(stat, key));
        parts.iter().any(Option::is_some).then(|| parts.iter().flatten().sum())
    };
    let kernel = keyed_number(stat, "kernel").or_else(parts);
    Some(IdleMemory { anonymous, shared, kernel, huge: 0, cache: keyed_number(stat, "file")?.saturating_sub(shared) })
}

/// Version 1: the `total_` lines cover what is below the group; kernel memory has a counter of its own.
fn version_1(stat: &str, directory: &Path) -> Option<IdleMemory> {
    let shared = keyed_number(stat, "total_shmem")?;
    let kernel = fs::read_to_string(directory.join("memory.kmem.usage_in_bytes")).ok();
    Some(IdleMemory {
        anonymous: keyed_number(stat, "total_rss")?,
        shared,
        kernel: kernel.and_then(|text| text.trim().parse().ok()),
        huge: 0,
        cache: keyed_number(stat, "total_cache")?.saturating_sub(shared),
    })
}

impl IdleMemory {
    /// All but the page cache.
    pub fn bytes(&self) -> u64 {
        self.anonymous + self.shared + self.kernel.unwrap_or(0) + self.huge
    }

    /// The mean of several guests'; `None` of none. A figure that is missing for one of them is missing from the mean.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let count = u64::try_from(all.len()).ok().filter(|&count| count > 0)?;
        let mean = |of: fn(&Self) -> u64| all.iter().map(of).sum::<u64>() / count;
        let kernel = all.iter().map(|idle| idle.kernel).collect::<Option<Vec<u64>>>();
        Some(Self {
            anonymous: mean(|idle| idle.anonymous),
            shared: mean(|idle| idle.shared),
            kernel: kernel.map(|kernel| kernel.into_iter().sum::<u64>() / count),
            huge: mean(|idle| idle.huge),
            cache: mean(|idle| idle.cache),
        })
    }

    /// How it adds up, for disclosure.
    pub fn facts(&self) -> [(String, String); 5] {
        // Two decimals: a guest that is one process has a tenth.
        let mebibytes = |bytes: u64| format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20));
        let kernel = self.kernel.map_or_else(|| "not listed by this kernel, left out".to_owned(), mebibytes);
        [
            ("idle guest, anonymous memory".to_owned(), mebibytes(self.anonymous)),
            ("idle guest, shared memory".to_owned(), mebibytes(self.shared)),
            ("idle guest, kernel memory".to_owned(), kernel),
            ("idle guest, huge pages".to_owned(), mebibytes(self.huge)),
            ("idle guest, page cache (not counted)".to_owned(), mebibytes(self.cache)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of a control group as the kernel shows it.
    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn version_2_counts_anonymous_shared_and_kernel_memory_and_no_page_cache() {
        let stat = "anon 1000\nfile 5000\nkernel 300\nkernel_stack 100\nshmem 2000\nslab 99\n";
        let folder = group(&[("memory.stat", stat)]);
        let idle = read(&[PathBuf::from("/nonexistent"), folder.path().to_owned()]).unwrap();
        assert_eq!(idle, IdleMemory { anonymous: 1000, shared: 2000, kernel: Some(300), huge: 0, cache: 3000 });
        assert_eq!(idle.bytes(), 3300);
        let old = group(&[("memory.stat", "anon 1\nfile 2\nkernel_stack 100\nshmem 2\npagetables 10\nslab 5\n")]);
        assert_eq!(read(&[old.path().to_owned()]).unwrap().kernel, Some(115));
    }

    #[test]
    fn version_1_counts_what_is_below_the_group_too() {
        let stat = "cache 1\nrss 2\nshmem 3\ntotal_cache 5000\ntotal_rss 1000\ntotal_rss_huge 0\ntotal_shmem 2000\n";
        let folder = group(&[("memory.stat", stat), ("memory.kmem.usage_in_bytes", "300\n")]);
        let idle = read(&[folder.path().to_owned()]).unwrap();
        assert_eq!(idle, IdleMemory { anonymous: 1000, shared: 2000, kernel: Some(300), huge: 0, cache: 3000 });
        let without = group(&[("memory.stat", stat)]);
        let idle = read(&[without.path().to_owned()]).unwrap();
        assert_eq!((idle.kernel, idle.bytes()), (None, 3000));
        assert!(idle.facts().iter().any(|(_, value)| value.contains("left out")));
    }

    #[test]
    fn figures_that_lag_behind_the_processes_are_waited_for_and_not_for_ever() {
        let own = std::process::id().to_string();
        let stat = |anon: u64| format!("anon {anon}\nfile 0\nkernel 1\nshmem 0\n");
        let folder = group(&[("memory.stat", &stat(0))]);
        // A process of a group below counts.
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/cgroup.procs"), format!("{own}\n")).unwrap();
        let groups = [folder.path().to_owned()];
        assert_eq!(read_within(&groups, Duration::ZERO).unwrap().anonymous, 0, "what is there is returned in the end");
        let all = 64 << 30;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                let beside = folder.path().join("new");
                fs::write(&beside, stat(all)).unwrap();
                fs::rename(beside, folder.path().join("memory.stat")).unwrap();
            });
            assert_eq!(read_within(&groups, Duration::from_secs(60)).unwrap().anonymous, all);
        });
    }

    #[test]
    fn huge_pages_count_and_shared_ones_once() {
        let rollup = "00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss: 9 kB\nPss_Anon:        12 kB\n\
                      Shared_Hugetlb:     4096 kB\nPrivate_Hugetlb:    2048 kB\n";
        let mut all = Mapped::from_rollup(rollup);
        assert_eq!(all, Mapped { anonymous: 12 << 10, huge_private: 2 << 20, huge_shared: 4 << 20 });
        all.add(Mapped { huge_shared: 2 << 20, ..Mapped::default() });
        assert_eq!(all.huge(), 6 << 20);
        let idle = IdleMemory { anonymous: 1, shared: 2, kernel: None, huge: 4, cache: 8 };
        assert_eq!(idle.bytes(), 7);
    }

    #[test]
    fn the_mean_of_several_guests_is_each_parts_mean() {
        let one = IdleMemory { anonymous: 10, shared: 0, kernel: Some(4), huge: 0, cache: 2 };
        let other = IdleMemory { anonymous: 20, shared: 2, kernel: Some(6), huge: 0, cache: 4 };
        let mean = IdleMemory { anonymous: 15, shared: 1, kernel: Some(5), huge: 0, cache: 3 };
        assert_eq!(IdleMemory::mean(&[one, other]), Some(mean));
        assert_eq!(IdleMemory::mean(&[one]), Some(one));
        assert_eq!(IdleMemory::mean(&[one, IdleMemory { kernel: None, ..other }]).unwrap().kernel, None);
        assert_eq!(IdleMemory::mean(&[]), None);
    }

    #[test]
    fn without_a_group_there_is_no_figure_and_never_a_zero() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[PathBuf::from("/nonexistent")]), None);
        let cpu_only = group(&[("cpu.stat", "usage_usec 1\n")]);
        assert_eq!(read(&[cpu_only.path().to_owned()]), None);
    }
}
