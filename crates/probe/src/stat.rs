//! CPU time of the host: `/proc/stat`, idle states, and the root group's run time by CPU.

use std::io;
use std::path::{Path, PathBuf};

use procfs::FromRead;
use tare_model::sample::Source;

use crate::ProbeError;
use crate::collector::{Catalog, Collector, SeriesId, Values};
use crate::reader::Reader;
use crate::text;

/// Columns of a CPU line of `/proc/stat`, in its order (proc_stat(5)).
const COLUMNS: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Reads all idle-state files of at most this many CPUs times states; beyond it the files would cost more than the
/// precision is worth (about 1 us each).
const IDLE_FILES_MAX: usize = 256;

/// The columns of one CPU line in units of 10 ms; a column that the kernel does not have is 0.
fn columns(line: &str) -> [f64; COLUMNS.len()] {
    let mut values = [0.0; COLUMNS.len()];
    for (value, cell) in values.iter_mut().zip(line.split_ascii_whitespace().skip(1)) {
        *value = cell.parse().unwrap_or(0.0);
    }
    values
}

/// The number of a line of one CPU (`cpu3 ...`).
fn cpu_number(line: &str) -> Option<u32> {
    line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()
}

/// Reads `/proc/stat`.
pub(crate) struct StatCollector {
    reader: Reader,
    units_per_second: f64,
    host: [SeriesId; COLUMNS.len()],
    /// Parts of the machine, each with its series.
    parts: Vec<(Vec<u32>, [SeriesId; COLUMNS.len()])>,
    counters: Vec<(SeriesId, &'static str)>,
}

impl StatCollector {
    /// A collector of the whole machine as `cpu_*_s`, and of the SUT's and the driver's CPUs, where they are named, as
    /// `sut_cpu_*_s` and `client_cpu_*_s`.
    pub fn new(root: &Path, source: &Source, parts: [&[u32]; 2], catalog: &mut Catalog) -> Result<Self, ProbeError> {
        let path = root.join("proc/stat");
        let unreadable = |source| ProbeError::Unreadable { path: path.clone(), source };
        let mut reader = Reader::open(&path).map_err(unreadable)?;
        let text = reader.read().map_err(unreadable)?;
        if !text.starts_with("cpu ") {
            return Err(ProbeError::Malformed { path, missing: "the line `cpu`" });
        }
        let online: Vec<u32> = text.lines().take_while(|line| line.starts_with("cpu")).filter_map(cpu_number).collect();
        if let Some(&cpu) = parts.into_iter().flatten().find(|cpu| !online.contains(cpu)) {
            return Err(ProbeError::NoSuchCpu { cpu });
        }
        let named =
            |prefix: &str, catalog: &mut Catalog| COLUMNS.map(|c| catalog.add(source, format!("{prefix}cpu_{c}_s")));
        let host = named("", catalog);
        let mut series = Vec::new();
        for (cpus, prefix) in parts.into_iter().zip(["sut_", "client_"]) {
            if !cpus.is_empty() {
                series.push((cpus.to_vec(), named(prefix, catalog)));
            }
        }
        let parts = series;
        let mut counters = Vec::new();
        for (key, series) in
            [("ctxt", "context_switches"), ("intr", "interrupts"), ("procs_running", "run_queue_tasks")]
        {
            if text::value_of(text, key).is_some() {
                counters.push((catalog.add(source, series), key));
            } else {
                catalog.absent(format!("{series}: not in {}", path.display()));
            }
        }
        let units_per_second = rustix::param::clock_ticks_per_second() as f64;
        Ok(Self { reader, units_per_second, host, parts, counters })
    }

    /// CPUs that are online now.
    pub fn online(&mut self) -> Vec<u32> {
        self.reader.read().map_or_else(|_| Vec::new(), |text| text.lines().filter_map(cpu_number).collect())
    }
}

impl Collector for StatCollector {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        let text = self.reader.read()?;
        let mut lines = text.lines();
        let units_per_second = self.units_per_second;
        let mut put = |series: &[SeriesId], sums: [f64; COLUMNS.len()]| {
            for (&series, sum) in series.iter().zip(sums) {
                values.push(at_ns, series, sum / units_per_second);
            }
        };
        put(&self.host, columns(lines.next().unwrap_or_default()));
        let mut sums = vec![[0.0; COLUMNS.len()]; self.parts.len()];
        for line in lines.take_while(|line| line.starts_with("cpu")) {
            let Some(cpu) = cpu_number(line) else { continue };
            for ((cpus, _), sums) in self.parts.iter().zip(&mut sums) {
                if cpus.contains(&cpu) {
                    sums.iter_mut().zip(columns(line)).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        for ((_, series), sums) in self.parts.iter().zip(sums) {
            put(series, sums);
        }
        for &(series, key) in &self.counters {
            if let Some(value) = text::value_of(text, key) {
                values.push(at_ns, series, value);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.reader.path().display().to_string()
    }
}

/// Reads the time that CPUs spent in idle states, as `sut_cpu_sleep_s`.
pub(crate) struct SleepCollector {
    readers: Vec<Reader>,
    series: SeriesId,
}

impl SleepCollector {
    /// `None` (and a note) when the kernel does not count it for each of `cpus`, or there are too many.
    pub fn new(root: &Path, source: &Source, cpus: &[u32], catalog: &mut Catalog) -> Option<Self> {
        let mut readers = Vec::new();
        for cpu in cpus {
            let dir = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpuidle"));
            let before = readers.len();
            readers.extend((0..16).map_while(|state| Reader::open(&dir.join(format!("state{state}/time"))).ok()));
            if readers.len() == before {
                catalog.absent(format!("sut_cpu_sleep_s: no idle states in {}", dir.display()));
                return None;
            }
            if readers.len() > IDLE_FILES_MAX {
                catalog.absent(format!("sut_cpu_sleep_s: more than {IDLE_FILES_MAX} files would have to be read"));
                return None;
            }
        }
        (!readers.is_empty()).then(|| Self { readers, series: catalog.add(source, "sut_cpu_sleep_s") })
    }
}

impl Collector for SleepCollector {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        let mut total_us = 0.0;
        for reader in &mut self.readers {
            total_us += text::first_number(reader.read()?).unwrap_or(0.0);
        }
        values.push(at_ns, self.series, total_us / 1e6);
        Ok(())
    }

    fn name(&self) -> String {
        "CPU idle states".to_owned()
    }
}

/// Reads the time that tasks ran, by CPU, as `sut_cpu_task_s`.
pub(crate) struct TaskCollector {
    reader: Reader,
    parse: fn(&str, &[u32]) -> f64,
    cpus: Vec<u32>,
    series: SeriesId,
}

impl TaskCollector {
    /// From the root of version 1's `cpuacct`, or else from `/proc/schedstat`. `None` (and a note) where that hierarchy is
    /// not mounted, or what is seen of it is not its root, and the kernel has no statistics of its scheduler.
    pub fn new(root: &Path, source: &Source, cpus: &[u32], catalog: &mut Catalog) -> Option<Self> {
        let group = cpuacct_root(root).and_then(|mount| Reader::open(&mount.join("cpuacct.usage_percpu")).ok());
        let (reader, parse): (_, fn(&str, &[u32]) -> f64) = match group {
            Some(reader) => (reader, group_run_ns),
            None => match Reader::open(&root.join("proc/schedstat")) {
                Ok(reader) => (reader, scheduler_run_ns),
                Err(error) => {
                    let what = "sut_cpu_task_s: no root of a version 1 `cpuacct` hierarchy";
                    catalog.absent(format!("{what}, and /proc/schedstat: {error}"));
                    return None;
                }
            },
        };
        Some(Self { reader, parse, cpus: cpus.to_vec(), series: catalog.add(source, "sut_cpu_task_s") })
    }
}

/// Nanoseconds by CPU, on one line.
fn group_run_ns(text: &str, cpus: &[u32]) -> f64 {
    let by_cpu = text.split_ascii_whitespace().zip(0u32..).filter(|(_, cpu)| cpus.contains(cpu));
    by_cpu.filter_map(|(cell, _)| cell.parse::<f64>().ok()).sum()
}

/// The seventh figure of each CPU's line: "sum of all time spent running by tasks on this processor"
/// (Documentation/scheduler/sched-stats.rst), in nanoseconds.
fn scheduler_run_ns(text: &str, cpus: &[u32]) -> f64 {
    let lines = text.lines().filter(|line| cpu_number(line).is_some_and(|cpu| cpus.contains(&cpu)));
    lines.filter_map(|line| line.split_ascii_whitespace().nth(7)?.parse::<f64>().ok()).sum()
}

impl Collector for TaskCollector {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        let run_ns = (self.parse)(self.reader.read()?, &self.cpus);
        values.push(at_ns, self.series, run_ns / 1e9);
        Ok(())
    }

    fn name(&self) -> String {
        self.reader.path().display().to_string()
    }
}

/// Where the root of `cpuacct` is mounted, if the whole host is seen there.
fn cpuacct_root(root: &Path) -> Option<PathBuf> {
    /// Inode of the first control-group namespace (PROC_CGROUP_INIT_INO in include/linux/proc_ns.h). In any other
    /// the mount shows a part of the hierarchy as if it were the root.
    const FIRST_NAMESPACE: &str = "cgroup:[4026531835]";
    let namespace = std::fs::read_link(root.join("proc/self/ns/cgroup")).ok()?;
    if namespace.to_str() != Some(FIRST_NAMESPACE) {
        return None;
    }
    let mounts = procfs::process::MountInfos::from_file(root.join("proc/self/mountinfo")).ok()?;
    let mount = mounts
        .into_iter()
        .find(|mount| mount.fs_type == "cgroup" && mount.root == "/" && mount.super_options.contains_key("cpuacct"))?;
    Some(root.join(mount.mount_point.strip_prefix("/").unwrap_or(&mount.mount_point)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_time_of_tasks_is_that_of_the_named_cpus() {
        assert_eq!(group_run_ns("10 20 40 \n", &[0, 2]), 50.0);
        let text = "version 15\ntimestamp 4294\ncpu0 0 0 9 8 7 6 100 55 4\ndomain0 03 1 2 3 4 5 6 7 8\ncpu1 0 0 9 8 7 6 300 55 4\n\
                    cpu10 0 0 9 8 7 6 999 55 4\n";
        assert_eq!(scheduler_run_ns(text, &[1]), 300.0);
        assert_eq!(scheduler_run_ns(text, &[0, 1]), 400.0);
    }
}
