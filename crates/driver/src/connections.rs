//! Drivers with one blocking thread a connection: request and response, bulk streams, the clients of a store.

use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::LoadModel;

use crate::control::{Breaker, Control, Meter};
use crate::course::{Course, GRACE_CLOSED_NS, GRACE_NS};
use crate::operation::{Operation, Worker};
use crate::pipelined::Pipeline;
use crate::supervise::Watch;
use crate::tally::{Shared, Tally};
use crate::{DriverError, closed, crew, open, pipelined};

/// Stack of a driver's thread; its histograms are on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// What every connection has in common.
pub(crate) struct Common<'a> {
    pub spec: &'a DriveSpec,
    pub course: Course<'a>,
    /// Payload bytes of an operation, to and from the guest.
    pub operation_bytes: (u64, u64),
    /// Whether what is under way when the load is over may take [`GRACE_NS`] in a closed loop too.
    pub long: bool,
    pub granted: Vec<(String, String)>,
}

/// What a thread has beside its connection.
#[derive(Clone)]
pub(crate) struct DriverThread<'a> {
    pub worker: Worker<'a>,
    pub breaker: &'a Breaker,
    load: &'a LoadModel,
    arrivals: Option<&'a open::Shared>,
}

impl<'a> DriverThread<'a> {
    /// The same thread with durations recorded in `shared`, which begins so long after the start of a warm-up.
    pub fn sharing(&self, shared: &'a Shared, delay_ns: u64) -> Self {
        Self { worker: Worker { shared: Some(shared), delay_ns, ..self.worker.clone() }, ..*self }
    }

    /// Performs the operation as often and at the times that the load says.
    pub fn offer<O: Operation>(&self, operation: O) -> Tally {
        match (self.load, self.arrivals) {
            (LoadModel::Closed { think_time, .. }, _) => closed::run(operation, &self.worker, think_time.ns),
            (LoadModel::Open { .. }, Some(shared)) => open::run(operation, &self.worker, shared),
            (LoadModel::Open { .. }, None) => Tally::open(false),
        }
    }

    /// Sends requests when the load says, also while others are under way. A closed loop has none.
    pub fn pipeline(&self, connection: Pipeline<'_>) -> Tally {
        self.arrivals.map_or_else(|| Tally::open(false), |shared| pipelined::run(connection, &self.worker, shared))
    }
}

/// Starts a thread for each connection, watches them through all phases, and adds up what they counted. What else `work` returns
/// comes back in the order of the connections.
///
/// # Errors
/// When threads are refused, or the run was cancelled.
pub(crate) fn run<C: Send, T: Send>(
    common: Common<'_>,
    connections: Vec<C>,
    work: impl Fn(C, &DriverThread<'_>) -> (Tally, T) + Sync,
) -> Result<(DriveResult, Vec<T>), DriverError> {
    let Common { spec, course, operation_bytes: (to_guest, from_guest), long, granted } = common;
    let timeline = course.timeline.clone();
    let shared = open::Shared::of(spec, &timeline, spec.load.connections());
    let grace_ns = if long || shared.is_some() { GRACE_NS } else { GRACE_CLOSED_NS };
    let control = Control::default();
    let meters: Vec<Meter> = connections.iter().map(|_| Meter::default()).collect();
    let breakers: Vec<Breaker> = connections.iter().map(|_| Breaker::default()).collect();
    let watch = Watch {
        course,
        cut_at: timeline.all_over().saturating_add(grace_ns),
        interval_ns: spec.interval_ns,
        operation_bytes: to_guest + from_guest,
        control: &control,
        meters: &meters,
        breakers: &breakers,
        arrivals: shared.as_ref(),
    };
    let (of, arrivals, control, work) = (spec.load.connections(), shared.as_ref(), &control, &work);
    let places = connections.into_iter().zip(meters.iter().zip(&breakers)).enumerate();
    let each = places.map(|(index, (connection, (meter, breaker)))| {
        let (index, record) = (index as u32, spec.record);
        let worker =
            Worker { index, of, timeline: timeline.clone(), control, meter, record, shared: None, delay_ns: 0 };
        let thread = DriverThread { worker, breaker, load: &spec.load, arrivals };
        move || {
            let (mut tally, other) = work(connection, &thread);
            tally.to_guest += tally.operations * to_guest;
            tally.from_guest += tally.operations * from_guest;
            Ok((tally, other))
        }
    });
    let (mut result, others) = crew::run_threads(("drive", STACK_BYTES), each, &watch, granted)?;
    if matches!(spec.load, LoadModel::Closed { .. }) {
        // Whoever waits for the answer before asking again is never late: both times are one.
        result.service = result.response.clone();
    }
    Ok((result, others))
}
