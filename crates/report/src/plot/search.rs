//! The chance that an instance holds a load, fitted to every try: a curve an arm, the tries that held above it and those that missed below.

use tare_model::findings::{SearchFindings, Thresholds};

use super::arms::ArmLook;
use super::dots::whisker;
use super::scale::{Axis, extent, log_ticks, tick_texts};
use super::svg::{Anchor, Shape, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format;

/// Height of one arm's row of tries, pixels.
const ROW: f64 = 13.0;
/// Height of the curves, pixels.
const HEIGHT: f64 = 190.0;

/// One arm.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    pub(crate) arm: ArmLook,
    pub(crate) searches: &'a [SearchFindings],
    pub(crate) fit: &'a Thresholds,
}

/// Draws the arms; `None` when nothing was tried. `noun`: what loads are counted in.
pub(crate) fn figure(id: &str, rows: &[Row<'_>], noun: &str) -> Option<Figure> {
    let (low, high) = extent(rows.iter().flat_map(Row::tries).map(|(_, load, _)| load).filter(|load| *load > 0.0))?;
    let x = (low / 1.05, high * 1.05);
    Some(Figure::draw(id, |page| Chart { rows, noun, x }.draw(page)))
}

struct Chart<'a> {
    rows: &'a [Row<'a>],
    noun: &'a str,
    x: (f64, f64),
}

impl Chart<'_> {
    fn draw(&self, page: &Page) -> String {
        let mut svg = Svg::new(&page.id, page.width);
        let (left, right) = if page.narrow { (50.0, page.width - 12.0) } else { (92.0, page.width - 24.0) };
        let tries = ROW * self.rows.len() as f64;
        let held = self.keys(&mut svg, page) + 14.0;
        let top = held + tries + 6.0;
        let (bottom, x) = (top + HEIGHT, Axis::log(self.x, left, right));
        let y = Axis::linear((0.0, 1.0), bottom, top);
        let end = bottom + tries + 6.0;
        let ticks = log_ticks(self.x, if page.narrow { 4 } else { 8 });
        for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
            svg.line((x.at(*tick), held), (x.at(*tick), end), "grid");
            svg.text((x.at(*tick), end + 16.0), Anchor::Middle, "tick", &text);
        }
        for share in [0.0, 0.5, 0.95] {
            svg.line((left, y.at(share)), (right, y.at(share)), "grid");
            svg.text((left - 8.0, y.at(share) + 4.0), Anchor::End, "tick", &format::share(share));
        }
        svg.text((left - 8.0, held + 8.0), Anchor::End, "tick", "held");
        svg.text((left - 8.0, end - 2.0), Anchor::End, "tick", "missed");
        svg.line((left, bottom), (right, bottom), "axis");
        svg.text(((left + right) / 2.0, end + 36.0), Anchor::Middle, "axis-title", self.noun);
        svg.clipped((left, held - 6.0), (right - left, end - held + 12.0), "plot", |svg| {
            for (n, row) in self.rows.iter().enumerate() {
                row.curve(svg, &x, &y);
                let at = ROW * n as f64 + ROW / 2.0;
                row.marks(svg, &x, (held + at, bottom + 6.0 + at), self.noun);
            }
        });
        let described: Vec<String> = self.rows.iter().map(|row| row.described(self.noun)).collect();
        svg.finish(end + 46.0, "The chance that an instance holds a load", &described.join("; "))
    }

    /// Names the arms; where the last line of them stands.
    fn keys(&self, svg: &mut Svg, page: &Page) -> f64 {
        let (mut x, mut y) = (14.0, 14.0);
        for row in self.rows {
            let label = wrapped(&row.arm.label, page.width - 90.0, TEXT, 1).concat();
            let width = 48.0 + text_width(&label, TEXT) + 16.0;
            if x > 14.0 && x + width > page.width {
                (x, y) = (14.0, y + 20.0);
            }
            svg.polyline(&[(x, y - 4.0), (x + 34.0, y - 4.0)], &format!("{} curve", row.arm.class), row.arm.dash);
            svg.mark(row.arm.shape, (x + 17.0, y - 4.0), 3.8, &row.arm.mark(), "");
            svg.text((x + 42.0, y), Anchor::Start, "label", &label);
            x += width;
        }
        y
    }
}

impl Row<'_> {
    /// (block, load, why it missed) in order.
    fn tries(&self) -> impl Iterator<Item = (u32, f64, Option<&str>)> {
        self.searches
            .iter()
            .flat_map(|search| search.tried.iter().map(|(load, why)| (search.block, *load, why.as_deref())))
    }

    fn curve(&self, svg: &mut Svg, x: &Axis, y: &Axis) {
        let half = &self.fit.half;
        if self.fit.curve.is_empty() {
            return;
        }
        let drawn = self.fit.curve.iter().map(|(load, chance)| (x.at(*load), y.at(*chance)));
        let all: Vec<(f64, f64)> =
            [(x.start(), y.at(1.0))].into_iter().chain(drawn).chain([(x.end(), y.at(0.0))]).collect();
        svg.polyline(&all, &format!("{} curve", self.arm.class), self.arm.dash);
        if let Some(bounds) = format::bounds(half) {
            whisker(svg, x, bounds, y.at(0.5), &self.arm.class);
        }
        let tip = format!("{}: half of the instances hold {}", self.arm.label, format::trimmed(half.value.round()));
        svg.mark(self.arm.shape, (x.at(half.value), y.at(0.5)), 4.2, &self.arm.mark(), &tip);
    }

    fn marks(&self, svg: &mut Svg, x: &Axis, (held, missed): (f64, f64), noun: &str) {
        for (block, load, why) in self.tries().filter(|(_, load, _)| *load > 0.0) {
            let tip = format!(
                "{}, block {}: {} {noun}, {}",
                self.arm.label,
                block,
                format::trimmed(load),
                why.unwrap_or("held")
            );
            match why {
                None => svg.mark(self.arm.shape, (x.at(load), held), 3.4, &self.arm.mark(), &tip),
                Some(_) => cross(svg, (x.at(load), missed), &self.arm.class, &tip),
            }
        }
    }

    fn described(&self, noun: &str) -> String {
        let (mut held, mut missed) = (0, 0);
        self.tries().for_each(|(.., why)| *(if why.is_none() { &mut held } else { &mut missed }) += 1);
        let half = format::trimmed(self.fit.half.value.round());
        format!("{}: half of the instances hold {half} {noun}; {held} tries held, {missed} missed", self.arm.label)
    }
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
