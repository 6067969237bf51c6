//! Images in rows, with a line of text each.

use super::display::show;
use super::svg::{Anchor, Svg};
use crate::error::{Error, Result};
use std::fmt::{self, Write};

/// Grey images of one size in a grid, such as the digits that a network got wrong.
///
/// ```
/// use burn_multigpu::notebook::ImageGrid;
///
/// let mut grid = ImageGrid::new(2, 2);
/// grid.push(&[0, 255, 255, 0], "a cross")?;
/// grid.push(&[255, 255, 0, 0], "a bar")?;
/// assert!(grid.to_svg().contains(">a cross</text>"));
/// // In a terminal, the labels alone.
/// assert_eq!(grid.to_string(), "2 images of 2x2: a cross | a bar");
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageGrid {
    rows: usize,
    columns: usize,
    per_line: usize,
    images: Vec<(Vec<u8>, String)>,
}

/// Width and height of an image on the screen.
const SIDE: f64 = 84.0;
const CELL: [f64; 2] = [104.0, 116.0];
/// How many greys are told apart.
const GREYS: u8 = 16;

impl ImageGrid {
    /// For images of as many rows and columns of pixels.
    #[must_use]
    pub fn new(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            per_line: 8,
            images: Vec::new(),
        }
    }

    /// How many images stand in a line: 8 unless set, and at least one.
    #[must_use]
    pub fn per_line(mut self, images: usize) -> Self {
        self.per_line = images.max(1);
        self
    }

    /// Adds an image, row by row, from 0 for black to 255 for white, and a few words for the line
    /// below it.
    ///
    /// # Errors
    ///
    /// [`Error::Pixels`] when it has another number of pixels than the grid's images.
    pub fn push(&mut self, pixels: &[u8], label: &str) -> Result<()> {
        if pixels.len() != self.rows * self.columns {
            return Err(Error::Pixels {
                rows: self.rows,
                columns: self.columns,
                found: pixels.len(),
            });
        }
        self.images.push((pixels.to_vec(), label.to_string()));
        Ok(())
    }

    /// Shows it in a notebook.
    pub fn evcxr_display(&self) {
        show("image/svg+xml", &self.to_svg(), &self.to_string());
    }

    /// The picture.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let lines = self.images.len().div_ceil(self.per_line).max(1);
        let across = self.images.len().clamp(1, self.per_line);
        let [width, height] = [CELL[0] * across as f64, CELL[1] * lines as f64];
        let mut svg = Svg::new(width as usize, height as usize);
        if self.images.is_empty() {
            svg.text(CELL[0] / 2.0, 40.0, Anchor::Middle, "", "no images");
        }
        for (index, (pixels, label)) in self.images.iter().enumerate() {
            let x = CELL[0] * (index % self.per_line) as f64;
            let y = CELL[1] * (index / self.per_line) as f64;
            self.draw(&mut svg, [x + 10.0, y + 10.0], pixels);
            svg.text(
                x + CELL[0] / 2.0,
                y + SIDE + 25.0,
                Anchor::Middle,
                "font-size=\"11\"",
                label,
            );
        }
        svg.finish()
    }

    /// A path for each grey, of all runs of pixels that have it.
    fn draw(&self, svg: &mut Svg, [x, y]: [f64; 2], pixels: &[u8]) {
        let scale = SIDE / self.rows.max(self.columns).max(1) as f64;
        svg.raw(&format!(
            "<g transform=\"translate({x} {y}) scale({scale:.3})\" shape-rendering=\"crispEdges\">\
             <path fill=\"#000000\" d=\"M0 0h{}v{}H0z\"/>",
            self.columns, self.rows
        ));
        for grey in 1..GREYS {
            let mut path = String::new();
            for (row, line) in pixels.chunks(self.columns.max(1)).enumerate() {
                for run in runs(line, grey) {
                    let length = run.len();
                    let _ = write!(path, "M{} {row}h{length}v1h-{length}z", run.start);
                }
            }
            if !path.is_empty() {
                let level = u32::from(grey) * 255 / u32::from(GREYS - 1);
                svg.raw(&format!(
                    "<path fill=\"#{level:02x}{level:02x}{level:02x}\" d=\"{path}\"/>"
                ));
            }
        }
        svg.raw("</g>");
    }
}

/// Where a line of pixels has a grey.
fn runs(line: &[u8], grey: u8) -> Vec<std::ops::Range<usize>> {
    let level = |pixel: u8| (u32::from(pixel) * u32::from(GREYS - 1) + 127) / 255;
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (column, _) in line
        .iter()
        .enumerate()
        .filter(|(_, pixel)| level(**pixel) == u32::from(grey))
    {
        match runs.last_mut() {
            Some(run) if run.end == column => run.end += 1,
            _ => runs.push(column..column + 1),
        }
    }
    runs
}

impl fmt::Display for ImageGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} images of {}x{}",
            self.images.len(),
            self.rows,
            self.columns
        )?;
        for (index, (_, label)) in self.images.iter().enumerate() {
            write!(f, "{}{label}", if index == 0 { ": " } else { " | " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "it is as it should be";

    #[test]
    fn pixels_are_drawn_in_their_grey() {
        let mut grid = ImageGrid::new(2, 4);
        grid.push(&[0, 255, 255, 0, 136, 0, 0, 136], "7, taken for 1")
            .expect(GOOD);
        let svg = grid.to_svg();
        assert!(
            svg.contains("<path fill=\"#ffffff\" d=\"M1 0h2v1h-2z\"/>"),
            "{svg}"
        );
        assert!(
            svg.contains("<path fill=\"#888888\" d=\"M0 1h1v1h-1zM3 1h1v1h-1z\"/>"),
            "{svg}"
        );
        // The ground and two greys.
        assert_eq!(svg.matches("<path").count(), 3, "{svg}");
        assert!(svg.contains(">7, taken for 1</text>"), "{svg}");
    }

    #[test]
    fn images_stand_in_lines() {
        let mut grid = ImageGrid::new(1, 1).per_line(2);
        for label in ["a", "b", "c"] {
            grid.push(&[9], label).expect(GOOD);
        }
        let svg = grid.to_svg();
        for place in ["translate(10 10)", "translate(114 10)", "translate(10 126)"] {
            assert!(svg.contains(place), "{place}: {svg}");
        }
        assert!(svg.contains("width=\"208\" height=\"232\""), "{svg}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut grid = ImageGrid::new(28, 28);
        let error = grid.push(&[0; 10], "").expect_err("it does not fit");
        assert_eq!(
            error.to_string(),
            "an image of 10 pixels, in a grid of images of 28x28"
        );
        assert!(grid.to_svg().contains(">no images</text>"));
        assert_eq!(grid.to_string(), "0 images of 28x28");
    }
}
