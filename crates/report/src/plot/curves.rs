//! Lines over one horizontal axis, a panel a quantity: what happens as guests are added, or over time.

use tare_model::metric::Unit;

use super::arms::ArmLook;
use super::scale::{Axis, linear_ticks, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format::{self, Scale};

/// One point of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The interval of `y`.
    pub(crate) bounds: Option<(f64, f64)>,
}

/// One arm in one panel.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) arm: ArmLook,
    pub(crate) points: Vec<Point>,
    /// A fitted model, drawn thin.
    pub(crate) model: Vec<(f64, f64)>,
    /// Where on the axis the model bends.
    pub(crate) knee: Option<f64>,
    /// Whether points are marked; where there are many of them they are not.
    pub(crate) marked: bool,
}

/// One quantity.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) lines: Vec<Line>,
    /// A level that matters, with its name.
    pub(crate) bound: Option<(f64, String)>,
}

/// All panels of a figure.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_title: String,
    /// Whether values of the axis are whole numbers that are told where they were measured.
    pub(crate) x_marked: Vec<f64>,
    /// Height of a panel on a wide page, pixels.
    pub(crate) height: f64,
    pub(crate) panels: Vec<Panel>,
}

impl Chart {
    /// Draws the chart; `None` when there is nothing to draw.
    pub(crate) fn figure(mut self, id: &str) -> Option<Figure> {
        for panel in &mut self.panels {
            panel.lines.retain(|line| !line.points.is_empty());
        }
        self.panels.retain(|panel| !panel.lines.is_empty());
        if self.panels.is_empty() || self.last() <= 0.0 {
            return None;
        }
        Some(Figure::draw(id, |page| self.draw(page)))
    }

    fn last(&self) -> f64 {
        let points = self.panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
        points.map(|point| point.x).filter(|x| x.is_finite()).fold(0.0, f64::max)
    }

    /// The arms in the order in which they first appear.
    fn arms(&self) -> Vec<&Line> {
        let mut arms: Vec<&Line> = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !arms.iter().any(|known| known.arm.id == line.arm.id) {
                arms.push(line);
            }
        }
        arms
    }

    fn draw(&self, page: &Page) -> String {
        let mut svg = Svg::new(&page.id, page.width);
        let (left, right) = if page.narrow { (50.0, page.width - 12.0) } else { (68.0, page.width - 16.0) };
        let last = self.last();
        let x = Axis::linear((0.0, last * 1.02), left, right);
        let height = if page.narrow { self.height.min(190.0) } else { self.height };
        let top = self.draw_keys(&mut svg, left, page) + 10.0;
        let ticks = self.ticks(page, &x);
        for (i, panel) in self.panels.iter().enumerate() {
            let from = top + height * i as f64;
            panel.draw(&mut svg, &x, (from + 26.0, from + height - 8.0), &ticks);
        }
        let bottom = top + height * self.panels.len() as f64 - 8.0;
        for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
            svg.text((x.at(*tick), bottom + 16.0), Anchor::Middle, "tick", &text);
        }
        svg.text(((left + right) / 2.0, bottom + 36.0), Anchor::Middle, "axis-title", &self.x_title);
        let described: Vec<String> = self.panels.iter().flat_map(Panel::described).collect();
        svg.finish(bottom + 46.0, &self.title, &described.join("; "))
    }

    /// The values that were measured, as far as their names do not touch; round ones where there are none.
    fn ticks(&self, page: &Page, x: &Axis) -> Vec<f64> {
        if self.x_marked.is_empty() {
            return linear_ticks((0.0, self.last()), if page.narrow { 5 } else { 10 });
        }
        let mut kept: Vec<f64> = Vec::new();
        // From the right: the largest number is the answer, and is always told.
        for &value in self.x_marked.iter().rev() {
            if kept.last().is_none_or(|&last| x.at(last) - x.at(value) >= 22.0) {
                kept.push(value);
            }
        }
        kept.reverse();
        kept
    }

    fn draw_keys(&self, svg: &mut Svg, left: f64, page: &Page) -> f64 {
        let (mut x, mut y) = (left, 16.0);
        for line in self.arms() {
            let arm = &line.arm;
            let name = wrapped(&arm.label, page.width - left - 50.0, TEXT, 1).concat();
            let width = 40.0 + text_width(&name, TEXT) + 14.0;
            if x > left && x + width > page.width {
                (x, y) = (left, y + 20.0);
            }
            svg.polyline(&[(x, y - 4.0), (x + 30.0, y - 4.0)], &format!("{} curve", arm.class), arm.dash);
            if line.marked {
                svg.mark(arm.shape, (x + 15.0, y - 4.0), 3.8, &arm.mark(), "");
            }
            svg.text((x + 38.0, y), Anchor::Start, "label", &name);
            x += width;
        }
        y
    }
}

impl Panel {
    fn highest(&self) -> f64 {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let ends = points.flat_map(|point| [Some(point.y), point.bounds.map(|(_, high)| high)]);
        // An interval of two blocks may reach far: it goes on beyond the axis.
        let values = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        let largest = values().filter(|y| y.is_finite()).fold(0.0, f64::max);
        let all = ends.flatten().filter(|y| y.is_finite()).fold(0.0, f64::max).min(largest * 1.3);
        let bound = self.bound.as_ref().map_or(0.0, |(value, _)| *value);
        all.max(bound)
    }

    fn lowest(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        values.filter(|y| y.is_finite()).fold(0.0, f64::min)
    }

    fn draw(&self, svg: &mut Svg, x: &Axis, (top, bottom): (f64, f64), ticks: &[f64]) {
        let (lowest, highest) = (self.lowest(), self.highest());
        let range = (lowest, if highest > lowest { highest + (highest - lowest) * 0.08 } else { lowest + 1.0 });
        let y = Axis::linear(range, bottom, top);
        for &tick in ticks {
            svg.line((x.at(tick), top), (x.at(tick), bottom), "grid");
        }
        let scale = Scale::new(&self.unit, highest.max(-lowest));
        let own =
            linear_ticks((scale.number(range.0), scale.number(range.1)), if bottom - top > 120.0 { 5 } else { 2 });
        for (tick, text) in own.iter().zip(tick_texts(&own)) {
            let at = y.at(tick / scale.number(1.0));
            svg.line((x.start(), at), (x.end(), at), "grid");
            svg.text((x.start() - 7.0, at + 4.0), Anchor::End, "tick", &text);
        }
        let title =
            if scale.unit().is_empty() { self.title.clone() } else { format!("{} ({})", self.title, scale.unit()) };
        for line in wrapped(&title, x.end() - x.start(), TEXT, 1) {
            svg.text((x.start(), top - 9.0), Anchor::Start, "label strong", &line);
        }
        if let Some((value, name)) = &self.bound {
            let at = y.at(*value);
            svg.polyline(&[(x.start(), at), (x.end(), at)], "axis", "3 3");
            svg.text((x.end() - 4.0, at - 5.0), Anchor::End, "tick", name);
        }
        let id = format!("{}-{}", svg.id(), top.round());
        svg.clipped((x.start(), top - 6.0), (x.end() - x.start() + 8.0, bottom - top + 12.0), &id, |svg| {
            self.lines.iter().for_each(|line| line.draw(svg, x, &y, &self.unit));
        });
        svg.line((x.start(), bottom), (x.end(), bottom), "axis");
    }

    fn described(&self) -> Vec<String> {
        let one = |line: &Line| {
            let last = line.points.last()?;
            let (at, value) = (format::trimmed(last.x), format::value(last.y, &self.unit));
            Some(format!("{}, {}: {value} at {at}", self.title, line.arm.label))
        };
        self.lines.iter().filter_map(one).collect()
    }
}

impl Line {
    fn draw(&self, svg: &mut Svg, x: &Axis, y: &Axis, unit: &Unit) {
        let class = &self.arm.class;
        if !self.model.is_empty() {
            let pixels: Vec<(f64, f64)> = self.model.iter().map(|&(n, v)| (x.at(n), y.at(v))).collect();
            svg.polyline(&pixels, &format!("{class} curve thin"), "1 3");
        }
        if let Some(at) = self.knee.and_then(|knee| Some((knee, self.model_at(knee)?))) {
            svg.mark(self.arm.shape, (x.at(at.0), y.at(at.1)), 6.5, &format!("{class} mark hollow"), "");
        }
        let pixels: Vec<(f64, f64)> = self.points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
        svg.polyline(&pixels, &format!("{class} curve{}", if self.marked { "" } else { " thin" }), self.arm.dash);
        for point in self.points.iter().filter(|_| self.marked) {
            let at = (x.at(point.x), y.at(point.y));
            if let Some((low, high)) = point.bounds {
                svg.line((at.0, y.at(low)), (at.0, y.at(high)), &format!("{class} whisker"));
            }
            let tip = format!("{}, {}: {}", self.arm.label, format::trimmed(point.x), format::value(point.y, unit));
            svg.mark(self.arm.shape, at, 3.8, &self.arm.mark(), &tip);
        }
    }

    fn model_at(&self, n: f64) -> Option<f64> {
        let pair = self.model.windows(2).find(|pair| pair[0].0 <= n && n <= pair[1].0)?;
        let (from, to) = (pair[0], pair[1]);
        let part = if to.0 > from.0 { (n - from.0) / (to.0 - from.0) } else { 0.0 };
        Some(from.1 + part * (to.1 - from.1))
    }
}
