//! The closed loop: a client starts its next operation when the last one ended and it has thought.

use std::sync::atomic::Ordering;

use crate::clock::{now_ns, sleep_until};
use crate::error::Failure;
use crate::operation::{CUT_OFF, Done, Operation, PAUSE_NS, Worker};
use crate::tally::Tally;
use crate::timeline::{Stage, Tracker};

/// Runs one client through all phases. Without think time the end of an operation is the start of the
/// next, so each costs one clock read.
pub(crate) fn run<O: Operation>(mut operation: O, worker: &Worker<'_>, think_ns: u64) -> Tally {
    let mut tally = worker.tally(false);
    let stop = &worker.control.stop;
    let timeline = &worker.timeline;
    let joins_at = timeline.joins_at(worker.index, worker.of);
    if !sleep_until(worker.begins_at(), stop) {
        return tally;
    }

    let mut tracker = Tracker::new(*timeline);
    let (mut ended, mut warming) = (0, timeline.warm_end > timeline.start);
    let mut started = now_ns();
    while !stop.load(Ordering::Relaxed) {
        let outcome = operation.perform();
        let now = now_ns();
        let stage = tracker.at(now);
        let took = (now - started).saturating_sub(operation.untimed_ns());
        match outcome {
            Ok(done) => {
                if done == Done::Answered {
                    ended += 1;
                    worker.meter.set_operations(ended);
                }
                if stage == Stage::Steady {
                    tally.operations += u64::from(done == Done::Answered);
                    tally.lost += u64::from(done == Done::Lost);
                    // Of a lost one it is censored: it took longer than was waited for.
                    tally.response.record(took);
                    operation.counts();
                }
            }
            Err(failure) => {
                if !goes_on(failure, worker, &mut tally, (started, took)) {
                    break;
                }
            }
        }
        if stage == Stage::Over {
            break;
        }
        started = now;
        if warming && stage != Stage::WarmUp {
            warming = false;
            if !sleep_until(joins_at, stop) {
                break;
            }
            started = now_ns();
        } else if think_ns > 0 {
            let wake = now.saturating_add(operation.think_ns(think_ns));
            // Nobody thinks past the end of the load.
            if wake >= timeline.load_end || !worker.control.rest_until(wake) {
                break;
            }
            started = now_ns();
        }
    }
    tally.answered = ended;
    tally.cpu = tracker.finish();
    tally
}

/// Counts a failed operation by reason; whether another may be tried, after a pause.
#[cold]
fn goes_on(failure: Failure, worker: &Worker<'_>, tally: &mut Tally, (started, took): (u64, u64)) -> bool {
    let cut = worker.control.cut.load(Ordering::Relaxed);
    if cut && worker.timeline.measures(started) {
        // Censored: nobody knows how long it would have taken.
        tally.response.record(took);
    }
    tally.error(if cut { CUT_OFF.to_owned() } else { failure.reason });
    !failure.fatal && !cut && sleep_until(now_ns() + PAUSE_NS, &worker.control.stop)
}
