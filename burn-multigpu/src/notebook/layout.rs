//! Which device holds which part of a tensor.

use super::display::{show, show_text};
use super::svg::{Anchor, COLOURS, Svg, colour};
use crate::backend::{InnerBackend, OnMesh};
use crate::layout::Layout;
use crate::mesh::Mesh;
use crate::table::columns;
use burn::tensor::TensorMetadata;
use std::fmt;
use std::ops::Range;

/// A picture of tensors on a mesh: a row for each tensor and a column for each member, in which what
/// the member holds is filled.
///
/// ```
/// use burn_multigpu::notebook::prelude::*;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let rows = Tensor::<MultiGpu<Flex>, 2>::zeros([5, 3], &mesh.device());
/// mesh.shard(&rows, 0);
/// let picture = LayoutPicture::new(&mesh).tensor("rows", &rows);
/// assert_eq!(
///     picture.to_string(),
///     "\
/// tensor  shape   layout                flex:0     flex:1
/// rows    [5, 3]  sharded along 0: 3+2  rows 0..3  rows 3..5"
/// );
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LayoutPicture<B: InnerBackend> {
    mesh: Mesh<B>,
    tensors: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    shape: Vec<usize>,
    /// None while it is not decided.
    layout: Option<Layout>,
}

/// What a member holds of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Undecided,
    All,
    Summand,
    Nothing,
    Part { dim: usize, range: Range<usize> },
}

/// Sizes in pixels.
const TENSOR: [f64; 2] = [88.0, 64.0];
const VECTOR: f64 = 22.0;
const COLUMN: f64 = 140.0;
const ROW: f64 = 104.0;
/// The least for names; they take more if they are long.
const LEFT: f64 = 130.0;
const HEAD: f64 = 34.0;

impl<B: InnerBackend> LayoutPicture<B> {
    /// Without a tensor yet.
    #[must_use]
    pub fn new(mesh: &Mesh<B>) -> Self {
        Self {
            mesh: mesh.clone(),
            tensors: Vec::new(),
        }
    }

    /// With a tensor as it lies now.
    ///
    /// # Panics
    ///
    /// If the tensor is not on the mesh.
    #[must_use]
    pub fn tensor(mut self, name: &str, tensor: &impl OnMesh<B>) -> Self {
        self.tensors.push(Entry {
            name: name.to_string(),
            shape: tensor.primitive().shape().to_vec(),
            layout: self.mesh.layout(tensor),
        });
        self
    }

    /// Shows it in a notebook.
    pub fn evcxr_display(&self) {
        show("image/svg+xml", &self.to_svg(), &self.to_string());
    }

    /// The picture.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let labels: Vec<&str> = self.labels().collect();
        let left = self.left();
        let width = left + COLUMN * labels.len() as f64;
        let height = HEAD + ROW * self.tensors.len().max(1) as f64;
        let mut svg = Svg::new(width as usize, height as usize);
        hatching(&mut svg, labels.len());
        for (member, label) in labels.iter().enumerate() {
            let x = left + COLUMN * member as f64;
            svg.rect(
                [x, 11.0, 12.0, 12.0],
                format_args!("fill=\"{}\"", colour(member)),
            );
            svg.text(x + 18.0, 21.0, Anchor::Start, "font-weight=\"bold\"", label);
        }
        if self.tensors.is_empty() {
            svg.text(12.0, HEAD + 20.0, Anchor::Start, "", "no tensors");
        }
        for (row, entry) in self.tensors.iter().enumerate() {
            entry.draw(&mut svg, [left, HEAD + ROW * row as f64], labels.len());
        }
        svg.finish()
    }

    /// The width of what stands before the columns: letters are some 7 pixels wide.
    fn left(&self) -> f64 {
        let letters = self.tensors.iter().flat_map(|entry| {
            [
                entry.name.chars().count(),
                format!("{:?}", entry.shape).len(),
                entry.kind().len(),
            ]
        });
        (letters.max().unwrap_or_default() as f64 * 7.0 + 28.0).max(LEFT)
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.mesh
            .members()
            .iter()
            .map(|member| member.label.as_str())
    }
}

impl<B: InnerBackend> fmt::Display for LayoutPicture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["tensor", "shape", "layout"]
            .into_iter()
            .chain(self.labels());
        let head = head.map(str::to_string).collect();
        let rows = self.tensors.iter().map(|entry| {
            let start = [
                entry.name.clone(),
                format!("{:?}", entry.shape),
                entry.words(),
            ];
            let held = (0..self.mesh.len()).map(|member| entry.text(&entry.held(member)));
            start.into_iter().chain(held).collect()
        });
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        f.write_str(&columns(&vec![false; 3 + self.mesh.len()], &rows))
    }
}

impl Layout {
    /// Shows it in a notebook, as text.
    pub fn evcxr_display(&self) {
        show_text(&self.to_string());
    }
}

impl Entry {
    fn words(&self) -> String {
        match &self.layout {
            None => "not decided yet".to_string(),
            Some(layout) => layout.to_string(),
        }
    }

    /// Without the sizes of the parts, which stand below them in the picture.
    fn kind(&self) -> String {
        match &self.layout {
            Some(Layout::Sharded { dim, .. }) => format!("sharded along {dim}"),
            _ => self.words(),
        }
    }

    fn held(&self, member: usize) -> Held {
        match &self.layout {
            None => Held::Undecided,
            Some(Layout::Replicated) => Held::All,
            Some(Layout::Partial) => Held::Summand,
            Some(Layout::Sharded { dim, bounds }) => match bounds.range(member) {
                range if range.is_empty() => Held::Nothing,
                range => Held::Part { dim: *dim, range },
            },
        }
    }

    fn text(&self, held: &Held) -> String {
        match held {
            Held::Undecided => "?".to_string(),
            Held::All => "all".to_string(),
            Held::Summand => "a summand".to_string(),
            Held::Nothing => "nothing".to_string(),
            Held::Part { dim, range } => {
                let what = match (dim, self.shape.len()) {
                    (0, _) => "rows".to_string(),
                    (1, 2) => "columns".to_string(),
                    (dim, _) => format!("dim {dim}:"),
                };
                format!("{what} {}..{}", range.start, range.end)
            }
        }
    }

    fn draw(&self, svg: &mut Svg, [left, top]: [f64; 2], members: usize) {
        let start = Anchor::Start;
        svg.text(12.0, top + 26.0, start, "font-weight=\"bold\"", &self.name);
        svg.text(12.0, top + 44.0, start, "", &format!("{:?}", self.shape));
        svg.text(12.0, top + 62.0, start, "fill=\"#555555\"", &self.kind());
        for member in 0..members {
            let x = left + COLUMN * member as f64;
            let held = self.held(member);
            self.draw_part(svg, [x, top + 8.0], &held, member);
            let below = top + TENSOR[1] + 24.0;
            svg.text(x, below, start, "font-size=\"11\"", &self.text(&held));
            if held == Held::Summand && member > 0 {
                let middle = top + 8.0 + TENSOR[1] / 2.0 + 6.0;
                let plus = "font-size=\"18\" fill=\"#555555\"";
                svg.text(x - 26.0, middle, Anchor::Middle, plus, "+");
            }
        }
    }

    /// The outline of the tensor, and in it what the member holds. Down is the first dimension,
    /// across the second, or the one that is cut.
    fn draw_part(&self, svg: &mut Svg, [x, y]: [f64; 2], held: &Held, member: usize) {
        let width = match self.shape.len() {
            0 | 1 => VECTOR,
            _ => TENSOR[0],
        };
        let height = TENSOR[1];
        let all = [x, y, width, height];
        let (filled, fill) = match held {
            Held::Undecided | Held::Nothing => (None, String::new()),
            Held::All => (Some(all), colour(member)),
            Held::Summand => (Some(all), format!("url(#sum{})", member % COLOURS.len())),
            Held::Part { dim, range } => {
                let len = self.shape[*dim].max(1) as f64;
                let (from, to) = (range.start as f64 / len, range.end as f64 / len);
                let part = match dim {
                    0 => [x, y + from * height, width, (to - from) * height],
                    _ => [x + from * width, y, (to - from) * width, height],
                };
                (Some(part), colour(member))
            }
        };
        if let Some(part) = filled {
            svg.rect(part, format_args!("fill=\"{fill}\""));
        }
        let outline = "fill=\"none\" stroke=\"#999999\" stroke-dasharray=\"4 3\"";
        svg.rect(all, outline);
    }
}

/// Hatching in each member's colour, for sums that are still in parts.
fn hatching(svg: &mut Svg, members: usize) {
    for member in 0..members.min(COLOURS.len()) {
        let colour = colour(member);
        svg.raw(&format!(
            "<defs><pattern id=\"sum{member}\" width=\"7\" height=\"7\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
             <rect width=\"7\" height=\"7\" fill=\"{colour}\" fill-opacity=\"0.2\"/>\
             <rect width=\"3\" height=\"7\" fill=\"{colour}\"/></pattern></defs>"
        ));
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::MultiGpu;
    use crate::layout::Bounds;
    use burn::backend::Flex;
    use burn::tensor::Tensor;

    const GOOD: &str = "it is as it should be";

    fn picture(entries: Vec<(&str, &[usize], Option<Layout>)>) -> LayoutPicture<Flex> {
        let mut picture = LayoutPicture::new(&Mesh::open("flex:0-2").expect(GOOD));
        picture.tensors = entries
            .into_iter()
            .map(|(name, shape, layout)| Entry {
                name: name.to_string(),
                shape: shape.to_vec(),
                layout,
            })
            .collect();
        picture
    }

    fn sharded(dim: usize, sizes: [usize; 3]) -> Option<Layout> {
        let bounds = Bounds::from_sizes(sizes);
        Some(Layout::Sharded { dim, bounds })
    }

    #[test]
    fn parts_are_drawn_where_they_lie() {
        let svg = picture(vec![("x", &[8, 2], sharded(0, [4, 4, 0]))]).to_svg();
        // The upper half in the first column, the lower in the second, and nothing in the third.
        let (first, second) = (colour(0), colour(1));
        for (x, y, colour) in [(133, 42, first), (273, 74, second)] {
            let part =
                format!("<rect x=\"{x}\" y=\"{y}\" width=\"88\" height=\"32\" fill=\"{colour}\"/>");
            assert!(svg.contains(&part), "{svg}");
        }
        assert_eq!(svg.matches("height=\"32\"").count(), 2);
        for text in [
            "rows 0..4",
            "rows 4..8",
            "nothing",
            "[8, 2]",
            "sharded along 0",
        ] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}: {svg}");
        }
    }

    #[test]
    fn other_layouts_are_told_apart() {
        let svg = picture(vec![
            ("columns", &[2, 4], sharded(1, [2, 1, 1])),
            ("deep", &[2, 4, 6], sharded(2, [2, 2, 2])),
            ("vector", &[3], Some(Layout::Replicated)),
            ("sum", &[2, 2], Some(Layout::Partial)),
            ("new", &[2, 2], None),
        ])
        .to_svg();
        for (text, times) in [
            (">columns 2..3<", 1),
            (">dim 2: 4..6<", 1),
            // Three times the vector, and two quarters of the columns.
            ("width=\"22\" height=\"64\" fill=\"#", 3 + 2),
            (">all<", 3),
            ("fill=\"url(#sum1)\"", 1),
            (">a summand<", 3),
            (">+<", 2),
            (">not decided yet<", 1),
        ] {
            assert_eq!(svg.matches(text).count(), times, "{text}: {svg}");
        }
        assert!(picture(Vec::new()).to_svg().contains(">no tensors<"));
    }

    #[test]
    fn tensors_are_drawn_as_they_lie() {
        let mesh = Mesh::<Flex>::open("flex:0,1").expect(GOOD);
        let x = Tensor::<MultiGpu<Flex>, 2>::ones([6, 4], &mesh.device());
        let w = Tensor::<MultiGpu<Flex>, 2>::ones([4, 2], &mesh.device());
        let picture = LayoutPicture::new(&mesh).tensor("before", &x);
        mesh.shard(&x, 0);
        mesh.replicate(&w);
        let picture = picture.tensor("x", &x).tensor("w", &w);
        let sum = x.matmul(w).sum_dim(0);
        let text = picture.tensor("sum", &sum).to_string();
        let expected = "\
tensor  shape   layout                flex:0     flex:1
before  [6, 4]  not decided yet       ?          ?
x       [6, 4]  sharded along 0: 3+3  rows 0..3  rows 3..6
w       [4, 2]  replicated            all        all
sum     [1, 2]  partial sum           a summand  a summand";
        assert_eq!(text, expected);
    }
}
