//! What a study is likely to detect, before it runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tare_analysis::Rule;
use tare_model::metric::common;
use tare_model::plan::Plan;
use tare_model::study::Study;
use tare_model::written;
use tare_record::RunFolder;

use crate::exit::{Exit, Failure};

/// Most blocks that are proposed.
const BLOCKS_MAX: usize = 1000;
/// The difference that is spoken of where a study names no margin.
const ELSE: f64 = 0.05;
/// The spread that is assumed where none is known: about what response times in turns show on a host with some load.
const ASSUMED: f64 = 0.02;

/// How much the ratio of a block spreads.
#[derive(Debug, Clone)]
pub enum Noise {
    /// Standard deviation of the logarithm, in every case.
    Of(f64),
    /// That of an earlier run, case by case.
    Earlier(PathBuf, BTreeMap<String, f64>),
}

impl Noise {
    /// As the user says it: a share, or the folder of an earlier run of the study.
    ///
    /// # Errors
    /// When the folder cannot be read, or has no case with an interval.
    pub fn new(share: Option<f64>, run: Option<&Path>) -> Result<Self, Failure> {
        let Some(run) = run else { return Ok(Self::Of(share.unwrap_or(ASSUMED).ln_1p())) };
        let folder = RunFolder::open(run).map_err(|error| Failure::new(error, Exit::Usage))?;
        let findings = tare_analysis::analyse(&folder).map_err(|error| Failure::new(error, Exit::Failure))?;
        let spreads = tare_analysis::spreads(&findings);
        if spreads.is_empty() {
            let message =
                format!("no case of {} has two blocks with a ratio: name a run that measured something", run.display());
            return Err(Failure::new(message, Exit::Usage));
        }
        Ok(Self::Earlier(run.to_owned(), spreads))
    }

    fn of_case(&self, case: &str) -> Option<f64> {
        match self {
            Self::Of(spread) => Some(*spread),
            Self::Earlier(_, spreads) => spreads.get(case).copied(),
        }
    }
}

/// What a plan detects, in sentences; none where it compares nothing.
pub fn words(plan: &Plan, noise: &Noise) -> Vec<String> {
    let study = &plan.study;
    let compared = study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none()).count();
    // Each arm in the primary metric of each case, and in what the guest itself weighs.
    let comparisons = u32::try_from(compared * (study.cases.len() + common::OF_THE_GUEST.len())).unwrap_or(u32::MAX);
    if comparisons == 0 {
        return Vec::new();
    }
    let (blocks, _) = study.block_range();
    let with_floor = study.arms.iter().any(|arm| arm.replica_of.is_some());
    let rule = Rule { blocks: blocks as usize, with_floor, comparisons };
    let head = format!(
        "\nWhat {blocks} blocks detect, with {comparisons} primary comparisons{}:",
        match noise {
            Noise::Of(spread) => format!(
                " where the ratio of a block spreads by {} (`--noise`; `--noise-from RUN` takes it from a run)",
                written::percent(spread.exp_m1())
            ),
            Noise::Earlier(run, _) => format!(", by the spread of {}", run.display()),
        }
    );
    // One spread for all is one sentence for all.
    let lines: Vec<String> = match noise {
        Noise::Of(spread) => vec![line(study, rule, *spread)],
        Noise::Earlier(..) => study.cases.iter().map(|case| of_case(study, &case.id, rule, noise)).collect(),
    };
    std::iter::once(head).chain(lines.into_iter().map(|line| format!("  {line}"))).collect()
}

fn of_case(study: &Study, case: &str, rule: Rule, noise: &Noise) -> String {
    match noise.of_case(case) {
        Some(spread) => {
            format!("{case}, spread {}: {}", written::percent(round(spread.exp_m1())), line(study, rule, spread))
        }
        None => format!("{case}: the earlier run has no ratio of it"),
    }
}

/// A share to a tenth of a percent: more digits would claim to be known.
fn round(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}

fn line(study: &Study, rule: Rule, spread: f64) -> String {
    let (size, why) = study.margin.map_or((ELSE, ""), |margin| (margin, " (its margin)"));
    let size_words = format!("a difference of {}{why}", written::percent(size));
    if !rule.can_detect() {
        let least = (rule.blocks..BLOCKS_MAX)
            .find(|blocks| Rule { blocks: *blocks, ..rule }.can_detect())
            .unwrap_or(BLOCKS_MAX);
        return format!(
            "no difference, however large: that many blocks cannot confirm one among {} comparisons; it takes {least}",
            rule.comparisons
        );
    }
    if spread <= 0.0 {
        return format!("any difference: the ratio did not spread at all; {size_words} included");
    }
    let deviations = size.ln_1p() / spread;
    let studies = (rule.power(deviations) * 100.0).round();
    let enough = match rule.blocks_for(deviations, BLOCKS_MAX) {
        Some(blocks) if blocks <= rule.blocks => format!("{blocks} are enough for 80"),
        Some(blocks) => format!("it takes {blocks} for 80"),
        None => format!("even {BLOCKS_MAX} do not reach 80: it takes a quieter host or longer trials"),
    };
    format!("{size_words} in {studies} of 100 such studies; {enough}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(blocks: u32, margin: Option<f64>) -> Plan {
        let mut plan = tare_record::testing::plan(blocks);
        plan.study.margin = margin;
        plan
    }

    #[test]
    fn a_plan_says_what_it_detects_and_how_many_blocks_it_takes() {
        let said = words(&study(12, Some(0.02)), &Noise::Of(0.02)).join("\n");
        assert!(said.contains("What 12 blocks detect, with 3 primary comparisons where the ratio"), "{said}");
        // About 70 of 100, by simulation.
        let detected = ["in 6", "in 7"].map(|tens| format!("a difference of 2 % (its margin) {tens}"));
        assert!(detected.iter().any(|tens| said.contains(tens)), "{said}");
        let noisy = words(&study(12, None), &Noise::Of(0.2)).join("\n");
        assert!(noisy.contains("a difference of 5 % in ") && noisy.contains("; it takes "), "{noisy}");
        let none = words(&study(5, None), &Noise::Of(0.0)).join("\n");
        assert!(none.contains("any difference"), "{none}");
    }

    #[test]
    fn too_few_blocks_for_so_many_comparisons_are_found_before_the_run() {
        let mut plan = study(6, None);
        let case = plan.study.cases[0].clone();
        plan.study.cases = vec![case; 6];
        let said = words(&plan, &Noise::Of(0.02)).join("\n");
        assert!(said.contains("cannot confirm one among 8 comparisons; it takes 9"), "{said}");
    }

    #[test]
    fn an_earlier_run_gives_each_case_its_spread() {
        let plan = study(12, Some(0.02));
        let case = plan.study.cases[0].id.clone();
        let noise = Noise::Earlier("runs/x".into(), BTreeMap::from([(case.clone(), 0.013)]));
        let said = words(&plan, &noise).join("\n");
        assert!(
            said.contains("by the spread of runs/x") && said.contains(&format!("{case}, spread 1.3 %: ")),
            "{said}"
        );
        let other = Noise::Earlier("runs/x".into(), BTreeMap::from([("else".to_owned(), 0.013)]));
        assert!(words(&plan, &other).join("\n").contains("the earlier run has no ratio of it"));
    }
}
