//! Tables as text.

/// Lines of cells, aligned: `right` says of each column whether it holds numbers.
pub(crate) fn columns(right: &[bool], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).zip(right);
        let cells = cells.map(|((cell, &width), right)| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |name: &str, n: &str| vec![name.to_string(), n.to_string()];
        let text = columns(&[false, true], &[row("a", "100"), row("long", "7")]);
        assert_eq!(text, "a     100\nlong    7");
    }
}
