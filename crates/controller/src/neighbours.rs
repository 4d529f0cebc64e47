//! Guests that keep the host busy, and taking guests away.

use std::time::{Duration, Instant};

use tare_model::drive::BusyWork;
use tare_model::guest::GuestSpec;
use tare_platform::{Guest, Platform, Site};
use tare_wire::{Link, Reply, Request};

use crate::time_limits::TIMEOUT;

/// How long busy loops may take until each of them was seen to run.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts guests side by side, bounded by the host and not by us. Those that started are in `guests`
/// even if others did not. The message of the n-th that did not start begins with `what(n)`.
pub fn start(
    platform: &dyn Platform,
    site: &Site<'_>,
    specs: &[GuestSpec],
    what: impl Fn(usize) -> String,
    guests: &mut Vec<Box<dyn Guest>>,
) -> Result<(), String> {
    let results: Vec<Result<Box<dyn Guest>, String>> = std::thread::scope(|scope| {
        let starting: Vec<_> = specs
            .iter()
            .map(|spec| scope.spawn(move || platform.start(site, spec).map_err(|error| error.to_string())))
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("starting it panicked: a bug in tare".into())))
            .collect()
    });
    let mut failures = Vec::new();
    for (n, result) in results.into_iter().enumerate() {
        match result {
            Ok(guest) => guests.push(guest),
            Err(reason) => failures.push(what(n) + &reason),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(crate::text::together(&failures)) }
}

/// Busy loops in one guest.
pub struct BusyLoops {
    /// Which of the trial's guests.
    guest: usize,
    /// Their number in the guest's agent.
    number: u64,
    /// Iterations when they were last looked at.
    seen: u64,
}

/// Starts a busy loop on every CPU of the guests from the `first` on, all guests at once: the first to be
/// busy slow down whoever comes later. Returns when every one was seen to loop.
pub fn keep_busy(guests: &[Box<dyn Guest>], first: usize) -> Result<Vec<BusyLoops>, String> {
    let results: Vec<Result<BusyLoops, String>> = std::thread::scope(|scope| {
        let starting: Vec<_> = guests
            .iter()
            .enumerate()
            .skip(first)
            .map(|(n, guest)| {
                let (link, spec) = (guest.link(), guest.spec());
                scope.spawn(move || start_loops(n, link, spec))
            })
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("starting busy loops panicked: a bug in tare".into())))
            .collect()
    });
    results.into_iter().collect()
}

fn start_loops(guest: usize, link: &Link, spec: &GuestSpec) -> Result<BusyLoops, String> {
    let number = match link.call(Request::Busy { threads: spec.size.cpus, work: BusyWork::Spin }, TIMEOUT) {
        Ok(Reply::BusyStarted { busy, .. }) => busy,
        Ok(_) => return Err(format!("{}: answered something else", spec.name)),
        Err(error) => return Err(format!("{}: {error}", spec.name)),
    };
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        let seen = iterations(link, spec, number)?;
        if seen > 0 {
            return Ok(BusyLoops { guest, number, seen });
        }
        if Instant::now() > deadline {
            return Err(format!("{}: its busy loops did not run within {BUSY_TIMEOUT:?}", spec.name));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Looks at busy loops again: `Some(why)` when those of a guest did not go on since they were last looked
/// at, and so the host was not as busy as the case says. All at once: a busy guest answers late.
pub fn still_busy(guests: &[Box<dyn Guest>], loops: &[BusyLoops]) -> Option<String> {
    std::thread::scope(|scope| {
        let looking: Vec<_> = loops
            .iter()
            .filter_map(|busy| guests.get(busy.guest).map(|guest| (busy, guest.link(), guest.spec())))
            .map(|(busy, link, spec)| scope.spawn(move || stood_still(busy, link, spec)))
            .collect();
        looking.into_iter().find_map(|thread| {
            thread.join().unwrap_or_else(|_| Some("looking at busy loops panicked: a bug in tare".into()))
        })
    })
}

fn stood_still(busy: &BusyLoops, link: &Link, spec: &GuestSpec) -> Option<String> {
    match iterations(link, spec, busy.number) {
        Ok(now) if now > busy.seen => None,
        Ok(_) => Some(format!("the busy loops of {} stood still under load", spec.name)),
        Err(why) => Some(format!("a busy guest was lost under load: {why}")),
    }
}

fn iterations(link: &Link, spec: &GuestSpec, busy: u64) -> Result<u64, String> {
    match link.call(Request::BusyIterations { busy }, TIMEOUT) {
        Ok(Reply::BusyIterations { iterations }) => Ok(iterations),
        Ok(_) => Err(format!("{}: answered something else", spec.name)),
        Err(error) => Err(format!("{}: {error}", spec.name)),
    }
}

/// Takes guests away side by side; why each that did not go did not.
pub fn destroy(guests: &mut [Box<dyn Guest>]) -> Vec<String> {
    std::thread::scope(|scope| {
        let going: Vec<_> = guests
            .iter_mut()
            .map(|guest| {
                scope.spawn(move || guest.destroy().map_err(|error| format!("{}: {error}", guest.spec().name)))
            })
            .collect();
        going
            .into_iter()
            .filter_map(|thread| match thread.join() {
                Ok(result) => result.err(),
                Err(_) => Some("taking a guest away panicked: a bug in tare".into()),
            })
            .collect()
    })
}
