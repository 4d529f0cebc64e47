//! From fitted models to what to build.

use tare_model::findings::{Estimate, SizeAdvice, SizeQuestion};
use tare_model::guest::GuestSize;
use tare_model::metric::{MetricSpec, Unit};

use super::fitted::{Fitted, number};
use super::points::Observed;
use crate::estimate::ALPHA;
use crate::words;

/// What an instance costs by the published rule, beside the CPU of its load: a share of the guest's CPUs.
const PUBLISHED_INSTANCE: f64 = 0.04;
/// The shares up to which the published rule fills a guest.
const PUBLISHED_SHARES: (f64, f64) = (0.70, 0.80);
/// Relative error of points that were left out from which a reader is warned.
const FAR_OFF: f64 = 0.15;

/// What advice is made from.
pub(super) struct Adviser<'a> {
    pub(super) fitted: &'a Fitted,
    pub(super) points: &'a [&'a Observed],
    pub(super) guest: GuestSize,
    /// The metric that is bounded, and its bound.
    pub(super) objective: Option<(&'a MetricSpec, f64)>,
    pub(super) question: SizeQuestion,
    pub(super) unit: &'static str,
}

impl Adviser<'_> {
    /// The advice: as many instances as hold with the headroom used up, or, with one number of instances measured, as much load.
    pub(super) fn advise(mut self) -> SizeAdvice {
        let (fewest, most) = self.fitted.range.instances;
        let (instances, load, bound_by) = match self.question.load_per_instance {
            None if fewest == most => self.by_load(most),
            given => {
                let each = given.unwrap_or_else(|| self.usual_load());
                self.question.load_per_instance = Some(each);
                self.by_instances(each)
            }
        };
        self.question.qos = self.objective.map(|(spec, bound)| (spec.id.clone(), bound));
        let nothing =
            Estimate { value: 0.0, low: None, high: None, level: 1.0 - ALPHA, n: 0, method: "no load".to_owned() };
        let (cpu, _) = if load > 0.0 { self.fitted.predict(instances, load) } else { (nothing, None) };
        let response = (load > 0.0).then(|| self.fitted.predict(instances, self.stressed(load)).1).flatten();
        let each = load / f64::from(instances.max(1));
        let each = self.question.load_per_instance.unwrap_or(each);
        SizeAdvice {
            instances,
            load,
            memory_bytes: self.memory(instances).filter(|_| instances > 0),
            guests: self.question.total_load.filter(|_| load > 0.0).map(|total| (total / load).ceil() as u32),
            published: self.published(each),
            notes: self.notes(instances, load, each, response.as_ref()),
            bound_by,
            cpu,
            response,
            question: self.question,
        }
    }

    /// Load of an instance in the case with the most instances; of several, the largest.
    fn usual_load(&self) -> f64 {
        let most = self.fitted.range.instances.1;
        let own = self.points.iter().filter(|point| point.fits() && point.instances == most);
        own.map(|point| point.mean().load / f64::from(most)).fold(0.0, f64::max)
    }

    fn stressed(&self, load: f64) -> f64 {
        load * (1.0 + self.question.headroom)
    }

    /// The most instances of so much load each.
    fn by_instances(&self, each: f64) -> (u32, f64, String) {
        let (fewest, most) = self.fitted.range.instances;
        let of = |n: u32| each * f64::from(n);
        let best = (fewest..=most).rev().find(|&n| self.obstacle(n, of(n)).is_none());
        let next = best.map_or(fewest, |n| n + 1);
        let bound_by = self.obstacle(next, of(next)).unwrap_or_else(|| format!("nothing up to {next} instances"));
        best.map_or((0, 0.0, bound_by.clone()), |n| (n, of(n), bound_by))
    }

    /// The largest load of so many instances. What stands in its way only grows with it.
    fn by_load(&self, instances: u32) -> (u32, f64, String) {
        let (least, largest) = self.fitted.range.load;
        let whole = |load: f64| if self.unit == super::fitted::CLIENTS { (load + 1e-9).floor() } else { load };
        let top = largest / (1.0 + self.question.headroom);
        let holds = |load: f64| self.obstacle(instances, load).is_none();
        let beyond = |load: f64| {
            let more = if self.unit == super::fitted::CLIENTS { load + 1.0 } else { load * 1.001 };
            self.obstacle(instances, more).unwrap_or_else(|| "the objective".to_owned())
        };
        if holds(whole(top)) {
            return (instances, whole(top), beyond(whole(top)));
        }
        if !holds(least) {
            return (0, 0.0, self.obstacle(instances, least).unwrap_or_default());
        }
        let (mut low, mut high) = (least, top);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            *(if holds(middle) { &mut low } else { &mut high }) = middle;
        }
        let load = whole(low).max(least);
        (instances, load, beyond(load))
    }

    /// What stands in the way of so many instances under so much load with the headroom, in words; `None`: nothing. Nothing is said of a
    /// response time at a load that lies beyond what was measured.
    fn obstacle(&self, instances: u32, load: f64) -> Option<String> {
        let used_up = match self.question.headroom {
            headroom if headroom > 0.0 => format!(", {} of headroom used up,", words::percent(headroom)),
            _ => String::new(),
        };
        let outside = |load: f64, when: &str| self.fitted.outside(instances, load, when).map(|outside| outside.0);
        outside(load, "")
            .or_else(|| self.too_large(instances))
            .or_else(|| self.missed(instances, load, ""))
            .or_else(|| outside(self.stressed(load), &used_up))
            .or_else(|| self.missed(instances, self.stressed(load), &used_up))
    }

    fn too_large(&self, instances: u32) -> Option<String> {
        let (need, have) = (self.memory(instances)?, self.guest.memory.0 as f64);
        let size = |bytes: f64| words::value(bytes, &Unit::Bytes);
        let said = || {
            format!("the guest's memory: {} would take {}, and it has {}", several(instances), size(need), size(have))
        };
        (need > have).then(said)
    }

    fn missed(&self, instances: u32, load: f64, when: &str) -> Option<String> {
        let (spec, bound) = self.objective?;
        let time = self.fitted.core.response(f64::from(instances), load)?;
        let said = |value: f64| words::value(value, &spec.unit);
        let would = if time.is_finite() { said(time) } else { "without end".to_owned() };
        let (label, unit, asked, instances) = (&spec.label, self.unit, said(bound), several(instances));
        let load = number(load);
        let sentence = || {
            format!(
                "the objective: with {instances} and {load} {unit}{when} the {label} would be {would}; at most {asked} was asked"
            )
        };
        // What is no number is not within a bound.
        (time.is_nan() || time > bound).then(sentence)
    }

    /// Memory that the guest needs: its own when idle and the largest of each instance, as most of the points took. `None` where either was
    /// not measured.
    fn memory(&self, instances: u32) -> Option<f64> {
        let most = |of: fn(&Observed) -> Option<&Estimate>| {
            self.points.iter().filter_map(|point| of(point)).map(|found| found.value).reduce(f64::max)
        };
        let each = most(|point| point.instance_memory.as_ref())?;
        let idle = most(|point| point.idle_memory.as_ref())?;
        Some(idle + each * f64::from(instances))
    }

    /// Instances at 70 and 80 % CPU where each takes its load's CPU and 4 points.
    fn published(&self, each: f64) -> Option<(u32, u32)> {
        let core = &self.fitted.core;
        let of_one = core.slope * each * core.demand / f64::from(self.guest.cpus.max(1)) + PUBLISHED_INSTANCE;
        let up_to = |share: f64| (share / of_one + 1e-9).floor() as u32;
        (each > 0.0 && of_one.is_finite()).then(|| (up_to(PUBLISHED_SHARES.0), up_to(PUBLISHED_SHARES.1)))
    }

    fn notes(&self, instances: u32, load: f64, each: f64, response: Option<&Estimate>) -> Vec<String> {
        let fitted = self.fitted;
        let mut notes = Vec::new();
        if load <= 0.0 {
            notes.push("No configuration in the measured range fits: measure fewer instances or less load.".to_owned());
        } else if fitted.outside(instances + 1, load, "").is_some()
            && instances == fitted.range.instances.1
            && instances > 1
        {
            notes.push("The advice is at the edge of the measured range: more may be possible.".to_owned());
        }
        if load > 0.0 && self.memory(1).is_none() {
            notes.push(
                "Memory of instances and of the idle guest was not measured, so it is not a bound here.".to_owned(),
            );
        }
        match (response, self.objective) {
            (_, None) => notes.push(
                "No response time with an objective was measured here: only CPU, memory and the measured range bound \
                 the advice."
                    .to_owned(),
            ),
            (None, Some((spec, _))) if fitted.core.response.is_none() => {
                notes.push(format!(
                    "{} is not modelled: only CPU, memory and the measured range bound the advice.",
                    spec.label
                ));
            }
            (Some(time), Some((spec, bound))) if time.high.is_some_and(|high| high > bound) => notes.push(format!(
                "The interval of {} with the headroom used up reaches beyond the objective: {} of {}.",
                spec.label,
                words::value(time.high.unwrap_or_default(), &spec.unit),
                words::value(bound, &spec.unit)
            )),
            _ => {}
        }
        let loads =
            self.points.iter().filter(|point| point.fits()).map(|point| point.mean().load / f64::from(point.instances));
        let (low, high) = loads.fold((f64::INFINITY, 0.0f64), |(low, high), load| (low.min(load), high.max(load)));
        let stressed = self.stressed(each);
        if load > 0.0 && (stressed > high * (1.0 + 1e-9) || each < low * (1.0 - 1e-9)) {
            let unit = self.unit;
            notes.push(format!(
                "No instance was measured at {} {unit}, only at {} to {}; the total load was measured.",
                number(if each < low { each } else { stressed }),
                number(low),
                number(high)
            ));
        }
        if fitted.saturated > 0 {
            notes.push(format!("{} points at which the CPUs were saturated were left out.", fitted.saturated));
        }
        notes
    }
}

fn several(instances: u32) -> String {
    if instances == 1 { "1 instance".to_owned() } else { format!("{instances} instances") }
}

/// What is said of models that err far.
pub(super) fn doubts(model: &tare_model::findings::SizeModel) -> Option<String> {
    let response = model.response.as_ref().filter(|own| own.rmse_left_out > FAR_OFF)?;
    let percent = words::percent(response.rmse_left_out);
    Some(format!(
        "Response times of points that were left out are predicted with an error of {percent}: expect the same error \
         here."
    ))
}
