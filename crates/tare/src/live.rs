//! The figures of a run so far, while it goes on.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use tare_analysis::Run;
use tare_controller::Observer;
use tare_model::environment::Environment;
use tare_model::findings::{Comparison, Findings, MetricFindings, Verdict};
use tare_model::metric::common;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::precision::Judged;
use tare_model::trial::{Outcome, Phase, TrialRecord};
use tare_record::RunFacts;
use tare_report::{format, words};

use crate::output;
use crate::progress::Progress;

/// Where no terminal shows them, figures are printed no more often than this.
const LINES_EVERY: Duration = Duration::from_secs(10);
/// Columns of the table.
const WIDTH: usize = 80;

/// Shows progress, and below it what the trials so far come to: the estimates and intervals that the report would have if the run ended
/// now.
pub struct Live<'p> {
    progress: &'p Progress,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    trials: Vec<TrialRecord>,
    shown: Option<Instant>,
}

impl<'p> Live<'p> {
    /// Nothing shown yet.
    pub fn new(progress: &'p Progress) -> Self {
        progress.put_below("no block has ended yet");
        Self { progress, state: RefCell::default() }
    }

    /// Shows the figures again, if a whole step of the plan has ended with this trial.
    fn show(&self, planned: &PlannedTrial) {
        let mut state = self.state.borrow_mut();
        let State { plan: Some(plan), trials, shown } = &mut *state else { return };
        let ends = plan.steps().iter().any(|step| step.last().is_some_and(|last| last.index == planned.index));
        let due = self.progress.is_bar() || shown.is_none_or(|at| at.elapsed() >= LINES_EVERY);
        if !ends || !due {
            return;
        }
        *shown = Some(Instant::now());
        let lines = table(&so_far(plan, trials), plan.study_block(planned), WIDTH);
        if self.progress.is_bar() {
            self.progress.put_below(&output::shown(&lines, false));
        } else {
            self.progress.note(lines.trim_end());
        }
    }
}

/// What the trials come to.
fn so_far(plan: &Plan, trials: &[TrialRecord]) -> Findings {
    let facts = RunFacts {
        run_id: String::new(),
        tare_version: String::new(),
        finished: false,
        root_hash: String::new(),
        ended: Vec::new(),
    };
    let environment = Environment::default();
    tare_analysis::findings(&Run { facts: &facts, plan, environment: &environment, trials, problems: &[] })
}

/// A line an arm: the primary metric, the difference to the baseline, what would be said of it now, and the guest's start and memory.
fn table(findings: &Findings, blocks: u32, width: usize) -> String {
    let study = &findings.plan.study;
    let Some(metric) = findings.cases.first().and_then(|case| case.metrics.iter().find(|metric| metric.spec.primary))
    else {
        return String::new();
    };
    let rows = study.arms.iter().map(|arm| {
        let verdict = |own: &Comparison| match own.verdict {
            Verdict::NoiseFloor => String::new(),
            verdict => words::verdict_short(verdict).to_owned(),
        };
        let compared = metric.comparisons.iter().find(|own| own.arm == arm.id);
        let difference = compared.map_or_else(String::new, |own| format::ratio(&own.ratio));
        [
            arm.label.clone(),
            estimate(metric, &arm.id),
            if arm.id == study.baseline { "baseline".to_owned() } else { difference },
            compared.map_or_else(String::new, verdict),
            across(findings, common::START_TIME, &arm.id),
            across(findings, common::IDLE_MEMORY, &arm.id),
        ]
    });
    // What the metric is called is in the report; here it may not widen its column.
    let label: String = metric.spec.label.chars().take(10).collect();
    let head = ["", label.trim_end(), "difference", "so far", "start", "memory"].map(str::to_owned);
    let rows: Vec<[String; 6]> = [head].into_iter().chain(rows).collect();
    let most = study.most_blocks();
    format!("after block {blocks} of {most}; no verdict is final before the end\n{}", laid_out(&rows, width))
}

/// The rows in columns that fit; the first column gives way.
fn laid_out(rows: &[[String; 6]], width: usize) -> String {
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..6).map(widest).collect();
    let others: usize = widths[1..].iter().map(|width| width + 1).sum();
    let first = widths[0].min(width.saturating_sub(others)).max(6);
    let mut text = String::new();
    for row in rows {
        let name: String = row[0].chars().take(first).collect();
        let mut line = format!("{name:first$}");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate().skip(1) {
            // Numbers end at one edge; words begin at one.
            line += &if column == 3 { format!(" {cell:width$}") } else { format!(" {cell:>width$}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn estimate(metric: &MetricFindings, arm: &str) -> String {
    let own = metric.arms.iter().find(|own| own.arm == arm);
    own.map_or_else(|| "-".to_owned(), |own| format::value(own.estimate.value, &metric.spec.unit).trim_end().to_owned())
}

/// A figure of an arm's guests.
fn across(findings: &Findings, id: &str, arm: &str) -> String {
    let metric = findings.across.iter().find(|metric| metric.spec.id == id);
    metric.map_or_else(|| "-".to_owned(), |metric| estimate(metric, arm))
}

/// A record without all that no figure of the table needs: hundreds of them are kept.
fn light(record: &TrialRecord) -> TrialRecord {
    let mut record = TrialRecord { samples: Vec::new(), turns: None, ..record.clone() };
    if let Outcome::Completed(measured) = &mut record.outcome {
        measured.histograms.clear();
    }
    record
}

impl Observer for Live<'_> {
    fn run_began(&self, plan: &Plan, done: u32) {
        self.state.borrow_mut().plan = Some(plan.clone());
        self.progress.run_began(plan, done);
    }

    fn trial_began(&self, trial: &PlannedTrial) {
        self.progress.trial_began(trial);
    }

    fn phase_entered(&self, trial: &PlannedTrial, phase: Phase) {
        self.progress.phase_entered(trial, phase);
    }

    fn trial_ended(&self, record: &TrialRecord) {
        self.state.borrow_mut().trials.push(light(record));
        self.progress.trial_ended(record);
        self.show(&record.planned);
    }

    fn judged(&self, case: &str, judged: &Judged) {
        self.progress.judged(case, judged);
    }

    fn note(&self, text: &str) {
        self.progress.note(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_so_far_are_those_that_a_report_of_these_trials_would_have() {
        let plan = tare_record::testing::plan(12);
        let half = plan.trials.len() / 2;
        let trial = |index: usize| light(&tare_record::testing::trial(&plan, index as u32));
        let trials: Vec<TrialRecord> = (0..half).map(trial).collect();
        let found = so_far(&plan, &trials);
        let shown = table(&found, 6, WIDTH);
        assert!(shown.starts_with("after block 6 of 12; no verdict is final before the end\n"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        assert_eq!(shown.lines().count(), 2 + plan.study.arms.len(), "{shown}");
        let primary = found.cases[0].metrics.iter().find(|metric| metric.spec.primary).unwrap();
        assert!(!primary.comparisons.is_empty());
        for comparison in &primary.comparisons {
            assert!(shown.contains(&format::ratio(&comparison.ratio)), "{shown}");
        }
        assert!(shown.contains("baseline"), "{shown}");
        assert_ne!(shown, table(&so_far(&plan, &trials[..half / 2]), 6, WIDTH), "more trials, other figures");
    }

    #[test]
    fn a_long_name_gives_way() {
        let row = |name: &str| {
            [name, "54.2 ms", "-12.4 % [-16.5, -8.5]", "none detected", "45.9 ms", "1.09 MiB"].map(str::to_owned)
        };
        let text = laid_out(&[row("docker:localhost/a/very/long/name:1"), row("native")], WIDTH);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("docker:local"), "{text}");
    }
}
