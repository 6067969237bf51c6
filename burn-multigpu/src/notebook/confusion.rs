//! Which class was taken for which.

use super::display::show;
use super::svg::{Anchor, Svg};
use crate::collective::device_error;
use crate::error::{Error, Result};
use crate::table::columns;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use std::fmt;

/// The class of each row of logits: where the largest is.
///
/// ```
/// use burn_multigpu::notebook::prelude::*;
///
/// let device = Default::default();
/// let logits = Tensor::<Flex, 2>::from_floats([[0.1, 3.0], [2.0, -1.0]], &device);
/// assert_eq!(classes(logits)?, [1, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Device`] with what the device reports.
pub fn classes<B: Backend>(logits: Tensor<B, 2>) -> Result<Vec<usize>> {
    let device = logits.device();
    let data = logits.argmax(1).try_into_data();
    let data = data.map_err(device_error(&device))?;
    Ok(data.iter::<i64>().map(|class| class as usize).collect())
}

/// How often each class was taken for each: a row for a label, a column for a prediction.
///
/// ```
/// use burn_multigpu::notebook::ConfusionMatrix;
///
/// let (labels, predictions) = ([0_u8, 1, 1, 2], [0_usize, 1, 2, 2]);
/// let matrix = ConfusionMatrix::new(3, &labels, &predictions)?;
/// assert_eq!(matrix.accuracy(), 0.75);
/// assert_eq!(matrix.count(1, 2), 1);
/// assert_eq!(
///     matrix.to_string(),
///     "\
/// 3 of 4 are right (75.0 %); rows are labels, columns predictions
///    0  1  2
/// 0  1  .  .
/// 1  .  1  1
/// 2  .  .  1"
/// );
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfusionMatrix {
    classes: usize,
    /// Row by row.
    counts: Vec<usize>,
}

impl ConfusionMatrix {
    /// Counts labels and what was predicted in their place.
    ///
    /// # Errors
    ///
    /// [`Error::Unequal`] when there is not one prediction for each label, [`Error::Class`] for a
    /// class that there is not.
    pub fn new<L, P>(classes: usize, labels: &[L], predictions: &[P]) -> Result<Self>
    where
        L: Copy + Into<usize>,
        P: Copy + Into<usize>,
    {
        if labels.len() != predictions.len() {
            return Err(Error::Unequal {
                labels: labels.len(),
                predictions: predictions.len(),
            });
        }
        let mut counts = vec![0; classes * classes];
        for (item, (label, prediction)) in labels.iter().zip(predictions).enumerate() {
            let (label, prediction) = ((*label).into(), (*prediction).into());
            let class = label.max(prediction);
            if class >= classes {
                return Err(Error::Class {
                    class,
                    classes,
                    item,
                });
            }
            counts[label * classes + prediction] += 1;
        }
        Ok(Self { classes, counts })
    }

    /// How often a label got a prediction.
    ///
    /// # Panics
    ///
    /// If there is no such class.
    #[must_use]
    pub fn count(&self, label: usize, prediction: usize) -> usize {
        assert!(
            label < self.classes && prediction < self.classes,
            "no such class"
        );
        self.counts[label * self.classes + prediction]
    }

    /// The share of the predictions that are right; NaN where there are none.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        self.right() as f64 / self.total() as f64
    }

    fn right(&self) -> usize {
        (0..self.classes)
            .map(|class| self.count(class, class))
            .sum()
    }

    fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Shows it in a notebook.
    pub fn evcxr_display(&self) {
        show("image/svg+xml", &self.to_svg(), &self.to_string());
    }

    /// The picture: right predictions in blue, wrong ones in orange, the darker the more of its row.
    #[must_use]
    pub fn to_svg(&self) -> String {
        const CELL: f64 = 38.0;
        const LEFT: f64 = 64.0;
        const TOP: f64 = 76.0;
        let side = CELL * self.classes as f64;
        let (width, height) = ((LEFT + side + 20.0).max(340.0), TOP + side + 16.0);
        let mut svg = Svg::new(width as usize, height as usize);
        let bold = "font-weight=\"bold\"";
        svg.text(12.0, 22.0, Anchor::Start, bold, &self.summary());
        svg.text(LEFT + side / 2.0, 48.0, Anchor::Middle, "", "predicted");
        let y = TOP + side / 2.0;
        let turned = format!("transform=\"rotate(-90 18 {y})\"");
        svg.text(18.0, y, Anchor::Middle, &turned, "label");
        for class in 0..self.classes {
            let (name, middle) = (class.to_string(), CELL * (class as f64 + 0.5));
            svg.text(LEFT + middle, TOP - 8.0, Anchor::Middle, bold, &name);
            svg.text(LEFT - 8.0, TOP + middle + 4.0, Anchor::End, bold, &name);
        }
        for (label, row) in self.counts.chunks(self.classes.max(1)).enumerate() {
            let most = row.iter().sum::<usize>().max(1) as f64;
            for (prediction, &count) in row.iter().enumerate() {
                let (x, y) = (LEFT + CELL * prediction as f64, TOP + CELL * label as f64);
                let share = count as f64 / most;
                let (colour, depth) = match label == prediction {
                    true => ("#0072b2", 0.15 + 0.85 * share),
                    // Mistakes are few, and are to be seen.
                    false => ("#e69f00", 0.25 + 3.0 * share),
                };
                let depth = if count == 0 { 0.0 } else { depth.min(1.0) };
                svg.rect(
                    [x, y, CELL, CELL],
                    format_args!(
                        "fill=\"{colour}\" fill-opacity=\"{depth:.2}\" stroke=\"#dddddd\""
                    ),
                );
                if count > 0 {
                    let ink = match label == prediction && depth > 0.5 {
                        true => "fill=\"#ffffff\"",
                        false => "fill=\"#222222\"",
                    };
                    let text = count.to_string();
                    let (x, y) = (x + CELL / 2.0, y + CELL / 2.0 + 4.0);
                    svg.text(x, y, Anchor::Middle, ink, &text);
                }
            }
        }
        svg.finish()
    }

    fn summary(&self) -> String {
        match self.total() {
            0 => "no predictions".to_string(),
            total => {
                let percent = self.accuracy() * 100.0;
                format!("{} of {total} are right ({percent:.1} %)", self.right())
            }
        }
    }
}

impl fmt::Display for ConfusionMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}; rows are labels, columns predictions",
            self.summary()
        )?;
        let names = (0..self.classes).map(|class| class.to_string());
        let head = std::iter::once(String::new()).chain(names).collect();
        let rows = self.counts.chunks(self.classes.max(1)).enumerate();
        let rows = rows.map(|(label, row)| {
            let counts = row.iter().map(|count| match count {
                0 => ".".to_string(),
                count => count.to_string(),
            });
            std::iter::once(label.to_string()).chain(counts).collect()
        });
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        f.write_str(&columns(&vec![true; self.classes + 1], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "it is as it should be";

    #[test]
    fn cells_hold_counts() {
        let labels = [0_u8, 0, 0, 1, 1, 2];
        let predictions = [0_u8, 0, 1, 1, 1, 0];
        let svg = ConfusionMatrix::new(3, &labels, &predictions)
            .expect(GOOD)
            .to_svg();
        assert!(svg.contains(">4 of 6 are right (66.7 %)</text>"), "{svg}");
        // Two of three zeros are right, one is taken for a one.
        assert!(
            svg.contains("fill=\"#0072b2\" fill-opacity=\"0.72\""),
            "{svg}"
        );
        assert!(
            svg.contains("fill=\"#e69f00\" fill-opacity=\"1.00\""),
            "{svg}"
        );
        assert_eq!(svg.matches("fill-opacity=\"0.00\"").count(), 5, "{svg}");
        assert_eq!(
            svg.matches(">2</text>").count(),
            2 + 2,
            "two counts, two names: {svg}"
        );
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        let empty: [u8; 0] = [];
        let matrix = ConfusionMatrix::new(2, &empty, &empty).expect(GOOD);
        assert!(matrix.accuracy().is_nan());
        assert!(matrix.to_svg().contains(">no predictions</text>"));
        assert!(matrix.to_string().starts_with("no predictions;"));
        let none = ConfusionMatrix::new(0, &empty, &empty).expect(GOOD);
        assert!(none.to_svg().contains(">no predictions</text>"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let message = |labels: &[u8], predictions: &[u8]| {
            let matrix = ConfusionMatrix::new(2, labels, predictions);
            matrix.expect_err("it does not fit").to_string()
        };
        assert_eq!(
            message(&[0, 1, 1], &[0, 1]),
            "there are 3 labels and 2 predictions; a confusion matrix needs one for each"
        );
        assert_eq!(
            message(&[0, 1], &[0, 7]),
            "item 1 is of class 7, and there are 2 classes, from 0 on"
        );
    }
}
