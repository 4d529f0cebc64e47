//! The three models together, as they are fitted to one set of points.

use super::least::{Columns, Normal};
use super::queue::stretch;

/// One point: what was asked of the guest and what came of it, means over blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) instances: f64,
    pub(super) load: f64,
    pub(super) throughput: f64,
    pub(super) cpu: f64,
    pub(super) response: Option<f64>,
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

fn columns(row: &Row, level: u32) -> Columns {
    [row.throughput, row.throughput * (row.instances - 1.0).clamp(0.0, f64::from(level)), row.instances]
}

/// The normal equations of the CPU model at a level.
fn normal(rows: &[Row], servers: u32, level: u32) -> Normal {
    Normal::of(rows.iter().map(|row| (columns(row, level), row.cpu * f64::from(servers))))
}

/// Which terms of the CPU these points can tell apart, at a growth that never levels off.
pub(super) fn terms(rows: &[Row]) -> [bool; 3] {
    normal(rows, 1, most_level(rows)).told_apart()
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
            let (columns, value) = (columns(row, level), row.cpu * f64::from(shape.servers));
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

impl Core {
    /// Fits all three. `level` is given, or chosen by the residual of the points themselves: all levels have as many parameters.
    pub(super) fn fit(rows: &[Row], shape: Shape, level: Option<u32>) -> Option<Self> {
        let Shape { servers, terms } = shape;
        // Least squares of the relative residual: loads lie orders of magnitude apart, and their throughput errs by per cent.
        let (sum, squares) = rows.iter().filter(|row| row.throughput > 0.0).fold((0.0, 0.0), |(sum, squares), row| {
            let ratio = row.load / row.throughput;
            (sum + ratio, squares + ratio * ratio)
        });
        let slope = sum / squares;
        let level = level.unwrap_or_else(|| {
            let loss = |level| normal(rows, servers, level).non_negative(terms).map_or(f64::INFINITY, |(_, left)| left);
            if terms[1] { least_level(rows, loss) } else { 0 }
        });
        let ([demand, growth, idle], _) = normal(rows, servers, level).non_negative(terms)?;
        let core = Self { slope, demand, growth, idle, level, response: response(rows, servers), servers };
        (slope > 0.0 && slope.is_finite()).then_some(core)
    }

    /// Share of the CPUs at so many operations a second.
    pub(super) fn cpu_of(&self, instances: f64, throughput: f64) -> f64 {
        let row = Row { instances, throughput, load: 0.0, cpu: 0.0, response: None };
        dot(&[self.demand, self.growth, self.idle], &columns(&row, self.level)) / f64::from(self.servers)
    }

    /// Share of the CPUs at a load.
    pub(super) fn cpu(&self, instances: f64, load: f64) -> f64 {
        self.cpu_of(instances, self.slope * load)
    }

    /// Response time where the CPUs are busy to a share.
    pub(super) fn response_of(&self, cpu: f64) -> Option<f64> {
        let (floor, scale) = self.response?;
        Some(if scale > 0.0 { floor + scale * stretch(self.servers, cpu) } else { floor })
    }

    /// Response time at a load.
    pub(super) fn response(&self, instances: f64, load: f64) -> Option<f64> {
        self.response_of(self.cpu(instances, load))
    }
}

/// Floor and scale of the least relative residuals; `None` with fewer than three points.
fn response(rows: &[Row], servers: u32) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| Some((row.cpu, row.response.filter(|time| *time > 0.0)?))).collect();
    let weighted = points.iter().map(|(cpu, time)| ([1.0 / time, stretch(servers, *cpu) / time, 0.0], 1.0));
    let (found, _) = Normal::of(weighted).non_negative([true, true, false]).filter(|_| points.len() > 2)?;
    Some((found[0], found[1]))
}
