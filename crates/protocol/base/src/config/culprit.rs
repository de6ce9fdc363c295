//! Finds the key at fault where serde does not name it.
//!
//! Serde buffers the content of tagged enums before it interprets it and so loses the position of an error in there:
//! only the position of the whole table remains. The culprit is the child whose removal changes the error. This is
//! exact, because values are read in the order of the keys and the first bad one ends the reading; missing keys are
//! noticed only after all of them.

use std::ops::Range;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::message::{self, Text};
use super::path::KeyPath;
use super::problem::PROBLEMS_AT_ONCE;
use crate::schema::{FileSchema, written};

/// Maximum number of readings of the whole document in one search; beyond it, a hostile file gets a coarser answer.
const TRIALS: usize = 400;

/// The key that gives the variant of a table, by convention of all our files.
const TAG: &str = "kind";

/// A problem and its position.
pub(super) struct Complaint {
    pub(super) span: Range<usize>,
    pub(super) path: KeyPath,
    pub(super) text: Text,
}

/// Reads `tree` into a `T`, or returns all problems that can be told at once. `again` recreates the tree, which reading
/// consumes; a copy made in case of an error would double the cost of every file.
pub(super) fn read<'i, T: DeserializeOwned + JsonSchema>(
    tree: Spanned<DeTable<'i>>,
    again: impl FnOnce() -> Spanned<DeTable<'i>>,
) -> Result<T, Vec<Complaint>> {
    let mut error = match attempt::<T>(tree) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let tree = &again();
    let schema = FileSchema::of::<T>();
    let mut search = Search {
        tree: tree.clone(),
        filled: vec![],
        trials: TRIALS,
    };
    let mut complaints = Vec::new();
    // Unknown keys that were renamed to what they were probably meant to be.
    let mut meant = Vec::new();
    loop {
        let culprit = search.culprit::<T>(&error);
        if meant.iter().any(|key| culprit.path.is_within(key)) {
            // Do not judge the value of a key that was renamed.
            return Err(complaints);
        }
        let steps = culprit.path.as_steps();
        if let Some(missed) = message::missing_key(error.message()).filter(|_| culprit.missing) {
            // A table of an unknown kind has no known keys to lack.
            let said = is_said(missed, &culprit.path, &complaints);
            if said && missed == TAG || search.has_filled(&culprit.path, missed) {
                return Err(complaints);
            }
            let mut missing = schema.missing(&search.tree, steps, missed);
            // Without an example in the schema, the missing key cannot be filled in to continue.
            if missing.iter().all(|(key, _)| key != missed) {
                missing.clear();
            }
            let here = missing.iter().map(|(key, example)| {
                let value = written(example);
                (culprit.path.clone(), key.clone(), value)
            });
            search.filled.extend(here);
            let known = !missing.is_empty();
            missing.retain(|(key, _)| !is_said(key, &culprit.path, &complaints));
            // A faulty key that was removed may stand for what is missing since then.
            if meant.is_empty() {
                let first = schema.missing(tree, steps, missed);
                missing.retain(|(key, _)| first.iter().any(|(other, _)| other == key));
            }
            if !missing.is_empty() || !(known || said) {
                let text = message::of_missing(missed, &missing);
                complaints.push(Complaint {
                    span: culprit.span,
                    path: culprit.path,
                    text,
                });
            }
            // Further problems show once nothing is missing here.
            error = match search.attempt::<T>(search.tree.clone()) {
                Err(next) if known && complaints.len() < PROBLEMS_AT_ONCE => next,
                _ => return Err(complaints),
            };
            continue;
        }
        if message::is_of_choice(error.message())
            && let Some((choice, forms)) = choice_around(&schema, tree, &culprit.path)
        {
            // A choice whose wrong key was removed has no form left; do not report that.
            if !complaints.iter().any(|other| other.path.is_within(&choice)) {
                complaints.push(Complaint {
                    span: choice.find(tree).span,
                    text: message::of_choice(choice.last_key(), &forms),
                    path: choice.clone(),
                });
            }
            let goes_on = complaints.len() < PROBLEMS_AT_ONCE && choice.remove(&mut search.tree);
            error = match search.attempt::<T>(search.tree.clone()) {
                Err(next) if goes_on => next,
                _ => return Err(complaints),
            };
            continue;
        }
        // A table from which a faulty key was removed may be wrong without it.
        let lacks =
            |other: &Complaint| other.path.parent() == culprit.path && other.path != culprit.path;
        if complaints.iter().any(lacks) {
            return Err(complaints);
        }
        let mut text = message::of_serde(error.message(), culprit.path.last_key());
        if text.help == message::WRITE_TABLE
            && let Some((example, names)) = schema.table_at(tree, steps)
        {
            text.help = message::table_help(&example, &names);
        }
        complaints.push(Complaint {
            span: culprit.span,
            text,
            path: culprit.path.clone(),
        });
        // Continue without the culprit, or with the key it was meant to be, to find the next problem. If the culprit is
        // a list element, its removal would renumber the others, so stop.
        let is_key = culprit.path.last_key().is_some();
        let full = complaints.len() == PROBLEMS_AT_ONCE;
        if full || !is_key {
            return Err(complaints);
        }
        let name = message::meant_key(error.message());
        match name.and_then(|name| culprit.path.rename(&mut search.tree, name)) {
            Some(renamed) => meant.push(renamed),
            None if culprit.path.remove(&mut search.tree) => {}
            None => return Err(complaints),
        }
        error = match search.attempt::<T>(search.tree.clone()) {
            Err(next) => next,
            Ok(_) => return Err(complaints),
        };
    }
}

fn attempt<T: DeserializeOwned>(tree: Spanned<DeTable<'_>>) -> Result<T, toml::de::Error> {
    T::deserialize(toml::Deserializer::from(tree))
}

/// Whether the key is missing only because a faulty one was removed, which has already been reported.
fn is_said(key: &str, table: &KeyPath, complaints: &[Complaint]) -> bool {
    let key = table.with_key(key);
    complaints.iter().any(|other| other.path.is_within(&key))
}

/// The choice at `path`, or the one whose only key is at `path`, with its possible forms.
fn choice_around(
    schema: &FileSchema,
    tree: &Spanned<DeTable<'_>>,
    path: &KeyPath,
) -> Option<(KeyPath, Vec<String>)> {
    [path.clone(), path.parent()].into_iter().find_map(|path| {
        schema
            .choice_at(tree, path.as_steps())
            .map(|forms| (path, forms))
    })
}

struct Culprit {
    path: KeyPath,
    span: Range<usize>,
    /// Whether the fault is a missing key.
    missing: bool,
}

struct Search<'i> {
    tree: Spanned<DeTable<'i>>,
    /// Values filled in for missing keys: table, key and value.
    filled: Vec<(KeyPath, String, String)>,
    trials: usize,
}

impl Search<'_> {
    /// Reads `tree` with the missing values filled in.
    fn attempt<'f, T: DeserializeOwned>(
        &'f self,
        mut tree: Spanned<DeTable<'f>>,
    ) -> Result<T, toml::de::Error> {
        self.fill(&mut tree);
        attempt(tree)
    }

    fn has_filled(&self, table: &KeyPath, key: &str) -> bool {
        let mut filled = self.filled.iter();
        filled.any(|(path, known, _)| path == table && known == key)
    }

    fn fill<'f>(&'f self, tree: &mut Spanned<DeTable<'f>>) {
        for (path, key, written) in &self.filled {
            if let (Some(table), Ok(value)) = (path.table_mut(tree), DeValue::parse(written)) {
                let key = Spanned::new(0..0, key.as_str().into());
                table.insert(key, Spanned::new(0..0, value.into_inner()));
            }
        }
    }

    fn culprit<T: DeserializeOwned>(&mut self, error: &toml::de::Error) -> Culprit {
        let message = error.message();
        let span = error.span().unwrap_or(0..0);
        let start = match place(self.tree.get_ref(), &span) {
            Some(Place::Key(path)) => {
                return Culprit {
                    path,
                    span,
                    missing: false,
                };
            }
            Some(Place::Value(path)) => path,
            None => KeyPath::default(),
        };
        if let Some(key) = message::missing_key(message) {
            let path = self.hole::<T>(&start, key, message).unwrap_or(start);
            let span = path.find(&self.tree).span;
            return Culprit {
                path,
                span,
                missing: true,
            };
        }
        let path = self.narrow::<T>(start, message);
        let found = path.find(&self.tree).span;
        let unknown = message::unknown_key(message);
        let span = match unknown.filter(|name| path.last_key() == Some(name)) {
            Some(name) => key_span(&self.tree, &path, name).unwrap_or(found),
            None => found,
        };
        Culprit {
            path,
            span,
            missing: false,
        }
    }

    /// Descends from `path` to the innermost child that the error is about.
    fn narrow<T: DeserializeOwned>(&mut self, mut path: KeyPath, message: &str) -> KeyPath {
        loop {
            let children = children(&self.tree, &path);
            let guilty = children.into_iter().find(|child| {
                let edit = |tree: &mut Spanned<DeTable<'_>>| {
                    child.remove(tree);
                };
                self.changes::<T>(message, edit, |_| false)
            });
            match guilty {
                Some(child) => path = child,
                None => return path,
            }
        }
    }

    /// The table at or below `path` in which adding `key` changes the error that it is missing.
    fn hole<T: DeserializeOwned>(
        &mut self,
        path: &KeyPath,
        key: &str,
        message: &str,
    ) -> Option<KeyPath> {
        let mut open = vec![path.clone()];
        while let Some(path) = open.pop() {
            let edit = |tree: &mut Spanned<DeTable<'_>>| {
                if let Some(table) = path.table_mut(tree) {
                    let name = Spanned::new(0..0, key.to_owned().into());
                    let probe = DeValue::Table(DeTable::new());
                    table.entry(name).or_insert(Spanned::new(0..0, probe));
                }
            };
            // A table that does not know the key cannot be the one that lacks it.
            let refused = |message: &str| message::unknown_key(message) == Some(key);
            if self.changes::<T>(message, edit, refused) {
                return Some(path);
            }
            let mut below = children(&self.tree, &path);
            below.reverse();
            open.extend(below);
        }
        None
    }

    /// Whether the error changes or disappears after `edit`, and the new one is not `refused`.
    fn changes<T: DeserializeOwned>(
        &mut self,
        message: &str,
        edit: impl FnOnce(&mut Spanned<DeTable<'_>>),
        refused: impl FnOnce(&str) -> bool,
    ) -> bool {
        let Some(left) = self.trials.checked_sub(1) else {
            return false;
        };
        self.trials = left;
        let mut tree = self.tree.clone();
        edit(&mut tree);
        match self.attempt::<T>(tree) {
            Ok(_) => true,
            Err(error) => error.message() != message && !refused(error.message()),
        }
    }
}

enum Place {
    Key(KeyPath),
    Value(KeyPath),
}

/// The key or value at exactly `span`.
fn place(root: &DeTable<'_>, span: &Range<usize>) -> Option<Place> {
    fn in_table(table: &DeTable<'_>, path: &KeyPath, span: &Range<usize>) -> Option<Place> {
        table.iter().find_map(|(key, value)| {
            let here = path.with_key(key.get_ref());
            if value.span() == *span {
                Some(Place::Value(here))
            } else if key.span() == *span {
                Some(Place::Key(here))
            } else {
                in_value(value.get_ref(), &here, span)
            }
        })
    }
    fn in_value(value: &DeValue<'_>, path: &KeyPath, span: &Range<usize>) -> Option<Place> {
        match value {
            DeValue::Table(table) => in_table(table, path, span),
            DeValue::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
                let here = path.with_index(i);
                if item.span() == *span {
                    Some(Place::Value(here))
                } else {
                    in_value(item.get_ref(), &here, span)
                }
            }),
            _ => None,
        }
    }
    in_table(root, &KeyPath::default(), span)
}

/// The children of the value at `path`; the tag last, because nothing can be read without it.
fn children(root: &Spanned<DeTable<'_>>, path: &KeyPath) -> Vec<KeyPath> {
    let of_table = |table: &DeTable<'_>| {
        let mut keys: Vec<KeyPath> = table.keys().map(|k| path.with_key(k.get_ref())).collect();
        keys.sort_by_key(|path| path.last_key() == Some(TAG));
        keys
    };
    if path.is_empty() {
        return of_table(root.get_ref());
    }
    match path.value(root) {
        Some(DeValue::Table(table)) => of_table(table),
        Some(DeValue::Array(items)) => (0..items.len()).map(|i| path.with_index(i)).collect(),
        _ => Vec::new(),
    }
}

/// The span of the key at the end of `path`.
fn key_span(root: &Spanned<DeTable<'_>>, path: &KeyPath, name: &str) -> Option<Range<usize>> {
    let parent = path.parent();
    let table = match parent.value(root) {
        Some(DeValue::Table(table)) => table,
        Some(_) => return None,
        None => Some(root.get_ref()).filter(|_| parent.is_empty())?,
    };
    table.get_key_value(name).map(|(key, _)| key.span())
}
