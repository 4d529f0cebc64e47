//! Runs set against runs. The unit is the run: each gives one value of a figure, and how much these differ within a side is how much runs
//! differ by themselves.

use std::collections::BTreeSet;

use tare_model::findings::{
    CaseFindings, Compared, Findings, MetricFindings, RunComparison, RunComparisonRow, RunSide, Standing,
};
use tare_model::metric::MetricSpec;

use crate::across::GUESTS;
use crate::comparison::{ONE_RUN, Subject, settle_primary};
use crate::marked::is_apart;

mod differences;
pub(crate) mod likeness;
mod row;

pub(crate) use row::fault;
use row::{Figures, Row};

/// Runs of one side.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Name for people.
    pub label: &'a str,
    /// Their findings.
    pub runs: &'a [Findings],
    /// What each of them is called, in the same order; one without a name is called by its id.
    pub names: &'a [String],
}

impl<'a> Side<'a> {
    /// Each run with its name.
    fn named(&self) -> impl Iterator<Item = (&'a str, &'a Findings)> {
        let Self { runs, names, .. } = *self;
        runs.iter().enumerate().map(|(at, run)| (names.get(at).map_or(run.run.id.as_str(), String::as_str), run))
    }
}

/// Why runs cannot be set against each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They share no case with an arm and a metric.
    #[error(
        "{before} and {after} have no case with an arm and a metric in common: nothing can be compared. \
         Give runs of one study, or of studies whose case and arm ids agree"
    )]
    NothingInCommon {
        /// First side.
        before: String,
        /// Second side.
        after: String,
    },
    /// A run is given twice, which is no second run.
    #[error("the run {run} is given twice: a copy shows nothing of how much runs differ. Give each run once")]
    Twice {
        /// What it is called.
        run: String,
    },
    /// The two sides did not measure the same.
    #[error(
        "{what} of {before} and of {after}: their figures are of different measurements. Run one study for both sides, or make the two \
         versions arms of one study"
    )]
    OtherPlan {
        /// What differs, as the beginning of a sentence.
        what: String,
        /// First side.
        before: String,
        /// Second side.
        after: String,
    },
    /// The runs of one side did not measure the same.
    #[error(
        "{what} of the runs {first} and {other} of {side}: runs of one side repeat one study. Leave one of the two out"
    )]
    Mixed {
        /// What differs, as the beginning of a sentence.
        what: String,
        /// The side's first run.
        first: String,
        /// The run that differs from it.
        other: String,
        /// The side.
        side: String,
    },
}

/// Sets the runs `after` against those `before`: every arm's values, and the effect of every arm beside its own run's baseline. The effects
/// in primary metrics answer; all other rows are leads at most.
///
/// # Errors
/// When the two sides share no case, arm and metric; when plans differ in what figures depend on; when a run is given twice.
pub fn compare(before: &Side<'_>, after: &Side<'_>) -> Result<RunComparison, CompareError> {
    likeness::check(before, after)?;
    let rows = rows(before, after);
    if rows.is_empty() {
        let [before, after] = [before, after].map(|side| side.label.to_owned());
        return Err(CompareError::NothingInCommon { before, after });
    }
    let family = rows.iter().filter(|row| row.answers()).count() as u32;
    // With what sentences call the second side where the row answers.
    let mut settled: Vec<(RunComparisonRow, MetricSpec, Option<String>)> = rows
        .into_iter()
        .map(|row| {
            let answers = row.answers();
            let (row, spec, now) = row.settled(before, after, if answers { family } else { 1 });
            (row, spec, answers.then_some(now))
        })
        .collect();
    let baseline = words(before, "first");
    let subjects = settled.iter_mut().filter_map(|(row, spec, now)| {
        let arm = now.as_deref()?;
        Some((&mut row.comparison, Subject { spec, arm, baseline: &baseline }))
    });
    settle_primary(subjects.collect());
    let rows: Vec<RunComparisonRow> = settled.into_iter().map(|(row, ..)| row).collect();
    let few = [before, after].iter().any(|side| side.runs.len() == 1);
    let none = few && rows.iter().all(|row| row.comparison.withheld.is_some());
    let named = |side: &Side<'_>| RunSide {
        label: side.label.to_owned(),
        runs: side.runs.iter().map(|run| run.run.id.clone()).collect(),
    };
    Ok(RunComparison {
        before: named(before),
        after: named(after),
        withheld: none.then(|| ONE_RUN.to_owned()),
        warnings: differences::warnings(before, after),
        differences: differences::all(before, after),
        rows,
    })
}

/// `the first run`, `the first runs`.
fn words(side: &Side<'_>, which: &str) -> String {
    format!("the {which} {}", if side.runs.len() == 1 { "run" } else { "runs" })
}

fn rows<'a>(before: &Side<'a>, after: &Side<'a>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let Some(first) = before.runs.first() else { return rows };
    // What is the guest's own is set against each other once, where both sides have the same cases to take its mean over.
    let ids = |run: &Findings| run.cases.iter().map(|case| case.id.clone()).collect::<BTreeSet<_>>();
    let alike = before.runs.iter().chain(after.runs).all(|run| ids(run) == ids(first));
    for case in alike.then_some(None).into_iter().chain(first.cases.iter().map(Some)) {
        for spec in specs(before, case.map(|case| case.id.as_str())) {
            if case.is_some() && alike && GUESTS.contains(&spec.id.as_str()) && !spec.primary {
                continue;
            }
            for arm in &first.plan.study.arms {
                let place = Place { case, spec, arm: &arm.id };
                rows.extend(
                    [Compared::Value, Compared::Effect].into_iter().filter_map(|what| place.row(what, before, after)),
                );
            }
        }
    }
    rows
}

/// The metrics of a case, or of the guest itself over all cases.
fn metrics<'a>(run: &'a Findings, case: Option<&str>) -> &'a [MetricFindings] {
    let Some(id) = case else { return &run.across };
    run.cases.iter().find(|own| own.id == id).map_or(&[], |own| &own.metrics)
}

/// Those of them that some run of the side has, as the first of them describes them.
fn specs<'a>(side: &Side<'a>, case: Option<&str>) -> Vec<&'a MetricSpec> {
    let mut found: Vec<&MetricSpec> = Vec::new();
    for metric in side.runs.iter().flat_map(|run| metrics(run, case)) {
        if !found.iter().any(|known| known.id == metric.spec.id) {
            found.push(&metric.spec);
        }
    }
    found
}

/// Where a figure stands in the findings of each run.
#[derive(Clone, Copy)]
struct Place<'a> {
    case: Option<&'a CaseFindings>,
    spec: &'a MetricSpec,
    arm: &'a str,
}

impl<'a> Place<'a> {
    /// The row; `None` where a side has no such figure.
    fn row(self, compared: Compared, before: &Side<'a>, after: &Side<'a>) -> Option<Row<'a>> {
        let [x, y] = [before, after].map(|side| self.figures(compared, side));
        let all = || before.runs.iter().chain(after.runs);
        if x.values.is_empty() || y.values.is_empty() {
            return None;
        }
        let study = &before.runs.first()?.plan.study;
        let kinds: Vec<bool> = all().map(|run| is_apart(run, self.arm)).collect();
        let marked = all().find(|run| is_apart(run, self.arm));
        let marked = marked.and_then(|run| run.plan.study.arms.iter().find(|own| own.id == self.arm));
        Some(Row {
            case: self.case,
            arm: self.arm,
            arm_label: marked.map_or_else(|| self.arm.to_owned(), |own| own.label.clone()),
            compared,
            baseline: &study.baseline,
            spec: self.spec.clone(),
            figures: (x, y),
            of_two_kinds: kinds.windows(2).any(|pair| pair[0] != pair[1]),
            margin: study.margin.filter(|margin| all().all(|run| run.plan.study.margin == Some(*margin))),
        })
    }

    fn case(&self) -> Option<&'a str> {
        self.case.map(|case| case.id.as_str())
    }

    fn metric<'b>(&self, run: &'b Findings) -> Option<&'b MetricFindings> {
        metrics(run, self.case()).iter().find(|own| own.spec.id == self.spec.id && own.spec.unit == self.spec.unit)
    }

    fn figures(&self, compared: Compared, side: &Side<'_>) -> Figures {
        let mut figures = Figures { values: Vec::new(), runs: side.runs.len(), fault: None };
        for (name, run) in side.named() {
            let Some(metric) = self.metric(run) else { continue };
            let (value, fault) = match compared {
                Compared::Value => {
                    let Some(own) = metric.arms.iter().find(|own| own.arm == self.arm) else { continue };
                    (own.estimate.value, row::broken(run, self.case(), self.arm))
                }
                Compared::Effect => {
                    let own = metric.comparisons.iter().find(|own| own.arm == self.arm);
                    let Some(own) = own.filter(|own| own.standing != Standing::Replica && own.ratio.n > 0) else {
                        continue;
                    };
                    (own.ratio.value, row::fault(own))
                }
            };
            figures.values.push(value);
            figures.fault = figures.fault.or_else(|| fault.map(|why| format!("in {name}, {why}")));
        }
        figures
    }
}
