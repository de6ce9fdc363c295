//! Reads configuration files: one loader for scenarios, daemon files and emulator files.
//!
//! A [`Document`] is TOML text plus assignments on top of it (`--set KEY=VALUE`). Reading it into a type refuses unknown
//! keys, bad units and impossible values. Each refusal names the file, the line, the fault and what would be right, and
//! as many as possible are reported at once.
//!
//! There are two kinds of problems. Serde's errors carry a span only where serde did not buffer the content (it does so
//! for tagged enums); there the culprit is found by removing one key after the other and observing whether the error
//! changes. Checks across keys belong to the type: it implements [`Validate`] and names TOML paths, which are looked up
//! in the text.
//!
//! Left out: comments and layout are not preserved, and no file is ever written.

mod culprit;
mod file;
mod message;
pub(crate) mod path;
mod problem;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use file::{LONGEST_DATA, LONGEST_TEXT, read_file, read_text};
pub use message::{ADDRESS_HELP, nearest};
pub use path::{Step, fits, key, steps};
pub use problem::{Problem, RefusedFile};

use path::KeyPath;
use problem::{PROBLEMS_AT_ONCE, Source};

/// Reads `text` into a `T`. Error messages name the file `file`.
///
/// # Errors
/// Everything that is wrong with the text, in the order of its lines.
///
/// # Examples
/// ```
/// use airlane_base::Rate;
/// use airlane_base::config::{self, Problems, Validate};
///
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Link { rate: Rate, window: u32 }
///
/// impl Validate for Link {
///     fn validate(&self, problems: &mut Problems) {
///         if self.window == 0 {
///             problems.add("window", "a window of 0 frames can send nothing", "write 1 or more");
///         }
///     }
/// }
///
/// let error = config::load::<Link>("rate = \"20 Mbit/s\"\nwindow = 0\n", "link.toml").unwrap_err();
/// assert!(error.to_string().starts_with("link.toml:2:10: a window of 0 frames can send nothing"));
/// ```
pub fn load<T: DeserializeOwned + Validate>(text: &str, file: &str) -> Result<T, RefusedFile> {
    Document::parse(text, file)?.read()
}

/// Checks that involve more than one key, made after all keys have been read.
pub trait Validate: JsonSchema {
    /// Adds every problem found to `problems`.
    fn validate(&self, problems: &mut Problems) {
        let _ = problems;
    }

    /// For an unknown key at `path` that people know from other files: why it cannot be used here, and what would be
    /// right. `None` lists the known keys instead.
    fn elsewhere(path: &str) -> Option<(&'static str, &'static str)> {
        let _ = path;
        None
    }

    /// A table whose entries the user names, and a key that every entry requires: `("links", "ends")`. An assignment
    /// into an entry that does not exist has probably misspelt its name; the error says so, rather than what keys such
    /// an entry would lack.
    fn entries() -> Option<(&'static str, &'static str)> {
        None
    }
}

/// A file whose keys the user chooses.
impl<T: JsonSchema> Validate for BTreeMap<String, T> {}

/// The problems that [`Validate`] found, by TOML path.
#[derive(Debug, Default)]
pub struct Problems {
    prefix: String,
    found: Vec<Finding>,
}

/// A problem whose place in the text is not known yet.
#[derive(Debug)]
struct Finding {
    path: String,
    message: String,
    help: String,
}

impl Problems {
    /// No problems.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports a problem at `path`, such as `services[1].number`, relative to the enclosing [`within`](Self::within).
    /// `help` says what would be right.
    pub fn add(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(Finding {
            path: join(&self.prefix, path),
            message: message.into(),
            help: help.into(),
        });
    }

    /// Runs `check` with paths relative to `path`. Names that the user chose must go through [`key`].
    pub fn within(&mut self, path: &str, check: impl FnOnce(&mut Self)) {
        let outer = self.prefix.clone();
        self.prefix = join(&outer, path);
        check(self);
        self.prefix = outer;
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

fn join(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_owned(),
        (prefix, "") => prefix.to_owned(),
        (prefix, path) if path.starts_with('[') => format!("{prefix}{path}"),
        (prefix, path) => format!("{prefix}.{path}"),
    }
}

/// TOML text plus assignments.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file first, then one source for each assignment.
    sources: Vec<Source>,
    assignments: Vec<Assignment>,
}

/// `path = value`, where the text of the value is a source of its own.
#[derive(Clone, Debug)]
struct Assignment {
    path: KeyPath,
    source: usize,
    /// TOML text of the value, and its offset among all sources.
    value: String,
    offset: usize,
}

impl Document {
    /// Parses `text`. Error messages name the file `file`.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn parse(text: &str, file: &str) -> Result<Self, RefusedFile> {
        let document = Self {
            sources: vec![Source::new(file, text, 0)],
            assignments: Vec::new(),
        };
        let (_, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Ok(document);
        }
        // The parser continues after an error. Further errors on the same line are consequences, and so are keys that
        // seem repeated because the header between them could not be read.
        let repeated = |e: &toml::de::Error| e.message().contains("duplicate key");
        let only_repeated = errors.iter().all(repeated);
        let shown = errors.iter().filter(|e| only_repeated || !repeated(e));
        let mut shown: Vec<_> = shown.map(|e| (e.span().unwrap_or(0..0), e)).collect();
        shown.sort_by_key(|(span, _)| span.start);
        let mut problems: Vec<Problem> = Vec::new();
        let mut line_end = None;
        for (span, error) in shown {
            if line_end >= Some(span.start) || problems.len() == PROBLEMS_AT_ONCE {
                continue;
            }
            let rest = text.get(span.start..).and_then(|rest| rest.find('\n'));
            line_end = Some(rest.map_or(text.len(), |at| span.start + at));
            let mut problem = document.problem(span, "", message::Text::new("", ""));
            let text = match repeated(error) {
                true => message::of_repeated(error.message(), text, problem.line),
                false => message::of_syntax(error.message(), &problem.source),
            };
            (problem.message, problem.help) = (text.message, text.help);
            problems.push(problem);
        }
        Err(document.refusal(problems))
    }

    /// Sets one value, as in `links.radio.errors.rate=0.05`. A value that is not TOML is taken as a string, so that
    /// `rate=20 Mbit/s` needs no quotes. Elements of a list are selected by index or by their `name`:
    /// `services[0].rate`, `services[voice].rate`. `[*]` selects all of them, and `*` in a key matches any text:
    /// `links.*.services[*].rate`.
    ///
    /// # Errors
    /// If there is no `=`, or no value can be set at the path.
    pub fn set(&mut self, assignment: &str) -> Result<(), RefusedFile> {
        let offset = self.sources.last().map_or(0, Source::end);
        let (source, assigned) = (self.sources.len(), self.assignments.len());
        self.sources.push(Source::new("--set", assignment, offset));
        self.assign(assignment, source).map_err(|message| {
            let span = offset..offset + assignment.len();
            let help = "write KEY=VALUE with a path of this file, such as link.rate=50Mbit/s in a live file, or \
                        links.radio.errors.rate=0.05 in a scenario";
            let text = message::Text::new(&message, help);
            let refusal = self.refusal(vec![self.problem(span, "", text)]);
            // Restore the previous state.
            self.sources.truncate(source);
            self.assignments.truncate(assigned);
            refusal
        })
    }

    fn assign(&mut self, assignment: &str, source: usize) -> Result<(), String> {
        let Some((left, right)) = assignment.split_once('=') else {
            return Err("there is no `=` here".to_owned());
        };
        let Some(path) = KeyPath::parse(left.trim()).filter(|p| !p.is_empty()) else {
            return Err("the left side is not a path of keys".to_owned());
        };
        let lead = right.len() - right.trim_start().len();
        let right = right.trim();
        let value = match DeValue::parse(right) {
            Ok(_) => right.to_owned(),
            Err(_) => toml::Value::String(right.to_owned()).to_string(),
        };
        let offset = self.sources[source].offset + left.len() + 1 + lead;
        let places = path.places(&self.tree()?);
        if places.is_empty() {
            return Err(format!("nothing here fits `{}`", left.trim()));
        }
        let assignments = places.into_iter().map(|path| Assignment {
            path,
            source,
            value: value.clone(),
            offset,
        });
        self.assignments.extend(assignments);
        self.tree().map(|_| ())
    }

    /// Whether the document has a value at `path`.
    pub fn has(&self, path: &str) -> bool {
        match (self.tree(), KeyPath::parse(path)) {
            (Ok(tree), Some(path)) => path.find(&tree).complete,
            _ => false,
        }
    }

    /// The text of the value at `path` as written; `None` if there is none.
    pub fn text(&self, path: &str) -> Option<&str> {
        let found = KeyPath::parse(path)?.find(&self.tree().ok()?);
        let mut sources = self.sources.iter().rev();
        let source = sources.find(|source| source.offset <= found.span.start)?;
        let within = found.span.start - source.offset..found.span.end - source.offset;
        source.text.get(within).filter(|_| found.complete)
    }

    /// The steps of each place that a path selects, list entries by index where the entry exists, however the path was
    /// written. `None` if it is not a path.
    pub fn places(&self, path: &str) -> Option<Vec<Vec<Step>>> {
        let tree = self.tree().ok()?;
        let places = KeyPath::parse(path)?.places(&tree);
        Some(places.iter().map(|place| place.steps(&tree)).collect())
    }

    /// Reads the whole document into a `T` and validates it.
    ///
    /// # Errors
    /// Everything that is wrong with the document, in the order of its lines.
    pub fn read<T: DeserializeOwned + Validate>(&self) -> Result<T, RefusedFile> {
        let tree = match self.tree() {
            Ok(tree) => tree,
            Err(reason) => return Err(self.refuse("", reason, "")),
        };
        let misspelt = self.misspelt::<T>(&tree);
        if !misspelt.is_empty() {
            return Err(self.refusal(misspelt));
        }
        let again = || self.tree().expect("it was made once");
        match culprit::read::<T>(tree, again) {
            Ok(value) => {
                let mut problems = Problems::new();
                value.validate(&mut problems);
                if problems.is_empty() {
                    Ok(value)
                } else {
                    Err(self.locate(problems))
                }
            }
            Err(complaints) => Err(self.refusal(
                complaints
                    .into_iter()
                    .map(|c| {
                        let path = c.path.to_string();
                        let unknown = c.text.message.starts_with(message::UNKNOWN_KEY);
                        let text = match T::elsewhere(&path).filter(|_| unknown) {
                            Some((message, help)) => message::Text::new(message, help),
                            None => c.text,
                        };
                        self.problem(c.span, &path, text)
                    })
                    .collect(),
            )),
        }
    }

    /// Assignments into an entry that neither the file nor another assignment creates.
    fn misspelt<T: Validate>(&self, tree: &Spanned<DeTable<'_>>) -> Vec<Problem> {
        let Some((table, needed)) = T::entries() else {
            return vec![];
        };
        let Some(DeValue::Table(entries)) = tree.get_ref().get(table).map(Spanned::get_ref) else {
            return vec![];
        };
        let file_end = self.sources[0].end();
        let made = entries.iter().filter(|(name, entry)| {
            name.span().start < file_end || entry.get_ref().get(needed).is_some()
        });
        let made: Vec<&str> = made.map(|(name, _)| &**name.get_ref()).collect();
        let problem = |assignment: &Assignment| {
            let name = assignment.path.entry_of(table)?;
            if made.contains(&name) {
                return None;
            }
            let entry = KeyPath::default().with_key(table).with_key(name);
            let message = path::missing(&entry, &made)?;
            let help = format!("correct the name; a new entry has `{needed}`, too");
            let span = self.sources[assignment.source].offset..assignment.offset - 1;
            let text = message::Text::new(&message, &help);
            Some(self.problem(span, &assignment.path.to_string(), text))
        };
        self.assignments.iter().filter_map(problem).collect()
    }

    /// The error for problems found after reading, such as while building what the file describes.
    pub fn locate(&self, problems: Problems) -> RefusedFile {
        let tree = self.tree().ok();
        let span = |finding: &Finding| {
            let path = KeyPath::parse(&finding.path);
            let found = tree.as_ref().zip(path).map(|(tree, path)| path.find(tree));
            found.map_or(0..0, |found| found.span)
        };
        let found = problems.found.into_iter();
        let mut placed: Vec<_> = found.map(|finding| (span(&finding), finding)).collect();
        // Finding a line scans the whole text, so it is done only for the problems that are shown.
        placed.sort_by_key(|(span, _)| span.start);
        placed.truncate(PROBLEMS_AT_ONCE);
        let problem = |(span, finding): (_, Finding)| {
            let text = message::Text::new(&finding.message, &finding.help);
            self.problem(span, &finding.path, text)
        };
        self.refusal(placed.into_iter().map(problem).collect())
    }

    /// Like [`locate`](Self::locate), for a single problem.
    pub fn refuse(
        &self,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> RefusedFile {
        let mut problems = Problems::new();
        problems.add(path, message, help);
        self.locate(problems)
    }

    /// The file's tree with all assignments applied. Spans are offsets among all sources.
    fn tree(&self) -> Result<Spanned<DeTable<'_>>, String> {
        let (mut root, _) = DeTable::parse_recoverable(&self.sources[0].text);
        for assignment in &self.assignments {
            let value = DeValue::parse(&assignment.value).map_err(|e| e.message().to_owned())?;
            let value = shift(value, assignment.offset);
            let source = &self.sources[assignment.source];
            let left = source.offset..assignment.offset.saturating_sub(1);
            assignment.path.insert(&mut root, value, left)?;
        }
        Ok(root)
    }

    fn problem(&self, span: std::ops::Range<usize>, path: &str, text: message::Text) -> Problem {
        let source = self
            .sources
            .iter()
            .rev()
            .find(|s| s.offset <= span.start)
            .unwrap_or(&self.sources[0]);
        source.problem(span, path, text)
    }

    fn refusal(&self, mut problems: Vec<Problem>) -> RefusedFile {
        let file = |p: &Problem| p.file != self.sources[0].name;
        problems.sort_by_key(|p| (file(p), p.line, p.column));
        problems.truncate(PROBLEMS_AT_ONCE);
        // The same help is given only once.
        let mut given = BTreeSet::new();
        for problem in &mut problems {
            if !given.insert(problem.help.clone()) {
                problem.help.clear();
            }
        }
        RefusedFile { problems }
    }
}

/// Shifts every span of `value` by `offset`.
fn shift(value: Spanned<DeValue<'_>>, offset: usize) -> Spanned<DeValue<'_>> {
    let moved = |span: std::ops::Range<usize>| span.start + offset..span.end + offset;
    let span = moved(value.span());
    let inner = match value.into_inner() {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| shift(item, offset)).collect())
        }
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(k, v)| {
                    let span = moved(k.span());
                    (Spanned::new(span, k.into_inner()), shift(v, offset))
                })
                .collect(),
        ),
        scalar => scalar,
    };
    Spanned::new(span, inner)
}

#[cfg(test)]
mod tests;
