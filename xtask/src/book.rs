//! `cargo xtask book`: checks the links of the book and of the READMEs, and that their code is
//! compiled by the tests, and builds the book.

use super::run;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// How to get the version that the book is built with. Its server and its watcher are left out.
const INSTALL: &str =
    "cargo install mdbook --version 0.5.4 --locked --no-default-features --features search";

/// The folder of the pages, and the list of them.
const PAGES: &str = "docs/src";
const SUMMARY: &str = "docs/src/SUMMARY.md";

/// Where the tests name the files whose code they compile.
const COMPILED: &str = "tests/src/book.rs";

/// Files outside the book that are checked as well.
const OTHERS: [&str; 3] = ["README.md", "burn-multigpu/README.md", "examples/README.md"];

/// Checks links, and builds the book unless told not to.
pub(crate) fn book(links_only: bool) -> Result<()> {
    links()?;
    if links_only {
        return Ok(());
    }
    if Command::new("mdbook").arg("--version").output().is_err() {
        bail!("mdbook is missing: {INSTALL}");
    }
    let mut mdbook = Command::new("mdbook");
    mdbook.args(["build", "docs"]);
    run(mdbook)?;
    eprintln!("the book is target/book/index.html");
    Ok(())
}

/// Fails with a line for each link that leads nowhere, for each page that is not in the list, and for
/// code that nobody compiles.
fn links() -> Result<()> {
    let mut files = BTreeMap::new();
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    for entry in std::fs::read_dir(PAGES).with_context(|| format!("cannot read {PAGES}"))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("md")) {
            files.insert(path.clone(), Page::new(&read(&path)?));
        }
    }
    for path in OTHERS.map(PathBuf::from) {
        let page = Page::new(&read(&path)?);
        files.insert(path, page);
    }
    let mut faults = check(&files, |path| path.exists());
    faults.extend(check_code(&files, &read(Path::new(COMPILED))?));
    let count: usize = files.values().map(|page| page.links.len()).sum();
    eprintln!("{count} links in {} files", files.len());
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// What a file links to, and what in it can be linked to.
#[derive(Debug, Default)]
struct Page {
    /// Targets with the lines that they are in, from 1.
    links: Vec<(usize, String)>,
    anchors: HashSet<String>,
    /// What stands behind the marks where blocks of Rust begin, with their lines.
    code: Vec<(usize, String)>,
}

impl Page {
    fn new(text: &str) -> Self {
        let mut page = Self::default();
        let mut fence: Option<&str> = None;
        for (index, line) in text.lines().enumerate() {
            let start = line.trim_start();
            match fence {
                Some(open) => {
                    if start.starts_with(open) {
                        fence = None;
                    }
                }
                None if start.starts_with("```") || start.starts_with("~~~") => {
                    let (mark, language) = start.split_at(3);
                    fence = Some(mark);
                    if language.is_empty() || language.starts_with("rust") {
                        page.code.push((index + 1, language.to_string()));
                    }
                }
                None => {
                    let title = start.trim_start_matches('#');
                    if title.len() < start.len() && title.starts_with(' ') {
                        page.heading(title);
                    }
                    let found = targets(line);
                    page.links.extend(found.map(|target| (index + 1, target)));
                }
            }
        }
        page
    }

    /// A heading's name as mdBook and GitHub make it; a second one of the same words gets a number.
    fn heading(&mut self, title: &str) {
        let name: String = title
            .trim()
            .chars()
            .filter_map(|c| match c {
                c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
                c if c.is_whitespace() => Some('-'),
                _ => None,
            })
            .flat_map(char::to_lowercase)
            .collect();
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| !self.anchors.contains(name));
        self.anchors.extend(free);
    }
}

/// The targets of the links of a line, `code` left out: `[text](target)` and `[name]: target`.
fn targets(line: &str) -> impl Iterator<Item = String> {
    // Every second part is between backquotes.
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    let prose = prose.join("`");
    let inline = prose.split("](").skip(1).filter_map(|rest| {
        let target = rest.split_once(')')?.0;
        target.split_whitespace().next().map(str::to_string)
    });
    let named = prose
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split_whitespace().next().map(str::to_string));
    inline.chain(named).collect::<Vec<_>>().into_iter()
}

/// A line for each fault.
fn check(files: &BTreeMap<PathBuf, Page>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, page) in files {
        for (line, target) in &page.links {
            if let Some(fault) = check_link(files, path, target, &exists) {
                faults.push(format!("{}:{line}: {target}: {fault}", path.display()));
            }
        }
    }
    let Some(summary) = files.get(Path::new(SUMMARY)) else {
        faults.push(format!("{SUMMARY} is missing"));
        return faults;
    };
    let listed: HashSet<PathBuf> = summary
        .links
        .iter()
        .map(|(_, target)| Path::new(PAGES).join(target))
        .collect();
    for path in files.keys() {
        if path.starts_with(PAGES) && path != Path::new(SUMMARY) && !listed.contains(path) {
            faults.push(format!("{}: not in SUMMARY.md", path.display()));
        }
    }
    faults
}

/// A line for each block of Rust that is not compiled; one without a language is Rust to rustdoc.
fn check_code(files: &BTreeMap<PathBuf, Page>, compiled: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, page) in files {
        let path = path.display();
        for (line, language) in &page.code {
            if language.contains("ignore") {
                faults.push(format!("{path}:{line}: code that is not compiled"));
            }
        }
        if !page.code.is_empty() && !compiled.contains(&format!("\"{path}\"")) {
            faults.push(format!("{path}: has code and is not in {COMPILED}"));
        }
    }
    faults
}

fn check_link(
    files: &BTreeMap<PathBuf, Page>,
    from: &Path,
    target: &str,
    exists: impl Fn(&Path) -> bool,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = match file {
        "" => from.to_path_buf(),
        file => normal(&from.parent().unwrap_or(Path::new("")).join(file)),
    };
    if from.starts_with(PAGES) && !path.starts_with(PAGES) {
        return Some("leads out of the book, which readers of the built one do not have");
    }
    match (files.get(&path), anchor) {
        (Some(page), Some(anchor)) if !page.anchors.contains(anchor) => {
            Some("there is no such heading")
        }
        (Some(_), _) => None,
        (None, _) if exists(&path) => None,
        (None, _) => Some("there is no such file"),
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_names_that_mdbook_gives_them() {
        let page = Page::new(
            "# Errors and timeouts\n## `multigpu devices`\n```sh\n# no heading\n```\n\
             ## Which engine?\n## Other\n## Other\n#no heading",
        );
        let mut anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        anchors.sort_unstable();
        let expected = [
            "errors-and-timeouts",
            "multigpu-devices",
            "other",
            "other-1",
            "which-engine",
        ];
        assert_eq!(anchors, expected);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let page = Page::new(
            "[a](b.md#c) and [`d`](e.md), `[f](g.md)`\n\n[h]: i.md\n```text\n[j](k.md)\n```\n",
        );
        let links: Vec<(usize, &str)> = page.links.iter().map(|(n, t)| (*n, t.as_str())).collect();
        assert_eq!(links, [(1, "b.md#c"), (1, "e.md"), (3, "i.md")]);
    }

    #[test]
    fn code_that_is_not_compiled_is_told() {
        let page = |path: &str, text| (PathBuf::from(path), Page::new(text));
        let files = BTreeMap::from([
            page(
                "a.md",
                "```rust,no_run\n```\n```text\n```\n```rust,ignore\n```",
            ),
            page("b.md", "```\n```"),
            page("c.md", "```sh\n```"),
        ]);
        let faults = check_code(&files, "a \"a.md\",");
        let expected = [
            "a.md:5: code that is not compiled",
            "b.md: has code and is not in tests/src/book.rs",
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn what_leads_nowhere_is_told() {
        let page = |path: &str, text| (Path::new(PAGES).join(path), Page::new(text));
        let files = BTreeMap::from([
            page("SUMMARY.md", "[A](a.md)"),
            page(
                "a.md",
                "# Here\n[x](#here) [x](#there) [x](b.md) [x](c.md) [x](../../README.md)",
            ),
            page("b.md", "[web](https://burn.dev) [x](./a.md#here)"),
        ]);
        let faults = check(&files, |_| false);
        let expected = [
            "docs/src/a.md:2: #there: there is no such heading",
            "docs/src/a.md:2: c.md: there is no such file",
            "docs/src/a.md:2: ../../README.md: leads out of the book, which readers of the built \
             one do not have",
            "docs/src/b.md: not in SUMMARY.md",
        ];
        assert_eq!(faults, expected);
    }
}
