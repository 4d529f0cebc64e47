//! One figure for several cases: a bar an arm in each, with the interval of its estimate.

use tare_model::findings::Estimate;
use tare_model::metric::Unit;

use super::arms::ArmLook;
use super::dots::{arm_label, whisker};
use super::scale::{Axis, linear_ticks, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format::{self, Scale};

/// How many times the largest estimate an interval may reach on the axis; one of two blocks may be a thousand times as wide.
const REACH: f64 = 1.6;

/// One arm in one case.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) arm: ArmLook,
    pub(crate) estimate: Estimate,
    /// The figure in words, where it is not simply the estimate: `at least 4,000`.
    pub(crate) text: Option<String>,
}

/// One case.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) heading: String,
    pub(crate) bars: Vec<Bar>,
}

/// All cases.
#[derive(Debug, Clone)]
pub(crate) struct Bars {
    pub(crate) title: String,
    /// What the axis is.
    pub(crate) axis: String,
    pub(crate) unit: Unit,
    pub(crate) groups: Vec<Group>,
}

impl Bars {
    /// Draws the bars; `None` when there is nothing to draw.
    pub(crate) fn figure(mut self, id: &str) -> Option<Figure> {
        self.groups.retain(|group| !group.bars.is_empty());
        let most = self.bars().map(|bar| bar.estimate.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
        (most > 0.0).then(|| Figure::draw(id, |page| self.draw(page, most)))
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    fn draw(&self, page: &Page, most: f64) -> String {
        let mut svg = Svg::new(&page.id, page.width);
        let widest = self.bars().map(|bar| text_width(&bar.arm.label, TEXT)).fold(0.0, f64::max);
        let left = if page.narrow { 10.0 } else { (widest + 24.0).clamp(90.0, 190.0) };
        let right = if page.narrow { page.width - 12.0 } else { page.width - 170.0 };
        let ends = self.bars().filter_map(|bar| format::bounds(&bar.estimate)).map(|(_, high)| high);
        let last = ends.fold(most, f64::max).min(most * REACH);
        let axis = Axis::linear((0.0, last * 1.03), left, right);
        let (head, row) = if page.narrow { (26.0, 40.0) } else { (26.0, 24.0) };
        let height: f64 = self.groups.iter().map(|group| head + row * group.bars.len() as f64 + 6.0).sum();
        let bottom = 4.0 + height;
        self.draw_axis(&mut svg, &axis, last, (4.0, bottom), page);
        let mut y = 4.0;
        for group in &self.groups {
            for line in wrapped(&group.heading, page.width - 20.0, TEXT, 1) {
                svg.text((10.0, y + 16.0), Anchor::Start, "label strong", &line);
            }
            y += head;
            for bar in &group.bars {
                bar.draw(&mut svg, &axis, y, page, &self.unit);
                y += row;
            }
            y += 6.0;
        }
        let describe = |group: &Group| {
            let each = group.bars.iter().map(|bar| format!("{} {}", bar.arm.label, bar.value_text(&self.unit)));
            format!("{}: {}", group.heading, each.collect::<Vec<_>>().join(", "))
        };
        let described: Vec<String> = self.groups.iter().map(describe).collect();
        svg.finish(bottom + 44.0, &self.title, &described.join("; "))
    }

    fn draw_axis(&self, svg: &mut Svg, axis: &Axis, last: f64, (top, bottom): (f64, f64), page: &Page) {
        let scale = Scale::new(&self.unit, last);
        let ticks = linear_ticks((0.0, scale.number(last)), if page.narrow { 4 } else { 6 });
        for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
            let x = axis.at(tick / scale.number(1.0));
            svg.line((x, top), (x, bottom), "grid");
            svg.text((x, bottom + 16.0), Anchor::Middle, "tick", &text);
        }
        svg.line((axis.start(), bottom), (axis.end(), bottom), "axis");
        let unit = if scale.unit().is_empty() { String::new() } else { format!(", {}", scale.unit()) };
        let middle = ((axis.start() + axis.end()) / 2.0, bottom + 36.0);
        svg.text(middle, Anchor::Middle, "axis-title", &format!("{}{unit}", self.axis));
    }
}

impl Bar {
    fn value_text(&self, unit: &Unit) -> String {
        self.text.clone().unwrap_or_else(|| figure(&self.estimate, unit))
    }

    fn draw(&self, svg: &mut Svg, axis: &Axis, top: f64, page: &Page, unit: &Unit) {
        let (at, thick) = if page.narrow { (top + 20.0, 12.0) } else { (top + 3.0, 15.0) };
        let middle = at + thick / 2.0;
        let place = if page.narrow { (10.0, top + 14.0) } else { (axis.start() - 12.0, middle + 4.0) };
        let (anchor, room) = if page.narrow { (Anchor::Start, 190.0) } else { (Anchor::End, axis.start() - 16.0) };
        arm_label(svg, &self.arm.label, place, (anchor, room), &Page { narrow: true, ..page.clone() });
        let value = self.estimate.value;
        let class = format!("{} bar{}", self.arm.class, if self.arm.hollow { " hollow" } else { "" });
        svg.rect((axis.start(), at), (axis.at(value) - axis.start(), thick), &class);
        if let Some(ends) = format::bounds(&self.estimate) {
            whisker(svg, axis, ends, middle, "over-bar");
        }
        let place = if page.narrow { (page.width - 10.0, top + 14.0) } else { (axis.end() + 12.0, middle + 4.0) };
        let anchor = if page.narrow { Anchor::End } else { Anchor::Start };
        svg.text(place, anchor, "value", &self.value_text(unit));
    }
}

/// An estimate, of things that are counted as a whole number.
pub(crate) fn figure(estimate: &Estimate, unit: &Unit) -> String {
    if *unit != Unit::Count {
        return format::estimate(estimate, unit);
    }
    let whole = |value: f64| format::count(value.round().max(0.0) as u64);
    match format::bounds(estimate) {
        Some((low, high)) => format!("{} [{}, {}]", whole(estimate.value), whole(low), whole(high)),
        None => whole(estimate.value),
    }
}
