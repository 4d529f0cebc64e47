//! Whose turn it is where a turn ends when its command does, so that no table can say when the next begins.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tare_model::Span;

use crate::clock::monotonic_ns;

/// Passed from command to command of a set in the order of its turns.
pub struct Baton {
    state: Mutex<State>,
    changed: Condvar,
    gap: Span,
    /// Has CPU time read at a moment between two turns (CLOCK_MONOTONIC, nanoseconds).
    edge: Box<dyn Fn(u64) + Send + Sync>,
}

struct State {
    /// The turn that may begin, of those of all arms, and not before when.
    turn: u64,
    from_ns: u64,
    stopped: bool,
}

impl Baton {
    /// The first turn begins at `start_ns`, each other `gap` after the end of the one before; `edge` is called for the middle of each gap.
    pub fn new(start_ns: u64, gap: Span, edge: impl Fn(u64) + Send + Sync + 'static) -> Self {
        edge(start_ns.saturating_sub(gap.ns / 2));
        let state = Mutex::new(State { turn: 0, from_ns: start_ns, stopped: false });
        Self { state, changed: Condvar::new(), gap, edge: Box::new(edge) }
    }

    /// Waits for a turn, from 0 and of those of all arms; false, at once, when the set is stopped.
    pub fn take(&self, turn: u64) -> bool {
        let mut state = self.lock();
        while !state.stopped {
            let left = Duration::from_nanos(state.from_ns.saturating_sub(monotonic_ns()));
            state = if state.turn != turn {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else if left.is_zero() {
                return true;
            } else {
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        false
    }

    /// Ends the turn that was taken. Returns when CPU time has been due to be read, in the middle of the gap.
    pub fn pass(&self) {
        let half = self.gap.ns / 2;
        let end_ns = monotonic_ns();
        (self.edge)(end_ns + half);
        let mut state = self.lock();
        state.turn += 1;
        state.from_ns = end_ns + self.gap.ns;
        drop(state);
        self.changed.notify_all();
        std::thread::sleep(Duration::from_nanos(half));
    }

    /// Ends the set: nobody has a turn any more, and who waits for one is released.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// A value is never left half-written under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Baton {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Baton").field("gap", &self.gap).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    fn baton() -> (Baton, mpsc::Receiver<u64>) {
        let (edge, edges) = mpsc::channel();
        (Baton::new(monotonic_ns(), Span::from_millis(2), move |at| edge.send(at).unwrap_or_default()), edges)
    }

    #[test]
    fn turns_come_in_order_a_gap_apart_and_cpu_time_is_read_between_them() {
        let (baton, edges) = baton();
        let turns: Mutex<Vec<(u64, u64, u64)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            // Started in the wrong order.
            for own in [[5, 2], [4, 1], [3, 0]] {
                let (baton, turns) = (&baton, &turns);
                scope.spawn(move || {
                    for turn in own.into_iter().rev() {
                        assert!(baton.take(turn));
                        let from = monotonic_ns();
                        std::thread::sleep(Duration::from_millis(turn));
                        turns.lock().unwrap().push((turn, from, monotonic_ns()));
                        baton.pass();
                    }
                });
            }
        });
        let turns = turns.into_inner().unwrap();
        assert!(turns.iter().map(|turn| turn.0).eq(0..6), "{turns:?}");
        let edges: Vec<u64> = edges.try_iter().collect();
        assert_eq!(edges.len(), 7);
        for (pair, edge) in turns.windows(2).zip(&edges[1..]) {
            assert!(pair[1].1 - pair[0].2 >= 2_000_000, "{turns:?}");
            assert!((pair[0].2..pair[1].1).contains(edge), "{edge} of {turns:?}");
        }
        assert!(edges[0] < turns[0].1 && edges[6] > turns[5].2);
        assert!(edges[6] <= monotonic_ns(), "who passed last has waited for it");
    }

    #[test]
    fn all_who_wait_are_released_when_the_set_is_stopped_and_nobody_has_a_turn_after() {
        let baton = Arc::new(baton().0);
        assert!(baton.take(0));
        let waiting = [1, 2, 3].map(|turn| {
            let baton = Arc::clone(&baton);
            std::thread::spawn(move || baton.take(turn))
        });
        baton.stop();
        assert!(waiting.into_iter().all(|thread| !thread.join().unwrap()));
        baton.pass();
        assert!(!baton.take(1));
    }
}
