//! Ratios against the baseline: estimate, interval, every block's ratio, and the noise floor as a band.

use tare_model::findings::Estimate;

use super::arms::ArmLook;
use super::dots::whisker;
use super::scale::RatioAxis;
use super::svg::{Anchor, Shape, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format;

/// Rows under one heading, of metrics that are better in the same direction.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) heading: String,
    /// Whether a ratio under 1 is better.
    pub(crate) less_is_better: bool,
    pub(crate) rows: Vec<Row>,
}

/// One comparison.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) arm: ArmLook,
    pub(crate) ratio: Estimate,
    pub(crate) blocks: Vec<(u32, f64)>,
    pub(crate) floor: Option<f64>,
    pub(crate) verdict: &'static str,
}

/// Draws the groups on one axis; `None` without a row.
pub(crate) fn figure(id: &str, title: &str, baseline: &str, groups: &[Group]) -> Option<Figure> {
    if groups.iter().all(|group| group.rows.is_empty()) {
        return None;
    }
    Some(Figure::draw(id, |page| draw(page, title, baseline, groups)))
}

struct Layout {
    heading: f64,
    row: f64,
    left: f64,
    right: f64,
}

fn draw(page: &Page, title: &str, baseline: &str, groups: &[Group]) -> String {
    let layout = if page.narrow {
        Layout { heading: 44.0, row: 50.0, left: 12.0, right: page.width - 12.0 }
    } else {
        Layout { heading: 30.0, row: 38.0, left: 250.0, right: page.width - 190.0 }
    };
    let mut svg = Svg::new(&page.id, page.width);
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let ratio_axis = RatioAxis::new(rows().flat_map(values), layout.left, layout.right);
    let top = 4.0;
    let height: f64 = groups.iter().map(|group| layout.heading + layout.row * group.rows.len() as f64).sum();
    let bottom = top + height;
    draw_axis(&mut svg, &ratio_axis, (top, bottom), baseline);
    // From the back to the front: floors, equality, words, marks.
    let positions = positions(groups, &layout, top);
    for (row, y) in &positions {
        draw_floor(&mut svg, row, &ratio_axis, &layout, *y, page);
    }
    let one = ratio_axis.axis.at(1.0);
    svg.line((one, top), (one, bottom), "reference");
    let mut y = top;
    for group in groups {
        draw_heading(&mut svg, group, &ratio_axis, y, page);
        y += layout.heading + layout.row * group.rows.len() as f64;
    }
    for (row, y) in &positions {
        draw_words(&mut svg, row, &ratio_axis, *y, page);
        draw_marks(&mut svg, row, &ratio_axis, marks_y(*y, page));
    }
    let described: Vec<String> = rows()
        .map(|row| format!("{}, {}: {}, {}", row.label, row.arm.label, format::ratio(&row.ratio), row.verdict))
        .collect();
    svg.finish(bottom + 44.0, title, &described.join("; "))
}

fn values(row: &Row) -> Vec<f64> {
    // Beyond, words say `<0.01` and `>100`, and the axis would leave no room for what was measured.
    let ends = format::bounds(&row.ratio).map_or(vec![], |(low, high)| vec![low.max(0.01), high.min(100.0)]);
    let floor = row.floor.map_or(vec![], |floor| vec![1.0 - floor, 1.0 + floor]);
    ends.into_iter().chain(floor).chain([row.ratio.value]).chain(row.blocks.iter().map(|b| b.1)).collect()
}

/// Each row with its upper edge.
fn positions<'a>(groups: &'a [Group], layout: &Layout, top: f64) -> Vec<(&'a Row, f64)> {
    let mut y = top;
    let mut out = Vec::new();
    for group in groups {
        y += layout.heading;
        for row in &group.rows {
            out.push((row, y));
            y += layout.row;
        }
    }
    out
}

fn marks_y(row_top: f64, page: &Page) -> f64 {
    row_top + if page.narrow { 30.0 } else { 15.0 }
}

fn draw_axis(svg: &mut Svg, ratio_axis: &RatioAxis, (top, bottom): (f64, f64), baseline: &str) {
    let axis = &ratio_axis.axis;
    for (ratio, label) in &ratio_axis.ticks {
        let x = axis.at(*ratio);
        svg.line((x, top), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), Anchor::Middle, "tick", label);
    }
    svg.line((axis.start(), bottom), (axis.end(), bottom), "axis");
    let title = if ratio_axis.is_log {
        format!("ratio to {baseline} (logarithmic)")
    } else {
        format!("difference from {baseline}")
    };
    for line in wrapped(&title, (axis.end() - axis.start()).max(300.0), TEXT, 1) {
        svg.text(((axis.start() + axis.end()) / 2.0, bottom + 36.0), Anchor::Middle, "axis-title", &line);
    }
}

fn draw_heading(svg: &mut Svg, group: &Group, ratio_axis: &RatioAxis, top: f64, page: &Page) {
    let y = top + 18.0;
    let axis = &ratio_axis.axis;
    // The words beside equality are all that shares the line with a heading.
    let room = if page.narrow { page.width - 20.0 } else { (axis.at(1.0) - 70.0).max(axis.start() - 20.0) };
    // Headings are bold, which is a tenth wider than what is measured.
    for line in wrapped(&group.heading, room / 1.1, TEXT, 1) {
        svg.text((if page.narrow { 12.0 } else { 4.0 }, y), Anchor::Start, "label strong", &line);
    }
    let y = if page.narrow { top + 36.0 } else { y };
    let (left, right) = if group.less_is_better {
        ("\u{2190} better", "worse \u{2192}")
    } else {
        ("\u{2190} worse", "better \u{2192}")
    };
    let one = axis.at(1.0);
    // A side too small for its word goes without: the other side tells enough.
    if one - axis.start() > 56.0 {
        svg.text((one - 8.0, y), Anchor::End, "muted small", left);
    }
    if axis.end() - one > 56.0 {
        svg.text((one + 8.0, y), Anchor::Start, "muted small", right);
    }
}

fn draw_floor(svg: &mut Svg, row: &Row, ratio_axis: &RatioAxis, layout: &Layout, top: f64, page: &Page) {
    let axis = &ratio_axis.axis;
    let y = marks_y(top, page);
    if let Some(floor) = row.floor.filter(|floor| floor.is_finite()) {
        let (from, to) = (axis.at((1.0 - floor).max(1e-9)), axis.at(1.0 + floor));
        let (band_top, band_height) =
            if page.narrow { (y - 10.0, layout.row - 22.0) } else { (top + 1.0, layout.row - 2.0) };
        svg.rect((from, band_top), (to - from, band_height), "floor");
    }
}

fn draw_words(svg: &mut Svg, row: &Row, ratio_axis: &RatioAxis, top: f64, page: &Page) {
    let axis = &ratio_axis.axis;
    let y = marks_y(top, page);
    let parts = format::ratio_parts(&row.ratio);
    if page.narrow {
        let room = page.width - 40.0 - text_width(&parts.joined(), TEXT);
        for line in wrapped(&row.label, room.max(90.0), TEXT, 1) {
            svg.text((12.0, top + 14.0), Anchor::Start, "label", &line);
        }
        svg.text((page.width - 12.0, top + 14.0), Anchor::End, "value", &parts.joined());
        return;
    }
    let lines = wrapped(&row.label, axis.start() - 34.0, TEXT, 2);
    let first = y + 4.0 - if lines.len() > 1 { 7.0 } else { 0.0 };
    for (i, line) in lines.iter().enumerate() {
        svg.text((axis.start() - 16.0, first + 14.0 * i as f64), Anchor::End, "label", line);
    }
    let x = axis.end() + 14.0;
    svg.text((x, y + 1.0), Anchor::Start, "value strong", &parts.value);
    let beside = x + text_width(&parts.value, TEXT) * 1.1 + 8.0;
    svg.text((beside, y + 1.0), Anchor::Start, "muted small", row.verdict);
    svg.text((x, y + 16.0), Anchor::Start, "value muted small", &parts.interval.unwrap_or_default());
}

fn draw_marks(svg: &mut Svg, row: &Row, ratio_axis: &RatioAxis, y: f64) {
    let axis = &ratio_axis.axis;
    for (block, ratio) in row.blocks.iter().filter(|(_, ratio)| ratio.is_finite()) {
        let tip = format!("block {block}: {}", block_ratio(*ratio));
        svg.mark(Shape::Circle, (axis.at(*ratio), y + 12.0), 2.4, &format!("{} block", row.arm.class), &tip);
    }
    if !row.ratio.value.is_finite() {
        return;
    }
    if let Some((low, high)) = format::bounds(&row.ratio) {
        whisker(svg, axis, (low, high), y, &row.arm.class);
    }
    let tip = format!("{}: {} {}", row.label, format::ratio(&row.ratio), row.verdict);
    svg.mark(row.arm.shape, (axis.at(row.ratio.value), y), 5.0, &row.arm.mark(), &tip);
}

fn block_ratio(ratio: f64) -> String {
    let bare = Estimate { value: ratio, low: None, high: None, level: 0.0, n: 1, method: String::new() };
    format::ratio(&bare)
}
