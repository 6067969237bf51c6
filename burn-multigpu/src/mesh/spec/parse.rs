//! Reading a spec, character by character, so that every refusal can point at one.

use super::base::{BACKENDS, INDEX_MAX, MEMBERS_MAX, Members, MeshSpec};
use crate::error::{Error, Result};

/// ```text
/// spec    = backend [ ":" item { "," item } ]
/// item    = [ backend ":" ] number [ "-" number ]
/// ```
pub(super) fn parse(spec: &str) -> Result<MeshSpec> {
    if spec.trim().is_empty() {
        return Err(Error::EmptySpec { variable: None });
    }
    let mut reader = Reader::new(spec);
    let backend = reader.first_backend()?;
    let members = match reader.peek() {
        None => Members::All,
        Some(':') => {
            reader.separator("colon");
            Members::Indices(reader.items(backend)?)
        }
        Some(',') => {
            let reason = format!("`{backend}` alone means all its devices, so no list can follow");
            return Err(reader.here(&reason));
        }
        Some(other) => {
            let reason = format!("after the backend comes a colon, not `{other}`");
            return Err(reader.here(&reason));
        }
    };
    Ok(MeshSpec { backend, members })
}

struct Reader<'a> {
    spec: &'a str,
    chars: Vec<char>,
    at: usize,
    /// The separator read last, and its position: what a missing number is missing after.
    after: (&'static str, usize),
}

impl<'a> Reader<'a> {
    fn new(spec: &'a str) -> Self {
        Self {
            spec,
            chars: spec.chars().collect(),
            at: 0,
            after: ("", 0),
        }
    }

    fn error(&self, position: usize, reason: &str) -> Error {
        Error::MalformedSpec {
            spec: self.spec.to_string(),
            position,
            reason: reason.to_string(),
        }
    }

    fn here(&self, reason: &str) -> Error {
        self.error(self.at, reason)
    }

    /// The next character that is not blank, without taking it.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn separator(&mut self, name: &'static str) {
        self.after = (name, self.at);
        self.at += 1;
    }

    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|c| accepts(*c)) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn word(&mut self) -> String {
        self.take_while(|c| c.is_alphanumeric() || c == '_')
    }

    fn first_backend(&mut self) -> Result<&'static str> {
        match self.peek() {
            Some(c) if c.is_alphabetic() => canonical(&self.word()),
            Some(c) if c.is_ascii_digit() => {
                Err(self.here("a backend must come before the device numbers"))
            }
            Some(':') => Err(self.here("the backend before this colon is missing")),
            Some(c) => Err(self.here(&format!("a spec begins with a backend, not `{c}`"))),
            None => Err(Error::EmptySpec { variable: None }),
        }
    }

    fn items(&mut self, backend: &str) -> Result<Vec<usize>> {
        let mut indices = Vec::new();
        loop {
            self.item(backend, &mut indices)?;
            match self.peek() {
                None => return Ok(indices),
                Some(',') => self.separator("comma"),
                Some('.') => return Err(self.here("a range is written with a dash, as in `0-3`")),
                Some(other) => {
                    let reason = format!("after a device number comes a comma, not `{other}`");
                    return Err(self.here(&reason));
                }
            }
        }
    }

    fn item(&mut self, backend: &str, indices: &mut Vec<usize>) -> Result<()> {
        if self.peek().is_some_and(char::is_alphabetic) {
            self.repeated_backend(backend)?;
        }
        self.peek();
        let start = self.at;
        let first = self.number()?;
        let last = if self.peek() == Some('-') {
            self.separator("dash");
            self.number()?
        } else {
            first
        };
        if last < first {
            let reason = format!("the range {first}-{last} runs backwards; write `{last}-{first}`");
            return Err(self.error(start, &reason));
        }
        if indices.len() + (last - first + 1) > MEMBERS_MAX {
            let reason = format!("a mesh has at most {MEMBERS_MAX} members");
            return Err(self.error(start, &reason));
        }
        indices.extend(first..=last);
        Ok(())
    }

    /// The `cuda:` of the second device in `cuda:0,cuda:1`.
    fn repeated_backend(&mut self, backend: &str) -> Result<()> {
        let start = self.at;
        let word = self.word();
        if self.peek() != Some(':') {
            let reason = format!("a device number is expected here, not `{word}`");
            return Err(self.error(start, &reason));
        }
        let second = canonical(&word)?;
        if second != backend {
            return Err(Error::MixedBackends {
                first: backend.to_string(),
                second: second.to_string(),
            });
        }
        self.separator("colon");
        Ok(())
    }

    fn number(&mut self) -> Result<usize> {
        let (name, position) = self.after;
        match self.peek() {
            Some(c) if c.is_ascii_digit() => {}
            None => {
                let reason = format!("a device number is missing after this {name}");
                return Err(self.error(position, &reason));
            }
            Some(',') => return Err(self.here("a device number is missing before this comma")),
            Some('-') => return Err(self.here("a device number cannot be negative")),
            Some(other) => {
                let reason = format!("a device number is expected here, not `{other}`");
                return Err(self.here(&reason));
            }
        }
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        if let Some(c) = self.chars.get(self.at)
            && (c.is_alphanumeric() || *c == '_')
        {
            return Err(self.here(&format!("`{c}` cannot be part of a device number")));
        }
        match digits.parse() {
            Ok(number) if number <= INDEX_MAX => Ok(number),
            _ => {
                let reason = format!("device numbers go up to {INDEX_MAX}");
                Err(self.error(start, &reason))
            }
        }
    }
}

/// A backend's own name for any of its spellings.
fn canonical(name: &str) -> Result<&'static str> {
    let lower = name.to_lowercase();
    let lower = match lower.as_str() {
        "cpu" => "flex",
        "hip" => "rocm",
        other => other,
    };
    BACKENDS
        .iter()
        .find(|known| **known == lower)
        .copied()
        .ok_or_else(|| Error::UnknownBackend {
            name: name.to_string(),
            known: BACKENDS,
        })
}
