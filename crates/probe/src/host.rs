//! The probe of a host.

use std::io;
use std::path::{Path, PathBuf};

use tare_model::Span;
use tare_model::sample::Source;

use crate::ProbeError;
use crate::collector::{
    Catalog, Collector, CountCollector, CountReader, FileCollector, Pick, SeriesId, Values, Wanted,
};
use crate::group::{self, Group};
use crate::irq::IrqTime;
use crate::network::Interface;
use crate::sampler::{Collectors, ProbeData, Sampler, Settings};
use crate::stat::{SleepCollector, StatCollector, TaskCollector};
use crate::threads::KernelThreads;

/// What a host's probe watches.
#[derive(Debug, Clone, PartialEq)]
pub struct HostConfig {
    /// Time between samples.
    pub interval: Span,
    /// The SUT's CPUs; empty means all.
    pub sut_cpus: Vec<u32>,
    /// The driver's CPUs; empty means that they are not watched apart.
    pub client_cpus: Vec<u32>,
    /// CPUs that the probe may run on, best apart from the SUT's; empty means any.
    pub probe_cpus: Vec<u32>,
    /// Instants (CLOCK_MONOTONIC, nanoseconds) at which a sample is taken whatever the interval: the ends of windows.
    pub at_ns: Vec<u64>,
    /// Control groups.
    pub groups: Vec<Group>,
    /// Network interfaces.
    pub interfaces: Vec<Interface>,
    /// Disks by their names in `/sys/block`.
    pub disks: Vec<String>,
    /// Where `/proc` and `/sys` are looked for: `/`, or a copy of them.
    pub root: PathBuf,
}

impl Default for HostConfig {
    /// Five samples a second of everything that every host has.
    fn default() -> Self {
        Self {
            interval: Span::from_millis(200),
            sut_cpus: Vec::new(),
            client_cpus: Vec::new(),
            probe_cpus: Vec::new(),
            at_ns: Vec::new(),
            groups: Vec::new(),
            interfaces: Vec::new(),
            disks: Vec::new(),
            root: PathBuf::from("/"),
        }
    }
}

/// Samples a host from a thread of its own, until stopped or dropped.
///
/// Series of [`Source::Host`], each with its unit last; counters are cumulative:
///
/// | series | from |
/// |---|---|
/// | `cpu_{user,nice,system,idle,iowait,irq,softirq,steal}_s` | `/proc/stat`, all CPUs together |
/// | `sut_cpu_{...}_s` | the same of the SUT's CPUs together, where those are not simply all |
/// | `client_cpu_{...}_s`, `client_cpus` | the same of the driver's CPUs, where they were named, and how many those are |
/// | `sut_cpu_sleep_s`, `sut_cpu_task_s` | time in idle states and time that tasks ran on the SUT's CPUs, where the kernel tells |
/// | `sut_kernel_thread_s` | time that kernel threads ran on the SUT's CPUs |
/// | `sut_cpus`, `irq_time_accounting` | how many CPUs those are; 1 where interrupts are measured apart; first sample only |
/// | `context_switches`, `interrupts`, `run_queue_tasks`, `load_1min_tasks` | `/proc/stat`, `/proc/loadavg` |
/// | `memory_{available,free,page_cache,dirty}_bytes`, `swap_{in,out}_bytes`, `swap_free_bytes` | `/proc/meminfo`, `/proc/vmstat` |
/// | `pressure_{cpu,memory,io}_{some,full}_s` | `/proc/pressure` |
/// | `disk_NAME_{read,write}_requests`, `disk_NAME_{read,written}_bytes`, `disk_NAME_{read,write,busy}_s` | `/proc/diskstats` |
/// | `nic_LABEL_{rx,tx}_{bytes,packets}`, `nic_LABEL_{rx,tx}_{error,dropped}_packets` | `/proc/net/dev` |
/// | `probe_cpu_s`, `probe_lost_samples` | the probe itself |
///
/// Series of a group: `cpu_{total,user,system}_s`, `throttled_s`, `throttled_periods`, `memory_bytes`,
/// `memory_peak_bytes`, `oom_kills`, `pressure_*` (version 2 only).
pub struct HostProbe {
    sampler: Sampler,
}

impl HostProbe {
    /// Starts sampling; the first sample is taken when this returns.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read, when a CPU, group, interface or disk that was named is not there, or when the
    /// thread cannot be started and bound. What only some kernels have is never an error: see [`ProbeData::absent`].
    pub fn start(config: HostConfig) -> Result<Self, ProbeError> {
        let mut catalog = Catalog::default();
        let collectors = collectors(&config, &mut catalog)?;
        let settings = Settings {
            name: "probe-host".to_owned(),
            source: Source::Host,
            interval_ns: config.interval.ns,
            instants: config.at_ns,
            cpus: config.probe_cpus,
        };
        Ok(Self { sampler: Sampler::start(settings, catalog, collectors)? })
    }

    /// More instants (CLOCK_MONOTONIC, nanoseconds) at which a sample is taken. One that is past is served at once and
    /// counts as late.
    pub fn add_instants(&self, instants: &[u64]) {
        self.sampler.add_instants(instants);
    }

    /// More instants at which CPU time of host and groups is read, and nothing else: the edges of turns.
    pub fn add_edges(&self, edges: &[u64]) {
        self.sampler.add_edges(edges);
    }

    /// What adds such an edge from any thread, for as long as it is kept: for turns that nobody knows beforehand.
    pub fn edge_adder(&self) -> impl Fn(u64) + Send + Sync + use<> {
        self.sampler.edge_adder()
    }

    /// One more control group, from the next sample on.
    ///
    /// # Errors
    /// When none of its directories tells its CPU time.
    pub fn add_group(&self, group: &Group) -> Result<(), ProbeError> {
        self.sampler.extend(|catalog| group.collectors(catalog))
    }

    /// Samples what is counted of a guest elsewhere, from the next sample on. What cannot be read is noted as absent.
    pub fn add_counts(&self, source: &Source, read: CountReader) {
        let make = |catalog: &mut Catalog| {
            let made = CountCollector::new(source, read, catalog);
            let others = made.map(|made| Box::new(made) as Box<dyn Collector>).into_iter().collect();
            Ok::<_, std::convert::Infallible>(Collectors { others, ..Collectors::default() })
        };
        let Ok(()) = self.sampler.extend(make);
    }

    /// Takes a last sample, ends the thread and hands over what was seen.
    ///
    /// # Errors
    /// When the thread died.
    pub fn stop(self) -> Result<ProbeData, ProbeError> {
        self.sampler.stop()
    }
}

fn collectors(config: &HostConfig, catalog: &mut Catalog) -> Result<Collectors, ProbeError> {
    let source = Source::Host;
    let root = config.root.as_path();
    let mut all = Collectors::default();
    let mut stat = StatCollector::new(root, &source, [&config.sut_cpus, &config.client_cpus], catalog)?;
    let cpus = if config.sut_cpus.is_empty() { stat.online() } else { config.sut_cpus.clone() };
    all.together.push(Box::new(stat));
    if let Some(sleep) = SleepCollector::new(root, &source, &cpus, catalog) {
        all.together.push(Box::new(sleep));
    }
    if let Some(task) = TaskCollector::new(root, &source, &cpus, catalog) {
        all.together.push(Box::new(task));
    }
    let irq_time = IrqTime::detect(root).apart();
    if let Some((threads, search)) = KernelThreads::new(root, &source, &cpus, irq_time, catalog) {
        all.together.push(Box::new(threads));
        all.others.push(Box::new(search));
    }
    for group in &config.groups {
        let Collectors { mut together, mut others } = group.collectors(catalog)?;
        all.together.append(&mut together);
        all.others.append(&mut others);
    }
    let constants = [
        (catalog.add(&source, "sut_cpus"), cpus.len() as f64),
        (catalog.add(&source, "irq_time_accounting"), f64::from(u8::from(irq_time))),
    ];
    let clients = config.client_cpus.len();
    let clients = (clients > 0).then(|| (catalog.add(&source, "client_cpus"), clients as f64));
    all.others.push(Box::new(Once(constants.into_iter().chain(clients).collect())));
    all.others.extend(system(root, &source, catalog));
    for resource in ["cpu", "memory", "io"] {
        let path = root.join("proc/pressure").join(resource);
        all.others.extend(boxed(FileCollector::open(&path, &source, group::pressure(resource), catalog)));
    }
    for interface in &config.interfaces {
        all.others.push(interface.collector(root, &source, catalog)?);
    }
    if !config.disks.is_empty() {
        // What a disk wrote in a turn is asked for as its CPU time is.
        all.together.push(disks(root, &config.disks, catalog)?);
    }
    Ok(all)
}

/// Load, memory and swap: what hosts and guests alike have.
pub(crate) fn system(root: &Path, source: &Source, catalog: &mut Catalog) -> Vec<Box<dyn Collector>> {
    let key = |series: &str, key, factor| (series.to_owned(), Pick::Key(key), factor);
    let page = rustix::param::page_size() as f64;
    let files: [(&str, Vec<Wanted>); 3] = [
        ("proc/loadavg", vec![("load_1min_tasks".to_owned(), Pick::First, 1.0)]),
        (
            "proc/meminfo",
            vec![
                key("memory_available_bytes", "MemAvailable", 1024.0),
                key("memory_free_bytes", "MemFree", 1024.0),
                key("memory_page_cache_bytes", "Cached", 1024.0),
                key("memory_dirty_bytes", "Dirty", 1024.0),
                key("swap_free_bytes", "SwapFree", 1024.0),
            ],
        ),
        ("proc/vmstat", vec![key("swap_in_bytes", "pswpin", page), key("swap_out_bytes", "pswpout", page)]),
    ];
    files
        .into_iter()
        .filter_map(|(file, wanted)| boxed(FileCollector::open(&root.join(file), source, wanted, catalog)))
        .collect()
}

fn boxed(collector: Option<FileCollector>) -> Option<Box<dyn Collector>> {
    collector.map(|collector| Box::new(collector) as Box<dyn Collector>)
}

fn disks(root: &Path, names: &[String], catalog: &mut Catalog) -> Result<Box<dyn Collector>, ProbeError> {
    /// `/proc/diskstats` counts sectors of 512 bytes whatever the disk's own (Documentation/admin-guide/iostats.rst).
    const SECTOR_BYTES: f64 = 512.0;
    const COLUMNS: [(&str, usize, f64); 7] = [
        ("read_requests", 3, 1.0),
        ("write_requests", 7, 1.0),
        ("read_bytes", 5, SECTOR_BYTES),
        ("written_bytes", 9, SECTOR_BYTES),
        ("read_s", 6, 1e-3),
        ("write_s", 10, 1e-3),
        ("busy_s", 12, 1e-3),
    ];
    let path = root.join("proc/diskstats");
    let text =
        std::fs::read_to_string(&path).map_err(|source| ProbeError::Unreadable { path: path.clone(), source })?;
    let mut wanted = Vec::new();
    for name in names {
        if crate::text::cell(&text, name, 2, 5).is_none() {
            return Err(ProbeError::Disk { name: name.clone() });
        }
        wanted.extend(COLUMNS.map(|(series, column, factor)| {
            (format!("disk_{name}_{series}"), Pick::Cell { key: name.clone(), key_column: 2, column }, factor)
        }));
    }
    let collector = FileCollector::open(&path, &Source::Host, wanted, catalog);
    boxed(collector).ok_or(ProbeError::Malformed { path, missing: "a line a disk" })
}

/// Values that do not change: reported with the first sample and never again.
struct Once(Vec<(SeriesId, f64)>);

impl Collector for Once {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        for (series, value) in self.0.drain(..) {
            values.push(at_ns, series, value);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "constants".to_owned()
    }
}
