//! Writes a section for each table that a file may have, with a row for each of its keys.

use std::collections::VecDeque;

use airlane_base::schema::{FileSchema, written};
use serde_json::{Map, Value};

use super::description::{Described, described};

/// The sections of a reference.
pub(super) struct Tables<'s> {
    schema: &'s FileSchema,
    /// Tables still to be written: their names and schemas.
    open: VecDeque<(String, &'s Value)>,
    /// Tables that have a section: the first form of each, compared by its place in the schema, and
    /// the section's name.
    named: Vec<(&'s Value, String)>,
    /// Tables that another page describes: the end of their path, and that page's section.
    elsewhere: &'static [(&'static str, &'static str)],
}

impl<'s> Tables<'s> {
    /// Starts with the section `root` for the keys at the top of the file. Tables whose paths end as one of `elsewhere`
    /// get a link to another page in place of a section.
    pub(super) fn new(
        schema: &'s FileSchema,
        root: &str,
        elsewhere: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            schema,
            open: VecDeque::from([(root.to_owned(), schema.json())]),
            named: vec![],
            elsewhere,
        }
    }

    pub(super) fn render(mut self) -> String {
        let mut text = String::new();
        let top = self.open[0].0.clone();
        while let Some((name, schema)) = self.open.pop_front() {
            text += &format!("\n## {name}\n");
            let meaning = described(self.schema.resolve(schema)).meaning;
            if !meaning.is_empty() {
                text += &format!("{meaning}\n");
            }
            let path = if name == top { "" } else { &name };
            for (kinds, form) in self.grouped(schema) {
                text += &kinds;
                text += &self.table(path, form);
            }
        }
        text
    }

    /// The tables that `schema` allows, each once, with the description of the kinds that share it.
    fn grouped(&self, schema: &'s Value) -> Vec<(String, &'s Value)> {
        let mut groups: Vec<(String, Map<String, Value>, &Value)> = vec![];
        for form in self.tables(schema) {
            let mut keys = properties(form).cloned().unwrap_or_default();
            let kind = keys
                .remove("kind")
                .and_then(|kind| kind.get("const").cloned());
            let line = kind.map_or(String::new(), |kind| {
                format!("- `kind = {kind}`: {}\n", described(form).meaning)
            });
            match groups.iter_mut().find(|(_, known, _)| *known == keys) {
                Some((lines, ..)) => *lines += &line,
                None => groups.push((line, keys, form)),
            }
        }
        let blank = |lines: &str| if lines.is_empty() { "" } else { "\n" };
        let groups = groups.into_iter();
        groups
            .map(|(lines, _, form)| (format!("{}{lines}", blank(&lines)), form))
            .collect()
    }

    /// The forms of `schema` that are tables with keys.
    fn tables(&self, schema: &'s Value) -> Vec<&'s Value> {
        let forms = self.schema.forms(schema).into_iter();
        let tables = forms.filter(|form| properties(form).is_some());
        tables.filter(|form| !is_both_ways(form)).collect()
    }

    fn table(&mut self, path: &str, form: &'s Value) -> String {
        let required = form.get("required").and_then(Value::as_array);
        let is_required =
            |key: &str| required.is_some_and(|all| all.iter().any(|name| name == key));
        let keys = properties(form).into_iter().flatten();
        let rows: String = keys
            .filter(|(key, value)| *key != "kind" || value.get("const").is_none())
            .map(|(key, value)| self.row(path, key, value, is_required(key)))
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        let head =
            "| key | type | unit | default | meaning | source |\n|---|---|---|---|---|---|\n";
        format!("\n{head}{rows}")
    }

    fn row(&mut self, path: &str, key: &str, value: &'s Value, required: bool) -> String {
        let resolved = self.schema.resolve(value);
        let Described {
            meaning,
            left_out,
            source,
        } = described(value);
        let of_type = described(resolved);
        let below = if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        };
        let kind = self.kind_of(&below, value);
        let unit = self.schema.unit(value).unwrap_or_default();
        let default = match (left_out, value.get("default")) {
            _ if required => String::new(),
            (Some(words), _) => words,
            (None, Some(Value::Array(items))) if items.is_empty() => "none".to_owned(),
            (None, Some(Value::Object(items))) if items.is_empty() => "none".to_owned(),
            (None, Some(value)) => format!("`{}`", written(value)),
            (None, None) if resolved.get("type").is_some_and(|name| name == "boolean") => {
                "`false`".to_owned()
            }
            (None, None) => "none".to_owned(),
        };
        let choices = self.choices(resolved);
        let source = source.or(of_type.source).unwrap_or_default();
        let meaning = format!("{meaning}{choices}");
        let cells = [format!("`{key}`"), kind, unit, default, meaning, source];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
    }

    /// The meanings of the values that are single words.
    fn choices(&self, schema: &'s Value) -> String {
        let forms = self.schema.forms(schema);
        // A schema that is itself a single word leaves no choice.
        let forms = forms
            .into_iter()
            .filter(|form| !std::ptr::eq(*form, schema));
        let words = forms.filter_map(|form| {
            let word = form.get("const")?;
            let meaning = described(form).meaning;
            (!meaning.is_empty()).then(|| format!(" `{}`: {meaning}", written(word)))
        });
        words.collect()
    }

    /// The type of a value in words. A table gets a section under `path`, unless its type has one.
    fn kind_of(&mut self, path: &str, value: &'s Value) -> String {
        if !self.tables(value).is_empty() {
            let section = self.section(path, value);
            let others = self.schema.forms(value).into_iter();
            let others = others.filter(|form| properties(form).is_none() || is_both_ways(form));
            let words: Vec<String> = others.map(|form| self.word(path, form)).collect();
            let table = format!("table, see {section}");
            return either(words.into_iter().chain([table]));
        }
        let forms = self.schema.forms(value).into_iter();
        let words: Vec<String> = forms.map(|form| self.word(path, form)).collect();
        // An example value of the key says more than its type.
        let plain = value.get("const").is_none() && !words[0].contains("see [");
        match value
            .get("examples")
            .and_then(|all| all.get(0))
            .filter(|_| plain)
        {
            Some(example) => {
                let word = words[0].split(" such as ").next().unwrap_or_default();
                let own = format!("{word} such as `{}`", written(example));
                either(std::iter::once(own).chain(words.into_iter().skip(1)))
            }
            None => either(words.into_iter()),
        }
    }

    /// The type of a value that is not a table with keys.
    fn word(&mut self, path: &str, form: &'s Value) -> String {
        if let Some(word) = form.get("const") {
            return format!("`{}`", written(word));
        }
        if is_both_ways(form) {
            return "one for each of `down` and `up`".to_owned();
        }
        if let Some(words) = form.get("enum").and_then(Value::as_array) {
            return either(words.iter().map(|word| format!("`{}`", written(word))));
        }
        let example = form.get("examples").and_then(|all| all.get(0));
        let such_as = example.map_or(String::new(), |value| {
            format!(" such as `{}`", written(value))
        });
        match form.get("type") {
            Some(Value::String(name)) => match name.as_str() {
                "array" => {
                    let item = form
                        .get("items")
                        .map(|item| self.kind_of(&format!("{path}[]"), item));
                    format!("list of: {}", item.unwrap_or_default())
                }
                "object" => match form
                    .get("additionalProperties")
                    .filter(|more| more.is_object())
                {
                    Some(entry) => {
                        let entry = self.kind_of(&format!("{path}.NAME"), entry);
                        format!("table by name of: {entry}")
                    }
                    None => "table".to_owned(),
                },
                "string" => format!("text{such_as}"),
                "integer" => format!("whole number{}", range(form)),
                "number" => format!("number{}", range(form)),
                "boolean" => "true or false".to_owned(),
                other => other.to_owned(),
            },
            Some(Value::Array(_)) => format!("text or whole number{such_as}"),
            _ => "any value".to_owned(),
        }
    }

    /// A link to the section that describes a table: another page's, that of its type, or a new one at `path`.
    fn section(&mut self, path: &str, value: &'s Value) -> String {
        let other = self.elsewhere.iter().find(|(end, _)| path.ends_with(end));
        if let Some((_, section)) = other {
            return (*section).to_owned();
        }
        let link = |section: &str| format!("[{section}](#{})", anchor(section));
        let first = self.tables(value)[0];
        let known = self
            .named
            .iter()
            .find(|(known, _)| std::ptr::eq(*known, first));
        if let Some((_, section)) = known {
            return link(section);
        }
        self.named.push((first, path.to_owned()));
        self.open.push_back((path.to_owned(), value));
        link(path)
    }
}

fn properties(form: &Value) -> Option<&Map<String, Value>> {
    form.get("properties")?.as_object()
}

/// Whether a form only holds one value for each direction of a link.
fn is_both_ways(form: &Value) -> bool {
    let directions = |keys: &Map<String, Value>| keys.keys().eq(["down", "up"]);
    properties(form).is_some_and(directions)
}

fn range(form: &Value) -> String {
    let end = |word: &str| form.get(word).map(written);
    match (end("minimum"), end("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", {least} or more"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    }
}

fn either(words: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = vec![];
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join(" or ")
}

/// The anchor of a heading, as GitHub generates it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let lower: String = kept.flat_map(char::to_lowercase).collect();
    lower.replace(' ', "-")
}
