//! Guests that come and go.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tare_model::density::StopKind;
use tare_model::trial::Phase;
use tare_platform::Site;
use tare_wire::Request;
use tare_workload::GuestTraits;

use super::host::Carrier;
use super::{Ascending, WAIT_EVERY, Why, gib};
use crate::neighbours;
use crate::parallel;
use crate::text::{fit, last};
use crate::time_limits::timeout;
use crate::trial::drive::cancel;
use crate::trial::provision::weigh_idle;
use crate::trial::target::end_clients;
use crate::trial::{Gathered, Stop};

/// After a guest has come or gone, it takes a moment until whoever governs merging has seen it, and until memory that was
/// given back is there again. A reading before that shows the host as it was.
pub(super) const STALE: Duration = Duration::from_millis(2500);

/// Why a guest could not be added.
struct NotAdded {
    kind: StopKind,
    stop: Stop,
}

impl NotAdded {
    fn new(kind: StopKind, phase: Phase, reason: String) -> Self {
        Self { kind, stop: Stop { phase, reason } }
    }
}

impl From<Stop> for NotAdded {
    fn from(stop: Stop) -> Self {
        Self { kind: StopKind::Start, stop }
    }
}

impl Ascending<'_> {
    /// Adds guests or takes the last ones away until so many stand. When one cannot be added, fewer stand, and no part of a tile.
    ///
    /// # Errors
    /// When not even the first tile can be added, a guest cannot be taken away, or the user wishes to stop.
    pub(super) fn bring_to(&mut self, guests: u32, gathered: &mut Gathered) -> Result<(), Stop> {
        if self.standing() > guests {
            self.take_away_beyond(guests as usize, gathered)?;
        }
        while self.standing() < guests {
            self.tell(false);
            let not_added = match self.wait_for_room(gathered)? {
                None => self.add(gathered)?,
                Some(why) => Some(NotAdded::new(why.0, Phase::Provision, why.1)),
            };
            let Some(NotAdded { kind, stop }) = not_added else { continue };
            let (reason, phase) = (self.of_tile(stop.reason), stop.phase);
            let tiles = self.standing() / self.unit();
            if self.standing() > tiles * self.unit() {
                self.take_away_beyond((tiles * self.unit()) as usize, gathered)?;
            }
            if self.levels.is_empty() && tiles == 0 {
                return Err(Stop { phase, reason });
            }
            self.stop((kind, reason));
            self.ceiling = Some(tiles);
            return Ok(());
        }
        Ok(())
    }

    /// Why the next guest was not added, with which of a tile it is.
    fn of_tile(&self, reason: String) -> String {
        let (standing, unit) = (self.targets.len(), self.unit() as usize);
        match self.spec.tile.get(standing % unit) {
            Some(guest) => format!("`{}` of tile {}: {reason}", guest.name, standing / unit + 1),
            None => reason,
        }
    }

    /// What the next guest is reckoned to take of the host's memory at once, bytes: what its workload says, or what the
    /// others were seen to take if that is more, yet not much more than what it is promised. `settled`: what they have now, they
    /// keep; as long as merging or ballooning may win something back, only what one took while it was added counts.
    fn need(&self, carrier: &Carrier, available_bytes: u64, settled: bool) -> u64 {
        let (traits, next) = (self.trial.task.workload.traits_in(self.trial.case), self.standing());
        let promises = |guest: &GuestTraits| (guest.size.memory.0, guest.touches.0);
        let asked = self.trial.case.guest.memory.0;
        let (promised, touches) = traits.guest(next).map_or((asked, asked), promises);
        let taken = carrier.start.available_bytes.saturating_sub(available_bytes);
        // Guests that differ are taken to have shared what is gone by what they were promised.
        let share = taken as f64 * promised as f64 / self.promised_bytes().max(1) as f64;
        let mean = if settled && next > 0 { share as u64 } else { 0 };
        let growth = self.growth_bytes.get(self.targets.len() % self.growth_bytes.len()).copied().unwrap_or(0);
        let seen = growth.max(mean).min(promised + promised / 4);
        touches.max(seen)
    }

    /// Memory that all guests that stand were promised, bytes.
    pub(super) fn promised_bytes(&self) -> u64 {
        self.targets.iter().map(|target| target.size.memory.0).sum()
    }

    /// Waits until the next guest fits above the reserve, as long as merging or ballooning may still make room for it: why it does not,
    /// if it does not. What a host elsewhere has room for is found out by the command that starts the guest there.
    fn wait_for_room(&self, gathered: &Gathered) -> Result<Option<Why>, Stop> {
        let Some(carrier) = &self.carrier else { return Ok(None) };
        let read = || carrier.memory.now().map_err(|reason| Stop { phase: Phase::Provision, reason });
        let (began, base) = (Instant::now(), read()?);
        loop {
            let now = read()?;
            let settled = self.governed.settled();
            let need = self.need(carrier, now.available_bytes, settled);
            if now.fits(need, carrier.guard.reserve_bytes) {
                gathered.standing.wait_for(0);
                return Ok(None);
            }
            gathered.standing.wait_for(need);
            let waited = began.elapsed();
            let settled = settled && waited >= STALE;
            // Less than the reserve is no reason yet: it may be won back.
            let harm = carrier.guard.check(&base, &now).filter(|(kind, _)| *kind != StopKind::Memory);
            if settled || harm.is_some() || waited >= self.spec.settle.duration().max(STALE) {
                gathered.standing.wait_for(0);
                let waited_for = match (self.governed.makes_room(), settled) {
                    (None, _) => String::new(),
                    (Some(what), true) => format!("; {what} had settled"),
                    (Some(what), false) => format!("; {what} had not settled within {:.0} s", waited.as_secs_f64()),
                };
                let detail = format!(
                    "the next guest takes {} at once, and of {} that were available {} are kept{waited_for}",
                    gib(need),
                    gib(now.available_bytes),
                    gib(carrier.guard.reserve_bytes)
                );
                return Ok(Some(harm.unwrap_or((StopKind::Memory, detail))));
            }
            self.wait(Phase::Provision, WAIT_EVERY)?;
        }
    }

    /// Adds one guest and sets its workload up: why not, if not; it is gone then.
    ///
    /// # Errors
    /// When what was left of it cannot be taken away, or the user wishes to stop.
    fn add(&mut self, gathered: &mut Gathered) -> Result<Option<NotAdded>, Stop> {
        let name = format!("t{}x{}", self.trial.planned.index, self.serial);
        self.serial += 1;
        let (ready, before) = (self.targets.len(), self.available());
        gathered.halt = self.arm(Some(&name));
        let added = self.start_and_prepare(name, gathered);
        let fired = self.disarm();
        let not_added = match (added, fired) {
            (Ok(()), None) => None,
            (Ok(()), Some((kind, why))) => Some(NotAdded::new(kind, Phase::Prepare, why)),
            (Err(not_added), None) => Some(not_added),
            (Err(not_added), Some((kind, why))) => Some(NotAdded::new(kind, not_added.stop.phase, why)),
        };
        self.changed = Instant::now();
        if let Some(reason) = self.trial.bench.cancel.reason() {
            let phase = not_added.map_or(Phase::Prepare, |not_added| not_added.stop.phase);
            return Err(Stop { phase, reason: format!("stopped by {reason}") });
        }
        if not_added.is_some() {
            self.take_back(ready, gathered)?;
        } else {
            let growth = before.saturating_sub(self.available());
            let places = self.growth_bytes.len();
            if let Some(most) = self.growth_bytes.get_mut(ready % places) {
                *most = growth.max(*most);
            }
        }
        self.tell_watch();
        self.tell(false);
        Ok(not_added)
    }

    /// Memory available now, bytes; 0 on a host that is not seen.
    fn available(&self) -> u64 {
        let now =
            |carrier: &Carrier| carrier.memory.now().map_or_else(|_| carrier.watch.last().0, |now| now.available_bytes);
        self.carrier.as_ref().map_or(0, now)
    }

    fn start_and_prepare(&mut self, name: String, gathered: &mut Gathered) -> Result<(), NotAdded> {
        let (trial, position) = (self.trial, self.targets.len());
        let timeout = timeout(position + 1);
        trial.enter(Phase::Provision)?;
        let specs = [trial.target_spec(position, name)];
        let site = Site { timeout: trial.bench.site.timeout.max(timeout), ..trial.bench.site };
        neighbours::start(trial.task.platform, &site, &specs, |_| String::new(), &mut gathered.guests)
            .map_err(|reason| NotAdded::new(StopKind::Start, Phase::Provision, reason))?;
        gathered.targets = gathered.guests.len();
        trial.tell_standing(gathered);
        let Some(guest) = gathered.guests.last() else { return Ok(()) };
        gathered.starts.add(&**guest);
        let asked = guest.link().call(Request::Clock, timeout);
        asked.map_err(|error| self.not_added(Phase::Connect, (&error.to_string(), false), gathered))?;
        if self.serial == 1 {
            weigh_idle(gathered);
            trial.tell_facts(gathered)?;
        }
        trial.check_parity_of(position, gathered);
        let Some(guest) = gathered.guests.last() else { return Ok(()) };
        let serial = self.serial - 1;
        let target = trial.target((position, serial), &**guest, trial.start_clients(serial, 1)?)?;
        trial.enter(Phase::Prepare)?;
        let (drivers, given) = (target.drivers(), trial.given(position + 1));
        let Some(site) = target.site(&drivers, &given) else { return Ok(()) };
        let lost = AtomicBool::new(false);
        let prepare = |_: usize, ()| {
            let ready = trial.task.workload.prepare(&site);
            ready.inspect_err(|error| lost.store(error.guest_lost(), Relaxed)).map_err(|error| error.to_string())
        };
        let mut prepared = parallel::each(&gathered.halt, std::iter::once(()), prepare, |_| cancel(&site))
            .map_err(|(_, error)| self.not_added(Phase::Prepare, (&error, lost.load(Relaxed)), gathered))?;
        drop(drivers);
        prepared.iter_mut().for_each(|ready| ready.stay());
        self.targets.push(target);
        self.prepared.extend(prepared);
        Ok(())
    }

    /// Why the last guest could not be added, with what it said. `lost`: whether it is gone, as far as is known without looking.
    fn not_added(&self, phase: Phase, (error, lost): (&str, bool), gathered: &Gathered) -> NotAdded {
        let mut reason = fit(error);
        let Some(guest) = gathered.guests.last() else { return NotAdded::new(StopKind::Start, phase, reason) };
        let killed = tare_lab::oom_kills_in(&guest.groups()).unwrap_or(0);
        let ended = guest.link().ended();
        if killed > 0 {
            reason.push_str(&format!("; the kernel killed {killed} of its processes for memory"));
        }
        if let Some(how) = &ended {
            reason.push_str(&format!("; the guest's agent: {how}"));
        }
        let said = guest.diagnostics();
        if !said.trim().is_empty() {
            reason.push_str(&format!("; the guest said: {}", last(said.trim())));
        }
        let kind = if lost || killed > 0 || ended.is_some() { StopKind::Killed } else { StopKind::Start };
        NotAdded::new(kind, phase, reason)
    }

    /// Takes away the guest that was being added; `ready` guests stood before it.
    fn take_back(&mut self, ready: usize, gathered: &mut Gathered) -> Result<(), Stop> {
        // It may have been ready when it was found to be too much.
        self.take_away_beyond(ready, gathered)
    }

    /// Takes away all guests but so many, ready or not.
    fn take_away_beyond(&mut self, guests: usize, gathered: &mut Gathered) -> Result<(), Stop> {
        self.end_work(guests);
        self.prepared.truncate(guests);
        let gone = self.targets.split_off(guests.min(self.targets.len()));
        end_clients(gone, gathered);
        self.leave(guests, gathered)
    }

    /// Leaves only so many guests.
    fn leave(&mut self, guests: usize, gathered: &mut Gathered) -> Result<(), Stop> {
        let failures = neighbours::destroy(gathered.guests.get_mut(guests..).unwrap_or_default());
        if !failures.is_empty() {
            // They stay on the list and are tried again when all are taken away.
            return Err(Stop { phase: Phase::Teardown, reason: failures.join("; ") });
        }
        gathered.guests.truncate(guests);
        gathered.targets = gathered.guests.len();
        self.trial.tell_standing(gathered);
        self.tell_watch();
        self.changed = Instant::now();
        Ok(())
    }
}
