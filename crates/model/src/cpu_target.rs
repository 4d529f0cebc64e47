//! A load that keeps the guests' CPUs busy to a given share: what is asked, and how well it was held.

use serde::{Deserialize, Serialize};

use crate::load::{LoadKind, Phases};
use crate::units::Span;

/// A case that looks for the load at which the guests' CPUs are busy to a given share, and measures there. One trial is one search and
/// one measurement, in the same instances: load is changed while they stand.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuTarget {
    /// The kind of its loads.
    pub kind: LoadKind,
    /// Share of the guests' CPUs, 0 to 1, as the host counts them or, of machines elsewhere, their own kernels
    /// ([`crate::metric::common::GUEST_CPU`]).
    pub share: f64,
    /// How far the measured share may be from it, 0.02: two points. A measurement that is further off is one more reading; when the steps
    /// are used up the trial is invalid.
    pub tolerance: f64,
    /// The first load, in clients of a closed loop or arrivals a second of an open one.
    pub from: f64,
    /// The largest load that is tried.
    pub most: f64,
    /// How long each load is measured while it is looked for; the case's own phases are those of the measurement.
    pub step: Span,
    /// Loads that are tried at most before the search is given up.
    pub steps: u32,
}

/// Loads that a search usually takes: the first, one by proportion, and two that close in on the share.
const LIKELY: u32 = 4;

impl CpuTarget {
    /// How long clients join and settle before each load of the search but the first, which has the case's own warm-up: a third of a
    /// step.
    pub const fn settle(&self) -> Span {
        Span { ns: self.step.ns / 3 }
    }

    /// Loads that a search likely takes.
    pub fn steps_likely(&self) -> u32 {
        self.steps.clamp(1, LIKELY)
    }

    /// Phases of the `number`-th load of a search, from 1, where the case's own are `own`: what is to be warm before anything counts
    /// is warmed up once.
    pub fn phases(&self, own: &Phases, number: u32) -> Phases {
        let step = Phases::measuring(self.step);
        if number == 1 && own.steady_offset_ns() >= self.settle().ns {
            return Phases { warm_up: own.warm_up, ramp_up: own.ramp_up, ..step };
        }
        Phases { warm_up: self.settle(), ..step }
    }

    /// Time under load of a search of so many steps, the measurement left out.
    pub fn searching(&self, own: &Phases, steps: u32) -> Span {
        let later = u64::from(steps.saturating_sub(1)).saturating_mul(self.phases(own, 2).total().ns);
        Span { ns: if steps == 0 { 0 } else { self.phases(own, 1).total().ns.saturating_add(later) } }
    }
}

/// What a search for a load came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuSearch {
    /// The share that was asked, 0 to 1.
    pub target: f64,
    /// How far off it may be.
    pub tolerance: f64,
    /// Loads that were tried, in order; the last is the measurement.
    pub steps: Vec<CpuSearchStep>,
    /// The load that was measured at, clients or arrivals a second.
    pub load: f64,
    /// The share in the measured window, 0 to 1.
    pub share: f64,
    /// Standard deviation of the share over the intervals of the window, 0 to 1; `None` with fewer than two.
    pub spread: Option<f64>,
    /// Share by interval of the window: (seconds from its start, share), for drawing.
    pub course: Vec<(f64, f64)>,
}

/// One load that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuSearchStep {
    /// The load, clients or arrivals a second.
    pub load: f64,
    /// Share of the guests' CPUs that it took, 0 to 1.
    pub share: f64,
    /// Operations a second.
    pub operations_per_s: f64,
    /// Length of the window, seconds.
    pub window_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_warmed_up_is_warmed_up_once() {
        let secs = Span::from_secs;
        let kind = LoadKind::Closed { think_time: Span::ZERO };
        let target = CpuTarget { kind, share: 0.4, tolerance: 0.02, from: 1.0, most: 9.0, step: secs(30), steps: 8 };
        let phases = |warm_up, ramp_up, steady_state| Phases { warm_up, ramp_up, ..Phases::measuring(steady_state) };
        let own = Phases { ramp_down: secs(1), ..phases(secs(60), secs(5), secs(120)) };
        assert_eq!(target.phases(&own, 1), phases(secs(60), secs(5), secs(30)));
        assert_eq!(target.phases(&own, 2), phases(secs(10), Span::ZERO, secs(30)));
        let cold = phases(secs(1), Span::ZERO, secs(9));
        assert_eq!(
            target.phases(&cold, 1),
            phases(secs(10), Span::ZERO, secs(30)),
            "clients join over a while in any case"
        );
        assert_eq!((target.searching(&own, 3), target.searching(&own, 0)), (secs(95 + 80), Span::ZERO));
        assert_eq!((target.steps_likely(), CpuTarget { steps: 2, ..target }.steps_likely()), (4, 2));
    }
}
