//! What is due when: a heap of moments.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is to be done at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A user goes on, or joins: number of the session.
    User(u32),
    /// A connection may be read from again: its number and age, for it may have gone meanwhile.
    Read(u32, u32),
}

/// Moments to come, each with what is to be done then.
#[derive(Debug)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, Due)>>,
}

impl Timers {
    pub fn with_capacity(count: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(count) }
    }

    pub fn at(&mut self, at_ns: u64, due: Due) {
        self.heap.push(Reverse((at_ns, due)));
    }

    /// The next moment; the end of time where nothing is to come.
    pub fn next_at(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    /// The earliest that is due, with its moment.
    pub fn pop(&mut self, now: u64) -> Option<(u64, Due)> {
        if self.next_at() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_first_comes_first_and_nothing_comes_early() {
        let mut timers = Timers::with_capacity(3);
        for (at, session) in [(30, 3), (10, 1), (20, 2)] {
            timers.at(at, Due::User(session));
        }
        assert_eq!(timers.next_at(), 10);
        assert_eq!(timers.pop(9), None);
        assert_eq!(timers.pop(25), Some((10, Due::User(1))));
        assert_eq!(timers.pop(25), Some((20, Due::User(2))));
        assert_eq!(timers.pop(25), None);
        assert_eq!(timers.pop(30), Some((30, Due::User(3))));
        assert_eq!(timers.next_at(), u64::MAX);
    }
}
