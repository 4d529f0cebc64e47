//! What the terminal shows during a run.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tare_controller::{AscentNow, Observer};
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::Study;
use tare_model::trial::{Outcome, Phase, TrialRecord};

/// A bar with an honest estimate of the time left: what is planned for the trials to come, plus, for
/// each, what the trials so far took beside it. Where trials are ascents, that is the most: an ascent that ends early takes less.
pub struct Progress {
    bar: ProgressBar,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    planned_s: Vec<f64>,
    /// Whether some trials are ascents.
    ascents: bool,
    around_s: f64,
    measured: u32,
    label: String,
    ends_at: Option<Instant>,
    failures: u32,
}

impl Progress {
    /// Nothing shown yet.
    pub fn new() -> Self {
        let bar = ProgressBar::new(0);
        // The template is a constant that its own test parses.
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, state: RefCell::default() }
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// A line above the bar; where there is no terminal, a line on standard error.
    fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    fn show(&self, phase: Phase) {
        let state = self.state.borrow();
        let left = state.ends_at.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map_or_else(String::new, |left| format!("{} {} left, ", state.about(), minutes(left)));
        self.bar.set_message(format!("{left}{}: {phase}", state.label));
    }
}

const TEMPLATE: &str = "[{elapsed_precise}] {bar:30} {pos}/{len} {msg}";

/// Trials before anything is known of what surrounds the load are taken to need this much around it.
const AROUND_GUESS_S: f64 = 0.5;

fn minutes(left: Duration) -> String {
    let seconds = left.as_secs();
    if seconds < 90 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

/// How far the ascent of guests is.
fn ascent(now: &AscentNow) -> String {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let AscentNow { guests, most, load, available_bytes, saved_bytes } = now;
    let saved = if *saved_bytes > 0 { format!(", saved {:.2} GiB", gib(*saved_bytes)) } else { String::new() };
    let load = if *load { ", under load" } else { "" };
    format!("guests {guests} of {most}{load}, available {:.2} GiB{saved}", gib(*available_bytes))
}

/// Seconds that the trials from `next` on will take.
fn seconds_left(planned_s: &[f64], next: usize, around_s: f64) -> f64 {
    planned_s.iter().skip(next).map(|planned| planned + around_s).sum()
}

/// Seconds that a trial is planned to take: its load, and in an ascent that of all levels, with the rest before each and, where
/// memory is merged, the longest wait for that.
fn planned_s(trial: &PlannedTrial, study: &Study) -> f64 {
    let Some(case) = study.cases.iter().find(|case| case.id == trial.case) else { return 0.0 };
    let load = case.phases.total().as_secs_f64();
    let Some(spec) = &case.density else { return load };
    let merges = study.arms.iter().any(|arm| arm.id == trial.arm && arm.host_memory.merging.is_some());
    let settle = if merges { spec.settle.as_secs_f64() } else { 0.0 };
    f64::from(spec.guests.levels_at_most()) * (load + spec.rest.as_secs_f64() + settle)
}

impl State {
    /// How the time that is told is meant.
    fn about(&self) -> &'static str {
        if self.ascents { "at most about" } else { "about" }
    }
}

impl Observer for Progress {
    fn run_began(&self, plan: &Plan, done: u32) {
        let planned_s: Vec<f64> = plan.trials.iter().map(|trial| planned_s(trial, &plan.study)).collect();
        let total = Duration::from_secs_f64(seconds_left(&planned_s, done as usize, AROUND_GUESS_S));
        let about = {
            let mut state = self.state.borrow_mut();
            state.ascents = plan.study.cases.iter().any(|case| case.density.is_some());
            state.planned_s = planned_s;
            state.about()
        };
        self.bar.set_length(plan.trials.len() as u64);
        self.bar.set_position(u64::from(done));
        self.line(&format!(
            "{}: {} trials in {} blocks, {about} {}",
            plan.study.name,
            plan.trials.len(),
            plan.study.blocks,
            minutes(total)
        ));
        for deviation in &plan.deviations {
            self.line(&format!("note: {deviation}"));
        }
    }

    fn trial_began(&self, trial: &PlannedTrial) {
        let mut state = self.state.borrow_mut();
        state.label = format!("block {}, {}, {}", trial.block + 1, trial.case, trial.arm);
        let around = if state.measured == 0 { AROUND_GUESS_S } else { state.around_s / f64::from(state.measured) };
        let left = seconds_left(&state.planned_s, trial.index as usize, around);
        state.ends_at = Some(Instant::now() + Duration::from_secs_f64(left));
    }

    fn phase_entered(&self, _: &PlannedTrial, phase: Phase) {
        self.show(phase);
    }

    fn ascending(&self, _: &PlannedTrial, now: &AscentNow) {
        let text = format!("{}: {}", self.state.borrow().label, ascent(now));
        if !self.bar.is_hidden() {
            self.bar.set_message(text);
        } else if now.load {
            eprintln!("{text}");
        }
    }

    fn trial_ended(&self, record: &TrialRecord) {
        let planned = &record.planned;
        {
            let mut state = self.state.borrow_mut();
            let planned_s = state.planned_s.get(planned.index as usize).copied().unwrap_or(record.load_s);
            state.around_s += (record.wall_s - planned_s).max(0.0);
            state.measured += 1;
        }
        self.bar.inc(1);
        let what = format!("block {}, {}, {}", planned.block + 1, planned.case, planned.arm);
        match &record.outcome {
            Outcome::Completed(_) => {}
            Outcome::Invalid { reason } => {
                self.state.borrow_mut().failures += 1;
                self.line(&format!("{what}: invalid: {reason}"));
            }
            Outcome::Failed { phase, reason } => {
                self.state.borrow_mut().failures += 1;
                self.line(&format!("{what}: failed in {phase}: {reason}"));
            }
        }
        if self.bar.is_hidden() && (planned.index + 1).is_multiple_of(10) {
            eprintln!("{} of {} trials", planned.index + 1, self.state.borrow().planned_s.len());
        }
    }

    fn note(&self, text: &str) {
        self.line(text);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_one() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }

    #[test]
    fn how_far_an_ascent_is_is_told_with_what_is_saved_where_something_is() {
        let now = AscentNow { guests: 3, most: 32, load: false, available_bytes: 5 << 29, saved_bytes: 0 };
        assert_eq!(ascent(&now), "guests 3 of 32, available 2.50 GiB");
        let now = AscentNow { load: true, saved_bytes: 1 << 30, ..now };
        assert_eq!(ascent(&now), "guests 3 of 32, under load, available 2.50 GiB, saved 1.00 GiB");
    }

    #[test]
    fn what_is_left_counts_the_trials_to_come_and_what_surrounds_them() {
        assert_eq!(seconds_left(&[2.0, 3.0, 4.0], 1, 0.5), 8.0);
        assert_eq!(seconds_left(&[2.0], 1, 0.5), 0.0);
        assert_eq!(minutes(Duration::from_secs(91)), "2 min");
    }

    #[test]
    fn an_ascent_is_planned_with_all_its_levels_and_the_waits_before_them() {
        let text = r#"
            schema = 1
            name = "ascent"
            question = "How many?"
            baseline = "plain"
            blocks = 1
            noise-floor = false
            trust-domain = "this test's guests alone"
            arms.plain = { platform = "native" }
            arms.merged = { platform = "native", merging = "tare" }
            guest = { cpus = 1, memory = "1GiB" }
            phases = { steady-state = "10s" }
            cases.lazy.workload = "java"
            cases.lazy.load = { closed = { clients = 1 } }
            cases.lazy.parameters = { heap = "512MiB" }
            cases.lazy.density = { guests = [1, 2, 4], settle = "20s", rest = "5s" }
        "#;
        let study = tare_study::parse("test", text, &crate::catalog::Registries).unwrap().study;
        let of = |arm: &str| {
            let trial = PlannedTrial { index: 0, block: 0, case: "lazy".into(), arm: arm.into() };
            planned_s(&trial, &study)
        };
        let load = study.cases[0].phases.total().as_secs_f64();
        assert_eq!((of("plain"), of("merged")), (3.0 * (load + 5.0), 3.0 * (load + 25.0)));
    }
}
