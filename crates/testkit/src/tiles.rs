//! Tiles of members whose figures follow from the number of guests on the host of a [`Crowd`], and what was seen of them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tare_controller::{HostAccess, Registry};
use tare_model::field::FieldError;
use tare_model::guest::{GuestData, GuestSize};
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::Measurement;
use tare_model::units::{ByteSize, Span};
use tare_platform::Platform;
use tare_wire::{ExecSpec, Reply, Request};
use tare_workload::{
    Data, Driven, GuestTraits, Prepared, Schedule, SetupSite, Tile, TileMember, Traits, WorkSite, Workload,
    WorkloadError,
};

use crate::crowd::{Crowd, EACH, RESPONSE};

/// What was seen of a member's workload in one guest.
#[derive(Debug, Clone, PartialEq)]
pub enum TileSight {
    /// Its data were asked for, for so many guests of this size.
    Data {
        /// The member.
        member: String,
        /// Guests of it.
        guests: u32,
        /// What was asked for them.
        size: GuestSize,
    },
    /// A guest was set up.
    Prepared {
        /// The member.
        member: String,
        /// Which of the trial's guests, from 0.
        index: u32,
        /// What was asked for it.
        size: GuestSize,
        /// How load is offered to it.
        load: LoadModel,
        /// Instances in it.
        instances: u32,
        /// What its data hold.
        found: String,
    },
    /// It was driven from this moment.
    Driven {
        /// Which guest, from 0.
        index: u32,
        /// The schedule's start.
        start_at_ns: u64,
    },
    /// What it was driven with was ended.
    Ended {
        /// Which guest, from 0.
        index: u32,
    },
}

/// One member as a test wants it.
#[derive(Debug, Clone)]
pub struct TileWorker {
    /// Its name.
    pub name: String,
    /// Its response time, seconds, for each guest that stands on the host.
    pub slope: f64,
    /// Its operations a second with one guest on the host; with `n` guests they are an `n`-th.
    pub rate: f64,
    /// Size of its guest.
    pub size: GuestSize,
    /// Its clients.
    pub clients: u32,
    /// With so many guests on the host its work is wrong.
    pub wrong_at: Option<u32>,
}

/// A host on which tiles are added.
#[derive(Debug, Clone)]
pub struct Tiles {
    /// The host, and what happens on it.
    pub crowd: Crowd,
    /// The members.
    pub workers: Vec<TileWorker>,
    /// Where their data are made.
    pub gold: PathBuf,
    seen: Arc<Mutex<Vec<TileSight>>>,
}

impl Tiles {
    /// Nothing was seen yet.
    pub fn new(crowd: Crowd, workers: Vec<TileWorker>, gold: PathBuf) -> Self {
        Self { crowd, workers, gold, seen: Arc::default() }
    }

    /// What was seen so far, in order.
    pub fn seen(&self) -> Vec<TileSight> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, sight: TileSight) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(sight);
    }
}

impl Registry for Tiles {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        self.crowd.platform(name, options)
    }

    fn workload(&self, _: &str, _: &Value, _: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        let member = |worker: &TileWorker| TileMember {
            name: worker.name.clone(),
            kind: worker.name.clone(),
            workload: Box::new(Worker { of: worker.clone(), tiles: self.clone() }),
            load: LoadModel::Closed { clients: worker.clients, think_time: Span::ZERO },
            instances: 1,
            cpus: Some(worker.size.cpus),
            memory: Some(worker.size.memory),
        };
        Ok(Box::new(Tile::of(self.workers.iter().map(member).collect())))
    }

    fn host(&self) -> Arc<dyn HostAccess> {
        Arc::new(self.crowd.clone())
    }
}

/// The metric of each member.
pub const TILE_RATE: &str = "rate";
/// The file in each member's data.
const FILE: &str = "whose";

struct Worker {
    of: TileWorker,
    tiles: Tiles,
}

impl Workload for Worker {
    fn metrics(&self) -> Vec<MetricSpec> {
        let rate = MetricSpec::new(TILE_RATE, "rate", Unit::OperationsPerSecond, Better::Higher).primary();
        vec![rate, MetricSpec::new(RESPONSE, "response time", Unit::Seconds, Better::Lower)]
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let guests = vec![GuestTraits { touches: ByteSize(EACH), ..GuestTraits::of(*guest) }];
        Traits { repeats: true, guests, ..Traits::of(*guest) }
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        let (member, guests, size) = (self.of.name.clone(), site.guests, site.size);
        let gold = self.tiles.gold.join(&member);
        let made = std::fs::create_dir_all(&gold).and_then(|()| std::fs::write(gold.join(FILE), &member));
        made.map_err(|error| WorkloadError::Command(format!("{}: {error}", gold.display())))?;
        self.tiles.note(TileSight::Data { member, guests, size });
        Ok(Data::of_guests(GuestData { gold, size: ByteSize(1 << 20), shared: true, log: None }))
    }

    /// The sum of rates, and the longest time.
    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        let of = |id: &str| guests.iter().filter_map(|guest| guest.measurement.metrics.get(id).copied()).collect();
        let (rates, times): (Vec<f64>, Vec<f64>) = (of(TILE_RATE), of(RESPONSE));
        let work = guests.iter().map(|guest| guest.work).sum();
        let mut all = guests.into_iter().next()?;
        all.measurement.metrics.insert(TILE_RATE.to_owned(), rates.iter().sum());
        all.measurement.metrics.insert(RESPONSE.to_owned(), times.into_iter().fold(0.0, f64::max));
        all.work = work;
        Some(all)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let path = site.data.map(|data| format!("{}/{FILE}", data.path)).unwrap_or_default();
        let spec = ExecSpec::new(&["cat", &path], Duration::from_secs(30), 4096);
        let found = match site.guest.call(Request::Exec(spec), site.timeout) {
            Ok(Reply::Executed(ran)) => String::from_utf8_lossy(&ran.stdout).into_owned(),
            Ok(other) => format!("{other:?}"),
            Err(source) => return Err(WorkloadError::Agent { side: "guest", source }),
        };
        let WorkSite { index, size, load, instances, .. } = *site;
        self.tiles.note(TileSight::Prepared { member: self.of.name.clone(), index, size, load, instances, found });
        let stays = false;
        Ok(Box::new(AtWork { of: self.of.clone(), tiles: self.tiles.clone(), stays }))
    }
}

struct AtWork {
    of: TileWorker,
    tiles: Tiles,
    /// Whether it got the notice that it will be driven again.
    stays: bool,
}

impl Prepared for AtWork {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        if !self.stays {
            return Err(WorkloadError::Command("it got no notice that it will be driven again".to_owned()));
        }
        self.tiles.note(TileSight::Driven { index: site.index, start_at_ns: schedule.start_at_ns });
        let start = schedule.start_at_ns + schedule.phases.steady_offset_ns();
        let end = start + schedule.phases.steady_state.ns;
        std::thread::sleep(Duration::from_nanos(end.saturating_sub(tare_probe::now_ns())));
        let standing = f64::from(self.tiles.crowd.standing());
        let rate = self.of.rate / standing;
        let metrics = [(TILE_RATE.to_owned(), rate), (RESPONSE.to_owned(), self.of.slope * standing)].into();
        Ok(Driven {
            measurement: Measurement { metrics, ..Measurement::default() },
            window_ns: (start, end),
            work: rate * (end - start) as f64 / 1e9,
            ..Driven::default()
        })
    }

    fn verify(&mut self, _: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let wrong = self.of.wrong_at == Some(self.tiles.crowd.standing());
        Ok(wrong.then(|| crate::REASON.to_owned()))
    }

    fn stay(&mut self) {
        self.stays = true;
    }

    fn end(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.tiles.note(TileSight::Ended { index: site.index });
        Ok(())
    }
}
