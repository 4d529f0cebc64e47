//! Instances that are driven, again and again if need be, and checked each time.

use std::time::Duration;

use crate::social::spec::{Cycle, Scale, SocialDone, SocialDrive};
use tare_model::drive::SocketOptions;
use tare_model::packed::Packed;
use tare_model::trial::Flag;
use tare_model::{Span, count};

use super::accept::missed;
use super::figures::{LEFT_OUT, add_resident, of_guest};
use super::parameters::Parameters;
use super::services::Beside;
use super::start::Started;
use super::stats::{self, Stats};
use super::verify::{Uploaded, too_few_pages, too_many_errors, wrong};
use crate::application::gone;
use crate::faults;
use crate::requests::total;
use crate::site::{Drive, outcomes};
use crate::started::look;
use crate::{Driven, Failure, Prepared, Schedule, WorkSite, WorkloadError};

/// Longest that a driver takes to open its users' connections, or to say why not.
const CONNECTING: Duration = Duration::from_secs(65);
/// Drivers that a guest can have at most, for the numbers of their names.
const DRIVERS_MOST: u64 = 1024;

/// Instances with what they use, their drivers, and what they did.
pub(super) struct Running {
    pub parameters: Parameters,
    scale: Scale,
    beside: Beside,
    pub started: Started,
    /// Numbers of the connected drivers.
    drivers: Vec<u64>,
    /// How often users were connected: no two drives have new people of the same names.
    drives: u64,
    /// What instances had counted when users were connected. Between turns nothing is asked of them, so that it need not be read at each.
    before: Vec<Stats>,
    /// By instance, of all drives.
    uploaded: Vec<Uploaded>,
    /// What the last drive did.
    done: Option<SocialDone>,
}

impl Running {
    pub fn new(parameters: Parameters, scale: Scale, beside: Beside, started: Started) -> Self {
        let uploaded = vec![Uploaded::default(); started.instances.len()];
        Self {
            parameters,
            scale,
            beside,
            started,
            drivers: Vec::new(),
            drives: 0,
            before: Vec::new(),
            uploaded,
            done: None,
        }
    }

    /// What driver `number`, counted from 0, has to do. Its users have these cycle times.
    fn drive_of(&self, number: u64, cycle: Cycle) -> Result<Drive, WorkloadError> {
        let asked = &self.parameters;
        let social = SocialDrive {
            scale: self.scale,
            data_seed: asked.data_seed,
            cycle,
            revalidating: asked.revalidating,
            attend: asked.attend,
            check: true,
            timeout_ns: asked.timeout.ns,
            names: self.drives * DRIVERS_MOST + number,
            threads: asked.driver_threads,
        };
        Ok(Drive {
            task: Packed::of(&social)?,
            targets: self.started.instances.iter().map(|instance| instance.address).collect(),
            socket: SocketOptions::default(),
            record: true,
            loss_timeout: Span { ns: asked.timeout.ns },
        })
    }

    fn stats(&self, site: &WorkSite<'_>) -> Result<Vec<Stats>, WorkloadError> {
        self.started.instances.iter().map(|instance| Stats::of(site, instance)).collect()
    }

    /// Refuses more users than the data were made for.
    fn has_people_for(&self, site: &WorkSite<'_>) -> Result<(), Failure> {
        let all = site.load.connections().saturating_mul(u32::try_from(site.drivers.len()).unwrap_or(u32::MAX));
        enough_people(&self.scale, all, site.instances)
    }

    /// The error of a driver, with what became of the instances; everything is ended.
    fn failed(&mut self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        let error = self.started.explained(site, error);
        self.abandoned(site, error)
    }

    /// Ends everything after an error, which is what matters.
    pub fn abandoned(&mut self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        self.started.end(site);
        self.beside.end(site);
        error
    }

    fn tell(&self, driven: &mut Driven) {
        driven.facts.extend(self.beside.facts.clone());
        driven.facts.extend(self.started.facts.clone());
        driven.flags.extend(self.beside.flags.iter().chain(&self.started.flags).cloned());
        let on_large_pages = if self.started.large_pages { self.started.instances.len() as u64 } else { 0 };
        driven.measurement.counts.insert(count::ON_LARGE_PAGES.to_owned(), on_large_pages);
        let Scale { people, tags, events } = self.scale;
        let data = format!("{people} people, {tags} tags, {events} events, seed {}", self.parameters.data_seed);
        driven.facts.insert("data of each instance".to_owned(), data);
        driven.deviations.clone_from(&self.started.deviations);
    }

    /// Has the drivers open the connections of users with these cycle times.
    pub fn connect_with(
        &mut self,
        site: &WorkSite<'_>,
        schedule: &Schedule,
        cycle: Cycle,
    ) -> Result<(), WorkloadError> {
        self.has_people_for(site).map_err(|error| self.abandoned(site, error.into()))?;
        self.drives += 1;
        let drives =
            (0..).zip(site.drivers).map(|(number, _)| self.drive_of(number, cycle)).collect::<Result<_, _>>()?;
        self.before = self.stats(site).map_err(|error| self.failed(site, error))?;
        let connected = site.connect_all(drives, schedule, CONNECTING + site.timeout);
        self.drivers = connected.map_err(|error| self.failed(site, error))?;
        Ok(())
    }

    /// Has the connected users do their work, and keeps in mind what they uploaded.
    pub fn offer(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(Driven, SocialDone), WorkloadError> {
        let drivers = std::mem::take(&mut self.drivers);
        let driven = site.drive_all(drivers, schedule, self.parameters.timeout.duration());
        let results = driven.map_err(|error| self.failed(site, error))?;
        let (driven, done) =
            of_guest(outcomes::<SocialDrive>(results)?).ok_or_else(|| WorkSite::unexpected("client", "drive load"))?;
        if done.instances.len() != self.started.instances.len() {
            return Err(WorkSite::unexpected("client", "drive load"));
        }
        for (uploaded, instance) in self.uploaded.iter_mut().zip(&done.instances) {
            uploaded.added.add(instance.added);
            uploaded.in_doubt.add(instance.in_doubt);
        }
        Ok((driven, done))
    }
}

/// Refuses more users of an instance than its data were made for.
pub(super) fn enough_people(scale: &Scale, users: u32, instances: u32) -> Result<(), Failure> {
    let each = users.div_ceil(instances.max(1));
    if each <= scale.people / crate::social::spec::PEOPLE_A_USER {
        return Ok(());
    }
    let why = format!("each instance has {} people, 100 for each of {} users", scale.people, scale.people / 100);
    let remedy = format!("write scale-users = {each} in the parameters, or leave it out");
    Err(Failure::new(format!("offer {users} users to {instances} instances"), why, remedy))
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        self.connect_with(site, schedule, self.parameters.cycle.cycle())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let (mut driven, done) = self.offer(site, schedule)?;
        self.done = Some(done);
        self.tell(&mut driven);
        Ok(driven)
    }

    /// Instances, database and file store are left as they are: they may be driven again, and end with their guest and with the
    /// group of what is beside it.
    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        self.verified(site, driven).map_err(|error| self.failed(site, error))
    }
}

impl Running {
    fn verified(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let Some(done) = self.done.take() else { return Err(WorkSite::unexpected("client", "drive load")) };
        let mut resident = Vec::new();
        for instance in &self.started.instances {
            let seen = look(site, instance.command)?;
            if let Some(gone) = gone(&instance.name, &seen) {
                return Err(gone.into());
            }
            resident.push(seen.resident_peak_bytes);
        }
        add_resident(driven, &resident);
        let all = total(&driven.measurement.requests);
        let errors = too_many_errors(&all, &done, self.parameters.errors_max);
        let after = match (self.stats(site), errors.clone()) {
            (Ok(after), _) => after,
            // An instance that hangs has not answered its users either, and that is what matters.
            (Err(error), Some(errors)) if !error.guest_lost() => return Ok(Some(format!("{errors}; {error}"))),
            (Err(error), _) => return Err(error),
        };
        let counted: Vec<Stats> = after.iter().zip(&self.before).map(|(after, before)| after.since(before)).collect();
        stats::tell(driven, &counted);
        self.flag(driven, &done, &counted);
        let mut reasons: Vec<String> = errors.into_iter().collect();
        for (number, instance) in self.started.instances.iter().enumerate() {
            let pages = counted.get(number).map_or(0, |stats| stats.pages);
            reasons.extend(done.instances.get(number).and_then(|done| too_few_pages(instance, done, pages)));
            let uploaded = self.uploaded.get(number).copied().unwrap_or_default();
            let (loaded, folder) = (self.beside.loaded, self.beside.folder.as_str());
            reasons.extend(wrong(site, instance, loaded, &self.scale, &uploaded, folder)?);
        }
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    /// What a reader must know: wrong answers, errors of the application, and what the acceptance misses.
    fn flag(&self, driven: &mut Driven, done: &SocialDone, counted: &[Stats]) {
        let left_out = driven.facts.get(LEFT_OUT).cloned();
        let window_s = driven.measured_s();
        let mut flag = |kind: &str, detail: String| driven.flags.push(Flag { kind: kind.to_owned(), detail });
        if let Some(left_out) = left_out {
            flag("few-operations", format!("{LEFT_OUT}: {left_out}"));
        }
        let all = total(&driven.measurement.requests);
        if all.validation_errors > 0 {
            let (errors, requests) = (all.validation_errors, all.requests);
            flag(
                "validation-errors",
                format!(
                    "{errors} of {requests} operations had a wrong answer or none: {}",
                    faults::shown(&done.faults)
                ),
            );
        }
        let mut chance = Vec::new();
        for ((instance, done), counted) in self.started.instances.iter().zip(&done.instances).zip(counted) {
            if let Some(failures) = counted.failures() {
                flag("server-errors", format!("{} counts {failures}", instance.name));
            }
            let missed = missed(&self.parameters, done, window_s);
            if !missed.surely.is_empty() {
                flag("acceptance", format!("{}: {}", instance.name, missed.surely.join("; ")));
            }
            if !missed.maybe.is_empty() {
                chance.push(format!("{}: {}", instance.name, missed.maybe.join("; ")));
            }
        }
        if !chance.is_empty() {
            driven.facts.insert("acceptance, missed within chance".to_owned(), chance.join("; "));
        }
    }
}
