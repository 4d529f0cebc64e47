//! What a thread used of CPUs, and what it waited for them.

use crate::sys::{CpuTime, thread_cpu};

/// CPU time of one thread or of several, and the time that they were ready to run and did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// CPU time.
    pub cpu: CpuTime,
    /// Ready but not running, nanoseconds; 0 where the kernel does not tell ([`run_delay_ns`]).
    pub run_delay_ns: u64,
}

impl Usage {
    /// Since the calling thread was started.
    pub fn of_this_thread() -> Self {
        Self { cpu: thread_cpu(), run_delay_ns: run_delay_ns().unwrap_or(0) }
    }

    /// What was added since `before`.
    pub const fn since(self, before: Self) -> Self {
        Self {
            cpu: CpuTime {
                user_ns: self.cpu.user_ns.saturating_sub(before.cpu.user_ns),
                system_ns: self.cpu.system_ns.saturating_sub(before.cpu.system_ns),
            },
            run_delay_ns: self.run_delay_ns.saturating_sub(before.run_delay_ns),
        }
    }

    /// Adds another thread's, or another stretch of this one's.
    pub const fn add(&mut self, other: Self) {
        self.cpu.user_ns += other.cpu.user_ns;
        self.cpu.system_ns += other.cpu.system_ns;
        self.run_delay_ns += other.run_delay_ns;
    }
}

/// Time since its start in which the calling thread was ready but waited for a CPU, nanoseconds: the second
/// field of `/proc/thread-self/schedstat` (sched-stats.rst of the kernel). Some microseconds a call, so at the
/// edges of a window only. `None` where there is no such file.
pub(crate) fn run_delay_ns() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

fn parse(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    #[test]
    fn the_second_field_is_the_wait() {
        assert_eq!(parse("573875 42 1\n"), Some(42));
        assert_eq!(parse("573875"), None);
    }

    #[test]
    fn two_busy_threads_on_one_cpu_wait_for_each_other() {
        if run_delay_ns().is_none() {
            println!("SKIPPED: this kernel has no /proc/thread-self/schedstat");
            return;
        }
        let allowed = sched_getaffinity(None).unwrap();
        let one = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let spin = move || {
            let mut set = CpuSet::new();
            set.set(one);
            sched_setaffinity(None, &set).unwrap();
            let before = Usage::of_this_thread();
            let used = |u: Usage| u.cpu.user_ns + u.cpu.system_ns;
            // Until it has run for 30 ms, whatever else the CPU has to do.
            while used(Usage::of_this_thread().since(before)) < 30_000_000 {
                std::hint::black_box(1u64.wrapping_mul(3));
            }
            Usage::of_this_thread().since(before).run_delay_ns
        };
        let threads = [std::thread::spawn(spin), std::thread::spawn(spin)];
        let waited: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert!(waited > 5_000_000, "they waited {waited} ns in all");
    }
}
