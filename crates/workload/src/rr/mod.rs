//! `rr`: request and response, modelled on netperf's TCP_RR, UDP_RR and TCP_CRR.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::drive::{DriveKind, DriveResult, Exchange, ServeSpec, SocketOptions, Wait};
use tare_model::field::FieldError;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::{ByteSize, Span};
use tare_wire::{Reply, Request};

use crate::registry::{Entry, normalise, read, schema};
use crate::site::Drive;
use crate::yields::{from_result, window_s};
use crate::{Driven, Prepared, Schedule, UnitOfWork, WorkSite, Workload, WorkloadError};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "rr",
    summary: "request and response over TCP or UDP: response time and transaction rate",
    schema: schema::<Parameters>,
    make: |parameters, _| Ok(Box::new(Rr(checked(parameters)?))),
    normalise: |parameters: &Value| -> Result<Value, FieldError> {
        checked(parameters)?;
        normalise::<Parameters>(parameters)
    },
};

/// Parameters of `rr`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// `tcp-rr`: connections stay open; `udp-rr`: datagrams; `tcp-crr`: a new connection an exchange.
    pub exchange: Exchange,
    /// Size of a request.
    pub request: ByteSize,
    /// Size of a response.
    pub response: ByteSize,
    /// `block`, or `spin`: both ends poll without sleeping, which needs a whole CPU at each end.
    pub wait: Wait,
    /// SO_SNDBUF and SO_RCVBUF at both ends; absent: the kernel's own. netperf's `-s 128` is `128B`
    /// (Linux clamps it upward; what was granted is disclosed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<ByteSize>,
    /// A UDP exchange unanswered for this long counts as lost.
    pub loss_timeout: Span,
    /// What the verdict is about.
    pub verdict: VerdictOn,
}

/// Which figure of the response time the verdict is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictOn {
    /// The mean: in a closed loop, what netperf's transaction rate tells.
    #[default]
    Mean,
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
    /// Transactions in a second.
    Rate,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            exchange: Exchange::TcpRr,
            request: ByteSize(1),
            response: ByteSize(1),
            wait: Wait::Block,
            buffer: None,
            loss_timeout: Span::from_millis(1000),
            verdict: VerdictOn::Mean,
        }
    }
}

/// Largest message: far beyond any exchange worth the name, and small enough for one buffer a connection.
const MESSAGE_BYTES_MAX: u64 = 16 << 20;
/// Largest payload of one UDP datagram over IPv4.
const DATAGRAM_BYTES_MAX: u64 = 65_507;

fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    let (limit, what) = match read.exchange {
        Exchange::UdpRr => (DATAGRAM_BYTES_MAX, "one UDP datagram carries"),
        _ => (MESSAGE_BYTES_MAX, "this workload takes"),
    };
    for (field, size) in [("request", read.request), ("response", read.response)] {
        if size.0 == 0 || size.0 > limit {
            return Err(FieldError::new(&[field], format!("{size} is not between 1B and the {limit}B that {what}"))
                .help("for bulk data use the workload `stream`"));
        }
    }
    if read.buffer.is_some_and(|buffer| buffer.0 == 0 || buffer.0 > 1 << 30) {
        return Err(FieldError::new(&["buffer"], "a socket buffer is between 1B and 1GiB"));
    }
    if read.loss_timeout == Span::ZERO {
        return Err(FieldError::new(&["loss-timeout"], "0s would count every exchange as lost"));
    }
    Ok(read)
}

struct Rr(Parameters);

impl Rr {
    fn socket(&self) -> SocketOptions {
        let buffer_bytes = self.0.buffer.and_then(|size| u32::try_from(size.0).ok());
        // The lab sets congestion control for both ends' namespaces, so sockets need not.
        SocketOptions { buffer_bytes, congestion_control: None }
    }

    // `checked` bounds both sizes far below u32.
    fn bytes(size: ByteSize) -> u32 {
        u32::try_from(size.0).unwrap_or(u32::MAX)
    }
}

impl Workload for Rr {
    fn metrics(&self) -> Vec<MetricSpec> {
        let time = |id: &str, label: &str| MetricSpec::new(id, label, Unit::Seconds, Better::Lower);
        let mut metrics = vec![
            time("response_time_mean_s", "response time, mean"),
            time("response_time_p50_s", "response time, median"),
            time("response_time_p99_s", "response time, 99th percentile"),
            time("response_time_p999_s", "response time, 99.9th percentile"),
            MetricSpec::new("operations_per_s", "transactions", Unit::OperationsPerSecond, Better::Higher),
        ];
        let primary = match self.0.verdict {
            VerdictOn::Mean => 0,
            VerdictOn::P50 => 1,
            VerdictOn::P99 => 2,
            VerdictOn::Rate => 4,
        };
        let chosen = metrics.remove(primary).primary();
        metrics.insert(0, chosen);
        metrics
    }

    fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::Operation
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let spec = ServeSpec::Rr {
            exchange: self.0.exchange,
            request_bytes: Self::bytes(self.0.request),
            response_bytes: Self::bytes(self.0.response),
            wait: self.0.wait,
            socket: self.socket(),
        };
        let Reply::Serving { server, address } = site.ask_guest(Request::Serve { spec, bind: site.guest_address })?
        else {
            return Err(WorkSite::unexpected("guest", "start a server"));
        };
        let kind = DriveKind::Rr {
            exchange: self.0.exchange,
            request_bytes: Self::bytes(self.0.request),
            response_bytes: Self::bytes(self.0.response),
            wait: self.0.wait,
        };
        let drive = Drive {
            kind,
            targets: vec![address],
            socket: self.socket(),
            record: true,
            loss_timeout: self.0.loss_timeout,
        };
        Ok(Box::new(Running { server, drive }))
    }
}

/// A server that listens in the guest, and what the driver will be told but for the schedule.
struct Running {
    server: u64,
    drive: Drive,
}

impl Prepared for Running {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        Ok(yields(site.drive(self.drive.clone(), schedule)?))
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &Driven) -> Result<Option<String>, WorkloadError> {
        let Reply::Served(report) = site.ask_guest(Request::StopServe { server: self.server })? else {
            return Err(WorkSite::unexpected("guest", "stop a server"));
        };
        if driven.work == 0.0 {
            return Ok(Some("no exchange was completed in steady state".into()));
        }
        // The guest must have seen at least what the client says was answered.
        let DriveKind::Rr { request_bytes, .. } = self.drive.kind else {
            return Err(WorkSite::unexpected("client", "drive load"));
        };
        let least = driven.work * f64::from(request_bytes);
        if (report.bytes_in as f64) < least {
            return Ok(Some(format!(
                "the driver counts {} exchanges, but the server received only {} bytes, less than their requests hold",
                driven.work, report.bytes_in
            )));
        }
        Ok(None)
    }
}

/// The metrics of `rr` from what the driver saw.
fn yields(result: DriveResult) -> Driven {
    let rate = result.operations as f64 / window_s(&result);
    let mean = result.response.mean();
    let quantiles = [("response_time_p50_s", 0.5), ("response_time_p99_s", 0.99), ("response_time_p999_s", 0.999)]
        .map(|(id, q)| (id, result.response.quantile(q)));
    let failed: u64 = result.errors.iter().map(|(_, count)| count).sum();
    let broken = result.errors.first().map(|(reason, _)| reason.clone());
    let operations = result.operations;
    let mut driven = from_result(result, UnitOfWork::Operation);
    let metrics = &mut driven.measurement.metrics;
    metrics.insert("operations_per_s".into(), rate);
    for (id, value) in quantiles.into_iter().chain([("response_time_mean_s", mean)]) {
        if let Some(ns) = value {
            metrics.insert(id.into(), ns / 1e9);
        }
    }
    // A few refused connections under overload are a finding; a run that mostly fails is none.
    if let (Some(reason), true) = (broken, failed as f64 > 0.01 * operations as f64) {
        driven.invalid = Some(format!("{failed} of {} exchanges failed, first: {reason}", operations + failed));
    }
    driven
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_that_no_exchange_can_carry_are_refused_with_the_limit() {
        for (parameters, field) in [
            (json!({"request": "0B"}), "request"),
            (json!({"response": "17MiB"}), "response"),
            (json!({"exchange": "udp-rr", "request": "64KiB"}), "request"),
            (json!({"loss-timeout": "0s"}), "loss-timeout"),
            (json!({"request": 128}), "request"),
        ] {
            let error = checked(&parameters).unwrap_err();
            assert_eq!(error.path, [field], "{error}");
        }
    }

    #[test]
    fn the_verdict_is_about_the_figure_asked_for() {
        for (verdict, id) in
            [("mean", "response_time_mean_s"), ("p99", "response_time_p99_s"), ("rate", "operations_per_s")]
        {
            let rr = Rr(checked(&json!({ "verdict": verdict })).unwrap());
            assert_eq!(rr.metrics()[0].id, id);
        }
    }
}
