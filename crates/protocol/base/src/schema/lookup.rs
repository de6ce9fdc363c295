//! What a schema says about one place of a file: the keys missing there, and possible values.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{FileSchema, written};
use crate::config::{self, Step};

/// The key that gives the form of a table, by convention of all our files.
const TAG: &str = "kind";
/// Depth of an example: deeper tables would be longer than what they explain.
const DEEPEST_EXAMPLE: usize = 3;

impl FileSchema {
    /// The required keys that the table at `steps` lacks, in the order of the reference, each with an example value;
    /// `missed` is one of them.
    pub(crate) fn missing(
        &self,
        tree: &Spanned<DeTable<'_>>,
        steps: &[Step],
        missed: &str,
    ) -> Vec<(String, Value)> {
        let Some((schema, At::Table(table))) = self.walk(tree, steps) else {
            return vec![];
        };
        let Some(form) = self.form_of(schema, table) else {
            return vec![];
        };
        let mut needed = keys(form.get("required"));
        // Alternative sets of keys: use the one that the error is about, or the first if none is present.
        let sets = ["anyOf", "oneOf"]
            .iter()
            .find_map(|word| form.get(word)?.as_array());
        let sets = sets
            .into_iter()
            .flatten()
            .map(|set| keys(set.get("required")));
        let sets: Vec<Vec<&str>> = sets.collect();
        let is_there = |set: &Vec<&str>| set.iter().all(|key| table.contains_key(*key));
        let about = sets.iter().find(|set| set.contains(&missed));
        if !sets.iter().any(is_there) {
            needed.extend(about.or(sets.first()).into_iter().flatten());
        }
        let property = |key: &str| form.get("properties")?.get(key);
        needed
            .into_iter()
            .filter(|key| !table.contains_key(*key))
            .filter_map(|key| Some((key.to_owned(), self.example(property(key)?)?)))
            .collect()
    }

    /// An example table for `steps`, where the file has something else, and the names of its kinds, or else its keys.
    pub(crate) fn table_at(
        &self,
        tree: &Spanned<DeTable<'_>>,
        steps: &[Step],
    ) -> Option<(Value, String)> {
        let (schema, _) = self.walk(tree, steps)?;
        let forms = self.forms(schema);
        let tables: Vec<&Value> = forms
            .into_iter()
            .filter(|form| form.get("properties").is_some())
            .collect();
        let kinds: Vec<&str> = tables.iter().filter_map(|form| kind(form)).collect();
        let names = if kinds.is_empty() {
            let first = tables.first()?.get("properties")?.as_object()?;
            let names: Vec<&str> = first.keys().map(String::as_str).collect();
            format!("its keys: {}", names.join(", "))
        } else {
            format!("its kinds: {}", kinds.join(", "))
        };
        let example = self.example(schema).filter(Value::is_object);
        Some((example.or_else(|| self.example(tables[0]))?, names))
    }

    /// The possible values at `steps`, as a file would write them, if the value is a name or a table with one key.
    pub(crate) fn choice_at(
        &self,
        tree: &Spanned<DeTable<'_>>,
        steps: &[Step],
    ) -> Option<Vec<String>> {
        let (schema, _) = self.walk(tree, steps)?;
        let mut choices = Vec::new();
        for form in self.forms(schema) {
            if let Some(name) = form.get("const") {
                choices.push(written(name));
            } else if let Some(names) = form.get("enum").and_then(Value::as_array) {
                choices.extend(names.iter().map(written));
            } else {
                let keys = form.get("properties")?.as_object()?;
                let only = self.example(form).filter(|_| keys.len() == 1)?;
                choices.push(written(&only));
            }
        }
        (choices.len() > 1).then_some(choices)
    }

    /// The place at `steps`, in the schema and in the file.
    fn walk<'s, 't, 'i>(
        &'s self,
        tree: &'t Spanned<DeTable<'i>>,
        steps: &[Step],
    ) -> Option<(&'s Value, At<'t, 'i>)> {
        let mut at = At::Table(tree.get_ref());
        let mut schema = self.json();
        for step in steps {
            (schema, at) = match (step, at) {
                (Step::Key(key), At::Table(table)) => {
                    let next = below(self.form_of(schema, table)?, step)?;
                    (next, At::of(table.get(key.as_str())?.get_ref()))
                }
                (Step::Index(index), At::List(items)) => {
                    let forms = self.forms(schema);
                    let next = forms.into_iter().find_map(|form| form.get("items"))?;
                    (next, At::of(items.get(*index)?.get_ref()))
                }
                _ => return None,
            };
        }
        Some((schema, at))
    }

    /// The form of a table: the one of its `kind`, or without one, that which knows most of its keys.
    fn form_of<'s>(&'s self, schema: &'s Value, table: &DeTable<'_>) -> Option<&'s Value> {
        let written = table.get(TAG).and_then(|value| value.get_ref().as_str());
        let forms = self.forms(schema).into_iter();
        let fitting = forms.filter(|form| {
            let is_table = form.get("type").is_some_and(|name| name == "object");
            is_table && (written.is_none() || kind(form).is_none_or(|kind| Some(kind) == written))
        });
        let known = |form: &&Value| {
            let properties = form.get("properties").and_then(Value::as_object);
            let knows = |key: &str| properties.is_some_and(|all| all.contains_key(key));
            table.keys().filter(|key| knows(key.get_ref())).count()
        };
        // The first of the best.
        fitting.rev().max_by_key(known)
    }

    /// The unit of the value at `path`, in any kind of file; `None` if there is no such place, or its possible values
    /// differ in their units.
    pub fn unit_at(&self, path: &str) -> Option<String> {
        let mut places = vec![self.json()];
        for step in config::steps(path)? {
            let forms = places.into_iter().flat_map(|place| self.forms(place));
            places = forms.filter_map(|form| below(form, &step)).collect();
        }
        let mut units = places.into_iter().map(|place| self.unit(place));
        let first = units.next()??;
        units
            .all(|unit| unit.as_ref() == Some(&first))
            .then_some(first)
    }

    /// The unit of a value.
    pub fn unit(&self, value: &Value) -> Option<String> {
        let of = |schema: &Value| schema.get("x-unit")?.as_str().map(str::to_owned);
        let resolved = self.resolve(value);
        let of_forms = || self.forms(resolved).into_iter().find_map(of);
        of(value).or_else(|| of(resolved)).or_else(of_forms)
    }

    /// An example value: the schema's example, a default, or the least that its type allows.
    pub fn example(&self, schema: &Value) -> Option<Value> {
        self.example_within(schema, DEEPEST_EXAMPLE)
    }

    fn example_within(&self, schema: &Value, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let own = |schema: &Value| {
            let first = |word: &str| schema.get(word)?.as_array()?.first().cloned();
            first("examples")
                .or_else(|| schema.get("const").cloned())
                .or_else(|| schema.get("default").cloned())
                .or_else(|| first("enum"))
        };
        let resolved = self.resolve(schema);
        if let Some(value) = own(schema).or_else(|| own(resolved)) {
            return Some(value);
        }
        let form = *self.forms(resolved).first()?;
        if let Some(value) = own(form) {
            return Some(value);
        }
        match form.get("type").and_then(Value::as_str)? {
            "object" => {
                let Some(properties) = form.get("properties") else {
                    let entry = self.example_within(form.get("additionalProperties")?, depth)?;
                    return Some(serde_json::json!({ "NAME": entry }));
                };
                let entry = |key: &str| {
                    let value = self.example_within(properties.get(key)?, depth)?;
                    Some((key.to_owned(), value))
                };
                let needed = keys(form.get("required"));
                let table: Option<serde_json::Map<_, _>> = needed.into_iter().map(entry).collect();
                table.map(Value::Object)
            }
            "array" => {
                let least = form.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                let item = self.example_within(form.get("items")?, depth)?;
                Some(Value::Array(vec![item; (least as usize).clamp(1, 4)]))
            }
            "string" => Some("...".into()),
            "integer" => Some(form.get("minimum").cloned().unwrap_or_else(|| 1.into())),
            "number" => Some(1.0.into()),
            "boolean" => Some(true.into()),
            _ => None,
        }
    }
}

/// The `kind` that selects a form.
fn kind(form: &Value) -> Option<&str> {
    form.get("properties")?.get(TAG)?.get("const")?.as_str()
}

/// The schema that a step into a table or a list of this form leads to.
fn below<'s>(form: &'s Value, step: &Step) -> Option<&'s Value> {
    match step {
        Step::Key(key) => {
            let named = form.get("properties").and_then(|all| all.get(key));
            let any = form.get("additionalProperties");
            named.or(any.filter(|more| more.is_object()))
        }
        Step::Index(_) | Step::Named(_) => form.get("items"),
    }
}

fn keys(list: Option<&Value>) -> Vec<&str> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// The value at a place of a file.
enum At<'t, 'i> {
    Table(&'t DeTable<'i>),
    List(&'t [Spanned<DeValue<'i>>]),
    Leaf,
}

impl<'t, 'i> At<'t, 'i> {
    fn of(value: &'t DeValue<'i>) -> Self {
        match value {
            DeValue::Table(table) => At::Table(table),
            DeValue::Array(items) => At::List(items),
            _ => At::Leaf,
        }
    }
}
