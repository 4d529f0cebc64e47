//! Paired values and how they spread, for those who have pairs that are not arms of a study, or plan a study by an earlier one.

use std::collections::BTreeMap;

use tare_model::findings::{CaseFindings, Estimate, Findings, Verdict};

use crate::{estimate, student};

/// By case, how much the ratio of a block spreads in the primary metric: the standard deviation of its logarithm, of the arm that spreads
/// most, over all blocks that ran. Cases without two blocks of any arm have none.
pub fn spreads(findings: &Findings) -> BTreeMap<String, f64> {
    let of_case = |case: &CaseFindings| {
        let primary = case.metrics.iter().find(|metric| metric.spec.primary)?;
        let compared = primary.comparisons.iter().filter(|own| own.verdict != Verdict::NotComparable);
        let spread = compared
            .filter_map(|own| student::deviation(&own.blocks.iter().map(|(_, ratio)| ratio.ln()).collect::<Vec<_>>()));
        Some((case.id.clone(), spread.filter(|spread| spread.is_finite()).reduce(f64::max)?))
    };
    findings.cases.iter().filter_map(of_case).collect()
}

/// The ratio of the first values over the second, with its interval, by the same procedure as a comparison
/// of arms: pairs are what was measured in one block. `None` without a pair, or when a value is not above
/// zero.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let logs: Option<Vec<f64>> = pairs.iter().map(|&(a, b)| (a > 0.0 && b > 0.0).then(|| (a / b).ln())).collect();
    let logs = logs?;
    let (located, procedure) = estimate::location(&logs)?;
    Some(estimate::from_logs(located, procedure, logs.len(), "log ratios"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_its_interval_and_is_none_without_values_above_zero() {
        let pairs: Vec<(f64, f64)> = (0..6).map(|n| (2.0 + 0.01 * f64::from(n), 1.0)).collect();
        let ratio = paired_ratio(&pairs);
        assert!(ratio.is_some_and(|r| (2.0..2.06).contains(&r.value) && r.low >= Some(2.0) && r.high <= Some(2.06)));
        assert_eq!(paired_ratio(&[(1.0, 0.0)]), None);
        assert_eq!(paired_ratio(&[]), None);
    }
}
