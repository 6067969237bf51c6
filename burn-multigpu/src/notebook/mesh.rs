//! The members of a mesh, what it did, and why.

use super::display::{escape, show, table};
use crate::mesh::{Mesh, MeshStats, member};
use burn::tensor::backend::Backend;
use std::fmt::{self, Write};

impl<B: Backend> Mesh<B> {
    /// Shows a table of the members in a notebook.
    ///
    /// ```
    /// use burn_multigpu::notebook::prelude::*;
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// mesh.evcxr_display(); // what `mesh` at the end of a cell does
    /// # Ok::<(), Error>(())
    /// ```
    pub fn evcxr_display(&self) {
        show("text/html", &self.to_html(), &self.to_string());
    }

    /// The table of the members.
    fn to_html(&self) -> String {
        let rows: Vec<Vec<String>> = member::rows(self.members()).collect();
        table(&member::HEAD, &member::RIGHT, &rows)
    }
}

impl MeshStats {
    /// Shows the counters as tables in a notebook.
    pub fn evcxr_display(&self) {
        show("text/html", &self.to_html(), &self.to_string());
    }

    /// What the members sent, and what the decorator did with each kind of operation.
    fn to_html(&self) -> String {
        let collectives = &self.collectives;
        let moved = collectives.sent.iter().zip(&collectives.received);
        let members: Vec<Vec<String>> = moved
            .enumerate()
            .map(|(member, (sent, received))| {
                vec![member.to_string(), sent.to_string(), received.to_string()]
            })
            .collect();
        let mut html = table(
            &["member", "bytes sent", "bytes received"],
            &[true; 3],
            &members,
        );
        let operations: Vec<Vec<String>> = self
            .operations
            .operations
            .iter()
            .map(|(name, counts)| {
                let numbers = [
                    counts.sharded,
                    counts.replicated,
                    counts.fallbacks,
                    counts.gathers,
                    counts.gathered_bytes,
                    counts.reductions,
                    counts.reduced_bytes,
                ];
                let numbers = numbers.iter().map(u64::to_string);
                std::iter::once(name.to_string()).chain(numbers).collect()
            })
            .collect();
        if operations.is_empty() {
            let _ = writeln!(
                html,
                "<p>{} all-reduces of {} buckets</p>",
                collectives.all_reduces, collectives.buckets
            );
        } else {
            html += &table(
                &[
                    "operation",
                    "in parts",
                    "whole",
                    "fallbacks",
                    "gathers",
                    "bytes gathered",
                    "sums",
                    "bytes summed",
                ],
                &[false, true, true, true, true, true, true, true],
                &operations,
            );
        }
        html
    }
}

/// What [`Mesh::explain`] says, as a notebook shows it.
///
/// ```
/// use burn_multigpu::notebook::prelude::*;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let x = Tensor::<MultiGpu<Flex>, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &mesh.device());
/// assert_eq!((x * 2.0).sum().into_scalar(), 20.0);
/// let explanation = Explanation::of(&mesh);
/// assert!(explanation.to_string().contains("operations ran in parts"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation(String);

impl Explanation {
    /// Of the last step on the mesh as a device.
    #[must_use]
    pub fn of<B: Backend>(mesh: &Mesh<B>) -> Self {
        Self(mesh.explain())
    }

    /// Shows it in a notebook.
    pub fn evcxr_display(&self) {
        show("text/html", &self.to_html(), &self.to_string());
    }

    /// The summary, and a list of what moved.
    fn to_html(&self) -> String {
        let mut lines = self.0.lines().map(escape);
        let mut html = format!("<p><b>{}</b></p>\n", lines.next().unwrap_or_default());
        let mut items = lines.peekable();
        if items.peek().is_some() {
            let items: String = items.map(|line| format!("<li>{line}</li>\n")).collect();
            let _ = write!(html, "<ul>\n{items}</ul>\n");
        }
        html
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::MultiGpu;
    use burn::backend::Flex;
    use burn::tensor::Tensor;

    const GOOD: &str = "it is as it should be";

    #[test]
    fn members_are_rows() {
        let html = Mesh::<Flex>::open("flex:0,3").expect(GOOD).to_html();
        assert_eq!(html.matches("<tr>").count(), 3, "{html}");
        for text in [
            "<th style=\"text-align:left\">bus id</th>",
            ">flex:0<",
            ">flex:3<",
        ] {
            assert!(html.contains(text), "{html}");
        }
    }

    #[test]
    fn counters_and_reasons_are_shown() {
        let mesh = Mesh::<Flex>::open("flex:0,1").expect(GOOD);
        assert_eq!(
            Explanation::of(&mesh).to_html(),
            "<p><b>nothing has run on this mesh as a device</b></p>\n"
        );
        assert!(
            mesh.stats()
                .to_html()
                .contains("0 all-reduces of 0 buckets")
        );

        let rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let x = Tensor::<MultiGpu<Flex>, 2>::from_floats(rows, &mesh.device());
        (x * 2.0).cumsum(0).into_data();
        let html = Explanation::of(&mesh).to_html();
        assert!(
            html.starts_with("<p><b>1 operations ran in parts"),
            "{html}"
        );
        assert!(
            html.contains("<li>NumericFloat::CumSum: [3, 2] of 24 bytes"),
            "{html}"
        );
        let html = mesh.stats().to_html();
        assert!(
            html.contains(
                "NumericFloat::CumSum</td><td style=\"text-align:right\">0</td>\
                 <td style=\"text-align:right\">0</td><td style=\"text-align:right\">1</td>"
            ),
            "{html}"
        );
    }
}
