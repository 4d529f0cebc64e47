//! Intervals by drawing blocks with replacement.

use std::collections::BTreeSet;

use tare_model::findings::Estimate;

use super::core::{Bounds, Core, Shape};
use super::points::Observed;
use crate::estimate::ALPHA;
use crate::student;

/// Drawings.
const DRAWN: usize = 1000;
/// Seed of the drawings: the same figures always have the same intervals.
const SEED: u64 = 0x7461_7265;

/// A generator of 64 bits (Steele, Lea and Flood 2014, SplitMix64): a few thousand draws need no more.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }
}

/// The models fitted anew to blocks that were drawn with replacement.
#[derive(Debug, Clone)]
pub(super) struct Resampled {
    cores: Vec<Core>,
    blocks: usize,
}

/// Calls `one` with the blocks of each drawing.
pub(super) fn draw(blocks: &[u32], times: usize, mut one: impl FnMut(&[u32])) {
    let mut random = SplitMix(SEED);
    let mut drawn = vec![0; blocks.len()];
    for _ in 0..times {
        drawn.iter_mut().for_each(|block| *block = blocks[random.below(blocks.len())]);
        one(&drawn);
    }
}

/// The blocks that some point has.
pub(super) fn blocks(points: &[&Observed]) -> Vec<u32> {
    points.iter().flat_map(|point| point.blocks.keys().copied()).collect::<BTreeSet<u32>>().into_iter().collect()
}

impl Resampled {
    /// Draws whole blocks, so that what one block did to all points, and to CPU and time of one point, stays together.
    pub(super) fn of(points: &[&Observed], shape: Shape) -> Self {
        let blocks = blocks(points);
        let mut cores = Vec::new();
        if blocks.len() > 1 {
            draw(&blocks, DRAWN, |drawn| {
                // A point that has none of the drawn blocks stands as it is.
                let rows = points.iter().filter_map(|point| point.row(drawn).or_else(|| point.row(&blocks)));
                cores.extend(Core::fit(&rows.collect::<Vec<_>>(), shape, None, Bounds::Free));
            });
        }
        Self { cores, blocks: blocks.len() }
    }

    /// Half the width of an interval of what `figure` gives, without residual: the standard deviation of the drawings, widened for
    /// the number of blocks (Hesterberg 2015): drawings of B blocks vary by (B - 1)/B too little, and B blocks tell their spread no
    /// better than Student's t of B - 1 degrees. `None` from a single block.
    pub(super) fn half(&self, figure: impl Fn(&Core) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.cores.iter().filter_map(figure).filter(|value| value.is_finite()).collect();
        let blocks = self.blocks as f64;
        let spread = student::deviation(&values).filter(|_| values.len() > DRAWN / 2)?;
        Some(student::t_quantile(1.0 - ALPHA / 2.0, blocks - 1.0) * spread * (blocks / (blocks - 1.0)).sqrt())
    }

    /// A parameter with its interval; none is below zero.
    pub(super) fn parameter(&self, value: f64, method: String, figure: impl Fn(&Core) -> Option<f64>) -> Estimate {
        self.with_interval(value, self.half(figure), method)
    }

    /// A figure with an interval of so much on either side.
    pub(super) fn with_interval(&self, value: f64, half: Option<f64>, method: String) -> Estimate {
        let half = half.filter(|half| half.is_finite());
        Estimate {
            value,
            low: half.map(|half| (value - half).max(0.0)),
            high: half.map(|half| value + half),
            level: 1.0 - ALPHA,
            n: self.blocks as u32,
            method,
        }
    }
}
