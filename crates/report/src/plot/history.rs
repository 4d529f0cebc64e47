//! An effect over runs: a mark and an interval a run, in order of time, and where it changed.

use tare_model::history::{ChangePoint, EffectSeries};
use tare_model::metric::Better;

use super::arms::ArmLook;
use super::scale::{Axis, RatioAxis};
use super::svg::{Anchor, Shape, Svg, TEXT, text_width};
use super::{Figure, Page};
use crate::{format, words};

/// Height of the plot itself, pixels.
const HEIGHT: f64 = 130.0;
/// Above the plot: room for what is said of changes.
const TOP: f64 = 30.0;
/// Least distance of two numbers on the axis, pixels.
const APART: f64 = 26.0;

/// Draws a series; `None` without a run.
pub(crate) fn figure(id: &str, series: &EffectSeries, look: &ArmLook) -> Option<Figure> {
    (!series.points.is_empty()).then(|| Figure::draw(id, |page| Plot { series, look }.draw(page)))
}

struct Plot<'a> {
    series: &'a EffectSeries,
    look: &'a ArmLook,
}

impl Plot<'_> {
    fn draw(&self, page: &Page) -> String {
        let Self { series, look } = self;
        let mut svg = Svg::new(&page.id, page.width);
        let (left, right) = if page.narrow { (58.0, page.width - 12.0) } else { (74.0, page.width - 16.0) };
        let (top, bottom) = (TOP, TOP + HEIGHT);
        let ratios = series.points.iter().map(|point| &point.ratio);
        let reach = ratios.flat_map(|ratio| {
            let (low, high) = format::bounds(ratio).unwrap_or((ratio.value, ratio.value));
            // An interval of two blocks may reach far: it goes on beyond the axis.
            [ratio.value, low.max(ratio.value / 1.5), high.min(ratio.value * 1.5)]
        });
        let y = RatioAxis::new(reach, bottom, top);
        let last = series.points.len() as f64;
        let x = Axis::linear((0.5, last + 0.5), left, right);
        for (ratio, text) in &y.ticks {
            let at = y.axis.at(*ratio);
            svg.line((left, at), (right, at), "grid");
            svg.text((left - 7.0, at + 4.0), Anchor::End, "tick", text);
        }
        let equal = y.axis.at(1.0);
        svg.line((left, equal), (right, equal), "reference");
        svg.line((left, bottom), (right, bottom), "axis");
        self.numbers(&mut svg, &x, bottom);
        let mut end = x.start();
        for change in &series.change_points {
            end = self.change(&mut svg, &x, (top, bottom), (change, end));
        }
        let drawn = |at: usize, ratio: f64| (x.at(at as f64 + 1.0), y.axis.at(ratio));
        let counted = series.points.iter().enumerate().filter(|(_, point)| point.fault.is_none());
        let line: Vec<(f64, f64)> = counted.map(|(at, point)| drawn(at, point.ratio.value)).collect();
        svg.polyline(&line, &format!("{} curve thin", look.class), look.dash);
        for (at, point) in series.points.iter().enumerate() {
            let (px, py) = drawn(at, point.ratio.value);
            if let Some((low, high)) = format::bounds(&point.ratio) {
                svg.line((px, y.axis.at(low)), (px, y.axis.at(high)), &format!("{} whisker", look.class));
            }
            let fault = point.fault.as_ref().map_or_else(String::new, |why| format!("; does not count: {why}"));
            let tip = format!("{}: {}{fault}", point.run, format::ratio(&point.ratio));
            let hollow = if point.fault.is_some() { " hollow" } else { "" };
            svg.mark(look.shape, (px, py), 3.6, &format!("{}{hollow}", look.mark()), &tip);
        }
        let which = if series.metric.better == Better::Lower { "lower" } else { "higher" };
        let title = format!("run, in order of time ({which} is better)");
        svg.text(((left + right) / 2.0, bottom + 36.0), Anchor::Middle, "axis-title", &title);
        svg.finish(bottom + 44.0, &format!("{} over {}", series.arm_label, series.baseline), &self.described())
    }

    /// Numbers of runs: the first, the last, the first after each change, and others where there is room.
    fn numbers(&self, svg: &mut Svg, x: &Axis, bottom: f64) {
        let last = self.series.points.len();
        let changes = self.series.change_points.iter().filter_map(|change| self.place(&change.after));
        let mut shown: Vec<usize> = Vec::new();
        for number in [1, last].into_iter().chain(changes).chain(1..=last) {
            let at = x.at(number as f64);
            if shown.iter().all(|other| (x.at(*other as f64) - at).abs() >= APART) {
                shown.push(number);
                svg.text((at, bottom + 16.0), Anchor::Middle, "tick", &number.to_string());
            }
        }
    }

    /// Number of a run in the series, from 1.
    fn place(&self, run: &str) -> Option<usize> {
        self.series.points.iter().position(|point| point.run == run).map(|at| at + 1)
    }

    /// A dashed line between the two runs, above it a mark that points to where the effect went, and beside that its size, where the texts
    /// so far, which end at `taken`, leave room. Gives where they end now.
    fn change(&self, svg: &mut Svg, x: &Axis, (top, bottom): (f64, f64), (change, taken): (&ChangePoint, f64)) -> f64 {
        let (Some(before), Some(after)) = (self.place(&change.before), self.place(&change.after)) else { return taken };
        let at = x.at((before + after) as f64 / 2.0);
        svg.polyline(&[(at, top - 4.0), (at, bottom)], "axis", "4 3");
        let shape = if change.ratio.value > 1.0 { Shape::TriangleUp } else { Shape::TriangleDown };
        svg.mark(shape, (at, top - 10.0), 4.6, "arm-base mark", &change.sentence);
        let text = format!("{} {}", format::ratio_parts(&change.ratio).value, words::verdict(change.verdict));
        let width = text_width(&text, TEXT);
        let next = self.series.change_points.iter().filter_map(|own| self.place(&own.before));
        let next = next.filter(|own| *own > before).min().map_or(x.end(), |own| x.at(own as f64 + 0.5) - 9.0);
        if at + 9.0 + width <= next {
            svg.text((at + 9.0, top - 6.0), Anchor::Start, "small", &text);
            return at + 9.0 + width;
        }
        if at - 9.0 - width >= taken + 9.0 {
            svg.text((at - 9.0, top - 6.0), Anchor::End, "small", &text);
        }
        at + 9.0
    }

    fn described(&self) -> String {
        let points = self.series.points.iter().map(|point| format!("{}: {}", point.run, format::ratio(&point.ratio)));
        let changes = self.series.change_points.iter().map(|change| format!("change: {}", change.sentence));
        points.chain(changes).collect::<Vec<_>>().join("; ")
    }
}
