//! Sizing: few models, fitted to what was measured, checked on what was held out; and what they say to build.
//!
//! `docs/reference/sizing.md` explains the models to users; why there are these and no others is argued in
//! `docs/adr/0015-sizing.md`.

mod advice;
mod core;
mod fitted;
mod least;
mod others;
mod points;
mod queue;
mod resample;

use serde::{Deserialize, Serialize};
use tare_model::findings::{ArmSizing, Findings, SizeCheck, SizePoint, SizeQuestion, SizingFindings};
use tare_model::guest::GuestSize;
use tare_model::metric::{MetricSpec, common};
use tare_model::study::{Arm, Case};

use crate::grouped::{Figures, groups, is_time};
use advice::Adviser;
use fitted::{ARRIVALS, CLIENTS, Fitted, POINTS_MIN, REMEDY};
use points::Observed;

pub use others::{GuestSizing, LoadSizing};

/// Headroom where none is asked: a quarter.
pub const HEADROOM: f64 = 0.25;
/// Objective on the response time where neither the question nor the study has one, seconds.
const OBJECTIVE_S: f64 = 1.0;

/// What a run says about sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sizing {
    /// What was asked.
    pub question: SizeQuestion,
    /// Models of cases that differ in load and instances, with advice.
    pub models: Vec<SizingFindings>,
    /// Guests for a host, from cases that add guests.
    pub guests: Vec<GuestSizing>,
    /// Load for a guest, from cases that look for its capacity.
    pub loads: Vec<LoadSizing>,
}

impl Sizing {
    /// Whether anything is advised.
    pub fn advises(&self) -> bool {
        let modelled = self.models.iter().flat_map(|group| &group.arms).any(|arm| arm.advice.is_some());
        modelled || !self.guests.is_empty() || !self.loads.is_empty()
    }
}

/// Why a question cannot be put to a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No case has such a metric.
    #[error("no case has a time metric `{asked}`; there are: {there}")]
    UnknownMetric {
        /// As it was asked.
        asked: String,
        /// Ids that there are.
        there: String,
    },
    /// Several have such a name.
    #[error("`{asked}` is part of several metrics; write one of them in full: {which}")]
    Ambiguous {
        /// As it was asked.
        asked: String,
        /// Ids that match.
        which: String,
    },
    /// It is no time.
    #[error("`{id}` is not a lower-is-better time metric; there are: {there}")]
    NoTime {
        /// The metric.
        id: String,
        /// Ids that there are.
        there: String,
    },
    /// The arm is not in the study.
    #[error("there is no arm `{asked}` in this run; there are: {there}")]
    UnknownArm {
        /// As it was asked.
        asked: String,
        /// Ids that there are.
        there: String,
    },
    /// A number of the question is out of its range.
    #[error("{what} must be {must}, not {value}")]
    BadNumber {
        /// What.
        what: &'static str,
        /// What it must be.
        must: &'static str,
        /// As it was asked.
        value: String,
    },
}

/// The metric that is meant: by its id, or by a part of it that only one metric of a time has; of several the primary one.
///
/// # Errors
/// When there is none, several, or it is no time of which less is better.
pub fn qos_metric<'a>(findings: &'a Findings, asked: &str) -> Result<&'a MetricSpec, SizeError> {
    let mut all: Vec<&MetricSpec> = Vec::new();
    for metric in findings.cases.iter().flat_map(|case| &case.metrics) {
        if !all.iter().any(|known| known.id == metric.spec.id) {
            all.push(&metric.spec);
        }
    }
    let times: Vec<&MetricSpec> = all.iter().copied().filter(|spec| is_time(spec)).collect();
    let ids = |specs: &[&MetricSpec]| {
        let ids: Vec<String> = specs.iter().map(|spec| format!("`{}`", spec.id)).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    };
    if let Some(exact) = all.iter().find(|spec| spec.id == asked) {
        let refused = || SizeError::NoTime { id: asked.to_owned(), there: ids(&times) };
        return if is_time(exact) { Ok(exact) } else { Err(refused()) };
    }
    let part: Vec<&MetricSpec> =
        times.iter().copied().filter(|spec| !asked.is_empty() && spec.id.contains(asked)).collect();
    let primary: Vec<&MetricSpec> = part.iter().copied().filter(|spec| spec.primary).collect();
    match (primary.as_slice(), part.as_slice()) {
        ([one], _) | (_, [one]) => Ok(one),
        (_, []) => Err(SizeError::UnknownMetric { asked: asked.to_owned(), there: ids(&times) }),
        _ => Err(SizeError::Ambiguous { asked: asked.to_owned(), which: ids(&part) }),
    }
}

/// What a run says about sizes, for one arm or all.
///
/// # Errors
/// When the question names what the run does not have, or a number that makes no sense.
pub fn size(findings: &Findings, question: &SizeQuestion, arm: Option<&str>) -> Result<Sizing, SizeError> {
    check(question)?;
    let arms = &findings.plan.study.arms;
    if let Some(asked) = arm.filter(|asked| !arms.iter().any(|own| own.id == **asked)) {
        let there = arms.iter().map(|own| format!("`{}`", own.id)).collect::<Vec<_>>().join(", ");
        return Err(SizeError::UnknownArm { asked: asked.to_owned(), there });
    }
    let mut question = question.clone();
    if let Some((metric, _)) = &mut question.qos {
        qos_metric(findings, metric)?.id.clone_into(metric);
    }
    let figures = Figures { plan: &findings.plan, cases: &findings.cases };
    let own = |found: &str| arm.is_none_or(|asked| asked == found);
    let groups = groups(&findings.plan.study.cases);
    let mut models: Vec<SizingFindings> = groups.iter().map(|group| of_group(&figures, group, &question)).collect();
    models.iter_mut().for_each(|group| group.arms.retain(|found| own(&found.arm)));
    models.retain(|group| !group.arms.is_empty());
    let mut guests = others::guests(&figures, &question);
    guests.retain(|found| own(&found.arm));
    let mut loads = others::loads(&figures, &question);
    loads.retain(|found| own(&found.arm));
    // Beside what a run was made for, that cases of other loads tell no models is no answer to anything.
    if !(guests.is_empty() && loads.is_empty()) {
        models.retain(|group| group.arms.iter().any(|arm| arm.model.is_some() || arm.points.len() >= POINTS_MIN));
    }
    Ok(Sizing { question, models, guests, loads })
}

fn check(question: &SizeQuestion) -> Result<(), SizeError> {
    let bad = |what, must, value: f64| Err(SizeError::BadNumber { what, must, value: value.to_string() });
    let positive = |value: Option<f64>| value.filter(|value| !(*value > 0.0 && value.is_finite()));
    if !(question.headroom >= 0.0 && question.headroom.is_finite()) {
        return bad("the headroom", "0 or above, such as 25%", question.headroom);
    }
    if let Some(value) = positive(question.qos.as_ref().map(|(_, bound)| *bound)) {
        return bad("the objective", "above 0", value);
    }
    if let Some(value) = positive(question.load_per_instance) {
        return bad("the load of an instance", "above 0", value);
    }
    positive(question.total_load).map_or(Ok(()), |value| bad("the total load", "above 0", value))
}

/// What findings tell: groups that put several instances into a guest, hold cases out, or have points enough to fit models to.
pub(crate) fn of_run(figures: &Figures<'_>) -> Vec<SizingFindings> {
    if figures.plan.study.published.is_some() {
        return Vec::new();
    }
    let question = SizeQuestion { headroom: HEADROOM, ..SizeQuestion::default() };
    let asked =
        |group: &&Vec<&Case>| group.len() >= POINTS_MIN || group.iter().any(|case| case.instances > 1 || case.held_out);
    let groups = groups(&figures.plan.study.cases);
    let found = groups.iter().filter(asked).map(|group| of_group(figures, group, &question));
    found.filter(|group| !group.arms.is_empty()).collect()
}

/// One group and one question.
fn of_group(figures: &Figures<'_>, group: &[&Case], question: &SizeQuestion) -> SizingFindings {
    let response = response(figures, group, question);
    let unit = if group[0].load.kind().is_closed() { CLIENTS } else { ARRIVALS };
    let one = One { figures, group, question, response, unit };
    SizingFindings {
        workload: group[0].workload.clone(),
        guest: group[0].guest,
        load_unit: unit.to_owned(),
        response: response.cloned(),
        arms: figures.plan.study.arms.iter().filter_map(|arm| one.arm(arm)).collect(),
    }
}

/// The time that is modelled: that which is asked, else the primary metric, else that of an objective, else the first response time.
fn response<'a>(figures: &Figures<'a>, group: &[&Case], question: &SizeQuestion) -> Option<&'a MetricSpec> {
    let specs = figures.specs(group);
    if let Some((asked, _)) = &question.qos {
        return specs.into_iter().find(|spec| spec.id == *asked);
    }
    let times = || specs.iter().copied().filter(|spec| is_time(spec));
    let bounded = |spec: &&MetricSpec| group.iter().flat_map(|case| &case.qos).any(|own| own.metric == spec.id);
    let primary = figures.primary_time(group);
    primary.or_else(|| times().find(bounded)).or_else(|| times().find(|spec| spec.id.contains(common::RESPONSE_TIME)))
}

/// One question about one group.
struct One<'a> {
    figures: &'a Figures<'a>,
    group: &'a [&'a Case],
    question: &'a SizeQuestion,
    response: Option<&'a MetricSpec>,
    unit: &'static str,
}

impl One<'_> {
    /// The guest with the CPUs that it could really use: no more than the host had for guests, which its share is counted by, too.
    fn guest(&self) -> GuestSize {
        let guest = self.group[0].guest;
        let set = u32::try_from(self.figures.plan.cpus.guests.len()).unwrap_or(u32::MAX);
        let cpus = if set == 0 { guest.cpus } else { guest.cpus.min(set) };
        GuestSize { cpus: cpus.max(1), ..guest }
    }

    /// One arm; `None` where none of its trials has a figure.
    fn arm(&self, arm: &Arm) -> Option<ArmSizing> {
        let any = self.group.iter().filter_map(|case| self.figures.case(&case.id)).flat_map(|case| &case.metrics);
        if !any.into_iter().any(|metric| metric.arms.iter().any(|own| own.arm == arm.id)) {
            return None;
        }
        let mut sizing = ArmSizing {
            arm: arm.id.clone(),
            points: Vec::new(),
            model: None,
            refused: None,
            checks: Vec::new(),
            advice: None,
        };
        let points = match self.points(&arm.id) {
            Ok(points) => points,
            Err(refused) => return Some(ArmSizing { refused: Some(refused), ..sizing }),
        };
        sizing.points = points.iter().filter_map(Observed::size_point).collect::<Vec<SizePoint>>();
        sizing.points.sort_by(|a, b| a.load.total_cmp(&b.load).then(a.instances.cmp(&b.instances)));
        let of: Vec<&Observed> = points.iter().filter(|point| !point.held_out).collect();
        let guest = self.guest();
        let fitted = match Fitted::of(&of, guest.cpus, self.unit) {
            Ok(fitted) => fitted,
            Err(refused) => return Some(ArmSizing { refused: Some(refused), ..sizing }),
        };
        let model = fitted.size_model(&of);
        sizing.checks = points.iter().filter(|point| point.held_out).filter_map(|point| fitted.check(point)).collect();
        let seen = |case: &Case| points.iter().any(|point| point.case == case.id);
        let unseen = self.group.iter().filter(|case| case.held_out && !seen(case));
        sizing.checks.extend(unseen.map(|case| fitted::not_measured(case, self.load(case, &arm.id))));
        let objective = self.response.map(|spec| (spec, self.bound(spec)));
        let (points, question, unit) = (&of[..], self.question.clone(), self.unit);
        let mut advice = Adviser { fitted: &fitted, points, guest, objective, question, unit }.advise();
        advice.notes.extend(advice::doubts(&model));
        advice.notes.extend(of_checks(&sizing.checks));
        Some(ArmSizing { model: Some(model), advice: Some(advice), ..sizing })
    }

    fn points(&self, arm: &str) -> Result<Vec<Observed>, String> {
        let Some(throughput) = self.figures.throughput(self.group) else {
            return Err(format!("no metric counts operations a second; {REMEDY}"));
        };
        let servers = self.guest().cpus;
        let of = |case: &&Case| Observed::of(self.figures, case, arm, &throughput.id, self.response, servers);
        let points: Vec<Observed> = self.group.iter().filter_map(of).collect();
        let no_cpu = self.group.iter().all(|case| self.figures.cpu(&case.id, arm).is_empty());
        if points.is_empty() && no_cpu {
            return Err(format!(
                "`{}` was not measured. Sizing needs the guest's CPU, which comes from control groups. Check them with \
                 `tare doctor`, and run the study with this version of tare",
                common::GUEST_CPU
            ));
        }
        Ok(points)
    }

    /// The load of a case whose trials all have the same; 0 where none was found.
    fn load(&self, case: &Case, arm: &str) -> f64 {
        self.figures.loads(case, arm, &[0]).into_values().next().unwrap_or(0.0)
    }

    /// The largest value allowed: as asked, else the least that a case of the group asks for, else a second.
    fn bound(&self, spec: &MetricSpec) -> f64 {
        let asked = self.question.qos.as_ref().map(|(_, bound)| *bound);
        let own = self.group.iter().flat_map(|case| &case.qos).filter(|own| own.metric == spec.id).map(|own| own.bound);
        asked.or_else(|| own.reduce(f64::min)).unwrap_or(OBJECTIVE_S)
    }
}

/// What the checks say of the advice.
fn of_checks(checks: &[SizeCheck]) -> Vec<String> {
    let cases = |n: usize| if n == 1 { "1 held-out case".to_owned() } else { format!("{n} held-out cases") };
    let beyond = checks.iter().filter(|check| check.refused.is_some()).count();
    let off =
        |check: &&SizeCheck| check.refused.is_none() && (!check.cpu_within || check.response_within == Some(false));
    let wrong = checks.iter().filter(off).count();
    let mut notes = Vec::new();
    if wrong > 0 {
        let were = if wrong == 1 { "was" } else { "were" };
        notes.push(format!(
            "{} {were} not predicted within the limits: read the checks before you rely on the models.",
            cases(wrong)
        ));
    }
    if beyond > 0 {
        let lie = if beyond == 1 { "lies" } else { "lie" };
        notes.push(format!("{} {lie} outside the range of the fit: nothing was checked there.", cases(beyond)));
    }
    notes
}

/// What is said of the method where models were fitted.
pub(crate) fn method(found: &[SizingFindings]) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "Sizing: cases of one workload that differ in load and instances are points, of which {POINTS_MIN} are needed. \
         With c CPUs, n instances and N clients or arrivals a second, the models are: throughput X = g N; CPU U c = \
         idle n + X (demand + growth min(n - 1, level)), the utilisation law with what each instance adds; response \
         time R = floor + scale Q(U), where Q is the mean time in an M/M/c queue divided by its service time (Erlang \
         C). They are fitted by least squares with no coefficient below 0, on relative residuals for X and R; the \
         level by leaving out one point at a time. Terms that the points cannot distinguish are left out, and the \
         formula says so. Points whose CPUs are busy to {:.0} % or more are left out. Intervals come from 1,000 \
         resamples of whole blocks, widened by Student's t for their number; those of predictions include the \
         residual. Nothing is predicted outside the measured range of instances, loads and CPU. Held-out cases are in \
         no fit: CPU is to be predicted to 5 points and response time to 15 %. Advice is for a load that may grow by \
         its headroom and still meet the objective. The published rule beside it fills a guest to 70 or 80 % with the \
         CPU of each instance's load and 4 points for each.",
        queue::SATURATED * 100.0
    )]
}
