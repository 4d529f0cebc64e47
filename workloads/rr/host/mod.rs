//! `rr`: request and response, modelled on netperf's TCP_RR, UDP_RR and TCP_CRR.

mod deviations;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::deviation::Deviation;
use tare_model::drive::{DriveResult, Exchange, ServiceTime, Wait};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::traits::TurnTraits;
use tare_model::{ByteSize, Span};
use tare_wire::ServeReport;

use crate::entry::{Entry, filled, read, schema};
use crate::exchanges::{Exchanges, FAILED_MAX, unanswered};
use crate::figures::{Figures, too_few};
use crate::site::Drive;
use crate::yields::{add_server, from_result};
use crate::{Driven, Prepared, Schedule, Traits, UnitOfWork, WorkSite, Workload, WorkloadError};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "rr",
    summary: "request and response over TCP or UDP: response time and transaction rate",
    schema: schema::<Parameters>,
    make: |parameters, _| Ok(Box::new(Rr(checked(parameters)?))),
    normalise: |parameters| filled(checked(parameters)?),
    view: None,
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
    /// How long the server takes over each answer, as a service with work to do would; absent: no longer than it must. Only `tcp-rr`. The
    /// server's own log of it is reported beside what the driver saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceTime>,
    /// A UDP exchange unanswered for this long counts as lost.
    pub loss_timeout: Span,
    /// What the verdict is about.
    pub verdict: VerdictOn,
    /// Whether each exchange is recorded in the histogram; off only to see what recording costs, and then
    /// there is no response time to tell.
    pub record: bool,
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

impl VerdictOn {
    /// Id of the metric.
    const fn metric(self) -> &'static str {
        match self {
            Self::Mean => "response_time_mean_s",
            Self::P50 => "response_time_p50_s",
            Self::P99 => "response_time_p99_s",
            Self::Rate => "operations_per_s",
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            exchange: Exchange::TcpRr,
            request: ByteSize(1),
            response: ByteSize(1),
            wait: Wait::Block,
            buffer: None,
            service: None,
            loss_timeout: Span::from_millis(1000),
            verdict: VerdictOn::Mean,
            record: true,
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
    if !read.record && read.verdict != VerdictOn::Rate {
        return Err(FieldError::new(
            &["record"],
            "without recording there is no response time for the verdict to be about",
        )
        .help("write `verdict = \"rate\"` beside it"));
    }
    if let Some(service) = read.service {
        let other = (read.exchange != Exchange::TcpRr).then_some("a service time is for `tcp-rr` alone");
        if let Some(mistake) = service.mistake().or(other) {
            return Err(FieldError::new(&["service"], mistake));
        }
    }
    if read.loss_timeout == Span::ZERO {
        return Err(FieldError::new(&["loss-timeout"], "0s would count every exchange as lost"));
    }
    Ok(read)
}

struct Rr(Parameters);

impl Rr {
    fn exchanges(&self) -> Exchanges {
        let Parameters { exchange, request, response, wait, buffer, service, loss_timeout, record, .. } = self.0;
        Exchanges { exchange, request, response, pipelined: false, wait, buffer, service, record, loss_timeout }
    }
}

/// The server's own log, of all phases, with the quantiles.
const SERVED: [(&str, &str, f64); 3] = [
    ("service_time_p50_s", "service time by the server's log, median", 0.5),
    ("service_time_p99_s", "service time by the server's log, 99th percentile", 0.99),
    ("service_time_p999_s", "service time by the server's log, 99.9th percentile", 0.999),
];

/// A turn holds a hundred exchanges, of which one takes some tens of microseconds.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(5),
    warm_up: Span::ZERO,
    gap: Span::from_millis(1),
    renewed: None,
    freezes: true,
    commands: None,
};

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
        if self.0.service.is_some() {
            let own = SERVED.map(|(id, label, _)| time(id, label));
            metrics.extend(own);
        }
        MetricSpec::with_primary(metrics, self.0.verdict.metric())
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let slowable = self.0.exchange == Exchange::TcpRr && self.0.service.is_none();
        Traits { turns: Some(TURNS), several_set_ups: true, slowable, ..Traits::of(*guest) }
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let (server, drive) = self.exchanges().serve(site)?;
        Ok(Box::new(Running {
            server,
            exchanges: self.exchanges(),
            drive,
            verdict: self.0.verdict,
            connections: site.load.connections(),
            deviations: deviations::deviations(&self.0),
            driver: None,
            answered: 0,
        }))
    }
}

/// A server that listens in the guest, and what the driver is asked to do, without the schedule.
struct Running {
    server: u64,
    exchanges: Exchanges,
    drive: Drive,
    verdict: VerdictOn,
    connections: u32,
    /// What differs from the published original.
    deviations: Vec<Deviation>,
    /// Number of the connected driver.
    driver: Option<u64>,
    /// Exchanges answered in all phases.
    answered: u64,
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        self.driver = Some(site.connect(self.drive.clone(), schedule)?);
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let result = site.drive(self.driver.take(), schedule)?;
        self.answered = result.answered_total;
        Ok(Driven { deviations: self.deviations.clone(), ..yields(result, self.verdict) })
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let report = site.stop_server(self.server)?;
        if self.exchanges.service.is_some() {
            let mut served = Figures::default();
            SERVED.iter().for_each(|(id, _, q)| served.percentile(id, &report.service, *q));
            driven.measurement.metrics.extend(served.metrics);
            driven.measurement.incomplete.extend(served.incomplete);
        }
        if driven.work == 0.0 {
            return Ok(Some("no exchange was completed in steady state".into()));
        }
        let failed: u64 = driven
            .measurement
            .counts
            .iter()
            .filter(|(n, _)| tare_model::count::reason(n).is_some())
            .map(|(_, c)| c)
            .sum();
        let wrong = self.exchanges.disagreement(&report, self.answered, u64::from(self.connections) + failed);
        Ok(wrong.or(server_errors(&report, self.answered, driven)))
    }
}

/// Tells of the server's own errors, by count and flag; `Some(reason)` when they are too many.
fn server_errors(report: &ServeReport, answered: u64, driven: &mut Driven) -> Option<String> {
    let count = add_server(report, driven)?;
    (count as f64 > FAILED_MAX * answered as f64)
        .then(|| format!("the server counts {count} errors on {answered} exchanges, first: {}", report.errors[0].0))
}

/// The metrics of `rr` from what the driver saw. A quantile beyond which fewer than ten operations lie is left out.
fn yields(result: DriveResult, verdict: VerdictOn) -> Driven {
    let rate = result.operations as f64 / result.measured_s();
    let mut figures = Figures::of([("operations_per_s", Some(rate))]);
    figures.mean("response_time_mean_s", &result.response);
    for (id, q) in [("response_time_p50_s", 0.5), ("response_time_p99_s", 0.99), ("response_time_p999_s", 0.999)] {
        figures.percentile(id, &result.response, q);
    }
    let unanswered = unanswered(&result);
    let count = result.response.operations();
    let mut driven = from_result(result, UnitOfWork::Operation);
    figures.put(&mut driven.measurement);
    let withheld = verdict.metric();
    driven.invalid = unanswered.or_else(|| {
        too_few(&driven.measurement, withheld).then(|| {
            format!(
                "{count} exchanges are too few for {withheld}, on which the verdict is to be: ten must lie beyond it"
            )
        })
    });
    driven
}

#[cfg(test)]
mod tests {
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
            (json!({"record": false}), "record"),
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

    /// A result with so many operations of 1 ms.
    fn result(operations: u64, failed: u64, lost: u64, unfinished: u64) -> DriveResult {
        let bins = vec![tare_model::histogram::Bin { low: 1_000_000, high: 1_000_000, count: operations }];
        DriveResult {
            errors: if failed > 0 { vec![("connection reset".into(), failed)] } else { Vec::new() },
            lost,
            unfinished,
            response: tare_model::Histogram {
                bins,
                min: 1_000_000,
                max: 1_000_000,
                sum: u128::from(operations) * 1_000_000,
                failed,
                given_up: lost + unfinished,
                ..tare_model::Histogram::default()
            },
            ..crate::yields::tests::result(operations)
        }
    }

    #[test]
    fn a_quantile_is_reported_only_when_ten_operations_lie_beyond_it() {
        let with = |n| yields(result(n, 0, 0, 0), VerdictOn::Mean).measurement.metrics;
        assert!(!with(999).contains_key("response_time_p99_s") && with(1000).contains_key("response_time_p99_s"));
        assert!(!with(9_999).contains_key("response_time_p999_s") && with(10_000).contains_key("response_time_p999_s"));
        assert!(with(5).contains_key("response_time_mean_s"));
        let invalid = yields(result(999, 0, 0, 0), VerdictOn::P99).invalid.unwrap();
        assert!(invalid.contains("999 exchanges are too few for response_time_p99_s"), "{invalid}");
    }

    #[test]
    fn too_many_without_an_answer_make_a_trial_invalid_and_the_counts_are_reported() {
        let invalid =
            |failed, lost, unfinished| yields(result(10_000, failed, lost, unfinished), VerdictOn::Mean).invalid;
        assert_eq!(invalid(50, 400, 50), None);
        let reason = invalid(60, 0, 60).unwrap();
        assert!(reason.contains("60 failed, 60 were unfinished") && reason.contains("connection reset"), "{reason}");
        assert!(invalid(0, 600, 0).unwrap().contains("600 were lost"));
    }

    #[test]
    fn errors_of_the_server_are_flagged_and_many_make_a_trial_invalid() {
        let report =
            |count| ServeReport { errors: vec![("accept: no memory".into(), count)], ..ServeReport::default() };
        let mut driven = yields(result(1000, 0, 0, 0), VerdictOn::Mean);
        assert_eq!(server_errors(&ServeReport::default(), 1000, &mut driven), None);
        assert!(driven.flags.is_empty());
        assert_eq!(server_errors(&report(5), 1000, &mut driven), None);
        assert_eq!(driven.flags[0].kind, "server-errors");
        assert_eq!(driven.measurement.counts["server errors: accept: no memory"], 5);
        assert!(server_errors(&report(11), 1000, &mut driven).unwrap().contains("11 errors"));
    }

    #[test]
    fn a_percentile_among_what_was_lost_is_a_finding_and_not_too_few_exchanges() {
        let driven = yields(result(9_700, 0, 300, 0), VerdictOn::P99);
        assert_eq!(driven.invalid, None, "3 % of datagrams may be lost");
        let measured = &driven.measurement;
        assert!(!measured.metrics.contains_key("response_time_p99_s"), "the 9,900th of 10,000 was lost");
        let left_out = measured.incomplete["response_time_p99_s"];
        assert_eq!((left_out.missing, left_out.completed_only), (0.03, Some(0.001)));
        assert_eq!(measured.metrics["response_time_p50_s"], 0.001);
        let few = yields(result(900, 0, 0, 0), VerdictOn::P99);
        assert!(few.invalid.is_some_and(|why| why.starts_with("900 exchanges are too few")));
    }
}
