//! The acceptance of the published benchmark, judged for each instance of each trial. Each demand that is missed is reported: beyond
//! chance as a flag, within it as a fact.

use crate::social::spec::{Cycle, InstanceDone, Operation, PageLook};

use super::parameters::Parameters;
use crate::requests::total;

/// How far the share of an operation may be from the long run.
const MIX: f64 = 0.02;
/// How far the mean cycle may be from what was drawn.
const CYCLE: f64 = 0.02;
/// Users over operations a second, at most, with the published cycle of 5 s.
const USERS_OVER_RATE_S: f64 = 5.25;
/// With other cycles: over the mean that was drawn. 5.25 s over 5 s.
const USERS_OVER_CYCLE: f64 = 1.05;
/// Least share of the views of events in which users said that they will attend, over the probability of it where they can.
const ATTENDED: f64 = 0.6;
/// References to pictures on the home page, and how far off their mean may be.
const HOME_REFERENCES: (f64, f64) = (10.0, 0.5);
/// Pictures and bytes of pictures that are loaded for a home page, at least.
const HOME_LOADED: f64 = 3.0;
const HOME_BYTES: f64 = 15_000.0;
/// Pictures that are loaded for an event, at least.
const EVENT_LOADED: f64 = 1.0;
/// Standard deviations that chance is allowed.
const CHANCE: f64 = 3.0;

/// What is missed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Missed {
    /// Beyond what chance does in so few operations.
    pub surely: Vec<String>,
    /// Within it.
    pub maybe: Vec<String>,
}

impl Missed {
    /// Takes down a figure that is `by` beyond its bound, of which chance explains `chance`.
    fn take(&mut self, by: f64, chance: f64, what: impl FnOnce() -> String) {
        if by > chance {
            self.surely.push(what());
        } else if by > 0.0 {
            self.maybe.push(what());
        }
    }
}

/// Standard deviations of a share that was seen in so many operations.
fn of_share(share: f64, count: f64) -> f64 {
    CHANCE * (share * (1.0 - share) / count).sqrt()
}

/// What one instance misses over a window of so many seconds.
pub(super) fn missed(parameters: &Parameters, done: &InstanceDone, window_s: f64) -> Missed {
    let mut missed = Missed::default();
    let all = total(&done.operations);
    if all.requests == 0 {
        missed.surely.push("no operation was completed".to_owned());
        return missed;
    }
    mix(done, all.requests as f64, &mut missed);
    times(done, &mut missed);
    pace(parameters, done, all.requests as f64 / window_s, &mut missed);
    pages(parameters, done, &mut missed);
    missed
}

fn mix(done: &InstanceDone, requests: f64, missed: &mut Missed) {
    for one in &done.operations {
        let Some(target) = one.target else { continue };
        let share = one.requests as f64 / requests;
        missed.take((share - target).abs() - MIX, of_share(target, requests), || {
            format!("{} is {:.1} % of operations, {:.1} % in the long run", one.name, share * 100.0, target * 100.0)
        });
    }
}

/// The 90th percentile is within its limit when at most a tenth of the times is beyond it. That is a share, for which chance can be
/// calculated.
fn times(done: &InstanceDone, missed: &mut Missed) {
    for operation in Operation::ALL {
        let Some(one) = done.operations.iter().find(|one| one.name == operation.name()) else { continue };
        if one.requests == 0 {
            continue;
        }
        let beyond = one.requests.saturating_sub(one.good) as f64 / one.requests as f64;
        missed.take(beyond - 0.1, of_share(0.1, one.requests as f64), || {
            format!(
                "{:.0} % of {} {} took longer than {} s, at most 10 % may",
                beyond * 100.0,
                one.requests,
                operation.name(),
                operation.limit_s()
            )
        });
    }
}

fn pace(parameters: &Parameters, done: &InstanceDone, rate: f64, missed: &mut Missed) {
    let (cycles, drawn_s, were_s) = done.cycles;
    if cycles == 0 || drawn_s <= 0.0 {
        return;
    }
    let ratio = were_s / drawn_s;
    missed.take((ratio - 1.0).abs() - CYCLE, 0.0, || {
        format!("the mean cycle is {:+.1} % off what was drawn, 2 % are allowed", (ratio - 1.0) * 100.0)
    });
    let published = parameters.cycle.cycle() == Cycle::default();
    let most = if published { USERS_OVER_RATE_S } else { USERS_OVER_CYCLE * drawn_s / cycles as f64 };
    let over = f64::from(done.users) / rate;
    // Cycles are drawn from a distribution whose standard deviation is about its mean.
    missed.take(over - most, CHANCE * most / (cycles as f64).sqrt(), || {
        format!("users over operations a second are {over:.2} s, at most {most:.2} s are allowed")
    });
}

fn pages(parameters: &Parameters, done: &InstanceDone, missed: &mut Missed) {
    let views = done.event.pages as f64;
    let least = ATTENDED * parameters.attend;
    if done.event.pages > 0 {
        let share = done.attended as f64 / views;
        missed.take(least - share, of_share(least, views), || {
            format!(
                "{:.1} % of the views of events said `attend`, {:.1} % at least should",
                share * 100.0,
                least * 100.0
            )
        });
    }
    let mean = |count: u64, look: &PageLook| (look.pages > 0).then(|| count as f64 / look.pages as f64);
    // What is loaded depends on what the session has already: on some pages all, on most nothing. Between nothing and all that a page refers to,
    // a mean has at most this variance (Bhatia-Davis).
    let by_chance = |least: f64, look: &PageLook| {
        let all = (look.references as f64 / look.pages as f64).max(least);
        CHANCE * (least * (all - least) / look.pages as f64).sqrt()
    };
    let (home, event) = (&done.home, &done.event);
    if let Some(references) = mean(home.references, home) {
        let off = (references - HOME_REFERENCES.0).abs();
        missed.take(off - HOME_REFERENCES.1, 0.0, || format!("home has {references:.2} pictures, 10 +- 0.5 are asked"));
    }
    if let Some(loaded) = mean(home.loaded, home) {
        missed.take(HOME_LOADED - loaded, by_chance(HOME_LOADED, home), || {
            format!("{loaded:.2} pictures were loaded for a home page, 3 at least should be")
        });
    }
    if let Some(bytes) = mean(home.bytes, home) {
        let chance = by_chance(HOME_LOADED, home) * HOME_BYTES / HOME_LOADED;
        missed.take(HOME_BYTES - bytes, chance, || {
            format!("{bytes:.0} bytes of pictures were loaded for a home page, 15000 at least should be")
        });
    }
    if let Some(loaded) = mean(event.loaded, event) {
        missed.take(EVENT_LOADED - loaded, by_chance(EVENT_LOADED, event), || {
            format!("{loaded:.2} pictures were loaded for an event, 1 at least should be")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::social::spec::stationary;
    use tare_model::trial::RequestType;

    /// An instance of which so many operations were asked, and that missed nothing.
    fn done(operations: f64) -> InstanceDone {
        let one = |(operation, share): (Operation, f64)| {
            let requests = (share * operations).round() as u64;
            RequestType {
                name: operation.name().into(),
                requests,
                good: requests,
                target: Some(share),
                ..RequestType::default()
            }
        };
        InstanceDone {
            users: (operations / 20.0) as u32,
            operations: Operation::ALL.into_iter().zip(stationary()).map(one).collect(),
            cycles: (operations as u64, 5.0 * operations, 5.05 * operations),
            home: PageLook { pages: 300, references: 3000, loaded: 1200, bytes: 6_000_000 },
            event: PageLook { pages: 300, references: 1200, loaded: 600, bytes: 6_000_000 },
            attended: 24,
            could_attend: 240,
            ..InstanceDone::default()
        }
    }

    fn missed_by(change: impl FnOnce(&mut InstanceDone)) -> Missed {
        let mut done = done(10_000.0);
        change(&mut done);
        // 500 users, 10,000 operations in 100 s: one in five seconds.
        missed(&Parameters::default(), &done, 100.0)
    }

    #[test]
    fn nothing_is_reported_when_all_demands_are_met() {
        assert_eq!(missed_by(|_| ()), Missed::default());
    }

    #[test]
    fn each_demand_that_is_missed_is_reported_with_its_figure() {
        type Spoil = fn(&mut InstanceDone);
        let spoils: [(Spoil, &str); 9] = [
            (|d| d.operations[2].requests += 1000, "tag_search is"),
            (|d| d.operations[0].good -= 400, "home took longer than 1 s"),
            (|d| d.cycles.2 = 5.2 * 10_000.0, "mean cycle is +4.0 %"),
            (|d| d.users = 600, "users over operations a second are 6.0"),
            (|d| d.attended = 3, "1.0 % of the views"),
            (|d| d.home.references = 2700, "home has 9.00 pictures"),
            (|d| d.home.loaded = 600, "2.00 pictures were loaded for a home page"),
            (|d| d.home.bytes = 3_000_000, "10000 bytes"),
            (|d| d.event.loaded = 200, "0.67 pictures were loaded for an event"),
        ];
        for (spoil, words) in spoils {
            let missed = missed_by(spoil);
            assert!(missed.surely.iter().any(|sentence| sentence.contains(words)), "{words}: {missed:?}");
        }
        let none = missed(&Parameters::default(), &InstanceDone::default(), 1.0);
        assert_eq!(none.surely, ["no operation was completed"]);
    }

    #[test]
    fn what_chance_does_in_few_operations_is_a_fact_and_no_flag() {
        let mut few = done(100.0);
        // Four more than 33, and of 26 four are late: 15 %.
        few.operations[2].requests += 4;
        few.operations[2].good += 4;
        few.operations[0].good -= 4;
        let missed = missed(&Parameters::default(), &few, 20.0);
        assert_eq!(missed.surely, Vec::<String>::new());
        assert_eq!(missed.maybe.len(), 2, "{missed:?}");
    }

    #[test]
    fn pictures_come_all_at_once_or_not_at_all_and_chance_is_that_of_few_pages() {
        // Of 25 home pages four loaded their ten pictures, and seven or eight should have: 1.5 deviations of a yes or no.
        let few =
            InstanceDone { home: PageLook { pages: 25, references: 250, loaded: 40, bytes: 200_000 }, ..done(100.0) };
        let missed = missed(&Parameters::default(), &few, 20.0);
        assert_eq!(missed.surely, Vec::<String>::new());
        assert_eq!(missed.maybe.len(), 2, "{missed:?}");
    }

    #[test]
    fn users_of_another_pace_are_judged_by_theirs() {
        use crate::social::parameters::CycleTimes;
        let mean = tare_model::Span::from_millis(500);
        let cycle = CycleTimes { mean, most: tare_model::Span::from_millis(2500), ..CycleTimes::default() };
        let hasty = Parameters { cycle, ..Parameters::default() };
        let of = |users| InstanceDone { users, cycles: (10_000, 5_000.0, 5_010.0), ..done(10_000.0) };
        assert!(missed(&hasty, &of(500), 10.0).surely.is_empty());
        assert!(missed(&hasty, &of(600), 10.0).surely[0].contains("at most 0.5"));
    }
}
