//! Who looks at the host ten times a second while guests are added and driven, and ends what would do harm.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tare_memory::Kernel;
use tare_memory::host::{Guard, HostNow};
use tare_model::density::{CoursePoint, StopKind};
use tare_model::merging::MergeCounters;

use crate::cancel::Cancel;
use crate::host::Watched;

/// How often the host is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often a point of the course is kept, and merging is looked at without load.
const POINT_EVERY: Duration = Duration::from_secs(1);

/// What was seen at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(super) at_ns: u64,
    /// Memory available, bytes.
    pub(super) available_bytes: u64,
    /// What the kernel counts of merging; `None` where the arm does not merge.
    pub(super) merge: Option<MergeCounters>,
}

/// What the watcher needs.
pub(super) struct Given {
    pub(super) run_id: String,
    pub(super) host: Watched,
    /// Whose merging is counted: `None` for an arm that does not merge, as the kernel's counts are the whole host's and would
    /// tell of others.
    pub(super) merging: Option<Kernel>,
    pub(super) guard: Guard,
    /// The host before the first guest.
    pub(super) start: HostNow,
    /// The user's wish to stop.
    pub(super) cancel: Cancel,
}

impl Given {
    fn counters(&self) -> Option<MergeCounters> {
        self.merging.as_ref()?.counters().ok()
    }
}

/// What ends when the host runs towards harm.
struct Armed {
    cancel: Cancel,
    /// The guest that is being added.
    adding: Option<String>,
}

struct State {
    ended: bool,
    guests: u32,
    load: bool,
    /// What the host is compared with.
    base: HostNow,
    armed: Option<Armed>,
    fired: Option<(StopKind, String)>,
    now: HostNow,
    merge: Option<MergeCounters>,
    course: Vec<CoursePoint>,
    /// Under load.
    readings: Vec<Reading>,
}

struct Shared {
    given: Given,
    state: Mutex<State>,
    wake: Condvar,
    began: Instant,
    page: u64,
    /// CPU of the kernel's thread before the first guest.
    scanner_cpu_s: f64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watcher at work. It ends with this value.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to look.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub(super) fn start(given: Given) -> std::io::Result<Self> {
        let merge = given.counters();
        let state = State {
            ended: false,
            guests: 0,
            load: false,
            base: given.start,
            armed: None,
            fired: None,
            now: given.start,
            merge,
            course: Vec::new(),
            readings: Vec::new(),
        };
        let shared = Arc::new(Shared {
            given,
            state: Mutex::new(state),
            wake: Condvar::new(),
            began: Instant::now(),
            page: rustix::param::page_size() as u64,
            scanner_cpu_s: merge.map_or(0.0, |merge| merge.scanner_cpu_s),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || look(&own))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// From now on the host is compared with what it is now, and what is done under the wish to stop that is returned ends
    /// when it runs towards harm, or when the user wishes to stop. `adding`: the guest that is then killed.
    pub(super) fn arm(&self, adding: Option<&str>) -> Cancel {
        let cancel = Cancel::new();
        if let Some(reason) = self.shared.given.cancel.reason() {
            cancel.cancel(&reason);
        }
        let now = self.shared.given.host.now();
        let mut state = self.shared.lock();
        if let Ok(now) = now {
            (state.now, state.base) = (now, now);
        }
        state.fired = None;
        state.armed = Some(Armed { cancel: cancel.clone(), adding: adding.map(str::to_owned) });
        cancel
    }

    /// Ends what [`Self::arm`] began, after a last look; why it was ended early, or should have been.
    pub(super) fn disarm(&self) -> Option<(StopKind, String)> {
        let now = self.shared.given.host.now();
        let mut state = self.shared.lock();
        state.now = now.unwrap_or(state.now);
        state.armed = None;
        state.fired.take().or_else(|| self.shared.given.guard.check(&state.base, &state.now))
    }

    /// Tells how many guests stand.
    pub(super) fn stand(&self, guests: u32) {
        self.shared.lock().guests = guests;
    }

    /// Tells whether load is offered. Where it begins, readings are kept anew.
    pub(super) fn load(&self, load: bool) {
        let mut state = self.shared.lock();
        if load {
            state.readings.clear();
        }
        state.load = load;
        self.shared.wake.notify_all();
    }

    /// Memory available and memory saved by merging when last looked, bytes.
    pub(super) fn last(&self) -> (u64, u64) {
        let state = self.shared.lock();
        (state.now.available_bytes, state.merge.map_or(0, |merge| merge.saved(self.shared.page).0))
    }

    /// What was seen since load began last.
    pub(super) fn readings(&self) -> Vec<Reading> {
        self.shared.lock().readings.clone()
    }

    /// CPU seconds of the kernel's merging thread before the first guest.
    pub(super) fn scanner_cpu_at_start_s(&self) -> f64 {
        self.shared.scanner_cpu_s
    }

    /// Ends looking; the host over time.
    pub(super) fn end(mut self) -> Vec<CoursePoint> {
        self.stop();
        std::mem::take(&mut self.shared.lock().course)
    }

    fn stop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panics no more than anything here; what it saw is kept.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

fn look(shared: &Shared) {
    let mut next_point = shared.began;
    loop {
        let began = Instant::now();
        let point = began >= next_point;
        if point {
            next_point = (next_point + POINT_EVERY).max(began);
        }
        let adding = once(shared, point);
        if let Some(adding) = adding {
            // Whoever waits for it sees it end. What had not begun when it was killed is killed the next time.
            let killed = tare_lab::kill_guest(&shared.given.run_id, &adding);
            tracing::debug!(guest = adding, ?killed, "the guest that is being added is ended");
        }
        let mut state = shared.lock();
        let until = began + LOOK_EVERY;
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = shared.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.ended {
            return;
        }
    }
}

/// Looks once; the guest that must be killed, if any.
fn once(shared: &Shared, point: bool) -> Option<String> {
    // A reading that fails leaves the last one.
    let before = shared.lock().now;
    let host = &shared.given.host;
    let now = if point { host.now() } else { host.again(&before) }.ok();
    let merge = (point || shared.lock().load).then(|| shared.given.counters());
    let at_ns = tare_probe::now_ns();
    let mut state = shared.lock();
    state.now = now.unwrap_or(state.now);
    state.merge = merge.unwrap_or(state.merge);
    if state.load {
        let reading = Reading { at_ns, available_bytes: state.now.available_bytes, merge: state.merge };
        state.readings.push(reading);
    }
    if point {
        let merge = state.merge.unwrap_or_default();
        let point = CoursePoint {
            at_s: shared.began.elapsed().as_secs_f64(),
            guests: state.guests,
            load: state.load,
            available_bytes: state.now.available_bytes,
            saved_bytes: merge.saved(shared.page).0,
            profit_bytes: merge.profit_bytes,
            scanner_cpu_s: (merge.scanner_cpu_s - shared.scanner_cpu_s).max(0.0),
        };
        state.course.push(point);
    }
    if state.fired.is_none() {
        state.fired = shared.given.guard.check(&state.base, &state.now);
    }
    let wish = shared.given.cancel.reason();
    let armed = state.armed.as_ref()?;
    let reason = wish.clone().or_else(|| state.fired.as_ref().map(|(_, why)| why.clone()))?;
    armed.cancel.cancel(&reason);
    armed.adding.clone()
}

/// The value of a figure at a moment, on the straight line between the readings around it; before the first and after the
/// last, that one's. `None` without any.
pub(super) fn at(readings: &[Reading], at_ns: u64, of: impl Fn(&Reading) -> Option<f64>) -> Option<f64> {
    let after = readings.partition_point(|reading| reading.at_ns < at_ns);
    let (Some(last), Some(first)) = (readings.get(after.min(readings.len().checked_sub(1)?)), readings.first()) else {
        return None;
    };
    let before = readings.get(after.wrapping_sub(1)).unwrap_or(first);
    let (low, high) = (of(before)?, of(last)?);
    let span = last.at_ns.saturating_sub(before.at_ns) as f64;
    let share = if span > 0.0 { (at_ns.saturating_sub(before.at_ns) as f64 / span).min(1.0) } else { 0.0 };
    Some(low + (high - low) * share)
}

/// The reading nearest to a moment.
pub(super) fn nearest(readings: &[Reading], at_ns: u64) -> Option<Reading> {
    readings.iter().min_by_key(|reading| reading.at_ns.abs_diff(at_ns)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_between_two_readings_are_interpolated_and_beyond_them_they_stay() {
        let reading = |at_ns, available_bytes| Reading { at_ns, available_bytes, merge: None };
        let readings = [reading(100, 10), reading(200, 30)];
        let available = |at_ns| at(&readings, at_ns, |reading| Some(reading.available_bytes as f64));
        let seen: Vec<_> = [50, 100, 150, 200, 300].into_iter().map(available).collect();
        assert_eq!(seen, [10.0, 10.0, 20.0, 30.0, 30.0].map(Some));
        assert_eq!(at(&readings, 150, |reading| reading.merge.map(|merge| merge.scanner_cpu_s)), None);
        assert_eq!(at(&[], 150, |_| Some(1.0)), None);
        assert_eq!(nearest(&readings, 160).map(|reading| reading.at_ns), Some(200));
    }
}
