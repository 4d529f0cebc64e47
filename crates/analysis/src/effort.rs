//! What it takes to halve the smallest detectable difference: more blocks, a longer steady state, or both.

use tare_model::findings::Effort;

use crate::components::Components;
use crate::power::Rule;

/// Most blocks that are proposed.
const BLOCKS_MAX: u32 = 1000;
/// Least blocks that are proposed: with fewer there is no interval that assumes nothing about how values spread.
const BLOCKS_MIN: u32 = 6;
/// The least and the most that a steady state is made longer by; a shorter one would have too few operations for its percentiles.
const LONGER: (f64, f64) = (0.5, 100.0);

/// What a run spent on a case, and how its blocks spread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub blocks: u32,
    /// Primary comparisons of the study.
    pub comparisons: u32,
    /// Whether differences are judged by a floor.
    pub with_floor: bool,
    pub components: Components,
    /// Wall time of a block that is none of its steady state: start, set-up, warm-up, seconds.
    pub around_s: f64,
    /// Wall time of the steady state of all arms of a block, gaps included, seconds.
    pub steady_wall_s: f64,
    /// Steady state of each arm in a block, seconds.
    pub steady_s: f64,
}

impl Run {
    /// What so many blocks take, with a steady state made so many times as long.
    pub(crate) fn effort(&self, blocks: u32, longer: f64) -> Effort {
        let block_s = self.around_s + longer * self.steady_wall_s;
        Effort { blocks, steady_s: longer * self.steady_s, minutes: f64::from(blocks) * block_s / 60.0 }
    }

    fn factor(&self, blocks: u32) -> Option<f64> {
        Rule { blocks: blocks as usize, with_floor: self.with_floor, comparisons: self.comparisons }.about()
    }

    /// The variance of a block's log ratio by which so many blocks detect half of what this run does.
    fn wanted(&self, blocks: u32) -> Option<f64> {
        let spread = 0.5 * self.factor(self.blocks)? / self.factor(blocks)? * self.components.of_block(1.0).sqrt();
        Some(spread.powi(2))
    }

    /// How many times as long a steady state gives so many blocks the variance that they need.
    fn longer(&self, blocks: u32) -> Option<f64> {
        let left = self.wanted(blocks)? - self.components.instances;
        let longer = self.components.turns / left;
        (left > 0.0 && longer <= LONGER.1).then_some(longer)
    }

    /// Half by more blocks alone.
    pub(crate) fn by_blocks(&self) -> Option<Effort> {
        let now = self.components.of_block(1.0);
        let blocks = (BLOCKS_MIN..=BLOCKS_MAX).find(|&blocks| self.wanted(blocks).is_some_and(|most| now <= most))?;
        Some(self.effort(blocks, 1.0))
    }

    /// Half by a longer steady state alone; `None` where the instances alone spread more than that, or it would be beyond all reason.
    pub(crate) fn by_length(&self) -> Option<Effort> {
        Some(self.effort(self.blocks, self.longer(self.blocks)?))
    }

    /// Half in the least time.
    pub(crate) fn least(&self) -> Option<Effort> {
        let efforts = (BLOCKS_MIN..=BLOCKS_MAX).filter_map(|blocks| {
            let longer = self.longer(blocks)?.max(LONGER.0);
            Some(self.effort(blocks, longer))
        });
        efforts.min_by(|a, b| a.minutes.total_cmp(&b.minutes))
    }

    /// What is left of the smallest detectable difference where nothing changes from turn to turn, 0 to 1.
    pub(crate) fn quiet(&self) -> f64 {
        let all = self.components.of_block(1.0);
        if all > 0.0 { (self.components.instances / all).sqrt() } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(instances: f64, turns: f64) -> Run {
        let components = Components { instances, turns, seen: instances > 0.0 };
        Run {
            blocks: 10,
            comparisons: 1,
            with_floor: true,
            components,
            around_s: 12.0,
            steady_wall_s: 6.0,
            steady_s: 2.0,
        }
    }

    /// What a run detects, as this effort changes it.
    fn detects(run: &Run, effort: &Effort) -> f64 {
        let spread = run.components.of_block(effort.steady_s / run.steady_s).sqrt();
        run.factor(effort.blocks).expect("a factor") * spread
    }

    #[test]
    fn each_way_halves_what_is_detected_and_the_least_is_the_cheapest() {
        for (instances, turns) in [(0.0, 4e-4), (1e-4, 9e-4), (3e-4, 3e-4), (9e-4, 1e-4), (4e-4, 0.0)] {
            let run = run(instances, turns);
            let half = 0.5 * detects(&run, &run.effort(10, 1.0));
            let (blocks, least) = (run.by_blocks().expect("blocks"), run.least().expect("a least"));
            for way in [Some(blocks), run.by_length(), Some(least)].into_iter().flatten() {
                assert!(detects(&run, &way) <= half * (1.0 + 1e-9), "{way:?}");
                assert!(least.minutes <= way.minutes, "{least:?} {way:?}");
            }
            assert!(blocks.blocks > 25 && blocks.steady_s == 2.0, "{blocks:?}");
        }
    }

    #[test]
    fn length_helps_against_turns_and_not_against_instances() {
        let by_length = run(0.0, 4e-4).by_length().expect("turns are averaged out");
        assert!((by_length.steady_s - 8.0).abs() < 1e-9, "four times as long: {by_length:?}");
        assert!((by_length.minutes - 10.0 * (12.0 + 24.0) / 60.0).abs() < 1e-9);
        assert_eq!(run(2e-4, 2e-4).by_length(), None);
        assert!((run(1e-4, 3e-4).quiet() - 0.5).abs() < 1e-12);
        // Where instances are all, the steady state may be as short as allowed.
        let least = run(4e-4, 0.0).least().expect("a least");
        assert!((least.steady_s - 1.0).abs() < 1e-9, "{least:?}");
    }
}
