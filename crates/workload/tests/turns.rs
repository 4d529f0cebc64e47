//! Workloads whose guests are driven in turns, of which others have as many.

use std::sync::Arc;

use serde_json::{Value, json};
use tare_model::guest::GuestSize;
use tare_model::load::{LoadModel, Phases};
use tare_model::turns::{TurnSpec, Turns, Waiting};
use tare_model::{ByteSize, Span};
use tare_workload::{Driven, DriverSite, SameClock, Schedule, registry};

use crate::common::{Agent, agent, drive, work_site};

const LOAD: LoadModel = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };

/// A trial with all the time for itself, and one in turns; and how much of a turn is measured, nanoseconds.
fn both(workload: &str, parameters: &Value) -> Option<([Driven; 2], u64)> {
    let agent = Agent::start(&agent()?);
    let workload = (registry::find(workload).unwrap().make)(parameters, &LOAD).unwrap();
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, None, SIZE, LOAD);
    let taken = workload.traits(&SIZE, 1).turns.unwrap();
    let spec =
        TurnSpec { turn: taken.turn, warm_up: taken.warm_up, gap: taken.gap, waiting: Waiting::Idle, commands: None };
    let phases = Phases { warm_up: taken.turn, ..Phases::measuring(Span { ns: 6 * taken.turn.ns }) };
    let places = (0..spec.rounds(&phases)).map(|round| round % 2).collect();
    let turns = Turns { spec, arms: 2, places };
    let driven = [None, Some(Arc::new(turns))].map(|turns| {
        let schedule = Schedule { phases, start_at_ns: 0, seed: 1, interval_ns: 50_000_000, turns, baton: None };
        let mut prepared = workload.prepare(&site).unwrap();
        let (driven, wrong) = drive(&site, &mut *prepared, &schedule).unwrap();
        assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
        driven
    });
    Some((driven, taken.turn.ns - taken.warm_up.ns))
}

#[test]
fn what_is_done_in_turns_is_done_at_the_speed_of_all_the_time() {
    for (name, parameters, metric) in
        [("cpu", json!({}), "chunks_per_s"), ("stream", json!({"method": "write"}), "throughput_bits_per_s")]
    {
        let Some(([alone, in_turns], part_ns)) = both(name, &parameters) else { return };
        let done = in_turns.turns.clone().unwrap();
        assert!(alone.turns.is_none() && done.counts.len() == 7, "{name}: {done:?}");
        assert_eq!((done.counts[0].operations, done.counts[0].bytes), (0, 0), "{name}: the first is of the warm-up");
        let window_s = (in_turns.window_ns.1 - in_turns.window_ns.0) as f64 / 1e9;
        assert!(in_turns.measured_s() < 0.8 * window_s, "{name}: others have as many turns");
        // Others may use the host while one of the two is driven, for less than a second: it is looked at again then.
        let ratio =
            |[alone, in_turns]: &[Driven; 2]| in_turns.measurement.metrics[metric] / alone.measurement.metrics[metric];
        let mut seen = vec![ratio(&[alone, in_turns.clone()])];
        while seen.len() < 5 && !(0.2..5.0).contains(&seen[seen.len() - 1]) {
            seen.push(ratio(&both(name, &parameters).unwrap().0));
        }
        assert!((0.2..5.0).contains(&seen[seen.len() - 1]), "{name}: {seen:?}");
        // Of computing, what came before the first whole chunk of a turn is work as well, at the rate of the turn. On a busy host a chunk
        // outlasts the turn that it began in, and may be of any length.
        if name == "cpu" && done.overran > 0 {
            continue;
        }
        let work: u64 = done.counts.iter().map(|count| count.operations + count.bytes).sum();
        let before = done.counts.iter().filter(|count| name == "cpu" && count.measured_ns > 0);
        let before: f64 = before.map(|count| count.operations as f64 * part_ns as f64 / count.measured_ns as f64).sum();
        let possible = work as f64..=work as f64 + before;
        assert!(possible.contains(&in_turns.work), "{name}: {work} to {before} more, {in_turns:?}");
    }
}
