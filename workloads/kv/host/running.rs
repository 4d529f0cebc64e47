//! A server that is driven, and then held against what the drivers saw.

use std::time::Duration;

use tare_model::Span;
use tare_model::drive::SocketOptions;
use tare_model::load::LoadModel;
use tare_model::packed::Packed;
use tare_model::trial::Flag;

use super::figures::yields;
use super::parameters::Parameters;
use super::served::{Served, disagreement};
use super::spec::{KvDone, KvDrive};
use super::start::Started;
use crate::site::{Drive, outcomes};
use crate::yields::merge;
use crate::{Driven, Prepared, Schedule, WorkSite, WorkloadError};

/// Longest that drivers may take to connect.
const CONNECTING: Span = Span::from_secs(35);

/// A server with all keys set, and its drivers.
#[derive(Debug)]
pub(super) struct Running {
    parameters: Parameters,
    started: Started,
    /// Numbers of the connected drivers.
    drivers: Vec<u64>,
    /// Number of the next connection as a writer.
    writer: u32,
    /// What the server had counted when drivers were connected.
    before: Served,
    /// What was done in the last drive, until it is verified.
    done: KvDone,
    /// Whether it is driven again after it was verified.
    stays: bool,
}

impl Running {
    pub fn new(parameters: Parameters, started: Started) -> Self {
        let (before, done) = (Served::default(), KvDone::default());
        Self { parameters, started, drivers: Vec::new(), writer: 1, before, done, stays: false }
    }

    /// What each driver is asked to do.
    fn drives(&mut self, drivers: usize, load: &LoadModel) -> Result<Vec<Drive>, WorkloadError> {
        let (asked, oldest_writer) = (&self.parameters, self.writer);
        let mut drives = Vec::with_capacity(drivers);
        for _ in 0..drivers {
            let task = KvDrive {
                protocol: asked.server,
                keys: asked.keys(),
                get_share: asked.gets / 100.0,
                popularity: asked.popularity,
                depth: asked.depth,
                first_writer: self.writer,
                oldest_writer,
            };
            self.writer = self.writer.saturating_add(load.connections());
            drives.push(Drive {
                task: Packed::of(&task)?,
                targets: vec![self.started.address],
                socket: SocketOptions::default(),
                record: true,
                loss_timeout: CONNECTING,
            });
        }
        Ok(drives)
    }

    /// What is wrong with the keys after the load, if anything.
    fn left(&self, site: &WorkSite<'_>) -> Result<Option<String>, WorkloadError> {
        let found = self.started.sweep(site, &self.parameters, false)?;
        let missing = if self.parameters.eviction { 0 } else { found.missing };
        Ok((found.wrong + missing > 0).then(|| {
            let first = if found.first_wrong.is_empty() { String::new() } else { format!("; {}", found.first_wrong) };
            format!("after the load {missing} keys were missing and {} had a wrong value{first}", found.wrong)
        }))
    }
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        self.before = self.started.served(site)?;
        let drives = self.drives(site.drivers.len(), &site.load)?;
        let connected = site.connect_all(drives, schedule, CONNECTING.duration() + site.timeout);
        self.drivers = connected.map_err(|error| self.started.explained(site, error))?;
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let drivers = std::mem::take(&mut self.drivers);
        let results = site.drive_all(drivers, schedule, Duration::ZERO).and_then(outcomes::<KvDrive>);
        let results = results.map_err(|error| self.started.explained(site, error))?;
        let (results, each): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        self.done = KvDone::default();
        each.iter().for_each(|done| self.done.add(done));
        let Parameters { depth, eviction, .. } = self.parameters;
        let merged = merge(results).ok_or(WorkloadError::NotConnected)?;
        let mut driven = yields(merged, &self.done, depth, eviction);
        driven.facts.extend(self.started.facts.clone());
        Ok(driven)
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let after = self.started.served(site)?;
        let evicted = after.evictions.saturating_sub(self.before.evictions);
        driven.measurement.counts.insert("server: keys dropped".to_owned(), evicted);
        let wrong = [
            driven.invalid.take(),
            disagreement(&self.before, &self.done, &after, self.parameters.eviction),
            self.left(site)?,
        ];
        let wrong: Vec<String> = wrong.into_iter().flatten().collect();
        // The work is already counted: a failure is flagged, and the figures stay valid.
        let ended = if self.stays { Ok(()) } else { self.started.end(site) };
        if let Err(error) = ended {
            driven.flags.push(Flag { kind: "server-errors".to_owned(), detail: error.to_string() });
        }
        Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
    }

    fn stay(&mut self) {
        self.stays = true;
    }

    fn end(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.started.end(site)
    }
}
