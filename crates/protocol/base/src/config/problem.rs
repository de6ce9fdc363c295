//! What is wrong with a file, and where.

use std::fmt;
use std::ops::Range;

use super::message::Text;

/// How many problems of one file are worth reading at once.
pub(super) const PROBLEMS_AT_ONCE: usize = 10;

/// One thing wrong with a file. The fields are what a front end needs to show it its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file, or `--set` for an assignment of the command line.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Width of the culprit in characters; 0 where no single place is at fault.
    pub width: usize,
    /// The line's text, tabs as single spaces.
    pub source: String,
    /// TOML path, such as `links.radio.rate`; empty if not known.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right; empty if there is nothing to say.
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
    /// The part of the line around the culprit that fits a terminal, and how many characters of
    /// it stand before the culprit.
    pub fn excerpt(&self) -> (String, usize) {
        const FITS: usize = 96;
        let before = self.column - 1;
        let length = self.source.chars().count();
        // A caret may stand one past the end of the line.
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

/// Why a file was refused: one problem or several, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    pub(super) problems: Vec<Problem>,
}

impl RefusedFile {
    /// All of them; at least one.
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

/// A piece of text that spans point into.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    /// Where it starts when all sources are counted through.
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

    /// Where the next source may start. The byte between keeps a span at the very end ours.
    pub(super) fn end(&self) -> usize {
        self.offset + self.text.len() + 1
    }

    /// The problem at `span`, cut to the text and to its first line.
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
