//! The figures of a trial: of one guest and of all together, made the same way.

use crate::web::spec::WebDone;
use tare_model::Histogram;
use tare_model::drive::DriveResult;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::Measurement;
use tare_model::{count, histogram};
use tare_wire::ServeReport;

use crate::faults;
use crate::figures::Figures;
pub(super) use crate::requests::total;
use crate::requests::{add_types, times};
use crate::together::together;
use crate::yields::{add_named, from_result, merge};
use crate::{Driven, UnitOfWork};

/// Requests that were sent to the server, embedded files counted.
const EXCHANGES: &str = "exchanges";
const NOT_MODIFIED: &str = "not_modified";
/// Payload bytes that left the guest in the window.
const FROM_GUEST: &str = "bytes_from_guest";
/// Users at one time that were offered.
pub(super) const SESSIONS: &str = count::SESSIONS;
/// CPU of the backend, all phases, nanoseconds.
pub(super) const BACKEND_CPU: &str = "backend_cpu_ns";
/// Length of all phases of load, milliseconds, for each guest's backend.
pub(super) const BACKEND_WALL: &str = "backend_wall_ms_max";
pub(super) const BACKEND_REQUESTS: &str = "backend_requests";
const OVERRUNS: &str = "overruns";
/// Histogram of the backend's service times, nanoseconds.
pub(super) const BACKEND_TIMES: &str = "backend";

/// Quantiles of the response time that are reported.
const QUANTILES: [(&str, &str, f64); 3] = [
    ("response_time_p50_s", "response time of a page, median", 0.5),
    ("response_time_p90_s", "response time of a page, 90th percentile", 0.9),
    ("response_time_p99_s", "response time of a page, 99th percentile", 0.99),
];

/// All metrics, the primary first.
pub(super) fn specs() -> Vec<MetricSpec> {
    let lower = |id: &str, label: &str, unit| MetricSpec::new(id, label, unit, Better::Lower);
    let higher = |id: &str, label: &str, unit| MetricSpec::new(id, label, unit, Better::Higher);
    let mut specs =
        vec![lower("response_time_mean_s", "response time of a page with its files, mean", Unit::Seconds).primary()];
    specs.extend(QUANTILES.map(|(id, label, _)| lower(id, label, Unit::Seconds)));
    specs.extend([
        higher("good_share", "share of requests that were good", Unit::Count),
        higher("tolerable_share", "share of requests that were good or tolerable", Unit::Count),
        higher("pages_per_s", "requests", Unit::OperationsPerSecond),
        higher("goodput_pages_per_s", "goodput: good and tolerable requests", Unit::OperationsPerSecond),
        higher("bits_per_s", "sent by the guest", Unit::BitsPerSecond),
        lower("bytes_per_request", "bytes a request, its files counted", Unit::Bytes),
        lower("validation_error_share", "share of requests with a wrong answer or none", Unit::Count),
        lower("backend_response_p99_s", "backend's response time, 99th percentile", Unit::Seconds),
        lower("backend_cpu_share", "CPU of the backend, in cores", Unit::Count),
        higher("not_modified_share", "share of exchanges answered with \"not modified\"", Unit::Count),
        higher("sessions", "simultaneous sessions", Unit::Count),
    ]);
    specs
}

/// The metrics from request types, counts and times over a window of so many seconds.
fn figures(measured: &Measurement, window_s: f64) -> Figures {
    let count = |name: &str| measured.counts.get(name).map(|count| *count as f64);
    let all = total(&measured.requests);
    let requests = all.requests as f64;
    let share = |of: u64| Some(of as f64 / requests);
    let cores = count(BACKEND_CPU).zip(count(BACKEND_WALL)).map(|(cpu_ns, wall_ms)| cpu_ns / 1e6 / wall_ms);
    let mut figures = Figures::of([
        ("response_time_mean_s", Some(all.response_s / requests)),
        ("good_share", share(all.good)),
        ("tolerable_share", share(all.good + all.tolerable)),
        ("pages_per_s", Some(requests / window_s)),
        ("goodput_pages_per_s", Some((all.good + all.tolerable) as f64 / window_s)),
        ("bits_per_s", count(FROM_GUEST).map(|bytes| bytes * 8.0 / window_s)),
        ("bytes_per_request", share(all.bytes)),
        ("validation_error_share", share(all.validation_errors)),
        ("backend_cpu_share", cores),
        ("not_modified_share", count(NOT_MODIFIED).zip(count(EXCHANGES)).map(|(kept, all)| kept / all)),
        ("sessions", count(SESSIONS)),
    ]);
    if let Some(response) = measured.histograms.get(histogram::RESPONSE) {
        QUANTILES.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
    }
    if let Some(times) = measured.histograms.get(BACKEND_TIMES) {
        figures.percentile("backend_response_p99_s", times, 0.99);
    }
    figures.note_mean("response_time_mean_s", &times(&measured.requests));
    figures
}

/// Makes metrics anew from what they are made of.
pub(super) fn finish(driven: &mut Driven) {
    figures(&driven.measurement, driven.measured_s()).put(&mut driven.measurement);
}

/// What drivers of one guest did, as of one.
fn both(mut all: WebDone, one: WebDone) -> WebDone {
    add_types(&mut all.types, one.types);
    add_named(&mut all.faults, one.faults);
    all.sessions_began += one.sessions_began;
    all.sessions_most += one.sessions_most;
    all.exchanges += one.exchanges;
    all.not_modified += one.not_modified;
    all.connections += one.connections;
    all.reconnected += one.reconnected;
    all.handshakes_full += one.handshakes_full;
    all.handshakes_resumed += one.handshakes_resumed;
    all.overruns += one.overruns;
    all.memory_per_session_bytes = all.memory_per_session_bytes.max(one.memory_per_session_bytes);
    all
}

/// What one guest came to, by what its drivers saw; `None` without a driver.
/// `sessions` is how many were offered.
pub(super) fn of_guest(results: Vec<(DriveResult, WebDone)>, sessions: u64) -> Option<(Driven, WebDone)> {
    let (results, done): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let (result, done) = (merge(results)?, done.into_iter().reduce(both)?);
    let from_guest = result.bytes_from_guest;
    let mut driven = from_result(result, UnitOfWork::Operation);
    driven.measurement.requests.clone_from(&done.types);
    // The work is the requests of all types, those that failed included.
    let requests = total(&done.types);
    driven.work = requests.requests as f64;
    let counts = [
        (EXCHANGES, done.exchanges),
        (NOT_MODIFIED, done.not_modified),
        (FROM_GUEST, from_guest),
        (SESSIONS, sessions),
        (OVERRUNS, done.overruns),
        (count::VALIDATION_ERRORS, requests.validation_errors),
        (count::SESSIONS_BEGAN, done.sessions_began),
        ("sessions_most", done.sessions_most),
        ("requests sent again after a kept connection was closed", done.reconnected),
    ];
    driven.count(counts);
    faults::count(&mut driven, &done.faults);
    let facts = [
        ("connections opened, all phases", done.connections),
        ("TLS handshakes in full, all phases", done.handshakes_full),
        ("TLS handshakes resumed, all phases", done.handshakes_resumed),
        ("driver's memory a session, bytes", done.memory_per_session_bytes),
    ];
    driven.facts.extend(facts.map(|(name, count)| (name.to_owned(), count.to_string())));
    finish(&mut driven);
    if requests.requests == 0 {
        driven.invalid = Some("no page was completed in steady state".to_owned());
    }
    Some((driven, done))
}

/// Adds what the backend saw over phases of so many seconds.
pub(super) fn add_backend(driven: &mut Driven, seen: &ServeReport, wall_s: f64) {
    let counts = &mut driven.measurement.counts;
    counts.insert(BACKEND_REQUESTS.to_owned(), seen.requests);
    counts.insert(BACKEND_CPU.to_owned(), seen.cpu_ns);
    counts.insert(BACKEND_WALL.to_owned(), (wall_s * 1e3).round() as u64);
    for (reason, count) in &seen.errors {
        counts.insert(format!("backend errors: {reason}"), *count);
    }
    driven.measurement.histograms.insert(BACKEND_TIMES.to_owned(), seen.service.clone());
    finish(driven);
}

/// The figures of all guests together.
pub(super) fn combine(guests: Vec<Driven>) -> Option<Driven> {
    let mut all = together(guests.into_iter().map(Driven::with_own_part).collect())?;
    finish(&mut all);
    // One guest has no parts but the whole.
    if all.measurement.parts.len() == 1 {
        all.measurement.parts.clear();
    }
    Some(all)
}

/// The 99th percentile of times, seconds, where there are enough.
pub(super) fn p99_s(times: &Histogram) -> Option<f64> {
    times.percentile(0.99).value().map(|ns| ns / 1e9)
}

#[cfg(test)]
mod tests;
