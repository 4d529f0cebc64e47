//! Users of the social web application, and the loader of its database.
//!
//! `docs/reference/social.md` has the protocol. [`user`] knows what users do and what answers must be, [`members`] when they do it, and the session
//! engine how that goes to and fro. Clients are dealt to the instances of the application in turn, and join evenly over the warm-up, or over
//! the ramp-up where there is none, those of all instances together.
//!
//! An operation ends with its last answer. It ends in the measured window or not; its response time, from the moment at which it
//! was due, is counted if it was *due* in the window, however late it ended.
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
mod files;
mod load;
mod members;
mod user;

use std::sync::atomic::AtomicBool;

use crate::social::spec::{PEOPLE_A_USER, SocialDone, SocialDrive, SocialLoad};
use tare_model::Histogram;
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::LoadModel;
use tare_model::packed::Task;
use tare_model::trial::Step;

use crate::DriverError;
use crate::course::{Course, Drive, first_target};
use crate::session::engine::{Crowd, Settings};
use crate::session::limits::memory_bytes;
use crate::session::probe;
use crate::task::{Calls, Drives, Kind};

use members::{Members, PARTS};
use user::{Tally, World};

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
struct Ready {
    crowd: Crowd,
    world: World,
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
        first_target(spec)?;
        let settings = Settings {
            threads: self.threads,
            instances: spec.targets.len() as u32,
            connections: 1,
            thinks: true,
            fresh_connections: false,
            timeout_ns: self.timeout_ns,
            overrun_ns: u64::MAX,
            receive_bytes_per_s: None,
            receive_buffer: None,
        };
        settings.check()?;
        check(spec, &self)?;
        let memory_before = memory_bytes();
        let world = World::new(spec, &self);
        let targets = spec.targets.iter().zip(&world.instances).map(|(target, one)| (*target, one.host.as_str(), None));
        let mut granted = vec![("body_checks".to_owned(), self.check.to_string())];
        granted.extend(probe::ask_each(targets, &spec.socket, cancel)?);
        Ok(Box::new(Ready { crowd: Crowd::new(spec, settings, granted, memory_before)?, world }))
    }
}

impl Drive for Ready {
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let Self { crowd, world } = *self;
        let (clients, targets) = (crowd.spec.load.connections(), crowd.spec.targets.clone());
        let timeline = course.timeline.clone();
        let users = |spec: &DriveSpec, _| Members::new(&world, &targets, &timeline, spec.record);
        let driven = crowd.run(course, Vec::new(), users)?;
        let mut times: [Histogram; PARTS.len()] = Default::default();
        let mut operations = Vec::with_capacity(driven.users.len());
        for users in driven.users {
            for (sum, part) in times.iter_mut().zip(users.parts) {
                sum.merge(&part.into_histogram());
            }
            operations.push(users.operations);
        }
        let (instances, faults) = Tally::merge(&world, operations);
        let done = SocialDone {
            instances,
            faults,
            connections: driven.counts.connections,
            memory_per_user_bytes: driven.memory_bytes / u64::from(clients).max(1),
        };
        let step = |(name, times): (&str, Histogram)| Step { name: name.to_owned(), within: true, times };
        let steps = PARTS.into_iter().zip(times).map(step).collect();
        let result = DriveResult { steps, ..driven.result };
        Ok(result.with_outcome::<SocialDrive>(&done)?)
    }
}
