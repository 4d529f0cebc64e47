//! How the figures were made, in paragraphs, with the constants in force.

use tare_model::findings::{CaseFindings, ConsolidationFindings, SizingFindings};
use tare_model::histogram::BEYOND;
use tare_model::plan::Plan;
use tare_model::published::Published;
use tare_model::study::Precision;
use tare_model::study::Study;
use tare_model::written::percent;

use crate::capacity;
use crate::comparison::NOISY_MIN;
use crate::density;
use crate::estimate::{ALPHA, POWER, RANK_BLOCKS_MIN};
use crate::flags::{GAP_INTERVALS_MAX, STEAL_MAX};
use crate::precision::IN_A_ROW;
use crate::steady::{CHANGE_MIN, POINTS_MIN, UNSTEADY_ALPHA};
use crate::{consolidation, isolation, limits, sizing, turns};

/// What has no figures.
const NO_FIGURES: &str = "A trial that is invalid or failed has no figures. It is listed with its reason, and its \
                          block does not count in the comparisons of its arm.";

/// What CPU time holds where driver and guests have CPUs of their own.
const CPU_TIME: &str = "CPU time of an operation is what the CPUs of the SUT did for the guests in the measured window: \
                        guests, hypervisors, interrupts, kernel threads. Other programs there are counted apart as \
                        foreign, and so are neighbours. Frames are received on the CPUs of the side that they are for (receive steering): \
                        what a guest's network path costs is the guest's on every arm, behind a veth \
                        and behind a tap. Where the parity table says that steering was not granted, what a guest behind a veth \
                        receives costs the driver's CPUs instead.";

/// What it holds where they share CPUs.
const SHARED_CPUS: &str = "Driver and guests share CPUs, and what each of them costs cannot be distinguished: there is no \
                           CPU time of an operation.";

/// What becomes of blocks without a ratio.
const MISSING: &str = "A block that ran and has no ratio, because a trial of either arm failed or does not have the figure, counts as \
                       the worst that it may have been: the interval holds whatever it was. Blocks that a third arm broke, and such as \
                       were not run, say nothing about the two and are left out. A driver at its limit in more than half of the blocks \
                       takes the verdict from the arm that does worse, and from arms that are found alike.";

/// What a verdict is, and for how many comparisons together.
fn of_verdicts(study: &Study, comparisons: usize) -> String {
    let margin = study.margin.map_or_else(String::new, |margin| {
        format!(
            " Arms are equivalent where the interval lies within the margin of {} that the study states (two one-sided tests, corrected \
             likewise).",
            percent(margin)
        )
    });
    format!(
        "The {comparisons} primary comparisons answer the study: each arm in the primary metric of each case, in guest start time and in the memory of an idle guest. Their p-values are corrected for \
         their number by Holm's method, so that of 100 studies of equal arms at most 5 claim any difference. A difference in another metric, \
         or one that the correction leaves unproven, is a lead. Intervals are not corrected: each is of 95 % by itself.{margin}"
    )
}

/// The paragraphs.
pub(crate) fn paragraphs(
    plan: &Plan,
    comparisons: usize,
    cases: &[CaseFindings],
    (together, sizes): (&[ConsolidationFindings], &[SizingFindings]),
) -> Vec<String> {
    let mut said = match &plan.study.published {
        Some(source) => published(plan, source),
        None => measured(plan, comparisons, cases),
    };
    said.extend(isolation::method(plan));
    said.extend(consolidation::method(together));
    said.extend(sizing::method(sizes));
    said
}

fn measured(plan: &Plan, comparisons: usize, cases: &[CaseFindings]) -> Vec<String> {
    let study = &plan.study;
    let percent = |share: f64| share * 100.0;
    let level = percent(1.0 - ALPHA);
    let replica = study.arms.iter().any(|arm| arm.replica_of.as_deref() == Some(&study.baseline));
    let mut paragraphs = vec![
        format!(
            "The unit of analysis is one value a trial. Each block ran every arm of every case once, each on a fresh instance, in an order \
             drawn with seed {}. {} Requests of different trials are never pooled to make an interval.",
            study.seed,
            number_of_blocks(study)
        ),
        effects(study, level),
        of_verdicts(study, comparisons),
        if replica {
            "The noise floor is what the baseline shows against itself: it ran twice in each block, and the floor is \
             the estimate of one run over the other, from as many blocks as an arm's. An arm is called better or worse \
             only when its estimate lies further from equality than the floor. Where the baseline differs from itself, after a \
             correction for the number of cases, the report opens with an alarm."
                .to_owned()
        } else {
            "The study ran the baseline once a block, so no noise floor was measured.".to_owned()
        },
        format!(
            "The smallest detectable difference is the one that {:.0} of 100 studies of this many blocks of this spread detect, from a \
             simulation of the rule of the verdict with normal noise; or the floor where that is larger. Where it is above {:.0} % and no \
             difference is detected, the verdict is \"too noisy to tell\".",
            percent(POWER),
            percent(NOISY_MIN)
        ),
        MISSING.to_owned(),
        format!(
            "Percentiles of a distribution come from histograms merged over blocks, each block with equal weight (bins \
             at most 0.1 % wide); their intervals come from the percentiles of the single blocks and may miss the \
             merged value. Percentiles among the metrics are estimates over the blocks' own. A percentile is given \
             where at least {BEYOND:.0} operations lie beyond it. Operations that were due and did not complete (failed, lost, timed out, \
             unfinished) count as longer than all that did: a percentile that lies among them was not reached and is no number. Where the \
             completed operations alone have another one, that is given beside it. Means are of completed operations, and of time-outs for as \
             long as they were waited for."
        ),
        format!(
            "Trials are flagged, and stay in: steal above {:.0} % of the SUT's CPU time; a pause between samples above \
             {GAP_INTERVALS_MAX:.0} sample intervals; a driver's rate that drifts (Mann-Kendall, Theil-Sen) or shifts \
             (Pettitt) by more than {:.0} % in the window with p < {UNSTEADY_ALPHA} (not checked with fewer than \
             {POINTS_MIN} intervals); lost, failed or unfinished operations; resources not granted as asked. Leaving \
             out odd trials after the fact would make the intervals too short.",
            percent(STEAL_MAX),
            percent(CHANGE_MIN)
        ),
        NO_FIGURES.to_owned(),
        if plan.cpus.are_separate() { CPU_TIME } else { SHARED_CPUS }.to_owned(),
    ];
    paragraphs.extend(turns::method(plan));
    paragraphs.extend(limits::method(cases));
    paragraphs.extend(of_parts(cases));
    paragraphs.extend(density::method(plan));
    paragraphs.extend(capacity::method(plan));
    paragraphs
}

/// What decided how many blocks there were.
fn number_of_blocks(study: &Study) -> String {
    let Some(Precision { at_least, until }) = study.precision else {
        let spare = match study.spare_blocks {
            0 => String::new(),
            n => format!(
                " At most {n} spare blocks replaced such as were disturbed from outside the arms (steal, foreign load, another run): only these \
                 flags decided, and the blocks that do not count are listed with the ratios that they would give."
            ),
        };
        return format!("Their number, {}, was fixed before the run.{spare}", study.blocks);
    };
    format!(
        "The rule for their number was fixed before the run: a case takes at least {at_least} blocks and at most {}, and ends when after \
         {IN_A_ROW} blocks in a row no interval of its primary metric, on any arm (the baseline's replica included), reaches further than \
         {} from its estimate. Only the widths of intervals decide, never an estimate or a verdict.",
        study.blocks,
        percent(until)
    )
}

/// What an effect is, and its interval.
fn effects(study: &Study, level: f64) -> String {
    let interval = if study.precision.is_some() {
        "the interval of the Wilcoxon signed-rank test, stretched by a factor that grows with the autocorrelation of neighbouring blocks and \
         that was set by simulation, so that an interval holds what it states although its own width ended the case and although blocks \
         in a row may be alike; its level is 95 %. Intervals of an arm's own values are not stretched"
    } else {
        "the exact interval of the Wilcoxon signed-rank test, which needs only that log ratios are symmetric, as the random order makes them \
         when there is no difference. The level given is the one attained"
    };
    format!(
        "An effect is the ratio of an arm to the baseline within a block. From {RANK_BLOCKS_MIN} blocks on it is the Hodges-Lehmann estimate \
         of the log ratios with {interval}. With 2 to {} blocks no distribution-free interval of {level:.0} % exists, so Student's t is \
         used, which assumes normal log ratios. What is estimated is the ratio of a typical fresh instance, not of the mean of all: a few slow \
         instances hardly move it.",
        RANK_BLOCKS_MIN - 1
    )
}

/// What is said of figures that others published: nothing that only those who measured them can know.
fn published(plan: &Plan, source: &Published) -> Vec<String> {
    let repeated = if plan.study.blocks > 1 {
        "Figures that were published several times for one arm are its blocks, in the order in which they were \
         printed. Blocks are paired by that order, which was not randomised."
    } else {
        "Each figure was published once: there is one block, so there are no intervals and no verdicts."
    };
    let mut said = vec![
        format!(
            "tare measured nothing here. The figures were published by others (report {}: {}). tare read them from the \
             files whose digests are given, changed none of them, and analysed them like its own. The original report \
             describes how, on what, in which order and how often they were measured; tare does not know it.",
            source.report, source.title
        ),
        repeated.to_owned(),
    ];
    if plan.study.cases.iter().any(|case| case.load.is_capacity()) {
        said.push(
            "Iterations that were published for one load stand as the tries of a search that held it. What else its \
             authors tried is unknown, so the true capacity may be higher by an unknown amount."
                .to_owned(),
        );
    }
    said
}

/// What is said only where a trial has several guests or drivers, or operations have steps.
fn of_parts(cases: &[CaseFindings]) -> Vec<String> {
    let mut said = Vec::new();
    if cases.iter().any(|case| !case.parts.is_empty()) {
        said.push(format!(
            "Several guests of one trial share the host and are no repeats: the trial has one value, the sum over them. Figures by guest and driver \
             are medians over the completed trials, as in published tables, from {RANK_BLOCKS_MIN} trials on with the exact interval of order statistics. The \
             last line is the median of the trials' own sums, which the sum of the medians above it need not be; the ratio beside it is the comparison \
             of the primary metric, paired within blocks."
        ));
    }
    if cases.iter().any(|case| !case.steps.is_empty()) {
        said.push(
            "The time of an operation by steps: of each trial, the time that its operations spent in a step over their \
             number; the figure is the estimate over the trials. Time outside all steps is the mean time of an \
             operation minus its steps: the driver's own time between them."
                .to_owned(),
        );
    }
    said
}
