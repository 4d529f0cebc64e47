//! Sizing: what to build, the models behind it, and how they did on what was held out.

mod plots;
mod tables;

use serde::Serialize;
use tare_model::findings::{ArmSizing, Findings, SizeAdvice, SizeCheck, SizeModel, SizeQuestion, SizingFindings};
use tare_model::metric::{MetricSpec, Unit};

use super::case::FigureView;
use super::consolidation::{load, of_size};
use super::table::Table;
use crate::format;
use crate::plot::arms::{ArmLook, Arms};

/// The rule that the published study gives, beside which ours stands.
pub(crate) const RULE: &str = "The published rule (a study of 2011): keep the guest\u{2019}s CPUs at most 70 to 80 % busy, and count 4 points of CPU for each instance beyond its load.";

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct SizingView {
    pub(crate) groups: Vec<GroupView>,
    pub(crate) rule: &'static str,
}

/// One workload in guests of one size.
#[derive(Debug, Serialize)]
pub(crate) struct GroupView {
    pub(crate) title: String,
    /// What was asked.
    pub(crate) question: String,
    /// One an arm.
    pub(crate) advice: Vec<AdviceView>,
    pub(crate) table: Option<Table>,
    pub(crate) checks_seen: String,
    pub(crate) checks: Option<Table>,
    pub(crate) models: Option<Table>,
    pub(crate) parameters: Option<Table>,
    pub(crate) points: Option<Table>,
    pub(crate) figures: Vec<FigureView>,
    /// Whether a model could be made on some arm.
    pub(crate) fitted: bool,
}

/// What to build on one arm, or why nothing is said.
#[derive(Debug, Serialize)]
pub(crate) struct AdviceView {
    pub(crate) arm: String,
    /// Markup of the arm's mark.
    pub(crate) key: String,
    pub(crate) sentence: String,
    pub(crate) notes: Vec<String>,
    /// Whether it says why there is none.
    pub(crate) refused: bool,
}

impl SizingView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let groups: Vec<GroupView> = findings
            .sizing
            .iter()
            .enumerate()
            .filter(|(_, found)| !found.arms.is_empty())
            .map(|(n, found)| Group { found, arms }.view(&format!("fig-sizing-{}", n + 1)))
            .collect();
        (!groups.is_empty()).then_some(Self { groups, rule: RULE })
    }
}

/// The advice of every arm and what the checks came to, in sentences for the top of the report.
pub(super) fn headlines(findings: &Findings, arms: &Arms) -> Vec<String> {
    let of = |found: &SizingFindings| {
        let group = Group { found, arms };
        [group.headline(), Some(group.checks_seen()).filter(|seen| !seen.is_empty())]
    };
    findings.sizing.iter().flat_map(of).flatten().collect()
}

/// Every group in lines with its heading, for a terminal.
pub(crate) fn lines(findings: &Findings, arms: &Arms) -> Vec<(String, Vec<String>)> {
    let of = |found: &SizingFindings| {
        let group = Group { found, arms };
        let heading = format!("Sizing: {}, {}", found.workload, of_size(&found.guest));
        let mut lines: Vec<String> = group.question().into_iter().collect();
        for (arm, look) in group.shown() {
            lines.push(format!("{}: {}", look.label, group.sentence(arm)));
            lines.extend(arm.advice.iter().flat_map(|advice| advice.notes.iter().cloned()));
            lines.extend(group.model_lines(arm, &look));
            lines.extend(arm.checks.iter().map(|check| group.check_line(check, &look)));
        }
        lines.push(RULE.to_owned());
        (heading, lines)
    };
    findings.sizing.iter().filter(|found| !found.arms.is_empty()).map(of).collect()
}

/// One group and the arms' looks.
struct Group<'a> {
    found: &'a SizingFindings,
    arms: &'a Arms,
}

impl<'a> Group<'a> {
    /// In the order of the study.
    fn shown(&self) -> impl Iterator<Item = (&'a ArmSizing, ArmLook)> {
        let found = self.found;
        self.arms.having(|id| found.arms.iter().find(|arm| arm.arm == id)).into_iter()
    }

    fn view(&self, id: &str) -> GroupView {
        let advice = self.shown().map(|(arm, look)| AdviceView {
            key: look.key(),
            arm: look.label,
            sentence: self.sentence(arm),
            notes: arm.advice.iter().flat_map(|advice| advice.notes.iter().cloned()).collect(),
            refused: arm.advice.is_none(),
        });
        let fitted = self.found.arms.iter().any(|arm| arm.model.is_some());
        let workload = crate::words::sentence_case(&self.found.workload);
        GroupView {
            title: format!("{workload}, {}", of_size(&self.found.guest)),
            question: self.question().unwrap_or_default(),
            advice: advice.collect(),
            table: self.advice_table(),
            checks_seen: self.checks_seen(),
            checks: self.check_table(),
            models: self.model_table(),
            parameters: self.parameter_table(),
            points: self.point_table(),
            fitted,
            figures: if fitted { self.figures(id) } else { Vec::new() },
        }
    }

    /// The noun of a load: `clients`, or the unit itself.
    fn loads(&self, value: f64) -> String {
        format!("{} {}", load(value), self.found.load_unit)
    }

    fn response(&self) -> Option<&'a MetricSpec> {
        self.found.response.as_ref()
    }

    /// The bound of the objective with its metric, for people.
    fn objective(&self, question: &SizeQuestion) -> Option<String> {
        let (metric, bound) = question.qos.as_ref()?;
        let spec = self.response().filter(|spec| spec.id == *metric);
        let label = spec.map_or(metric.as_str(), |spec| spec.label.as_str());
        let unit = spec.map_or(Unit::Count, |spec| spec.unit.clone());
        Some(format!("{label} at most {}", format::value(*bound, &unit)))
    }

    /// What was asked, once for all arms.
    fn question(&self) -> Option<String> {
        let asked = &self.shown().find_map(|(arm, _)| arm.advice.as_ref())?.question;
        let objective = self.objective(asked).unwrap_or_else(|| "no objective".to_owned());
        let more = if asked.headroom > 0.0 {
            format!(", also with {} more load", format::share(asked.headroom))
        } else {
            String::new()
        };
        let each = asked.load_per_instance.map(|each| format!("; {} an instance", self.loads(each)));
        let total = asked.total_load.map(|total| format!("; {} in total", self.loads(total)));
        Some(format!("Asked: {objective}{more}{}{}.", each.unwrap_or_default(), total.unwrap_or_default()))
    }

    /// The advice in one sentence, or why there is none.
    fn sentence(&self, arm: &ArmSizing) -> String {
        let Some(advice) = &arm.advice else {
            let why = arm.refused.as_deref().unwrap_or("the measurements do not lead to one");
            return format!("no advice: {}.", why.trim_end_matches('.'));
        };
        if advice.instances == 0 || advice.load <= 0.0 {
            return format!("no configuration fits: {}.", bound_by(advice));
        }
        let instances = format::plural(u64::from(advice.instances), "instance", "instances");
        let each = if advice.instances > 1 {
            format!(" ({} each)", load(advice.load / f64::from(advice.instances)))
        } else {
            String::new()
        };
        let memory =
            advice.memory_bytes.map(|bytes| format!(", with {} of memory", format::value(bytes, &Unit::Bytes)));
        let guests = advice.guests.map(|guests| {
            format!("; {} of this size for the total load", format::plural(u64::from(guests), "guest", "guests"))
        });
        format!(
            "{instances} in one {}, for {} in total{each}, below {} of its CPUs{}{}. Bound by {}.{}{}",
            of_size(&self.found.guest),
            self.loads(advice.load),
            format::estimate(&advice.cpu, &Unit::Share),
            memory.unwrap_or_default(),
            guests.unwrap_or_default(),
            bound_by(advice),
            arm.model.as_ref().map_or_else(String::new, |model| format!(" From {}.", grounds(model))),
            advice
                .published
                .map_or_else(String::new, |range| format!(" The published rule would put {}.", by_rule(range)))
        )
    }

    /// The advice for all arms in one sentence.
    fn headline(&self) -> Option<String> {
        let row = |(arm, look): (&ArmSizing, ArmLook)| match &arm.advice {
            Some(advice) if advice.instances == 0 || advice.load <= 0.0 => format!("{} nothing", look.label),
            Some(advice) => format!(
                "{} {}{}, {}, CPU below {}",
                look.label,
                format::plural(u64::from(advice.instances), "instance", "instances"),
                advice
                    .published
                    .map_or_else(String::new, |range| format!(" (by the published rule {})", by_rule(range))),
                self.loads(advice.load),
                format::estimate(&advice.cpu, &Unit::Share)
            ),
            None => format!("{} no advice", look.label),
        };
        // Where nothing could be fitted on any arm, the section says why.
        self.found.arms.iter().find(|arm| arm.advice.is_some())?;
        let rows: Vec<String> = self.shown().map(row).collect();
        let asked = self.shown().find_map(|(arm, _)| self.objective(&arm.advice.as_ref()?.question));
        let asked = asked.map_or_else(String::new, |asked| format!(" ({asked})"));
        let size = of_size(&self.found.guest);
        let from = self.grounds();
        (!rows.is_empty()).then(|| format!("What fits into one {size}{asked}: {}.{from}", rows.join("; ")))
    }

    /// What the advice of all arms rests on, with the largest residuals: ` From 34 to 35 points of each arm in 3 blocks, ...`.
    fn grounds(&self) -> String {
        let models = || self.found.arms.iter().filter_map(|arm| arm.model.as_ref());
        let Some(worst) = models().max_by(|a, b| a.cpu.rmse.total_cmp(&b.cpu.rmse)) else { return String::new() };
        let points = || models().map(|model| model.cpu.points);
        let (least, most) = (points().min().unwrap_or(0), points().max().unwrap_or(0));
        let many = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let time = models().filter_map(|own| own.response.as_ref()).map(|own| own.rmse).reduce(f64::max);
        let (arms, up_to) = if models().count() > 1 { (" of each arm", " of at most") } else { ("", " of") };
        let blocks = format::plural(u64::from(worst.throughput.n), "block", "blocks");
        format!(" From {many} points{arms} in {blocks}, with a residual{up_to} {}.", residual(worst.cpu.rmse, time))
    }

    /// How the predictions of held-out cases did.
    fn checks_seen(&self) -> String {
        let checks = || self.found.arms.iter().flat_map(|arm| &arm.checks);
        if checks().next().is_none() {
            return String::new();
        }
        let predicted = || checks().filter(|check| check.refused.is_none());
        let all = predicted().count();
        let mut out = format!(
            "Held-out cases, predicted and then compared with the measurement: CPU within 5 points in {} of {all}",
            predicted().filter(|c| c.cpu_within).count()
        );
        let timed = || predicted().filter_map(|check| check.response_within);
        if timed().next().is_some() {
            out.push_str(&format!(
                ", response time within 15 % in {} of {}",
                timed().filter(|within| *within).count(),
                timed().count()
            ));
        }
        let refused = checks().count() - all;
        if refused > 0 {
            out.push_str(&format!("; {refused} not predicted, because outside the measured range"));
        }
        format!("{out}.")
    }

    fn check_line(&self, check: &SizeCheck, look: &ArmLook) -> String {
        let head = format!("held out, {}: {} instances, {}", look.label, check.instances, self.loads(check.load));
        if let Some(why) = &check.refused {
            return format!("{head}: not predicted ({why})");
        }
        let within = |within: bool| if within { "within" } else { "NOT within" };
        let share = Unit::Share;
        let (predicted, measured) = &check.cpu;
        let cpu = format!(
            "CPU {} predicted, {} measured ({} 5 points)",
            format::estimate(predicted, &share),
            format::estimate(measured, &share),
            within(check.cpu_within)
        );
        let time = check.response.as_ref().map(|(predicted, measured)| {
            let judged = check.response_within.map_or_else(String::new, |own| format!(" ({} 15 %)", within(own)));
            let (predicted, measured) =
                (format::estimate(predicted, &Unit::Seconds), format::estimate(measured, &Unit::Seconds));
            format!("; response time {predicted} predicted, {measured} measured{judged}")
        });
        format!("{head}: {cpu}{}", time.unwrap_or_default())
    }

    fn model_lines(&self, arm: &ArmSizing, look: &ArmLook) -> Vec<String> {
        let Some(model) = &arm.model else { return Vec::new() };
        let percent = |share: f64| format::share((share * 1000.0).round() / 1000.0);
        let cpu = &model.cpu;
        let mut out = vec![format!(
            "{}: {} (n = {}, residual {} of the CPUs, left out {})",
            look.label,
            cpu.formula,
            cpu.points,
            percent(cpu.rmse),
            percent(cpu.rmse_left_out)
        )];
        out.extend(model.response.as_ref().map(|own| {
            format!(
                "{}: {} (n = {}, residual {}, left out {})",
                look.label,
                own.formula,
                own.points,
                percent(own.rmse),
                percent(own.rmse_left_out)
            )
        }));
        out
    }
}

/// What advice rests on: `35 points in 3 blocks, residual 0.6 points of CPU and 5.2 % of the response time`.
fn grounds(model: &SizeModel) -> String {
    let points = format::plural(u64::from(model.cpu.points), "point", "points");
    let blocks = format::plural(u64::from(model.throughput.n), "block", "blocks");
    let residual = residual(model.cpu.rmse, model.response.as_ref().map(|own| own.rmse));
    format!("{points} in {blocks}, with a residual of {residual}")
}

/// `0.6 points of CPU and 5.2 % of the response time`.
fn residual(cpu: f64, time: Option<f64>) -> String {
    let tenth = |share: f64| format::fixed(share * 100.0, 1);
    let time = time.map_or_else(String::new, |time| format!(" and {} % of the response time", tenth(time)));
    format!("{} points of CPU{time}", tenth(cpu))
}

/// `6 to 7 instances`, at 70 and at 80 % CPU.
fn by_rule((low, high): (u32, u32)) -> String {
    match low == high {
        true => format::plural(u64::from(high), "instance", "instances"),
        false => format!("{low} to {high} instances"),
    }
}

/// What ends it, as the middle of a sentence.
fn bound_by(advice: &SizeAdvice) -> &str {
    advice.bound_by.trim().trim_end_matches('.')
}
