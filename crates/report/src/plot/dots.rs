//! A metric on every arm: the estimate with its interval, and under it the value of every block.

use tare_model::findings::{ArmEstimate, MetricFindings};
use tare_model::metric::{Better, Unit};

use super::arms::{ArmLook, Arms};
use super::scale::{Axis, extent, linear_ticks, padded, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format::{self, Scale};

/// Height of the strip that holds the blocks' values.
const STRIP: f64 = 14.0;

/// Draws the metric; `None` when no arm has a value.
pub(crate) fn figure(id: &str, metric: &MetricFindings, arms: &Arms) -> Option<Figure> {
    let range = extent(metric.arms.iter().flat_map(values))?;
    Some(Figure::draw(id, |page| draw(page, metric, arms, range)))
}

/// How many times what was measured an interval may reach on the axis. That of two trials may be a thousand times as wide,
/// and would leave no room for the figures themselves.
const REACH: f64 = 4.0;

fn values(arm: &ArmEstimate) -> Vec<f64> {
    let measured = || arm.blocks.iter().map(|b| b.1).chain([arm.estimate.value]).filter(|v| v.is_finite());
    let (least, most) = (measured().fold(f64::INFINITY, f64::min), measured().fold(f64::NEG_INFINITY, f64::max));
    let within = |(low, high): (f64, f64)| {
        if least > 0.0 { vec![low.max(least / REACH), high.min(most * REACH)] } else { vec![low, high] }
    };
    let ends = format::bounds(&arm.estimate).map_or(vec![], within);
    measured().chain(ends).collect()
}

fn draw(page: &Page, metric: &MetricFindings, arms: &Arms, range: (f64, f64)) -> String {
    let mut svg = Svg::new(&page.id, page.width);
    let unit = &metric.spec.unit;
    let left = if page.narrow { 10.0 } else { label_width(arms) };
    let right = if page.narrow { page.width - 12.0 } else { page.width - 190.0 };
    let range = from_zero_if_near(padded(range, 0.06));
    let axis = Axis::linear(range, left, right);
    let stacked = page.narrow && arms.iter().any(|arm| !fits(arm, metric, page));
    let row = if stacked {
        78.0
    } else if page.narrow {
        62.0
    } else {
        46.0
    };
    let top = 8.0;
    let bottom = top + row * arms.iter().count() as f64;
    draw_axis(&mut svg, metric, &axis, range, (top, bottom), page);
    for (i, arm) in arms.iter().enumerate() {
        let y = top + row * i as f64;
        let found = metric.arms.iter().find(|estimate| estimate.arm == arm.id);
        let under = if stacked { 16.0 } else { 0.0 };
        draw_row(&mut svg, arm, found, unit, &axis, (y, under), page);
    }
    let described: Vec<String> = arms
        .iter()
        .map(|arm| match metric.arms.iter().find(|estimate| estimate.arm == arm.id) {
            Some(found) => format!("{}: {}", arm.label, format::estimate(&found.estimate, unit)),
            None => format!("{}: no completed trial", arm.label),
        })
        .collect();
    svg.finish(
        bottom + if page.narrow { 60.0 } else { 44.0 },
        &format!("{} on each arm", metric.spec.label),
        &described.join("; "),
    )
}

/// Whether the name of an arm has room beside its figures.
fn fits(arm: &ArmLook, metric: &MetricFindings, page: &Page) -> bool {
    let found = metric.arms.iter().find(|estimate| estimate.arm == arm.id);
    let value = found.map_or_else(|| NONE.to_owned(), |own| format::estimate(&own.estimate, &metric.spec.unit));
    text_width(&arm.label, TEXT) + text_width(&value, TEXT) < page.width - 30.0
}

/// What stands in place of figures where there are none.
const NONE: &str = "no completed trial";

/// Room for the arms' names beside the plot.
pub(crate) fn label_width(arms: &Arms) -> f64 {
    let widest = arms.iter().map(|arm| text_width(&arm.label, TEXT)).fold(0.0, f64::max);
    (widest + 24.0).clamp(90.0, 190.0)
}

/// The name of an arm: beside a plot on several lines where it is long.
pub(crate) fn arm_label(svg: &mut Svg, label: &str, (x, y): (f64, f64), (anchor, room): (Anchor, f64), page: &Page) {
    let lines = wrapped(label, room, TEXT, if page.narrow { 1 } else { 3 });
    let first = y - 7.0 * (lines.len() - 1) as f64;
    for (i, line) in lines.iter().enumerate() {
        svg.text((x, first + 14.0 * i as f64), anchor, "label", line);
    }
}

/// Lets an axis start at zero when that costs little, so that lengths can be compared.
fn from_zero_if_near((low, high): (f64, f64)) -> (f64, f64) {
    if low > 0.0 && low < high * 0.35 { (0.0, high) } else { (low, high) }
}

fn draw_axis(
    svg: &mut Svg,
    metric: &MetricFindings,
    axis: &Axis,
    range: (f64, f64),
    (top, bottom): (f64, f64),
    page: &Page,
) {
    let scale = Scale::new(&metric.spec.unit, range.1);
    let wanted = ((axis.end() - axis.start()) / 80.0) as usize;
    let ticks = linear_ticks((scale.number(range.0), scale.number(range.1)), wanted);
    for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
        let x = axis.at(tick / scale.number(1.0));
        svg.line((x, top), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), Anchor::Middle, "tick", &text);
    }
    svg.line((axis.start(), bottom), (axis.end(), bottom), "axis");
    let better = match metric.spec.better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    };
    let start = if range.0 > 0.0 { "; the axis does not start at 0" } else { "" };
    let unit = if scale.unit().is_empty() { String::new() } else { format!(", {}", scale.unit()) };
    let title = format!("{}{unit} ({better}{start})", metric.spec.label);
    for (i, line) in wrapped(&title, page.width - 20.0, TEXT, 2).iter().enumerate() {
        let at = ((axis.start() + axis.end()) / 2.0, bottom + 36.0 + 16.0 * i as f64);
        svg.text(at, Anchor::Middle, "axis-title", line);
    }
}

fn draw_row(
    svg: &mut Svg,
    arm: &ArmLook,
    found: Option<&ArmEstimate>,
    unit: &Unit,
    axis: &Axis,
    (top, under): (f64, f64),
    page: &Page,
) {
    let y = under + if page.narrow { top + 34.0 } else { top + 16.0 };
    let label_at = if page.narrow { (10.0, top + 16.0) } else { (axis.start() - 14.0, y + 4.0) };
    let (anchor, room) =
        if page.narrow { (Anchor::Start, page.width - 20.0) } else { (Anchor::End, axis.start() - 16.0) };
    arm_label(svg, &arm.label, label_at, (anchor, room), page);
    let value_at = if page.narrow { (page.width - 10.0, top + under + 16.0) } else { (axis.end() + 14.0, y + 4.0) };
    let anchor = if page.narrow { Anchor::End } else { Anchor::Start };
    let Some(found) = found.filter(|found| found.estimate.value.is_finite()) else {
        svg.text(value_at, anchor, "muted", NONE);
        return;
    };
    let parts = format::estimate_parts(&found.estimate, unit);
    if page.narrow {
        svg.text(value_at, anchor, "value", &parts.joined());
    } else {
        svg.text(value_at, anchor, "value strong", &parts.value);
        let under = parts.interval.unwrap_or_else(|| "no interval: too few blocks".to_owned());
        svg.text((value_at.0, value_at.1 + 16.0), anchor, "value muted", &under);
    }
    draw_estimate(svg, arm, found, unit, axis, y);
}

fn draw_estimate(svg: &mut Svg, arm: &ArmLook, found: &ArmEstimate, unit: &Unit, axis: &Axis, y: f64) {
    let mark = arm.mark();
    let blocks = found.blocks.len().max(1) as f64;
    for (i, (block, value)) in found.blocks.iter().enumerate().filter(|(_, (_, value))| value.is_finite()) {
        let strip_y = y + 11.0 + STRIP * (i as f64 + 0.5) / blocks;
        let tip = format!("{}, block {}: {}", arm.label, block, format::value(*value, unit));
        svg.mark(super::svg::Shape::Circle, (axis.at(*value), strip_y), 2.6, &format!("{} block", arm.class), &tip);
    }
    if let Some((low, high)) = format::bounds(&found.estimate) {
        whisker(svg, axis, (low, high), y, &arm.class);
    }
    let tip = format!("{}: {}", arm.label, format::estimate(&found.estimate, unit));
    svg.mark(arm.shape, (axis.at(found.estimate.value), y), 5.0, &mark, &tip);
}

/// An interval: a line with end caps, but where it goes on beyond the axis.
pub(crate) fn whisker(svg: &mut Svg, axis: &Axis, (low, high): (f64, f64), y: f64, class: &str) {
    let class = format!("{class} whisker");
    svg.line((axis.at(low), y), (axis.at(high), y), &class);
    for x in [low, high].into_iter().filter(|end| axis.holds(*end)).map(|end| axis.at(end)) {
        svg.line((x, y - 4.0), (x, y + 4.0), &class);
    }
}
