//! tare's own rule: fast after guests have come and while memory is short, within a small budget otherwise, and at rest once nothing
//! more is gained.
//!
//! The speed is set by the CPU that the scanner takes, which is what it costs, and not by pages: pages at a time follow from what a
//! page was seen to cost. In haste that is most of a CPU: the same pages cost the same CPU at any speed, so going slower saves
//! nothing and only comes later. What saves CPU is to stop: after two whole passes that saved less than a hundredth, or that cost more
//! bookkeeping than they won, the scanner rests. At rest it goes over memory at a five-hundredth of a CPU, so that what
//! changes in place is found in the end; new guests, and memory that is newly taken, wake it at once.
//!
//! What is new is scanned in haste before memory is short, so that the next guest need not wait, and that the scanner rests while the
//! guests work. Memory that grows without a promise, and whose like has not paid, is left to the small budget: it could grow all
//! the time.

use std::time::Duration;

use super::{Rule, Seen, Set};
use crate::settle::{Settled, is_new, touched};

const EVERY: Duration = Duration::from_secs(1);
/// CPU share while memory is not short, and nothing is new.
const BUDGET: f64 = 0.1;
/// CPU share at rest.
const REST: f64 = 0.002;
/// Largest share that is aimed at: beyond it the pause would have to be shorter than the kernel's clock.
const MOST_SHARE: f64 = 0.95;
/// Pauses, milliseconds. Few large batches cost less than many small ones, which find the caches cold each time.
const SLEEP_MS: u32 = 20;
const REST_SLEEP_MS: u32 = 200;
/// Pages at a time: bounds against a wrong measurement.
const FEWEST: f64 = 64.0;
const MOST: f64 = 100_000.0;
/// CPU that a page costs, seconds, until it was measured.
const PAGE_CPU_S: f64 = 1.2e-6;
/// Fewer pages than this between two decisions tell nothing about their cost.
const TELLING_PAGES: u64 = 1000;
/// Changes of pages by less than this share are not made.
const DEADBAND: f64 = 0.1;
/// Whole passes after waking before it can rest.
const PASSES: u64 = 2;
/// A pass that saves fewer bytes than this for a second of CPU does not pay.
const PAYS_BYTES_PER_S: f64 = 8.0 * 1048576.0;
/// Less CPU than this since it woke tells nothing about its worth, seconds.
const TELLING_CPU_S: f64 = 1.0;
/// At rest: what is found by chance, and what was written to again, before it is worth waking for.
const FOUND: (f64, u64) = (0.01, 4 << 20);
const LOST: (f64, u64) = (0.02, 16 << 20);
/// Seconds until it may wake again for lost pages, after a waking that saved nothing: doubled each time.
const QUIET_S: (f64, f64) = (30.0, 600.0);

/// tare's own rule.
#[derive(Debug, Clone)]
pub struct Tare {
    free_goal: f64,
    max_cpu: f64,
    page: u64,
    settled: Settled,
    page_cpu_s: f64,
    trim: f64,
    before: Option<Seen>,
    set: Option<(Pace, u32)>,
    awake: Awake,
    fresh: Fresh,
    /// Whether what was saved since the last waking was worth its CPU; true until that was seen.
    worth: bool,
    rest: Option<Rest>,
    quiet_s: f64,
    quiet_until_s: f64,
}

/// How fast it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Haste,
    Steady,
    Rest,
}

/// What there was when it woke, and at the end of the last pass.
#[derive(Debug, Clone, Copy, Default)]
struct Awake {
    full_scans: u64,
    saved_bytes: u64,
    cpu_s: f64,
    /// Least that was saved since, bytes: the kernel may still count what processes had that are gone.
    least_bytes: u64,
    for_lost: bool,
    pass: Pass,
}

/// What guests had when something new was last seen in them, and whether that is still to be gone over in haste.
#[derive(Debug, Clone, Copy, Default)]
struct Fresh {
    touched_bytes: u64,
    promised_bytes: u64,
    is_due: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    full_scans: u64,
    saved_bytes: u64,
    cpu_s: f64,
}

/// What there was when it went to rest.
#[derive(Debug, Clone, Copy)]
struct Rest {
    saved_bytes: u64,
    touched_bytes: u64,
    promised_bytes: u64,
}

impl Tare {
    /// `free_goal` and `max_cpu` are shares (0 to 1); `page`: bytes of a page.
    pub fn new(free_goal: f64, max_cpu: f64, page: u64) -> Self {
        Self {
            free_goal,
            max_cpu,
            page,
            settled: Settled::new(page),
            page_cpu_s: PAGE_CPU_S,
            trim: 1.0,
            before: None,
            set: None,
            awake: Awake::default(),
            fresh: Fresh::default(),
            worth: true,
            rest: None,
            quiet_s: QUIET_S.0,
            quiet_until_s: 0.0,
        }
    }

    /// Memory is below the goal, or the next guest waits for it.
    fn is_short(&self, seen: &Seen) -> bool {
        let goal = seen.memory.total_bytes as f64 * self.free_goal;
        (seen.memory.available_bytes as f64) < goal || seen.guests.waiting_bytes > 0
    }

    fn saved(&self, seen: &Seen) -> u64 {
        seen.counters.saved(self.page).0
    }

    /// The CPU share that a pace aims at.
    fn share(&self, pace: Pace) -> f64 {
        let wanted = match pace {
            Pace::Haste => MOST_SHARE,
            Pace::Steady => BUDGET,
            Pace::Rest => REST,
        };
        wanted.min(self.max_cpu)
    }

    fn wake(&mut self, seen: &Seen, for_lost: bool) {
        let saved_bytes = self.saved(seen);
        let (full_scans, cpu_s) = (seen.counters.full_scans, seen.counters.scanner_cpu_s);
        let pass = Pass { full_scans, saved_bytes, cpu_s };
        self.awake = Awake { full_scans, saved_bytes, cpu_s, least_bytes: saved_bytes, for_lost, pass };
        self.rest = None;
        self.settled.restart();
        self.settled.see(&seen.counters, &seen.guests);
    }

    /// Notes whether guests were promised or have taken more, and whether going over what they have has paid.
    fn look_for_news(&mut self, seen: &Seen) {
        let saved_bytes = self.saved(seen);
        let (counters, awake) = (&seen.counters, &mut self.awake);
        awake.least_bytes = awake.least_bytes.min(saved_bytes);
        let cpu_s = counters.scanner_cpu_s - awake.cpu_s;
        // By then it has gone over everything twice, and what is equal was found.
        if self.rest.is_none() && counters.full_scans > awake.full_scans + PASSES && cpu_s >= TELLING_CPU_S {
            let gained = (saved_bytes - awake.least_bytes) as f64;
            self.worth = gained >= PAYS_BYTES_PER_S * cpu_s;
            self.fresh.is_due &= self.worth;
        }
        let now = touched(counters, &seen.guests, self.page);
        let promised_bytes = seen.guests.promised_bytes;
        let has_come = promised_bytes > self.fresh.promised_bytes;
        let has_grown = is_new(self.fresh.touched_bytes, now);
        // Less than there was, such as after a guest has gone: growth counts from there.
        let touched_bytes = if has_come || has_grown { now } else { self.fresh.touched_bytes.min(now) };
        // A guest that has come takes its memory little by little, and that has nothing to do with what others were worth.
        let is_due = self.fresh.is_due || has_come || (has_grown && (self.worth || now <= promised_bytes));
        self.fresh = Fresh { touched_bytes, promised_bytes, is_due };
        if has_come && self.rest.is_none() {
            // What the others were worth does not count.
            self.wake(seen, false);
        }
    }

    /// Wakes if there is something new.
    fn look_up(&mut self, seen: &Seen) {
        let Some(rest) = &mut self.rest else { return };
        let saved_bytes = seen.counters.saved(self.page).0;
        let now = touched(&seen.counters, &seen.guests, self.page);
        let of = |(share, least): (f64, u64)| least.max((rest.saved_bytes as f64 * share) as u64);
        let is_new = seen.guests.promised_bytes > rest.promised_bytes || is_new(rest.touched_bytes, now);
        let found = saved_bytes >= rest.saved_bytes + of(FOUND);
        let lost = saved_bytes + of(LOST) <= rest.saved_bytes && seen.at_s >= self.quiet_until_s;
        rest.touched_bytes = rest.touched_bytes.min(now);
        rest.promised_bytes = rest.promised_bytes.min(seen.guests.promised_bytes);
        if is_new || found || lost {
            self.wake(seen, lost && !is_new && !found);
        }
    }

    /// Goes to rest if nothing more is gained.
    fn look_down(&mut self, seen: &Seen) {
        let settled = self.settled.see(&seen.counters, &seen.guests);
        let passes = seen.counters.full_scans.saturating_sub(self.awake.full_scans);
        let pays = self.pays(seen);
        // The first pass only takes the pages' sums, and had begun before: what it costs tells nothing.
        let in_vain = passes > PASSES && (!pays || seen.counters.profit_bytes <= 0);
        if !settled && !in_vain {
            return;
        }
        let saved_bytes = self.saved(seen);
        if self.awake.for_lost && saved_bytes < self.awake.saved_bytes + self.awake.saved_bytes / 100 {
            self.quiet_s = (self.quiet_s * 2.0).min(QUIET_S.1);
        } else {
            self.quiet_s = QUIET_S.0;
        }
        self.quiet_until_s = seen.at_s + self.quiet_s;
        let touched_bytes = touched(&seen.counters, &seen.guests, self.page);
        self.fresh.is_due = false;
        self.rest = Some(Rest { saved_bytes, touched_bytes, promised_bytes: seen.guests.promised_bytes });
    }

    /// Whether the last whole pass saved enough for its CPU; true until one has ended.
    fn pays(&mut self, seen: &Seen) -> bool {
        let pass = &mut self.awake.pass;
        if seen.counters.full_scans == pass.full_scans {
            return true;
        }
        let saved_bytes = seen.counters.saved(self.page).0;
        let gained = saved_bytes.saturating_sub(pass.saved_bytes) as f64;
        let cpu_s = seen.counters.scanner_cpu_s - pass.cpu_s;
        *pass = Pass { full_scans: seen.counters.full_scans, saved_bytes, cpu_s: seen.counters.scanner_cpu_s };
        gained >= PAYS_BYTES_PER_S * cpu_s
    }

    /// Learns what a page costs, and by how much the share was missed since the last decision.
    fn measure(&mut self, seen: &Seen) {
        let Some((before, (pace, _))) = self.before.zip(self.set) else { return };
        let cpu_s = seen.counters.scanner_cpu_s - before.counters.scanner_cpu_s;
        let pages = seen.counters.pages_scanned.saturating_sub(before.counters.pages_scanned);
        let took_s = seen.at_s - before.at_s;
        if pages < TELLING_PAGES || cpu_s <= 0.0 || took_s <= 0.0 {
            return;
        }
        self.page_cpu_s = f64::midpoint(self.page_cpu_s, cpu_s / pages as f64);
        // The pause is longer than asked, by the kernel's clock and by who else wants the CPU. At most threefold, for on a host
        // that is busy the scanner waits for its turn, and larger batches would not bring it.
        let share = (cpu_s / took_s).min(MOST_SHARE);
        let wanted = self.share(pace);
        let missed = (wanted / (1.0 - wanted)) / (share / (1.0 - share));
        self.trim = (self.trim * missed.clamp(0.5, 2.0).sqrt()).clamp(0.3, 3.0);
    }

    /// Pages at a time that take the wanted share of a CPU with such a pause.
    fn pages(&self, pace: Pace, sleep_ms: u32) -> u32 {
        let share = self.share(pace);
        let batch_s = share / (1.0 - share) * f64::from(sleep_ms) / 1e3;
        let pages = (batch_s / self.page_cpu_s * self.trim).clamp(FEWEST, MOST) as u32;
        match self.set {
            Some((was, set)) if was == pace && (f64::from(pages) / f64::from(set) - 1.0).abs() < DEADBAND => set,
            _ => pages,
        }
    }
}

impl Rule for Tare {
    fn every(&self) -> Duration {
        EVERY
    }

    fn begin(&mut self, seen: &Seen) -> Set {
        self.wake(seen, false);
        // Whatever is there already is new to it.
        self.fresh.is_due = true;
        self.decide(seen)
    }

    fn decide(&mut self, seen: &Seen) -> Set {
        self.measure(seen);
        self.look_for_news(seen);
        self.look_up(seen);
        if self.rest.is_none() {
            self.look_down(seen);
        }
        let pace = match self.rest {
            Some(_) => Pace::Rest,
            None if self.is_short(seen) || self.fresh.is_due => Pace::Haste,
            None => Pace::Steady,
        };
        let sleep_ms = if pace == Pace::Rest { REST_SLEEP_MS } else { SLEEP_MS };
        let pages = self.pages(pace, sleep_ms);
        self.set = Some((pace, pages));
        self.before = Some(*seen);
        Set::Scan { pages, sleep_ms }
    }

    fn is_at_rest(&self) -> bool {
        self.rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulator::{Kind, PAGE, PAGE_CPU_S, Simulator};
    use super::*;

    const SHORT: u64 = 2 << 30;
    const ENOUGH: u64 = 20 << 30;

    fn host(available_bytes: u64) -> Simulator {
        Simulator::new(Tare::new(0.2, 0.7, PAGE), available_bytes)
    }

    fn saved(host: &Simulator) -> u64 {
        host.seen().counters.saved(PAGE).0
    }

    #[test]
    fn short_of_memory_it_takes_the_cpu_that_it_may_and_not_more() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Same, 6000), (Kind::Zero, 6000)]);
        // A page costs more than it first takes it to, and pauses are longer than asked: it finds out.
        host.cpu_of(5);
        let share = host.cpu_of(5) / 5.0;
        assert!((0.6..=0.75).contains(&share), "{share}");
    }

    #[test]
    fn guests_that_come_are_merged_before_memory_is_short() {
        let mut host = host(ENOUGH);
        for guests in 1..=8 {
            host.add(&[(Kind::Zero, 2000), (Kind::Distinct, 400)]);
            let took = host.until_rest(60).unwrap();
            assert_eq!(saved(&host), (guests * 2000) << 20, "after {took} s");
            // Two to find what is equal and two that bring nothing, each after one that had begun before, at the share that it may take.
            let passes_s = 6.0 * (guests * 2400 * 256) as f64 * PAGE_CPU_S / 0.6;
            assert!(f64::from(took) < passes_s + 5.0, "{guests} guests: {took} s, not {passes_s}");
        }
        let rest = host.cpu_of(100);
        assert!(rest < 100.0 * 0.004, "{rest} s of CPU in 100 s");
    }

    #[test]
    fn a_guest_that_takes_its_memory_little_by_little_is_merged_in_haste_all_the_same() {
        let mut host = host(ENOUGH);
        host.add(&[(Kind::Distinct, 2400)]);
        host.until_rest(60).unwrap();
        // It has come, and for some time has taken nothing.
        host.guests.promised_bytes += 3000 << 20;
        let promised = host.guests.promised_bytes;
        host.until_rest(60).unwrap();
        for _ in 0..10 {
            host.add(&[(Kind::Zero, 240)]);
            host.guests.promised_bytes = promised;
            host.second();
        }
        let took = host.until_rest(60).unwrap();
        assert!(saved(&host) == 2400 << 20 && took < 30, "{} MiB after {took} s", saved(&host) >> 20);
    }

    #[test]
    fn with_memory_enough_growth_that_does_not_pay_stays_within_its_budget() {
        let mut host = host(ENOUGH);
        let grow = |host: &mut Simulator, mib| {
            let promised = host.guests.promised_bytes;
            host.add(&[(Kind::Distinct, mib)]);
            host.guests.promised_bytes = promised;
        };
        grow(&mut host, 6000);
        host.until_rest(60).unwrap();
        grow(&mut host, 1000);
        host.cpu_of(5);
        let share = host.cpu_of(10) / 10.0;
        assert!((0.05..=0.12).contains(&share), "{share}");
        // A guest that waits is haste, however much is available.
        host.guests.waiting_bytes = 1;
        host.cpu_of(3);
        let share = host.cpu_of(3) / 3.0;
        assert!((0.6..=0.75).contains(&share), "{share}");
        // So is one that comes, whatever the others were worth.
        host.guests.waiting_bytes = 0;
        host.until_rest(300).unwrap();
        host.add(&[(Kind::Same, 6000)]);
        host.cpu_of(3);
        let share = host.cpu_of(3) / 3.0;
        assert!((0.6..=0.75).contains(&share), "{share}");
    }

    #[test]
    fn distinct_data_makes_it_rest_and_costs_next_to_nothing_then() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Distinct, 3000)]);
        host.until_rest(60).unwrap();
        let pass_s = 3000.0 * 256.0 * PAGE_CPU_S;
        let cpu_s = host.seen().counters.scanner_cpu_s;
        assert!(cpu_s < 4.5 * pass_s, "{cpu_s} s of CPU for passes of {pass_s} s each");
        let rest = host.cpu_of(300);
        assert!(rest < 300.0 * 0.004, "{rest} s of CPU in 300 s");
        assert!(host.is_at_rest());
    }

    #[test]
    fn what_changes_all_the_time_makes_it_rest_as_well() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Volatile, 2000), (Kind::Same, 4)]);
        assert!(host.until_rest(60).is_some(), "4 MiB won do not pay for their bookkeeping");
    }

    #[test]
    fn it_rests_only_when_all_is_saved_and_a_new_guest_wakes_it() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Same, 500), (Kind::Zero, 1000), (Kind::Distinct, 500)]);
        host.until_rest(60).unwrap();
        assert_eq!(saved(&host), 1500 << 20);
        host.cpu_of(20);
        assert!(host.is_at_rest());
        host.add(&[(Kind::Same, 300)]);
        host.second();
        assert!(!host.is_at_rest());
        host.until_rest(60).unwrap();
        assert_eq!(saved(&host), 1800 << 20);
    }

    #[test]
    fn memory_that_guests_take_without_a_promise_wakes_it() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Same, 1000), (Kind::Zero, 500)]);
        host.until_rest(60).unwrap();
        let promised = host.guests.promised_bytes;
        host.add(&[(Kind::Same, 30)]);
        host.guests.promised_bytes = promised;
        host.cpu_of(3);
        assert!(host.is_at_rest(), "less than a rule goes by");
        host.add(&[(Kind::Same, 40)]);
        host.guests.promised_bytes = promised;
        host.second();
        assert!(!host.is_at_rest(), "both together are more");
    }

    #[test]
    fn what_is_written_to_again_wakes_it_less_and_less_often_if_nothing_comes_of_it() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Same, 2000), (Kind::Distinct, 100)]);
        host.until_rest(60).unwrap();
        let mut woken = Vec::new();
        let mut rested = true;
        for second in 0..600 {
            if second % 10 == 0 {
                host.change(Kind::Same, Kind::Volatile, 20);
            }
            host.second();
            if rested && !host.is_at_rest() {
                woken.push(host.at_s);
            }
            rested = host.is_at_rest();
        }
        let gaps: Vec<f64> = woken.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((2..=6).contains(&woken.len()), "{woken:?}");
        assert!(gaps.windows(2).all(|pair| pair[1] > pair[0]), "{gaps:?}");
    }

    #[test]
    fn at_rest_it_still_finds_what_has_become_alike() {
        let mut host = host(SHORT);
        host.add(&[(Kind::Distinct, 1000), (Kind::Same, 200)]);
        host.until_rest(60).unwrap();
        host.change(Kind::Distinct, Kind::Same, 800);
        let woke = (0..900).any(|_| {
            host.second();
            !host.is_at_rest()
        });
        assert!(woke, "{} saved after {} s", saved(&host), host.at_s);
        host.until_rest(60).unwrap();
        assert_eq!(saved(&host), 1000 << 20);
    }
}
