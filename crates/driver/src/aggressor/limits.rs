//! What an aggressor may take, as its guest sees it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::memory::page_bytes;

/// Caches of a machine that does not say what it has: those of a usual server's cores together.
const USUAL_CACHES: u64 = 32 << 20;

/// Whole pages of so many bytes.
pub(super) fn whole_pages(bytes: u64) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    bytes - bytes % page_bytes()
}

/// Memory that the guest may use, bytes: the least of what it was promised, what its control groups allow and what its kernel has.
pub(super) fn memory_bytes(promised: u64) -> u64 {
    let groups = groups(Path::new("/sys/fs/cgroup"), &read(Path::new("/proc/self/cgroup")), "memory");
    let allowed = groups.iter().filter_map(|group| number(group, &["memory.max", "memory.limit_in_bytes"]));
    allowed.chain(of_meminfo(&read(Path::new("/proc/meminfo")), "MemTotal")).fold(promised, u64::min)
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
