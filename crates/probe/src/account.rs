//! The CPU bill of a window.

use tare_model::sample::{CpuAccount, Sample, Source};

use crate::timeline::Timeline;

/// Most that the printing of one figure of `/proc/stat` in units of 10 ms can add to or take from its gain, seconds.
const STAT_ROUNDING_S: f64 = 0.01;

/// Where the CPU time of the SUT went in a window or in several that do not overlap (CLOCK_MONOTONIC nanoseconds), from a host's samples.
///
/// `sut_cpus` are those that the probe was started with (empty: all). Counters are interpolated to the window's ends;
/// let the probe sample there (`at_ns`) for exact figures.
///
/// - `total_s` is the window times the CPUs, less what they were idle, waited for I/O or had stolen; it is at least
///   the time that tasks are known to have run.
/// - The guests' time is the sum over the measured ones.
/// - A group's total is the scheduler's; its user and system parts are in the proportion that the kernel tells.
/// - Where interrupts are measured apart, `softirq_s` and `irq_s` are all of them. Where they are charged to the task
///   they interrupt, these are only those that interrupted an idle CPU (busy time in which no task ran); the others
///   are inside the groups, `kernel_s` and `foreign_s`. Nothing is counted twice in any case.
/// - `kernel_s` is the time of kernel threads in no guest's group (ksoftirqd, kworkers).
/// - `foreign_s` is the rest: all other tasks, short-lived ones too, and the probe where it ran on the SUT's CPUs.
///   Parts that exceed the total by rounding raise it.
///
/// `None` if the samples do not reach over the whole window for the host, a guest or a neighbour, are of another
/// number of CPUs, or do not distinguish interrupts from foreign tasks.
pub fn cpu_account(
    samples: &[Sample],
    windows: &[(u64, u64)],
    sut_cpus: &[u32],
    guests: &[Source],
    neighbours: &[Source],
) -> Option<CpuAccount> {
    let timeline = Timeline::new(samples);
    let cpus = timeline.constant(&Source::Host, "sut_cpus")?;
    if !sut_cpus.is_empty() && sut_cpus.len() as f64 != cpus {
        return None;
    }
    let lengths = windows.iter().map(|(start, end)| Some(end.checked_sub(*start)? as f64 / 1e9));
    let window_s = lengths.sum::<Option<f64>>()?;
    let host = Host { timeline: &timeline, windows, capacity_s: window_s * cpus, cpus, part: !sut_cpus.is_empty() };
    let (mut guest_user_s, mut guest_system_s) = (0.0, 0.0);
    for guest in guests {
        let (user_s, system_s) = group(&timeline, guest, windows)?;
        guest_user_s += user_s;
        guest_system_s += system_s;
    }
    let mut neighbours_s = 0.0;
    for neighbour in neighbours {
        neighbours_s += timeline.gain_over(neighbour, "cpu_total_s", windows)?;
    }
    let steal_s = host.gain("steal")?;
    // Where no kernel thread is seen, what they ran is foreign.
    let kernel_s = timeline.gain_over(&Source::Host, "sut_kernel_thread_s", windows).unwrap_or(0.0);
    let named_s = guest_user_s + guest_system_s + neighbours_s + kernel_s;
    let task_s = timeline.gain_over(&Source::Host, "sut_cpu_task_s", windows).map(|task_s| task_s.max(named_s));
    let busy_s = (host.capacity_s - host.idle_s()? - steal_s).max(task_s.unwrap_or(0.0)).max(0.0);
    let (softirq_s, irq_s) = host.interrupts(busy_s, task_s)?;
    let known_s = named_s + softirq_s + irq_s;
    let foreign_s = (busy_s - known_s).max(0.0);
    Some(CpuAccount {
        window_s,
        cpus: cpus as u32,
        guest_user_s,
        guest_system_s,
        neighbours_s,
        softirq_s,
        irq_s,
        kernel_s,
        foreign_s,
        total_s: known_s + foreign_s,
        steal_s,
        probe_s: timeline.gain_over(&Source::Host, "probe_cpu_s", windows).unwrap_or(0.0),
    })
}

/// User and system time of a group: its total, split as its parts are. All of it counts as user when the window is so
/// short that no tick fell into the group, as the kernel does (cputime_adjust()).
fn group(timeline: &Timeline<'_>, source: &Source, windows: &[(u64, u64)]) -> Option<(f64, f64)> {
    let total_s = timeline.gain_over(source, "cpu_total_s", windows)?;
    let user_s = timeline.gain_over(source, "cpu_user_s", windows)?;
    let system_s = timeline.gain_over(source, "cpu_system_s", windows)?;
    let parts_s = user_s + system_s;
    let system_share = if parts_s > 0.0 { system_s / parts_s } else { 0.0 };
    Some((total_s * (1.0 - system_share), total_s * system_share))
}

/// The host's own counters in the windows.
struct Host<'a> {
    timeline: &'a Timeline<'a>,
    windows: &'a [(u64, u64)],
    /// CPU seconds that the windows hold.
    capacity_s: f64,
    cpus: f64,
    /// Whether the SUT's CPUs are only a part of the host's.
    part: bool,
}

impl Host<'_> {
    /// What a column of `/proc/stat` gained on the SUT's CPUs.
    fn gain(&self, column: &str) -> Option<f64> {
        let prefix = if self.part { "sut_" } else { "" };
        self.timeline.gain_over(&Source::Host, &format!("{prefix}cpu_{column}_s"), self.windows)
    }

    /// Time idle or waiting for I/O: `/proc/stat`'s, refined by the idle states' microseconds within the rounding of
    /// the former. (Those lag behind by a sleep that has not ended, which is why they do not replace it.)
    fn idle_s(&self) -> Option<f64> {
        let coarse_s = self.gain("idle")? + self.gain("iowait")?;
        let rounding_s = 2.0 * STAT_ROUNDING_S * self.cpus * self.windows.len() as f64;
        let fine_s = self.timeline.gain_over(&Source::Host, "sut_cpu_sleep_s", self.windows);
        let idle_s = fine_s.map_or(coarse_s, |fine_s| fine_s.clamp(coarse_s - rounding_s, coarse_s + rounding_s));
        Some(idle_s.clamp(0.0, self.capacity_s))
    }

    /// Software and hardware interrupts that no task was charged for; `None` where they cannot be distinguished from tasks.
    fn interrupts(&self, busy_s: f64, task_s: Option<f64>) -> Option<(f64, f64)> {
        let (softirq_s, irq_s) = (self.gain("softirq")?, self.gain("irq")?);
        if self.timeline.constant(&Source::Host, "irq_time_accounting")? > 0.0 {
            return Some((softirq_s, irq_s));
        }
        let outside_s = (busy_s - task_s?).max(0.0);
        let sampled_s = softirq_s + irq_s;
        let irq_share = if sampled_s > 0.0 { irq_s / sampled_s } else { 0.0 };
        Some((outside_s * (1.0 - irq_share), outside_s * irq_share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: &str = "target";
    const WINDOW: (u64, u64) = (1_000_000_000, 3_000_000_000);

    /// Counters that start at 10 before the window and gain what is given, from a host whose SUT is 2 CPUs.
    fn samples(host: &[(&str, f64)], groups: &[(&str, [f64; 3])], irq_time: f64) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut counter = |source: &Source, series: &str, gain: f64| {
            for (at_ns, value) in [(WINDOW.0, 10.0), (WINDOW.1, 10.0 + gain)] {
                samples.push(Sample { at_ns, source: source.clone(), series: series.into(), value });
            }
        };
        for column in ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"] {
            let name = format!("sut_cpu_{column}_s");
            let gain = host.iter().find(|(series, _)| *series == column).map_or(0.0, |&(_, gain)| gain);
            counter(&Source::Host, &name, gain);
        }
        for &(series, gain) in host.iter().filter(|(series, _)| series.ends_with("_s")) {
            counter(&Source::Host, series, gain);
        }
        for (name, gains) in groups {
            for (series, gain) in ["cpu_total_s", "cpu_user_s", "cpu_system_s"].into_iter().zip(gains) {
                counter(&Source::Guest((*name).into()), series, *gain);
            }
        }
        for (series, value) in [("sut_cpus", 2.0), ("irq_time_accounting", irq_time)] {
            samples.push(Sample { at_ns: 0, source: Source::Host, series: series.into(), value });
        }
        samples
    }

    fn account(samples: &[Sample], neighbours: &[&str]) -> Option<CpuAccount> {
        let neighbours: Vec<_> = neighbours.iter().map(|name| Source::Guest((*name).into())).collect();
        cpu_account(samples, &[WINDOW], &[2, 3], &[Source::Guest(GUEST.into())], &neighbours)
    }

    fn parts(a: &CpuAccount) -> f64 {
        a.guest_user_s + a.guest_system_s + a.neighbours_s + a.softirq_s + a.irq_s + a.kernel_s + a.foreign_s
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn where_interrupts_are_apart_all_of_them_are_a_part_of_their_own() {
        let host = [("idle", 1.5), ("iowait", 0.3), ("steal", 0.2), ("softirq", 0.4), ("irq", 0.1)];
        let groups = [(GUEST, [0.6, 0.2, 0.4]), ("busy", [0.5, 0.5, 0.0])];
        let a = account(&samples(&host, &groups, 1.0), &["busy"]).unwrap();
        // 2 CPUs x 2 s - 1.5 idle - 0.3 waiting - 0.2 stolen
        assert!(close(a.total_s, 2.0) && close(parts(&a), a.total_s), "{a:?}");
        assert!(close(a.softirq_s, 0.4) && close(a.irq_s, 0.1) && close(a.neighbours_s, 0.5), "{a:?}");
        assert!(close(a.foreign_s, 0.4) && close(a.steal_s, 0.2) && a.cpus == 2, "{a:?}");
    }

    #[test]
    fn softirqs_charged_to_the_guest_are_not_counted_again() {
        // Tasks ran 1.2 s of the 1.5 s busy: 0.3 s of interrupts hit idle CPUs; the rest of the 0.8 s is in the guest.
        let host = [("idle", 2.5), ("softirq", 0.8), ("sut_cpu_task_s", 1.2)];
        let a = account(&samples(&host, &[(GUEST, [1.0, 0.3, 0.6])], 0.0), &[]).unwrap();
        assert!(close(a.softirq_s, 0.3) && close(a.irq_s, 0.0) && close(a.foreign_s, 0.2), "{a:?}");
        assert!(close(a.total_s, 1.5) && close(parts(&a), 1.5), "{a:?}");
        let unknown = account(&samples(&host[..2], &[(GUEST, [1.0, 0.3, 0.6])], 0.0), &[]);
        assert_eq!(unknown, None, "half a second of interrupts, or of another program");
    }

    #[test]
    fn what_other_programs_used_is_foreign_and_the_kernels_own_threads_are_not() {
        let used = |compiler_s: f64| {
            let task_s = 1.0 + 0.25 + compiler_s;
            let host = [("idle", 2.6 - compiler_s), ("sut_cpu_task_s", task_s), ("sut_kernel_thread_s", 0.25)];
            account(&samples(&host, &[(GUEST, [1.0, 0.3, 0.6])], 0.0), &[]).unwrap()
        };
        let (quiet, noisy) = (used(0.0), used(0.7));
        assert!(
            close(quiet.foreign_s, 0.0) && close(quiet.softirq_s, 0.15) && close(quiet.kernel_s, 0.25),
            "{quiet:?}"
        );
        assert!(close(noisy.foreign_s, 0.7) && close(noisy.total_s, quiet.total_s + 0.7), "{noisy:?}");
        assert!(close(quiet.work_s(), 1.4) && close(noisy.work_s(), 1.4), "what the guest cost is the same");
    }

    #[test]
    fn a_task_that_the_scheduler_has_not_counted_yet_is_not_counted_twice() {
        // /proc/schedstat is behind by a guest's busy loop that has not been switched yet.
        let host = [("idle", 2.8), ("sut_cpu_task_s", 0.1)];
        let a = account(&samples(&host, &[(GUEST, [1.0, 0.3, 0.6])], 0.0), &[]).unwrap();
        assert!(close(a.softirq_s, 0.2) && close(a.foreign_s, 0.0) && close(a.total_s, 1.2), "{a:?}");
    }

    #[test]
    fn several_measured_guests_are_summed_and_none_may_be_missing() {
        let all = samples(&[("idle", 2.0)], &[(GUEST, [0.5, 0.2, 0.3]), ("target-2", [0.4, 0.4, 0.0])], 1.0);
        let account = |names: &[&str]| {
            let guests: Vec<_> = names.iter().map(|name| Source::Guest((*name).into())).collect();
            cpu_account(&all, &[WINDOW], &[2, 3], &guests, &[])
        };
        let a = account(&[GUEST, "target-2"]).unwrap();
        assert!(close(a.guest_user_s, 0.6) && close(a.guest_system_s, 0.3) && close(parts(&a), a.total_s), "{a:?}");
        assert_eq!(account(&[GUEST, "target-3"]), None);
    }

    #[test]
    fn a_groups_total_is_split_as_its_sampled_parts_are() {
        let a = account(&samples(&[("idle", 2.0)], &[(GUEST, [0.9, 0.2, 0.4])], 1.0), &[]).unwrap();
        assert!(close(a.guest_user_s, 0.3) && close(a.guest_system_s, 0.6), "{a:?}");
    }

    #[test]
    fn parts_beyond_the_total_raise_it_and_nothing_is_negative() {
        let a = account(&samples(&[("idle", 3.995)], &[(GUEST, [0.012, 0.01, 0.002])], 1.0), &[]).unwrap();
        assert!(close(a.foreign_s, 0.0) && close(a.total_s, 0.012), "{a:?}");
    }

    #[test]
    fn idle_states_refine_but_never_override() {
        let total = |fine: f64| {
            let host = [("idle", 2.0), ("sut_cpu_sleep_s", fine)];
            account(&samples(&host, &[(GUEST, [0.5, 0.5, 0.0])], 1.0), &[]).unwrap().total_s
        };
        assert!(close(total(2.013), 1.987));
        // A CPU that slept through the end of the window: its sleep is not counted yet. Two figures of two CPUs are
        // rounded, so at most 40 ms are believed.
        assert!(close(total(1.2), 2.04));
    }

    #[test]
    fn an_account_over_turns_is_what_was_used_in_them() {
        let mut all = samples(&[("idle", 2.0), ("softirq", 0.2)], &[(GUEST, [0.6, 0.6, 0.0])], 1.0);
        // Until half time nothing but idling; the counters move in the second half alone.
        let half = (WINDOW.0 + WINDOW.1) / 2;
        let middle: Vec<Sample> = all
            .iter()
            .filter(|sample| sample.at_ns == WINDOW.0)
            .map(|sample| {
                let idle = sample.series == "sut_cpu_idle_s";
                Sample { at_ns: half, value: sample.value + if idle { 2.0 } else { 0.0 }, ..sample.clone() }
            })
            .collect();
        all.extend(middle);
        let of =
            |windows: &[(u64, u64)]| cpu_account(&all, windows, &[2, 3], &[Source::Guest(GUEST.into())], &[]).unwrap();
        let (first, second) = (of(&[(WINDOW.0, half)]), of(&[(half, WINDOW.1)]));
        assert!(close(first.total_s, 0.0) && close(second.guest_user_s, 0.6), "{first:?} {second:?}");
        let both = of(&[(WINDOW.0, half), (half, WINDOW.1)]);
        assert!(close(both.window_s, 2.0) && close(both.guest_user_s, 0.6) && close(both.softirq_s, 0.2), "{both:?}");
    }

    #[test]
    fn what_was_not_sampled_over_the_whole_window_is_not_guessed() {
        let good = samples(&[("idle", 2.0)], &[(GUEST, [0.5, 0.5, 0.0])], 1.0);
        assert!(account(&good, &[]).is_some());
        assert_eq!(account(&good, &["never-sampled"]), None);
        let cut: Vec<_> = good.iter().filter(|sample| sample.at_ns < WINDOW.1).cloned().collect();
        assert_eq!(account(&cut, &[]), None);
        assert_eq!(cpu_account(&good, &[WINDOW], &[2], &[Source::Guest(GUEST.into())], &[]), None, "other CPUs");
    }
}
