//! How many arrivals of an open loop waited at one moment.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::timeline::Timeline;

/// Most moments that are looked at; 4 MiB of counters.
const CELLS_MAX: u64 = 1 << 20;
/// Finest distance of two moments.
const GRID_NS_MIN: u64 = 100_000;

/// Counts waiting arrivals on a grid of moments: 100 us apart, or a millionth of the run where that is
/// longer. An arrival adds one where its wait begins and takes one away where it ends, so threads share
/// nothing but two additions for an arrival that had to wait, and none for one that had not.
#[derive(Debug)]
pub(crate) struct Backlog {
    start: u64,
    grid: u64,
    changes: Vec<AtomicI32>,
}

impl Backlog {
    /// Counters from the start of a run to `end`.
    pub fn new(timeline: &Timeline, end: u64) -> Self {
        let length = end.saturating_sub(timeline.start).max(1);
        let grid = GRID_NS_MIN.max(length.div_ceil(CELLS_MAX));
        let cells = length.div_ceil(grid) as usize + 2;
        Self { start: timeline.start, grid, changes: (0..cells).map(|_| AtomicI32::new(0)).collect() }
    }

    /// Index of the first moment of the grid that is not before `at`.
    fn cell(&self, at: u64) -> usize {
        (at.saturating_sub(self.start).div_ceil(self.grid) as usize).min(self.changes.len() - 1)
    }

    /// An arrival waited from its intended start until it was sent.
    #[inline]
    pub fn waited(&self, intended: u64, sent: u64) {
        let (from, to) = (self.cell(intended), self.cell(sent));
        if from != to {
            self.changes[from].fetch_add(1, Ordering::Relaxed);
            self.changes[to].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// An arrival was never sent.
    pub fn given_up(&self, intended: u64) {
        self.changes[self.cell(intended)].fetch_add(1, Ordering::Relaxed);
    }

    /// Most arrivals waiting at one moment between `from` and `to`.
    pub fn most(&self, from: u64, to: u64) -> u64 {
        let (first, last) = (self.cell(from), self.cell(to));
        let (mut waiting, mut most) = (0i64, 0i64);
        for (index, change) in self.changes.iter().enumerate().take(last + 1) {
            waiting += i64::from(change.load(Ordering::Relaxed));
            if index >= first {
                most = most.max(waiting);
            }
        }
        most.max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Span;
    use tare_model::load::Phases;

    #[test]
    fn the_most_that_waited_at_one_moment_not_the_sum() {
        let phases = Phases::measuring(Span::from_millis(100));
        let timeline = Timeline::new(1_000, &phases);
        let backlog = Backlog::new(&timeline, timeline.load_end);
        let at = |ms: u64| timeline.start + ms * 1_000_000;
        backlog.waited(at(1), at(5));
        backlog.waited(at(4), at(7));
        backlog.waited(at(5) + 1, at(9));
        backlog.waited(at(50) + 1, at(50) + 10);
        backlog.given_up(at(90));
        assert_eq!(backlog.most(timeline.start, timeline.load_end), 2);
        assert_eq!(backlog.most(at(20), at(80)), 0);
        assert_eq!(backlog.most(at(91), timeline.load_end), 1, "one that is never sent waits to the end");
    }
}
