//! Finding the key at fault where serde does not say it.
//!
//! Serde buffers the content of tagged enums before it looks at it, and the place of an error in
//! there is lost: all that remains is the place of the whole table. The culprit is the child whose
//! removal changes the complaint. That is exact, because values are read in the order of the keys
//! and the first bad one ends the reading; what is missing is noticed only after all of them.

use std::ops::Range;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::message::{self, Text};
use super::path::KeyPath;
use super::problem::PROBLEMS_AT_ONCE;
use crate::schema::{FileSchema, written};

/// Readings of the whole document that a search may cost; a hostile file gets a coarser answer.
const TRIALS: usize = 400;

/// The key that says which variant a table is, by convention of all our files.
const TAG: &str = "kind";

/// A problem with its place.
pub(super) struct Complaint {
    pub(super) span: Range<usize>,
    pub(super) path: KeyPath,
    pub(super) text: Text,
}

/// Reads `tree` into a `T`, or tells everything that can be told at once. `again` makes the same tree, which reading uses
/// up: a copy for the case that something is wrong would double what every file takes.
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
    // Keys that nobody knows, as what they were meant to be.
    let mut meant = Vec::new();
    loop {
        let culprit = search.culprit::<T>(&error);
        if meant.iter().any(|key| culprit.path.is_within(key)) {
            // What a key says that was meant otherwise is not judged.
            return Err(complaints);
        }
        let steps = culprit.path.as_steps();
        if let Some(missed) = message::missing_key(error.message()).filter(|_| culprit.missing) {
            // Nobody knows what a table of an unknown kind lacks.
            let said = is_said(missed, &culprit.path, &complaints);
            if said && missed == TAG || search.has_filled(&culprit.path, missed) {
                return Err(complaints);
            }
            let mut missing = schema.missing(&search.tree, steps, missed);
            // Where the schema has no example of the key, nothing can be filled in to go on with.
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
            if !missing.is_empty() || !(known || said) {
                let text = message::of_missing(missed, &missing);
                complaints.push(Complaint {
                    span: culprit.span,
                    path: culprit.path,
                    text,
                });
            }
            // What else is wrong shows once nothing is missing here.
            error = match search.attempt::<T>(search.tree.clone()) {
                Err(next) if known && complaints.len() < PROBLEMS_AT_ONCE => next,
                _ => return Err(complaints),
            };
            continue;
        }
        if message::is_of_choice(error.message())
            && let Some((choice, forms)) = choice_around(&schema, tree, &culprit.path)
        {
            // Without what was wrong in it, it has none of its forms.
            if !complaints.iter().any(|told| told.path.is_within(&choice)) {
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
        // Going on without the culprit, or with what it was meant to be, shows the next one. Where the culprit
        // is an element whose removal would renumber the others, there is no going on.
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

/// Whether a key of a table is missing only because what was wrong with it was taken out: that has been said
/// already.
fn is_said(key: &str, table: &KeyPath, complaints: &[Complaint]) -> bool {
    let key = table.with_key(key);
    complaints.iter().any(|told| told.path.is_within(&key))
}

/// The choice that stands at `path` or has it for its only key, with the forms that it may have.
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
    /// Whether the fault is that something is not there.
    missing: bool,
}

struct Search<'i> {
    tree: Spanned<DeTable<'i>>,
    /// What could stand where something is missing: table, key and value.
    filled: Vec<(KeyPath, String, String)>,
    trials: usize,
}

impl Search<'_> {
    /// Reads `tree` with what was missing filled in.
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

    /// Descends from `path` to the child that the complaint is about, as far as there is one.
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

    /// The table at or below `path` in which a new `key` changes the complaint that it is missing.
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
            // A table that does not know the key is not the one that lacks it.
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

    /// Whether the complaint is another one, or none, after `edit`, and the edit was not `refused`.
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

/// What stands at exactly `span`.
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

/// The children of what stands at `path`; the tag last, for without it nothing can be read.
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

/// Where the key at the end of `path` is written.
fn key_span(root: &Spanned<DeTable<'_>>, path: &KeyPath, name: &str) -> Option<Range<usize>> {
    let parent = path.parent();
    let table = match parent.value(root) {
        Some(DeValue::Table(table)) => table,
        Some(_) => return None,
        None => Some(root.get_ref()).filter(|_| parent.is_empty())?,
    };
    table.get_key_value(name).map(|(key, _)| key.span())
}
