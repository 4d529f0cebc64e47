//! Lines over one horizontal axis, a panel a quantity: what happens as guests are added, or over time.

use tare_model::metric::Unit;

use super::arms::ArmLook;
use super::scale::{Axis, linear_ticks, log_ticks, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format::{self, Scale};
use tare_model::findings::Estimate;

/// One point of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The interval of `y`.
    pub(crate) bounds: Option<(f64, f64)>,
    /// Said above the mark; empty for nothing.
    pub(crate) label: String,
    /// Whether it is drawn hollow: it does not count as the others do.
    pub(crate) hollow: bool,
}

impl Point {
    /// An estimate with its interval.
    pub(crate) fn new(x: f64, y: &Estimate) -> Self {
        Self { bounds: format::bounds(y), ..Self::at(x, y.value) }
    }

    /// A value of which no interval is known.
    pub(crate) const fn at(x: f64, y: f64) -> Self {
        Self { x, y, bounds: None, label: String::new(), hollow: false }
    }
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
    /// Whether a line joins the points.
    pub(crate) joined: bool,
    /// Whether what is said at a mark stands below it, where the line before has it above.
    pub(crate) below: bool,
    /// Pixels to the right: lines of several arms at the same values of the axis would hide each other's intervals.
    pub(crate) shift: f64,
}

impl Line {
    /// Marked points, joined.
    pub(crate) const fn new(arm: ArmLook, points: Vec<Point>) -> Self {
        Self { arm, points, model: Vec::new(), knee: None, marked: true, joined: true, below: false, shift: 0.0 }
    }
}

/// One quantity.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) lines: Vec<Line>,
    /// A level that matters, with its name.
    pub(crate) bound: Option<(f64, String)>,
    /// A range that matters, with its name.
    pub(crate) band: Option<(f64, f64, String)>,
    /// Whether its axis is logarithmic; all values are then above 0.
    pub(crate) log: bool,
    /// Least and most that its axis must hold, so that panels can be compared by eye.
    pub(crate) holds: Option<(f64, f64)>,
}

/// How many times the least of what is drawn the most may be on a linear axis: beyond it, all but the most is flat.
const LINEAR: f64 = 10.0;

/// Gives panels of one quantity one scale; one of times is logarithmic where they reach too far for another.
pub(crate) fn on_one_scale(panels: &mut [Panel]) {
    let (least, most) = panels
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), panel| (least.min(panel.least()), most.max(panel.highest())));
    let lowest = panels.iter().map(Panel::lowest).fold(0.0, f64::min);
    let times = panels.iter().all(|panel| panel.unit == Unit::Seconds);
    let log = times && lowest >= 0.0 && least.is_finite() && most > least * LINEAR;
    for panel in panels {
        panel.log = log;
        panel.holds = Some((if log { least } else { lowest }, most));
    }
}

impl Panel {
    pub(crate) fn new(title: impl Into<String>, unit: Unit, lines: Vec<Line>) -> Self {
        Self { title: title.into(), unit, lines, bound: None, band: None, log: false, holds: None }
    }
}

/// All panels of a figure.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_title: String,
    /// The measured values at which the axis has labels. Without any, it has labels at round numbers.
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
        // From the right: the largest number is the answer and always has a label.
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
            if line.joined {
                svg.polyline(&[(x, y - 4.0), (x + 30.0, y - 4.0)], &format!("{} curve", arm.class), arm.dash);
            }
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
        let band = self.band.as_ref().map_or(0.0, |(_, high, _)| *high);
        all.max(bound).max(band).max(self.holds.map_or(0.0, |(_, most)| most))
    }

    /// The smallest value above 0, where a logarithmic axis begins.
    fn least(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        let held = self.holds.map(|(least, _)| least);
        values.chain(held).filter(|y| y.is_finite() && *y > 0.0).fold(f64::INFINITY, f64::min)
    }

    fn lowest(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        let least = values.filter(|y| y.is_finite()).fold(0.0, f64::min);
        if least >= 0.0 && self.band.is_none() {
            return least;
        }
        // Room for the lower ends of intervals, where what was seen lies about 0.
        let ends = self.lines.iter().flat_map(|line| &line.points).filter_map(|point| point.bounds).map(|(low, _)| low);
        let lowest = ends.filter(|low| low.is_finite()).fold(least, f64::min);
        lowest.max(least - 0.3 * (self.highest() - least)).min(self.holds.map_or(0.0, |(least, _)| least))
    }

    /// The axis and its ticks, as (value, text).
    fn axis(&self, (top, bottom): (f64, f64)) -> (Axis, Scale, Vec<(f64, String)>) {
        let highest = self.highest();
        let wanted = if bottom - top > 120.0 { 5 } else { 2 };
        if self.log && self.least() < highest {
            let range = (self.least() / 1.3, highest * 1.3);
            let scale = Scale::new(&self.unit, highest);
            let own = log_ticks((scale.number(range.0), scale.number(range.1)), wanted + 2);
            let texts = own.iter().map(|tick| format::trimmed(*tick));
            let ticks = own.iter().map(|tick| tick / scale.number(1.0)).zip(texts).collect();
            return (Axis::log(range, bottom, top), scale, ticks);
        }
        let lowest = self.lowest();
        let range = (lowest, if highest > lowest { highest + (highest - lowest) * 0.08 } else { lowest + 1.0 });
        let scale = Scale::new(&self.unit, highest.max(-lowest));
        let own = linear_ticks((scale.number(range.0), scale.number(range.1)), wanted);
        let ticks = own.iter().map(|tick| tick / scale.number(1.0)).zip(tick_texts(&own)).collect();
        (Axis::linear(range, bottom, top), scale, ticks)
    }

    fn draw(&self, svg: &mut Svg, x: &Axis, (top, bottom): (f64, f64), ticks: &[f64]) {
        let (y, scale, own) = self.axis((top, bottom));
        if let Some((low, high, name)) = &self.band {
            let (upper, lower) = (y.at(*high), y.at(*low));
            svg.rect((x.start(), upper), (x.end() - x.start(), lower - upper), "floor");
            svg.text((x.end() - 4.0, upper - 5.0), Anchor::End, "tick", name);
        }
        for &tick in ticks {
            svg.line((x.at(tick), top), (x.at(tick), bottom), "grid");
        }
        for (tick, text) in own {
            let at = y.at(tick);
            svg.line((x.start(), at), (x.end(), at), "grid");
            svg.text((x.start() - 7.0, at + 4.0), Anchor::End, "tick", &text);
        }
        let title =
            if scale.unit().is_empty() { self.title.clone() } else { format!("{} ({})", self.title, scale.unit()) };
        // A long title begins at the edge of a narrow page.
        let from = if text_width(&title, TEXT) > x.end() - x.start() { 2.0 } else { x.start() };
        for line in wrapped(&title, x.end() - from, TEXT, 1) {
            svg.text((from, top - 9.0), Anchor::Start, "label strong", &line);
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
        let place = |point: &Point| (x.at(point.x) + self.shift, y.at(point.y));
        if self.joined {
            let pixels: Vec<(f64, f64)> = self.points.iter().map(place).collect();
            svg.polyline(&pixels, &format!("{class} curve{}", if self.marked { "" } else { " thin" }), self.arm.dash);
        }
        for point in self.points.iter().filter(|_| self.marked) {
            let at = place(point);
            if let Some((low, high)) = point.bounds {
                svg.line((at.0, y.at(low)), (at.0, y.at(high)), &format!("{class} whisker"));
            }
            let label = if point.label.is_empty() { String::new() } else { format!(", {}", point.label) };
            let value = format::value(point.y, unit);
            let tip = format!("{}, {}{label}: {value}", self.arm.label, format::trimmed(point.x));
            let hollow = if point.hollow && !self.arm.hollow { " hollow" } else { "" };
            svg.mark(self.arm.shape, at, 3.8, &format!("{}{hollow}", self.arm.mark()), &tip);
            if !point.label.is_empty() {
                let (anchor, x, y) = if self.below { (Anchor::Start, 5.0, 15.0) } else { (Anchor::End, -4.0, -6.0) };
                svg.text((at.0 + x, at.1 + y), anchor, "tick", &point.label);
            }
        }
    }

    fn model_at(&self, n: f64) -> Option<f64> {
        let pair = self.model.windows(2).find(|pair| pair[0].0 <= n && n <= pair[1].0)?;
        let (from, to) = (pair[0], pair[1]);
        let part = if to.0 > from.0 { (n - from.0) / (to.0 - from.0) } else { 0.0 };
        Some(from.1 + part * (to.1 - from.1))
    }
}
