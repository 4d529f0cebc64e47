//! What is different in a set ([`super::set`]) of trials that are conditions of one guest.
//!
//! The guest and its neighbours are those of the first trial; the workload is set up in the guest once for each condition, each time with
//! drivers' agents of its own. Once all were driven, the guests pass from trial to trial while each makes its figures of them.

use tare_model::aggressor::Aggressor;
use tare_model::trial::Phase;
use tare_platform::Guest;

use super::aggressors::Aggressors;
use super::target::Target;
use super::{Running, Stop};

/// The guest, as each condition reaches it. What is known of it once it stands is known to all.
pub(super) fn stand_up(all: &mut [Running<'_>]) -> Result<Vec<Vec<Target>>, (usize, Stop)> {
    let Some((first, others)) = all.split_first_mut() else { return Ok(Vec::new()) };
    let mut targets = vec![first.trial.stand_up(&mut first.gathered).map_err(|stop| (0, stop))?];
    for (at, other) in others.iter_mut().enumerate() {
        let of = |stop: Stop| (at + 1, stop);
        other.trial.enter(Phase::Connect).map_err(of)?;
        let guests = first.gathered.measured();
        let mut clients = other.trial.start_clients(0, guests.len()).map_err(of)?.into_iter();
        let drivers = other.trial.case.load.guests().drivers as usize;
        // The guest's servers know one token, whatever the condition.
        let own = guests.iter().zip(&targets[0]).map(|(guest, known)| {
            let clients = clients.by_ref().take(drivers).collect();
            other.trial.target_by((known.index, known.index), &**guest, clients, known.token)
        });
        let own = own.collect::<Result<_, _>>().map_err(of)?;
        targets.push(own);
        let (known, own) = (&first.gathered, &mut other.gathered);
        own.parity.clone_from(&known.parity);
        own.starts.clone_from(&known.starts);
        own.facts.extend(known.facts.clone());
        own.flags.extend(known.flags.iter().filter(|flag| flag.kind == "parity").cloned());
        own.idle_memory_bytes = known.idle_memory_bytes;
    }
    Ok(targets)
}

/// Starts the neighbours, and has them get ready.
pub(super) fn neighbours(all: &mut [Running<'_>]) -> Result<Aggressors, Stop> {
    let of = |running: &Running<'_>| running.trial.case.schedule.condition().and_then(|condition| condition.work);
    let conditions: Vec<Option<Aggressor>> = all.iter().map(of).collect();
    for running in all.iter() {
        running.trial.enter(Phase::Neighbours)?;
    }
    let stop = |reason| Stop { phase: Phase::Neighbours, reason };
    let Some(first) = all.first_mut() else { return Aggressors::prepare(&[], conditions, None).map_err(stop) };
    first.trial.make_busy(&mut first.gathered, true).map_err(stop)?;
    let neighbours = first.gathered.guests.get(first.gathered.targets..).unwrap_or_default();
    neighbours.iter().try_for_each(|guest| limited(&**guest)).map_err(stop)?;
    let to = first.trial.bench.site.lab.client_address();
    Aggressors::prepare(neighbours, conditions, Some(to)).map_err(stop)
}

/// Sees that a neighbour cannot take more of the host than it was promised.
///
/// # Errors
/// Which limit does not hold, and the remedy.
fn limited(guest: &dyn Guest) -> Result<(), String> {
    let rows = guest.parity();
    for resource in ["memory limit", "process limit"] {
        let row = rows.iter().find(|row| row.resource == resource);
        if !row.is_some_and(|row| row.equal) {
            let (name, why) = (&guest.spec().name, row.map_or("nothing says so", |row| row.note.as_str()));
            return Err(format!(
                "neighbour {name} has no {resource} that holds ({why}), so it does nothing here. Run as root on a host with control \
                 groups that limit memory and processes, or leave `neighbours.work` out"
            ));
        }
    }
    Ok(())
}

/// Hands the guests from the trial before this one to it.
pub(super) fn pass_on(all: &mut [Running<'_>], at: usize) {
    if let Some([before, own]) = at.checked_sub(1).and_then(|before| all.get_mut(before..=at)) {
        own.gathered.targets = before.gathered.targets;
        own.gathered.guests = std::mem::take(&mut before.gathered.guests);
    }
}
