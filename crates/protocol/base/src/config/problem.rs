//! What is wrong with a file, and where.

use std::fmt;
use std::ops::Range;

use super::message::Text;

/// Maximum number of problems reported at once for one file.
pub(super) const PROBLEMS_AT_ONCE: usize = 10;

/// One problem of a file. The fields are what a front end needs to show it in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file, or `--set` for an assignment on the command line.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Width of the culprit in characters; 0 if no single place is at fault.
    pub width: usize,
    /// The text of the line, with tabs replaced by spaces.
    pub source: String,
    /// TOML path, such as `links.radio.rate`; empty if unknown.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right; empty if there is no advice.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, .. } = self;
        write!(f, "{file}:{line}:{}: {}", self.column, self.message)?;
        if self.width > 0 {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            let (text, before) = self.excerpt();
            write!(f, "\n  {number} | {text}")?;
            write!(f, "\n  {margin} | {}", " ".repeat(before))?;
            f.write_str(&"^".repeat(self.width.min(text.chars().count() - before)))?;
        }
        if !self.path.is_empty() {
            write!(f, "\n  at {}", self.path)?;
        }
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help)?;
        }
        Ok(())
    }
}

impl Problem {
    /// The part of the line around the culprit that fits a terminal, and the number of characters in it before the
    /// culprit.
    pub fn excerpt(&self) -> (String, usize) {
        const FITS: usize = 96;
        let before = self.column - 1;
        let length = self.source.chars().count();
        // The caret may be one past the end of the line.
        let padded = length.max(before + 1);
        let from = if padded <= FITS {
            0
        } else {
            before.saturating_sub(FITS / 3).min(padded - FITS)
        };
        let mut text: String = self.source.chars().skip(from).take(FITS).collect();
        while text.chars().count() <= before - from {
            text.push(' ');
        }
        (text, before - from)
    }
}

/// Why a file was refused: one or more problems, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    pub(super) problems: Vec<Problem>,
}

impl RefusedFile {
    /// All problems; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for RefusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for RefusedFile {}

/// A text that spans point into.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    /// Its offset among all sources.
    pub(super) offset: usize,
}

impl Source {
    pub(super) fn new(name: &str, text: &str, offset: usize) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            offset,
        }
    }

    /// The offset of the next source. The byte in between keeps a span at the very end in this source.
    pub(super) fn end(&self) -> usize {
        self.offset + self.text.len() + 1
    }

    /// The problem at `span`, limited to this text and to the first line of the span.
    pub(super) fn problem(&self, span: Range<usize>, path: &str, text: Text) -> Problem {
        let boundary = |at: usize| {
            let mut at = at.saturating_sub(self.offset).min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (boundary(span.start), boundary(span.end));
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |at| start + at);
        let line = self.text[line_start..line_end].trim_end_matches('\r');
        let inside = &self.text[start..end.clamp(start, line_end)];
        let everything = span.is_empty() && start == 0;
        Problem {
            file: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            width: if everything {
                0
            } else {
                inside.trim_end().chars().count().max(1)
            },
            source: line
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect(),
            path: path.to_owned(),
            message: text.message,
            help: text.help,
        }
    }
}
