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
    left: f64,
    right: f64,
}

/// A row where it is drawn.
struct Placed<'a> {
    row: &'a Row,
    top: f64,
    height: f64,
    /// The label, whole.
    lines: Vec<String>,
    /// Whether the figures have a line of their own under the label.
    below: bool,
}

impl<'a> Placed<'a> {
    fn new(row: &'a Row, top: f64, layout: &Layout, page: &Page) -> Self {
        if !page.narrow {
            let lines = wrapped(&row.label, layout.left - 34.0, TEXT, LINES);
            return Self { row, top, height: (14.0 * lines.len() as f64 + 10.0).max(38.0), lines, below: false };
        }
        let value = text_width(&format::ratio_parts(&row.ratio).joined(), TEXT);
        let below = text_width(&row.label, TEXT) > page.width - 40.0 - value;
        let lines = wrapped(&row.label, page.width - 24.0, TEXT, LINES);
        let over = lines.len() as f64 - if below { 0.0 } else { 1.0 };
        Self { row, top, height: 50.0 + 15.0 * over, lines, below }
    }

    fn marks_y(&self, page: &Page) -> f64 {
        if page.narrow { self.top + self.height - 20.0 } else { self.top + 15.0 }
    }
}

/// Most lines of a label.
const LINES: usize = 4;

fn draw(page: &Page, title: &str, baseline: &str, groups: &[Group]) -> String {
    let layout = if page.narrow {
        Layout { left: 12.0, right: page.width - 12.0 }
    } else {
        Layout { left: 250.0, right: page.width - 190.0 }
    };
    let mut svg = Svg::new(&page.id, page.width);
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let ratio_axis = RatioAxis::new(rows().flat_map(values), layout.left, layout.right);
    let top = 4.0;
    let (heads, placed, bottom) = positions(groups, &ratio_axis, &layout, top, page);
    draw_axis(&mut svg, &ratio_axis, (top, bottom), baseline);
    // From the back to the front: floors, equality, words, marks.
    for own in &placed {
        draw_floor(&mut svg, own, &ratio_axis, page);
    }
    let one = ratio_axis.axis.at(1.0);
    svg.line((one, top), (one, bottom), "reference");
    for (group, top) in heads {
        draw_heading(&mut svg, group, &ratio_axis, top, page);
    }
    for own in &placed {
        draw_words(&mut svg, own, &ratio_axis, page);
        draw_marks(&mut svg, own.row, &ratio_axis, own.marks_y(page));
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

/// Each group with the upper edge of its heading, each row where it is drawn, and the lower edge of all.
fn positions<'a>(
    groups: &'a [Group],
    axis: &RatioAxis,
    layout: &Layout,
    top: f64,
    page: &Page,
) -> (Vec<(&'a Group, f64)>, Vec<Placed<'a>>, f64) {
    let mut y = top;
    let (mut heads, mut out) = (Vec::new(), Vec::new());
    for group in groups {
        heads.push((group, y));
        y += if heading_is_alone(group, axis, page) { 44.0 } else { 30.0 };
        for row in &group.rows {
            let placed = Placed::new(row, y, layout, page);
            y += placed.height;
            out.push(placed);
        }
    }
    (heads, out, y)
}

/// Whether a heading needs its line for itself, and the words beside equality stand on the next.
fn heading_is_alone(group: &Group, ratio_axis: &RatioAxis, page: &Page) -> bool {
    // Headings are bold, which is a tenth wider than what is measured.
    page.narrow || text_width(&group.heading, TEXT) * 1.1 > ratio_axis.axis.at(1.0) - 70.0
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
    for line in wrapped(&group.heading, (page.width - 20.0) / 1.1, TEXT, 1) {
        svg.text((if page.narrow { 12.0 } else { 4.0 }, y), Anchor::Start, "label strong", &line);
    }
    let y = if heading_is_alone(group, ratio_axis, page) { top + 36.0 } else { y };
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

fn draw_floor(svg: &mut Svg, own: &Placed<'_>, ratio_axis: &RatioAxis, page: &Page) {
    let axis = &ratio_axis.axis;
    if let Some(floor) = own.row.floor.filter(|floor| floor.is_finite()) {
        let (from, to) = (axis.at((1.0 - floor).max(1e-9)), axis.at(1.0 + floor));
        let (top, height) =
            if page.narrow { (own.marks_y(page) - 10.0, 28.0) } else { (own.top + 1.0, own.height - 2.0) };
        svg.rect((from, top), (to - from, height), "floor");
    }
}

fn draw_words(svg: &mut Svg, own: &Placed<'_>, ratio_axis: &RatioAxis, page: &Page) {
    let (axis, y) = (&ratio_axis.axis, own.marks_y(page));
    let parts = format::ratio_parts(&own.row.ratio);
    if page.narrow {
        let at = |line: usize| own.top + 14.0 + 15.0 * line as f64;
        for (i, line) in own.lines.iter().enumerate() {
            svg.text((12.0, at(i)), Anchor::Start, "label", line);
        }
        let line = if own.below { own.lines.len() } else { 0 };
        svg.text((page.width - 12.0, at(line)), Anchor::End, "value", &parts.joined());
        return;
    }
    // Two lines have the mark between them; more begin at the upper edge.
    let first = y + 4.0 - if own.lines.len() > 1 { 7.0 } else { 0.0 };
    for (i, line) in own.lines.iter().enumerate() {
        svg.text((axis.start() - 16.0, first + 14.0 * i as f64), Anchor::End, "label", line);
    }
    let x = axis.end() + 14.0;
    svg.text((x, y + 1.0), Anchor::Start, "value strong", &parts.value);
    let beside = x + text_width(&parts.value, TEXT) * 1.1 + 8.0;
    svg.text((beside, y + 1.0), Anchor::Start, "muted small", own.row.verdict);
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
