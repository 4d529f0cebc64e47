//! The CPU that each virtual CPU stays on, read back from the kernel.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};
use tare_model::guest::ParityRow;

use crate::parity::{self, ranges};

/// Asked: of so many virtual CPUs, each on one of `cpus` in turn. Granted: where `threads`, which carry them in their order,
/// may run.
pub(crate) fn row(count: u32, threads: &[u32], cpus: &[u32]) -> ParityRow {
    let asked = (0..count).zip(cpus.iter().cycle()).map(|(_, cpu)| cpu.to_string()).collect::<Vec<_>>().join(" ");
    let sets: Option<Vec<String>> = threads.iter().map(|&thread| Some(ranges(&may_run_on(thread)?))).collect();
    let granted = sets.filter(|sets| !sets.is_empty()).map(|sets| sets.join(" "));
    parity::row("CPU of each virtual CPU", asked, granted, "sched_getaffinity of each thread")
}

fn may_run_on(thread: u32) -> Option<Vec<u32>> {
    let set = sched_getaffinity(Pid::from_raw(i32::try_from(thread).ok()?)).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_may_run_elsewhere_is_not_as_asked() {
        let own = std::process::id();
        let everywhere = may_run_on(own).unwrap_or_default();
        assert!(!everywhere.is_empty());
        let pinned = row(1, &[own], &everywhere[..1]);
        assert_eq!(pinned.equal, everywhere.len() == 1, "{pinned:?}");
        assert_eq!(pinned.granted, Some(ranges(&everywhere)));
        assert_eq!(row(3, &[own], &[4, 7]).asked, "4 7 4");
        assert_eq!(row(1, &[], &[0]).granted, None, "a thread that was not found is not as asked");
    }
}
