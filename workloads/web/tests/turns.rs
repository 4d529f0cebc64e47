//! Users of two sites whose drivers take turns: what is sent when, what is counted, and by which clock.

use crate::common::web as sites;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{closed, open, phases, run_in_turns, steady, two_arms};
use sites::*;
use tare_driver::clock::now_ns;
use tare_driver::web::spec::{Body, Embedded, SiteModel, WebDone, WebDrive};
use tare_model::Span;
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::turns::Turns;

const LOGO: (&str, u64) = ("/files/shop/images/home/00.gif", 9_000);
const MS: u64 = 1_000_000;

/// A request that a server has seen: when, on which connection, and whether it was for a page.
type Seen = (u64, usize, bool);

/// What one of the two arms did.
struct Arm {
    result: DriveResult,
    done: WebDone,
    turns: Turns,
    seen: Vec<Seen>,
    /// When its turns began and ended.
    windows: Vec<(u64, u64)>,
}

impl Arm {
    /// Turns that had ended, and the gap after them, when these requests came before the next.
    fn outside(&self) -> usize {
        let gap = self.turns.spec.gap.ns;
        let within = |at: u64| self.windows.iter().any(|&(from, to)| from <= at && at <= to + gap);
        self.seen.iter().filter(|seen| !within(seen.0)).count()
    }

    /// Which turn a moment is in, or after.
    fn turn(&self, at: u64) -> usize {
        self.windows.partition_point(|&(from, _)| from <= at) - 1
    }

    fn pages(&self) -> u64 {
        self.seen.iter().filter(|seen| seen.2).count() as u64
    }

    /// What its turns come to must be what it came to in all, and what the server saw.
    fn adds_up(&self) {
        assert_eq!((self.done.faults.as_slice(), self.result.errors.as_slice()), (&[][..], &[][..]));
        let counts = &self.result.turns.as_ref().unwrap().counts;
        let sum = |of: fn(&tare_model::turns::TurnCount) -> u64| counts.iter().map(of).sum::<u64>();
        assert_eq!(counts.len(), self.turns.places.len());
        assert_eq!(
            (sum(|turn| turn.operations), self.done.types[0].requests),
            (self.result.operations, self.result.operations)
        );
        assert_eq!(sum(|turn| turn.bytes), self.result.bytes_to_guest + self.result.bytes_from_guest);
        assert_eq!(self.result.response.count(), self.result.operations, "none is counted without its time");
        assert_eq!(self.pages(), self.result.answered_total, "each was answered, and counted once");
        // A machine that is busy has a server see a request later than it came: some may be beyond the gap.
        let (outside, all) = (self.outside(), self.seen.len());
        assert!(20 * outside <= all, "{outside} of {all} requests came in the turn of others");
    }

    /// The response times of so many clients who do nothing else must come to the time that was measured.
    fn is_busy(&self, clients: u64) {
        let done = self.result.turns.as_ref().unwrap();
        let times: u64 = done.counts.iter().map(|turn| turn.response_ns).sum();
        let busy = times as f64 / (clients * done.measured_ns) as f64;
        assert!((0.98..1.02).contains(&busy), "times of pages come to {busy} of the time");
    }
}

/// Both arms' users at servers of their own, each of which takes `takes` for an answer.
fn driven(
    of: impl Fn() -> WebDrive,
    takes: Duration,
    load: LoadModel,
    [turn, gap]: [u64; 2],
    phases: Phases,
) -> [Arm; 2] {
    let turns = two_arms(turn, gap, &phases);
    let seen: [Arc<Mutex<Vec<Seen>>>; 2] = Default::default();
    let servers = seen.clone().map(|seen| {
        serve(move |request| {
            let page = request.path.starts_with("/shop/home?");
            seen.lock().unwrap().push((now_ns(), request.connection, page));
            thread::sleep(takes);
            (if page { chunked("", &page_of(request)) } else { sized("200 OK", &file(LOGO.0, LOGO.1)) }, true)
        })
    });
    let arm = |arm: usize| DriveSpec { turns: Some(turns[arm].clone()), ..spec(of(), &[servers[arm]], load, phases) };
    let (start, results) = run_in_turns([arm(0), arm(1)]);
    let [one, other] = results;
    let [first, second] = turns;
    let [here, there] = seen;
    [(one, first, here), (other, second, there)].map(|(result, turns, seen)| {
        let done = result.outcome::<WebDrive>().unwrap();
        let (windows, seen) = (turns.windows(start).collect(), seen.lock().unwrap().clone());
        Arm { result, done, turns, seen, windows }
    })
}

fn page_of(request: &Request) -> Vec<u8> {
    page(request, "Home", 100)
}

/// A page with three files.
fn with_files() -> SiteModel {
    site(home(100), (0..3).map(|_| Embedded { file: fixed(LOGO.0, LOGO.1), unchanged: 0.0 }).collect())
}

/// Users who think for so long between two pages.
fn thinking(clients: u32, ms: u64) -> LoadModel {
    LoadModel::Closed { clients, think_time: Span::from_millis(ms) }
}

#[test]
fn users_who_think_ask_in_their_turns_alone_and_think_by_their_clock() {
    let arms = driven(|| drive(with_files()), Duration::ZERO, thinking(20, 120), [40, 20], phases(120, 0, 800, 40));
    for arm in &arms {
        arm.adds_up();
        // The window has 20 turns, and each user comes once in three of them, and a little more seldom: a page takes its time.
        let each = arm.result.operations as f64 / 20.0;
        assert!((4.0..7.5).contains(&each), "{each} pages of a user who thinks for three turns, of 20");
        let mut last = std::collections::BTreeMap::new();
        for &(at, connection, page) in &arm.seen {
            if let Some(before) = last.insert(connection, at).filter(|_| page) {
                let turns = arm.turn(at) - arm.turn(before);
                assert!(turns >= 2, "a user came back after {turns} turns");
            }
        }
        let done = arm.result.turns.as_ref().unwrap();
        assert_eq!(done.measured_ns, 800 * MS, "time is that of the clock where users think");
        assert!(arm.result.lateness.count() > 0);
    }
}

#[test]
fn a_page_that_a_turn_cuts_in_two_stands_still_and_its_time_is_that_of_its_answers() {
    // Users who do nothing else: so many clients, each busy all of the time that is measured.
    for connections in [1, 2] {
        let of = || WebDrive { connections, ..drive(with_files()) };
        let arms = driven(of, Duration::from_millis(8), closed(3), [50, 30], steady(500));
        for arm in &arms {
            arm.adds_up();
            arm.is_busy(3);
            // A page takes 24 to 32 ms, and would take 110 ms more where it waits for its turn.
            let median = arm.result.response.quantile(0.5).unwrap() / 1e6;
            assert!(median < 100.0, "{median} ms, {connections} connections");
        }
    }
}

#[test]
fn answers_between_turns_are_counted_with_their_time_and_those_in_the_turn_of_others_as_overruns() {
    let of = || drive(site(home(100), Vec::new()));
    for (takes, gap) in [(15, 60), (30, 5)] {
        let arms = driven(of, Duration::from_millis(takes), closed(2), [40, gap], steady(400));
        for arm in &arms {
            arm.adds_up();
            arm.is_busy(2);
            let done = arm.result.turns.as_ref().unwrap();
            assert!(done.measured_ns > 400 * MS, "{done:?}");
            assert!(arm.result.response.quantile(0.0).unwrap() >= (takes * MS) as f64);
            // 30 ms after the start of a turn of 40 ms the second answer is awaited, which comes 20 ms after its end.
            assert!(gap > 30 || done.overran > 5, "{done:?}");
        }
    }
}

#[test]
fn arrivals_come_in_turns_alone_and_none_is_dropped() {
    let mut one = site(Body::File(fixed(LOGO.0, LOGO.1)), Vec::new());
    one.states[0].next = Vec::new();
    let of = || WebDrive { fresh_connections: false, ..drive(one.clone()) };
    // More come than three sessions can serve: those behind wait for one, by the clock of their driver.
    let arms =
        driven(of, Duration::from_millis(10), open(400.0, Arrivals::Uniform, 3), [50, 25], phases(0, 0, 400, 100));
    for arm in &arms {
        assert_eq!((arm.result.response.count(), arm.result.unfinished, arm.done.faults.len()), (160, 0, 0));
        assert_eq!(arm.result.operations, 160);
        let (outside, all) = (arm.outside(), arm.seen.len());
        // What is left when the last turn has ended is sent when all have had theirs.
        let last = arm.windows.last().unwrap().1;
        let after = arm.seen.iter().filter(|seen| seen.0 > last + 25 * MS).count();
        assert!(
            20 * (outside - after) <= all,
            "{outside} of {all} requests came in the turn of others, {after} after all turns"
        );
        assert_eq!(arm.result.turns.as_ref().unwrap().measured_ns, 400 * MS);
        // 300 a second are served, so that the last of 160 waits for some 0.13 s; with the time of others it would be twice that and more.
        let longest = arm.result.response.quantile(1.0).unwrap() / 1e6;
        assert!(longest < 400.0, "{longest} ms");
    }
}

#[test]
fn connections_that_a_server_closes_between_turns_are_no_error() {
    let phases = phases(0, 0, 400, 0);
    let turns = two_arms(40, 20, &phases);
    let server = serve(|request| {
        // It ends each connection, without a word, when it has answered.
        (chunked("", &page_of(request)), false)
    });
    let arm = |arm: usize| DriveSpec {
        turns: Some(turns[arm].clone()),
        ..spec(drive(site(home(100), Vec::new())), &[server], thinking(5, 30), phases)
    };
    let (_, results) = run_in_turns([arm(0), arm(1)]);
    for result in results {
        let done = result.outcome::<WebDrive>().unwrap();
        assert_eq!((done.faults.as_slice(), result.errors.as_slice()), (&[][..], &[][..]));
        assert!(result.operations > 10 && done.connections >= result.operations);
    }
}

#[test]
fn what_is_read_slowly_takes_as_long_as_its_rate_says_by_the_clock_of_its_driver() {
    const BYTES: u64 = 60_000;
    let turns = two_arms(50, 25, &steady(800));
    let server = serve(|request| (sized("200 OK", &file(&request.path, BYTES)), true));
    let arm = |arm: usize| {
        let slow = WebDrive {
            receive_bytes_per_s: Some(500_000),
            ..drive(site(Body::File(fixed("/files/shop/big.bin", BYTES)), Vec::new()))
        };
        DriveSpec { turns: Some(turns[arm].clone()), ..spec(slow, &[server], closed(1), steady(800)) }
    };
    let (_, results) = run_in_turns([arm(0), arm(1)]);
    for result in results {
        assert_eq!((result.outcome::<WebDrive>().unwrap().faults.len(), result.errors.len()), (0, 0));
        let done = result.turns.as_ref().unwrap();
        // Each takes more than two turns: 120 ms, but for its last read.
        let (median, operations) = (result.response.quantile(0.5).unwrap() / 1e6, result.operations);
        assert!((100.0..180.0).contains(&median) && operations > 3, "{median} ms, {operations} files");
        let times: u64 = done.counts.iter().map(|turn| turn.response_ns).sum();
        let busy = times as f64 / done.measured_ns as f64;
        assert!((0.98..1.02).contains(&busy), "times of files come to {busy} of the time: {done:?}");
        assert_eq!(done.overran, 0, "the server was not waited for");
    }
}
