//! The page on troubleshooting: that every error has a line there, and every line the words of the
//! program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Where the program's messages are written.
const FOLDERS: [&str; 4] = [
    "burn-multigpu/src",
    "kernels/src",
    "examples/src",
    "examples/digits/src",
];

/// The beginnings of those that are the compiler's and Burn's, or put together of words.
const OTHERS: [&str; 4] = [
    "the trait bound",
    "The provided tensors are not",
    "cannot create the folder",
    "cannot replace",
];

#[test]
fn every_error_is_on_the_page() {
    let text = read("burn-multigpu/src/error.rs");
    let (_, variants) = text.split_once("pub enum Error {").expect("the errors");
    let named: BTreeSet<&str> = variants
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next())
        .collect();
    assert!(named.len() > 25, "{named:?}");
    let page = read("docs/src/troubleshooting.md");
    for name in named {
        assert!(page.contains(&format!("(`{name}`)")), "{name} is missing");
    }
}

#[test]
fn every_message_on_the_page_is_one_of_the_program() {
    let literals: Vec<Pattern> = FOLDERS
        .into_iter()
        .flat_map(|folder| sources(&Path::new(ROOT).join(folder)))
        .flat_map(|path| literals(&std::fs::read_to_string(path).expect("a source file")))
        .map(|literal| Pattern::new(&literal, "{", "}"))
        .collect();
    let page = read("docs/src/troubleshooting.md");
    let messages = messages(&page);
    assert!(messages.len() > 70, "{messages:?}");
    let known = |message: &str| {
        let pattern = Pattern::new(message, "...", "").within();
        // Values that the page has as examples are gaps in the source.
        let percent = match message.contains(|c: char| c.is_ascii_digit()) {
            true => 50,
            false => 75,
        };
        let needed = (pattern.literal() * percent).div_ceil(100);
        let mut alike = literals
            .iter()
            .filter(|literal| literal.resembles(&pattern));
        alike.any(|literal| pattern.matched(literal).is_some_and(|n| n >= needed))
    };
    // An error and its cause are written in two places.
    let with_cause = |message: &str| {
        let mut colons = message.match_indices(": ");
        colons.any(|(at, _)| {
            known(&format!("{}...", &message[..at + 2])) && known(&message[at + 2..])
        })
    };
    let unknown: Vec<&String> = messages
        .iter()
        .filter(|message| !OTHERS.iter().any(|start| message.starts_with(start)))
        .filter(|message| !known(message) && !with_cause(message))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).expect(path)
}

/// The Rust files in a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    entries
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}

/// The string literals of a file, its comments left out.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code = source.replace("'\"'", "");
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut chars = code.chars().peekable();
    let mut literal: Option<String> = None;
    while let Some(c) = chars.next() {
        match (&mut literal, c) {
            (None, '"') => literal = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => found.extend(literal.take()),
            (Some(text), '\\') => match chars.next() {
                // A line that goes on: its break and the blanks after it are no part of it.
                Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some(c) => text.push(c),
                None => {}
            },
            (Some(text), c) => text.push(c),
        }
    }
    found
}

/// The messages in the first column of the tables: what stands there as code, without the names of
/// variants.
fn messages(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|row| row.split(" | ").next())
        .flat_map(|cell| {
            let cell = cell.trim_start_matches("| ").replace("``", "\u{1}");
            let (mark, cell) = match cell.contains('\u{1}') {
                true => ('\u{1}', cell),
                false => ('`', cell),
            };
            let parts: Vec<String> = cell.split(mark).map(str::to_string).collect();
            let code = parts.iter().enumerate().filter(|(index, _)| index % 2 == 1);
            code.filter(|(index, _)| !parts[index - 1].ends_with('('))
                .map(|(_, text)| text.trim().to_string())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Text with gaps, in which anything can stand.
struct Pattern(Vec<Option<char>>);

impl Pattern {
    /// Text in which `open`, and what follows up to `close`, is a gap.
    fn new(text: &str, open: &str, close: &str) -> Self {
        let mut tokens = Vec::new();
        let mut parts = text.split(open);
        tokens.extend(parts.next().unwrap_or_default().chars().map(Some));
        for part in parts {
            tokens.push(None);
            let rest = part.split_once(close).map_or("", |(_, rest)| rest);
            tokens.extend(rest.chars().map(Some));
        }
        Self(tokens)
    }

    /// With a gap before and after it.
    fn within(mut self) -> Self {
        self.0.insert(0, None);
        self.0.push(None);
        self
    }

    /// How many characters are given.
    fn literal(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Whether eight characters in a row, or all of a shorter one, are those of the other.
    fn resembles(&self, other: &Self) -> bool {
        let own: BTreeSet<&[Option<char>]> = self.0.windows(8).collect();
        let mut windows = other.0.windows(8).filter(|window| !window.contains(&None));
        windows.any(|window| own.contains(window))
    }

    /// The most characters that are given in both, over all texts that both describe.
    fn matched(&self, other: &Self) -> Option<usize> {
        let (rows, columns) = (self.0.len(), other.0.len());
        let mut best = vec![vec![None; columns + 1]; rows + 1];
        best[rows][columns] = Some(0);
        for row in (0..=rows).rev() {
            for column in (0..=columns).rev() {
                let (own, its) = (self.0.get(row), other.0.get(column));
                let mut here: Option<usize> = best[row][column];
                if own == Some(&None) {
                    here = here.max(best[row + 1][column]);
                    if its.is_some() {
                        here = here.max(best[row][column + 1]);
                    }
                }
                if its == Some(&None) {
                    here = here.max(best[row][column + 1]);
                    if own.is_some() {
                        here = here.max(best[row + 1][column]);
                    }
                }
                if let (Some(Some(a)), Some(Some(b))) = (own, its)
                    && a == b
                {
                    here = here.max(best[row + 1][column + 1].map(|n| n + 1));
                }
                best[row][column] = here;
            }
        }
        best[0][0]
    }
}
