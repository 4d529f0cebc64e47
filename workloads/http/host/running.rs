//! A service that is driven.

use std::time::Duration;

use tare_model::Span;
use tare_model::drive::SocketOptions;
use tare_model::packed::Packed;
use tare_model::trial::Flag;

use super::figures::yields;
use super::parameters::{Connections, Parameters};
use super::service::Service;
use super::spec::{HttpDone, HttpDrive};
use crate::site::{Drive, outcomes};
use crate::yields::merge;
use crate::{Driven, Prepared, Schedule, WorkSite, WorkloadError};

/// Longest that a driver takes to connect, beside the answers to all requests.
const CONNECTING: Duration = Duration::from_secs(35);

/// A service and its drivers.
#[derive(Debug)]
pub(super) struct Running {
    pub parameters: Parameters,
    pub service: Service,
    /// Numbers of the connected drivers.
    pub drivers: Vec<u64>,
    /// Whether it is driven again after it was verified.
    pub stays: bool,
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        let Service { address, reached, requests, .. } = &self.service;
        let fresh = self.parameters.connections == Connections::New;
        let drive = Drive {
            task: Packed::of(&HttpDrive { requests: requests.clone(), reached: reached.clone(), fresh })?,
            targets: vec![*address],
            socket: SocketOptions::default(),
            record: true,
            loss_timeout: Span { ns: self.parameters.timeout.ns },
        };
        let each = self.parameters.timeout.duration().saturating_mul(u32::try_from(requests.len()).unwrap_or(u32::MAX));
        let longest = each.saturating_add(CONNECTING).saturating_add(site.timeout);
        let connected = site.connect_all(vec![drive; site.drivers.len()], schedule, longest);
        self.drivers = connected.map_err(|error| self.service.explained(site, error))?;
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let drivers = std::mem::take(&mut self.drivers);
        let driven = site.drive_all(drivers, schedule, self.parameters.timeout.duration());
        let results = driven.and_then(outcomes::<HttpDrive>).map_err(|error| self.service.explained(site, error))?;
        let (results, each): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let mut done = HttpDone::default();
        each.iter().for_each(|one| done.add(one));
        let merged = merge(results).ok_or(WorkloadError::NotConnected)?;
        let names = self.service.requests.iter().map(|request| request.name.as_str());
        let mut driven = yields(merged, &done, names);
        driven.facts.extend(self.service.facts.clone());
        Ok(driven)
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        if let Some(bytes) = self.service.there(site)? {
            driven.facts.insert("service: resident at most".to_owned(), format!("{} MiB", bytes >> 20));
        }
        // The work is already counted: a failure is flagged, and the figures stay valid.
        let ended = if self.stays { Ok(()) } else { self.service.end(site) };
        if let Err(error) = ended {
            driven.flags.push(Flag { kind: "server-errors".to_owned(), detail: error.to_string() });
        }
        Ok(driven.invalid.take())
    }

    fn stay(&mut self) {
        self.stays = true;
    }

    fn end(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.service.end(site)
    }
}
