//! CPU for one unit of work, stacked by where it was spent. Neighbours are not part of the work and stay out.

use tare_model::findings::ArmCpu;
use tare_model::metric::Unit;

use super::arms::Arms;
use super::dots::label_width;
use super::scale::{Axis, linear_ticks, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format::{self, Scale};

/// The parts of an account in the order of the stack: name, class of its colour, pattern.
pub(crate) const PARTS: [(&str, &str, &str); 5] = [
    ("guest, user", "part-user", ""),
    ("guest, system", "part-system", r#"<path d="M0 8L8 0M-2 2L2 -2M6 10L10 6" class="hatch"/>"#),
    ("softirq", "part-softirq", r#"<path d="M0 4H8" class="hatch"/>"#),
    ("irq", "part-irq", r#"<path d="M4 0V8" class="hatch"/>"#),
    (
        "other",
        "part-other",
        r#"<circle cx="2" cy="2" r="1.1" class="dot"/><circle cx="6" cy="6" r="1.1" class="dot"/>"#,
    ),
];

/// Stored unit of CPU for one unit of work.
pub(crate) fn unit(cpu: &ArmCpu) -> Unit {
    match cpu.unit_of_work.as_str() {
        "operation" => Unit::CpuSecondsPerOperation,
        "byte" => Unit::CpuSecondsPerByte,
        other => Unit::Other(format!("CPU s/{other}")),
    }
}

/// CPU seconds by part in the mean window, in the order of [`PARTS`].
pub(crate) fn seconds(cpu: &ArmCpu) -> [f64; 5] {
    let a = &cpu.account;
    [a.guest_user_s, a.guest_system_s, a.softirq_s, a.irq_s, a.other_s]
}

/// CPU seconds for one unit of work by part, in the order of [`PARTS`]: the estimate over the trials, shared out as the
/// mean account is. `None` where there is no such estimate.
pub(crate) fn parts(cpu: &ArmCpu) -> Option<[f64; 5]> {
    let (whole, seconds) = (cpu.per_work_s?, seconds(cpu));
    let all: f64 = seconds.iter().sum();
    let parts = seconds.map(|s| s / all * whole);
    (all > 0.0 && parts.iter().all(|part| part.is_finite())).then_some(parts)
}

/// Draws the stacks; `None` when no arm has an account.
pub(crate) fn figure(id: &str, accounts: &[ArmCpu], arms: &Arms) -> Option<Figure> {
    let longest = accounts.iter().filter_map(parts).map(|p| p.iter().sum::<f64>()).fold(0.0, f64::max);
    (longest > 0.0).then(|| Figure::draw(id, |page| draw(page, accounts, arms, longest)))
}

fn draw(page: &Page, accounts: &[ArmCpu], arms: &Arms, longest: f64) -> String {
    let mut svg = Svg::new(&page.id, page.width);
    for (i, (_, class, pattern)) in PARTS.iter().enumerate() {
        let id = format!("{}-p{i}", svg.id());
        svg.define(&format!(
            r#"<pattern id="{id}" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" class="{class}"/>{pattern}</pattern>"#
        ));
    }
    let left = if page.narrow { 10.0 } else { label_width(arms) };
    let right = if page.narrow { page.width - 12.0 } else { page.width - 120.0 };
    let unit = accounts.first().map_or(Unit::Count, unit);
    let axis = Axis::linear((0.0, longest), left, right);
    let top = draw_legend(&mut svg, left, page) + 10.0;
    let row = if page.narrow { 54.0 } else { 42.0 };
    let bottom = top + row * arms.iter().count() as f64;
    let scale = Scale::new(&unit, longest);
    let ticks = linear_ticks((0.0, scale.number(longest)), if page.narrow { 4 } else { 7 });
    for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
        let x = axis.at(tick / scale.number(1.0));
        svg.line((x, top), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), Anchor::Middle, "tick", &text);
    }
    svg.line((left, bottom), (right, bottom), "axis");
    let title = format!("CPU of the system under test, {}", scale.unit());
    svg.text(((left + right) / 2.0, bottom + 36.0), Anchor::Middle, "axis-title", &title);
    let mut described = Vec::new();
    for (i, arm) in arms.iter().enumerate() {
        let account = accounts.iter().find(|cpu| cpu.arm == arm.id).and_then(parts);
        draw_row(&mut svg, &arm.label, account, &unit, &scale, &axis, top + row * i as f64, page);
        described.push(describe(&arm.label, account, &unit));
    }
    svg.finish(bottom + 44.0, "CPU for one unit of work on each arm, by where it was spent", &described.join("; "))
}

/// Draws the names of the parts and gives the height that they took.
fn draw_legend(svg: &mut Svg, left: f64, page: &Page) -> f64 {
    let (mut x, mut y) = (left, 16.0);
    for (i, (name, _, _)) in PARTS.iter().enumerate() {
        let width = 22.0 + text_width(name, TEXT) + 16.0;
        if x > left && x + width > page.width {
            (x, y) = (left, y + 20.0);
        }
        let pattern = format!("{}-p{i}", svg.id());
        svg.rect_filled((x, y - 11.0), (16.0, 13.0), &pattern);
        svg.text((x + 22.0, y), Anchor::Start, "label", name);
        x += width;
    }
    y
}

#[allow(clippy::too_many_arguments, reason = "a row of a figure is all of these and nothing else needs them together")]
fn draw_row(
    svg: &mut Svg,
    label: &str,
    account: Option<[f64; 5]>,
    unit: &Unit,
    scale: &Scale,
    axis: &Axis,
    top: f64,
    page: &Page,
) {
    let bar_top = if page.narrow { top + 24.0 } else { top + 9.0 };
    let bar_height = 24.0;
    let label_at = if page.narrow { (10.0, top + 18.0) } else { (axis.start() - 14.0, bar_top + 16.0) };
    let (anchor, room) = if page.narrow { (Anchor::Start, 220.0) } else { (Anchor::End, axis.start() - 16.0) };
    for line in wrapped(label, room, TEXT, 1) {
        svg.text(label_at, anchor, "label", &line);
    }
    let total_at = |x: f64| if page.narrow { (page.width - 12.0, top + 18.0) } else { (x + 10.0, bar_top + 16.0) };
    let total_anchor = if page.narrow { Anchor::End } else { Anchor::Start };
    let Some(parts) = account else {
        svg.text(total_at(axis.start() - 8.0), total_anchor, "muted", "no CPU account");
        return;
    };
    let mut sum = 0.0;
    for (i, part) in parts.iter().enumerate().filter(|(_, part)| **part > 0.0) {
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
    svg.text(total_at(axis.at(sum)), total_anchor, "value strong", &format::value(sum, unit));
}

fn describe(label: &str, account: Option<[f64; 5]>, unit: &Unit) -> String {
    let Some(parts) = account else {
        return format!("{label}: no CPU account");
    };
    let named: Vec<String> =
        PARTS.iter().zip(parts).map(|((name, _, _), part)| format!("{name} {}", format::value(part, unit))).collect();
    format!("{label}: {} in all: {}", format::value(parts.iter().sum(), unit), named.join(", "))
}
