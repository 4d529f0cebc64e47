//! `null`: operations that do nothing, so that what is measured is the instrument.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::drive::{SocketDrive, SocketOptions};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::packed::Packed;
use tare_model::{count, histogram};

use crate::entry::{Entry, normalise, read, schema};
use crate::figures::Figures;
use crate::site::Drive;
use crate::together::together;
use crate::yields::{from_result, merge};
use crate::{Driven, Prepared, Schedule, Traits, UnitOfWork, WorkSite, Workload, WorkloadError};

/// Longest that drivers may take until they are ready.
const CONNECTING: Duration = Duration::from_secs(35);

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "null",
    summary: "operations that do nothing: the floor of the instrument",
    schema: schema::<Parameters>,
    make: |parameters, _| Ok(Box::new(read::<Parameters>(parameters).map(Null)?)),
    normalise: |parameters: &Value| -> Result<Value, FieldError> { normalise::<Parameters>(parameters) },
    view: None,
};

/// Parameters of `null`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// Whether each operation is recorded in the histogram; off shows what recording costs.
    pub record: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { record: true }
    }
}

struct Null(Parameters);

impl Workload for Null {
    fn metrics(&self) -> Vec<MetricSpec> {
        vec![
            MetricSpec::new("operations_per_s", "empty operations", Unit::OperationsPerSecond, Better::Higher)
                .primary(),
            MetricSpec::new("lateness_p99_s", "timer lateness, 99th percentile", Unit::Seconds, Better::Lower),
        ]
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { several_guests: true, ..Traits::of(*guest) }
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        let mut all = together(guests)?;
        let operations = all.measurement.counts.get(count::OPERATIONS).map_or(0.0, |count| *count as f64);
        let mut figures = Figures::of([("operations_per_s", Some(operations / all.measured_s()))]);
        if let Some(lateness) = all.measurement.histograms.get(histogram::LATENESS) {
            figures.percentile("lateness_p99_s", lateness, 0.99);
        }
        figures.put(&mut all.measurement);
        Some(all)
    }

    fn prepare(&self, _: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Running { record: self.0.record, drivers: Vec::new() }))
    }
}

/// What each driver is asked to do, and their numbers once they are ready.
struct Running {
    record: bool,
    drivers: Vec<u64>,
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        let drive = Drive {
            task: Packed::of(&SocketDrive::Null)?,
            targets: Vec::new(),
            socket: SocketOptions::default(),
            record: self.record,
            loss_timeout: Span::ZERO,
        };
        self.drivers = site.connect_all(vec![drive; site.drivers.len()], schedule, CONNECTING + site.timeout)?;
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let results = site.drive_all(std::mem::take(&mut self.drivers), schedule, Duration::ZERO)?;
        let all = merge(results).ok_or(WorkloadError::NotConnected)?;
        Ok(from_result(all, UnitOfWork::Operation))
    }

    fn verify(&mut self, _: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        Ok((driven.work == 0.0).then(|| "the driver did no operation at all".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::drive::DriveResult;

    #[test]
    fn the_operations_of_all_guests_and_drivers_are_counted_over_their_window() {
        let result = |operations| DriveResult {
            operations,
            steady_start_ns: 1_000_000_000,
            steady_end_ns: 3_000_000_000,
            threads: 1,
            ..DriveResult::default()
        };
        let guest = |drivers: &[u64]| {
            let merged = merge(drivers.iter().map(|operations| result(*operations)).collect()).unwrap();
            from_result(merged, UnitOfWork::Operation)
        };
        let workload = Null(Parameters::default());
        let rate = |guests: Vec<Driven>| workload.combine(guests).unwrap().measurement.metrics["operations_per_s"];
        assert_eq!(rate(vec![guest(&[10])]), 5.0);
        assert_eq!(rate(vec![guest(&[10, 20]), guest(&[30, 40])]), 50.0);
        assert!(workload.traits(&tare_model::traits::ANY_SIZE, 1).several_guests);
    }
}
