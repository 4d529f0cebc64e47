//! SVG text: the few shapes that the figures are made of.
//!
//! Nothing here has a colour. Shapes carry classes, the style sheet of the page gives them colours
//! through custom properties, and so one figure serves light, dark and print.

use std::fmt::Write as _;

/// Size of ordinary text in a figure, pixels of the view box.
pub(crate) const TEXT: f64 = 12.5;

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a mark: the second carrier of what colour tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Diamond,
    TriangleUp,
    TriangleDown,
    Cross,
}

impl Shape {
    pub(crate) const ALL: [Self; 6] =
        [Self::Circle, Self::Square, Self::Diamond, Self::TriangleUp, Self::TriangleDown, Self::Cross];
}

/// A figure being drawn.
#[derive(Debug)]
pub(crate) struct Svg {
    id: String,
    width: f64,
    defs: String,
    body: String,
}

impl Svg {
    /// An empty figure `width` wide. `id` must be unique in the page.
    pub(crate) fn new(id: &str, width: f64) -> Self {
        Self { id: id.to_owned(), width, defs: String::new(), body: String::new() }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.put(format_args!(
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" class="{class}"/>"#,
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1)
        ));
    }

    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), class: &str) {
        self.put(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" class="{class}"/>"#,
            n(at.0),
            n(at.1),
            n(size.0.max(0.0)),
            n(size.1.max(0.0))
        ));
    }

    /// A rectangle filled with a pattern of this figure's definitions.
    pub(crate) fn rect_filled(&mut self, at: (f64, f64), size: (f64, f64), pattern: &str) {
        self.put(format_args!(
            r##"<rect x="{}" y="{}" width="{}" height="{}" fill="url(#{pattern})"/>"##,
            n(at.0),
            n(at.1),
            n(size.0.max(0.0)),
            n(size.1.max(0.0))
        ));
    }

    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str, dash: &str) {
        let mut d = String::with_capacity(points.len() * 12);
        for (i, &(x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, n(x), n(y));
        }
        let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        self.put(format_args!(r#"<path d="{d}" class="{class}"{dash}/>"#));
    }

    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        self.put(format_args!(
            r#"<text x="{}" y="{}" class="{class}"{anchor}>{}</text>"#,
            n(at.0),
            n(at.1),
            escaped(text)
        ));
    }

    /// A mark of radius `r`, with a text that shows while the pointer rests on it.
    pub(crate) fn mark(&mut self, shape: Shape, at: (f64, f64), r: f64, class: &str, tip: &str) {
        let (x, y) = at;
        let title = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) };
        let polygon = |points: &[(f64, f64)]| {
            points.iter().map(|(dx, dy)| format!("{},{}", n(x + dx * r), n(y + dy * r))).collect::<Vec<_>>().join(" ")
        };
        let points = match shape {
            Shape::Circle => {
                self.put(format_args!(
                    r#"<circle cx="{}" cy="{}" r="{}" class="{class}">{title}</circle>"#,
                    n(x),
                    n(y),
                    n(r)
                ));
                return;
            }
            Shape::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Shape::Diamond => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
            Shape::TriangleUp => polygon(&[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)]),
            Shape::TriangleDown => polygon(&[(0.0, 1.2), (1.15, -0.85), (-1.15, -0.85)]),
            Shape::Cross => polygon(&[
                (-0.4, -1.1),
                (0.4, -1.1),
                (0.4, -0.4),
                (1.1, -0.4),
                (1.1, 0.4),
                (0.4, 0.4),
                (0.4, 1.1),
                (-0.4, 1.1),
                (-0.4, 0.4),
                (-1.1, 0.4),
                (-1.1, -0.4),
                (-0.4, -0.4),
            ]),
        };
        self.put(format_args!(r#"<polygon points="{points}" class="{class}">{title}</polygon>"#));
    }

    /// Adds to the definitions; `markup` is this crate's own, never a user's text.
    pub(crate) fn define(&mut self, markup: &str) {
        self.defs.push_str(markup);
    }

    /// Draws what `draw` draws clipped to a rectangle.
    pub(crate) fn clipped(&mut self, at: (f64, f64), size: (f64, f64), name: &str, draw: impl FnOnce(&mut Self)) {
        let id = format!("{}-{name}", self.id);
        let clip = format!(
            r#"<clipPath id="{id}"><rect x="{}" y="{}" width="{}" height="{}"/></clipPath>"#,
            n(at.0),
            n(at.1),
            n(size.0.max(0.0)),
            n(size.1.max(0.0))
        );
        self.define(&clip);
        self.put(format_args!(r#"<g clip-path="url(#{id})">"#));
        draw(self);
        self.put(format_args!("</g>"));
    }

    /// The figure as text, with what it is (`title`) and what it shows (`description`) for those who cannot see it.
    pub(crate) fn finish(self, height: f64, title: &str, description: &str) -> String {
        let Self { id, width, defs, body } = self;
        let defs = if defs.is_empty() { String::new() } else { format!("<defs>{defs}</defs>") };
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-labelledby="{id}-t {id}-d"><title id="{id}-t">{}</title><desc id="{id}-d">{}</desc>{defs}{body}</svg>"#,
            n(width),
            n(height),
            escaped(title),
            escaped(description)
        )
    }

    fn put(&mut self, markup: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(markup);
    }
}

/// A coordinate with as many digits as a screen can show.
fn n(x: f64) -> String {
    if !x.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{x:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text made safe for markup; characters that XML does not allow become the replacement character.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Roughly how wide a text is, in pixels at `size`; on the wide side for most fonts.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | '\'' | '|' | ':' | ';' | '!' => 0.32,
            ' ' | 'f' | 't' | 'r' | '[' | ']' | '(' | ')' | '/' | '-' => 0.41,
            'm' | 'w' | 'M' | 'W' | '%' => 0.95,
            'A'..='Z' => 0.70,
            c if c.is_ascii() => 0.62,
            // Wide scripts take a full em.
            _ => 1.0,
        })
        .sum();
    em * size
}

/// What stands in parentheses at the end of a text, with the space before it: it tells apart what has the same name, or
/// qualifies it (`(emulated)`), and must not be cut off. Empty where there is none, or no room for it.
fn qualifier(text: &str, width: f64, size: f64) -> &str {
    let found = text.rfind(" (").filter(|_| text.ends_with(')')).map_or("", |at| &text[at..]);
    if text_width(found, size) + 2.0 * size <= width { found } else { "" }
}

/// A text cut into at most `lines` lines of `width` pixels, the last with an ellipsis if there is more, which keeps what
/// stands in parentheses at the end.
pub(crate) fn wrapped(text: &str, width: f64, size: f64, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let last = out.last().map_or("", String::as_str);
        let joined = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        if last.is_empty() || text_width(&joined, size) <= width {
            out.pop();
            out.push(joined);
        } else {
            out.push(word.to_owned());
        }
    }
    let more = out.len() > lines.max(1);
    out.truncate(lines.max(1));
    let end = out.len() - 1;
    for (i, line) in out.iter_mut().enumerate() {
        let cut_after = more && i == end;
        if cut_after || text_width(line, size) > width {
            let kept = if i == end { qualifier(text, width, size) } else { "" };
            let room = width - text_width(kept, size);
            while !line.is_empty() && text_width(line, size) + size > room {
                line.pop();
            }
            *line = format!("{}\u{2026}{kept}", line.trim_end());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_stays_text() {
        let mut svg = Svg::new("f", 10.0);
        svg.text((0.0, 0.0), Anchor::Start, "l", "<script>\"'&]]>\u{1}");
        let out = svg.finish(10.0, "a<b", "c&d");
        assert!(!out.contains("<script>") && out.contains("&lt;script&gt;"), "{out}");
        let tree = roxmltree::Document::parse(&out).expect("well-formed");
        assert_eq!(tree.root_element().attribute("role"), Some("img"));
    }

    #[test]
    fn long_labels_are_cut_with_an_ellipsis() {
        let lines = wrapped("a rather long label of a case that nobody would draw in one line", 120.0, 12.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('\u{2026}'));
        assert!(lines.iter().all(|line| text_width(line, 12.0) <= 132.0));
        assert_eq!(wrapped("short", 120.0, 12.0, 2), ["short"]);
        assert_eq!(
            wrapped("a virtual machine of any kind (emulated)", 150.0, 12.0, 1),
            ["a virtual\u{2026} (emulated)"]
        );
        assert!(wrapped("oneverylongwordthatcannotbebrokenanywhere", 60.0, 12.0, 2)[0].ends_with('\u{2026}'));
    }
}
