//! The rate at which a guest alone uses the asked share of its CPUs, found by trying.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tare_model::Span;
use tare_model::load::Phases;

use crate::clock::{monotonic_ns, wait_until};
use crate::{Calibration, Driven, Failure, Prepared, Schedule, WorkSite, WorkloadError};

/// How far the share that is found may be off the one that was asked.
const TOLERANCE: f64 = 0.03;
/// Most rates that are tried: where others use the host as well, so that the CPU of an operation is now a tenth more and
/// then a tenth less, eight fail one time in fifteen.
const TRIES: usize = 16;
/// A guest that does less than this part of what it is offered is at its end.
const KEEPS_UP: f64 = 0.9;
/// Each rate is at most so many times the one before, or that part of it.
const STEP_MAX: f64 = 3.0;
/// Two rates that differ by less than this part tell nothing about a slope: noise decides it.
const APART: f64 = 0.1;
/// The guest works as fast as it can before the first try, so that what it runs most is compiled: in windows of this length,
const WARM_WINDOW: Span = Span::from_secs(1);
/// so many of them at least,
const WARM_LEAST: usize = 5;
/// until in so many of them in a row
const WARM_ROW: usize = 3;
/// the CPU that an operation took differs by no more than this part,
const WARM_WITHIN: f64 = 0.05;
/// or for so long.
const WARM_MAX: Duration = Duration::from_secs(30);
/// How a rate is tried: the first second is left out.
const TRY: Phases = Phases {
    warm_up: Span::from_secs(1),
    ramp_up: Span::ZERO,
    steady_state: Span::from_secs(5),
    ramp_down: Span::from_millis(100),
};
/// From the moment when the driver is connected to the start of load.
const LEAD_NS: u64 = 50_000_000;
/// Length of an interval of the driver's series.
const INTERVAL_NS: u64 = 500_000_000;
const SEED: u64 = 1;

/// What a guest did at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Operations a second that it did.
    pub done_per_s: f64,
    /// Share of its CPUs (0 to 1).
    pub share: f64,
}

/// Finds the rate. `prepared` was set up by this workload.
///
/// # Errors
/// When the host cannot count the guest's CPU, load could not be offered, or no such rate was found; with all tries.
pub(super) fn calibrate(
    site: &WorkSite<'_>,
    prepared: &mut dyn Prepared,
    cpu_s: &(dyn Fn() -> Option<f64> + Sync),
    goal: f64,
) -> Result<Calibration, WorkloadError> {
    if cpu_s().is_none() {
        let why = "the host cannot count the CPU of a guest of the baseline";
        let remedy = "leave `cpu-share` out and give a rate: load = { open = { rate = \"...\", connections = 6 } }";
        return Err(Failure::new(tried(goal), why, remedy).into());
    }
    let mut guest = Guest { site, prepared, cpu_s, goal };
    let full = guest.warm_up()?;
    search(goal, full, |rate| guest.window(rate, TRY))
}

fn tried(goal: f64) -> String {
    format!("find the rate at which a guest uses {:.0} % of its CPUs", goal * 100.0)
}

/// The rate at which `measure` sees the share `goal`, from what the guest does as fast as it can. Between two rates
/// the share is taken for a line, but for one that the guest cannot keep up with.
///
/// # Errors
/// Those of `measure`, and when no such rate was found.
pub(super) fn search<E: From<Failure>>(
    goal: f64,
    full: Seen,
    mut measure: impl FnMut(f64) -> Result<Seen, E>,
) -> Result<Calibration, E> {
    let mut tries: Vec<(f64, f64)> = Vec::new();
    if full.share < goal - TOLERANCE || full.done_per_s <= 0.0 {
        let why = format!(
            "as fast as it can, it does {:.0} operations/s and uses {:.0} % of them",
            full.done_per_s,
            full.share * 100.0
        );
        let remedy = "ask for a smaller `cpu-share`, for more data groups (`clients`), or for guests with fewer CPUs; and see \
                      that nothing else uses this host's CPUs";
        return Err(Failure::new(tried(goal), why, remedy).into());
    }
    let mut last = full;
    let mut rate = in_proportion(full, goal);
    while tries.len() < TRIES {
        let seen = measure(rate)?;
        tries.push((rate, seen.share));
        let kept_up = seen.done_per_s >= KEEPS_UP * rate;
        if kept_up && (seen.share - goal).abs() <= TOLERANCE {
            return Ok(Calibration { rate_per_s: rate, cpu_share: seen.share, tries });
        }
        rate = on_line(last, seen, goal).clamp(rate / STEP_MAX, rate * STEP_MAX);
        last = seen;
    }
    let attempts: Vec<String> =
        tries.iter().map(|(rate, share)| format!("{rate:.1}/s took {:.1} %", share * 100.0)).collect();
    let remedy =
        "see that nothing else uses this host's CPUs, or leave `cpu-share` out and give a rate with an open load";
    Err(Failure::new(tried(goal), format!("of {TRIES} rates none did: {}", attempts.join(", ")), remedy).into())
}

/// The rate if the share were in proportion to what is done.
fn in_proportion(seen: Seen, goal: f64) -> f64 {
    seen.done_per_s * goal / seen.share.max(goal / 100.0)
}

/// The rate on the line through two measurements; in proportion to the later one where they tell no slope.
fn on_line(earlier: Seen, later: Seen, goal: f64) -> f64 {
    let (rates, shares) = (later.done_per_s - earlier.done_per_s, later.share - earlier.share);
    let apart = rates.abs() > APART * later.done_per_s.max(earlier.done_per_s);
    let at = later.done_per_s + (goal - later.share) * rates / shares;
    if apart && shares * rates > 0.0 && at > 0.0 && at.is_finite() { at } else { in_proportion(later, goal) }
}

/// Whether operations have come to take the same CPU again and again. How many of them were done would tell as much on a
/// host where nobody else wants the CPUs.
fn is_warm(windows: &[Seen]) -> bool {
    let row = windows.len().checked_sub(WARM_ROW).filter(|_| windows.len() >= WARM_LEAST);
    let Some(row) = row.and_then(|from| windows.get(from..)) else { return false };
    let costs = row.iter().map(|seen| seen.share / seen.done_per_s);
    let (least, most) = costs.fold((f64::INFINITY, 0.0_f64), |(least, most), cost| (least.min(cost), most.max(cost)));
    most.is_finite() && most > 0.0 && most - least <= WARM_WITHIN * most
}

/// The guest that rates are tried in.
struct Guest<'a, 's> {
    site: &'a WorkSite<'s>,
    prepared: &'a mut dyn Prepared,
    cpu_s: &'a (dyn Fn() -> Option<f64> + Sync),
    goal: f64,
}

impl Guest<'_, '_> {
    /// Has the guest work as fast as it can until it gets no faster; what it did at last, in the window in which it had most
    /// of its CPUs: a moment in which others had them tells nothing about what it can do.
    fn warm_up(&mut self) -> Result<Seen, WorkloadError> {
        let phases =
            Phases { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state: WARM_WINDOW, ramp_down: Span::ZERO };
        let began = Instant::now();
        let mut windows = Vec::new();
        loop {
            let seen = self.window(0.0, phases)?;
            windows.push(seen);
            if is_warm(&windows) || began.elapsed() >= WARM_MAX {
                let last = windows.iter().rev().take(WARM_ROW).copied();
                return Ok(last.max_by(|one, other| one.share.total_cmp(&other.share)).unwrap_or(seen));
            }
        }
    }

    /// Offers a rate (0: as fast as it goes) and sees what the guest does with it.
    fn window(&mut self, rate: f64, phases: Phases) -> Result<Seen, WorkloadError> {
        let site = WorkSite { rate_per_s: Some(rate), ..*self.site };
        let mut schedule =
            Schedule { phases, start_at_ns: 0, seed: SEED, interval_ns: INTERVAL_NS, turns: None, baton: None };
        self.prepared.connect(&site, &schedule)?;
        schedule.start_at_ns = monotonic_ns() + LEAD_NS;
        let from_ns = schedule.start_at_ns + phases.steady_offset_ns();
        let window_ns = (from_ns, from_ns + phases.steady_state.ns);
        let (stop, cpu_s) = (AtomicBool::new(false), self.cpu_s);
        let prepared = &mut *self.prepared;
        let (driven, used) = std::thread::scope(|scope| {
            let meter = scope.spawn(|| cpus_used(cpu_s, window_ns, &stop));
            let driven = prepared.drive(&site, &schedule);
            stop.store(true, Ordering::Relaxed);
            (driven, meter.join().ok().flatten())
        });
        let mut driven = driven?;
        let wrong = self.prepared.verify(&site, &mut driven)?.or_else(|| driven.invalid.take());
        if let Some(wrong) = wrong {
            let remedy = "report this with the run's folder, if the guest had memory and CPU enough";
            return Err(Failure::new(tried(self.goal), wrong, remedy).into());
        }
        let Some(used) = used else {
            let why = "the host could not count the guest's CPU to the end";
            return Err(Failure::new(tried(self.goal), why, "try again").into());
        };
        Ok(Seen { done_per_s: done_per_s(&driven), share: used / f64::from(site.size.cpus.max(1)) })
    }
}

/// CPUs that the guest used in a window, on average; `None` when it was not measured to its end.
fn cpus_used(cpu_s: &(dyn Fn() -> Option<f64> + Sync), window_ns: (u64, u64), stop: &AtomicBool) -> Option<f64> {
    let read = |moment_ns| {
        wait_until(moment_ns, stop);
        let used = cpu_s()?;
        Some((used, monotonic_ns()))
    };
    let (first, from_ns) = read(window_ns.0)?;
    let (last, to_ns) = read(window_ns.1)?;
    let passed_s = to_ns.saturating_sub(from_ns) as f64 / 1e9;
    (to_ns >= window_ns.1 && passed_s > 0.0).then(|| (last - first) / passed_s)
}

fn done_per_s(driven: &Driven) -> f64 {
    let window_s = driven.measured_s();
    if window_s > 0.0 { driven.work / window_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest that does at most so much and whose idle share is `idle`; `noise` is what is added in turn.
    fn find(goal: f64, capacity: f64, idle: f64, noise: &[f64], warming: f64) -> Result<(Calibration, f64), Failure> {
        let mut asked = 0;
        // What is not compiled yet costs more.
        let mut cost = 1.0 + warming;
        let share = |rate: f64, cost: f64| (idle + (1.0 - idle) * cost * rate / capacity).min(1.0);
        let full = Seen { done_per_s: capacity / cost, share: 1.0 };
        let found = search::<Failure>(goal, full, |rate| {
            let noise = noise.get(asked % noise.len().max(1)).copied().unwrap_or(0.0);
            asked += 1;
            cost = 1.0 + (cost - 1.0) / 2.0;
            Ok(Seen { done_per_s: rate.min(capacity / cost), share: (share(rate, cost) + noise).clamp(0.0, 1.0) })
        })?;
        let truly = share(found.rate_per_s, cost);
        Ok((found, truly))
    }

    #[test]
    fn a_rate_is_found_within_the_tolerance_and_few_tries() {
        for goal in [0.05, 0.3, 0.55, 0.95] {
            for (capacity, idle) in [(11_000.0, 0.0), (11_000.0, 0.04), (40.0, 0.02)] {
                let (found, truly) = find(goal, capacity, idle, &[], 0.0).unwrap();
                assert!((truly - goal).abs() <= TOLERANCE, "{goal} {capacity} {idle}: {found:?}");
                assert!(found.tries.len() <= 4, "{goal} {capacity} {idle}: {found:?}");
                let last = found.tries.last().unwrap();
                assert_eq!((last.0, last.1), (found.rate_per_s, found.cpu_share));
            }
        }
    }

    #[test]
    fn noise_and_a_guest_that_is_not_warm_yet_are_got_over() {
        for (goal, warming) in [(0.3, 0.0), (0.55, 0.0), (0.55, 0.6), (0.8, 0.3)] {
            let (found, truly) = find(goal, 11_000.0, 0.03, &[0.025, -0.025, 0.01, -0.02], warming).unwrap();
            assert!((truly - goal).abs() <= TOLERANCE + 0.08, "{goal} {warming}: {found:?}, truly {truly}");
            assert!(found.tries.len() <= TRIES);
        }
    }

    #[test]
    fn what_cannot_be_reached_is_an_error_with_what_was_seen() {
        let full = Seen { done_per_s: 5000.0, share: 0.25 };
        let never = |_| -> Result<Seen, Failure> { unreachable!("no rate makes it use more") };
        let error = search(0.55, full, never).unwrap_err().to_string();
        assert!(error.contains("5000 operations/s") && error.contains("25 %") && error.contains("55 %"), "{error}");

        // Another program takes what is left of the CPUs: whatever is offered, the same share is seen.
        let full = Seen { done_per_s: 5000.0, share: 1.0 };
        let stuck = |rate: f64| -> Result<Seen, Failure> { Ok(Seen { done_per_s: rate, share: 0.8 }) };
        let error = search(0.55, full, stuck).unwrap_err().to_string();
        assert!(error.matches("took 80.0 %").count() == TRIES && error.contains("2750.0/s"), "{error}");

        let failing = |_| -> Result<Seen, Failure> { Err(Failure::new("drive", "gone", "none")) };
        assert!(search(0.55, full, failing).unwrap_err().to_string().contains("gone"));
    }

    #[test]
    fn a_rate_that_the_guest_does_not_keep_up_with_does_not_count() {
        let full = Seen { done_per_s: 1000.0, share: 1.0 };
        let mut asked = Vec::new();
        let found = search::<Failure>(0.5, full, |rate| {
            asked.push(rate);
            // It is half as fast when it is measured as when it was warmed up, and then sleeps for want of memory.
            let done = rate.min(250.0);
            Ok(Seen { done_per_s: done, share: 0.5 * done / 250.0 })
        });
        let found = found.unwrap();
        assert!(found.rate_per_s <= 250.0 / KEEPS_UP && asked.len() > 1, "{found:?}");
    }

    #[test]
    fn a_guest_is_warm_when_it_gets_no_faster() {
        let of = |costs: &[f64]| {
            // A host that others use as well lets it do more or less, at the same cost.
            let windows = costs.iter().zip([1000.0, 200.0].into_iter().cycle());
            is_warm(&windows.map(|(cost, rate)| Seen { done_per_s: rate, share: cost * rate }).collect::<Vec<_>>())
        };
        assert!(!of(&[1e-4; 4]), "these are too few");
        assert!(of(&[9e-4, 2e-4, 1e-4, 0.97e-4, 1.01e-4]));
        assert!(!of(&[9e-4, 3e-4, 1.2e-4, 1.1e-4, 1.0e-4]));
        assert!(!is_warm(&[Seen { done_per_s: 0.0, share: 0.5 }; 6]), "it does nothing yet");
    }

    #[test]
    fn cpu_is_counted_over_the_window_and_not_when_it_is_cut_short() {
        let now = monotonic_ns();
        let asked = std::sync::atomic::AtomicU32::new(0);
        let counted = || Some(f64::from(asked.fetch_add(1, Ordering::Relaxed)));
        let used = cpus_used(&counted, (now + 1_000_000, now + 40_000_000), &AtomicBool::new(false)).unwrap();
        assert!(used > 0.0 && asked.load(Ordering::Relaxed) == 2, "{used}");
        assert_eq!(cpus_used(&counted, (0, u64::MAX), &AtomicBool::new(true)), None);
        assert_eq!(cpus_used(&|| None, (0, 1), &AtomicBool::new(false)), None);
    }
}
