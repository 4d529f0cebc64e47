//! Small made-up plans, trials and folders for tests, the same each time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tare_model::environment::{Environment, Section};
use tare_model::guest::{GuestSize, ParityRow};
use tare_model::histogram::Bin;
use tare_model::load::{LoadModel, Phases};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::plan::{Cost, CpuPlacement, PLAN_SCHEMA, Plan, PlannedTrial};
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::study::{Arm, Case, LabSpec, Placement, STUDY_SCHEMA, Study};
use tare_model::trial::{Measurement, Outcome, Part, Step, TrialRecord};
use tare_model::{ByteSize, Histogram, Span};

use crate::{JournalEvent, RunWriter};

/// Arms of [`plan`]: the baseline, another, and the baseline's replica.
pub const ARMS: [&str; 3] = ["native", "container", "native-again"];

/// A study of one case `idle` with the three [`ARMS`].
pub fn study(blocks: u32) -> Study {
    let arm = |id: &str| Arm {
        id: id.to_owned(),
        label: id.to_owned(),
        platform: id.split('-').next().unwrap_or(id).to_owned(),
        options: Value::Null,
        replica_of: (id == ARMS[2]).then(|| ARMS[0].to_owned()),
    };
    let second = Span::from_secs(1);
    Study {
        schema: STUDY_SCHEMA,
        name: "made-up".to_owned(),
        question: "Is a container slower?".to_owned(),
        blocks,
        seed: 7,
        baseline: ARMS[0].to_owned(),
        arms: ARMS.iter().map(|id| arm(id)).collect(),
        cases: vec![Case {
            drivers: 1,
            guests: 1,
            id: "idle".to_owned(),
            label: "idle host".to_owned(),
            workload: "rr".to_owned(),
            parameters: json!({"request": "128B"}),
            load: LoadModel::Closed { clients: 1, think_time: Span::ZERO },
            phases: Phases {
                warm_up: second,
                ramp_up: Span::ZERO,
                steady_state: Span::from_secs(8),
                ramp_down: second,
            },
            guest: GuestSize { cpus: 1, memory: ByteSize(1 << 30) },
            neighbours: None,
            busy_target: false,
            qos: Vec::new(),
        }],
        lab: LabSpec {
            mtu: 1500,
            offloads: true,
            congestion_control: Some("cubic".to_owned()),
            placement: Placement::SameCpu,
            sample_interval: Span::from_millis(250),
        },
        scale: 1.0,
        skip_unavailable: false,
        client: tare_model::study::ClientHost::Local,
    }
}

/// The plan of [`study`], its arms turned by one place in each block.
pub fn plan(blocks: u32) -> Plan {
    let arms = ARMS.len() as u32;
    let trials = (0..blocks * arms)
        .map(|index| {
            let block = index / arms;
            let arm = ARMS[((index + block) % arms) as usize].to_owned();
            PlannedTrial { index, block, case: "idle".to_owned(), arm }
        })
        .collect();
    Plan {
        schema: PLAN_SCHEMA,
        study: study(blocks),
        hash: format!("{blocks:064x}"),
        cpus: CpuPlacement { client: vec![0], guests: vec![0], note: "one CPU for both".to_owned() },
        trials,
        cost: Cost {
            measuring: Span::from_secs(10),
            around: Span::from_secs(1),
            memory: ByteSize(1 << 30),
            disk: ByteSize(1 << 20),
        },
        deviations: Vec::new(),
        left_out: Vec::new(),
    }
}

/// A host.
pub fn environment() -> Environment {
    let facts = vec![("model".to_owned(), "made up".to_owned())];
    Environment { sections: vec![Section { title: "CPU".to_owned(), facts }], redacted: true }
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
            other_s: 0.2,
            total_s: 1.2 + 2.0 * factor,
            probe_s: 0.01,
            ..CpuAccount::default()
        }),
        window_ns: Some(window),
        samples: samples(start, 1.0 / p50),
        flags: Vec::new(),
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
    record.metrics.iter_mut().for_each(|spec| spec.primary = false);
    record.metrics.push(MetricSpec::new(metric, "orders a minute", unit, Better::Higher).primary());
    let base = 3000.0 / if record.planned.arm == ARMS[1] { 1.05 } else { 1.0 };
    let mut all = 0.0;
    for guest in 1..=2 {
        let of = |driver: u32| base * (1.0 + 0.01 * noise(u64::from(index * 10 + guest * 3 + driver)));
        let part = |driver, value| Part { guest, driver, metrics: BTreeMap::from([(metric.to_owned(), value)]) };
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
        Histogram { bins, min: low, max: low + 999, sum: u128::from((low + 500) * count) }
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

/// Writes a whole run of `plan` into `dir`.
pub fn write_run(dir: &Path, plan: &Plan, trials: &[TrialRecord]) {
    let mut writer =
        RunWriter::create(dir, "# a made-up study\n", plan, &environment(), "20260102-made-up", "0.1.0").unwrap();
    for record in trials {
        writer.journal(&JournalEvent::TrialStarted { index: record.planned.index }).unwrap();
        writer.append(record).unwrap();
    }
    writer.journal(&JournalEvent::RunFinished).unwrap();
}
