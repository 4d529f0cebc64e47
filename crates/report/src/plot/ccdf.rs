//! The latency distribution: how large a share of operations took longer, both axes logarithmic, with
//! the tail's percentiles and their intervals on the curves.

use tare_model::findings::Distribution;
use tare_model::metric::Unit;

use super::arms::{ArmLook, Arms};
use super::dots::whisker;
use super::scale::{Axis, extent, log_ticks};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format;

/// Most points of a curve that are drawn; more would not be seen.
const POINTS: usize = 400;

/// An arm, the points of its curve, and where they come from.
type Curve<'a> = (ArmLook, Vec<(f64, f64)>, &'a Distribution);

/// Draws the distributions of one histogram name; `None` when no curve has two points.
pub(crate) fn figure(id: &str, name: &str, distributions: &[&Distribution], arms: &Arms) -> Option<Figure> {
    let curves: Vec<Curve<'_>> =
        distributions.iter().map(|d| (arms.get(&d.arm), usable(&d.ccdf), *d)).filter(|c| c.1.len() > 1).collect();
    let points = || curves.iter().flat_map(|(_, points, _)| points);
    let x = extent(points().map(|p| p.0))?;
    let y = extent(points().map(|p| p.1))?;
    let chart = Chart { name, curves: &curves, x: (x.0 / 1.05, x.1 * 1.05), y: (y.0.min(0.09), 1.0) };
    Some(Figure::draw(id, |page| chart.draw(page)))
}

/// Points that a logarithmic plot can show, thinned evenly.
fn usable(ccdf: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let points: Vec<(f64, f64)> =
        ccdf.iter().copied().filter(|(x, y)| x.is_finite() && *x > 0.0 && *y > 0.0 && *y <= 1.0).collect();
    let every = points.len().div_ceil(POINTS).max(1);
    let last = points.last().copied();
    let mut thinned: Vec<(f64, f64)> = points.into_iter().step_by(every).collect();
    if every > 1 {
        thinned.extend(last);
    }
    thinned
}

struct Chart<'a> {
    name: &'a str,
    curves: &'a [Curve<'a>],
    x: (f64, f64),
    y: (f64, f64),
}

impl Chart<'_> {
    fn draw(&self, page: &Page) -> String {
        let mut svg = Svg::new(&page.id, page.width);
        let (left, right) = if page.narrow { (64.0, page.width - 12.0) } else { (92.0, page.width - 64.0) };
        let (top, height) = if page.narrow { (26.0, 250.0) } else { (24.0, 300.0) };
        let top = if page.narrow { top + 20.0 * self.curves.len() as f64 } else { top };
        let bottom = top + height;
        let x = Axis::log(self.x, left, right);
        let y = Axis::log(self.y, bottom, top);
        self.draw_axes(&mut svg, &x, &y, page);
        svg.clipped((left, top - 2.0), (right - left, height + 4.0), "plot", |svg| {
            for (arm, points, _) in self.curves {
                let pixels: Vec<(f64, f64)> = points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
                svg.polyline(&pixels, &format!("{} curve", arm.class), arm.dash);
            }
        });
        // The replica retraces the baseline: its marks would only hide the baseline's. The table has them.
        for (arm, _, distribution) in self.curves.iter().filter(|(arm, _, _)| !arm.is_replica) {
            self.draw_quantiles(&mut svg, arm, distribution, &x, &y);
        }
        self.draw_keys(&mut svg, right, page);
        let described: Vec<String> = self.curves.iter().map(|(arm, _, d)| describe(arm, d)).collect();
        svg.finish(bottom + 46.0, &format!("Distribution of the {} time on each arm", self.name), &described.join("; "))
    }

    fn draw_axes(&self, svg: &mut Svg, x: &Axis, y: &Axis, page: &Page) {
        let (top, bottom) = (y.end(), y.start());
        for tick in log_ticks(self.x, if page.narrow { 4 } else { 8 }) {
            svg.line((x.at(tick), top), (x.at(tick), bottom), "grid");
            svg.text((x.at(tick), bottom + 16.0), Anchor::Middle, "tick", &tick_label(tick));
        }
        let decades = (0..=9).map(|e| 10f64.powi(-e)).filter(|share| *share >= self.y.0 * 0.999);
        for tick in decades.chain([0.5]) {
            svg.line((x.start(), y.at(tick)), (x.end(), y.at(tick)), "grid");
            svg.text((x.start() - 8.0, y.at(tick) + 4.0), Anchor::End, "tick", &format::share(tick));
            if !page.narrow && tick < 1.0 {
                let name = format::quantile(1.0 - tick);
                svg.text((x.end() + 8.0, y.at(tick) + 4.0), Anchor::Start, "tick", &name);
            }
        }
        svg.line((x.start(), bottom), (x.end(), bottom), "axis");
        svg.text((if page.narrow { 2.0 } else { 10.0 }, top - 12.0), Anchor::Start, "axis-title", "operations slower");
        let title = format!("{} time (logarithmic)", self.name);
        svg.text(((x.start() + x.end()) / 2.0, bottom + 38.0), Anchor::Middle, "axis-title", &title);
    }

    fn draw_quantiles(&self, svg: &mut Svg, arm: &ArmLook, distribution: &Distribution, x: &Axis, y: &Axis) {
        for (q, estimate) in &distribution.quantiles {
            let share = 1.0 - q;
            let inside = estimate.value >= self.x.0 && estimate.value <= self.x.1 && share >= self.y.0 * 0.999;
            if !inside {
                continue;
            }
            let at = (x.at(estimate.value), y.at(share));
            if let Some((low, high)) = format::bounds(estimate) {
                whisker(svg, x, (low, high), at.1, &arm.class);
            }
            let tip =
                format!("{}, {}: {}", arm.label, format::quantile(*q), format::estimate(estimate, &Unit::Seconds));
            svg.mark(arm.shape, at, 3.8, &arm.mark(), &tip);
        }
    }

    /// Names the curves where no curve goes: above on a narrow page, at the top right on a wide one.
    fn draw_keys(&self, svg: &mut Svg, right: f64, page: &Page) {
        let room = if page.narrow { page.width - 90.0 } else { 220.0 };
        let labels: Vec<String> =
            self.curves.iter().map(|(arm, _, _)| wrapped(&arm.label, room, TEXT, 1).concat()).collect();
        let widest = labels.iter().map(|label| text_width(label, TEXT)).fold(0.0, f64::max);
        let start = if page.narrow { 12.0 } else { right - widest - 62.0 };
        let first = if page.narrow { 14.0 } else { 46.0 };
        if !page.narrow {
            let height = 20.0 * labels.len() as f64 + 8.0;
            svg.rect((start - 8.0, first - 16.0), (widest + 66.0, height), "backing");
        }
        for (i, ((arm, _, _), label)) in self.curves.iter().zip(&labels).enumerate() {
            let y = first + 20.0 * i as f64;
            svg.polyline(&[(start, y - 4.0), (start + 40.0, y - 4.0)], &format!("{} curve", arm.class), arm.dash);
            if !arm.is_replica {
                svg.mark(arm.shape, (start + 20.0, y - 4.0), 3.8, &arm.mark(), "");
            }
            svg.text((start + 48.0, y), Anchor::Start, "label", label);
        }
    }
}

fn tick_label(seconds: f64) -> String {
    let scale = format::Scale::new(&Unit::Seconds, seconds);
    scale.with_unit(&format::trimmed(scale.number(seconds)))
}

fn describe(arm: &ArmLook, distribution: &Distribution) -> String {
    let quantiles: Vec<String> = distribution
        .quantiles
        .iter()
        .map(|(q, e)| format!("{} {}", format::quantile(*q), format::value(e.value, &Unit::Seconds)))
        .collect();
    format!("{}: {}", arm.label, quantiles.join(", "))
}
