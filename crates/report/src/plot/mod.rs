//! The figures of the report: a small SVG layer and one file a figure.
//!
//! Every figure is drawn twice, for a wide and for a narrow page, and the style sheet shows one. Colour
//! is never the only carrier: arms differ by mark shape and dash too, parts of a bar by pattern.

pub(crate) mod arms;
pub(crate) mod bars;
pub(crate) mod ccdf;
pub(crate) mod cpu;
pub(crate) mod curves;
pub(crate) mod dots;
pub(crate) mod history;
pub(crate) mod ratios;
pub(crate) mod scale;
pub(crate) mod search;
pub(crate) mod stack;
pub(crate) mod steps;
pub(crate) mod svg;
pub(crate) mod timeline;

use serde::Serialize;

/// Width of the view box on a wide page, which is its width in CSS pixels there.
const WIDE: f64 = 820.0;
/// Width of the view box on a narrow page.
const NARROW: f64 = 380.0;

/// One figure in its two layouts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    /// SVG for a wide page.
    pub(crate) wide: String,
    /// SVG for a narrow page.
    pub(crate) narrow: String,
}

/// The page that a figure is drawn for.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Id of the figure, unique in the report.
    pub(crate) id: String,
    /// Width of the view box.
    pub(crate) width: f64,
    /// Whether labels stand above what they name instead of beside it.
    pub(crate) narrow: bool,
}

impl Figure {
    /// Draws a figure for both pages.
    pub(crate) fn draw(id: &str, draw: impl Fn(&Page) -> String) -> Self {
        Self {
            wide: draw(&Page { id: format!("{id}-w"), width: WIDE, narrow: false }),
            narrow: draw(&Page { id: format!("{id}-n"), width: NARROW, narrow: true }),
        }
    }
}
