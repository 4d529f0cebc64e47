//! The distribution of a threshold that is never seen itself, only bounded: an instance holds every load up to its threshold and none
//! above.
//!
//! Logarithms of thresholds are taken as normal, with mean `mu` and standard deviation `sigma`, so the chance that an instance holds a
//! load is `P = Phi((mu - ln load) / sigma)`: probit regression on the logarithm of the load (Finney, Probit Analysis, 3rd ed., 1971,
//! chapter 3). One [`Seen`] is one instance: a load that it held bounds its threshold below, a load that it missed bounds it above. How
//! loads were chosen does not matter to the likelihood as long as the choice rests on what was seen before (Berger and Wolpert, The
//! Likelihood Principle, 2nd ed., 1988, section 4.2).
//!
//! Instances of one block may be alike, since a host has better and worse hours. A share of `sigma` squared is therefore of the
//! block, and the rest of the instance in it: a normal random effect, integrated by the trapezoid rule. The share is the most likely one of
//! [`SHARES`].
//!
//! Few tries lie near the threshold, and often one load parts all that held from all that missed. `sigma` would then be zero. So its
//! logarithm has a normal prior of mean [`SPREAD`] and standard deviation [`SPREAD_WIDTH`], which is wide: from 0.6 % to 43 %, in 95 of
//! 100. There is none on `mu`.
//!
//! Intervals are of the profile likelihood. Their limit is the one that is exact for the mean of `n` normal values,
//! `n ln(1 + t^2 / (n - 1))` with Student's t and the number of blocks as `n`. For many blocks it is the 3.84 of chi-squared.
//! What they cover is simulated in `crates/controller/src/capacity/inference.rs`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use statrs::function::erf::erfc;

use crate::student::{t_quantile, t_tail};

/// Mean of the logarithm of the spread of instances: 5 %.
const SPREAD: f64 = -3.0;
/// Standard deviation of that logarithm.
const SPREAD_WIDTH: f64 = 1.1;
/// Logarithms of the least and the largest spread that are considered: a tenth of a percent, and a factor of twenty.
const SPREADS: (f64, f64) = (-6.9, 1.1);
/// Shares of the variance that may be of the block.
const SHARES: [f64; 3] = [0.0, 0.5, 0.9];
/// By how much the statistic of several tries a block exceeds its distribution, as simulated: a correction of the kind of Bartlett's.
const EXCESS: f64 = 1.15;
/// Golden sections of a search for the spread, whose likelihood is flat, and for a load: a five-hundredth of what was searched is left, and
/// a ten-thousandth.
const SECTIONS: (usize, usize) = (13, 20);
/// Doublings of a distance after which an end of an interval is taken as open.
const DOUBLINGS: u32 = 24;
/// Halvings after which an end is known to a five-hundredth of its distance.
const HALVINGS: u32 = 9;
/// Places at which the likelihood on one side of its largest is computed for a difference.
const PLACES: usize = 12;
/// The standard normal deviate that 95 of 100 exceed: of [`Fit::quantile`].
pub const SURE: f64 = -1.644_853_626_951_472_2;

/// What was seen of one instance's threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Its block.
    pub block: u32,
    /// Logarithm of a load that it held; minus infinity: none is known.
    pub low: f64,
    /// Logarithm of a load that it did not hold; infinity: none is known.
    pub high: f64,
}

/// A logarithm with its interval. Ends are infinite where nothing bounds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranged {
    /// The most likely value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The distribution of an arm's thresholds.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Logarithm of the load that half of the instances hold.
    pub mu: f64,
    /// Standard deviation of the logarithms of thresholds, blocks and instances together.
    pub sigma: f64,
    /// Whether something bounds thresholds below, and above.
    bounded: (bool, bool),
    /// Logarithm of the penalised likelihood at its largest.
    top: f64,
    /// What was seen alike, and how often, by block.
    blocks: Vec<Vec<(Seen, f64)>>,
}

/// The difference of two arms' `mu`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The difference.
    pub of: Ranged,
    /// Two-sided probability of a likelihood ratio so large where there is no difference.
    pub p: f64,
}

/// Least argument of the table of [`ln_phi`], and its entries a unit.
const TABLE: (f64, usize) = (-24.0, 256);

/// Logarithm of the standard normal distribution function. From a table between which is interpolated, to 2e-6: fits ask for it millions of
/// times.
fn ln_phi(z: f64) -> f64 {
    static KNOWN: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let at = |i: usize| TABLE.0 + i as f64 / TABLE.1 as f64;
        (0..=32 * TABLE.1).map(|i| (0.5 * erfc(-at(i) * std::f64::consts::FRAC_1_SQRT_2)).ln()).collect()
    });
    let place = (z - TABLE.0) * TABLE.1 as f64;
    if place < 0.0 {
        // The first terms of Mills' ratio, which is all that a double shows so far out.
        return -z * z / 2.0 - (-z).ln() - 0.918_938_533_204_672_8 - 1.0 / (z * z);
    }
    let at = place as usize;
    match KNOWN.get(at..).and_then(<[f64]>::first_chunk) {
        Some([left, right]) => left + (place - at as f64) * (right - left),
        None => 0.0,
    }
}

impl Seen {
    fn ln_chance(&self, mu: f64, sigma: f64) -> f64 {
        let (low, high) = ((self.low - mu) / sigma, (self.high - mu) / sigma);
        // The nearer tail, so that nothing is lost to cancellation.
        let (near, far) = if high.is_infinite() || low + high > 0.0 { (-low, -high) } else { (high, low) };
        let near = ln_phi(near);
        if far.is_infinite() { near } else { near + (-(ln_phi(far) - near).exp()).ln_1p() }
    }
}

/// Logarithm of the likelihood of one block, where `share` of the variance is the block's.
fn ln_block(block: &[(Seen, f64)], mu: f64, sigma: f64, share: f64) -> f64 {
    let given = |mu: f64, sigma: f64| block.iter().map(|(seen, times)| times * seen.ln_chance(mu, sigma)).sum::<f64>();
    if share == 0.0 || block.len() == 1 && block[0].1 == 1.0 {
        return given(mu, sigma);
    }
    // Steps about as wide as what remains of the spread: the rule is then good to a millionth.
    const STEP: f64 = 0.35;
    let (of_block, within) = (sigma * share.sqrt(), sigma * (1.0 - share).sqrt());
    let at = |z: f64| given(mu + z * of_block, within) - z * z / 2.0;
    let nodes: [f64; 21] = std::array::from_fn(|i| at(STEP * (i as f64 - 10.0)));
    let most = nodes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = nodes.iter().map(|node| (node - most).exp()).sum();
    most + (sum * STEP / std::f64::consts::TAU.sqrt()).ln()
}

/// The largest of a function of one hump within a range: where, and how large.
fn largest((mut a, mut b): (f64, f64), sections: usize, of: impl Fn(f64) -> f64) -> (f64, f64) {
    const SECTION: f64 = 0.618_033_988_749_894_9;
    let (mut c, mut d) = (b - SECTION * (b - a), a + SECTION * (b - a));
    let (mut at_c, mut at_d) = (of(c), of(d));
    for _ in 0..sections {
        if at_c >= at_d {
            (b, d, at_d) = (d, c, at_c);
            c = b - SECTION * (b - a);
            at_c = of(c);
        } else {
            (a, c, at_c) = (c, d, at_d);
            d = a + SECTION * (b - a);
            at_d = of(d);
        }
    }
    if at_c >= at_d { (c, at_c) } else { (d, at_d) }
}

/// The largest and the least of finite numbers.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|v| v.is_finite())
        .fold(None, |range: Option<(f64, f64)>, v| Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v)))))
}

/// The end of an interval from `value` on in the direction of `step`, where `loss` passes `limit`; infinite where it never does.
fn end(value: f64, step: f64, limit: f64, loss: impl Fn(f64) -> f64) -> f64 {
    let (mut within, mut step) = (value, step);
    for _ in 0..DOUBLINGS {
        let next = value + step;
        if loss(next) > limit {
            let mut beyond = next;
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(within, beyond);
                *(if loss(middle) > limit { &mut beyond } else { &mut within }) = middle;
            }
            return f64::midpoint(within, beyond);
        }
        within = next;
        step *= 2.0;
    }
    step.signum() * f64::INFINITY
}

/// The loss of likelihood that belongs to Student's t over `n` blocks.
fn loss_of(t: f64, n: usize) -> f64 {
    let n = n as f64;
    n * (t * t / (n - 1.0)).ln_1p()
}

/// Student's t that belongs to a loss of likelihood over `n` blocks.
fn t_of(loss: f64, n: usize) -> f64 {
    let n = n as f64;
    ((n - 1.0) * (loss / n).exp_m1()).sqrt()
}

impl Fit {
    /// Fits all that was seen; `None` of nothing.
    pub fn of(seen: &[Seen]) -> Option<Self> {
        let mut by_block: BTreeMap<u32, Vec<(Seen, f64)>> = BTreeMap::new();
        for seen in seen {
            let block = by_block.entry(seen.block).or_default();
            match block.iter_mut().find(|(own, _)| own == seen) {
                Some((_, times)) => *times += 1.0,
                None => block.push((*seen, 1.0)),
            }
        }
        let bounds = extent(seen.iter().flat_map(|seen| [seen.low, seen.high]))?;
        let bounded = (seen.iter().any(|seen| seen.low.is_finite()), seen.iter().any(|seen| seen.high.is_finite()));
        let mut fit = Self { mu: 0.0, sigma: 0.0, bounded, top: 0.0, blocks: by_block.into_values().collect() };
        // For each share by itself: the most likely of all shares may have a hump for each.
        let each = fit.shares().iter().map(|share| fit.most_likely(*share, bounds));
        (fit.mu, fit.top) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
        fit.sigma = fit.profile(0.0, fit.mu).0;
        Some(fit)
    }

    /// Shares of the variance that may be of the block: with one instance a block there is nothing to part.
    fn shares(&self) -> &'static [f64] {
        if self.alone() { &SHARES[..1] } else { &SHARES }
    }

    /// The most likely `mu` where a share of the variance is of the block, and the logarithm of the penalised likelihood there.
    fn most_likely(&self, share: f64, (low, high): (f64, f64)) -> (f64, f64) {
        let of = |mu: f64| self.with_share(share, 0.0, mu).1;
        let (mu, _) = largest((low - 1.0, high + 1.0), SECTIONS.1, of);
        // Once more close by: the range above may be wide.
        let near = 4.0 * self.with_share(share, 0.0, mu).0.exp();
        largest((mu - near, mu + near), SECTIONS.1, of)
    }

    /// The logarithm of the most likely spread where a share of the variance is of the block and the quantile `z` lies at `at`, and that of
    /// the penalised likelihood there.
    fn with_share(&self, share: f64, z: f64, at: f64) -> (f64, f64) {
        let likelihood = |s: f64| {
            let sigma = s.exp();
            let all: f64 = self.blocks.iter().map(|block| ln_block(block, at - z * sigma, sigma, share)).sum();
            all - ((s - SPREAD) / SPREAD_WIDTH).powi(2) / 2.0
        };
        largest(SPREADS, SECTIONS.0, likelihood)
    }

    /// The most likely spread where the quantile `z` lies at `at`, and the logarithm of the penalised likelihood there.
    fn profile(&self, z: f64, at: f64) -> (f64, f64) {
        let each = self.shares().iter().map(|share| self.with_share(*share, z, at));
        let best = each.max_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or((SPREAD.exp(), f64::NEG_INFINITY), |(s, top)| (s.exp(), top))
    }

    /// Twice the logarithm of the ratio of likelihoods where the quantile `z` lies at `at`.
    fn loss(&self, z: f64, at: f64) -> f64 {
        (2.0 * (self.top - self.profile(z, at).1)).max(0.0) / self.excess()
    }

    /// Whether each block has one instance.
    fn alone(&self) -> bool {
        self.blocks.iter().all(|block| block.len() == 1 && block[0].1 == 1.0)
    }

    /// By how much the statistic exceeds its distribution where a block has several tries.
    fn excess(&self) -> f64 {
        if self.alone() { 1.0 } else { EXCESS }
    }

    /// The load that instances hold which the standard normal deviate `z` stands for, at 1 - `alpha`; 0 is half of them. Its ends are
    /// infinite with one block.
    pub fn quantile(&self, z: f64, alpha: f64) -> Ranged {
        let value = self.mu + z * self.sigma;
        let n = self.blocks.len();
        if n < 2 {
            return Ranged { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let limit = loss_of(t_quantile(1.0 - alpha / 2.0, n as f64 - 1.0), n);
        Ranged { value, low: self.end(z, -1.0, limit), high: self.end(z, 1.0, limit) }
    }

    /// Where the loss of the quantile `z` passes the limit, in the direction of `sign`.
    fn end(&self, z: f64, sign: f64, limit: f64) -> f64 {
        let bounded = if sign < 0.0 { self.bounded.0 } else { self.bounded.1 };
        if !bounded {
            return sign * f64::INFINITY;
        }
        let step = self.sigma / (self.blocks() as f64).sqrt();
        end(self.mu + z * self.sigma, sign * step, limit, |at| self.loss(z, at))
    }

    /// Blocks that it was made from.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether nothing bounds thresholds above: every load that was tried held.
    pub fn open_above(&self) -> bool {
        !self.bounded.1
    }

    /// Whether nothing bounds thresholds below: no load held.
    pub fn open_below(&self) -> bool {
        !self.bounded.0
    }

    /// Two-sided probability of what was seen where the quantile `z` lies at `at`.
    pub fn p_at(&self, z: f64, at: f64) -> f64 {
        let n = self.blocks.len();
        t_tail(t_of(self.loss(z, at), n), n as f64 - 1.0)
    }
}

/// The two-sided probability of what was seen where `arm` lies `by` above `base`.
pub fn p_of_shift(arm: &Fit, base: &Fit, by: f64) -> f64 {
    let n = arm.blocks().min(base.blocks());
    if n < 2 {
        return 1.0;
    }
    let (one, other) = (arm.mu - by, base.mu);
    let together = |mu: f64| arm.profile(0.0, mu + by).1 + base.profile(0.0, mu).1;
    let (_, top) = largest((one.min(other), one.max(other)), SECTIONS.1, together);
    let loss = 2.0 * (arm.top + base.top - top) / arm.excess().max(base.excess());
    t_tail(t_of(loss.max(0.0), n), n as f64 - 1.0)
}

/// One side of the likelihood of an arm: distances from its largest, with the root of the loss there, which is nearly a straight line.
struct Side(Vec<(f64, f64)>);

impl Side {
    fn of(fit: &Fit, to: f64) -> Self {
        let at = |i: usize| (to - fit.mu) * i as f64 / PLACES as f64;
        Self((0..=PLACES).map(|i| (at(i).abs(), fit.loss(0.0, fit.mu + at(i)).sqrt())).collect())
    }

    fn loss(&self, distance: f64) -> f64 {
        let last = self.0.len() - 2;
        let at = self.0.partition_point(|(own, _)| *own < distance).saturating_sub(1).min(last);
        let ((x, y), (to, then)) = (self.0[at], self.0[at + 1]);
        let root = if to > x { y + (then - y) * (distance - x) / (to - x) } else { y };
        root * root
    }

    /// How far two sides may be moved apart in all before the loss of both passes the limit.
    fn reach(&self, other: &Self, limit: f64) -> f64 {
        let most = |of: &Self| of.0.last().map_or(0.0, |last| last.0);
        let (own, theirs) = (most(self), most(other));
        // Of a distance in all, the cheapest division.
        let loss = |all: f64| {
            let (least, largest_share) = ((all - theirs).max(0.0), all.min(own));
            -largest((least, largest_share), SECTIONS.1, |part| -(self.loss(part) + other.loss(all - part))).1
        };
        end(0.0, (own + theirs) / 4.0, limit, |all| if all >= own + theirs { f64::INFINITY } else { loss(all) })
    }
}

/// How far `arm` lies above `base`, at 1 - `alpha`. Each has a spread of its own, so that the noisier one is not the lower one for it. It is
/// careful where blocks are good or bad for both: what they share cancels in the difference and not in its interval.
pub fn shift(arm: &Fit, base: &Fit, alpha: f64) -> Shift {
    let value = arm.mu - base.mu;
    let n = arm.blocks().min(base.blocks());
    if n < 2 {
        return Shift { of: Ranged { value, low: f64::NEG_INFINITY, high: f64::INFINITY }, p: 1.0 };
    }
    let limit = loss_of(t_quantile(1.0 - alpha / 2.0, n as f64 - 1.0), n);
    let reach = |down: &Fit, up: &Fit| {
        let low = down.end(0.0, -1.0, limit);
        let high = up.end(0.0, 1.0, limit);
        if low.is_infinite() || high.is_infinite() {
            return f64::INFINITY;
        }
        Side::of(down, low).reach(&Side::of(up, high), limit)
    };
    let of = Ranged { value, low: value - reach(arm, base), high: value + reach(base, arm) };
    Shift { of, p: p_of_shift(arm, base, 0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student;

    fn held(block: u32, load: f64) -> Seen {
        Seen { block, low: load.ln(), high: f64::INFINITY }
    }

    fn missed(block: u32, load: f64) -> Seen {
        Seen { block, low: f64::NEG_INFINITY, high: load.ln() }
    }

    /// Thresholds that are known to a ten-thousandth, one a block.
    fn known(logs: &[f64]) -> Vec<Seen> {
        let seen = |(block, ln): (u32, &f64)| Seen { block, low: ln - 5e-5, high: ln + 5e-5 };
        (0..).zip(logs).map(seen).collect()
    }

    const LOGS: [f64; 8] = [0.31, 0.28, 0.35, 0.33, 0.25, 0.30, 0.41, 0.27];

    #[test]
    fn of_several_humps_the_highest_is_the_fit() {
        // Tries of a search in three blocks: with nine tenths of the variance the block's the likelihood has its hump at 488.8.
        let tries: [(&[f64], &[f64]); 3] = [
            (&[50.0, 94.0, 179.0, 343.0, 455.0, 500.0, 500.0, 500.0], &[665.0, 550.0]),
            (&[50.0, 94.0, 179.0, 343.0, 455.0, 500.0, 455.0, 455.0], &[665.0, 550.0, 500.0]),
            (&[50.0, 94.0, 179.0, 343.0, 377.0, 414.0, 414.0, 414.0], &[665.0, 455.0]),
        ];
        let of_block = |(block, (low, high)): (u32, (&[f64], &[f64]))| {
            let low = low.iter().map(|load| held(block, *load)).collect::<Vec<_>>();
            [low, high.iter().map(|load| missed(block, *load)).collect()].concat()
        };
        let seen: Vec<Seen> = (1..).zip(tries).flat_map(of_block).collect();
        let fit = Fit::of(&seen).unwrap();
        assert!(
            (fit.mu.exp() - 496.68).abs() < 0.5 && (fit.sigma - 0.0726).abs() < 0.001,
            "{} {}",
            fit.mu.exp(),
            fit.sigma
        );
    }

    #[test]
    fn the_table_is_the_distribution_function() {
        for z in [-30.0, -24.0, -23.999, -8.3, -1.0, -0.001, 0.0, 2.34567, 7.9, 8.1, 40.0] {
            let exact = if z > -24.0 { student::normal_below(z).ln() } else { ln_phi(z) };
            assert!((ln_phi(z) - exact).abs() < 4e-6, "{z}: {} and {exact}", ln_phi(z));
        }
        assert!((ln_phi(-23.999) - ln_phi(-24.001) - 0.048).abs() < 1e-3, "the table joins what lies below it");
        assert_eq!((ln_phi(f64::NEG_INFINITY), ln_phi(f64::INFINITY)), (f64::NEG_INFINITY, 0.0));
    }

    #[test]
    fn thresholds_that_are_known_have_the_interval_of_students_t() {
        let fit = Fit::of(&known(&LOGS)).unwrap();
        let student = student::one_sample(&LOGS, 0.05).unwrap();
        let (low, high) = student.ends.unwrap();
        let found = fit.quantile(0.0, 0.05);
        let width = high - low;
        assert!((found.value - student.value).abs() < 0.02 * width, "{found:?} {student:?}");
        assert!(
            (found.low - low).abs() < 0.06 * width && (found.high - high).abs() < 0.06 * width,
            "{found:?} {student:?}"
        );
        let p = fit.p_at(0.0, low);
        assert!((p - 0.05).abs() < 0.02, "{p}");
    }

    #[test]
    fn a_difference_has_welchs_interval_and_is_none_of_an_arm_with_itself() {
        let other = LOGS.map(|ln| 0.06 + 2.0 * (ln - 0.3) + 0.3);
        let (one, two) = (Fit::of(&known(&LOGS)).unwrap(), Fit::of(&known(&other)).unwrap());
        let (found, welch) = (shift(&two, &one, 0.05), student::welch(&LOGS, &other, 0.05).unwrap());
        let (low, high) = welch.ends.unwrap();
        let width = high - low;
        assert!((found.of.value - welch.value).abs() < 0.02 * width, "{found:?} {welch:?}");
        assert!(found.of.low > low - 0.15 * width && found.of.low < low + 0.1 * width, "{found:?} {welch:?}");
        assert!(found.of.high < high + 0.15 * width && found.of.high > high - 0.1 * width, "{found:?} {welch:?}");
        assert!((p_of_shift(&two, &one, found.of.low) - 0.05).abs() < 0.01, "its ends are where p is 5 %");
        let same = shift(&one, &one, 0.05);
        assert!(same.of.value == 0.0 && same.p > 0.999 && (same.of.low + same.of.high).abs() < 1e-3, "{same:?}");
    }

    #[test]
    fn tries_that_one_load_parts_bound_it_and_leave_a_spread() {
        let seen: Vec<Seen> =
            (0..6).flat_map(|block| [held(block, 200.0), held(block, 200.0), missed(block, 210.0)]).collect();
        let fit = Fit::of(&seen).unwrap();
        let half = fit.quantile(0.0, 0.05);
        assert!(half.value > 200.0_f64.ln() && half.value < 210.0_f64.ln(), "{half:?}");
        assert!(half.low < 202.0_f64.ln() && half.high > 208.0_f64.ln() && half.high - half.low < 0.1, "{half:?}");
        assert!(fit.sigma > 0.002 && fit.sigma < 0.05, "{}", fit.sigma);
        assert!(fit.quantile(SURE, 0.1).low < half.low, "what 95 of 100 hold is less");
    }

    #[test]
    fn what_nothing_bounds_has_an_open_end() {
        let all: Vec<Seen> = (0..4).map(|block| held(block, 32.0)).collect();
        let fit = Fit::of(&all).unwrap();
        let half = fit.quantile(0.0, 0.05);
        assert!(fit.open_above() && half.high == f64::INFINITY && half.low.is_finite(), "{half:?}");
        let few: Vec<Seen> = (0..4).map(|block| Seen { high: 8.0_f64.ln(), ..held(block, 7.0) }).collect();
        let few = Fit::of(&few).unwrap();
        let found = shift(&fit, &few, 0.05);
        assert!(found.of.high == f64::INFINITY && found.of.low > 0.0 && found.p < 0.05, "{found:?}");
        let back = shift(&few, &fit, 0.05);
        assert!(back.of.low == f64::NEG_INFINITY && back.of.high < 0.0 && (back.p - found.p).abs() < 1e-6, "{back:?}");
        assert!(Fit::of(&[missed(0, 5.0)]).unwrap().open_below());
        assert!(Fit::of(&[]).is_none());
        let one = Fit::of(&[held(0, 7.0), missed(0, 8.0)]).unwrap();
        assert_eq!(one.quantile(0.0, 0.05).low, f64::NEG_INFINITY, "one block has no interval");
    }
}
