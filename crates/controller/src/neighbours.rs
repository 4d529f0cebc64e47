//! Guests that keep the host busy, and taking guests away.

use std::time::{Duration, Instant};

use tare_model::guest::GuestSpec;
use tare_platform::{Guest, Platform, Site};
use tare_wire::{Reply, Request};

use crate::trial::PATIENCE;

/// How long busy loops may take until each of them was seen to run.
const BUSY_PATIENCE: Duration = Duration::from_secs(20);

/// Starts guests side by side, bounded by the host and not by us. Those that started are in `guests`
/// even if others did not.
pub fn start(
    platform: &dyn Platform,
    site: &Site<'_>,
    specs: &[GuestSpec],
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
    for (spec, result) in specs.iter().zip(results) {
        match result {
            Ok(guest) => guests.push(guest),
            Err(reason) => failures.push(format!("neighbour {}: {reason}", spec.name)),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Starts a busy loop on every CPU of these guests, and returns when every guest was seen to loop.
pub fn keep_busy(guests: &[&dyn Guest]) -> Result<(), String> {
    let mut loops = Vec::new();
    for guest in guests {
        let threads = guest.spec().size.cpus;
        match guest.link().call(Request::Busy { threads }, PATIENCE) {
            Ok(Reply::BusyStarted { busy }) => loops.push((guest, busy)),
            Ok(_) => return Err(format!("{}: answered something else", guest.spec().name)),
            Err(error) => return Err(format!("{}: {error}", guest.spec().name)),
        }
    }
    let deadline = Instant::now() + BUSY_PATIENCE;
    for (guest, busy) in loops {
        while iterations(*guest, busy)? == 0 {
            if Instant::now() > deadline {
                return Err(format!("{}: its busy loops did not run within {BUSY_PATIENCE:?}", guest.spec().name));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

fn iterations(guest: &dyn Guest, busy: u64) -> Result<u64, String> {
    match guest.link().call(Request::BusyIterations { busy }, PATIENCE) {
        Ok(Reply::BusyIterations { iterations }) => Ok(iterations),
        Ok(_) => Err(format!("{}: answered something else", guest.spec().name)),
        Err(error) => Err(format!("{}: {error}", guest.spec().name)),
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
