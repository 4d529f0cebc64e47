//! A probe beside bulk data: it exchanges when it is to, and sees what the load and a stall do.

use std::time::Duration;

use serde_json::{Value, json};
use tare_model::guest::GuestSize;
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::{ByteSize, Rate, Span, histogram};
use tare_workload::{Driven, DriverSite, SameClock, Schedule, registry};

use crate::common::{Agent, agent, drive, in_turns, work_site};

const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
/// From one exchange to the next, milliseconds, and so many of them a second.
const EVERY_MS: u64 = 2;
const RATE: Rate = Rate(500.0);

fn schedule(measured: Span) -> Schedule {
    let phases = Phases { warm_up: Span::from_millis(50), ..Phases::measuring(measured) };
    Schedule { phases, start_at_ns: 0, seed: 1, interval_ns: 100_000_000, turns: None, baton: None }
}

/// Bulk data of so many streams with a probe; `stalled`: half a second after its start everything stands still for that long. In turns where
/// it says so.
fn probed(streams: u32, parameters: &Value, stalled: Option<Duration>, turns: bool) -> Option<Driven> {
    let agent = Agent::start(&agent()?);
    let load = LoadModel::Closed { clients: streams, think_time: Span::ZERO };
    let workload = (registry::find("stream").unwrap().make)(parameters, &load).unwrap();
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, None, SIZE, load);
    let mut schedule = schedule(Span::from_millis(1_000));
    if turns {
        schedule.turns = Some(in_turns(workload.traits(&SIZE, 1).turns.unwrap(), &schedule.phases));
    }
    let mut prepared = workload.prepare(&site).unwrap();
    let agent = &agent;
    let (driven, wrong) = std::thread::scope(|scope| {
        if let Some(stalled) = stalled {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                agent.stand_still(stalled);
            });
        }
        drive(&site, &mut *prepared, &schedule).unwrap()
    });
    assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
    Some(driven)
}

fn with_probe() -> Value {
    json!({"method": "write", "probe": {"every": format!("{EVERY_MS}ms"), "request": "128B", "response": "128B"}})
}

/// The median response time of the same exchanges without bulk data, seconds.
fn idle() -> Option<f64> {
    let agent = Agent::start(&agent()?);
    let load = LoadModel::Open { rate: RATE, arrivals: Arrivals::Uniform, connections: 1 };
    let parameters = json!({"request": "128B", "response": "128B", "verdict": "p50"});
    let workload = (registry::find("rr").unwrap().make)(&parameters, &load).unwrap();
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, None, SIZE, load);
    let mut prepared = workload.prepare(&site).unwrap();
    let (driven, wrong) = drive(&site, &mut *prepared, &schedule(Span::from_millis(500))).unwrap();
    assert_eq!((wrong, driven.invalid), (None, None));
    Some(driven.measurement.metrics["response_time_p50_s"])
}

#[test]
fn as_many_exchanges_are_measured_as_were_due_beside_the_streams() {
    let Some(driven) = probed(1, &with_probe(), None, false) else { return };
    let measured = &driven.measurement;
    assert_eq!(measured.histograms[histogram::PROBE].operations(), 1_000 / EVERY_MS);
    assert_eq!(measured.counts["latency probe exchanges"], 1_000 / EVERY_MS);
    assert!(measured.metrics["throughput_bits_per_s"] > 1e6 && measured.metrics["latency_under_load_p50_s"] > 0.0);
    for fact in
        ["latency probe", "latency probe, CPU of the driver", "latency probe, CPU of its server's threads in the guest"]
    {
        assert!(driven.facts.contains_key(fact), "{fact}: {:?}", driven.facts);
    }
    assert!(!measured.histograms.contains_key(histogram::RESPONSE), "streams have no response time");
}

#[test]
fn in_turns_a_probe_is_measured_in_its_arms_turns_alone_and_nothing_that_was_due_is_missing() {
    let Some(driven) = probed(2, &with_probe(), None, true) else { return };
    let times = &driven.measurement.histograms[histogram::PROBE];
    let window_ms = driven.window_ns.1.saturating_sub(driven.window_ns.0) / 1_000_000;
    assert!(window_ms > 2_000, "two others have as many turns: {window_ms} ms");
    // By the clock that runs in its turns, milliseconds: a turn is 24, of which the first 4 are not measured, and the warm-up 50.
    let due = (EVERY_MS / 2..1_050).step_by(EVERY_MS as usize).filter(|at| *at >= 50 && at % 24 >= 4).count();
    assert_eq!(times.operations(), due as u64);
    assert_eq!(times.not_completed(), 0, "what a turn's end cut off was measured to its answer");
}

#[test]
fn every_exchange_that_was_due_in_a_stall_is_as_late_as_it_was() {
    let stall = Duration::from_millis(200);
    let Some(driven) = probed(1, &with_probe(), Some(stall), false) else { return };
    let times = &driven.measurement.histograms[histogram::PROBE];
    let slower = |ms: u64| times.bins.iter().filter(|bin| bin.low >= ms * 1_000_000).map(|bin| bin.count).sum::<u64>();
    // One in flight sees all of it; those that were due in its first half waited for at least the other half.
    assert!(slower(190) >= 1, "{times:?}");
    assert!(slower(100) >= 100 / EVERY_MS - 5, "{} waited 100 ms", slower(100));
    assert_eq!(times.operations(), 1_000 / EVERY_MS);
    assert!(driven.measurement.metrics["latency_under_load_p50_s"] < 0.1);
}

#[test]
fn bulk_data_makes_the_probe_wait_longer_than_an_idle_guest_does() {
    // Others may use the host for a while: it is looked at again then.
    let mut seen = Vec::new();
    while seen.len() < 5 && !seen.last().is_some_and(|ratio| *ratio > 1.2) {
        let (Some(idle), Some(loaded)) = (idle(), probed(6, &with_probe(), None, false)) else { return };
        seen.push(loaded.measurement.metrics["latency_under_load_p50_s"] / idle);
    }
    assert!(seen.last().is_some_and(|ratio| *ratio > 1.2), "{seen:?}");
}
