//! What is seen in the figures of several instances, in sentences.

use tare_model::findings::{ArmConsolidation, InstancePoint, InstanceSeries, LoadPoint};
use tare_model::metric::Unit;

use super::figures::{SATURATED, distinct, same};
use super::{Group, change, load};
use crate::format;
use crate::plot::arms::ArmLook;

/// Most loads that are all listed.
const SENTENCES: usize = 5;

/// `a, b and c`.
fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The point of the most instances that has a change, and the fewest instances of its series.
fn most(series: &InstanceSeries) -> Option<(&InstancePoint, u32)> {
    let fewest = series.points.iter().map(|point| point.instances).min()?;
    let known = series.points.iter().filter(|point| point.per_instance.is_some());
    Some((known.max_by_key(|point| point.instances)?, fewest))
}

impl<'a> Group<'a> {
    /// What was found, for the top of the report.
    pub(super) fn headlines(&self) -> Vec<String> {
        if !self.is_sure() {
            let none = "There are too few blocks for an interval: the cost of an instance is shown below, but is not \
                        conclusive.";
            return std::iter::once(none.to_owned()).chain(self.seen_unlike()).collect();
        }
        let lost = self.fixed(|arm| &arm.lost).into_iter().filter_map(|share| self.lost_at(share));
        // Where the CPUs are taken there is none to be gained, and what an instance costs is not seen.
        let loads = self.gained_loads();
        let free = loads.iter().rev().find(|clients| !self.taken_at(**clients)).or(loads.last());
        let gained = free.and_then(|clients| self.gained_at(*clients));
        lost.chain(gained).chain(self.seen_unlike()).collect()
    }

    /// Whether some cost has an interval.
    fn is_sure(&self) -> bool {
        let series = self.shown().flat_map(|(arm, _)| arm.lost.iter().chain(&arm.gained));
        let costs: Vec<_> =
            series.flat_map(|own| &own.points).filter_map(|point| point.per_instance.as_ref()).collect();
        costs.is_empty() || costs.iter().any(|cost| cost.low.is_some())
    }

    pub(super) fn seen_lost(&self) -> Vec<String> {
        self.fixed(|arm| &arm.lost).into_iter().filter_map(|share| self.lost_at(share)).collect()
    }

    fn lost_at(&self, share: f64) -> Option<String> {
        let of = |arm: &'a ArmConsolidation| arm.lost.iter().find(|series| same(series.fixed, share));
        let cost = self.each(of, "%", "of the throughput")?;
        let head = format!("With the guest\u{2019}s CPUs held {} busy", format::share(share));
        Some(format!("{head}, each further instance cost {cost}."))
    }

    pub(super) fn seen_gained(&self) -> Vec<String> {
        self.gained_loads().into_iter().filter_map(|clients| self.gained_at(clients)).collect()
    }

    /// The loads that sentences are made of: of many, those at which three numbers of instances or more were measured.
    fn gained_loads(&self) -> Vec<f64> {
        let mut loads = self.fixed(|arm| &arm.gained);
        let points = |clients: f64| {
            let own = self.shown().flat_map(|(arm, _)| &arm.gained).filter(|series| same(series.fixed, clients));
            own.map(|series| series.points.len()).max().unwrap_or(0)
        };
        if loads.len() > SENTENCES && loads.iter().any(|clients| points(*clients) > 2) {
            loads.retain(|clients| points(*clients) > 2);
        }
        loads
    }

    /// Whether the guest's CPUs were taken at a load on some arm.
    fn taken_at(&self, clients: f64) -> bool {
        let own = self.shown().flat_map(|(arm, _)| &arm.gained).filter(|series| same(series.fixed, clients));
        own.flat_map(|series| &series.points).any(|point| point.value.value >= SATURATED)
    }

    fn gained_at(&self, clients: f64) -> Option<String> {
        let of = |arm: &'a ArmConsolidation| arm.gained.iter().find(|series| same(series.fixed, clients));
        let cost = self.each(of, "points", "of the guest\u{2019}s CPU")?;
        let taken = if self.taken_at(clients) {
            format!(" There at least {} of the CPUs were busy, so less CPU was left to use.", format::share(SATURATED))
        } else {
            String::new()
        };
        Some(format!("At {} clients in all, each further instance cost {cost}.{taken}", load(clients)))
    }

    /// The change of the most instances on each arm: `2.1 % [1.8, 2.4] of it on native, 2.6 % [2.2, 3.0] on container (8 instances
    /// against 1)`.
    fn each(
        &self,
        of: impl Fn(&'a ArmConsolidation) -> Option<&'a InstanceSeries>,
        unit: &str,
        it: &str,
    ) -> Option<String> {
        let row = |(arm, look): (&'a ArmConsolidation, ArmLook)| {
            let (point, fewest) = most(of(arm)?)?;
            let change = change(point.per_instance.as_ref()?, unit);
            Some((look.label, change, format!("({} instances against {fewest})", point.instances)))
        };
        let all: Vec<(String, String, String)> = self.shown().filter_map(row).collect();
        let (_, _, first) = all.first()?;
        // Said once where it is the same on every arm.
        let same = all.iter().all(|(.., numbers)| numbers == first);
        let each = all.iter().enumerate().map(|(n, (label, change, numbers))| {
            let it = if n == 0 { format!(" {it}") } else { String::new() };
            let numbers = if same { String::new() } else { format!(" {numbers}") };
            format!("{change}{it} on {label}{numbers}")
        });
        let each: Vec<String> = each.collect();
        let numbers = if same { format!(" {first}") } else { String::new() };
        Some(format!("{}{numbers}", each.join(", ")))
    }

    /// The fewest and the most clients an instance, at the largest load that both have; and where an arm was saturated.
    pub(super) fn seen_by_load(&self) -> Vec<String> {
        let each = self.clients_each();
        let mut out = Vec::new();
        for (arm, look) in self.shown() {
            let mut all = each.iter().filter_map(|each| Self::series(arm, *each));
            let (Some(few), Some(many)) = (all.clone().next(), all.next_back()) else { continue };
            let with = |points: &[LoadPoint], clients: f64| -> Option<LoadPoint> {
                points.iter().find(|own| same(own.clients, clients) && own.response.is_some()).cloned()
            };
            let loads = distinct(few.points.iter().map(|own| own.clients)).into_iter().rev();
            let both = loads
                .filter(|_| !same(few.clients_per_instance, many.clients_per_instance))
                .find_map(|clients| Some((with(&few.points, clients)?, with(&many.points, clients)?)));
            if let Some((fine, coarse)) = both {
                let describe = |own: &LoadPoint, each: f64| {
                    let time = own.response.as_ref().map(|time| format::estimate(time, &Unit::Seconds));
                    format!("{} instances of {} answer in {}", own.instances, load(each), time.unwrap_or_default())
                };
                out.push(format!(
                    "{}: at {} clients, {}, {}.",
                    look.label,
                    load(fine.clients),
                    describe(&fine, few.clients_per_instance),
                    describe(&coarse, many.clients_per_instance).replacen(" answer", "", 1)
                ));
            }
            out.extend(missed(arm).map(|missed| format!("{}: an objective was missed at {missed}.", look.label)));
        }
        out
    }

    /// All arms at the largest load of a series that they all have.
    pub(super) fn seen_side_by_side(&self, each: f64) -> Vec<String> {
        let series: Vec<_> = self.shown().filter_map(|(arm, look)| Some((Self::series(arm, each)?, look))).collect();
        let Some((first, _)) = series.first() else { return Vec::new() };
        let has = |points: &[LoadPoint], clients: f64| points.iter().find(|own| same(own.clients, clients)).cloned();
        let loads = distinct(first.points.iter().map(|own| own.clients));
        let shared = |clients: &f64| series.iter().all(|(own, _)| has(&own.points, *clients).is_some());
        let Some(clients) = loads.into_iter().rev().find(shared) else { return Vec::new() };
        let rows = series.iter().filter_map(|(own, look)| {
            let own = has(&own.points, clients)?;
            let time = own.response.as_ref().map(|time| format::estimate(time, &Unit::Seconds));
            let cpu = own.cpu.as_ref().map(|cpu| format!("{} of the CPUs", format::estimate(cpu, &Unit::Share)));
            let figures: Vec<String> = time.into_iter().chain(cpu).collect();
            (!figures.is_empty()).then(|| format!("{} {}", look.label, figures.join(" and ")))
        });
        let rows: Vec<String> = rows.collect();
        vec![format!("At {} clients: {}.", load(clients), rows.join("; "))]
    }

    /// The group in lines, for a terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut out = self.seen_by_load();
        out.extend(self.seen_lost());
        out.extend(self.seen_gained());
        out.extend(self.common().map(|each| self.seen_side_by_side(each)).unwrap_or_default());
        out.extend(self.seen_alike());
        out
    }
}

/// Where an objective was missed on an arm: `1,000 clients in 10 instances and 900 in 9`.
fn missed(arm: &ArmConsolidation) -> Option<String> {
    let points = arm.by_load.iter().flat_map(|series| &series.points);
    let missed = points.filter(|own| own.met.is_some_and(|met| met < 1.0));
    let each = |own: &LoadPoint| {
        format!(
            "{} clients in {}",
            load(own.clients),
            format::plural(u64::from(own.instances), "instance", "instances")
        )
    };
    let all: Vec<String> = missed.map(each).collect();
    (!all.is_empty()).then(|| listed(&all))
}
