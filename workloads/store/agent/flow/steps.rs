//! The steps of an order, and how long each takes.

use tare_model::trial::Step as MeasuredStep;

use crate::clock::now_ns;
use crate::times::Times;

/// A step, in the order in which they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    LogIn,
    NewCustomer,
    ByCategory,
    ByActor,
    ByTitle,
    ReadPrices,
    /// The whole of it, where that is one round trip.
    Purchase,
    InsertOrder,
    InsertLines,
    Commit,
    /// A purchase that ended in a deadlock, and the pause before the next try.
    Deadlock,
    /// What an order was at when the run ended.
    CutOff,
}

/// All of them, with their names for people.
const STEPS: [(Step, &str); 12] = [
    (Step::LogIn, "log in"),
    (Step::NewCustomer, "new customer"),
    (Step::ByCategory, "browse by category"),
    (Step::ByActor, "browse by actor"),
    (Step::ByTitle, "browse by title"),
    (Step::ReadPrices, "read prices"),
    (Step::Purchase, "purchase"),
    (Step::InsertOrder, "purchase: begin, order"),
    (Step::InsertLines, "purchase: stock, lines, history"),
    (Step::Commit, "purchase: commit"),
    (Step::Deadlock, "purchase: again after deadlock"),
    (Step::CutOff, "cut off at the end of the run"),
];

/// How long steps took, over all clients of a driver, in the measured window.
#[derive(Debug)]
pub(crate) struct StepTimes {
    times: [Times; STEPS.len()],
}

impl StepTimes {
    pub fn new() -> Self {
        Self { times: std::array::from_fn(|_| Times::new()) }
    }

    /// The steps that were done.
    pub fn measured(&self) -> Vec<MeasuredStep> {
        let steps = STEPS.iter().zip(&self.times).map(|((step, name), times)| MeasuredStep {
            name: (*name).to_owned(),
            within: *step != Step::ReadPrices,
            times: times.histogram(),
        });
        steps.filter(|step| !step.times.is_empty()).collect()
    }
}

/// Times the steps of one order after the other: where one ends the next begins.
#[derive(Debug, Default)]
pub(crate) struct Laps {
    began: u64,
    at: u64,
    taken: Vec<(Step, u64)>,
    untimed: u64,
    rested: u64,
}

impl Laps {
    /// A new order begins.
    #[inline]
    pub fn start(&mut self) {
        self.taken.clear();
        (self.untimed, self.rested) = (0, 0);
        self.at = now_ns();
        self.began = self.at;
    }

    /// When the order began, nanoseconds of CLOCK_MONOTONIC.
    pub const fn began(&self) -> u64 {
        self.began
    }

    /// A step has ended.
    #[inline]
    pub fn lap(&mut self, step: Step) {
        let now = now_ns();
        let took = now - self.at;
        self.taken.push((step, took));
        if step == Step::ReadPrices {
            self.untimed += took;
        }
        self.at = now;
    }

    /// How many steps have been timed so far.
    #[inline]
    pub fn mark(&self) -> usize {
        self.taken.len()
    }

    /// All since a mark was one step, and it ends now.
    #[cold]
    pub fn lap_since(&mut self, mark: usize, step: Step) {
        let before: u64 = self.taken.drain(mark..).map(|(_, took)| took).sum();
        let now = now_ns();
        self.taken.push((step, before + (now - self.at)));
        self.at = now;
    }

    /// What did not belong to the order's response time, nanoseconds.
    #[inline]
    pub const fn untimed(&self) -> u64 {
        self.untimed
    }

    /// So much of the present step was the turn of others, nanoseconds.
    #[cold]
    pub const fn rest(&mut self, ns: u64) {
        self.rested += ns;
        self.at += ns;
    }

    /// How much of the order's time was the turn of others, nanoseconds.
    #[inline]
    pub const fn rested(&self) -> u64 {
        self.rested
    }

    /// The order counts: so do its steps.
    #[inline]
    pub fn record(&self, all: &StepTimes) {
        for (step, took) in &self.taken {
            all.times[*step as usize].record(*took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_place_and_its_name() {
        for (at, (step, name)) in STEPS.iter().enumerate() {
            assert_eq!(*step as usize, at, "{name}");
        }
    }

    #[test]
    fn laps_add_up_and_reading_prices_is_not_timed() {
        let (all, mut laps) = (StepTimes::new(), Laps::default());
        laps.start();
        let began = laps.at;
        laps.lap(Step::LogIn);
        laps.lap(Step::ReadPrices);
        let mark = laps.mark();
        laps.lap(Step::InsertOrder);
        laps.lap(Step::InsertLines);
        laps.lap_since(mark, Step::Deadlock);
        laps.record(&all);
        let steps = all.measured();
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["log in", "read prices", "purchase: again after deadlock"]);
        assert_eq!(steps.iter().map(|step| step.within).collect::<Vec<_>>(), [true, false, true]);
        let sum: u128 = steps.iter().map(|step| step.times.sum).sum();
        assert_eq!(sum, u128::from(laps.at - began));
        assert_eq!(u128::from(laps.untimed()), steps[1].times.sum);
        laps.start();
        std::thread::sleep(std::time::Duration::from_millis(2));
        laps.rest(1_500_000);
        laps.lap_since(0, Step::Deadlock);
        let (_, took) = laps.taken[0];
        assert_eq!((took + laps.rested(), laps.rested()), (laps.at - laps.began, 1_500_000));
    }
}
