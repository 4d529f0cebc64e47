//! Users of the social application whose drivers take turns.

use crate::common::social as fake;

use std::sync::{Arc, Mutex};

use crate::common::{closed, phases, run_in_turns, two_arms};
use fake::*;
use tare_driver::clock::now_ns;
use tare_driver::social::spec::SocialDrive;
use tare_model::Histogram;
use tare_model::drive::DriveSpec;

#[test]
fn users_go_their_way_in_their_turns_and_what_they_bring_is_there() {
    let phases = phases(100, 0, 1_000, 60);
    let turns = two_arms(60, 25, &phases);
    let apps = [1, 2].map(|_| Arc::new(App::new(1, 25)));
    let seen: [Arc<Mutex<Vec<u64>>>; 2] = Default::default();
    let servers = [0, 1].map(|arm: usize| {
        let seen = Arc::clone(&seen[arm]);
        serve(Arc::clone(&apps[arm]), move |request| {
            if request.path != "/tare/ready" {
                seen.lock().unwrap().push(now_ns());
            }
            None
        })
    });
    let arm = |arm: usize| {
        let drive = SocialDrive { attend: 1.0, ..drive(40) };
        DriveSpec { turns: Some(turns[arm].clone()), ..spec(drive, &[servers[arm]], closed(6), phases) }
    };
    let (start, results) = run_in_turns([arm(0), arm(1)]);
    for arm in 0..2 {
        let result = &results[arm];
        let social = result.outcome::<SocialDrive>().unwrap();
        assert_eq!((social.faults.as_slice(), result.errors.as_slice()), (&[][..], &[][..]));
        let one = &social.instances[0];
        let ended: u64 = one.operations.iter().map(|operation| operation.requests).sum();
        assert_eq!((ended, result.response.count()), (result.operations, result.operations));
        let done = result.turns.as_ref().unwrap();
        assert_eq!(done.counts.iter().map(|turn| turn.operations).sum::<u64>(), ended);
        assert_eq!(done.measured_ns, 1_000_000_000);
        // What was acknowledged is what is there, for nothing was lost.
        let (people, events, _) = apps[arm].added();
        assert_eq!((one.added.people, one.added.events, one.in_doubt), (people, events, Default::default()));
        // Cycles are by the clock that runs in turns: by that of the host they would be over twice as long as drawn.
        let (cycles, drawn, was) = one.cycles;
        assert!(cycles > 60 && (0.999..1.6).contains(&(was / drawn)), "{:?}", one.cycles);
        assert_eq!(social.connections, 6, "one connection a user");
        // A part of an operation does not take longer than the operation, whatever turn it was cut by.
        let sum = |times: &Histogram| times.mean().unwrap_or_default() * times.count() as f64;
        let parts: f64 = result.steps.iter().map(|step| sum(&step.times)).sum();
        assert!(parts <= 1.05 * sum(&result.response), "{parts} ns of {}", sum(&result.response));
        let windows: Vec<_> = turns[arm].windows(start).collect();
        let seen = seen[arm].lock().unwrap();
        let within = |at: u64| windows.iter().any(|&(from, to)| from <= at && at <= to + turns[arm].spec.gap.ns);
        let outside = seen.iter().filter(|&&at| !within(at)).count();
        // A machine that is busy has a server see a request later than it came.
        assert!(20 * outside <= seen.len(), "{outside} of {} requests came in the turn of others", seen.len());
    }
}
