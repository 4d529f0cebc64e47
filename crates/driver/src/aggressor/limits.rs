//! What an aggressor may take, as its guest sees it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::memory::page_bytes;

/// Caches of a machine that does not say what it has: those of a usual server's cores together.
const USUAL_CACHES: u64 = 32 << 20;

const MEMINFO: &str = "/proc/meminfo";

/// Whole pages of so many bytes.
pub(super) fn whole_pages(bytes: u64) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    bytes - bytes % page_bytes()
}

/// Memory that the guest may use, bytes: the least of what it was promised, what its control groups allow and what its kernel has.
pub(super) fn memory_bytes(promised: u64) -> u64 {
    let allowed = own_groups("memory").into_iter().filter_map(|group| memory_limit(&group));
    allowed.chain(of_meminfo(&read(Path::new(MEMINFO)), "MemTotal")).fold(promised, u64::min)
}

/// Memory that is free for a guest that was promised so much, bytes: at most what its groups and its kernel can hand out without taking it
/// from a program. Pages of files count as free.
pub(super) fn free_memory_bytes(promised: u64) -> u64 {
    let free = own_groups("memory").into_iter().filter_map(|group| free_in(&group));
    free.chain(of_meminfo(&read(Path::new(MEMINFO)), "MemAvailable")).fold(promised, u64::min)
}

fn memory_limit(group: &Path) -> Option<u64> {
    number(group, &["memory.max", "memory.limit_in_bytes"])
}

fn free_in(group: &Path) -> Option<u64> {
    let limit = memory_limit(group)?;
    let used = number(group, &["memory.current", "memory.usage_in_bytes"])?;
    let stat = read(&group.join("memory.stat"));
    // The first version's own lines leave out the groups below; those with `total_` do not.
    let of = |name: &str| of_stat(&stat, &format!("total_{name}")).or_else(|| of_stat(&stat, name)).unwrap_or(0);
    let files = of("active_file").saturating_add(of("inactive_file"));
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

fn of_stat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
}

/// Processes and threads that the guest's control groups allow; `None` where they do not limit them.
pub(super) fn processes() -> Option<u64> {
    own_groups("pids").into_iter().filter_map(|group| number(&group, &["pids.max"])).min()
}

/// What the second and third level of the caches hold that the first CPU uses, bytes.
pub(super) fn cache_bytes() -> u64 {
    match caches_in(Path::new("/sys/devices/system/cpu/cpu0/cache")) {
        0 => USUAL_CACHES,
        bytes => bytes,
    }
}

/// `indexN/level` and `indexN/size`, such as `2048K` (Documentation/ABI/testing/sysfs-devices-system-cpu).
fn caches_in(folder: &Path) -> u64 {
    let caches = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let large = caches.filter(|cache| number(cache, &["level"]).is_some_and(|level| level == 2 || level == 3));
    large.filter_map(|cache| read(&cache.join("size")).trim().strip_suffix('K')?.parse::<u64>().ok()).sum::<u64>() << 10
}

fn own_groups(controller: &str) -> Vec<PathBuf> {
    groups(Path::new("/sys/fs/cgroup"), &read(Path::new("/proc/self/cgroup")), controller)
}

/// The control groups of this process that govern something, from its own up, as far as they can be seen here (cgroups(7)): of the second
/// version, where the line has no controller, and of the first.
fn groups(root: &Path, own: &str, controller: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let base = match controllers {
            "" => root.to_owned(),
            some if some.split(',').any(|one| one == controller) => root.join(controller),
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        // A group outside of what this process sees begins with `..`; those below the root are then all that can be looked at.
        let seen = path.components().all(|part| matches!(part, Component::Normal(_)));
        let within = if seen { path } else { Path::new("") };
        found.extend(within.ancestors().map(|group| base.join(group)));
    }
    found
}

/// The first of these files that holds a number.
fn number(folder: &Path, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| read(&folder.join(name)).trim().parse().ok())
}

/// A value of `/proc/meminfo`, which counts in KiB, in bytes.
fn of_meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn read(path: &Path) -> String {
    // What is not there limits nothing.
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn with(name: &str, files: &[(&str, &str)]) -> Self {
            let folder = Self(std::env::temp_dir().join(format!("tare-limits-{name}-{}", std::process::id())));
            for (file, text) in files {
                let path = folder.0.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            folder
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn groups_of_both_versions_are_looked_at_from_their_own_up() {
        let root = Path::new("/g");
        let path = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(groups(root, "0::/a/b\n", "memory"), path(&["/g/a/b", "/g/a", "/g/"]));
        assert_eq!(groups(root, "9:cpu:/x\n8:hugetlb,memory:/a\n", "memory"), path(&["/g/memory/a", "/g/memory/"]));
        assert_eq!(groups(root, "0::/../../b\n", "memory"), path(&["/g/"]), "nothing outside of the root");
        assert_eq!(groups(root, "", "memory"), path(&[]));
    }

    #[test]
    fn files_in_memory_are_free_and_the_rest_of_what_is_used_is_not() {
        let stat = "anon 5\nactive_file 100\ninactive_file 200\n";
        let files = [
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "500\n"),
            ("a/memory.stat", stat),
            ("b/memory.max", "max\n"),
            ("c/memory.limit_in_bytes", "1000\n"),
            ("c/memory.usage_in_bytes", "900\n"),
            ("c/memory.stat", "active_file 1\ntotal_active_file 100\ntotal_inactive_file 0\n"),
        ];
        let folder = Folder::with("memory", &files);
        let group = |name: &str| folder.0.join(name);
        assert_eq!((memory_limit(&group("a")), free_in(&group("a"))), (Some(1000), Some(800)));
        assert_eq!((memory_limit(&group("b")), free_in(&group("b"))), (None, None));
        assert_eq!((memory_limit(&group("c")), free_in(&group("c"))), (Some(1000), Some(200)));
    }

    #[test]
    fn a_guest_never_has_more_memory_than_was_promised_and_more_than_its_kernel_has() {
        let total = of_meminfo(&read(Path::new(MEMINFO)), "MemTotal").unwrap();
        assert_eq!(memory_bytes(1 << 20), 1 << 20);
        assert!(memory_bytes(u64::MAX) <= total && free_memory_bytes(u64::MAX) <= total);
        assert!(free_memory_bytes(u64::MAX) > 0);
    }

    #[test]
    fn second_and_third_level_caches_count_and_others_do_not() {
        let files = [
            ("index0/level", "1\n"),
            ("index0/size", "32K\n"),
            ("index2/level", "2\n"),
            ("index2/size", "1024K\n"),
            ("index3/level", "3\n"),
            ("index3/size", "32768K\n"),
        ];
        let folder = Folder::with("caches", &files);
        assert_eq!(caches_in(&folder.0), 33 << 20);
        assert_eq!(caches_in(&folder.0.join("none")), 0);
        assert!(cache_bytes() > 0);
    }
}
