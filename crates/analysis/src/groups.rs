//! Blocks that fall into two groups: one estimate for both would be the figure of neither.

use tare_model::findings::{ArmEstimate, ArmGroups, MetricFindings};

use crate::rank;

/// Fewest blocks that can show two groups.
const BLOCKS_MIN: usize = 8;
/// Fewest blocks of a group: one that lies apart is an odd block.
const GROUP_MIN: usize = 2;
/// The gap between the groups in multiples of the wider one's range. Of samples of noise alone, normal or of Student's t with 3 degrees of
/// freedom, 1 in 100 has such a gap with eight values, and 1 in 1,000 with twelve.
const GAP_MIN: f64 = 2.0;
/// Smallest ratio across the gap: nearer groups mislead nobody.
const RATIO_MIN: f64 = 1.05;

/// The arms whose values of the primary metric fall into two groups.
pub(crate) fn of_primary(metrics: &[MetricFindings]) -> Vec<ArmGroups> {
    let primary = metrics.iter().filter(|metric| metric.spec.primary);
    primary.flat_map(|metric| &metric.arms).filter_map(of_arm).collect()
}

fn of_arm(arm: &ArmEstimate) -> Option<ArmGroups> {
    let mut blocks: Vec<(u32, f64)> = arm.blocks.clone();
    blocks.sort_by(|a, b| a.1.total_cmp(&b.1));
    let logs: Vec<f64> = blocks.iter().map(|(_, value)| value.ln()).collect();
    let (low, high) = blocks.split_at(gap(&logs)?);
    let group = |own: &[(u32, f64)]| {
        let mut numbers: Vec<u32> = own.iter().map(|(block, _)| *block).collect();
        numbers.sort_unstable();
        let values: Vec<f64> = own.iter().map(|(_, value)| *value).collect();
        Some((numbers, rank::median(&values)?))
    };
    Some(ArmGroups { arm: arm.arm.clone(), low: group(low)?, high: group(high)? })
}

/// How many of the sorted logarithms are below a gap that parts them in two groups.
fn gap(logs: &[f64]) -> Option<usize> {
    if logs.len() < BLOCKS_MIN || !logs.iter().all(|log| log.is_finite()) {
        return None;
    }
    let range = |own: &[f64]| own.last().zip(own.first()).map_or(0.0, |(last, first)| last - first);
    (GROUP_MIN..=logs.len() - GROUP_MIN).find(|at| {
        let (low, high) = logs.split_at(*at);
        let gap = high.first().zip(low.last()).map_or(0.0, |(first, last)| first - last);
        gap >= RATIO_MIN.ln() && gap > GAP_MIN * range(low).max(range(high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rand_distr::{Distribution, Normal, StudentT};
    use tare_model::findings::Estimate;

    fn arm(values: &[f64]) -> ArmEstimate {
        let blocks = values.iter().enumerate().map(|(block, value)| (block as u32, *value)).collect();
        ArmEstimate {
            case: None,
            metric: String::new(),
            arm: "container".to_owned(),
            estimate: Estimate::default(),
            blocks,
        }
    }

    #[test]
    fn two_groups_are_found_with_their_blocks() {
        let found = of_arm(&arm(&[44e-6, 4.1e-3, 45e-6, 46e-6, 4.0e-3, 45e-6, 44e-6, 47e-6, 3.9e-3, 45e-6])).unwrap();
        assert_eq!(found.high.0, [1, 4, 8]);
        assert!((found.low.1 - 45e-6).abs() < 1e-9 && (found.high.1 - 4e-3).abs() < 1e-9, "{found:?}");
        assert_eq!(of_arm(&arm(&[1.0, 1.01, 1.02, 0.99, 1.0, 1.01, 1.0, 9.0])), None, "one odd block");
        assert_eq!(of_arm(&arm(&[1.0, 1.0, 2.0, 2.0])), None, "too few");
        assert_eq!(of_arm(&arm(&[0.0; 12])), None);
    }

    /// Share of samples of twelve that seem to fall into two groups.
    fn falsely(noise: impl Distribution<f64>) -> f64 {
        const SAMPLES: usize = 5000;
        let mut rng = StdRng::seed_from_u64(8);
        let found = (0..SAMPLES).filter(|_| {
            let mut logs: Vec<f64> = (0..12).map(|_| noise.sample(&mut rng)).collect();
            logs.sort_by(f64::total_cmp);
            gap(&logs).is_some()
        });
        found.count() as f64 / SAMPLES as f64
    }

    #[test]
    fn noise_alone_seldom_looks_like_two_groups() {
        let (normal, heavy) = (falsely(Normal::new(0.0, 0.2).unwrap()), falsely(StudentT::new(3.0).unwrap()));
        assert!(normal < 0.002 && heavy < 0.004, "{normal} {heavy}");
    }
}
