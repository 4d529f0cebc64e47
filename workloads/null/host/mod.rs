//! `null`: operations that do nothing, so that what is measured is the instrument.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::drive::{SocketDrive, SocketOptions};
use tare_model::field::FieldError;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::packed::Packed;

use crate::entry::{Entry, normalise, read, schema};
use crate::figures::Figures;
use crate::site::Drive;
use crate::yields::from_result;
use crate::{Driven, Prepared, Schedule, UnitOfWork, WorkSite, Workload, WorkloadError};

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

    fn prepare(&self, _: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Running { record: self.0.record, driver: None }))
    }
}

/// What the driver is asked to do, and its number once it is connected.
struct Running {
    record: bool,
    driver: Option<u64>,
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
        self.driver = Some(site.connect(drive, schedule)?);
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let result = site.drive(self.driver.take(), schedule)?;
        let rate = result.operations as f64 / result.measured_s();
        let mut driven = from_result(result, UnitOfWork::Operation);
        let mut figures = Figures::of([("operations_per_s", Some(rate))]);
        if let Some(lateness) = driven.measurement.histograms.get(tare_model::histogram::LATENESS) {
            figures.percentile("lateness_p99_s", lateness, 0.99);
        }
        figures.put(&mut driven.measurement);
        Ok(driven)
    }

    fn verify(&mut self, _: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        Ok((driven.work == 0.0).then(|| "the driver did no operation at all".to_owned()))
    }
}
