//! A stacked bar an arm: what a whole is made of.

use tare_model::metric::Unit;

use super::Page;
use super::arms::Arms;
use super::dots::{arm_label, label_width};
use super::scale::{Axis, linear_ticks, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use crate::format::{self, Scale};

/// Patterns on the colours of parts: they distinguish the parts where the colours cannot be distinguished.
pub(crate) const PATTERNS: [&str; 8] = [
    "",
    r#"<path d="M0 8L8 0M-2 2L2 -2M6 10L10 6" class="hatch"/>"#,
    r#"<path d="M0 4H8" class="hatch"/>"#,
    r#"<path d="M4 0V8" class="hatch"/>"#,
    r#"<circle cx="2" cy="2" r="1.1" class="dot"/><circle cx="6" cy="6" r="1.1" class="dot"/>"#,
    r#"<path d="M0 0L8 8M-2 6L2 10M6 -2L10 2" class="hatch"/>"#,
    r#"<path d="M0 4H8M4 0V8" class="hatch"/>"#,
    r#"<path d="M0 8L8 0M0 0L8 8" class="hatch"/>"#,
];

/// A part of the stack.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// Class of its colour.
    pub(crate) class: &'static str,
    /// Markup of this crate's own, drawn over the colour.
    pub(crate) pattern: &'static str,
}

/// Stacks of the same parts, one an arm.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// The parts in their order.
    pub(crate) parts: Vec<Part>,
    /// (arm, size of each part in `unit`); an arm that is not here has a line that says `none`.
    pub(crate) rows: Vec<(String, Vec<f64>)>,
    pub(crate) unit: Unit,
    /// What the axis shows; the unit is put behind it.
    pub(crate) axis: String,
    /// What the figure is, for those who cannot see it.
    pub(crate) title: String,
    /// What stands where an arm has no stack.
    pub(crate) none: &'static str,
}

impl Stacks {
    fn of(&self, arm: &str) -> Option<&[f64]> {
        self.rows.iter().find(|(own, _)| own == arm).map(|(_, sizes)| sizes.as_slice())
    }

    /// The largest stack; 0 without one.
    pub(crate) fn longest(&self) -> f64 {
        self.rows.iter().map(|(_, sizes)| sizes.iter().sum::<f64>()).fold(0.0, f64::max)
    }

    /// Draws the stacks, of which the longest is above 0.
    pub(crate) fn draw(&self, page: &Page, arms: &Arms) -> String {
        let mut svg = Svg::new(&page.id, page.width);
        for (i, Part { class, pattern, .. }) in self.parts.iter().enumerate() {
            let id = format!("{}-p{i}", svg.id());
            svg.define(&format!(
                r#"<pattern id="{id}" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" class="{class}"/>{pattern}</pattern>"#
            ));
        }
        let left = if page.narrow { 10.0 } else { label_width(arms) };
        let right = if page.narrow { page.width - 12.0 } else { page.width - 120.0 };
        let longest = self.longest();
        let axis = Axis::linear((0.0, longest), left, right);
        let top = self.draw_legend(&mut svg, left, page) + 10.0;
        let row = if page.narrow { 54.0 } else { 42.0 };
        let bottom = top + row * arms.iter().count() as f64;
        let scale = Scale::new(&self.unit, longest);
        let ticks = linear_ticks((0.0, scale.number(longest)), if page.narrow { 4 } else { 7 });
        for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
            let x = axis.at(tick / scale.number(1.0));
            svg.line((x, top), (x, bottom), "grid");
            svg.text((x, bottom + 16.0), Anchor::Middle, "tick", &text);
        }
        svg.line((left, bottom), (right, bottom), "axis");
        let title = format!("{}, {}", self.axis, scale.unit());
        svg.text(((left + right) / 2.0, bottom + 36.0), Anchor::Middle, "axis-title", &title);
        let mut described = Vec::new();
        for (i, arm) in arms.iter().enumerate() {
            let sizes = self.of(&arm.id);
            self.draw_row(&mut svg, &arm.label, sizes, &scale, &axis, top + row * i as f64, page);
            described.push(self.describe(&arm.label, sizes));
        }
        svg.finish(bottom + 44.0, &self.title, &described.join("; "))
    }

    /// Draws the names of the parts and gives the height that they took.
    fn draw_legend(&self, svg: &mut Svg, left: f64, page: &Page) -> f64 {
        let (mut x, mut y) = (left, 16.0);
        for (i, part) in self.parts.iter().enumerate() {
            let name = wrapped(&part.name, page.width - left - 40.0, TEXT, 1).concat();
            let width = 22.0 + text_width(&name, TEXT) + 16.0;
            if x > left && x + width > page.width {
                (x, y) = (left, y + 20.0);
            }
            let pattern = format!("{}-p{i}", svg.id());
            svg.rect_filled((x, y - 11.0), (16.0, 13.0), &pattern);
            svg.text((x + 22.0, y), Anchor::Start, "label", &name);
            x += width;
        }
        y
    }

    #[allow(clippy::too_many_arguments, reason = "a row is all of these and nothing else needs them together")]
    fn draw_row(
        &self,
        svg: &mut Svg,
        label: &str,
        sizes: Option<&[f64]>,
        scale: &Scale,
        axis: &Axis,
        top: f64,
        page: &Page,
    ) {
        let bar_top = if page.narrow { top + 24.0 } else { top + 9.0 };
        let bar_height = 24.0;
        let label_at = if page.narrow { (10.0, top + 18.0) } else { (axis.start() - 14.0, bar_top + 16.0) };
        let (anchor, room) = if page.narrow { (Anchor::Start, 220.0) } else { (Anchor::End, axis.start() - 16.0) };
        arm_label(svg, label, label_at, (anchor, room), page);
        let total_at = |x: f64| if page.narrow { (page.width - 12.0, top + 18.0) } else { (x + 10.0, bar_top + 16.0) };
        let total_anchor = if page.narrow { Anchor::End } else { Anchor::Start };
        let Some(sizes) = sizes else {
            svg.text(total_at(axis.start() - 8.0), total_anchor, "muted", self.none);
            return;
        };
        let mut sum = 0.0;
        for (i, part) in sizes.iter().enumerate().filter(|(_, part)| **part > 0.0) {
            let (from, to) = (axis.at(sum), axis.at(sum + part));
            sum += part;
            let pattern = format!("{}-p{i}", svg.id());
            // A hair of paper between the parts keeps neighbours apart without colour.
            svg.rect_filled((from, bar_top), ((to - from - 1.0).max(0.6), bar_height), &pattern);
            let value = scale.text(*part);
            if to - from > text_width(&value, 12.0) + 10.0 {
                svg.text(((from + to) / 2.0, bar_top + 16.5), Anchor::Middle, "in-bar", &value);
            }
        }
        svg.text(total_at(axis.at(sum)), total_anchor, "value strong", &format::value(sum, &self.unit));
    }

    fn describe(&self, label: &str, sizes: Option<&[f64]>) -> String {
        let Some(sizes) = sizes else {
            return format!("{label}: {}", self.none);
        };
        let named: Vec<String> = self
            .parts
            .iter()
            .zip(sizes)
            .map(|(part, size)| format!("{} {}", part.name, format::value(*size, &self.unit)))
            .collect();
        format!("{label}: {} in all: {}", format::value(sizes.iter().sum(), &self.unit), named.join(", "))
    }
}
