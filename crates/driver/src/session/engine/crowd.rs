//! All sessions of a driver: a thread for each share of them, and what they counted.

use std::sync::atomic::{AtomicU64, Ordering};

use tare_model::drive::{DriveResult, DriveSpec};

use super::{Common, Engine, SessionCounts, Settings, Users};
use crate::DriverError;
use crate::control::{Control, Meter};
use crate::course::{Course, GRACE_NS};
use crate::crew::run_threads;
use crate::open::Shared;
use crate::session::limits::{THREADS_MAX, memory_bytes, room_for_files};
use crate::session::tls::Tls;
use crate::supervise::Watch;

/// Stack of a thread: what it works with is on the heap.
const STACK_BYTES: usize = 512 * 1024;

/// How many sessions there are, and what they need.
#[derive(Debug, Default)]
pub(super) struct Census {
    live: AtomicU64,
    most: AtomicU64,
    memory: AtomicU64,
}

impl Census {
    pub fn enter(&self) {
        let live = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(live, Ordering::Relaxed);
    }

    pub fn leave(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes what the process has in memory.
    pub fn weigh(&self) {
        self.memory.fetch_max(memory_bytes().unwrap_or(0), Ordering::Relaxed);
    }
}

/// Sessions that are ready to be driven: their servers have answered.
#[derive(Debug)]
pub(crate) struct Crowd {
    pub spec: DriveSpec,
    settings: Settings,
    granted: Vec<(String, String)>,
    /// What the process had in memory before, bytes.
    memory_before: Option<u64>,
}

/// What a crowd did.
#[derive(Debug)]
pub(crate) struct Driven<U> {
    /// What every driver tells.
    pub result: DriveResult,
    /// The users of each thread, with what they counted.
    pub users: Vec<U>,
    pub counts: SessionCounts,
    /// Most sessions at one time.
    pub sessions_most: u64,
    /// What the process had more in memory when the load had ended than before it was prepared, bytes, without what operations under way need.
    pub memory_bytes: u64,
}

impl Settings {
    /// Refuses what no sessions can be driven by.
    ///
    /// # Errors
    /// [`DriverError::Invalid`].
    pub fn check(&self) -> Result<(), DriverError> {
        let invalid = |what: &str, remedy| Err(DriverError::invalid(what, remedy));
        if self.threads == 0 || self.threads > THREADS_MAX {
            return invalid("its sessions have no thread, or more than 1024", "give threads a number from 1 to 1024");
        }
        if self.connections == 0 {
            return invalid("its sessions have no connection", "give connections at least 1");
        }
        if self.timeout_ns == 0 {
            return invalid("an answer may take no time", "give timeout_ns a length");
        }
        if self.receive_bytes_per_s == Some(0) {
            return invalid(
                "nothing is ever read from its connections",
                "leave receive_bytes_per_s out, or give a rate",
            );
        }
        Ok(())
    }
}

impl Crowd {
    /// Sees that there may be as many connections as sessions need. `granted` is disclosed with the result; `memory_before` is what the process had in
    /// memory before anything was prepared.
    ///
    /// # Errors
    /// When more files are needed than the process may open.
    pub fn new(
        spec: &DriveSpec,
        settings: Settings,
        granted: Vec<(String, String)>,
        memory_before: Option<u64>,
    ) -> Result<Self, DriverError> {
        let connections = u64::from(spec.load.connections()) * u64::from(settings.connections);
        room_for_files(connections, settings.threads)?;
        Ok(Self { spec: spec.clone(), settings, granted, memory_before })
    }

    /// Drives the sessions through all phases. `users` makes those of a thread, from 0; `tls` is that of each thread, empty where none is spoken.
    ///
    /// # Errors
    /// When the kernel refuses a thread or what it waits with, or the run was cancelled.
    pub fn run<U: Users + Send>(
        self,
        course: Course<'_>,
        tls: Vec<Tls>,
        users: impl Fn(&DriveSpec, u32) -> U + Sync,
    ) -> Result<Driven<U>, DriverError> {
        let Self { spec, settings, granted, memory_before } = self;
        let timeline = course.timeline.clone();
        // No more than have a session.
        let threads = settings.threads.min(spec.load.connections()).max(1);
        let shared = Shared::of(&spec, &timeline, threads);
        let (control, census) = (Control::default(), Census::default());
        let (control, arrivals) = (&control, shared.as_ref());
        let common = Common { spec: &spec, settings, timeline, control, arrivals, census: &census, threads };
        let meters: Vec<Meter> = (0..threads).map(|_| Meter::default()).collect();
        let watch = Watch {
            cut_at: course.timeline.all_over().saturating_add(2 * GRACE_NS),
            course,
            interval_ns: spec.interval_ns,
            operation_bytes: 0,
            control,
            meters: &meters,
            breakers: &[],
            arrivals,
        };
        let mut tls = tls.into_iter();
        let each = (0..threads).zip(&meters).map(|(thread, meter)| {
            let (common, users, tls) = (&common, &users, tls.next());
            move || {
                let engine = Engine::new(common, thread, meter, tls, users(common.spec, thread))?;
                let (counts, users) = engine.run();
                Ok((counts.tally, (counts.sessions, users)))
            }
        });
        let (result, each) = run_threads(("session", STACK_BYTES), each, &watch, granted)?;
        let mut counts = SessionCounts::default();
        each.iter().for_each(|(one, _)| counts.add(*one));
        let sessions_most = census.most.into_inner();
        let memory = census.memory.into_inner();
        Ok(Driven {
            result,
            users: each.into_iter().map(|(_, users)| users).collect(),
            counts,
            sessions_most,
            memory_bytes: memory_before.map_or(0, |before| memory.saturating_sub(before)),
        })
    }
}
