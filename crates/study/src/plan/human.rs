//! A plan for people.

use std::fmt::Write;

use tare_model::plan::Plan;
use tare_model::study::{Case, CaseSchedule, Guests, Precision, Study};
use tare_model::turns::{TurnSpec, Waiting};
use tare_model::units::{ByteSize, Span};
use tare_model::written;

use super::{capacity, cpu_target, cpu_words, density};
use crate::host::HostFacts;

/// Most trials that are listed one by one: above them stands what is to be read.
const LISTED_MAX: usize = 60;

/// The plan as `tare plan` prints it: what it costs, where it runs, how that differs from what the study asks, and
/// then the trials in order, of very many the first. `host` is the one that it was made for.
pub fn human(plan: &Plan, host: &HostFacts) -> String {
    let mut text = summary(plan, host);
    let widest = plan.study.cases.iter().map(|case| case.id.len()).max().unwrap_or(0).max("case".len());
    line(&mut text, &format!("\n{:>7} {:>5}  {:widest$}  arm", "trial", "block", "case"));
    let steps = plan.steps();
    for step in steps.iter().take(LISTED_MAX) {
        let [trial, ..] = step else { continue };
        // People count from one.
        let (number, block) = (trial.index + 1, trial.block);
        let number =
            if step.len() > 1 { format!("{number}-{}", number as usize + step.len() - 1) } else { number.to_string() };
        // Trials of one step are of several arms, or of one whose guest meets several conditions.
        let mut arms: Vec<&str> = step.iter().map(|trial| trial.arm.as_str()).collect();
        arms.dedup();
        let case = match step.iter().all(|other| other.case == trial.case) {
            true => trial.case.as_str(),
            false => plan.study.cases.iter().find(|case| case.id == trial.case).map_or("", Case::family),
        };
        line(&mut text, &format!("{number:>7} {block:>5}  {case:widest$}  {}", arms.join(", ")));
    }
    let more: usize = steps.iter().skip(LISTED_MAX).map(|step| step.len()).sum();
    if more > 0 {
        line(&mut text, &format!("{:>7} and {more} more, all of them in `tare plan --format json`", ""));
    }
    text
}

fn summary(plan: &Plan, host: &HostFacts) -> String {
    let (study, cost) = (&plan.study, &plan.cost);
    let mut text = String::new();
    line(&mut text, &format!("{}: {}", study.name, study.question));
    let at_most = if study.is_open_ended() { "at most " } else { "" };
    let counts = format!(
        "{} = {} x {} x {}",
        plan.trials.len(),
        blocks(study),
        counted(study.cases.len(), "case"),
        counted(study.arms.len(), "arm"),
    ) + &again(plan);
    let mut rows = vec![("trials", vec![format!("{at_most}{counts}, seed {}", study.seed)])];
    #[expect(clippy::float_cmp, reason = "1 is written as such, never computed")]
    if study.scale != 1.0 {
        let what = "every phase is that many times as long as the study says";
        rows.push(("scale", vec![format!("{}: {what}", study.scale)]));
    }
    let mut memory = vec![format!("{} promised to guests at one time, at most", size(cost.memory))];
    // Guests that are all elsewhere are promised nothing of this host.
    let host = (cost.memory.0 > 0).then_some(host);
    memory.extend(host.map(|host| density::promises(study, host)).unwrap_or_default());
    rows.extend([
        ("published", published(study)),
        ("baseline", std::iter::once(baseline(plan)).chain(alone(study).map(str::to_owned)).collect()),
        ("schedule", schedule(study)),
        ("blocks", precision(study)),
        ("time", duration(plan)),
        ("searches", capacity::words(study)),
        ("targets", cpu_target::words(study)),
        ("waits", capacity::waits(study)),
        ("score", capacity::score(study)),
        ("guests", guests(study, host)),
        ("held out", held_out(study)),
        ("memory", memory),
        ("starts", starts(study)),
        ("host", density::host_memory(study)),
        ("trust", density::trust(study)),
        ("disk", vec![format!("{} at most", size(cost.disk))]),
        ("CPUs", vec![cpus(plan), plan.cpus.note.clone()]),
        ("hash", vec![plan.hash.clone()]),
    ]);
    for (name, values) in rows {
        for (n, value) in values.iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            line(&mut text, format!("  {name:<9} {value}").trim_end());
        }
    }
    if !plan.differences.is_empty() {
        line(&mut text, "\nOn this host the run will differ from the study:");
        plan.differences.iter().for_each(|difference| line(&mut text, &format!("  - {difference}")));
    }
    text
}

/// From what guests are started, where that is not from nothing.
fn starts(study: &Study) -> Vec<String> {
    study.arms.iter().filter_map(|arm| Some(format!("`{}`: {}", arm.id, arm.start.words()?))).collect()
}

/// Which report the study repeats.
fn published(study: &Study) -> Vec<String> {
    let words = study.original.iter().map(|original| {
        let deviations = counted(original.deviations.len(), "deviation");
        format!(
            "report {}, about {}; {deviations} in the study file, and the report",
            original.report,
            original.subject.join(", ")
        )
    });
    words.collect()
}

/// How the arms of each case share the time of a block.
fn schedule(study: &Study) -> Vec<String> {
    let groups = density::by_case(study, |case| {
        Some(match &case.schedule {
            CaseSchedule::Turns(spec) => turns(spec, case.phases.steady_state),
            CaseSchedule::Pairs { turns: spec, why, .. } => {
                format!("{}; in pairs with the baseline, because {why}", turns(spec, case.phases.steady_state))
            }
            CaseSchedule::Trials { why } => format!("one trial after the other: {why}"),
            CaseSchedule::Conditions(condition) => {
                let TurnSpec { turn, warm_up, gap, .. } = condition.turns;
                format!(
                    "conditions of one guest for each arm and block, in turns of {turn} of which {warm_up} are not measured, {gap} between two, \
                     in which the neighbours of the next one begin"
                )
            }
        })
    });
    groups.into_iter().map(|(cases, how)| format!("{cases}: {how}")).collect()
}

fn turns(spec: &TurnSpec, steady_state: Span) -> String {
    let waiting = match spec.waiting {
        Waiting::Idle => "idle",
        Waiting::Frozen => "stopped",
    };
    if let Some(commands) = spec.commands {
        let runs = counted(commands as usize, "round");
        return format!("turns of one command each, {runs}, {} between two, {waiting} meanwhile", spec.gap);
    }
    let warm_up =
        if spec.warm_up.ns > 0 { format!(" of which {} are not measured", spec.warm_up) } else { String::new() };
    let few = match spec.rounds_in(steady_state) {
        rounds if rounds < TurnSpec::FEWEST_ROUNDS => {
            format!("; steady state has {} of them, ten and more are better", rounds)
        }
        _ => String::new(),
    };
    format!("turns of {}{warm_up}, {} between two, {waiting} meanwhile{few}", spec.turn, spec.gap)
}

/// Trials of the baseline beside one for each block and case: every pair has its own.
fn again(plan: &Plan) -> String {
    let study = &plan.study;
    let more: u32 = study.cases.iter().map(|case| case.schedule.pairs() - 1).sum::<u32>() * study.most_blocks();
    if more == 0 { String::new() } else { format!(" + {more} of the baseline, one for each further pair") }
}

/// How often every arm of a case runs.
fn blocks(study: &Study) -> String {
    let (least, most) = study.block_range();
    let most_words = counted(most as usize, "block");
    if least == most { most_words } else { format!("{least} to {most_words}") }
}

/// When a case has blocks enough, where that follows from its intervals.
fn precision(study: &Study) -> Vec<String> {
    let sentence = |rule: Precision| {
        let until = written::percent(rule.until);
        format!("{} of each case, until no interval reaches further than {until} from its estimate", blocks(study))
    };
    let spare = || {
        format!("{} of each case: {} spare, for such as are disturbed from outside", blocks(study), study.spare_blocks)
    };
    let spare = (study.spare_blocks > 0).then(spare);
    study.precision.map(sentence).into_iter().chain(spare).collect()
}

fn duration(plan: &Plan) -> Vec<String> {
    let (measuring, around) = (plan.cost.measuring, plan.cost.around);
    let whole = Span { ns: measuring.ns.saturating_add(around.ns) };
    let (least, most) = plan.study.block_range();
    let total = if plan.study.is_open_ended() {
        let share = f64::from(least) / f64::from(most.max(1));
        let (least, most) = (time(Span { ns: (whole.ns as f64 * share) as u64 }), time(whole));
        format!("{least} to {most} for {}; of the most", blocks(&plan.study))
    } else {
        time(whole)
    };
    let parts = format!("{total}: {} measuring, {} around it", time(measuring), time(around));
    let searching = capacity::measuring_at_most(&plan.study)
        .map(|most| format!("at most {} measuring, if each search takes every try that it may", time(most)));
    let target = cpu_target::further_at_most(&plan.study).map(|more| {
        format!("up to {} more, if each search for a share of CPU takes every step that it may", time(more))
    });
    let mut lines = if !plan.study.cases.iter().any(|case| case.load.is_density()) {
        vec![format!("about {parts}")]
    } else {
        let merges = plan.study.merges();
        let settles = if merges { ", and merging takes all of `settle` at each number of guests" } else { "" };
        vec![format!("at most about {parts}"), format!("if no scale-up stops before its end{settles}")]
    };
    lines.extend(searching);
    lines.extend(target);
    lines
}

fn cpus(plan: &Plan) -> String {
    format!("driver {}, guests {}", cpu_words(&plan.cpus.client), cpu_words(&plan.cpus.guests))
}

/// Cases that measure several guests at one time, or with several drivers, or add them; none is the rule.
fn guests(study: &Study, host: Option<&HostFacts>) -> Vec<String> {
    let several = study.cases.iter().map(|case| (case, case.load.guests()));
    let mut all: Vec<String> = several
        .filter(|(_, Guests { count, drivers })| *count > 1 || *drivers > 1)
        .map(|(case, Guests { count, drivers })| {
            let (guests, drivers) = (counted(count as usize, "guest"), counted(drivers as usize, "driver"));
            format!("`{}` measures {guests} at one time, {drivers} each", case.id)
        })
        .collect();
    all.extend(density::words(study, host));
    all.extend(instances(study));
    all
}

/// Cases that have several instances of the application in each guest; none is the rule.
fn instances(study: &Study) -> Vec<String> {
    let several = density::by_case(study, |case| {
        let count = counted(case.instances as usize, "instance");
        (case.instances > 1).then(|| format!("{count} of the application in each guest"))
    });
    several.into_iter().map(|(cases, words)| format!("{cases}: {words}")).collect()
}

/// Cases that check what is predicted.
fn held_out(study: &Study) -> Vec<String> {
    let cases: Vec<String> =
        study.cases.iter().filter(|case| case.held_out).map(|case| format!("`{}`", case.id)).collect();
    if cases.is_empty() {
        return Vec::new();
    }
    vec![format!("{}: predicted from the other cases, and measured to check that", cases.join(", "))]
}

/// What to know of a study of one arm, which compares nothing; a search has an answer all the same.
pub fn alone(study: &Study) -> Option<&'static str> {
    let one = study.arms.iter().filter(|arm| arm.replica_of.is_none()).count() == 1;
    let searches = study.cases.iter().any(|case| case.load.is_capacity() || case.load.is_density());
    (one && !searches)
        .then_some("the study has no other arm, so its figures are compared with nothing: add `[arms.NAME]` to compare")
}

fn baseline(plan: &Plan) -> String {
    let replica = plan.study.arms.iter().find(|arm| arm.replica_of.is_some());
    let floor = replica.map_or_else(
        || "not repeated, so the noise floor will not be known".to_owned(),
        |arm| format!("repeated as `{}` to show the noise floor", arm.id),
    );
    format!("`{}`, {floor}", plan.study.baseline)
}

/// A line at the end of a text. Writing into a String cannot fail.
fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{line}");
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The two largest units of a time: `2 h 30 min`, `3 min 36 s`, `12 s`, `240 ms`.
/// A length of time, to the second, for people.
pub fn time(span: Span) -> String {
    let seconds = (span.ns + 500_000_000) / 1_000_000_000;
    match seconds {
        _ if span.ns < 1_000_000_000 => format!("{} ms", span.ns / 1_000_000),
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// A size with one decimal in its unit.
pub(super) fn size(size: ByteSize) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.iter().find(|&&(_, bytes)| size.0 >= bytes);
    unit.map_or_else(|| size.to_string(), |&(name, bytes)| format!("{:.1} {name}", size.0 as f64 / bytes as f64))
}

/// A size as a study has it, unless that takes more digits than people read: then rounded.
pub(super) fn asked(asked: ByteSize) -> String {
    let exact = asked.to_string();
    if exact.chars().filter(char::is_ascii_digit).count() > 5 { size(asked) } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_rounded_for_people() {
        assert_eq!(time(Span::from_millis(240)), "240 ms");
        assert_eq!(time(Span::from_millis(59_600)), "1 min 0 s");
        assert_eq!(time(Span::from_secs(216)), "3 min 36 s");
        assert_eq!(time(Span::from_secs(9000)), "2 h 30 min");
        assert_eq!(size(ByteSize(640 << 20)), "640.0 MiB");
        assert_eq!(size(ByteSize(7_000_000_000)), "6.5 GiB");
        assert_eq!(size(ByteSize(12)), "12B");
        assert_eq!(asked(ByteSize(256 << 20)), "256MiB");
        assert_eq!(asked(ByteSize(10_000_000_000)), "9.3 GiB", "10 GB are no whole number of a larger unit than KiB");
    }
}
