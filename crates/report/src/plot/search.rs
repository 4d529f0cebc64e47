//! How searches for the largest load went: every load that was tried, and whether it held.

use tare_model::findings::SearchFindings;

use super::arms::ArmLook;
use super::scale::{Axis, extent, linear_ticks, tick_texts};
use super::svg::{Anchor, Shape, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format;

/// Room for the second and further tries of one load, pixels each.
const AGAIN: f64 = 9.0;

/// One search.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    pub(crate) arm: ArmLook,
    pub(crate) search: &'a SearchFindings,
    /// `native, block 2`.
    pub(crate) label: String,
}

/// Draws the searches, a row each; `None` when nothing was tried. `noun`: what loads are counted in.
pub(crate) fn figure(id: &str, rows: &[Row<'_>], noun: &str) -> Option<Figure> {
    let tried = || rows.iter().flat_map(|row| &row.search.tried).map(|(load, _)| *load).filter(|load| *load > 0.0);
    let (_, high) = extent(tried())?;
    Some(Figure::draw(id, |page| draw(page, rows, noun, high * 1.02)))
}

fn draw(page: &Page, rows: &[Row<'_>], noun: &str, last: f64) -> String {
    let mut svg = Svg::new(&page.id, page.width);
    let widest = rows.iter().map(|row| text_width(&row.label, TEXT)).fold(0.0, f64::max);
    let left = if page.narrow { 14.0 } else { (widest + 24.0).clamp(90.0, 230.0) };
    let axis = Axis::linear((0.0, last), left, page.width - if page.narrow { 14.0 } else { 130.0 });
    let top = keys(&mut svg, page) + 12.0;
    let heights: Vec<f64> = rows.iter().map(|row| row.height(page)).collect();
    let bottom = top + heights.iter().sum::<f64>();
    let ticks = linear_ticks((0.0, last), if page.narrow { 4 } else { 8 });
    for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
        svg.line((axis.at(*tick), top), (axis.at(*tick), bottom), "grid");
        svg.text((axis.at(*tick), bottom + 16.0), Anchor::Middle, "tick", &text);
    }
    svg.line((axis.start(), bottom), (axis.end(), bottom), "axis");
    let middle = (axis.start() + axis.end()) / 2.0;
    svg.text((middle, bottom + 36.0), Anchor::Middle, "axis-title", noun);
    let mut y = top;
    for (row, height) in rows.iter().zip(&heights) {
        row.draw(&mut svg, &axis, (y, y + height), page, noun);
        y += height;
    }
    let described: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.label, row.summary())).collect();
    svg.finish(bottom + 46.0, "Every load that was tried, and whether it held", &described.join("; "))
}

fn keys(svg: &mut Svg, page: &Page) -> f64 {
    let (mut x, mut y) = (14.0, 14.0);
    for (n, text) in ["met every objective", "did not", "the capacity lies between"].iter().enumerate() {
        let width = 18.0 + text_width(text, TEXT) + 16.0;
        if x > 14.0 && x + width > page.width {
            (x, y) = (14.0, y + 20.0);
        }
        match n {
            0 => svg.mark(Shape::Circle, (x, y - 4.0), 4.2, "arm-base mark", ""),
            1 => cross(svg, (x, y - 4.0), "arm-base", ""),
            _ => svg.rect((x - 6.0, y - 8.0), (14.0, 8.0), "arm-base between"),
        }
        svg.text((x + 12.0, y), Anchor::Start, "label", text);
        x += width;
    }
    y
}

/// A try that did not hold: a saltire, which no filled mark looks like.
fn cross(svg: &mut Svg, (x, y): (f64, f64), class: &str, tip: &str) {
    const R: f64 = 4.0;
    let class = format!("{class} whisker");
    svg.line((x - R, y - R), (x + R, y + R), &class);
    svg.line((x - R, y + R), (x + R, y - R), &class);
    // Lines carry no text of their own: what shows under the pointer is this.
    svg.mark(Shape::Circle, (x, y), R, "nothing", tip);
}

impl Row<'_> {
    /// (load, whether it held, why not, how often it had been tried before), in order.
    fn tries(&self) -> Vec<(f64, Option<&str>, usize)> {
        let tried = &self.search.tried;
        let again = |n: usize, load: f64| tried[..n].iter().filter(|(own, _)| (own - load).abs() < 1e-9).count();
        tried.iter().enumerate().map(|(n, (load, why))| (*load, why.as_deref(), again(n, *load))).collect()
    }

    fn height(&self, page: &Page) -> f64 {
        let most = self.tries().iter().map(|(.., again)| *again).max().unwrap_or(0);
        let label = if page.narrow { 20.0 } else { 0.0 };
        22.0 + label + AGAIN * most as f64
    }

    fn summary(&self) -> String {
        let each = |(load, why): &(f64, Option<String>)| {
            format!("{} {}", format::trimmed(*load), if why.is_none() { "held" } else { "missed" })
        };
        self.search.tried.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    fn draw(&self, svg: &mut Svg, axis: &Axis, (top, bottom): (f64, f64), page: &Page, noun: &str) {
        let y = bottom - 11.0;
        let (at, anchor, room) = if page.narrow {
            ((axis.start(), top + 14.0), Anchor::Start, 220.0)
        } else {
            ((axis.start() - 14.0, y + 4.0), Anchor::End, axis.start() - 16.0)
        };
        for line in wrapped(&self.label, room, TEXT, 1) {
            svg.text(at, anchor, "label", &line);
        }
        if let Some(missed) = self.search.missed.filter(|_| self.search.held > 0.0) {
            let (from, to) = (axis.at(self.search.held), axis.at(missed));
            svg.rect((from, y - 6.0), ((to - from).max(2.0), 12.0), &format!("{} between", self.arm.class));
        }
        let count = self.search.tried.len();
        for (n, (load, why, again)) in self.tries().into_iter().enumerate() {
            let place = (axis.at(load), y - AGAIN * again as f64);
            let tip = format!("try {} of {count}: {} {noun}, {}", n + 1, format::trimmed(load), why.unwrap_or("held"));
            match why {
                None => svg.mark(Shape::Circle, place, 3.4, &format!("{} mark", self.arm.class), &tip),
                Some(_) => cross(svg, place, &self.arm.class, &tip),
            }
        }
        let text = if self.search.held > 0.0 { format::trimmed(self.search.held) } else { "none held".to_owned() };
        let (at, anchor) = if page.narrow {
            ((axis.end(), top + 14.0), Anchor::End)
        } else {
            ((axis.end() + 14.0, y + 4.0), Anchor::Start)
        };
        svg.text(at, anchor, "value strong", &text);
    }
}
