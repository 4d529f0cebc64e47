//! The three models together, as they are fitted to one set of points.

use super::least::{Columns, Normal};
use super::queue::stretch;

/// One point: what was asked of the guest and what came of it, means over blocks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) instances: f64,
    pub(super) load: f64,
    pub(super) throughput: f64,
    pub(super) cpu: f64,
    pub(super) response: Option<f64>,
    /// The blocks' own response times.
    pub(super) times: Vec<Timed>,
}

/// A response time of one block, and how much a queue stretched time at the CPU of that block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Timed {
    pub(super) stretch: f64,
    pub(super) time: f64,
}

/// What does not change from fit to fit of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// CPUs of the guest.
    pub(super) servers: u32,
    /// Which terms of the CPU the points tell apart: demand, growth, idle.
    pub(super) terms: [bool; 3],
}

/// `X = slope N`; `U c = X (demand + growth min(n - 1, level)) + idle n`; `R = floor + scale Q(U)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Core {
    pub(super) slope: f64,
    pub(super) demand: f64,
    pub(super) growth: f64,
    pub(super) idle: f64,
    pub(super) level: u32,
    /// Floor and scale.
    pub(super) response: Option<(f64, f64)>,
    servers: u32,
}

fn columns(instances: f64, throughput: f64, level: u32) -> Columns {
    [throughput, throughput * (instances - 1.0).clamp(0.0, f64::from(level)), instances]
}

fn columns_of(row: &Row, level: u32) -> Columns {
    columns(row.instances, row.throughput, level)
}

/// The normal equations of the CPU model at a level.
fn normal(rows: &[Row], servers: u32, level: u32) -> Normal {
    Normal::of(rows.iter().map(|row| (columns_of(row, level), row.cpu * f64::from(servers))))
}

/// Which terms of the CPU these points can tell apart, at a growth that never levels off.
pub(super) fn terms(rows: &[Row]) -> [bool; 3] {
    normal(rows, 1, most_level(rows)).distinguishable()
}

/// Instances beyond the first in the point that has most of them.
fn most_level(rows: &[Row]) -> u32 {
    rows.iter().map(|row| row.instances as u32).max().unwrap_or(1).saturating_sub(1)
}

/// The number of instances beyond the first after which growth ends: that of the smallest residual of points that are left out of the
/// fit one at a time; of equal ones the largest, which claims no end of growth.
pub(super) fn level(rows: &[Row], shape: Shape) -> u32 {
    if !shape.terms[1] {
        return 0;
    }
    let left_out = |level: u32| -> f64 {
        let all = normal(rows, shape.servers, level);
        let one = |row: &Row| {
            let (columns, value) = (columns_of(row, level), row.cpu * f64::from(shape.servers));
            let found = all.with(columns, value, -1.0).non_negative(shape.terms);
            found.map_or(f64::INFINITY, |(by, _)| (value - dot(&by, &columns)).powi(2))
        };
        rows.iter().map(one).sum()
    };
    least_level(rows, left_out)
}

fn least_level(rows: &[Row], loss: impl Fn(u32) -> f64) -> u32 {
    let mut best = (f64::INFINITY, 1);
    for level in (1..=most_level(rows).max(1)).rev() {
        let own = loss(level);
        if own < best.0 * (1.0 - 1e-9) {
            best = (own, level);
        }
    }
    best.1
}

fn dot(a: &Columns, b: &Columns) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What coefficients may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    /// None below zero: what CPU and time are.
    Physical,
    /// Any: how far figures of other blocks would lie off. Cut at zero they would scatter less the nearer the truth is to it, and
    /// an interval made of them would be too narrow.
    Free,
}

impl Bounds {
    fn least(self, normal: &Normal, used: [bool; 3]) -> Option<(Columns, f64)> {
        let free = if self == Self::Free { normal.free(used) } else { None };
        free.or_else(|| normal.non_negative(used))
    }
}

impl Core {
    /// Fits all three. `level` is given, or chosen by the residual of the points themselves: all levels have as many parameters.
    pub(super) fn fit(rows: &[Row], shape: Shape, level: Option<u32>, bounds: Bounds) -> Option<Self> {
        let Shape { servers, terms } = shape;
        // Least squares of the relative residual: loads lie orders of magnitude apart, and their throughput errs by per cent.
        let (sum, squares) = rows.iter().filter(|row| row.throughput > 0.0).fold((0.0, 0.0), |(sum, squares), row| {
            let ratio = row.load / row.throughput;
            (sum + ratio, squares + ratio * ratio)
        });
        let slope = sum / squares;
        let level = level.unwrap_or_else(|| {
            let loss =
                |level| bounds.least(&normal(rows, servers, level), terms).map_or(f64::INFINITY, |(_, left)| left);
            if terms[1] { least_level(rows, loss) } else { 0 }
        });
        let ([demand, growth, idle], _) = bounds.least(&normal(rows, servers, level), terms)?;
        let core = Self { slope, demand, growth, idle, level, response: response(rows, bounds), servers };
        (slope > 0.0 && slope.is_finite()).then_some(core)
    }

    /// Share of the CPUs at so many operations a second.
    pub(super) fn cpu_of(&self, instances: f64, throughput: f64) -> f64 {
        let columns = columns(instances, throughput, self.level);
        dot(&[self.demand, self.growth, self.idle], &columns) / f64::from(self.servers)
    }

    /// Share of the CPUs at a load.
    pub(super) fn cpu(&self, instances: f64, load: f64) -> f64 {
        self.cpu_of(instances, self.slope * load)
    }

    /// Response time where the CPUs are busy to a share.
    pub(super) fn response_of(&self, cpu: f64) -> Option<f64> {
        let (floor, scale) = self.response?;
        Some(if scale != 0.0 { floor + scale * stretch(self.servers, cpu) } else { floor })
    }

    /// Response time at a load.
    pub(super) fn response(&self, instances: f64, load: f64) -> Option<f64> {
        self.response_of(self.cpu(instances, load))
    }
}

/// How often times are weighed anew by what the model says of them.
const WEIGHED: u32 = 2;

/// Floor and scale of the least relative residuals; `None` with fewer than three points.
///
/// They are fitted to the time and the CPU of each block: a queue bends upwards, so that the mean time of blocks that differ lies above
/// the time at their mean CPU, and means would put into the queue what is none and take it from the floor. The residual is relative to
/// the model and not to the time: of times that scatter, the short ones would else count for more.
fn response(rows: &[Row], bounds: Bounds) -> Option<(f64, f64)> {
    if rows.iter().filter(|row| !row.times.is_empty()).count() < 3 {
        return None;
    }
    let fit = |of: &dyn Fn(&Timed) -> f64| {
        let all = rows.iter().flat_map(|row| &row.times);
        let weighed = all.map(|own| (of(own), own)).filter(|(weight, _)| weight.is_finite() && *weight > 0.0);
        let columns = weighed.map(|(weight, own)| ([weight, own.stretch * weight, 0.0], own.time * weight));
        let (found, _) = bounds.least(&Normal::of(columns), [true, true, false])?;
        Some((found[0], found[1]))
    };
    let start = fit(&|own| 1.0 / own.time);
    (0..WEIGHED).fold(start, |found, _| {
        let (floor, scale) = found?;
        fit(&|own| 1.0 / (floor + scale * own.stretch)).or(found)
    })
}
