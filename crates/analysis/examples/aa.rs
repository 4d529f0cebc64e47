//! How often does the analysis claim a difference where there is none?
//!
//!     cargo run --release -p tare-analysis --example aa -- RUN_DIR ...
//!
//! RUN_DIRs are real runs: the baseline and its replica are compared like any two arms, and what is called better or worse is false. Noise that
//! is made up, or drawn anew from a run, would be as well-behaved as whoever makes it up (`src/tests/family.rs` has such).
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use tare_analysis::{Run, findings};
use tare_model::findings::{Comparison, Findings, Verdict};
use tare_record::RunFolder;

fn main() -> Result<(), Box<dyn Error>> {
    let mut real = Tally::default();
    for dir in std::env::args().skip(1) {
        let found = without_replica_role(&RunFolder::open(Path::new(&dir))?)?;
        let primary = found.cases.iter().flat_map(|case| &case.metrics).filter(|metric| metric.spec.primary);
        real.count(primary.flat_map(|metric| &metric.comparisons));
    }
    if real.comparisons == 0 {
        return Err("usage: aa RUN_DIR ...: name runs with a noise floor".into());
    }
    println!("real runs: {real}");
    Ok(())
}

/// Counts of comparisons between equal arms.
#[derive(Default)]
struct Tally {
    comparisons: u32,
    excluded: u32,
    claimed: u32,
    unsaid: u32,
}

impl Tally {
    fn count<'a>(&mut self, comparisons: impl Iterator<Item = &'a Comparison>) {
        for comparison in comparisons {
            self.comparisons += 1;
            let excludes = |low: f64, high: f64| low > 1.0 || high < 1.0;
            let (low, high) = (comparison.ratio.low, comparison.ratio.high);
            self.excluded += u32::from(low.zip(high).is_some_and(|(low, high)| excludes(low, high)));
            self.claimed += u32::from(matches!(comparison.verdict, Verdict::Better | Verdict::Worse));
            self.unsaid += u32::from(comparison.verdict == Verdict::CannotSay);
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} comparisons of equal arms; {} intervals excluded equality; {} were called a difference; {} could not be said",
            self.comparisons, self.excluded, self.claimed, self.unsaid
        )
    }
}

/// A real run's findings in which the replica is an arm like any other, and all other arms are left out.
fn without_replica_role(folder: &RunFolder) -> Result<Findings, Box<dyn Error>> {
    let mut plan = folder.plan().clone();
    let baseline = plan.study.baseline.clone();
    plan.study.arms.retain(|arm| arm.id == baseline || arm.replica_of.as_ref() == Some(&baseline));
    if plan.study.arms.len() < 2 {
        return Err(format!("{} has no replica of its baseline", folder.dir().display()).into());
    }
    plan.study.arms.iter_mut().for_each(|arm| arm.replica_of = None);
    let trials = folder.trials()?;
    let run =
        Run { facts: folder.facts(), plan: &plan, environment: folder.environment(), trials: &trials, problems: &[] };
    Ok(findings(&run))
}
