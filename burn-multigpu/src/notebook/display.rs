//! The protocol between a notebook's program and its kernel.

use std::io::{self, Write};

/// A text in HTML or SVG.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Hands a picture or a table to the kernel, with the text for those who cannot draw it.
pub(super) fn show(mime: &str, content: &str, text: &str) {
    // In one piece, so that no other thread writes between the lines. Where nobody listens any more,
    // nothing is to be shown.
    let _ = io::stdout()
        .lock()
        .write_all(blocks(mime, content, text).as_bytes());
}

/// Hands a text to the kernel.
pub(super) fn show_text(text: &str) {
    let _ = io::stdout()
        .lock()
        .write_all(block("text/plain", text).as_bytes());
}

fn blocks(mime: &str, content: &str, text: &str) -> String {
    block(mime, content) + &block("text/plain", text)
}

fn block(mime: &str, content: &str) -> String {
    format!(
        "EVCXR_BEGIN_CONTENT {mime}\n{}\nEVCXR_END_CONTENT\n",
        content.trim_end()
    )
}

/// A table with a head; `right` says of each column whether it holds numbers.
pub(super) fn table(head: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: &[String]| {
        let cells = cells.iter().zip(right).map(|(cell, right)| {
            let side = if *right { "right" } else { "left" };
            format!(
                "<{tag} style=\"text-align:{side}\">{}</{tag}>",
                escape(cell)
            )
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let rows: String = rows.iter().map(|row| cells("td", row)).collect();
    format!("<table>\n{}{rows}</table>\n", cells("th", &head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_in_two_forms() {
        assert_eq!(
            blocks("text/html", "<b>1</b>\n", "1"),
            "EVCXR_BEGIN_CONTENT text/html\n<b>1</b>\nEVCXR_END_CONTENT\n\
             EVCXR_BEGIN_CONTENT text/plain\n1\nEVCXR_END_CONTENT\n"
        );
    }

    #[test]
    fn names_cannot_break_a_table() {
        let rows = [vec!["<GPU> & \"co\"".to_string(), "7".to_string()]];
        let html = table(&["name", "n"], &[false, true], &rows);
        assert!(html.contains(
            "<td style=\"text-align:left\">&lt;GPU&gt; &amp; &quot;co&quot;</td>\
             <td style=\"text-align:right\">7</td>"
        ));
    }
}
