//! The CPUs of the host, and binding to them.

use std::collections::BTreeSet;
use std::fs;

use rustix::thread::CpuSet;

use crate::error::{LabError, Result};

/// One logical CPU and what it shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// The core, unique within its package.
    pub core: u32,
    /// The package (socket).
    pub package: u32,
    /// The NUMA node; `None` where the kernel shows none.
    pub node: Option<u32>,
}

/// The CPUs that are online, in order.
///
/// # Errors
/// When `/sys` cannot be read.
pub fn online_cpus() -> Result<Vec<u32>> {
    let path = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(path).map_err(|e| LabError::system(format!("read {path}"), e))?;
    parse_cpu_list(&text).ok_or_else(|| LabError::Unavailable {
        tried: format!("read {path}"),
        why: format!("`{}` is no list of CPUs", text.trim()),
        remedy: "Mount sysfs on /sys".into(),
    })
}

/// The CPUs that are online, with core, package and node. Where `/sys` does not tell, each CPU counts
/// as a core of its own in package 0.
///
/// # Errors
/// When `/sys` cannot be read.
pub fn cpu_topology() -> Result<Vec<Cpu>> {
    let number = |id: u32, file: &str| -> Option<u32> {
        let path = format!("/sys/devices/system/cpu/cpu{id}/topology/{file}");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let node = |id: u32| -> Option<u32> {
        fs::read_dir(format!("/sys/devices/system/cpu/cpu{id}"))
            .ok()?
            .flatten()
            .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
    };
    let of = |id| Cpu {
        id,
        core: number(id, "core_id").unwrap_or(id),
        package: number(id, "physical_package_id").unwrap_or(0),
        node: node(id),
    };
    Ok(online_cpus()?.into_iter().map(of).collect())
}

/// Binds a process's main thread, or the calling thread when `pid` is `None`, to `cpus`. Threads and
/// processes that it starts afterwards inherit the binding. Returns what the kernel granted, read back.
///
/// # Errors
/// When the set is empty or names no CPU of this host, or the kernel refuses.
pub fn set_affinity(pid: Option<u32>, cpus: &[u32]) -> Result<Vec<u32>> {
    let list = format_cpu_list(cpus);
    let tried =
        || format!("bind {} to CPUs `{list}`", pid.map_or("this thread".into(), |pid| format!("process {pid}")));
    let mut set = CpuSet::new();
    for cpu in cpus {
        let id = *cpu as usize;
        if id >= CpuSet::MAX_CPU {
            return Err(LabError::Unavailable {
                tried: tried(),
                why: format!("CPU {cpu} is beyond the {} that can be named", CpuSet::MAX_CPU),
                remedy: "Choose CPUs that this host has (lscpu)".into(),
            });
        }
        set.set(id);
    }
    let target = target(pid, tried)?;
    rustix::thread::sched_setaffinity(target, &set).map_err(|source| LabError::System {
        tried: tried(),
        source: source.into(),
        remedy: "Choose CPUs that this host has and that this process may use (taskset -p $$)".into(),
    })?;
    let granted = rustix::thread::sched_getaffinity(target)
        .map_err(|e| LabError::system(format!("read back the result of an attempt to {}", tried()), e))?;
    Ok(numbers(&granted))
}

/// The CPUs that a process's main thread may run on; `None` when there is no such process.
pub(crate) fn affinity(pid: u32) -> Option<Vec<u32>> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::thread::sched_getaffinity(Some(pid)).ok().map(|set| numbers(&set))
}

fn numbers(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

fn target(pid: Option<u32>, tried: impl Fn() -> String) -> Result<Option<rustix::process::Pid>> {
    let Some(pid) = pid else { return Ok(None) };
    match i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        Some(found) => Ok(Some(found)),
        None => Err(LabError::Unavailable {
            tried: tried(),
            why: "no process can have this number".into(),
            remedy: "Give the number of a process that is there".into(),
        }),
    }
}

/// Reads the kernel's form of a list of CPUs, such as `0-3,8`. An empty text is an empty list.
pub(crate) fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last - first > 65_536 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus.into_iter().collect())
}

/// Writes a list of CPUs in the kernel's form, sorted, ranges joined.
pub(crate) fn format_cpu_list(cpus: &[u32]) -> String {
    let sorted: BTreeSet<u32> = cpus.iter().copied().collect();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_and_written_as_the_kernel_does() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("x"), None);
        assert_eq!(format_cpu_list(&[8, 1, 0, 2, 2]), "0-2,8");
        assert_eq!(format_cpu_list(&[]), "");
    }

    #[test]
    fn a_thread_is_bound_and_says_so() {
        let cpus = online_cpus().unwrap();
        std::thread::spawn(move || {
            assert_eq!(set_affinity(None, &cpus[..1]).unwrap(), &cpus[..1]);
            let refused = set_affinity(None, &[]).unwrap_err().to_string();
            assert!(refused.contains("bind this thread"), "{refused}");
            assert!(set_affinity(None, &[100_000]).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn every_cpu_has_its_place() {
        let topology = cpu_topology().unwrap();
        assert_eq!(topology.iter().map(|cpu| cpu.id).collect::<Vec<_>>(), online_cpus().unwrap());
    }
}
