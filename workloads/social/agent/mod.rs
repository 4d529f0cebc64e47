//! Users of the social web application, and the loader of its database.
//!
//! `docs/reference/social.md` has the protocol. [`user`] knows what users do and what answers must be, [`engine`] how that goes to and fro: an
//! epoll state machine a thread, one connection a user. Clients are dealt to the instances of the application in turn, and join evenly over the warm-up, or over
//! the ramp-up where there is none, those of all instances together.
//!
//! An operation ends with its last answer. It ends in the measured window or not; its response time, from the moment at which it
//! was due, is counted if it was *due* in the window, however late it ended. Its service time begins when it was begun. Lateness
//! is how much later than due the timers were: cycles that were over before their operation are not in it, for what follows them
//! begins at once.
//!
//! Memory a user is what the process has more in memory that belongs to no file (`RssAnon`) when the load has ended than before it was prepared,
//! counts and histograms included, once the buffer that is read into and the operations that were under way have been given back.
//!
//! By operation all that ended in the window is counted, what was due in it and failed later, and what was due before its end and had none when the
//! run was over: it was under way, or what its user did before it was.

#[path = "../spec.rs"]
pub mod spec;

pub mod contents;
mod data;
mod engine;
mod files;
mod load;
mod outcome;
mod user;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::social::spec::{PEOPLE_A_USER, SocialDrive, SocialLoad};
use tare_model::drive::{DriveInterval, DriveResult, DriveSpec};
use tare_model::load::LoadModel;
use tare_model::packed::Task;

use crate::control::{Control, Meter};
use crate::crew::{CROWD_STACK_BYTES, run_threads};
use crate::drive::{Drive, GRACE_NS, first_target};
use crate::registry::{Calls, Drives, Kind};
use crate::session::limits::{self, FILES_A_THREAD, OTHER_FILES, THREADS_MAX, room_for_files};
use crate::session::probe;
use crate::supervise::Watch;
use crate::timeline::Timeline;
use crate::{DriverError, sockopt};

use engine::{Common, Engine, Place};
use user::World;

pub use load::load;
pub use user::{Simulated, simulate};

/// Most instances of the application at one time: as many as a result tells of (`tare-wire`).
const INSTANCES_MAX: usize = 1_000;

/// Refuses what cannot be driven.
fn check(spec: &DriveSpec, drive: &SocialDrive) -> Result<(), DriverError> {
    let invalid = |what: &str, remedy| Err(DriverError::invalid(what, remedy));
    let LoadModel::Closed { clients, .. } = spec.load else {
        let what = "its users come by an arrival rate, and these users have cycle times";
        return invalid(what, "use a closed loop; its clients are the users");
    };
    if drive.threads == 0 || drive.threads > THREADS_MAX {
        return invalid("its users have no thread, or more than 1024", "give threads a number from 1 to 1024");
    }
    if drive.timeout_ns == 0 {
        return invalid("an answer may take no time", "give timeout_ns a length");
    }
    let shares = [drive.revalidating, drive.attend];
    if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
        return invalid("a share of its users is not from 0 to 1", "give revalidating and attend numbers from 0 to 1");
    }
    if spec.targets.len() > INSTANCES_MAX {
        return invalid("it has more instances than a result tells of", "name at most 1000 targets");
    }
    let users = u64::from(clients).div_ceil(spec.targets.len().max(1) as u64);
    let needed = users * u64::from(PEOPLE_A_USER);
    if u64::from(drive.scale.people) < needed {
        let what = format!("{users} users of an instance need {needed} people, and {} are loaded", drive.scale.people);
        return Err(DriverError::invalid(what, "load for as many users as there are at one time"));
    }
    if drive.scale.tags == 0 || drive.scale.events == 0 {
        return invalid("there are no tags or no events", "load the tags and events that belong to the people");
    }
    Ok(())
}

/// All users, ready.
#[derive(Debug)]
struct Members {
    spec: DriveSpec,
    drive: SocialDrive,
    world: World,
    granted: Vec<(String, String)>,
    /// What the process had in memory before, bytes.
    memory_before: Option<u64>,
}

pub(crate) const KINDS: &[Kind] =
    &[Kind::drives::<SocialDrive>(), Kind::calls::<SocialLoad>(), crate::social::files::KIND];

impl Calls for SocialLoad {
    fn call(self, cancel: &AtomicBool) -> <Self as Task>::Outcome {
        load(&self, cancel)
    }
}

impl Drives for SocialDrive {
    /// Sees every instance answer, and that there may be as many connections as are needed.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        let drive = &self;
        first_target(spec)?;
        check(spec, drive)?;
        let memory_before = limits::memory_bytes();
        let world = World::new(spec, drive);
        let mut granted = vec![("body_checks".to_owned(), drive.check.to_string())];
        for (&target, instance) in spec.targets.iter().zip(&world.instances) {
            if cancel.load(Ordering::Relaxed) {
                return Err(DriverError::Cancelled);
            }
            let stream = probe::ask_plain(target, &spec.socket, &instance.host)?;
            if granted.len() < 2 {
                granted.extend(sockopt::granted(stream.as_fd(), true));
            }
        }
        let connections = u64::from(spec.load.connections());
        room_for_files(connections + FILES_A_THREAD * u64::from(drive.threads) + OTHER_FILES)?;
        let spec = spec.clone();
        Ok(Box::new(Members { spec, drive: self, world, granted, memory_before }))
    }
}

impl Drive for Members {
    fn run(
        self: Box<Self>,
        timeline: Timeline,
        progress: &dyn Fn(DriveInterval),
        cancel: &AtomicBool,
    ) -> Result<DriveResult, DriverError> {
        let Self { spec, drive, world, granted, memory_before } = *self;
        let (control, memory) = (Control::default(), AtomicU64::new(0));
        let meters: Vec<Meter> = (0..drive.threads).map(|_| Meter::default()).collect();
        let common = Common {
            spec: &spec,
            drive: &drive,
            world: &world,
            targets: &spec.targets,
            timeline,
            control: &control,
            memory: &memory,
        };
        let watch = Watch {
            timeline,
            cut_at: timeline.load_end.saturating_add(2 * GRACE_NS),
            interval_ns: spec.interval_ns,
            operation_bytes: 0,
            control: &control,
            meters: &meters,
            breakers: &[],
            arrivals: None,
            progress,
            cancel,
        };
        let of = drive.threads.min(spec.load.connections()).max(1);
        let one = |(thread, meter)| {
            let common = &common;
            move || Engine::new(common, Place { thread, of }, meter).map(Engine::run)
        };
        let (counts, watched) =
            run_threads(("social", CROWD_STACK_BYTES), &control, (0..of).zip(&meters).map(one), &watch)?;
        if watched.cancelled {
            return Err(DriverError::Cancelled);
        }
        let most = memory.load(Ordering::Relaxed);
        let added = memory_before.map_or(0, |before| most.saturating_sub(before));
        outcome::result(&common, counts, watched, added, granted)
    }
}
