//! One figure of both sides, and its comparison.

use tare_model::audit::AuditOutcome;
use tare_model::findings::{
    CaseFindings, Compared, Comparison, Estimate, Findings, RunComparisonRow, RunValues, Verdict, verdict_id,
};
use tare_model::metric::{MetricSpec, Unit, common};

use super::{Side, words};
use crate::comparison::{Subject, no_ratio, settle, withhold};
use crate::estimate::{self, ALPHA, TwoSamples};

/// The values of one side.
pub(super) struct Figures {
    /// One a run, of those that have the figure.
    pub values: Vec<f64>,
    /// Runs of the side.
    pub runs: usize,
    /// Why no verdict may rest on one of them.
    pub fault: Option<String>,
}

pub(super) struct Row<'a> {
    /// `None`: the guest's own, over all cases.
    pub case: Option<&'a CaseFindings>,
    pub arm: &'a str,
    pub arm_label: String,
    pub compared: Compared,
    /// Baseline id of both sides.
    pub baseline: &'a str,
    pub spec: MetricSpec,
    pub figures: (Figures, Figures),
    /// Whether the arm's figures may be compared in some runs and not in others (on a host with KVM, and emulated).
    pub of_two_kinds: bool,
    pub margin: Option<f64>,
}

impl Row<'_> {
    /// Whether it is one of those that answer.
    pub(super) fn answers(&self) -> bool {
        self.compared == Compared::Effect && self.primary() && !self.of_two_kinds
    }

    fn primary(&self) -> bool {
        self.spec.primary || self.case.is_none() && common::OF_THE_GUEST.contains(&self.spec.id.as_str())
    }

    /// The row with its comparison as a lead, its metric, and what a sentence calls the second side: `container now`, of an effect
    /// `container over native now`. `comparisons` share the error probability.
    pub(super) fn settled(
        self,
        before: &Side<'_>,
        after: &Side<'_>,
        comparisons: u32,
    ) -> (RunComparisonRow, MetricSpec, String) {
        let [x, y] = [&self.figures.0, &self.figures.1].map(|own| estimate::of_values(&own.values).unwrap_or_default());
        let (label, unit) = match self.compared {
            Compared::Value => (self.spec.label.clone(), self.spec.unit.clone()),
            Compared::Effect => (format!("{} (over {})", self.spec.label, self.baseline), Unit::Count),
        };
        let case = self.case.map(|case| case.id.as_str());
        let now = match self.compared {
            Compared::Value => format!("{} now", self.arm_label),
            Compared::Effect => format!("{} over {} now", self.arm_label, self.baseline),
        };
        let mut row = RunComparisonRow {
            id: verdict_id(case, self.arm, &self.spec.id),
            case: case.map(str::to_owned),
            arm: self.arm.to_owned(),
            metric: self.spec.id.clone(),
            primary: self.primary(),
            compared: self.compared,
            case_label: self.case.map_or_else(|| "all cases".to_owned(), |case| case.label.clone()),
            arm_label: self.arm_label.clone(),
            label,
            unit,
            before: x,
            after: y,
            comparison: Comparison::default(),
        };
        row.comparison = self.comparison(&now, (before, after), comparisons);
        (row, self.spec, now)
    }

    fn comparison(&self, now: &str, (before, after): (&Side<'_>, &Side<'_>), comparisons: u32) -> Comparison {
        let (x, y) = &self.figures;
        let (planned, found) = (x.runs + y.runs, x.values.len() + y.values.len());
        let mut comparison = Comparison {
            case: self.case.map(|case| case.id.clone()),
            metric: self.spec.id.clone(),
            arm: after.label.to_owned(),
            baseline: before.label.to_owned(),
            planned: planned as u32,
            missing: (planned - found) as u32,
            margin: self.margin,
            runs: Some(RunValues { baseline: x.values.clone(), arm: y.values.clone() }),
            ..Comparison::default()
        };
        match self.ratio(&mut comparison, comparisons) {
            Ok(ratio) => comparison.ratio = ratio,
            Err((verdict, why)) => {
                comparison.ratio = no_ratio();
                withhold(&mut comparison, verdict, why);
            }
        }
        if found < planned {
            // A run that failed may be the one that differs most.
            let why = format!("{} of {planned} runs have no such figure", planned - found);
            withhold(&mut comparison, Verdict::CannotSay, why);
        }
        if let Some(why) = x.fault.as_ref().or(y.fault.as_ref()) {
            withhold(&mut comparison, Verdict::CannotSay, why.clone());
        }
        settle(&mut comparison, Subject { spec: &self.spec, arm: now, baseline: &words(before, "first") });
        comparison
    }

    /// The ratio of the second side to the first, and the probabilities that go with it.
    ///
    /// # Errors
    /// Why there is none.
    fn ratio(&self, comparison: &mut Comparison, comparisons: u32) -> Result<Estimate, (Verdict, String)> {
        let [x, y] = [&self.figures.0.values, &self.figures.1.values];
        let n = x.len() + y.len();
        if self.of_two_kinds {
            let why = "its figures are of two kinds: those of one run must not be compared with other figures";
            return Err((Verdict::NotComparable, why.to_owned()));
        }
        let repeated = x.len() > 1 && y.len() > 1;
        if repeated && x.iter().chain(y).all(|value| *value == 0.0) {
            let (low, method) = (Some(1.0), "zero in every run".to_owned());
            return Ok(Estimate { value: 1.0, low, high: low, level: 1.0 - ALPHA, n: n as u32, method });
        }
        if x.iter().chain(y).any(|value| *value <= 0.0) {
            let why =
                format!("a ratio of {} needs values above zero, but a run has one of zero or below", self.spec.label);
            return Err((Verdict::CannotSay, why));
        }
        let [from, to] = [x, y].map(|side| side.iter().map(|value| value.ln()).collect::<Vec<_>>());
        let two = TwoSamples { from: &from, to: &to, comparisons };
        let nothing = || (Verdict::CannotSay, "a side has no such figure".to_owned());
        let (located, procedure) = two.shift(ALPHA).ok_or_else(nothing)?;
        if located.ends.is_some() {
            comparison.p_equal = two.p_zero();
            comparison.p_margin = comparison.margin.and_then(|margin| two.p_beyond(margin.ln_1p()));
        }
        Ok(estimate::from_logs(located, procedure, n, "logarithms of the runs' values"))
    }
}

/// Why no verdict may rest on a run's own comparison, other than that it has too few blocks for one: here the run counts as a whole.
pub(crate) fn fault(own: &Comparison) -> Option<String> {
    let limited = own.driver_limited.arm.max(own.driver_limited.baseline);
    if 2 * limited > own.ratio.n {
        return Some(format!(
            "the driver was at its limit in {limited} of {} blocks, and may be what was measured",
            own.ratio.n
        ));
    }
    own.withheld.clone().filter(|_| own.ends().is_some() || own.missing > 0)
}

/// What the audit of a run found broken of an arm's figures.
pub(super) fn broken(run: &Findings, case: Option<&str>, arm: &str) -> Option<String> {
    let concerns = |own: &[String]| own.is_empty() || own.iter().any(|own| own == arm);
    let mut broken = run.audit.iter().filter(|entry| entry.outcome == AuditOutcome::Broken);
    let found =
        broken.find(|entry| (entry.case.is_empty() || Some(entry.case.as_str()) == case) && concerns(&entry.arms))?;
    Some(found.detail.trim_end_matches('.').to_owned())
}
