//! Threads that offer load side by side, and who watches them.

use std::sync::atomic::Ordering;
use std::thread;

use tare_model::drive::DriveResult;

use crate::clock::tighten_timers;
use crate::control::Control;
use crate::supervise::Watch;
use crate::tally::Tally;
use crate::{DriverError, outcome};

/// Counts a thread out however it ends.
struct Alive<'a>(&'a Control);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::Release);
    }
}

/// Starts a thread for each piece of work, called `NAME-NUMBER` and with so much stack, watches them, and adds up what they counted. What else they
/// return comes back in their order. One that fails has the others stop.
///
/// # Errors
/// When a thread cannot be started or panics, that of the first whose work failed, or when the run was cancelled.
pub(crate) fn run_threads<T: Send, W: FnOnce() -> Result<(Tally, T), DriverError> + Send>(
    (name, stack_bytes): (&str, usize),
    work: impl IntoIterator<Item = W>,
    watch: &Watch<'_>,
    granted: Vec<(String, String)>,
) -> Result<(DriveResult, Vec<T>), DriverError> {
    let (control, timeline) = (watch.control, &watch.course.timeline);
    let (counts, watched) = thread::scope(|scope| {
        let mut running = Vec::new();
        let mut refused = None;
        for (number, work) in work.into_iter().enumerate() {
            control.alive.fetch_add(1, Ordering::Relaxed);
            let builder = thread::Builder::new().name(format!("{name}-{number}")).stack_size(stack_bytes);
            let started = builder.spawn_scoped(scope, move || {
                let _alive = Alive(control);
                tighten_timers();
                work().inspect_err(|_| control.halt())
            });
            match started {
                Ok(handle) => running.push(handle),
                Err(source) => {
                    control.alive.fetch_sub(1, Ordering::Release);
                    control.halt();
                    refused = Some(DriverError::Resource { what: "start a driver thread", source });
                    break;
                }
            }
        }
        let watched = watch.run();
        let mut counts = Vec::with_capacity(running.len());
        for handle in running {
            counts.push(handle.join().map_err(|_| DriverError::Thread)??);
        }
        refused.map_or(Ok((counts, watched)), Err)
    })?;
    if watched.cancelled {
        return Err(DriverError::Cancelled);
    }
    let (tallies, others): (Vec<Tally>, Vec<T>) = counts.into_iter().unzip();
    let result = outcome::result(timeline, tallies.into_iter(), watched, granted);
    let backlog_max = watch.arrivals.map_or(0, |s| s.backlog.most(timeline.steady_start, timeline.load_end));
    Ok((DriveResult { backlog_max, ..result }, others))
}
