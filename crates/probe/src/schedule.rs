//! When samples are due.

use std::collections::BTreeSet;

/// A regular grid of instants, and instants of its own beside it. All times are CLOCK_MONOTONIC nanoseconds.
#[derive(Debug)]
pub(crate) struct Schedule {
    interval_ns: u64,
    grid_ns: u64,
    instants: BTreeSet<u64>,
    /// Instants at which only CPU time is read.
    edges: BTreeSet<u64>,
    lost: u64,
    lateness_max_ns: u64,
}

/// What is read when a sample is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Everything.
    All,
    /// CPU time alone.
    Cpu,
}

impl Schedule {
    /// The first instant of the grid is `start_ns`.
    pub fn new(start_ns: u64, interval_ns: u64) -> Self {
        Self {
            interval_ns: interval_ns.max(1),
            grid_ns: start_ns,
            instants: BTreeSet::new(),
            edges: BTreeSet::new(),
            lost: 0,
            lateness_max_ns: 0,
        }
    }

    /// More instants at which a sample must be taken.
    pub fn add(&mut self, instants: impl IntoIterator<Item = u64>) {
        self.instants.extend(instants);
    }

    /// More instants at which CPU time must be read, and nothing else.
    pub fn add_edges(&mut self, edges: impl IntoIterator<Item = u64>) {
        self.edges.extend(edges);
    }

    /// When the next sample is due.
    pub fn next_ns(&self) -> u64 {
        let firsts = [self.instants.first(), self.edges.first()];
        firsts.into_iter().flatten().fold(self.grid_ns, |next, &instant| next.min(instant))
    }

    /// A sample is taken at `now_ns`: everything due until then is done by it. Grid instants beyond the first that
    /// one sample had to serve are lost. What is to be read: all, where nothing was due.
    pub fn taken(&mut self, now_ns: u64) -> Due {
        self.lateness_max_ns = self.lateness_max_ns.max(now_ns.saturating_sub(self.next_ns()));
        let after = now_ns.saturating_add(1);
        let cpu_only = self.edges.first().is_some_and(|&edge| edge <= now_ns)
            && self.grid_ns > now_ns
            && self.instants.first().is_none_or(|&instant| instant > now_ns);
        // The sets are split only where something in them is due.
        for due in [&mut self.instants, &mut self.edges] {
            if due.first().is_some_and(|&first| first <= now_ns) {
                *due = due.split_off(&after);
            }
        }
        if self.grid_ns <= now_ns {
            let passed = (now_ns - self.grid_ns) / self.interval_ns;
            self.lost += passed;
            self.grid_ns += (passed + 1) * self.interval_ns;
        }
        if cpu_only { Due::Cpu } else { Due::All }
    }

    /// Grid instants that passed without a sample of their own.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The longest time from when a sample was due to when it was taken.
    pub const fn lateness_max_ns(&self) -> u64 {
        self.lateness_max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_does_not_shift_the_grid() {
        let mut schedule = Schedule::new(1_000, 100);
        schedule.taken(1_000);
        assert_eq!(schedule.next_ns(), 1_100);
        schedule.taken(1_130);
        assert_eq!((schedule.next_ns(), schedule.lost(), schedule.lateness_max_ns()), (1_200, 0, 30));
    }

    #[test]
    fn instants_slept_through_are_counted_as_lost() {
        let mut schedule = Schedule::new(0, 100);
        schedule.taken(350);
        assert_eq!((schedule.next_ns(), schedule.lost()), (400, 3));
    }

    #[test]
    fn instants_come_between_the_grid_and_do_not_move_it() {
        let mut schedule = Schedule::new(0, 100);
        schedule.taken(0);
        schedule.add([150, 130, 230]);
        let mut due = Vec::new();
        for _ in 0..5 {
            due.push(schedule.next_ns());
            schedule.taken(schedule.next_ns());
        }
        assert_eq!(due, [100, 130, 150, 200, 230]);
        assert_eq!(schedule.lost(), 0);
    }

    #[test]
    fn at_an_edge_cpu_time_alone_is_read_unless_more_is_due() {
        let mut schedule = Schedule::new(0, 100);
        assert_eq!(schedule.taken(0), Due::All);
        schedule.add_edges([50, 100, 130]);
        assert_eq!((schedule.next_ns(), schedule.taken(50)), (50, Due::Cpu));
        assert_eq!(schedule.taken(100), Due::All, "the grid is due, too");
        assert_eq!(schedule.next_ns(), 130);
        assert_eq!(schedule.taken(131), Due::Cpu);
        assert_eq!(schedule.taken(150), Due::All, "whoever asks when nothing is due wants all");
    }

    #[test]
    fn one_sample_serves_an_instant_and_the_grid_when_both_are_due() {
        let mut schedule = Schedule::new(100, 100);
        schedule.add([100]);
        schedule.taken(101);
        assert_eq!((schedule.next_ns(), schedule.lost()), (200, 0));
    }
}
