//! A host with a configured amount of memory, real guests of which each takes a part of it, and a workload whose figures
//! follow from the number of guests: for the scale-up of a density case.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tare_controller::{HostAccess, Registry, Shipped};
use tare_memory::Kernel;
use tare_memory::cost::Cost;
use tare_memory::host::HostNow;
use tare_model::Histogram;
use tare_model::field::FieldError;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::histogram::Bin;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::{Flag, Measurement, Part};
use tare_model::units::ByteSize;
use tare_platform::{Guest, Platform, PlatformError, Reach, Site};
use tare_wire::{Link, Reply, Request, WireError};
use tare_workload::{Calibration, Driven, GuestTraits, Prepared, Schedule, Traits, WorkSite, Workload, WorkloadError};

use crate::forward::forward;
use crate::platform::not_started;
use crate::{REASON, failure};

/// Memory of the host.
pub const TOTAL: u64 = 16 << 30;
/// Available before the first guest.
pub const AVAILABLE: u64 = 10 << 30;
/// What each guest takes of it.
pub const EACH: u64 = 1 << 30;
/// Metric of the workload: seconds, a hundredth for each guest that is at work.
pub const RESPONSE: &str = "response_time_p99_s";
/// Operations a second that a calibration finds.
pub const CALIBRATED: f64 = 1234.5;
/// Operations a second of each guest.
pub const RATE_OF_EACH: f64 = 100.0;

/// What happens at some number of guests (from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// Nothing.
    None,
    /// That guest does not start.
    Start(u32),
    /// Its workload cannot be set up.
    Prepare(u32),
    /// It is lost while its workload is set up.
    Gone(u32),
    /// While its workload is set up, the kernel kills a process of somebody else's for memory.
    Elsewhere(u32),
    /// It takes for ever to be set up, while the host swaps.
    Swap(u32),
    /// It takes for ever to be set up, while memory runs out.
    Drain(u32),
    /// With so many at work, the first is killed.
    Lost(u32),
    /// With so many at work, tasks wait for memory.
    Pressure(u32),
    /// With so many at work, the work of one is wrong.
    Wrong(u32),
    /// No load is found before the first trial.
    Calibration,
}

/// How the host stands.
#[derive(Debug, Default)]
struct Now {
    /// Guests that were started and not destroyed.
    guests: AtomicU32,
    oom_kills: AtomicU64,
    swap_out_pages: AtomicU64,
    drained_bytes: AtomicU64,
    /// In a hundredth.
    pressure: AtomicU32,
    calibrations: AtomicU32,
    rates: Mutex<Vec<Option<f64>>>,
}

/// The host, the platforms and the workload.
#[derive(Debug, Clone)]
pub struct Crowd {
    /// What happens.
    pub mishap: Mishap,
    /// A tree in place of the kernel's files.
    pub tree: PathBuf,
    /// How many machines there are elsewhere, in place of guests of this host.
    machines: Option<u32>,
    now: Arc<Now>,
}

impl Crowd {
    /// A host with nothing on it, whose kernel is in this directory.
    pub fn new(mishap: Mishap, tree: &Path) -> std::io::Result<Self> {
        make_kernel(tree)?;
        Ok(Self { mishap, tree: tree.to_owned(), machines: None, now: Arc::default() })
    }

    /// The same with guests that are so many machines elsewhere, as far as anybody can see.
    #[must_use]
    pub fn elsewhere(self, machines: u32) -> Self {
        Self { machines: Some(machines), ..self }
    }

    /// How often a load was sought.
    pub fn calibrations(&self) -> u32 {
        self.now.calibrations.load(Ordering::Relaxed)
    }

    /// The rates that guests were offered, by what was driven.
    pub fn rates(&self) -> Vec<Option<f64>> {
        self.now.rates.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Guests that stand.
    pub(crate) fn standing(&self) -> u32 {
        self.now.guests.load(Ordering::Relaxed)
    }

    /// A setting of the kernel's merging.
    pub fn setting(&self, name: &str) -> String {
        let text = fs::read_to_string(self.tree.join("sys/kernel/mm/ksm").join(name)).unwrap_or_default();
        text.trim().to_owned()
    }
}

/// A kernel's files as far as merging goes.
fn make_kernel(tree: &Path) -> std::io::Result<()> {
    let ksm = tree.join("sys/kernel/mm/ksm");
    let huge = tree.join("sys/kernel/mm/transparent_hugepage");
    let scanner = tree.join("proc/7");
    [&ksm, &huge, &scanner].into_iter().try_for_each(fs::create_dir_all)?;
    let numbers = [
        ("run", "0"),
        ("pages_to_scan", "100"),
        ("sleep_millisecs", "20"),
        ("use_zero_pages", "0"),
        ("pages_shared", "0"),
        ("pages_sharing", "0"),
        ("pages_unshared", "5"),
        ("pages_volatile", "1"),
        ("pages_scanned", "1000"),
        ("ksm_zero_pages", "262144"),
        ("full_scans", "3"),
        ("general_profit", "1000000"),
    ];
    numbers.into_iter().try_for_each(|(name, text)| fs::write(ksm.join(name), format!("{text}\n")))?;
    fs::write(huge.join("enabled"), "always [madvise] never\n")?;
    fs::write(scanner.join("comm"), "ksmd\n")?;
    fs::write(scanner.join("schedstat"), "2000000000 1 1\n")?;
    fs::write(scanner.join("stat"), "7 (ksmd) S 2 0 0 0 -1 2097216 0 0 0 0 100 100 0 0 25 5 1 0 11 0 0\n")?;
    fs::write(
        tree.join("proc/meminfo"),
        "MemTotal: 16777216 kB\nMemFree: 9000000 kB\nMemAvailable: 10485760 kB\nBuffers: 0 kB\nCached: 0 kB\n",
    )
}

impl HostAccess for Crowd {
    fn kernel(&self) -> Kernel {
        Kernel::at(&self.tree)
    }

    fn now(&self) -> Result<HostNow, String> {
        // Merging makes a pass between two looks.
        if self.setting("run") == "1" {
            let passes = self.setting("full_scans").parse::<u64>().unwrap_or(0) + 1;
            let file = self.tree.join("sys/kernel/mm/ksm/full_scans");
            // In one stroke, as the kernel does.
            let beside = self.tree.join(format!("passes-{passes}-{:?}", std::thread::current().id()));
            fs::write(&beside, format!("{passes}\n"))
                .and_then(|()| fs::rename(&beside, &file))
                .map_err(|e| e.to_string())?;
        }
        let guests = u64::from(self.now.guests.load(Ordering::Relaxed));
        let taken = guests * EACH + self.now.drained_bytes.load(Ordering::Relaxed);
        Ok(HostNow {
            total_bytes: TOTAL,
            available_bytes: AVAILABLE.saturating_sub(taken),
            oom_kills: self.now.oom_kills.load(Ordering::Relaxed),
            swap_out_pages: self.now.swap_out_pages.load(Ordering::Relaxed),
            pressure: Some(f64::from(self.now.pressure.load(Ordering::Relaxed)) / 100.0),
            ..HostNow::default()
        })
    }

    fn cost(&self, _: &[u32]) -> Result<Cost, String> {
        Ok(Cost { unique_bytes: 700 << 20, shared_bytes: 100 << 20, ..Cost::default() })
    }
}

impl Registry for Crowd {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        Ok(Box::new(Crowded { inner: Shipped.platform(name, options)?, crowd: self.clone() }))
    }

    fn workload(&self, _: &str, _: &Value, _: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        Ok(Box::new(self.clone()))
    }

    fn host(&self) -> Arc<dyn HostAccess> {
        Arc::new(self.clone())
    }
}

/// Waits until the agent is asked to stop, or is gone.
fn until_ended(agent: &Link) -> WorkloadError {
    let spec = tare_wire::ExecSpec::new(&["sh", "-c", "sleep 600"], Duration::from_secs(700), 64);
    let ended = match agent.call(Request::Exec(spec), Duration::from_secs(700)) {
        Ok(Reply::Executed(_)) => "it ran to its end".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    };
    WorkloadError::Command(ended)
}

impl Workload for Crowd {
    fn metrics(&self) -> Vec<MetricSpec> {
        let rate = MetricSpec::new("crowd_rate", "rate", Unit::OperationsPerSecond, Better::Higher).primary();
        vec![rate, MetricSpec::new(RESPONSE, "response time", Unit::Seconds, Better::Lower)]
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let guests = vec![GuestTraits { touches: ByteSize(EACH), ..GuestTraits::of(*guest) }];
        Traits { several_guests: true, density: true, calibrated: true, guests, ..Traits::of(*guest) }
    }

    fn calibrate(
        &self,
        _: &WorkSite<'_>,
        _: &mut dyn Prepared,
        cpu_s: &(dyn Fn() -> Option<f64> + Sync),
    ) -> Result<Calibration, WorkloadError> {
        self.now.calibrations.fetch_add(1, Ordering::Relaxed);
        // A guest without a group of its own has no account.
        let counted = cpu_s().unwrap_or(0.0);
        if self.mishap == Mishap::Calibration || counted < 0.0 {
            return Err(failure());
        }
        Ok(Calibration { rate_per_s: CALIBRATED, cpu_share: 0.55, tries: vec![(CALIBRATED, 0.55)] })
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        let count = guests.len() as f64;
        let parts: Vec<Part> = guests.iter().flat_map(|guest| guest.measurement.parts.clone()).collect();
        let mut response = Histogram::default();
        guests.iter().filter_map(|one| one.measurement.histograms.get("response")).for_each(|one| response.merge(one));
        let mut all = guests.into_iter().next()?;
        all.work *= count;
        all.measurement.metrics.insert("crowd_rate".into(), RATE_OF_EACH * count);
        all.measurement.metrics.insert(RESPONSE.into(), 0.01 * count);
        all.measurement.histograms.insert("response".into(), response);
        all.measurement.parts = parts;
        Some(all)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let number = site.index + 1;
        match self.mishap {
            Mishap::Prepare(guest) if guest == number => return Err(failure()),
            Mishap::Gone(guest) if guest == number => {
                return Err(WorkloadError::Agent { side: "guest", source: WireError::Gone { reason: REASON.into() } });
            }
            Mishap::Elsewhere(guest) if guest == number => {
                self.now.oom_kills.fetch_add(1, Ordering::Relaxed);
            }
            Mishap::Swap(guest) if guest == number => {
                self.now.swap_out_pages.fetch_add(100_000, Ordering::Relaxed);
                return Err(until_ended(site.guest));
            }
            Mishap::Drain(guest) if guest == number => {
                self.now.drained_bytes.store(AVAILABLE, Ordering::Relaxed);
                let ended = until_ended(site.guest);
                self.now.drained_bytes.store(0, Ordering::Relaxed);
                return Err(ended);
            }
            _ => {}
        }
        Ok(Box::new(AtWork { crowd: self.clone(), number }))
    }
}

/// One guest's end.
struct AtWork {
    crowd: Crowd,
    /// Which guest, from 1.
    number: u32,
}

impl AtWork {
    fn standing(&self) -> u32 {
        self.crowd.now.guests.load(Ordering::Relaxed)
    }
}

impl Prepared for AtWork {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let (first, all) = (self.number == 1, self.standing());
        match self.crowd.mishap {
            Mishap::Lost(guests) if guests == all && first => return Err(failure()),
            Mishap::Lost(guests) if guests == all => return Err(until_ended(site.guest)),
            Mishap::Pressure(guests) if guests == all => {
                self.crowd.now.pressure.store(90, Ordering::Relaxed);
                let ended = until_ended(site.guest);
                self.crowd.now.pressure.store(0, Ordering::Relaxed);
                return Err(ended);
            }
            _ => {}
        }
        if first {
            self.crowd.now.rates.lock().unwrap_or_else(PoisonError::into_inner).push(site.rate_per_s);
        }
        let start = schedule.start_at_ns + schedule.phases.steady_offset_ns();
        let end = start + schedule.phases.steady_state.ns;
        let left = end.saturating_sub(tare_probe::now_ns());
        std::thread::sleep(Duration::from_nanos(left));
        let metrics = std::collections::BTreeMap::from([("crowd_rate".to_owned(), RATE_OF_EACH)]);
        let bins = vec![Bin { low: 1000, high: 1000, count: 10 }];
        let response = Histogram { bins, min: 1000, max: 1000, sum: 10_000, ..Histogram::default() };
        let measurement = Measurement {
            parts: vec![Part { guest: self.number, driver: None, metrics: metrics.clone(), instance: None }],
            metrics,
            histograms: [("response".to_owned(), response)].into(),
            ..Measurement::default()
        };
        Ok(Driven {
            measurement,
            window_ns: (start, end),
            work: RATE_OF_EACH * (end - start) as f64 / 1e9,
            facts: [("at work".to_owned(), all.to_string())].into(),
            flags: vec![Flag { kind: "crowd".into(), detail: format!("{all} at work") }],
            ..Driven::default()
        })
    }

    fn verify(&mut self, _: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let wrong = self.crowd.mishap == Mishap::Wrong(self.standing()) && self.number == self.standing();
        Ok(wrong.then(|| REASON.to_owned()))
    }
}

/// A real platform whose guests are counted.
struct Crowded {
    inner: Box<dyn Platform>,
    crowd: Crowd,
}

impl Platform for Crowded {
    forward!(look, disclosures, comparable, versions);

    fn machines(&self) -> Option<u32> {
        self.crowd.machines
    }

    fn reach(&self) -> Reach {
        if self.crowd.machines.is_some() { Reach::Outside } else { self.inner.reach() }
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        let number = self.crowd.now.guests.load(Ordering::Relaxed) + 1;
        if self.crowd.mishap == Mishap::Start(number) {
            return Err(not_started(spec));
        }
        // The host's real kernel has no part in this.
        let inner = self.inner.start(site, &GuestSpec { merge: false, ..spec.clone() })?;
        self.crowd.now.guests.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Counted { inner, crowd: self.crowd.clone(), stands: true }))
    }
}

/// A real guest that is counted.
struct Counted {
    inner: Box<dyn Guest>,
    crowd: Crowd,
    stands: bool,
}

impl Counted {
    fn gone(&mut self) {
        if std::mem::take(&mut self.stands) {
            self.crowd.now.guests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gone();
    }
}

impl Guest for Counted {
    forward!(spec, link, address, parity, facts, data, start_time_s, links, drops, diagnostics, kill);

    fn groups(&self) -> Vec<PathBuf> {
        if self.crowd.machines.is_some() { Vec::new() } else { self.inner.groups() }
    }

    fn destroy(&mut self) -> Result<(), PlatformError> {
        self.inner.destroy()?;
        self.gone();
        Ok(())
    }
}
