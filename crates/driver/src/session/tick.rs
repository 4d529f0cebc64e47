//! A timer that has a thread look up now and then, so that most waits need none of their own.
//!
//! A wait with a timeout has the kernel set a timer and take it away again, for every answer that a thread sleeps for. What is due only
//! after the next tick needs none: the tick ends the wait, and the moment is looked at again.

use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};

use crate::clock::now_ns;

/// How often it ticks, so that a thread sees when the run is cancelled.
pub(crate) const EVERY_NS: u64 = 50_000_000;
/// No connection has this number and age.
pub(crate) const DATA: u64 = u64::MAX;

/// Ticks of one thread, which begin with it.
#[derive(Debug)]
pub(crate) struct Ticks {
    timer: OwnedFd,
    began: u64,
}

impl Ticks {
    /// Ticks that end the waits of an epoll instance.
    ///
    /// # Errors
    /// When the kernel refuses a timer, or has no room to watch it.
    pub fn on(epoll: &OwnedFd) -> Result<Self, Errno> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(epoll, &timer, EventData::new_u64(DATA), EventFlags::IN | EventFlags::ET)?;
        let every = Timespec { tv_sec: 0, tv_nsec: EVERY_NS as _ };
        let began = now_ns();
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: every, it_value: every })?;
        Ok(Self { timer, began })
    }

    /// Takes note of a tick. The kernel starts the timer again only when it is read.
    pub fn ticked(&self) {
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }

    /// How long to wait for a moment, nanoseconds; `None`: until something happens, for a tick comes before it.
    pub fn rest(&self, until: u64) -> Option<u64> {
        let now = now_ns();
        // The next tick but one, for each is late by as much as lay between the clock and the start of the timer.
        let tick = self.began + ((now - self.began) / EVERY_NS + 2) * EVERY_NS;
        (until < tick).then(|| until.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sys::{self, BATCH, Event};
    use std::os::fd::AsFd;

    #[test]
    fn a_wait_without_a_timeout_ends_with_every_tick_and_what_is_due_soon_has_its_own() {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let ticks = Ticks::on(&epoll).unwrap();
        assert_eq!(ticks.rest(u64::MAX), None);
        assert!(ticks.rest(now_ns() + 1_000_000).is_some_and(|rest| rest <= 1_000_000));
        assert_eq!(ticks.rest(0), Some(0));
        let mut events = [Event { data: 0, flags: 0 }; BATCH];
        for _ in 0..3 {
            assert_eq!(sys::wait(epoll.as_fd(), None, &mut events).unwrap(), 1);
            assert_eq!(events[0].data, DATA);
            ticks.ticked();
        }
        assert!(now_ns() - ticks.began >= 3 * EVERY_NS);
        assert_eq!(sys::wait(epoll.as_fd(), Some(0), &mut events).unwrap(), 0, "a tick is reported once");
    }
}
