//! Small made-up plans, trials and folders for tests, the same each time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tare_model::capacity::{self, CapacitySearch, Probe, ProbeCause, ProbePurpose};
use tare_model::cpu_target::{CpuSearch, CpuSearchStep};
use tare_model::density::{self, CoursePoint, Level, ScaleUp, StopKind, Stopped};
use tare_model::deviation::Deviation;
use tare_model::environment::{Environment, Section};
use tare_model::guest::{GuestSize, ParityRow};
use tare_model::histogram::Bin;
use tare_model::layout::Layout;
use tare_model::load::{LoadModel, Phases};
use tare_model::merging::{HostMemory, MergeCounters, SavedFrom};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::plan::{Cost, CpuPlacement, PLAN_SCHEMA, Plan, PlannedTrial};
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::study::{Arm, Case, LabSpec, Placement, STUDY_SCHEMA, Study};
use tare_model::trial::{Flag, Measurement, Outcome, Part, RequestType, Step, TrialRecord};
use tare_model::{ByteSize, Histogram, Span};

mod conditions;
mod turns;
mod whole;

pub use conditions::{conditions_plan, conditions_trial};
pub use turns::{pairs_plan, turns_plan, turns_trial};
pub use whole::write_run_as;

/// Arms of [`plan`]: the baseline, another, and the baseline's replica.
pub const ARMS: [&str; 3] = ["native", "container", "native-again"];

/// A study of one case `idle` with the three [`ARMS`].
pub fn study(blocks: u32) -> Study {
    let arm = |id: &str| Arm {
        id: id.to_owned(),
        label: id.to_owned(),
        platform: id.split('-').next().unwrap_or(id).to_owned(),
        options: Value::Null,
        slowed_permille: 0,
        replica_of: (id == ARMS[2]).then(|| ARMS[0].to_owned()),
        host_memory: HostMemory::default(),
        start: tare_model::start::Start::Cold,
    };
    let second = Span::from_secs(1);
    let phases = Phases { warm_up: second, ramp_down: second, ..Phases::measuring(Span::from_secs(8)) };
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
    let case = Case {
        label: "idle host".to_owned(),
        parameters: json!({"request": "128B"}),
        ..Case::new("idle", "rr", load.into(), phases, size)
    };
    Study {
        schema: STUDY_SCHEMA,
        name: "made-up".to_owned(),
        question: "Is a container slower?".to_owned(),
        blocks,
        seed: 7,
        baseline: ARMS[0].to_owned(),
        arms: ARMS.iter().map(|id| arm(id)).collect(),
        cases: vec![case],
        lab: LabSpec {
            mtu: 1500,
            offloads: true,
            link_rate: None,
            wire: None,
            congestion_control: Some("cubic".to_owned()),
            placement: Placement::SameCpu,
            sample_interval: Span::from_millis(250),
        },
        scale: 1.0,
        spare_blocks: 0,
        precision: None,
        margin: None,
        skip_unavailable: false,
        hosts: Vec::new(),
        roles: tare_model::study::Roles::default(),
        trust_domain: None,
        published: None,
        compare_with: None,
        score: None,
        original: None,
    }
}

/// The plan of [`study`], its arms turned by one place in each block.
pub fn plan(blocks: u32) -> Plan {
    let arms = ARMS.len() as u32;
    let trials = (0..blocks * arms)
        .map(|index| {
            let block = index / arms;
            let arm = ARMS[((index + block) % arms) as usize].to_owned();
            PlannedTrial { index, block: block + 1, case: "idle".to_owned(), arm }
        })
        .collect();
    Plan {
        schema: PLAN_SCHEMA,
        study: study(blocks),
        hash: format!("{blocks:064x}"),
        cpus: CpuPlacement { client: vec![0], guests: vec![0], note: "one CPU for both".to_owned() },
        trials,
        sets: Vec::new(),
        layout: Layout::default(),
        cost: Cost {
            measuring: Span::from_secs(10),
            around: Span::from_secs(1),
            memory: ByteSize(1 << 30),
            disk: ByteSize(1 << 20),
        },
        differences: Vec::new(),
        left_out: Vec::new(),
    }
}

/// A host.
pub fn environment() -> Environment {
    let facts = vec![("model".to_owned(), "made up".to_owned())];
    Environment { sections: vec![Section { title: "CPU".to_owned(), facts }], redacted: true, ..Environment::default() }
}

/// A number between -1 and 1 that depends on nothing but `seed`.
pub fn noise(seed: u64) -> f64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The metrics of [`trial`].
pub fn metrics() -> Vec<MetricSpec> {
    vec![
        MetricSpec::new("response_time_p50_s", "response time, median", Unit::Seconds, Better::Lower).primary(),
        MetricSpec::new("operations_per_s", "transactions", Unit::OperationsPerSecond, Better::Higher),
        MetricSpec::new(common::SERVICE_DEMAND, "CPU per operation", Unit::CpuSecondsPerOperation, Better::Lower),
    ]
}

/// A completed trial of `plan`, the container 5 % slower, with noise of half a percent.
pub fn trial(plan: &Plan, index: u32) -> TrialRecord {
    let planned = plan.trials[index as usize].clone();
    let factor = if planned.arm == ARMS[1] { 1.05 } else { 1.0 };
    let p50 = 20e-6 * factor * (1.0 + 0.005 * noise(u64::from(index)));
    let start = 1_000_000_000 * (100 + 20 * u64::from(index));
    let window = (start + 1_000_000_000, start + 9_000_000_000);
    TrialRecord {
        planned,
        started_at: format!("2026-01-02T03:{:02}:{:02}Z", index / 4 % 60, index % 4 * 15),
        wall_s: 10.5,
        load_s: 10.0,
        outcome: Outcome::Completed(measurement(p50)),
        metrics: metrics(),
        parity: vec![ParityRow {
            resource: "cpu quota".to_owned(),
            asked: "1 CPU".to_owned(),
            granted: Some("1 CPU".to_owned()),
            equal: true,
            note: "cpu.cfs_quota_us".to_owned(),
        }],
        cpu: Some(CpuAccount {
            window_s: 8.0,
            cpus: 1,
            guest_user_s: 0.5,
            guest_system_s: 2.0 * factor,
            softirq_s: 0.5,
            kernel_s: 0.2,
            foreign_s: 0.3,
            total_s: 1.5 + 2.0 * factor,
            probe_s: 0.01,
            ..CpuAccount::default()
        }),
        window_ns: Some(window),
        turns: None,
        samples: samples(start, 1.0 / p50),
        flags: Vec::new(),
        deviations: Vec::new(),
        facts: BTreeMap::from([("congestion control".to_owned(), "cubic".to_owned())]),
    }
}

/// The same trial of a workload with two guests of two drivers each, whose operations have steps: orders a minute, of
/// which the metric is the sum.
pub fn store_trial(plan: &Plan, index: u32) -> TrialRecord {
    let mut record = trial(plan, index);
    let Outcome::Completed(measurement) = &mut record.outcome else { return record };
    let metric = "orders_per_minute";
    let unit = Unit::Other("orders/min".to_owned());
    // Read back as it was written.
    let texts = ("8 machines", "this host");
    record.deviations.push(Deviation::new("clients", texts, "it has no others", "the client takes CPU"));
    record.metrics.iter_mut().for_each(|spec| spec.primary = false);
    record.metrics.push(MetricSpec::new(metric, "orders a minute", unit, Better::Higher).primary());
    let base = 3000.0 / if record.planned.arm == ARMS[1] { 1.05 } else { 1.0 };
    let mut all = 0.0;
    for guest in 1..=2 {
        let of = |driver: u32| base * (1.0 + 0.01 * noise(u64::from(index * 10 + guest * 3 + driver)));
        let part = |driver, value| Part {
            guest,
            driver,
            metrics: BTreeMap::from([(metric.to_owned(), value)]),
            instance: None,
        };
        measurement.parts.extend([part(Some(1), of(1)), part(Some(2), of(2)), part(None, of(1) + of(2))]);
        all += of(1) + of(2);
    }
    measurement.metrics.insert(metric.to_owned(), all);
    let operations = (all * 8.0 / 60.0).round() as u64;
    measurement.counts.insert("operations".to_owned(), operations);
    // (name, within, times an operation in tenths, microseconds each)
    let steps = [("log in", true, 8, 2000), ("browse, all kinds", true, 30, 1500), ("read prices", false, 10, 400)];
    let times = |us: u64, count: u64| {
        let low = us * 1000;
        let bins = vec![Bin { low, high: low + 999, count }];
        Histogram { bins, min: low, max: low + 999, sum: u128::from((low + 500) * count), ..Histogram::default() }
    };
    for (name, within, tenths, us) in steps {
        let times = times(us, operations * tenths / 10);
        measurement.steps.push(Step { name: name.to_owned(), within, times });
    }
    // 1.6 ms to log in, 4.5 ms to browse, and 0.4 ms between them.
    measurement.histograms.values_mut().for_each(|whole| *whole = times(6500, operations));
    let first: Vec<Sample> =
        record.samples.iter().filter(|sample| matches!(sample.source, Source::Guest(_))).cloned().collect();
    for sample in first {
        let total = Sample { series: "cpu_total_s".to_owned(), value: sample.value * 1.5, ..sample };
        let second = Sample { source: Source::Guest("target-2".to_owned()), ..total.clone() };
        record.samples.extend([total, second]);
    }
    record
}

/// The same trial of a workload with two instances of its application in the guest, for which a load was looked for that takes 40 % of
/// the guest's CPUs. A trial of an odd number adds guests by tiles of two.
pub fn cpu_target_trial(plan: &Plan, index: u32) -> TrialRecord {
    if index % 2 == 1 {
        let mut record = density_trial(plan, index, &[2, 4]);
        if let Outcome::Completed(Measurement { scale_up: Some(scale_up), .. }) = &mut record.outcome {
            scale_up.tile = vec!["shop".to_owned(), "store".to_owned()];
            let parts = scale_up.levels.iter_mut().flat_map(|level| &mut level.parts);
            parts.for_each(|part| part.instance = (part.guest % 2 == 1).then_some(part.guest));
        }
        return record;
    }
    let mut record = store_trial(plan, index);
    let Outcome::Completed(measurement) = &mut record.outcome else { return record };
    measurement.parts = (1..=2_u32)
        .map(|instance| Part {
            guest: 1,
            driver: None,
            instance: Some(instance),
            metrics: BTreeMap::from([("operations_per_s".to_owned(), f64::from(index * 3 + instance))]),
        })
        .collect();
    let step = |load: f64, share| CpuSearchStep { load, share, operations_per_s: load / 5.0, window_s: 30.0 };
    let share = 0.4 + 0.01 * noise(u64::from(index));
    measurement.cpu_search = Some(CpuSearch {
        target: 0.4,
        tolerance: 0.02,
        steps: vec![step(50.0, 0.21), step(96.0, 0.398), CpuSearchStep { window_s: 120.0, ..step(97.0, share) }],
        load: 97.0,
        share,
        spread: Some(0.03),
        course: (0..12).map(|n| (5.0 + 10.0 * f64::from(n), share + 0.002 * f64::from(n % 3))).collect(),
    });
    record
}

/// The same trial of a workload whose guests are added, at these numbers of guests, of which the last does not hold: the host
/// gives each guest less beyond four.
pub fn density_trial(plan: &Plan, index: u32, guests: &[u32]) -> TrialRecord {
    let mut record = trial(plan, index);
    let Outcome::Completed(measurement) = &mut record.outcome else { return record };
    record.metrics.iter_mut().for_each(|spec| spec.primary = false);
    // Spelt out here: a folder that was written once holds the words of its time.
    let held = MetricSpec::new(density::metric::HELD, "guests held", Unit::Count, Better::Higher).primary();
    record.metrics.insert(0, held);
    let seed = u64::from(index);
    let response = &measurement.histograms["response"];
    let mut levels: Vec<Level> = guests.iter().map(|&guests| level(guests, seed, response)).collect();
    if let Some(last) = levels.last_mut() {
        last.failed = Some("guest 3 missed `operations_per_guest_per_s`: 812 of 900 a second".to_owned());
        last.cause = Some(StopKind::Qos);
    }
    let last = guests.last().copied().unwrap_or(0);
    let course = (0..u64::from(last) * 20).map(|second| course_point(second, seed)).collect();
    let detail = "MemAvailable 2.1 GiB, 2.0 GiB are kept back".to_owned();
    let stopped = Stopped { kind: StopKind::Memory, guests: last, detail };
    let scale_up = ScaleUp { levels, stopped, course, offered_per_guest_per_s: Some(1000.0), tile: Vec::new() };
    measurement.metrics.insert(density::metric::HELD.to_owned(), f64::from(scale_up.held()));
    measurement.scale_up = Some(scale_up);
    record
}

/// The same trial of a workload with request types, whose largest load is looked for: 8, 16 and 12 clients are tried, of
/// which 16 are too many, and 12 are confirmed once.
pub fn capacity_trial(plan: &Plan, index: u32) -> TrialRecord {
    let mut record = trial(plan, index);
    let (window, cpu) = (record.window_ns.unwrap_or_default(), record.cpu);
    let Outcome::Completed(measurement) = &mut record.outcome else { return record };
    record.metrics.iter_mut().for_each(|spec| spec.primary = false);
    // Spelt out here: a folder that was written once holds the words of its time.
    record
        .metrics
        .insert(0, MetricSpec::new(capacity::metric::CAPACITY, "capacity", Unit::Count, Better::Higher).primary());
    let seed = u64::from(index);
    let probe = |(position, clients, purpose): (u64, u32, ProbePurpose)| Probe {
        load: f64::from(clients),
        purpose,
        window_ns: (window.0 + position * 1_000_000_000, window.1 + position * 1_000_000_000),
        metrics: BTreeMap::from([(
            "operations_per_s".to_owned(),
            100.0 * f64::from(clients) * (1.0 + 0.01 * noise(seed)),
        )]),
        counts: BTreeMap::from([("operations".to_owned(), 800 * u64::from(clients)), ("lost".to_owned(), 0)]),
        response: measurement.histograms["response"].clone(),
        requests: request_types(clients, seed * 31 + position),
        cpu,
        ..Probe::default()
    };
    let tried = [
        (0, 8, ProbePurpose::Bracket),
        (1, 16, ProbePurpose::Bracket),
        (2, 12, ProbePurpose::Bisect),
        (3, 12, ProbePurpose::Confirm),
    ];
    let mut probes: Vec<Probe> = tried.into_iter().map(probe).collect();
    probes[1].failed = Some("`good_share` was 0.912, and at least 0.95 was asked".to_owned());
    probes[1].cause = Some(ProbeCause::Qos);
    probes[1].flags =
        vec![Flag { kind: "drops".to_owned(), detail: "3 packets were dropped, 0 are allowed".to_owned() }];
    measurement.metrics.insert(capacity::metric::CAPACITY.to_owned(), 12.0);
    measurement.requests.clone_from(&probes[3].requests);
    let ended = "12 clients held twice, 16 did not".to_owned();
    measurement.search = Some(CapacitySearch { held: 12.0, missed: Some(16.0), probes, ended });
    record
}

/// Requests of three types by so many clients; times of the last are not known.
fn request_types(clients: u32, seed: u64) -> Vec<RequestType> {
    let one = |(at, (name, share, bytes)): (u64, (&str, f64, u64))| {
        let requests = (f64::from(clients) * 1000.0 * share * (1.0 + 0.01 * noise(seed * 5 + at))) as u64;
        let failed = if clients > 12 { requests / 20 } else { requests / 500 };
        let tolerable = requests / 50;
        let low = 20_000_000 + 1_000_000 * at;
        let bins = vec![
            Bin { low, high: low + 9_999, count: requests - tolerable - failed },
            Bin { low: low * 40, high: low * 40 + 99_999, count: tolerable + failed },
        ];
        let sum = u128::from(low) * u128::from(requests);
        let times = Histogram { bins, min: low, max: low * 40 + 99_999, sum, ..Histogram::default() };
        RequestType {
            name: name.to_owned(),
            requests,
            good: requests - tolerable - failed,
            tolerable,
            failed,
            validation_errors: failed / 2,
            bytes: requests * bytes,
            response_s: sum as f64 / 1e9,
            target: (at < 2).then_some(share),
            times: if at < 2 { times } else { Histogram::default() },
        }
    };
    (0u64..).zip([("login", 0.25, 32_000), ("summary", 0.7, 23_000), ("log, out", 0.05, 73_000)]).map(one).collect()
}

fn level(guests: u32, seed: u64, response: &Histogram) -> Level {
    use density::metric;
    let noise = |of: u32| 1.0 + 0.01 * noise(seed * 7919 + u64::from(guests * 64 + of));
    let each = 1000.0 * f64::from(guests.min(4)) / f64::from(guests.max(1));
    let part = |guest: u32| {
        let metrics = [
            (metric::OPERATIONS, each * noise(guest)),
            (metric::RESPONSE_P99, 0.002 / noise(guest)),
            (metric::GUEST_UNIQUE, 4e8 * noise(guest)),
            (metric::GUEST_SHARED, 1e8 * noise(guest)),
        ];
        Part { guest, driver: None, metrics: metrics.map(|(id, value)| (id.to_owned(), value)).into(), instance: None }
    };
    let parts: Vec<Part> = (1..=guests).map(part).collect();
    let all: f64 = parts.iter().map(|part| part.metrics[metric::OPERATIONS]).sum();
    let (start, pages) = (1_000_000_000_000 + u64::from(guests) * 60_000_000_000, u64::from(guests) * 50_000);
    let values = [
        (metric::OPERATIONS, all),
        (metric::PER_GUEST, all / f64::from(guests.max(1))),
        (metric::RESPONSE_P99, 0.002 * noise(0)),
        (metric::HOST_CPU, (0.2 * f64::from(guests)).min(1.0)),
        (metric::PROMISED, f64::from(guests) * 1e9),
        (metric::SAVED, pages as f64 * 4096.0),
    ];
    Level {
        guests,
        failed: None,
        cause: None,
        window_ns: (start, start + 30_000_000_000),
        settled_after_s: (guests > 1).then_some(12.5),
        metrics: values.map(|(id, value)| (id.to_owned(), value)).into(),
        response: response.clone(),
        parts,
        saved_from: SavedFrom {
            zero_bytes: pages * 3000,
            code_bytes: pages * 1000,
            data_bytes: pages * 90,
            unknown_bytes: pages * 6,
        },
        merge: MergeCounters {
            pages_shared: 100,
            pages_sharing: pages,
            pages_scanned: pages * 10,
            full_scans: u64::from(guests),
            profit_bytes: if guests > 1 { 4096 * pages as i64 } else { -64_000 },
            scanner_cpu_s: f64::from(guests) * 0.7,
            ..MergeCounters::default()
        },
    }
}

fn course_point(second: u64, seed: u64) -> CoursePoint {
    let guests = 1 + second / 20;
    CoursePoint {
        at_s: second as f64 + 0.001 * noise(seed + second),
        guests: guests as u32,
        load: second % 20 > 10,
        available_bytes: (24 << 30) - guests * (500 << 20),
        saved_bytes: guests * (100 << 20),
        profit_bytes: if second < 20 { -1_000_000 } else { (guests * (90 << 20)) as i64 },
        scanner_cpu_s: second as f64 * 0.04,
    }
}

fn measurement(p50: f64) -> Measurement {
    let mut response = Histogram::default();
    for step in 0..40u64 {
        // A right tail: each step is 10 % further out and holds a third fewer operations.
        let low = (p50 * 1e9 * 0.9 * 1.1f64.powi(step as i32)) as u64;
        let count = (200_000.0 * 0.67f64.powi(step as i32)) as u64 + 1;
        let bin = Histogram {
            bins: vec![Bin { low, high: low + 15, count }],
            min: low,
            max: low + 15,
            sum: u128::from(low * count),
            ..Histogram::default()
        };
        response.merge(&bin);
    }
    let operations = response.count();
    Measurement {
        parts: Vec::new(),
        steps: Vec::new(),
        metrics: BTreeMap::from([
            ("response_time_p50_s".to_owned(), p50),
            ("operations_per_s".to_owned(), 0.9 / p50),
            (common::SERVICE_DEMAND.to_owned(), p50 / 4.0),
        ]),
        histograms: BTreeMap::from([("response".to_owned(), response.clone()), ("service".to_owned(), response)]),
        counts: BTreeMap::from([("operations".to_owned(), operations), ("lost".to_owned(), 0)]),
        scale_up: None,
        requests: Vec::new(),
        search: None,
        cpu_search: None,
        incomplete: BTreeMap::new(),
    }
}

fn samples(start: u64, rate: f64) -> Vec<Sample> {
    let mut samples = Vec::new();
    for tick in 0..=40u64 {
        let at_ns = start + tick * 250_000_000;
        let mut push = |source: Source, series: &str, value: f64| {
            samples.push(Sample { at_ns, source, series: series.to_owned(), value });
        };
        push(Source::Client, "operations_per_s", rate * (1.0 + 0.01 * noise(at_ns)));
        push(Source::Host, "cpu_user_s", 100.0 + tick as f64 * 0.05);
        push(Source::Guest("target".to_owned()), "cpu_system_s", tick as f64 * 0.06);
        push(Source::Host, "memory_available_bytes", 1e9);
    }
    samples
}

/// SHA-256 of a file as the journal names it.
pub fn digest(bytes: &[u8]) -> String {
    crate::digest::sha256_hex(bytes)
}

/// A journal's text with the chain of each line computed anew; what does not look like a line stays as it is.
pub fn chained(text: &str) -> String {
    let mut before = String::new();
    let mut line = |line: &str| {
        let Some((start, _)) = line.rsplit_once(",\"chain\":\"") else { return line.to_owned() };
        before = digest(format!("{before}{start}").as_bytes());
        format!("{start},\"chain\":\"{before}\"}}")
    };
    text.split('\n').map(&mut line).collect::<Vec<_>>().join("\n")
}

/// Id of the runs that [`write_run`] writes.
pub const RUN_ID: &str = "20260102-030000-00af";

/// Writes a whole run of `plan` into `dir`.
pub fn write_run(dir: &Path, plan: &Plan, trials: &[TrialRecord]) {
    write_run_as(dir, plan, trials, RUN_ID, &environment());
}
