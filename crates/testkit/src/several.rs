//! A workload of several guests and drivers, with data of its own, of which one part fails in a chosen way.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tare_controller::{Registry, Shipped};
use tare_model::Refusal;
use tare_model::drive::{DriveResult, DriveSpec, SocketDrive};
use tare_model::field::FieldError;
use tare_model::guest::{DataPlace, GuestData, GuestSize, GuestSpec};
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::packed::Packed;
use tare_model::trial::{Measurement, Part};
use tare_model::units::ByteSize;
use tare_platform::{Guest, Platform, PlatformError, Site};
use tare_wire::{ExecSpec, Link, Reply, Request, WireError};
use tare_workload::{
    Data, Driven, DriverSite, Prepared, Schedule, SetupSite, Traits, WorkSite, Workload, WorkloadError,
};

use crate::forward::forward;
use crate::{REASON, failure};

/// What goes wrong, in the second of several guests where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// It cannot be set up, while the first is at something that takes long.
    Prepare,
    /// The first guest's load fails, while the second is at something that takes long.
    Drive,
    /// Load takes long.
    Hang,
    /// The guest's second driver cannot be reached.
    Driver,
    /// Its work was wrong.
    Verify,
    /// What is done before the first trial fails.
    Setup,
    /// What is done before the first trial takes long.
    AheadHang,
    /// Something that it needs is missing on the host.
    Refusal,
}

/// What was seen of the workload at work.
#[derive(Debug, Default)]
pub struct Seen {
    /// How often [`Workload::set_up_once`] was called.
    pub setups: u32,
    /// How often something was begun that takes long.
    pub begun: u32,
    /// How what takes long ended.
    pub ended: Vec<String>,
}

/// Shipped platforms that can hand data over, and the workload in place of every other.
#[derive(Debug, Clone)]
pub struct Several {
    /// What goes wrong.
    pub trouble: Trouble,
    /// Where the workload makes its gold copy; `None`: it has no data.
    pub gold: Option<PathBuf>,
    /// What was seen.
    pub seen: Arc<Mutex<Seen>>,
}

impl Several {
    /// Nothing was seen yet.
    pub fn new(trouble: Trouble, gold: Option<PathBuf>) -> Self {
        Self { trouble, gold, seen: Arc::default() }
    }

    /// Adds to what was seen, or looks at it.
    pub fn with_seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has an agent do something for ten minutes, and notes how that ended.
    fn takes_long(&self, agent: &Link) -> Result<(), WorkloadError> {
        self.with_seen(|seen| seen.begun += 1);
        let ended = match run(agent, "sleep 600", LONG) {
            Ok(_) => "ran to its end".to_owned(),
            Err(why) => why,
        };
        self.with_seen(|seen| seen.ended.push(ended.clone()));
        Err(WorkloadError::Command(ended))
    }
}

/// More than what takes long takes.
const LONG: Duration = Duration::from_secs(700);
/// What the gold copy holds, and where.
const CONTENT: &str = "gold\n";
const FILE: &str = "copy";
/// The metric.
pub const RATE: &str = "operations_per_s";

/// Runs a line of the shell; what it printed.
fn run(agent: &Link, line: &str, timeout: Duration) -> Result<String, String> {
    let spec = ExecSpec::new(&["sh", "-c", line], timeout, 4096);
    match agent.call(Request::Exec(spec), timeout) {
        Ok(Reply::Executed(done)) if done.code == Some(0) => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        Ok(other) => Err(format!("`{line}`: {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

impl Registry for Several {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        Ok(Box::new(Handing { inner: Shipped.platform(name, options)? }))
    }

    fn workload(&self, _: &str, _: &Value, _: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        Ok(Box::new(self.clone()))
    }
}

impl Workload for Several {
    fn metrics(&self) -> Vec<MetricSpec> {
        vec![MetricSpec::new(RATE, "operations", Unit::OperationsPerSecond, Better::Higher).primary()]
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { several_guests: true, ..Traits::of(*guest) }
    }

    fn refusal(&self) -> Option<Refusal> {
        (self.trouble == Trouble::Refusal).then(|| Refusal::new(REASON, "do not use it"))
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        self.with_seen(|seen| seen.setups += 1);
        (site.note)(&format!("for {} guests", site.guests));
        match (self.trouble, &self.gold) {
            (Trouble::Setup, _) => Err(failure()),
            (Trouble::AheadHang, _) => self.takes_long(site.here).map(|()| Data::default()),
            (_, None) => Ok(Data::default()),
            (_, Some(gold)) => {
                let line = format!("mkdir -p {0} && printf 'gold\\n' > {0}/{FILE}", gold.display());
                // Both agents are good for it.
                let agent = if site.cache.is_dir() { site.here } else { site.client };
                run(agent, &line, site.timeout).map_err(WorkloadError::Command)?;
                Ok(Data::of_guests(GuestData { gold: gold.clone(), size: ByteSize(1 << 20), shared: false, log: None }))
            }
        }
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        let parts: Vec<Part> = guests.iter().flat_map(|guest| guest.measurement.parts.clone()).collect();
        let (work, rate) = guests.iter().fold((0.0, 0.0), |(work, rate), guest| {
            (work + guest.work, rate + guest.measurement.metrics.get(RATE).copied().unwrap_or(0.0))
        });
        let mut all = guests.into_iter().next()?;
        all.work = work;
        all.measurement.parts = parts;
        all.measurement.metrics.insert(RATE.into(), rate);
        Some(all)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        if self.trouble == Trouble::Prepare {
            return if site.index == 1 { Err(failure()) } else { self.takes_long(site.guest).and(Err(failure())) };
        }
        let found = site.data.map(|data| {
            let file = Path::new(&data.path).join(FILE);
            run(site.guest, &format!("cat {}", file.display()), site.timeout).map_err(WorkloadError::Command)
        });
        let found = found.transpose()?;
        Ok(Box::new(Running { workload: self.clone(), found, drives: Vec::new() }))
    }
}

/// One guest's end.
struct Running {
    workload: Several,
    /// What the guest's data hold.
    found: Option<String>,
    /// Numbers of the drivers.
    drives: Vec<u64>,
}

impl Running {
    fn part(site: &WorkSite<'_>, driver: Option<usize>, rate: f64) -> Part {
        let driver = driver.and_then(|driver| u32::try_from(driver + 1).ok());
        Part { guest: site.index + 1, driver, metrics: [(RATE.to_owned(), rate)].into(), instance: None }
    }
}

/// Has one driver's agent do its part.
fn ask(driver: &DriverSite<'_>, request: Request, timeout: Duration) -> Result<Reply, WorkloadError> {
    driver.client.call(request, timeout).map_err(client)
}

const fn client(source: WireError) -> WorkloadError {
    WorkloadError::Agent { side: "client", source }
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        for driver in site.drivers {
            let spec = DriveSpec {
                seed: schedule.seed,
                record: false,
                interval_ns: schedule.interval_ns,
                ..DriveSpec::new(Packed::of(&SocketDrive::Null)?, Vec::new(), site.load, schedule.phases)
            };
            if let Reply::Prepared { drive } = ask(driver, Request::PrepareDrive(Box::new(spec)), site.timeout)? {
                self.drives.push(drive);
            }
        }
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        match (self.workload.trouble, site.index) {
            (Trouble::Drive, 0) => return Err(failure()),
            (Trouble::Drive | Trouble::Hang, 1) => self.workload.takes_long(site.guest)?,
            // A number that no driver has.
            (Trouble::Driver, 1) => self.drives[1] = u64::MAX,
            _ => {}
        }
        let timeout = schedule.phases.total().duration() + site.timeout;
        let results: Vec<Result<DriveResult, WorkloadError>> = std::thread::scope(|scope| {
            let driving: Vec<_> = site
                .drivers
                .iter()
                .zip(&self.drives)
                .map(|(driver, drive)| {
                    let start_at_ns = driver.clock.theirs(schedule.start_at_ns);
                    let request = Request::StartDrive { drive: *drive, start_at_ns };
                    scope.spawn(move || match ask(driver, request, timeout)? {
                        Reply::Driven(result) => Ok(*result),
                        _ => Err(failure()),
                    })
                })
                .collect();
            driving.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(failure()))).collect()
        });
        let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (start, end) = (results[0].steady_start_ns, results[0].steady_end_ns);
        let seconds = end.saturating_sub(start) as f64 / 1e9;
        let rates: Vec<f64> = results.iter().map(|result| result.operations as f64 / seconds).collect();
        let mut measurement = Measurement::default();
        measurement.metrics.insert(RATE.into(), rates.iter().sum());
        measurement.parts.push(Self::part(site, None, rates.iter().sum()));
        measurement.parts.extend(rates.iter().enumerate().map(|(n, rate)| Self::part(site, Some(n), *rate)));
        Ok(Driven {
            measurement,
            window_ns: (start, end),
            work: results.iter().map(|result| result.operations as f64).sum(),
            ..Driven::default()
        })
    }

    fn verify(&mut self, site: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        if self.workload.trouble == Trouble::Verify && site.index == 1 {
            return Ok(Some(REASON.to_owned()));
        }
        let expected = self.workload.gold.as_ref().map(|_| CONTENT);
        Ok((self.found.as_deref() != expected).then(|| format!("found {:?}, not {expected:?}", self.found)))
    }
}

/// A real platform whose guests see the gold copy itself: good for platforms that share the host's files.
struct Handing {
    inner: Box<dyn Platform>,
}

impl Platform for Handing {
    forward!(look, disclosures, comparable, versions);

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        let inner = self.inner.start(site, &GuestSpec { data: None, ..spec.clone() })?;
        let place = spec.data.as_ref().map(|data| DataPlace {
            path: data.gold.display().to_string(),
            storage: "the gold copy itself".into(),
            on_host: Some(data.gold.clone()),
            restore_s: if spec.name.ends_with('1') { 0.5 } else { 0.25 },
            restored_by: "nothing".into(),
            log: None,
        });
        Ok(Box::new(Handed { inner, place }))
    }
}

/// A real guest with its data.
struct Handed {
    inner: Box<dyn Guest>,
    place: Option<DataPlace>,
}

impl Guest for Handed {
    forward!(spec, link, address, groups, parity, facts, start_time_s, links, drops, diagnostics, kill, destroy);

    fn data(&self) -> Option<&DataPlace> {
        self.place.as_ref()
    }
}
