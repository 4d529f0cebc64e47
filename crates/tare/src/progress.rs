//! What the terminal shows during a run.

mod searches;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tare_controller::{CpuSearchNow, Observer, ScaleUpNow, TryNow};
use tare_model::Span;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::precision::{Judged, WhyEnded};
use tare_model::study::{CaseLoad, Study};
use tare_model::text::brief;
use tare_model::trial::{Outcome, Phase, TrialRecord};
use tare_model::written;

use self::searches::{cpu_search, held, tried, trying};
use crate::output;

/// A bar with an honest estimate of the time left: what is planned for the trials to come, plus, for
/// each, what the trials so far took beside it. Where trials are scale-ups, that is the most: a scale-up that ends early takes less.
/// Where they are searches, it is what is likely, and the most is shown beside it.
pub struct Progress {
    bar: ProgressBar,
    state: RefCell<State>,
    /// The run folder, whose report has all that guests said.
    out: PathBuf,
    /// Whether lines below the bar say where the run is.
    below: Cell<bool>,
}

#[derive(Default)]
struct State {
    planned: Vec<Planned>,
    /// For each trial, the first trial of its step (a set, or the trial alone), and how many trials that has.
    steps: Vec<(u32, u32)>,
    /// Blocks of the study, and for cases in pairs how many of their own each of them has.
    blocks: u32,
    pairs: BTreeMap<String, u32>,
    /// The step under way, by its first trial, and the phase that it has come to: the arms of a set go through the phases one by one.
    step: Option<(u32, Option<Phase>)>,
    /// The trials of the plan, in order.
    trials: Vec<PlannedTrial>,
    /// Blocks that a case is likely to take, where their number follows from its intervals and that is known.
    likely: BTreeMap<String, u32>,
    /// Whether what is measured decides how many blocks there are.
    open_ended: bool,
    /// Whether some trials are scale-ups.
    scale_ups: bool,
    /// What each trial or try takes beside its load, seconds, as the plan reckons it.
    reckoned_s: f64,
    /// What trials and tries took beside their load, seconds.
    around_s: f64,
    /// So many of them.
    measured: u32,
    label: String,
    /// The try that a search is at.
    trying: Option<Trying>,
    ends_at: Option<Instant>,
    failures: u32,
}

/// What a trial is planned to take; of the trials of a set each an equal part.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Planned {
    /// Each time that load is offered, seconds, with the waits before it.
    each_s: f64,
    /// How often it is, in instances of their own: once, but in a search as often as is likely.
    tries: u32,
    /// How often it is at most.
    at_most: u32,
    /// Whether its case is not likely to take its block.
    spared: bool,
}

/// A try under way.
struct Trying {
    began: Instant,
    words: String,
}

impl Progress {
    /// Nothing shown yet of the run in the folder `out`.
    pub fn new(out: &Path) -> Self {
        let bar = ProgressBar::new(0);
        bar.set_style(style(TEMPLATE));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, state: RefCell::default(), out: out.to_owned(), below: Cell::new(false) }
    }

    /// Whether there is a bar; without one, progress is in lines.
    pub fn is_bar(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// From now on these lines are below the bar, which leaves to them where the run is.
    pub fn put_below(&self, lines: &str) {
        if !self.below.replace(true) {
            self.bar.set_style(style(TEMPLATE_ABOVE));
        }
        self.bar.set_prefix(lines.trim_end().to_owned());
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Why a trial has no figures. Of what is long only the end is shown here.
    fn reason(&self, what: &str, reason: &str) {
        let place = self.out.join("report.html");
        let all = || format!("all of it is in {} when the run is over", place.display());
        let shown = brief(reason).map_or_else(|| reason.to_owned(), |short| format!("{short}\n{}", all()));
        self.line(&format!("{what}: {shown}"));
    }

    /// A line above the bar; where there is no terminal, a line on standard error.
    fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            output::note(text);
        } else {
            self.bar.println(output::shown(text, false));
        }
    }

    fn show(&self, phase: Phase) {
        let state = self.state.borrow();
        let left = state.ends_at.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map_or_else(String::new, |left| format!("{} {} left, ", state.about(), minutes(left)));
        let trying = state.trying.as_ref().map_or_else(String::new, |trying| format!(", {}", trying.words));
        let place = if self.below.get() { String::new() } else { format!("{}{trying}: ", state.label) };
        let text = format!("{left}{place}{phase}");
        self.bar.set_message(output::shown(&text, false));
    }
}

/// What is too long for the line is cut off at its end.
const TEMPLATE: &str = "[{elapsed_precise}] {bar:20} {pos}/{len} {wide_msg}";
/// The same with lines below it.
const TEMPLATE_ABOVE: &str = "[{elapsed_precise}] {bar:20} {pos}/{len} {wide_msg}\n{prefix}";

/// Both templates are constants, which a test parses.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// A time as `tare plan` writes it.
fn minutes(left: Duration) -> String {
    tare_study::time(Span { ns: u64::try_from(left.as_nanos()).unwrap_or(u64::MAX) })
}

/// Whose turns they are, for people.
fn set_label(trial: &PlannedTrial, arms: u32, blocks: u32) -> String {
    format!("block {} of {blocks}, case {}: {arms} arms in turns", trial.block, trial.case)
}

/// What a run is to do, and how long that takes: `least` at least, where its blocks follow from intervals.
fn began(plan: &Plan, least: Option<String>, time: &str) -> String {
    let (name, trials, (fewest, most)) = (&plan.study.name, plan.trials.len(), plan.study.block_range());
    let blocks = format!("{most} {}", if most == 1 { "block" } else { "blocks" });
    let Some(least) = least else {
        return format!("{name}: {trials} trials in {blocks}, {time}");
    };
    let why = plan.study.precision.map_or_else(
        || format!("{} spare", plan.study.spare_blocks),
        |rule| format!("until {}", written::percent(rule.until)),
    );
    format!("{name}: at most {trials} trials in {fewest} to {blocks} ({why}), {least} to {time}")
}

/// How narrow the intervals of a case are when it ends, which has so many blocks of its own for each of the study.
fn case_ended(case: &str, pairs: u32, judged: &Judged, why: WhyEnded) -> String {
    let blocks = format!("{} blocks{}", judged.blocks, if pairs > 1 { " of each pair" } else { "" });
    let width = judged.width.map_or_else(
        || "an interval is missing".to_owned(),
        |width| format!("the widest interval reaches {:.1} % from its estimate", width * 100.0),
    );
    match why {
        WhyEnded::Precise => format!("{case}: precise enough after {blocks}: {width}"),
        WhyEnded::AtMost => {
            format!("{case}: ends after {blocks}, the most that the study allows: {width}")
        }
        WhyEnded::NothingCompared => {
            format!("{case}: ends after {blocks}, for no arm has a ratio to the baseline")
        }
        WhyEnded::Undisturbed => {
            format!("{case}: ends after {blocks}: as many as planned were not disturbed from outside")
        }
        WhyEnded::SparesUsed => {
            format!("{case}: ends after {blocks}, spare ones included: some are disturbed from outside all the same")
        }
    }
}

/// Which trial it is, for people.
fn label(trial: &PlannedTrial) -> String {
    format!("block {}, {}, {}", trial.block, trial.case, trial.arm)
}

/// How far the scale-up of guests is.
fn scale_up(now: &ScaleUpNow) -> String {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let ScaleUpNow { guests, most, load, available_bytes, saved_bytes } = now;
    let saved = if *saved_bytes > 0 { format!(", saved {:.2} GiB", gib(*saved_bytes)) } else { String::new() };
    let load = if *load { ", under load" } else { "" };
    let available = available_bytes.map_or_else(String::new, |bytes| format!(", available {:.2} GiB", gib(bytes)));
    format!("guests {guests} of {most}{load}{available}{saved}")
}

/// Seconds that the trials from `next` on will take.
fn seconds_left(planned: &[Planned], next: usize, around_s: f64) -> f64 {
    let left = planned.iter().skip(next).filter(|planned| !planned.spared);
    left.map(|planned| f64::from(planned.tries) * (planned.each_s + around_s)).sum()
}

/// What each trial is planned to take, in the order of the plan.
fn all_planned(plan: &Plan) -> Vec<Planned> {
    let of = |step: &&[PlannedTrial]| -> Vec<Planned> {
        let case = plan.study.cases.iter().find(|case| step.first().is_some_and(|trial| trial.case == case.id));
        let arms = u32::try_from(step.len()).unwrap_or(u32::MAX);
        match case.and_then(|case| Some((case.schedule.any_turns()?, case))).filter(|_| arms > 1) {
            Some((turns, case)) => {
                let each_s = turns.total(&case.phases, arms).as_secs_f64() / f64::from(arms);
                vec![Planned { each_s, tries: 1, at_most: 1, spared: false }; step.len()]
            }
            None => step.iter().map(|trial| planned(trial, &plan.study)).collect(),
        }
    };
    plan.steps().iter().flat_map(of).collect()
}

/// What a trial by itself is planned to take: its load; in a scale-up that of all levels, with the rest before each and, where
/// memory is merged, the longest wait for that; in a search that of all tries, or of all steps, that are likely.
fn planned(trial: &PlannedTrial, study: &Study) -> Planned {
    let once = |each_s| Planned { each_s, tries: 1, at_most: 1, spared: false };
    let Some(case) = study.cases.iter().find(|case| case.id == trial.case) else { return once(0.0) };
    let load = case.phases.total().as_secs_f64();
    match &case.load {
        CaseLoad::Fixed { .. } | CaseLoad::ShareOf { .. } => once(load),
        CaseLoad::Capacity(spec) => Planned { tries: spec.tries_likely(), at_most: spec.tries_at_most(), ..once(load) },
        CaseLoad::CpuTarget { target, .. } => {
            once(load + target.searching(&case.phases, target.steps_likely()).as_secs_f64())
        }
        CaseLoad::Density { spec, .. } => {
            let merges = study.arms.iter().any(|arm| arm.id == trial.arm && arm.host_memory.merging.is_some());
            let settle = if merges { spec.settle.as_secs_f64() } else { 0.0 };
            once(f64::from(spec.guests.levels_at_most()) * (load + spec.rest.as_secs_f64() + settle))
        }
    }
}

/// Tries that are likely to follow in a search that is at so many, this one counted: what was likely is no longer where it took more.
fn tries_left(planned: Planned, number: u32) -> u32 {
    let before = number.saturating_sub(1);
    planned.tries.saturating_sub(before).max(1).min(planned.at_most.saturating_sub(before).max(1))
}

impl State {
    /// How the time that is shown is meant.
    fn about(&self) -> &'static str {
        let is_most = self.scale_ups || (self.open_ended && self.likely.is_empty());
        if is_most { "at most about" } else { "about" }
    }

    /// Blocks that a case has for each block of the study.
    fn pairs_of(&self, case: &str) -> u32 {
        self.pairs.get(case).copied().unwrap_or(1)
    }

    /// Takes note of how many blocks a case is likely to take.
    fn foresee(&mut self, case: &str, blocks: u32) {
        self.likely.insert(case.to_owned(), blocks);
        let pairs = self.pairs_of(case);
        for (planned, trial) in self.planned.iter_mut().zip(&self.trials).filter(|(_, trial)| trial.case == case) {
            planned.spared = trial.block.saturating_sub(1) / pairs >= blocks;
        }
    }

    /// Trials that are likely to be run, in all.
    fn to_run(&self) -> u64 {
        self.planned.iter().filter(|planned| !planned.spared).count() as u64
    }

    /// How far the run is after so many trials, where no bar shows it.
    fn how_far(&self, done: u64) -> String {
        let trials = format!("{} trials", self.to_run());
        match self.ends_at.filter(|_| self.open_ended) {
            Some(at) => {
                let left = minutes(at.saturating_duration_since(Instant::now()));
                format!("{done} of likely {trials}, {} {left} left", self.about())
            }
            None => format!("{done} of {trials}"),
        }
    }

    /// The first trial of the step of a trial, and how many trials that has.
    fn step_of(&self, trial: &PlannedTrial) -> (u32, u32) {
        self.steps.get(trial.index as usize).copied().unwrap_or((trial.index, 1))
    }

    /// Whether the step has come to a phase in which it was not yet.
    fn is_further(&mut self, phase: Phase) -> bool {
        let Some((_, shown)) = &mut self.step else { return true };
        let further = shown.is_none_or(|shown| shown < phase);
        if further {
            *shown = Some(phase);
        }
        further
    }

    /// What surrounds each load, as far as is known, seconds.
    fn around_each_s(&self) -> f64 {
        if self.measured == 0 { self.reckoned_s } else { self.around_s / f64::from(self.measured) }
    }

    /// Notes when the run is likely to end: `tries` of this trial, and all trials after it.
    fn estimate(&mut self, trial: &PlannedTrial, tries: u32) {
        let (around, index) = (self.around_each_s(), trial.index as usize);
        let each_s = self.planned.get(index).map_or(0.0, |planned| planned.each_s);
        let left = f64::from(tries) * (each_s + around) + seconds_left(&self.planned, index + 1, around);
        self.ends_at = Some(Instant::now() + Duration::from_secs_f64(left));
    }

    /// Takes note of what a load took that was to take `planned_s`.
    fn took(&mut self, wall_s: f64, planned_s: f64) {
        self.around_s += (wall_s - planned_s).max(0.0);
        self.measured += 1;
    }

    /// What the whole run takes at most beyond what is likely, where it searches.
    fn most(&self, done: usize) -> Option<String> {
        let searches = self.planned.iter().any(|planned| planned.at_most > planned.tries);
        let most: Vec<Planned> = self.planned.iter().map(|own| Planned { tries: own.at_most, ..*own }).collect();
        searches.then(|| minutes(Duration::from_secs_f64(seconds_left(&most, done, self.reckoned_s))))
    }
}

impl Observer for Progress {
    fn run_began(&self, plan: &Plan, done: u32) {
        let (planned, steps) = (all_planned(plan), plan.steps());
        let adds_guests = plan.study.cases.iter().any(|case| case.load.is_density());
        // What `tare plan` says, shared out among the trials; what a scale-up waits for is in its trial's own time.
        let tries: f64 = planned.iter().map(|planned| f64::from(planned.tries)).sum();
        let whole_s = (plan.cost.measuring.ns as f64 + plan.cost.around.ns as f64) / 1e9;
        let around_s = (whole_s - seconds_left(&planned, 0, 0.0)).max(0.0) / tries.max(1.0);
        let total = Duration::from_secs_f64(seconds_left(&planned, done as usize, around_s));
        let (least, _) = plan.study.block_range();
        let first = || plan.trials.iter().zip(&planned).filter(|own| plan.study_block(own.0) <= least);
        let least: Option<Vec<Planned>> = plan.study.is_open_ended().then(|| first().map(|own| *own.1).collect());
        let (about, most) = {
            let mut state = self.state.borrow_mut();
            state.scale_ups = adds_guests;
            state.reckoned_s = around_s;
            state.open_ended = plan.study.is_open_ended();
            state.trials.clone_from(&plan.trials);
            state.planned = planned;
            state.blocks = plan.study.most_blocks();
            state.pairs = plan.study.cases.iter().map(|case| (case.id.clone(), case.schedule.pairs())).collect();
            let of =
                |step: &&[PlannedTrial]| step.iter().map(|_| (step[0].index, step.len() as u32)).collect::<Vec<_>>();
            state.steps = steps.iter().flat_map(of).collect();
            let most = state.most(done as usize).map_or_else(String::new, |most| format!(", at most {most}"));
            (state.about(), most)
        };
        self.bar.set_length(plan.trials.len() as u64);
        self.bar.set_position(done.into());
        let least = least.map(|least| Duration::from_secs_f64(seconds_left(&least, done as usize, around_s)));
        self.line(&began(plan, least.map(minutes), &format!("{about} {}{most}", minutes(total))));
        for difference in &plan.differences {
            self.line(&format!("note: {difference}"));
        }
    }

    fn trial_began(&self, trial: &PlannedTrial) {
        let mut state = self.state.borrow_mut();
        let (first, arms) = state.step_of(trial);
        if arms > 1 && state.step.is_some_and(|(under_way, _)| under_way == first) {
            return;
        }
        state.step = (arms > 1).then_some((first, None));
        let pairs = state.pairs_of(&trial.case);
        let label = if arms > 1 { set_label(trial, arms, state.blocks * pairs) } else { label(trial) };
        let likely = state.likely.get(&trial.case).map(|blocks| format!(" (of likely {} blocks)", blocks * pairs));
        state.label = label + &likely.unwrap_or_default();
        state.trying = None;
        let tries = state.planned.get(trial.index as usize).map_or(1, |planned| planned.tries);
        state.estimate(trial, tries);
    }

    fn trying(&self, trial: &PlannedTrial, now: &TryNow) {
        let mut state = self.state.borrow_mut();
        let tries = state.planned.get(trial.index as usize).map_or(1, |planned| tries_left(*planned, now.number));
        state.estimate(trial, tries);
        state.trying = Some(Trying { began: Instant::now(), words: trying(now) });
    }

    fn tried(&self, trial: &PlannedTrial, now: &TryNow, failed: Option<&str>) {
        {
            let mut state = self.state.borrow_mut();
            let each_s = state.planned.get(trial.index as usize).map_or(0.0, |planned| planned.each_s);
            if let Some(Trying { began, .. }) = state.trying.take() {
                state.took(began.elapsed().as_secs_f64(), each_s);
            }
        }
        self.reason(&label(trial), &tried(now, failed));
    }

    fn cpu_search(&self, trial: &PlannedTrial, now: &CpuSearchNow) {
        match now.took {
            None => self.state.borrow_mut().trying = Some(Trying { began: Instant::now(), words: cpu_search(now) }),
            Some(took) => {
                self.state.borrow_mut().trying = None;
                self.line(&format!("{}: {}", label(trial), held(now, took)));
            }
        }
    }

    fn phase_entered(&self, _: &PlannedTrial, phase: Phase) {
        let further = self.state.borrow_mut().is_further(phase);
        if further {
            self.show(phase);
        }
    }

    fn ascending(&self, _: &PlannedTrial, now: &ScaleUpNow) {
        let text = format!("{}: {}", self.state.borrow().label, scale_up(now));
        if !self.bar.is_hidden() {
            self.bar.set_message(output::shown(&text, false));
        } else if now.load {
            output::note(&text);
        }
    }

    fn trial_ended(&self, record: &TrialRecord) {
        let planned = &record.planned;
        {
            let mut state = self.state.borrow_mut();
            state.trying = None;
            let own = state.planned.get(planned.index as usize).copied();
            // The tries of a search were counted one by one.
            if own.is_none_or(|own| own.at_most == 1) {
                state.took(record.wall_s, own.map_or(record.load_s, |own| own.each_s));
            }
        }
        self.bar.inc(1);
        let what = label(planned);
        match &record.outcome {
            Outcome::Completed(measured) => {
                if let Some(search) = &measured.search {
                    self.line(&format!("{what}: {}", search.ended));
                }
            }
            Outcome::Invalid { reason } => {
                self.state.borrow_mut().failures += 1;
                self.reason(&format!("{what}: invalid"), reason);
            }
            Outcome::Failed { phase, reason } => {
                self.state.borrow_mut().failures += 1;
                self.reason(&format!("{what}: failed in {phase}"), reason);
            }
        }
        let done = self.bar.position();
        if self.bar.is_hidden() && done.is_multiple_of(10) {
            output::note(&self.state.borrow().how_far(done));
        }
    }

    fn judged(&self, case: &str, judged: &Judged) {
        let (to_run, pairs) = {
            let mut state = self.state.borrow_mut();
            state.foresee(case, judged.likely);
            (state.to_run(), state.pairs_of(case))
        };
        self.bar.set_length(to_run);
        if let Some(why) = judged.ended {
            self.line(&case_ended(case, pairs, judged, why));
        }
    }

    fn note(&self, text: &str) {
        self.line(text);
    }
}

#[cfg(test)]
mod tests {
    use tare_model::capacity::ProbePurpose;
    use tare_model::study::Guests;

    use super::*;

    #[test]
    fn the_templates_of_the_bar_are_some() {
        assert!([TEMPLATE, TEMPLATE_ABOVE].iter().all(|template| ProgressStyle::with_template(template).is_ok()));
    }

    #[test]
    fn how_far_a_scale_up_is_is_shown_with_what_is_saved_where_something_is() {
        let now = ScaleUpNow { guests: 3, most: 32, load: false, available_bytes: Some(5 << 29), saved_bytes: 0 };
        assert_eq!(scale_up(&now), "guests 3 of 32, available 2.50 GiB");
        let now = ScaleUpNow { load: true, saved_bytes: 1 << 30, ..now };
        assert_eq!(scale_up(&now), "guests 3 of 32, under load, available 2.50 GiB, saved 1.00 GiB");
        let elsewhere = ScaleUpNow { available_bytes: None, saved_bytes: 0, ..now };
        assert_eq!(scale_up(&elsewhere), "guests 3 of 32, under load");
    }

    #[test]
    fn what_is_left_counts_the_trials_to_come_and_what_surrounds_them() {
        let once = |each_s| Planned { each_s, tries: 1, at_most: 1, spared: false };
        assert_eq!(seconds_left(&[2.0, 3.0, 4.0].map(once), 1, 0.5), 8.0);
        assert_eq!(seconds_left(&[once(2.0)], 1, 0.5), 0.0);
        let search = Planned { tries: 10, at_most: 30, ..once(2.0) };
        assert_eq!(seconds_left(&[search, once(1.0)], 0, 0.5), 26.5);
        let left: Vec<u32> = [1, 8, 11, 29, 30, 31].into_iter().map(|number| tries_left(search, number)).collect();
        assert_eq!(left, [10, 3, 1, 1, 1, 1]);
        let state = State { planned: vec![search, once(1.0)], ..State::default() };
        let state = State { reckoned_s: 0.5, ..state };
        assert_eq!((state.most(0).as_deref(), state.most(1).as_deref()), (Some("1 min 17 s"), Some("2 s")));
        assert_eq!(State { planned: vec![once(1.0)], ..State::default() }.most(0), None);
    }

    #[test]
    fn what_is_left_follows_the_blocks_that_a_case_is_likely_to_take() {
        let trial =
            |index, case: &str| PlannedTrial { index, block: index / 2 + 1, case: case.into(), arm: "a".into() };
        let trials: Vec<PlannedTrial> = (0..8).map(|n| trial(n, if n % 2 == 0 { "quiet" } else { "loud" })).collect();
        let once = Planned { each_s: 1.0, tries: 1, at_most: 1, spared: false };
        let mut state = State { planned: vec![once; 8], trials, open_ended: true, ..State::default() };
        assert_eq!((state.to_run(), state.about()), (8, "at most about"));
        state.foresee("quiet", 2);
        state.foresee("loud", 3);
        // Two blocks of the one and three of the other; of these the first block is done.
        assert_eq!((state.to_run(), state.about(), seconds_left(&state.planned, 2, 0.0)), (5, "about", 3.0));
        state.foresee("loud", 4);
        assert_eq!(state.to_run(), 6, "more than was foreseen");
        let judged = Judged { blocks: 2, width: Some(0.012), ended: Some(WhyEnded::Precise), likely: 2 };
        let said = case_ended("quiet", 1, &judged, WhyEnded::Precise);
        assert_eq!(said, "quiet: precise enough after 2 blocks: the widest interval reaches 1.2 % from its estimate");
        // In pairs its trials are of twice as many blocks.
        state.pairs.insert("quiet".to_owned(), 2);
        state.foresee("quiet", 1);
        assert_eq!(state.to_run(), 6);
        assert!(
            case_ended("quiet", 2, &judged, WhyEnded::AtMost).contains("ends after 2 blocks of each pair, the most")
        );
    }

    #[test]
    fn a_scale_up_is_planned_with_all_its_levels_and_the_waits_before_them() {
        let text = r#"
            schema = 1
            name = "scale-up"
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
            let trial = PlannedTrial { index: 0, block: 1, case: "lazy".into(), arm: arm.into() };
            planned(&trial, &study).each_s
        };
        let load = study.cases[0].phases.total().as_secs_f64();
        assert_eq!((of("plain"), of("merged")), (3.0 * (load + 5.0), 3.0 * (load + 25.0)));
    }

    #[test]
    fn a_try_is_shown_with_its_load_what_came_of_it_and_how_many_may_follow() {
        let now = |number, load: &str, purpose, held: Option<&str>, missed: Option<&str>| TryNow {
            number,
            at_most: 32,
            load: load.into(),
            purpose,
            held: held.map(Into::into),
            missed: missed.map(Into::into),
        };
        let first = now(1, "50 clients", ProbePurpose::Bracket, None, None);
        assert_eq!(trying(&first), "try 1 of at most 32, 50 clients (the first)");
        assert_eq!(tried(&first, None), "try 1, 50 clients: held (at most 31 left)");
        let down = now(2, "25 clients", ProbePurpose::Bracket, None, Some("50 clients"));
        assert!(trying(&down).ends_with("(below 50 clients)"));
        let between = now(5, "70 clients", ProbePurpose::Bisect, Some("50 clients"), Some("100 clients"));
        assert!(trying(&between).ends_with("70 clients (between 50 clients and 100 clients)"));
        assert_eq!(tried(&between, Some("slow")), "try 5, 70 clients: did not hold: slow (at most 27 left)");
        let again = now(9, "70 clients", ProbePurpose::Confirm, Some("70 clients"), Some("75 clients"));
        assert!(trying(&again).ends_with("(whether it holds again)"));
    }

    #[test]
    fn a_search_for_a_share_of_cpu_is_shown_with_what_each_load_took_and_planned_with_its_steps() {
        let now =
            CpuSearchNow { number: 2, at_most: 8, load: "80 clients".into(), target: 0.4, measured: false, took: None };
        assert_eq!(cpu_search(&now), "step 2 of at most 8, 80 clients (40 % of the guests' CPUs asked)");
        assert_eq!(held(&now, 0.3712), "step 2, 80 clients: 37.1 % of the guests' CPUs (40.0 % asked)");
        let last = CpuSearchNow { number: 4, measured: true, ..now };
        assert_eq!(cpu_search(&last), "measured at 80 clients (40 % of the guests' CPUs asked)");
        assert!(held(&last, 0.398).starts_with("measured, 80 clients: 39.8 %"));
        let (trial, study) = searched("workload = \"rr\", load = { closed = { clients = 3 } }");
        let target = tare_model::cpu_target::CpuTarget {
            kind: study.cases[0].load.kind(),
            share: 0.4,
            tolerance: 0.02,
            from: 1.0,
            most: 9.0,
            step: tare_model::Span::from_secs(30),
            steps: 8,
        };
        let without = planned(&trial, &study);
        let mut study = study;
        study.cases[0].load = CaseLoad::CpuTarget { target, guests: Guests::ONE };
        // A step of 30 s, and a third of it before each.
        assert_eq!(planned(&trial, &study), Planned { each_s: without.each_s + 160.0, ..without });
    }

    /// A study of one case with these fields, and its trial.
    fn searched(case: &str) -> (PlannedTrial, Study) {
        let text = format!(
            r#"
            schema = 1
            name = "search"
            question = "How much?"
            baseline = "plain"
            blocks = 1
            noise-floor = false
            arms.plain = {{ platform = "native" }}
            guest = {{ cpus = 1, memory = "1GiB" }}
            phases = {{ steady-state = "10s" }}
            cases.peak = {{ {case} }}
        "#
        );
        let study = tare_study::parse("test", &text, &crate::catalog::Registries).unwrap().study;
        (PlannedTrial { index: 0, block: 1, case: "peak".into(), arm: "plain".into() }, study)
    }

    #[test]
    fn the_arms_of_a_set_are_one_step_whose_phases_are_shown_once() {
        let (_, mut study) = searched(r#"workload = "rr""#);
        let arm = tare_model::study::Arm { id: "other".into(), ..study.arms[0].clone() };
        study.arms.push(arm);
        study.blocks = 6;
        let room = tare_model::ByteSize(1 << 40);
        let host = tare_study::HostFacts {
            cpus: vec![0, 1],
            memory_available: room,
            disk_free: room,
            ..tare_study::HostFacts::default()
        };
        let plan = tare_study::plan(&study, &host, &crate::catalog::Registries).unwrap();
        // 2000 rounds of 6 ms for each arm.
        assert_eq!(all_planned(&plan), vec![Planned { each_s: 12.0, tries: 1, at_most: 1, spared: false }; 12]);
        let progress = Progress::new(Path::new("out"));
        progress.run_began(&plan, 2);
        assert_eq!((progress.bar.length(), progress.bar.position()), (Some(12), 2));
        progress.trial_began(&plan.trials[4]);
        progress.phase_entered(&plan.trials[4], Phase::Prepare);
        progress.trial_began(&plan.trials[5]);
        let mut state = progress.state.borrow_mut();
        assert_eq!(state.label, "block 3 of 6, case peak: 2 arms in turns");
        assert!(!state.is_further(Phase::Provision), "of the second arm, while the first is prepared");
        assert!(state.is_further(Phase::Drive) && !state.is_further(Phase::Drive));
        drop(state);
        study.arms.push(tare_model::study::Arm { id: "third".into(), ..study.arms[0].clone() });
        let host = tare_study::HostFacts { memory_available: tare_model::ByteSize(2 << 30), ..host };
        let plan = tare_study::plan(&study, &host, &crate::catalog::Registries).unwrap();
        assert_eq!(all_planned(&plan).len(), 24);
        progress.run_began(&plan, 2);
        progress.trial_began(&plan.trials[6]);
        assert_eq!(progress.state.borrow().label, "block 4 of 12, case peak: 2 arms in turns");
    }

    #[test]
    fn a_search_is_planned_with_the_tries_that_are_likely_and_shown_with_the_most() {
        let (trial, study) =
            searched(r#"workload = "rr", capacity = { from = 50, most = 400 }, qos = { response_time_p99_s = "5ms" }"#);
        let case = &study.cases[0];
        let CaseLoad::Capacity(spec) = case.load else { panic!("{:?}", case.load) };
        let tries = (spec.tries_likely(), spec.tries_at_most());
        let each_s = case.phases.total().as_secs_f64();
        assert_eq!(planned(&trial, &study), Planned { each_s, tries: tries.0, at_most: tries.1, spared: false });
        assert!(tries.1 > tries.0);
    }
}
