//! The table in the book.

use super::EXCEPTIONS;
use super::run::Report;
use burn_multigpu::backend::operation_names;
use std::fmt::Write;

/// The book has the table between two of these.
pub const MARKER: &str = "<!-- generated: operations -->";

/// How many cases a row names: those with the fewest other operations.
const CASES_MAX: usize = 2;

/// Done by every member as a whole.
const WHOLE: &str = "not";
const ANY: &str = "along any dimension";
const BATCH: &str = "along the batch";
const OTHERS: &str = "along the other dimensions";
const MADE: &str = "made as its first use needs it";
const TWICE: &str = "along the other dimensions; over the cut one, every member reduces its part, and the results are reduced again";

/// The table, in Markdown.
pub fn render(report: &Report) -> String {
    let mut text = String::from("| operation | done in parts | tested by |\n|---|---|---|\n");
    for name in operation_names() {
        let excepted = EXCEPTIONS.iter().find(|(excepted, _)| excepted == name);
        let (how, tested) = match excepted {
            Some((_, why)) => (*why, "no case".to_string()),
            None => (how(name), tested_by(report, name)),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{name}` | {how} | {tested} |");
    }
    text
}

/// Where the table does not say what the cases showed. A mean that is cut is counted as the sum and
/// the division that are done for it.
pub fn contradictions(report: &Report) -> Vec<&'static str> {
    let said = |name: &str| how(name) != WHOLE;
    let names = report.met.keys().copied();
    names
        .filter(|name| !name.ends_with("::Mean"))
        .filter(|name| said(name) != report.in_parts.contains(name))
        .collect()
}

fn tested_by(report: &Report, name: &str) -> String {
    let mut cases = report.met.get(name).cloned().unwrap_or_default();
    cases.sort_by_key(|(_, operations)| *operations);
    let names: Vec<&str> = cases
        .iter()
        .take(CASES_MAX)
        .map(|(case, _)| *case)
        .collect();
    let others = cases.len() - names.len();
    match others {
        0 => names.join("; "),
        others => format!("{}; and {others} more", names.join("; ")),
    }
}

/// How an operation is done in parts: the rules of `partition/rules` in short.
fn how(name: &str) -> &'static str {
    let (family, op) = name.split_once("::").unwrap_or(("", name));
    match (family, op) {
        ("BaseFloat", op) => base(family, op),
        ("BaseInt" | "BaseBool", op) => without_sums(base(family, op)),
        ("NumericFloat", op) => numeric(family, op),
        ("NumericInt", op) => without_sums(numeric(family, op)),
        ("Int", "Matmul") => "along the batch, the rows and the columns",
        ("Bool" | "Int", _) => ANY,
        ("Float", op) => float(op),
        ("Module", op) => module(op),
        ("Inner", op) => inner(op),
        _ => WHOLE,
    }
}

/// Only floats are ever sums in parts.
fn without_sums(text: &'static str) -> &'static str {
    match text.rsplit_once("; ") {
        Some((rest, last)) if last.contains("in parts pass") => rest,
        _ => text,
    }
}

fn base(family: &str, op: &str) -> &'static str {
    match op {
        "Empty" | "Ones" | "Zeros" => MADE,
        "Reshape" => {
            "along dimensions that are kept, or are the first of those merged or split; sums in parts pass"
        }
        "SwapDims" | "Permute" => "along any dimension; sums in parts pass",
        "Flip" | "Unfold" | "RepeatDim" => "along the other dimensions; sums in parts pass",
        "Expand" => "along the dimensions that it had; sums in parts pass",
        "Slice" => {
            "along any dimension, where members take what they have of the range; sums in parts pass"
        }
        "Cat" => "along the other dimensions; sums in parts pass",
        "SliceAssign" => "along the dimensions that are written in full",
        "Select" | "Gather" => {
            "along the other dimensions, and along the indices; a sum in parts passes"
        }
        "GatherNd" => "along the indices; a sum in parts passes",
        "ScatterNd" if family == "BaseFloat" => {
            "adding to zeros, along the indices, which gives a sum in parts"
        }
        "ScatterNd" => WHOLE,
        "SelectAssign" | "Scatter" if family == "BaseFloat" => {
            "along the other dimensions; adding to zeros, also along the indices, which gives a sum in parts"
        }
        "SelectAssign" | "Scatter" => OTHERS,
        _ => ANY,
    }
}

fn numeric(family: &str, op: &str) -> &'static str {
    match op {
        "Full" | "IntRandom" => MADE,
        "Add" | "Sub" => "along any dimension; two sums in parts pass",
        "Mul" => "along any dimension; one sum in parts passes",
        "Div" => "along any dimension; a sum in parts passes if it is divided",
        "MulScalar" | "DivScalar" => "along any dimension; sums in parts pass",
        "Sum" | "SumDim" if family == "NumericFloat" => {
            "along any dimension, which gives a sum in parts over the cut one; sums in parts pass"
        }
        "Mean" | "MeanDim" => {
            "along the other dimensions; over the cut one, as a sum that is divided; sums in parts pass"
        }
        "Sum" | "SumDim" | "Prod" | "ProdDim" | "Max" | "MaxDim" | "Min" | "MinDim" | "MaxAbs"
        | "MaxAbsDim" => TWICE,
        "ArgMax" | "ArgMin" | "TopK" | "ArgTopK" | "MaxDimWithIndices" | "MinDimWithIndices"
        | "CumSum" | "CumProd" | "CumMin" | "CumMax" => OTHERS,
        _ => ANY,
    }
}

fn float(op: &str) -> &'static str {
    match op {
        "Random" => {
            "made as its first use needs it; members draw their parts in turn, as one device would"
        }
        "Matmul" => {
            "along the batch, the rows and the columns, and along the contracted dimension, which gives a sum in parts; one sum in parts passes"
        }
        "Cross" => "along the other dimensions; one sum in parts passes",
        "GridSample2d" => BATCH,
        "Quantize" | "Dequantize" => WHOLE,
        _ => ANY,
    }
}

fn module(op: &str) -> &'static str {
    match op {
        "Embedding" => "along the indices and the features; a sum in parts passes",
        "EmbeddingBackward" => {
            "along the features, and along the indices, which gives a sum in parts"
        }
        "Linear" => {
            "along the batch and the outputs; without a bias also along the inputs, which gives a sum in parts"
        }
        "LinearXBackward" => {
            "along the batch and the inputs, and along the outputs, which gives a sum in parts; one sum in parts passes"
        }
        "LinearWeightBackward" => {
            "along the inputs and the outputs, and along the batch, which gives a sum in parts; one sum in parts passes"
        }
        "LinearBiasBackward" => {
            "along the outputs, and along the batch, which gives a sum in parts; sums in parts pass"
        }
        "Attention" => "along the batch and the heads",
        "Rfft" | "IRfft" => OTHERS,
        "DeformableConv2dBackward" => {
            "along the batch, which gives sums in parts for the weight and the bias"
        }
        op if op.ends_with("WeightBackward") || op.ends_with("BiasBackward") => {
            "along the batch, which gives a sum in parts"
        }
        op if op.contains("Pool") || op.starts_with("Interpolate") => {
            "along the batch and the channels"
        }
        _ => BATCH,
    }
}

fn inner(op: &str) -> &'static str {
    match op {
        "Softmax" | "LogSoftmax" | "Softmin" | "Sort" | "SortWithIndices" | "Argsort" => OTHERS,
        "LayerNorm" => "along all dimensions but the last",
        _ => ANY,
    }
}
