//! Arrivals of an open loop on the driver's clock, and dealt to its connections.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tare_model::arrivals::ArrivalTimes;
use tare_model::load::{Arrivals, Phases};

use crate::timeline::Timeline;

/// Arrivals generated under one lock, so that a thread never waits long for its next ones.
const BATCH: u32 = 4_096;

/// The moments at which operations shall start, in order, nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone)]
pub struct Schedule {
    times: ArrivalTimes,
    start_ns: u64,
    /// Maps the time since the start to moments, where the driver has turns.
    turns: Option<Timeline>,
}

impl Schedule {
    /// Arrivals at `rate` a second over `phases` that start at `start_ns`.
    pub fn new(rate: f64, arrivals: Arrivals, phases: &Phases, start_ns: u64, seed: u64) -> Self {
        Self { times: ArrivalTimes::new(rate, arrivals, phases, seed), start_ns, turns: None }
    }

    /// The same on the clock of a driver that has turns: nothing arrives while it is the turn of others.
    #[must_use]
    pub(crate) fn by(self, timeline: &Timeline) -> Self {
        Self { turns: timeline.takes_turns().then(|| timeline.clone()), ..self }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    /// The next arrival; `None` after the end of the load.
    fn next(&mut self) -> Option<u64> {
        let offset = self.times.next()?;
        Some(self.turns.as_ref().map_or(self.start_ns + offset, |timeline| timeline.moment(offset)))
    }
}

/// Deals the arrivals of a schedule to connections in turn, generating them as they are needed.
#[derive(Debug)]
pub(crate) struct Dealer {
    inner: Mutex<Deal>,
}

#[derive(Debug)]
struct Deal {
    schedule: Schedule,
    hands: Vec<VecDeque<u64>>,
    turn: usize,
    last_ns: u64,
    over: bool,
}

impl Deal {
    fn deal(&mut self, count: u32) {
        for _ in 0..count {
            let Some(at) = self.schedule.next() else {
                self.over = true;
                return;
            };
            self.last_ns = at;
            self.hands[self.turn].push_back(at);
            self.turn = (self.turn + 1) % self.hands.len();
        }
    }
}

impl Dealer {
    pub fn new(schedule: Schedule, connections: u32) -> Self {
        let hands = (0..connections.max(1)).map(|_| VecDeque::new()).collect();
        Self { inner: Mutex::new(Deal { schedule, hands, turn: 0, last_ns: 0, over: false }) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Deal> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the arrivals dealt to a connection so far into its empty `hand`; leaves it empty when there are no more.
    pub fn take(&self, connection: usize, hand: &mut VecDeque<u64>) {
        let mut deal = self.lock();
        while deal.hands[connection].is_empty() && !deal.over {
            deal.deal(BATCH);
        }
        std::mem::swap(hand, &mut deal.hands[connection]);
    }

    /// Generates arrivals up to a moment, so that threads find theirs ready.
    pub fn ahead(&self, until_ns: u64) {
        loop {
            let mut deal = self.lock();
            if deal.over || deal.last_ns >= until_ns {
                return;
            }
            deal.deal(BATCH);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Span;

    #[test]
    fn the_same_seed_is_the_same_schedule_and_dealing_loses_none() {
        let second = Span::from_secs(1);
        let phases = Phases { warm_up: Span::ZERO, ramp_up: second, steady_state: second, ramp_down: Span::ZERO };
        let schedule = || Schedule::new(9000.0, Arrivals::Poisson, &phases, 5, 3);
        let all: Vec<u64> = schedule().collect();
        let dealer = Dealer::new(schedule(), 3);
        dealer.ahead(1_000_000_000);
        for connection in 0..3 {
            let (mut mine, mut hand) = (Vec::new(), VecDeque::new());
            loop {
                dealer.take(connection, &mut hand);
                if hand.is_empty() {
                    break;
                }
                mine.extend(hand.drain(..));
            }
            let expected: Vec<u64> = all.iter().copied().skip(connection).step_by(3).collect();
            assert_eq!(mine, expected);
        }
    }
}
