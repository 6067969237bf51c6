//! Curves.

use super::display::show;
use super::svg::COLOURS;
use crate::table::columns;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt;

/// Curves in one picture, such as the losses of two trainings.
///
/// ```
/// use burn_multigpu::notebook::Chart;
///
/// let losses = [2.3, 1.1, 0.6, 0.4];
/// let chart = Chart::new("training").axes("step", "loss").line("two devices", &losses);
/// assert!(chart.to_svg().starts_with("<svg"));
/// assert_eq!(
///     chart.to_string(),
///     "\
/// training: loss by step
///              points  first   last  lowest  highest
/// two devices       4  2.300  0.400   0.400    2.300  █▃▁▁"
/// );
/// ```
///
/// Values that are not finite are left out. A curve without values has an entry in the legend that
/// says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    title: String,
    axes: [String; 2],
    curves: Vec<Curve>,
}

#[derive(Clone, Debug, PartialEq)]
struct Curve {
    name: String,
    /// Dots, and no line.
    dots: bool,
    /// Finite ones alone.
    points: Vec<(f64, f64)>,
    left_out: usize,
}

const SIZE: (u32, u32) = (640, 360);
/// Up to as many points of a curve are marked.
const FEW: usize = 20;
const TICKS: usize = 10;
const WHY: &str = "a picture in memory can always be drawn";

impl Chart {
    /// Without a curve yet.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_string(),
            axes: ["step", "value"].map(str::to_string),
            curves: Vec::new(),
        }
    }

    /// What the axes are called: `step` and `value` unless set.
    #[must_use]
    pub fn axes(mut self, x: &str, y: &str) -> Self {
        self.axes = [x, y].map(str::to_string);
        self
    }

    /// With a curve of values at 1, 2, 3 and so on.
    #[must_use]
    pub fn line(self, name: &str, values: &[f64]) -> Self {
        let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(values.iter().copied()).collect();
        self.points(name, &points)
    }

    /// With a curve through points (x, y).
    #[must_use]
    pub fn points(self, name: &str, points: &[(f64, f64)]) -> Self {
        self.curve(name, points, false)
    }

    /// With dots at points (x, y): to compare with a curve on which they should lie.
    #[must_use]
    pub fn dots(self, name: &str, points: &[(f64, f64)]) -> Self {
        self.curve(name, points, true)
    }

    fn curve(mut self, name: &str, points: &[(f64, f64)], dots: bool) -> Self {
        let finite = points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite());
        let finite: Vec<(f64, f64)> = finite.copied().collect();
        self.curves.push(Curve {
            name: name.to_string(),
            dots,
            left_out: points.len() - finite.len(),
            points: finite,
        });
        self
    }

    /// Shows it in a notebook.
    pub fn evcxr_display(&self) {
        show("image/svg+xml", &self.to_svg(), &self.to_string());
    }

    /// The picture.
    ///
    /// # Panics
    ///
    /// Never: a picture in memory can always be drawn.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            self.draw(&area).expect(WHY);
            area.present().expect(WHY);
        }
        svg
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        area.fill(&WHITE)?;
        let [x, y] = [self.range(|point| point.0), self.range(|point| point.1)];
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(38)
            .y_label_area_size(56)
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .axis_style(RGBColor(120, 120, 120))
            .x_labels(self.ticks(x))
            .x_desc(self.axes[0].as_str())
            .y_desc(self.axes[1].as_str())
            .x_label_formatter(&number)
            .y_label_formatter(&number)
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()?;
        for (index, curve) in self.curves.iter().enumerate() {
            let (red, green, blue) = COLOURS[index % COLOURS.len()];
            let style = RGBColor(red, green, blue).stroke_width(2);
            let dot = move |at| Circle::new(at, 3, style.filled());
            if curve.dots {
                chart
                    .draw_series(curve.points.iter().copied().map(dot))?
                    .label(curve.legend())
                    .legend(move |(x, y)| Circle::new((x + 9, y), 3, style.filled()));
                continue;
            }
            chart
                .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
                .label(curve.legend())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            // A curve of one point would be no line at all.
            if curve.points.len() <= FEW {
                chart.draw_series(curve.points.iter().copied().map(dot))?;
            }
        }
        if !self.curves.is_empty() {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.8))
                .border_style(RGBColor(200, 200, 200))
                .label_font(("sans-serif", 12))
                .draw()?;
        }
        Ok(())
    }

    /// How many numbers stand below the chart at the most: there is no epoch 1.5.
    fn ticks(&self, (from, to): (f64, f64)) -> usize {
        let mut xs = self.curves.iter().flat_map(|curve| &curve.points);
        let whole = xs.all(|(x, _)| x.fract() == 0.0);
        match whole && to - from < TICKS as f64 {
            true => (to - from).max(1.0) as usize + 1,
            false => TICKS,
        }
    }

    /// What all curves span, a little wider, and not empty.
    fn range(&self, of: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let values = self
            .curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(&of));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match high - low {
            span if span > 0.0 && span.is_finite() => (low - 0.04 * span, high + 0.04 * span),
            0.0 => (
                low - 0.5 * low.abs().max(1.0),
                high + 0.5 * high.abs().max(1.0),
            ),
            _ => (0.0, 1.0),
        }
    }
}

impl Curve {
    fn legend(&self) -> String {
        match (self.points.len(), self.left_out) {
            (0, 0) => format!("{} (no values)", self.name),
            (0, _) => format!("{} (no finite values)", self.name),
            (_, 0) => self.name.clone(),
            (_, left_out) => format!("{} ({left_out} not finite)", self.name),
        }
    }

    /// The values as a line of blocks.
    fn blocks(&self) -> String {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const LONGEST: usize = 32;
        let (low, high) = self.extremes();
        let span = (high - low).max(f64::MIN_POSITIVE);
        let parts =
            crate::shard::shard_ranges(self.points.len(), self.points.len().clamp(1, LONGEST));
        let blocks = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| {
                let count = part.len() as f64;
                let mean = self.points[part].iter().map(|point| point.1).sum::<f64>() / count;
                let place = ((mean - low) / span * 8.0) as usize;
                BLOCKS[place.min(7)]
            });
        blocks.collect()
    }

    fn extremes(&self) -> (f64, f64) {
        let values = self.points.iter().map(|point| point.1);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    }
}

/// As short as it says what it is.
fn number(value: &f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.1e}"),
        _ => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
}

impl fmt::Display for Chart {
    /// A line for each curve, for those who see no pictures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} by {}", self.title, self.axes[1], self.axes[0])?;
        if self.curves.is_empty() {
            return f.write_str("\nno curves");
        }
        let head = ["", "points", "first", "last", "lowest", "highest", ""];
        let rows = self.curves.iter().map(|curve| {
            let (low, high) = curve.extremes();
            let value = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:.3}"));
            let (first, last) = (curve.points.first(), curve.points.last());
            vec![
                curve.legend(),
                curve.points.len().to_string(),
                value(first.map(|point| point.1)),
                value(last.map(|point| point.1)),
                value(first.map(|_| low)),
                value(first.map(|_| high)),
                curve.blocks(),
            ]
        });
        let head = head.map(str::to_string).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let right = [false, true, true, true, true, true, false];
        write!(f, "\n{}", columns(&right, &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "it is as it should be";

    #[test]
    fn curves_titles_and_names_are_drawn() {
        let svg = Chart::new("a < b")
            .axes("epoch", "loss")
            .line("one", &[1.0, 0.5, 0.25])
            .points("two", &[(1.0, 0.7), (3.0, 0.1)])
            .dots("three", &[(2.0, 0.6)])
            .to_svg();
        for text in ["a &lt; b", "epoch", "loss", "one", "two", "three"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
        // Each curve once, and once in the legend.
        for colour in ["#0072B2", "#E69F00"] {
            assert_eq!(
                svg.matches(&format!("stroke=\"{colour}\"")).count(),
                2,
                "{svg}"
            );
        }
        // There is no step 1.5; three points, two, one, and one in the legend are dots.
        assert!(!svg.contains("\n1.5\n"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3 + 2 + 1 + 1, "{svg}");
        // The highest value is above the lowest: y counts down.
        let line = svg
            .lines()
            .find(|line| line.contains("#0072B2"))
            .expect(GOOD);
        let points = line.split("points=\"").nth(1).expect(GOOD);
        let ys: Vec<i32> = points
            .split_whitespace()
            .filter_map(|point| point.split_once(',')?.1.parse().ok())
            .collect();
        assert_eq!(ys.len(), 3, "{line}");
        assert!(ys[0] < ys[1] && ys[1] < ys[2], "{line}");
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        assert!(Chart::new("none").to_svg().contains("\nnone\n"));
        assert_eq!(
            Chart::new("none").to_string(),
            "none: value by step\nno curves"
        );
        let chart = Chart::new("odd")
            .line("empty", &[])
            .line("diverged", &[1.0, f64::NAN, f64::INFINITY])
            .line("lost", &[f64::NAN])
            .line("constant", &[2.0; 3]);
        let svg = chart.to_svg();
        for text in [
            "empty (no values)",
            "diverged (2 not finite)",
            "lost (no finite values)",
        ] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
        // Few points are marked: one of a curve, three of another.
        assert_eq!(svg.matches("<circle").count(), 1 + 3, "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
        assert!(
            chart
                .to_string()
                .contains("empty (no values)             0      -")
        );
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (100.0, "100"),
            (-1.5, "-1.5"),
            (2e-7, "2.0e-7"),
            (3e9, "3.0e9"),
        ] {
            assert_eq!(number(&value), text);
        }
    }
}
