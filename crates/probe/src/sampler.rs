//! The thread that samples.

use std::io;
use std::num::NonZeroU64;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::CpuSet;
use rustix::time::ClockId;
use tare_model::sample::{Sample, Source};

use crate::ProbeError;
use crate::collector::{Catalog, Collector, SeriesId, Values};
use crate::schedule::{Due, Schedule};
use crate::{clock_ns, now_ns};

/// What a probe saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProbeData {
    /// The samples, in the order of time. Counters are cumulative: only their differences mean anything.
    pub samples: Vec<Sample>,
    /// CPU that the probe's own thread spent, nanoseconds.
    pub cpu_ns: u64,
    /// Samples of the regular interval that were not taken because the thread came too late.
    pub lost: u64,
    /// The longest time from when a sample was due to when it was taken, nanoseconds.
    pub lateness_max_ns: u64,
    /// What was looked for and is not there, and what went away while sampling; each in words.
    pub absent: Vec<String>,
    /// Moments of the samples that hold CPU time alone, taken at the edges of turns.
    pub edges: Vec<u64>,
}

/// A set of collectors that is read in one go takes this long at most, or the scheduler came between and the set is
/// read again: figures that are subtracted from one another must be of one moment.
const TOGETHER_NS: u64 = 500_000;

/// How often a set is read again before it is taken as it is.
const ATTEMPTS: u32 = 3;

/// Collectors in two classes.
#[derive(Default)]
pub(crate) struct Collectors {
    /// CPU time of host and groups: read first and together.
    pub together: Vec<Box<dyn Collector>>,
    /// All the rest.
    pub others: Vec<Box<dyn Collector>>,
}

impl Collectors {
    fn append(&mut self, mut more: Self) {
        self.together.append(&mut more.together);
        self.others.append(&mut more.others);
    }
}

#[derive(Default)]
struct Orders {
    collectors: Collectors,
    instants: Vec<u64>,
    edges: Vec<u64>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    catalog: Mutex<Catalog>,
    orders: Mutex<Orders>,
    wake: Condvar,
}

/// A value is never left half-written under these locks, so one that a panicking thread held is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a sampler runs.
pub(crate) struct Settings {
    pub name: String,
    pub source: Source,
    pub interval_ns: u64,
    pub instants: Vec<u64>,
    /// CPUs that the thread may run on; empty means any.
    pub cpus: Vec<u32>,
}

/// What the thread hands back.
struct Yield {
    values: Values,
    edges: Vec<u64>,
    cpu_ns: u64,
    lost: u64,
    lateness_max_ns: u64,
}

/// A running sampler. Dropping it ends its thread.
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Yield>>,
}

impl Sampler {
    /// Starts the thread; returns when its first sample is taken.
    pub fn start(settings: Settings, mut catalog: Catalog, collectors: Collectors) -> Result<Self, ProbeError> {
        if settings.interval_ns == 0 {
            return Err(ProbeError::Interval);
        }
        let own = Own::new(&settings.source, &mut catalog);
        let orders = Orders { collectors, instants: settings.instants.clone(), edges: Vec::new(), stop: false };
        let shared =
            Arc::new(Shared { catalog: Mutex::new(catalog), orders: Mutex::new(orders), wake: Condvar::new() });
        let (ready, is_ready) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name(settings.name.clone())
            .stack_size(256 << 10)
            .spawn(move || {
                let prepared = prepare(&settings.cpus);
                let failed = prepared.is_err();
                let mut worker = Worker::new(theirs, own, settings.interval_ns);
                if !failed {
                    worker.sample(now_ns());
                }
                // The other end is gone only if `start` was, and then the sampler is being dropped.
                let _ = ready.send(prepared);
                if failed { worker.finish() } else { worker.run() }
            })
            .map_err(|source| ProbeError::Thread { source })?;
        let sampler = Self { shared, thread: Some(thread) };
        is_ready.recv().map_err(|_| ProbeError::Died)??;
        Ok(sampler)
    }

    /// More instants at which a sample must be taken.
    pub fn add_instants(&self, instants: &[u64]) {
        lock(&self.shared.orders).instants.extend_from_slice(instants);
        self.shared.wake.notify_one();
    }

    /// More instants at which CPU time must be read, and nothing else.
    pub fn add_edges(&self, edges: &[u64]) {
        lock(&self.shared.orders).edges.extend_from_slice(edges);
        self.shared.wake.notify_one();
    }

    /// Adds one such instant from any thread.
    pub fn edge_adder(&self) -> impl Fn(u64) + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move |edge| {
            lock(&shared.orders).edges.push(edge);
            shared.wake.notify_one();
        }
    }

    /// Makes more collectors, sampled from now on.
    pub fn extend<E>(&self, make: impl FnOnce(&mut Catalog) -> Result<Collectors, E>) -> Result<(), E> {
        let collectors = make(&mut lock(&self.shared.catalog))?;
        lock(&self.shared.orders).collectors.append(collectors);
        self.shared.wake.notify_one();
        Ok(())
    }

    fn end(&mut self) -> Option<std::thread::Result<Yield>> {
        lock(&self.shared.orders).stop = true;
        self.shared.wake.notify_one();
        self.thread.take().map(JoinHandle::join)
    }

    /// Takes a last sample and ends.
    pub fn stop(mut self) -> Result<ProbeData, ProbeError> {
        let Some(Ok(done)) = self.end() else { return Err(ProbeError::Died) };
        let (samples, absent) = std::mem::take(&mut *lock(&self.shared.catalog)).resolve(done.values);
        let Yield { cpu_ns, lost, lateness_max_ns, edges, .. } = done;
        Ok(ProbeData { samples, cpu_ns, lost, lateness_max_ns, absent, edges })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // The samples go with it; a thread that panicked has already said so.
        let _ = self.end();
    }
}

/// Sets up the calling thread: wakes on the nanosecond, runs where it should.
fn prepare(cpus: &[u32]) -> Result<(), ProbeError> {
    // A sandbox may refuse it: samples are then up to 50 us late, and each carries the moment at which it was taken.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if cpus.is_empty() {
        return Ok(());
    }
    let doing = || format!("be bound to CPUs {cpus:?}");
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(ProbeError::Setup { doing: doing(), source: io::ErrorKind::InvalidInput.into() });
        }
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|errno| ProbeError::Setup { doing: doing(), source: errno.into() })
}

/// The probe's account of itself.
struct Own {
    cpu: SeriesId,
    lost: SeriesId,
}

impl Own {
    fn new(source: &Source, catalog: &mut Catalog) -> Self {
        Self { cpu: catalog.add(source, "probe_cpu_s"), lost: catalog.add(source, "probe_lost_samples") }
    }
}

struct Worker {
    shared: Arc<Shared>,
    own: Own,
    collectors: Collectors,
    values: Values,
    edges: Vec<u64>,
    schedule: Schedule,
    gone: Vec<String>,
}

impl Worker {
    fn new(shared: Arc<Shared>, own: Own, interval_ns: u64) -> Self {
        let schedule = Schedule::new(now_ns(), interval_ns);
        let mut worker = Self {
            shared,
            own,
            collectors: Collectors::default(),
            values: Values::default(),
            edges: Vec::new(),
            schedule,
            gone: Vec::new(),
        };
        worker.take_orders();
        worker
    }

    /// Takes what was ordered since; true if that is to stop.
    fn take_orders(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut orders = lock(&shared.orders);
        self.collectors.append(std::mem::take(&mut orders.collectors));
        self.schedule.add(std::mem::take(&mut orders.instants));
        self.schedule.add_edges(std::mem::take(&mut orders.edges));
        orders.stop
    }

    /// Sleeps until a sample is due; true if it is time to stop.
    fn wait(&mut self) -> bool {
        loop {
            if self.take_orders() {
                return true;
            }
            let wait_ns = self.schedule.next_ns().saturating_sub(now_ns());
            if wait_ns == 0 {
                return false;
            }
            let shared = Arc::clone(&self.shared);
            let orders = lock(&shared.orders);
            let nothing_new = |orders: &mut Orders| {
                !orders.stop
                    && orders.instants.is_empty()
                    && orders.edges.is_empty()
                    && orders.collectors.together.is_empty()
                    && orders.collectors.others.is_empty()
            };
            // A wait on a condition variable is a futex with an absolute deadline on CLOCK_MONOTONIC: as exact as
            // clock_nanosleep, and it can be woken by orders.
            drop(shared.wake.wait_timeout_while(orders, Duration::from_nanos(wait_ns), nothing_new));
        }
    }

    fn run(mut self) -> Yield {
        while !self.wait() {
            let now = now_ns();
            self.sample(now);
        }
        self.sample(now_ns());
        self.finish()
    }

    fn sample(&mut self, now: u64) {
        let due = self.schedule.taken(now);
        let first = self.values.len();
        let mut at_ns = now;
        for attempt in 1..=ATTEMPTS {
            collect(&mut self.collectors.together, at_ns, &mut self.values, &mut self.gone);
            let end_ns = now_ns();
            if end_ns - at_ns <= TOGETHER_NS || attempt == ATTEMPTS {
                break;
            }
            self.values.truncate(first);
            at_ns = end_ns;
        }
        if due == Due::Cpu {
            self.edges.push(at_ns);
            return;
        }
        collect(&mut self.collectors.others, at_ns, &mut self.values, &mut self.gone);
        self.values.push(at_ns, self.own.lost, self.schedule.lost() as f64);
        self.values.push(at_ns, self.own.cpu, clock_ns(ClockId::ThreadCPUTime) as f64 / 1e9);
    }

    fn finish(self) -> Yield {
        let mut catalog = lock(&self.shared.catalog);
        for gone in self.gone {
            catalog.absent(gone);
        }
        Yield {
            values: self.values,
            edges: self.edges,
            cpu_ns: clock_ns(ClockId::ThreadCPUTime),
            lost: self.schedule.lost(),
            lateness_max_ns: self.schedule.lateness_max_ns(),
        }
    }
}

/// Reads all collectors; one that fails is let go, and its failure noted.
fn collect(collectors: &mut Vec<Box<dyn Collector>>, at_ns: u64, values: &mut Values, gone: &mut Vec<String>) {
    collectors.retain_mut(|collector| match collector.collect(at_ns, values) {
        Ok(()) => true,
        Err(error) => {
            gone.push(format!("{}: gone while sampling ({error})", collector.name()));
            false
        }
    });
}
