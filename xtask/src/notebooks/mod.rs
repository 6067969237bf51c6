//! `cargo xtask notebooks`: the notebooks do what they were saved with.
//!
//! | file | what lives there |
//! |---|---|
//! | `tools.rs` | Python, nbclient and the kernel: what there is, what is missing, how to get it |
//! | `execute.py` | runs one notebook |
//! | `compare.rs` | what a notebook printed beside what it was saved with |
//! | `text.rs` | when two texts say the same |

mod compare;
mod text;
mod tools;

use anyhow::{Context, Result, bail};
use compare::differences;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tools::Tools;

const FOLDER: &str = "examples/notebooks";

/// Runs all notebooks, or those whose name has `only` in it.
pub(crate) fn notebooks(bless: bool, only: Option<&str>) -> Result<()> {
    let root = root()?;
    let folder = root.join(FOLDER);
    let names = names(&folder, only)?;
    let tools = Tools::find(&root)?;
    let mut failed = Vec::new();
    for name in &names {
        eprintln!("\n> {name}");
        let start = Instant::now();
        let saved = folder.join(name);
        let result = tools.execute(&saved, &folder)?;
        eprintln!("> {:.0} s", start.elapsed().as_secs_f64());
        let (before, now) = (read(&saved)?, read(&result)?);
        if bless {
            if let Some(error) = compare::first_error(&now) {
                bail!("{name} is not saved, since it fails: {error}");
            }
            fs::copy(&result, &saved).with_context(|| format!("cannot write {name}"))?;
            eprintln!("> saved");
            continue;
        }
        let found = differences(&before, &now);
        for difference in &found {
            eprintln!("\n{name}, {difference}");
        }
        if !found.is_empty() {
            failed.push(format!("{name} ({} differences)", found.len()));
        }
    }
    if !failed.is_empty() {
        bail!(
            "not what was saved: {}. If the new outputs are right, save them: \
             cargo xtask notebooks --bless",
            failed.join(", ")
        );
    }
    Ok(())
}

/// The workspace.
fn root() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.parent().context("xtask is not in a workspace")?;
    Ok(root.to_path_buf())
}

/// The file names, in order.
fn names(folder: &Path, only: Option<&str>) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {FOLDER}"))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".ipynb") && only.is_none_or(|only| name.contains(only)))
        .collect();
    names.sort();
    if names.is_empty() {
        bail!(
            "no notebook in {FOLDER} has `{}` in its name",
            only.unwrap_or_default()
        );
    }
    Ok(names)
}

fn read(path: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no notebook", path.display()))
}
