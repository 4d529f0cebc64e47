//! The probe beside the bulk data: small exchanges at fixed times, whose response time is the latency under load.
//!
//! It is an open loop with equal gaps (periodic sampling, RFC 3432) on one connection of its own. Times count from the moment at which an
//! exchange was due: after a stall every exchange that was due in it is as late as it was, and none is left out (no coordinated omission). As
//! many exchanges are under way as are not answered yet: one at a time would queue for each other where the latency is longer than the gap, and
//! that queue would be what was measured. They are small, so they hardly lengthen the queue that they wait in.
//!
//! In turns exchanges are due in the arm's own turns alone. One that was sent before the end of a turn is measured to its answer, which the drain
//! of the streams makes no longer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::deviation::Deviation;
use tare_model::drive::{DriveResult, Exchange, ServeReport, Wait};
use tare_model::field::FieldError;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::{Flag, Measurement};
use tare_model::written::value as written;
use tare_model::{ByteSize, Histogram, Rate, Span, count, histogram};

use crate::checks::between;
use crate::exchanges::{Exchanges, unanswered};
use crate::figures::Figures;
use crate::site::Drive;
use crate::yields::add_server;
use crate::{Driven, Schedule, WorkSite, WorkloadError};

/// At 1,000 exchanges a second of 4 KiB each way a probe is 66 Mbit/s and some per cent of a CPU at each end: more would be a load of its own.
const EVERY_LEAST: Span = Span::from_millis(1);
/// The 99th percentile takes 1,000 exchanges: 100 s of these.
const EVERY_MOST: Span = Span::from_millis(100);
const SIZE_MOST: ByteSize = ByteSize(4 << 10);

/// The percentiles that are metrics.
const METRICS: [(&str, &str, f64); 2] = [
    ("latency_under_load_p50_s", "latency under load, median", 0.5),
    ("latency_under_load_p99_s", "latency under load, 99th percentile", 0.99),
];
/// The count of the exchanges that were due in the measured window.
const EXCHANGES: &str = "latency probe exchanges";
/// Above this share of the latency that is the driver's own wait for its CPUs a trial is flagged.
const OWN_WAIT_MAX: f64 = 0.1;
/// The kind of that flag.
const LATE: &str = "latency-probe-late";

/// A probe of latency under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// From the moment at which one exchange is due to the next, `1ms` to `100ms`.
    pub every: Span,
    /// Size of a request, at most `4KiB`.
    pub request: ByteSize,
    /// Size of a response, at most `4KiB`.
    pub response: ByteSize,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { every: Span::from_millis(10), request: ByteSize(1), response: ByteSize(1) }
    }
}

impl Parameters {
    /// Refuses what is no probe.
    pub fn check(&self) -> Result<(), FieldError> {
        between(&["probe", "every"], self.every, EVERY_LEAST, EVERY_MOST)
            .map_err(|error| error.help("a probe is a sample, and must be no load of its own"))?;
        for (field, size) in [("request", self.request), ("response", self.response)] {
            between(&["probe", field], size, ByteSize(1), SIZE_MOST)
                .map_err(|error| error.help("a probe is small; bulk data is what the streams are for"))?;
        }
        Ok(())
    }

    /// The metrics that it adds.
    pub fn metrics() -> impl Iterator<Item = MetricSpec> {
        METRICS.into_iter().map(|(id, label, _)| MetricSpec::new(id, label, Unit::Seconds, Better::Lower))
    }

    /// It was not there in the published original.
    pub fn deviation(&self) -> Deviation {
        let pair = ("none", self.words());
        let effect = "little: the facts of the trials have its share of the CPUs";
        Deviation::new("latency probe beside the streams", pair, "the study asks for it", effect)
    }

    fn words(&self) -> String {
        let Self { every, request, response } = self;
        format!("{request} and {response} every {every}, on a connection of its own")
    }

    fn load(&self) -> LoadModel {
        LoadModel::Open { rate: Rate(1e9 / self.every.ns as f64), arrivals: Arrivals::Uniform, connections: 1 }
    }

    fn exchanges(&self) -> Exchanges {
        Exchanges {
            service: None,
            exchange: Exchange::TcpRr,
            request: self.request,
            response: self.response,
            pipelined: true,
            wait: Wait::Block,
            buffer: None,
            record: true,
            loss_timeout: Span::ZERO,
        }
    }
}

/// A probe whose server listens in the guest.
pub(super) struct Probe {
    parameters: Parameters,
    server: u64,
    drive: Drive,
    seen: Seen,
}

/// What its driver counts.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Seen {
    /// Exchanges answered in all phases.
    answered: u64,
    /// Exchanges that failed in all phases or got no answer: the server may have seen them.
    in_doubt: u64,
    /// Exchanges a second in the measured time.
    per_s: f64,
}

impl Probe {
    /// Has the guest's agent serve it.
    pub fn prepare(site: &WorkSite<'_>, parameters: Parameters) -> Result<Self, WorkloadError> {
        let (server, drive) = parameters.exchanges().serve(site)?;
        Ok(Self { parameters, server, drive, seen: Seen::default() })
    }

    /// Has the client's agent open its connection; the driver's number.
    pub fn connect(&self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<u64, WorkloadError> {
        site.connect_under(self.parameters.load(), self.drive.clone(), schedule)
    }

    /// Adds what its driver saw to what the streams came to.
    pub fn add(&mut self, result: DriveResult, driven: &mut Driven) {
        self.seen = seen(&result);
        driven.facts.insert("latency probe".to_owned(), self.parameters.words());
        add(result, driven);
    }

    /// Stops the server, and sees that both ends have counted the same: how they disagree, if they do.
    pub fn verify(&self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let report = site.stop_server(self.server)?;
        add_report(&report, self.seen, driven);
        let wrong = self.parameters.exchanges().disagreement(&report, self.seen.answered, self.seen.in_doubt);
        Ok(wrong.map(|wrong| format!("latency probe: {wrong}")))
    }
}

fn seen(result: &DriveResult) -> Seen {
    let per_s = result.response.operations() as f64 / result.measured_s();
    let failed: u64 = result.errors.iter().map(|(_, count)| count).sum();
    Seen { answered: result.answered_total, in_doubt: failed + result.unfinished, per_s }
}

/// Adds the metrics, the histogram, the counts and the facts of a probe. What was not answered is in the distribution, as longer than all
/// that was.
fn add(result: DriveResult, driven: &mut Driven) {
    driven.invalid = driven.invalid.take().or_else(|| unanswered(&result).map(|why| format!("latency probe: {why}")));
    let cpu_ns = result.cpu_user_ns + result.cpu_system_ns;
    driven.facts.extend(facts(&result, cpu_ns));
    driven.flags.extend(late(&result));
    let counts = &mut driven.measurement.counts;
    let errors = result.errors.iter().map(|(reason, n)| (count::error(&format!("latency probe: {reason}")), *n));
    let own = [(count::UNFINISHED, result.unfinished), (count::DRIVER_CPU_NS, cpu_ns)];
    let own = own.map(|(name, n)| (name.to_owned(), n));
    for (name, n) in own.into_iter().chain(errors).chain([(EXCHANGES.to_owned(), result.response.operations())]) {
        *counts.entry(name).or_default() += n;
    }
    if let (Some(all), Some(own)) = (&mut driven.turns, &result.turns) {
        all.overran = all.overran.max(own.overran);
    }
    figures(&result.response, &mut driven.measurement);
    if !result.response.is_empty() {
        driven.measurement.histograms.insert(histogram::PROBE.to_owned(), result.response);
    }
}

/// Adds the percentiles to the metrics. One beyond which fewer than ten exchanges lie is left out.
fn figures(response: &Histogram, measurement: &mut Measurement) {
    let (metrics, incomplete) = (&mut measurement.metrics, &mut measurement.incomplete);
    let mut figures = Figures { metrics: std::mem::take(metrics), incomplete: std::mem::take(incomplete) };
    METRICS.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
    figures.put(measurement);
}

/// What of the latency is the driver's own, and what the probe costs.
fn facts(result: &DriveResult, cpu_ns: u64) -> Vec<(String, String)> {
    let lateness = [("median", 0.5), ("99th percentile", 0.99)]
        .map(|(name, q)| result.lateness.percentile(q).value().map(|ns| format!("{name} {}", seconds(ns * 1e-9))));
    let lateness: Vec<String> = lateness.into_iter().flatten().collect();
    let late = (!lateness.is_empty())
        .then(|| ("latency probe, from when an exchange was due until it was sent".to_owned(), lateness.join(", ")));
    let waited = own_wait(result).map(|part| {
        ("latency probe, of its latency the driver's wait for a CPU".to_owned(), written(part, &Unit::Share))
    });
    let window_s = result.measured_s();
    let cpu = (window_s > 0.0)
        .then(|| ("latency probe, CPU of the driver".to_owned(), share(cpu_ns as f64 * 1e-9 / window_s)));
    late.into_iter().chain(waited).chain(cpu).collect()
}

/// The share of all latency in which the driver could have gone on and waited for a CPU; `None` where the kernel does not tell, or nothing
/// was answered.
fn own_wait(result: &DriveResult) -> Option<f64> {
    let all = result.response.sum;
    result.run_delay_ns.filter(|_| all > 0).map(|ns| ns as f64 / all as f64)
}

/// Says where much of the latency is the driver's own.
fn late(result: &DriveResult) -> Option<Flag> {
    let part = own_wait(result).filter(|part| *part > OWN_WAIT_MAX)?;
    let (part, most) = (written(part, &Unit::Share), written(OWN_WAIT_MAX, &Unit::Share));
    let detail = format!("of the latency under load {part} is the driver's wait for a CPU, more than {most}");
    Some(Flag { kind: LATE.to_owned(), detail })
}

/// Adds what its server counted, and what its threads took of the guest's CPUs.
fn add_report(report: &ServeReport, seen: Seen, driven: &mut Driven) {
    let errors = report.errors.iter().map(|(reason, n)| (format!("latency probe: {reason}"), *n)).collect();
    // What was granted to its sockets would stand in place of what was granted to the streams'.
    add_server(&ServeReport { errors, strangers: report.strangers, ..ServeReport::default() }, driven);
    if seen.answered > 0 && report.cpu_ns > 0 {
        // The server counts over all phases.
        let each_s = report.cpu_ns as f64 * 1e-9 / seen.answered as f64;
        driven
            .facts
            .insert("latency probe, CPU of its server's threads in the guest".to_owned(), share(each_s * seen.per_s));
    }
}

fn seconds(value: f64) -> String {
    written(value, &Unit::Seconds)
}

fn share(cpus: f64) -> String {
    format!("{} of one CPU", written(cpus, &Unit::Share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitOfWork;
    use crate::yields::{from_result, tests::histogram as times};
    use tare_model::turns::TurnsDone;

    /// A second of streams, and a probe of so many exchanges of 1 ms.
    fn added(exchanges: u64, change: impl FnOnce(&mut DriveResult)) -> Driven {
        let mut driven = from_result(crate::yields::tests::result(0), UnitOfWork::Byte);
        driven.measurement.metrics.insert("throughput_bits_per_s".to_owned(), 8e9);
        driven.turns = Some(TurnsDone { overran: 2, ..TurnsDone::default() });
        let lateness = times(50_000, exchanges);
        let mut result =
            DriveResult { response: times(1_000_000, exchanges), lateness, ..crate::yields::tests::result(exchanges) };
        change(&mut result);
        add(result, &mut driven);
        driven
    }

    #[test]
    fn a_probe_adds_its_metrics_beside_those_of_the_streams() {
        let driven = added(1_000, |result| result.cpu_system_ns = 4_999_999);
        let measured = &driven.measurement;
        assert_eq!(measured.metrics["throughput_bits_per_s"], 8e9);
        let found = METRICS.map(|(id, ..)| measured.metrics[id]);
        assert_eq!(found, [0.001, 0.001]);
        assert_eq!(measured.histograms[histogram::PROBE].count(), 1_000);
        assert_eq!((measured.counts[EXCHANGES], measured.counts[count::OPERATIONS]), (1_000, 0), "bytes are the work");
        assert_eq!(measured.counts[count::DRIVER_CPU_NS], 3 + 5_000_000, "the driver's CPU time is that of both");
        assert_eq!(driven.facts["latency probe, CPU of the driver"], "0.500 % of one CPU");
        let late = &driven.facts["latency probe, from when an exchange was due until it was sent"];
        assert_eq!(late, "median 50.0 us, 99th percentile 50.0 us");
        assert_eq!(driven.invalid, None);
    }

    #[test]
    fn a_percentile_takes_ten_exchanges_beyond_it() {
        let measured = added(999, |_| ()).measurement;
        assert!(measured.metrics.contains_key(METRICS[0].0) && !measured.metrics.contains_key(METRICS[1].0));
        let none = added(0, |result| result.response = Histogram::default());
        assert!(none.invalid.is_none() && none.measurement.histograms.is_empty(), "the streams' figures stand");
    }

    #[test]
    fn what_was_not_answered_is_longer_than_all_that_was() {
        let driven = added(1_980, |result| {
            (result.unfinished, result.response.given_up) = (15, 15);
            (result.errors, result.response.failed) = (vec![("connection reset".to_owned(), 5)], 5);
        });
        let measured = &driven.measurement;
        let times = &measured.histograms[histogram::PROBE];
        assert_eq!((times.count(), times.operations()), (1_980, 2_000));
        assert!(times.quantile(0.99).is_some() && times.quantile(0.991).is_none());
        assert_eq!(METRICS.map(|(id, ..)| measured.metrics[id]), [0.001, 0.001], "the 1,980th of 2,000 was answered");
        assert_eq!(
            (measured.counts["errors: latency probe: connection reset"], measured.counts[count::UNFINISHED]),
            (5, 15)
        );
        assert_eq!(driven.invalid, None, "1 % may be missing");
        let broken = added(100, |result| (result.unfinished, result.response.given_up) = (900, 900));
        assert!(
            broken
                .invalid
                .is_some_and(|why| why.starts_with("latency probe: of 1000 exchanges 0 failed, 900 were unfin"))
        );
    }

    #[test]
    fn latency_that_is_much_of_it_the_drivers_own_is_flagged_with_how_much() {
        let with = |ns| added(1_000, |result| result.run_delay_ns = ns);
        let fact =
            |driven: &Driven| driven.facts.get("latency probe, of its latency the driver's wait for a CPU").cloned();
        let fine = with(Some(100_000_000));
        assert_eq!((fact(&fine).as_deref(), fine.flags.len()), (Some("10.0 %"), 0));
        let late = with(Some(250_000_000));
        assert_eq!((late.flags[0].kind.as_str(), late.flags.len()), (LATE, 1));
        assert!(late.flags[0].detail.contains("25.0 % is the driver's"), "{}", late.flags[0].detail);
        let unknown = with(None);
        assert_eq!((fact(&unknown), unknown.flags.len()), (None, 0));
    }

    #[test]
    fn a_turn_that_the_probe_reached_beyond_is_counted_once() {
        let overran = |own| {
            let of = TurnsDone { overran: own, ..TurnsDone::default() };
            added(10, |result| result.turns = Some(of)).turns.map(|turns| turns.overran)
        };
        assert_eq!((overran(1), overran(7)), (Some(2), Some(7)));
    }

    #[test]
    fn what_its_server_saw_does_not_stand_for_what_the_streams_server_saw() {
        let mut driven = added(100, |_| ());
        driven.facts.insert("server TCP_NODELAY".to_owned(), "off".to_owned());
        let granted = vec![("TCP_NODELAY".to_owned(), "on".to_owned())];
        let errors = vec![("connection reset".to_owned(), 1)];
        let report = ServeReport { granted, errors, cpu_ns: 2_000_000, ..ServeReport::default() };
        add_report(&report, Seen { answered: 200, in_doubt: 0, per_s: 100.0 }, &mut driven);
        assert_eq!(driven.facts["server TCP_NODELAY"], "off");
        assert_eq!(driven.facts["latency probe, CPU of its server's threads in the guest"], "0.100 % of one CPU");
        assert_eq!(driven.measurement.counts["server errors: latency probe: connection reset"], 1);
    }
}
