//! A site that is driven, and then checked.

use std::time::Duration;

use crate::web::spec::{SiteModel, WebDone, WebDrive};
use tare_model::Span;
use tare_model::drive::SocketOptions;
use tare_model::packed::Packed;
use tare_model::trial::Flag;

use super::deviations::{deviations, file_set};
use super::figures::{add_backend, finish, of_guest};
use super::parameters::Parameters;
use super::start::Started;
use super::tables::Tables;
use super::verify::{Stats, flags, wrong};
use crate::application::{fetch, gone, look};
use crate::site::{Drive, outcomes};
use crate::{Driven, Failure, Prepared, Schedule, WorkSite, WorkloadError};

/// Longest that a driver takes to see the server answer on each port, or to say why not.
const CONNECTING: Duration = Duration::from_secs(65);

/// A site with its servers, its drivers, and what they did.
pub(super) struct Running {
    pub parameters: Parameters,
    pub tables: Tables,
    /// The site, its files as many as the sessions that are offered have.
    pub model: SiteModel,
    /// Sessions that are offered, by all drivers.
    pub sessions: u32,
    /// Sessions that the file set was made for.
    pub files_for: u32,
    pub started: Started,
    /// Numbers of the connected drivers.
    pub drivers: Vec<u64>,
    pub done: Option<WebDone>,
    /// Length of all phases, seconds; in turns they pass only while the drivers have theirs, and the servers rest otherwise.
    pub wall_s: f64,
    /// Whether it is driven again after it was verified.
    pub stays: bool,
    /// What the server had counted when it was last asked.
    pub counted: Stats,
}

impl Running {
    /// What each driver has to do.
    fn drive_of(&self, site: &WorkSite<'_>) -> Result<Drive, WorkloadError> {
        let asked = &self.parameters;
        let web = WebDrive {
            site: self.model.clone(),
            tls: self.started.tls.clone(),
            host: site.guest_address.to_string(),
            connections: asked.connections,
            fresh_connections: true,
            receive_bytes_per_s: asked.receive_rate.0,
            salt: self.started.salt,
            check: true,
            timeout_ns: asked.timeout.ns,
            overrun_ns: asked.overrun.ns,
            threads: asked.driver_threads,
        };
        Ok(Drive {
            task: Packed::of(&web)?,
            targets: self.started.targets.clone(),
            socket: SocketOptions::default(),
            record: true,
            loss_timeout: Span { ns: asked.timeout.ns },
        })
    }

    /// What the server counted, between turns as well, in which nothing is asked of it; a server of the user's own may not tell it.
    fn stats(&self, site: &WorkSite<'_>) -> Result<Result<Stats, String>, WorkloadError> {
        let Some(&plain) = self.started.targets.first() else { return Err(WorkloadError::NotConnected) };
        Ok(match fetch(site.client, site.timeout, plain, "/tare/stats")? {
            Ok((200, body)) => serde_json::from_slice(&body).map_err(|error| format!("/tare/stats: {error}")),
            Ok((status, _)) => Err(format!("/tare/stats has status {status}")),
            Err(why) => Err(why),
        })
    }

    fn tell(&self, driven: &mut Driven) {
        driven.facts.extend(self.started.facts.clone());
        driven.flags.extend(self.started.flags.clone());
        driven.deviations = deviations(&self.parameters, &self.tables, &self.model, self.sessions, self.files_for);
        driven.facts.insert("files that are asked for".to_owned(), file_set(&self.model));
    }
}

/// What the server counted, as facts.
fn tell_stats(driven: &mut Driven, stats: &Stats) {
    let backend_ms = stats.backend_seconds * 1e3 / stats.backend_calls.max(1) as f64;
    let p99 = stats.backend_p99_seconds.map_or(String::new(), |p99| format!(", 99 % up to {:.2} ms", p99 * 1e3));
    let facts = [
        ("server: pages, all phases", stats.pages.to_string()),
        ("server: files, all phases", stats.files.to_string()),
        ("server: not modified, all phases", stats.not_modified.to_string()),
        ("server: errors", stats.errors.to_string()),
        ("server: most sessions", stats.sessions_most.to_string()),
        ("server: backend called, all phases", stats.backend_calls.to_string()),
        ("server: waited for the backend", format!("{backend_ms:.2} ms a call{p99}")),
        ("server: heap in use", format!("{} MiB", stats.heap_used_bytes >> 20)),
        ("server: collections", format!("{}, {:.2} s", stats.collections, stats.collection_seconds)),
        ("server: CPU since its start", format!("{:.2} s", stats.cpu_seconds)),
    ];
    driven.facts.extend(facts.map(|(name, value)| (name.to_owned(), value)));
    if stats.backend_errors > 0 {
        let detail = format!("the server counts {} failed calls of its backend", stats.backend_errors);
        driven.flags.push(Flag { kind: "server-errors".to_owned(), detail });
    }
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        let drives = (0..site.drivers.len()).map(|_| self.drive_of(site)).collect::<Result<_, _>>()?;
        let connected = site.connect_all(drives, schedule, CONNECTING + site.timeout);
        self.drivers = connected.map_err(|error| self.failed(site, error))?;
        self.wall_s = schedule.phases.total().as_secs_f64();
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let drivers = std::mem::take(&mut self.drivers);
        let driven = site.drive_all(drivers, schedule, self.parameters.timeout.duration());
        let results = driven.map_err(|error| self.failed(site, error))?;
        let (mut driven, done) = of_guest(outcomes::<WebDrive>(results)?, self.sessions.into())
            .ok_or_else(|| WorkSite::unexpected("client", "drive load"))?;
        self.done = Some(done);
        self.tell(&mut driven);
        Ok(driven)
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        self.verified(site, driven).map_err(|error| self.started.abandoned(site, error))
    }

    fn stay(&mut self) {
        self.stays = true;
    }

    fn end(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        let ended = self.started.end(site);
        ended.and(self.started.stop_backend(site).map(drop))
    }
}

impl Running {
    /// The error of a driver, with what became of the servers; everything is ended.
    fn failed(&self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        self.started.abandoned(site, self.started.explained(site, error))
    }

    fn verified(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let Some(done) = self.done.take() else { return Err(WorkSite::unexpected("client", "drive load")) };
        for (name, command) in &self.started.commands {
            let seen = look(site, *command)?;
            if let Some(gone) = gone(name, &seen) {
                return Err(gone.into());
            }
            if let Some(bytes) = seen.resident_peak_bytes {
                driven.facts.insert(format!("{name}: resident at most"), format!("{} MiB", bytes >> 20));
            }
        }
        let stats = self.stats(site)?;
        let stats = stats.map(|now| now.since(&std::mem::replace(&mut self.counted, now.clone())));
        // Its own figures are of its whole life, and it is asked for them when it ends.
        let backend = if self.stays { None } else { Some(self.started.stop_backend(site)?) };
        match &stats {
            Ok(stats) => tell_stats(driven, stats),
            Err(why) if self.parameters.url.is_some() => {
                driven.facts.insert("server's own counts".to_owned(), format!("none: {why}"));
            }
            Err(why) => {
                let remedy = "the guest may be short of CPU or memory";
                return Err(Failure::new("ask the web server what it counted", why.clone(), remedy).into());
            }
        }
        match &backend {
            Some(backend) => add_backend(driven, backend, self.wall_s),
            None => {
                let why = "unknown while guests are added: it serves on";
                driven.facts.insert("backend's own figures".to_owned(), why.to_owned());
            }
        }
        driven.flags.extend(flags(&self.parameters, &self.model, &done, backend.as_ref(), self.wall_s));
        let answered = backend.as_ref().map(|backend| backend.requests);
        let answered = answered.or(stats.as_ref().ok().map(|stats| stats.backend_calls));
        let wrong = wrong(&self.parameters, &self.model, &done, stats.as_ref().ok(), answered.unwrap_or(0));
        let ended = if self.stays { Ok(()) } else { self.started.end(site) };
        if let Err(error) = ended {
            // The work is counted by then, and the guest is thrown away.
            driven.flags.push(Flag { kind: "server-errors".to_owned(), detail: error.to_string() });
        }
        finish(driven);
        Ok(wrong)
    }
}
