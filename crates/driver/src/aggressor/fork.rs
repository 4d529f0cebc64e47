//! Starts processes that end at once: the tables of processes and the locks around them are the whole kernel's.

use std::io;

use super::{Aggressor, limits, sys};

/// Most processes that all threads together have at one moment, living or not yet collected.
const MOST: u64 = 64;
/// The same as a part of what the guest may have: what else runs in it keeps the rest.
const PART: u64 = 4;

/// Processes that have not been collected.
pub(super) struct Fork {
    most: usize,
    children: Vec<sys::Child>,
}

impl Fork {
    /// The part of one of so many threads.
    pub fn begin(threads: u32) -> Self {
        Self { most: most_each(limits::processes(), threads), children: Vec::new() }
    }
}

fn most_each(allowed: Option<u64>, threads: u32) -> usize {
    let all = allowed.map_or(MOST, |allowed| MOST.min(allowed / PART));
    usize::try_from(all / u64::from(threads.max(1))).unwrap_or(1).max(1)
}

impl Aggressor for Fork {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        let started = sys::Child::start();
        if started.is_err() || self.children.len() + 1 >= self.most {
            // Dropping collects.
            self.children.clear();
        }
        self.children.push(started?);
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_processes_are_there_at_one_moment() {
        assert_eq!(most_each(None, 1), 64);
        assert_eq!(most_each(None, 4), 16);
        assert_eq!(most_each(Some(100), 1), 25);
        assert_eq!(most_each(Some(3), 1), 1);
        assert_eq!(most_each(None, 1000), 1);
        let mut fork = Fork { most: 3, children: Vec::new() };
        for _ in 0..10 {
            assert_eq!(fork.piece(0).unwrap(), 1);
            assert!((1..=3).contains(&fork.children.len()));
        }
    }
}
