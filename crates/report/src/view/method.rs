//! The method in a few lines, for who reads the answer; the paragraphs that argue it are folded below.

use tare_model::findings::Findings;
use tare_model::study::Study;
use tare_model::written;

use crate::format;
use crate::plot::arms::Arms;

/// Blocks from which on an interval needs no assumption about the shape of the noise.
const RANK_BLOCKS_MIN: u32 = 6;

/// At most ten lines; none of figures that others published, of which nobody here knows the method.
pub(super) fn brief(findings: &Findings, arms: &Arms) -> Vec<String> {
    let study = &findings.plan.study;
    if study.published.is_some() {
        return Vec::new();
    }
    let mut lines = vec![
        "What counts is one value for each fresh instance in a block. Requests of different instances are never pooled to make an \
         interval."
            .to_owned(),
        "Every time is taken by a clock outside the guest, and what did not complete is shown beside what did.".to_owned(),
    ];
    if study.cases.iter().any(|case| case.schedule.turns().is_some()) {
        lines.push(
            "Where arms took turns, all instances of a block were alive together and were driven in short turns in random order, so \
             that all arms saw the same seconds of the host."
                .to_owned(),
        );
    }
    if arms.iter().any(|arm| !arm.is_baseline && !arm.is_replica) {
        lines.extend(compared(findings, study, arms));
    }
    lines.push(
        "A flagged trial stays in the figures, because leaving out odd trials after the fact makes intervals too short.".to_owned(),
    );
    lines
}

/// How arms are compared with the baseline.
fn compared(findings: &Findings, study: &Study, arms: &Arms) -> Vec<String> {
    let baseline = arms.label(&study.baseline);
    let pairs = findings.cases.iter().flat_map(|case| &case.metrics).flat_map(|metric| &metric.comparisons);
    let few = pairs.map(|own| own.ratio.n).filter(|n| *n > 0).any(|n| n < RANK_BLOCKS_MIN);
    let mut lines = vec![format!(
        "An effect is the ratio of an arm to {baseline} within a block. {}",
        if few {
            "With fewer than 6 blocks its interval is Student's t of the log ratios, which assumes that they are normal."
        } else {
            "The estimate is Hodges and Lehmann's, and the interval that of Wilcoxon's signed-rank test, which needs no normal noise."
        }
    )];
    let asked = format::plural(findings.answer.len() as u64, "comparison", "comparisons");
    lines.push(format!(
        "The p-values of the {asked} of the answer are corrected for their number (Holm): of 100 studies of equal arms at most 5 claim \
         any difference."
    ));
    if arms.iter().any(|arm| arm.is_replica) {
        lines.push(format!(
            "{baseline} ran twice in each block. How much it differs from itself is the noise floor: an arm is better or worse only \
             beyond it."
        ));
    }
    if let Some(margin) = study.margin {
        let margin = written::percent(margin);
        lines.push(format!(
            "Arms are equivalent where the whole interval lies within {margin}, the margin that the study states."
        ));
    }
    lines.push(
        "No difference detected: the smallest difference that 80 of 100 such studies detect stands with the verdict. Where that is \
         above 20 %, it was too noisy to tell."
            .to_owned(),
    );
    lines.push(
        "A difference in a metric that the study does not ask about is a lead. Confirm it in a study that asks."
            .to_owned(),
    );
    lines.push("A block in which a trial failed counts as the worst that it may have been.".to_owned());
    lines
}
