//! Writing SVG.

use super::display::escape;
use std::fmt::{Display, Write};

/// Colours that are told apart also by those who see red and green alike (Okabe and Ito).
pub(super) const COLOURS: [(u8, u8, u8); 8] = [
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (213, 94, 0),
    (148, 103, 189),
    (120, 120, 120),
];

/// The colour of a member, or of a curve.
pub(super) fn colour(index: usize) -> String {
    let (red, green, blue) = COLOURS[index % COLOURS.len()];
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A drawing on a white ground, which dark notebooks need.
pub(super) struct Svg {
    body: String,
}

/// Where a text is fixed.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self {
            body: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
                 <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
            ),
        }
    }

    pub(super) fn rect(&mut self, [x, y, width, height]: [f64; 4], attributes: impl Display) {
        let [x, y, width, height] = [x, y, width, height].map(rounded);
        self.raw(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {attributes}/>"
        ));
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, attributes: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let ([x, y], text) = ([x, y].map(rounded), escape(text));
        self.raw(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" {attributes}>{text}</text>"
        ));
    }

    pub(super) fn raw(&mut self, element: &str) {
        let _ = writeln!(self.body, "{element}");
    }

    pub(super) fn finish(self) -> String {
        self.body + "</svg>\n"
    }
}

/// To a tenth of a pixel.
fn rounded(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}
