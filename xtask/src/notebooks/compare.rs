//! What a notebook printed beside what it was saved with.

use super::text::agree;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// A cell that does not do what it was saved with.
pub(super) struct Difference {
    /// Counted as Jupyter counts what is run, from 1 on.
    cell: usize,
    /// Its first lines.
    source: String,
    expected: String,
    found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "cell [{}]:\n{}",
            self.cell,
            indented(&self.source, "    ")
        )?;
        writeln!(f, "  saved:\n{}", indented(&self.expected, "  - "))?;
        write!(f, "  now:\n{}", indented(&self.found, "  + "))
    }
}

fn indented(text: &str, by: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{by}{line}")).collect();
    lines.join("\n")
}

/// What a cell gives, as far as it is compared.
#[derive(Debug, PartialEq, Eq)]
struct Outputs {
    /// What was printed, in one piece, and values that are shown as text.
    text: String,
    /// For each picture or table, the forms it comes in. What is in it depends on the machine.
    displays: Vec<BTreeSet<String>>,
    error: Option<String>,
}

/// The cells whose outputs are not those that were saved. What is written to the standard error is
/// not compared.
pub(super) fn differences(saved: &Value, now: &Value) -> Vec<Difference> {
    let cells = code_cells(saved).zip(code_cells(now)).enumerate();
    let mut differences = Vec::new();
    for (index, (saved, now)) in cells {
        let source = text_of(&saved["source"]);
        let (before, after) = (Outputs::of(saved), Outputs::of(now));
        let (expected, found) = if saved["execution_count"].is_null() {
            (
                "nothing: the cell was not run".to_string(),
                after.describe(),
            )
        } else if let Some(error) = after.error {
            (before.describe(), format!("error: {error}"))
        } else if now["execution_count"].is_null() {
            (
                before.describe(),
                "nothing: a cell before it failed".to_string(),
            )
        } else if !agree(&before.text, &after.text) {
            (before.text, after.text)
        } else if before.displays != after.displays {
            (before.describe(), after.describe())
        } else {
            continue;
        };
        differences.push(Difference {
            cell: index + 1,
            source: source.lines().take(3).collect::<Vec<_>>().join("\n"),
            expected,
            found,
        });
    }
    differences
}

/// The first error of a notebook that was run.
pub(super) fn first_error(now: &Value) -> Option<String> {
    code_cells(now).find_map(|cell| Outputs::of(cell).error)
}

fn code_cells(notebook: &Value) -> impl Iterator<Item = &Value> {
    let cells = notebook["cells"].as_array().into_iter().flatten();
    cells.filter(|cell| cell["cell_type"] == "code")
}

/// Notebooks hold texts whole, or as lists of lines.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

impl Outputs {
    fn of(cell: &Value) -> Self {
        let mut outputs = Self {
            text: String::new(),
            displays: Vec::new(),
            error: None,
        };
        for output in cell["outputs"].as_array().into_iter().flatten() {
            match output["output_type"].as_str() {
                Some("stream") if output["name"] == "stdout" => {
                    outputs.text += &text_of(&output["text"]);
                }
                Some("error") => {
                    let lines = output["traceback"].as_array().into_iter().flatten();
                    let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
                    let name = text_of(&output["ename"]);
                    let message = format!(
                        "{name} {}\n{}",
                        text_of(&output["evalue"]),
                        lines.join("\n")
                    );
                    outputs.error.get_or_insert(plain(&message));
                }
                Some("execute_result" | "display_data") => outputs.display(&output["data"]),
                _ => {}
            }
        }
        outputs
    }

    fn display(&mut self, data: &Value) {
        let forms = data.as_object().into_iter().flatten();
        let forms: BTreeSet<String> = forms
            .filter(|(_, content)| !text_of(content).trim().is_empty())
            .map(|(mime, _)| mime.clone())
            .collect();
        if forms.iter().all(|mime| mime == "text/plain") {
            self.text += &text_of(&data["text/plain"]);
            self.text.push('\n');
        } else {
            self.displays.push(forms);
        }
    }

    fn describe(&self) -> String {
        let mut text = self.text.trim_end().to_string();
        for forms in &self.displays {
            let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
            text += &format!("\n(shown as {})", forms.join(" and "));
        }
        match text.trim_start() {
            "" => "nothing".to_string(),
            text => text.to_string(),
        }
    }
}

/// A text without the codes that colour it.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell(outputs: &Value) -> Value {
        json!({ "cells": [
            { "cell_type": "markdown", "source": "# Title" },
            { "cell_type": "code", "source": ["let x = 1;\n", "x"], "execution_count": 1, "outputs": outputs },
        ] })
    }

    fn printed(text: &str) -> Value {
        json!({ "output_type": "stream", "name": "stdout", "text": text })
    }

    fn shown(mime: &str, content: &str) -> Value {
        let data = json!({ mime: content, "text/plain": content });
        json!({ "output_type": "execute_result", "data": data })
    }

    fn report(saved: &Value, now: &Value) -> String {
        let found = differences(&cell(saved), &cell(now));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_outputs_pass() {
        let warning = json!({ "output_type": "stream", "name": "stderr", "text": "slow" });
        let saved = json!([
            printed("loss 0.25\n"),
            shown("image/svg+xml", "<svg>a</svg>")
        ]);
        // Printed in two pieces, and the picture of another machine.
        let now = json!([
            printed("loss "),
            printed("0.26\n"),
            warning,
            shown("image/svg+xml", "<svg>b</svg>")
        ]);
        assert_eq!(report(&saved, &now), "");
    }

    #[test]
    fn a_difference_says_which_cell_and_what() {
        assert_eq!(
            report(
                &json!([printed("loss 0.25\n")]),
                &json!([printed("loss 0.52\n")])
            ),
            "cell [1]:\n    let x = 1;\n    x\n  saved:\n  - loss 0.25\n  now:\n  + loss 0.52"
        );
        let text = report(
            &json!([shown("image/svg+xml", "<svg/>")]),
            &json!([shown("text/html", "<b/>")]),
        );
        assert!(
            text.contains("- (shown as image/svg+xml and text/plain)"),
            "{text}"
        );
        assert!(
            text.contains("+ (shown as text/html and text/plain)"),
            "{text}"
        );
        let text = report(&json!([shown("image/svg+xml", "<svg/>")]), &json!([]));
        assert!(text.ends_with("+ nothing"), "{text}");
        // An empty picture is none.
        let text = report(
            &json!([shown("image/svg+xml", "<svg/>")]),
            &json!([shown("image/svg+xml", " ")]),
        );
        assert!(text.ends_with("+ nothing"), "{text}");
    }

    #[test]
    fn errors_are_shown() {
        let error = json!({
            "output_type": "error", "ename": "Error", "evalue": "no such thing",
            "traceback": ["\u{1b}[31mcannot find\u{1b}[0m value `x`"],
        });
        let text = report(&json!([printed("1\n")]), &json!([error.clone()]));
        assert!(
            text.ends_with("+ error: Error no such thing\n  + cannot find value `x`"),
            "{text}"
        );
        assert!(first_error(&cell(&json!([error]))).is_some());
        assert!(first_error(&cell(&json!([printed("1")]))).is_none());
    }

    #[test]
    fn notebooks_are_saved_with_outputs() {
        let mut saved = cell(&json!([]));
        saved["cells"][1]["execution_count"] = Value::Null;
        let found = differences(&saved, &cell(&json!([printed("1\n")])));
        assert!(
            found[0]
                .to_string()
                .contains("- nothing: the cell was not run")
        );
    }
}
