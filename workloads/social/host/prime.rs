//! Work that instances are given before their users come, so that what runs often is compiled in all of them alike.
//!
//! A virtual machine compiles what has run often, and until then takes several times the CPU for an operation. A warm-up of fixed length gives
//! instances of few users fewer operations than those of many: the first would look dearer by what they have not compiled yet, and throughput
//! would not be in proportion to CPU. Priming counts operations instead.

use std::time::{Duration, Instant};

use crate::social::spec::{Cycle, InstanceDone, SocialDone};
use tare_model::Span;
use tare_model::load::{LoadModel, Phases};
use tare_model::trial::Flag;

use super::parameters::Parameters;
use super::running::Running;
use super::verify::too_many_errors;
use crate::clock::monotonic_ns;
use crate::requests::total;
use crate::{Failure, Schedule, WorkSite, WorkloadError};

/// Users of each instance while it is primed, who wait for nothing but answers. No fewer have data ([`crate::social::spec::Scale::of`]).
const USERS: u32 = 10;
/// Cycle time of those users.
const AT_ONCE: Cycle = Cycle { mean_ns: 1_000_000, most_ns: 1_000_000, add_person_ns: 0, add_event_ns: 0 };
/// Bounds of a window, seconds. The next is as long as what is left should take.
const WINDOW_S: (f64, f64) = (1.0, 10.0);
/// From the moment when users are connected to their first operation.
const LEAD_NS: u64 = 50_000_000;
/// Figures of users who prime are not kept, but the driver needs an interval.
const INTERVAL_NS: u64 = 1_000_000_000;
const SEED: u64 = 0x7072_696d_6564;

/// Until instances serve, with their database beside them, seconds, and further ones for each instance; and operations a second of a CPU while
/// they compile, in the mean: as bench/README.md's machine did with one instance.
const STARTS_S: f64 = 3.0;
const STARTS_EACH_S: f64 = 1.0;
const COMPILING_PER_S: f64 = 250.0;

/// About how long instances in a guest of so many CPUs take until users can come, for the plan.
pub(super) fn set_up(parameters: &Parameters, cpus: u32, instances: u32) -> Span {
    let each_s = STARTS_EACH_S + f64::from(parameters.prime.operations) / COMPILING_PER_S;
    let primed_s = each_s * f64::from(instances.max(1)) / f64::from(cpus.max(1));
    let seconds = STARTS_S + primed_s.min(parameters.prime.within.ns as f64 / 1e9);
    Span::from_millis((seconds * 1e3).round() as u64)
}

/// What an instance has answered so far, and how fast at last.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Primed {
    operations: u64,
    per_s: f64,
}

/// What was done while instances were primed.
#[derive(Debug, Default)]
pub(super) struct Priming {
    instances: Vec<Primed>,
    /// Operations a second of all instances, by window.
    windows: Vec<f64>,
}

impl Priming {
    /// Adds a window of so many seconds.
    fn add(&mut self, done: &SocialDone, window_s: f64) {
        self.instances.resize(done.instances.len(), Primed::default());
        for (primed, done) in self.instances.iter_mut().zip(&done.instances) {
            let answered = answered(done);
            primed.operations += answered;
            primed.per_s = answered as f64 / window_s;
        }
        self.windows.push(self.instances.iter().map(|one| one.per_s).sum());
    }

    /// How long the next window is, seconds; `None`: every instance has answered so many operations.
    fn next_s(&self, operations: u64) -> Option<f64> {
        if self.instances.is_empty() {
            return Some(WINDOW_S.0);
        }
        let left = self.instances.iter().filter(|one| one.operations < operations);
        let seconds = left.map(|one| (operations - one.operations) as f64 / one.per_s.max(0.1));
        let longest = seconds.fold(None, |longest: Option<f64>, s| Some(longest.map_or(s, |l| l.max(s))))?;
        Some(longest.clamp(WINDOW_S.0, WINDOW_S.1))
    }

    /// Fewest and most operations of an instance.
    fn range(&self) -> (u64, u64) {
        let each = || self.instances.iter().map(|one| one.operations);
        (each().min().unwrap_or(0), each().max().unwrap_or(0))
    }

    fn summary(&self, took: Duration) -> String {
        let (least, most) = self.range();
        let rates: Vec<String> = self.windows.iter().map(|rate| format!("{rate:.0}")).collect();
        format!(
            "{least} to {most} operations by each instance before users came, in {:.1} s; operations/s by window: {}",
            took.as_secs_f64(),
            rates.join(", ")
        )
    }
}

/// Operations that were answered in the window.
fn answered(done: &InstanceDone) -> u64 {
    done.operations.iter().map(|one| one.requests.saturating_sub(one.validation_errors)).sum()
}

/// Has every instance answer as many operations as the parameters say, as fast as they can, all at one time, and adds to `running` what there
/// is to tell. Those that are through go on until the last is, as under load.
///
/// # Errors
/// When load could not be offered, or too many answers were wrong. When time runs out, a flag reports it.
pub(super) fn prime(running: &mut Running, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
    let asked = running.parameters.prime;
    if asked.operations == 0 {
        return Ok(());
    }
    let drivers = u32::try_from(site.drivers.len()).unwrap_or(u32::MAX).max(1);
    let clients = USERS.saturating_mul(site.instances).div_ceil(drivers).max(site.instances);
    let site = WorkSite { load: LoadModel::Closed { clients, think_time: Span::ZERO }, ..*site };
    let began = Instant::now();
    let mut priming = Priming::default();
    while let Some(seconds) = priming.next_s(u64::from(asked.operations)) {
        if began.elapsed() >= asked.within.duration() {
            running.started.flags.push(short(&priming, asked.operations, asked.within));
            break;
        }
        let done = window(running, &site, seconds, priming.windows.len() as u64)?;
        priming.add(&done, seconds);
    }
    running.started.facts.insert("primed".to_owned(), priming.summary(began.elapsed()));
    Ok(())
}

/// What readers must know of instances that did not answer enough.
fn short(priming: &Priming, asked: u32, within: Span) -> Flag {
    let (least, _) = priming.range();
    let detail = format!(
        "an instance answered {least} of {asked} operations within {within} before its users came: it may still compile, and takes more CPU then"
    );
    Flag { kind: "primed-short".to_owned(), detail }
}

/// One window of load.
fn window(running: &mut Running, site: &WorkSite<'_>, seconds: f64, number: u64) -> Result<SocialDone, WorkloadError> {
    let steady_state = Span::from_millis((seconds * 1e3).round() as u64);
    let phases = Phases { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state, ramp_down: Span::ZERO };
    let mut schedule = Schedule {
        phases,
        start_at_ns: 0,
        seed: SEED.wrapping_add(number),
        interval_ns: INTERVAL_NS,
        turns: None,
        baton: None,
    };
    running.connect_with(site, &schedule, AT_ONCE)?;
    schedule.start_at_ns = monotonic_ns() + LEAD_NS;
    let (driven, done) = running.offer(site, &schedule)?;
    let all = total(&driven.measurement.requests);
    // Whoever has answered nothing yet has answered nothing wrongly: time decides.
    let wrong = if all.requests == 0 { None } else { too_many_errors(&all, &done, running.parameters.errors_max) };
    match wrong {
        None => Ok(done),
        Some(wrong) => {
            let remedy = "the guest may be short of CPU or memory; `prime = { operations = 0 }` leaves this out";
            let tried = "have the social application do work before its users come".to_owned();
            Err(running.abandoned(site, Failure::new(tried, wrong, remedy).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tare_model::trial::RequestType;

    use super::*;

    fn done(operations: &[u64]) -> SocialDone {
        let instance = |requests: &u64| InstanceDone {
            operations: vec![RequestType { requests: *requests + 1, validation_errors: 1, ..RequestType::default() }],
            ..InstanceDone::default()
        };
        SocialDone { instances: operations.iter().map(instance).collect(), ..SocialDone::default() }
    }

    #[test]
    fn the_plan_counts_what_each_instance_has_to_answer_and_no_more_than_the_bound() {
        let with = |operations, within| Parameters {
            prime: super::super::parameters::Prime { operations, within: Span::from_secs(within) },
            ..Parameters::default()
        };
        let (none, some) = (with(0, 600), with(2500, 600));
        assert_eq!(set_up(&none, 1, 1), Span::from_secs(4));
        assert_eq!(set_up(&some, 1, 1), Span::from_secs(14));
        assert_eq!(set_up(&some, 1, 8), Span::from_secs(3 + 88));
        assert_eq!(set_up(&some, 2, 8), Span::from_secs(3 + 44));
        assert_eq!(set_up(&with(2500, 30), 1, 8), Span::from_secs(33));
    }

    #[test]
    fn windows_go_on_until_the_slowest_instance_has_answered_what_was_asked() {
        let mut priming = Priming::default();
        assert_eq!(priming.next_s(1000), Some(1.0));
        priming.add(&done(&[10, 100]), 1.0);
        // 990 are left of the first, at 10 a second.
        assert_eq!(priming.next_s(1000), Some(10.0));
        priming.add(&done(&[700, 2000]), 10.0);
        // 290 at 70 a second.
        assert!((priming.next_s(1000).unwrap() - 290.0 / 70.0).abs() < 1e-9);
        priming.add(&done(&[290, 400]), 4.0);
        assert_eq!(priming.next_s(1000), None);
        assert_eq!(priming.range(), (1000, 2500));
        let summary = priming.summary(Duration::from_millis(15_400));
        assert!(summary.starts_with("1000 to 2500 operations by each instance"), "{summary}");
        assert!(summary.ends_with("in 15.4 s; operations/s by window: 110, 270, 172"), "{summary}");
    }

    #[test]
    fn an_instance_that_answers_nothing_is_asked_on_for_no_longer_than_a_window_at_a_time() {
        let mut priming = Priming::default();
        priming.add(&done(&[0]), 1.0);
        assert_eq!(priming.next_s(1000), Some(WINDOW_S.1));
        let flag = short(&priming, 1000, Span::from_secs(60));
        assert!(flag.kind == "primed-short" && flag.detail.contains("0 of 1000"), "{}", flag.detail);
    }
}
