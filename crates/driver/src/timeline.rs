//! The phases of a run as moments on the clock, and the stage that a moment falls into.

use tare_model::load::Phases;

use crate::usage::Usage;

/// The moments at which phases begin and end, nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeline {
    pub start: u64,
    pub warm_end: u64,
    pub steady_start: u64,
    pub steady_end: u64,
    pub load_end: u64,
}

/// Where in its run a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    WarmUp,
    RampUp,
    Steady,
    RampDown,
    Over,
}

impl Timeline {
    pub fn new(start: u64, phases: &Phases) -> Self {
        // Phases of centuries end with the clock rather than with an overflow.
        let warm_end = start.saturating_add(phases.warm_up.ns);
        let steady_start = warm_end.saturating_add(phases.ramp_up.ns);
        let steady_end = steady_start.saturating_add(phases.steady_state.ns);
        let load_end = steady_end.saturating_add(phases.ramp_down.ns);
        Self { start, warm_end, steady_start, steady_end, load_end }
    }

    /// The stage at a moment, and when it ends.
    pub const fn stage_at(&self, now: u64) -> (Stage, u64) {
        if now < self.warm_end {
            (Stage::WarmUp, self.warm_end)
        } else if now < self.steady_start {
            (Stage::RampUp, self.steady_start)
        } else if now < self.steady_end {
            (Stage::Steady, self.steady_end)
        } else if now < self.load_end {
            (Stage::RampDown, self.load_end)
        } else {
            (Stage::Over, u64::MAX)
        }
    }

    /// When client `index` of `clients` joins in the ramp-up.
    pub const fn joins_at(&self, index: u32, clients: u32) -> u64 {
        let ramp = (self.steady_start - self.warm_end) as u128;
        let clients = if clients == 0 { 1 } else { clients };
        self.warm_end + (ramp * index as u128 / clients as u128) as u64
    }

    /// Whether a moment lies in the measured window.
    pub const fn measures(&self, at: u64) -> bool {
        self.steady_start <= at && at < self.steady_end
    }
}

/// Follows one thread through the stages, and takes its use of CPUs at both ends of the measured window.
#[derive(Debug)]
pub(crate) struct Tracker {
    timeline: Timeline,
    stage: Stage,
    until: u64,
    entered: Option<Usage>,
    spent: Usage,
}

impl Tracker {
    pub fn new(timeline: Timeline) -> Self {
        let mut tracker = Self { timeline, stage: Stage::WarmUp, until: 0, entered: None, spent: Usage::default() };
        tracker.cross(timeline.start);
        tracker
    }

    /// The stage at `now`, which must not go backwards.
    #[inline]
    pub fn at(&mut self, now: u64) -> Stage {
        if now >= self.until {
            self.cross(now);
        }
        self.stage
    }

    #[cold]
    fn cross(&mut self, now: u64) {
        let (stage, until) = self.timeline.stage_at(now);
        if stage == Stage::Steady && self.stage != Stage::Steady {
            self.entered = Some(Usage::of_this_thread());
        }
        if stage != Stage::Steady {
            self.leave();
        }
        (self.stage, self.until) = (stage, until);
    }

    fn leave(&mut self) {
        if let Some(before) = self.entered.take() {
            self.spent.add(Usage::of_this_thread().since(before));
        }
    }

    /// What the thread used of CPUs in the measured window.
    pub fn finish(mut self) -> Usage {
        self.leave();
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Span;

    fn timeline() -> Timeline {
        let phases = Phases {
            warm_up: Span { ns: 10 },
            ramp_up: Span { ns: 20 },
            steady_state: Span { ns: 30 },
            ramp_down: Span { ns: 40 },
        };
        Timeline::new(100, &phases)
    }

    #[test]
    fn a_stage_includes_its_start_and_not_its_end() {
        let t = timeline();
        let stages = [100, 110, 130, 160, 200].map(|at| t.stage_at(at).0);
        assert_eq!(stages, [Stage::WarmUp, Stage::RampUp, Stage::Steady, Stage::RampDown, Stage::Over]);
        assert!(!t.measures(129) && t.measures(130) && t.measures(159) && !t.measures(160));
    }

    #[test]
    fn clients_join_evenly_and_all_before_steady_state() {
        let t = timeline();
        let joins: Vec<u64> = (0..4).map(|i| t.joins_at(i, 4)).collect();
        assert_eq!(joins, [110, 115, 120, 125]);
    }

    #[test]
    fn a_tracker_may_skip_stages() {
        let mut tracker = Tracker::new(timeline());
        assert_eq!(tracker.at(105), Stage::WarmUp);
        assert_eq!(tracker.at(170), Stage::RampDown);
        assert_eq!(tracker.finish(), Usage::default(), "it never was in the window");
    }
}
