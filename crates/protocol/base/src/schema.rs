//! JSON Schemas of configuration files, generated from the types that read them.
//!
//! Draft 7, which editors support for TOML. `x-unit`, an extension, gives the unit of a number or a string. Doc comments
//! become descriptions, so those of keys are whole sentences. A sentence that begins with "Left out:" gives a default
//! that the code computes; one that begins with "Source:" names the source of a choice.
//!
//! Left out: rules across keys; only [`Validate`](crate::config::Validate) checks them.

mod lookup;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value};

/// The schema of a file.
#[derive(Clone, Debug)]
pub struct FileSchema {
    root: Value,
}

impl FileSchema {
    /// Generates the schema of the files that are read into a `T`.
    pub fn of<T: JsonSchema>() -> Self {
        let schema = SchemaSettings::draft07().into_generator();
        let mut root = schema.into_root_schema_for::<T>().to_value();
        tidy(&mut root);
        Self { root }
    }

    /// The schema as JSON.
    pub const fn json(&self) -> &Value {
        &self.root
    }

    /// Follows the references of `schema`.
    pub fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut at = schema;
        loop {
            let alone = at.get("allOf").and_then(Value::as_array);
            let next = if let Some(pointer) = at.get("$ref").and_then(Value::as_str) {
                self.root.pointer(pointer.trim_start_matches('#'))
            } else {
                alone.filter(|all| all.len() == 1).map(|all| &all[0])
            };
            match next {
                Some(next) => at = next,
                None => return at,
            }
        }
    }

    /// The forms that a value may have: those of a choice, or the schema itself.
    pub fn forms<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        let schema = self.resolve(schema);
        let choice = ["oneOf", "anyOf"]
            .iter()
            .find_map(|word| schema.get(word)?.as_array())
            .filter(|_| schema.get("properties").is_none());
        match choice {
            Some(forms) => forms.iter().flat_map(|form| self.forms(form)).collect(),
            None => vec![schema],
        }
    }
}

/// Copies the description of a form to its only key if that has none: the key is the name of the form, as in
/// `{ frame = 7 }`.
fn describe_only_key(form: &mut Map<String, Value>) {
    let Some(meaning) = form.get("description").cloned() else {
        return;
    };
    let keys = form.get_mut("properties").and_then(Value::as_object_mut);
    let Some(key) = keys
        .filter(|keys| keys.len() == 1)
        .and_then(|keys| keys.values_mut().next())
    else {
        return;
    };
    if let Some(key) = key.as_object_mut()
        && !key.contains_key("description")
        && !key.contains_key("const")
    {
        key.insert("description".to_owned(), meaning);
    }
}

/// TOML has no null: a value that may be null in JSON may be left out.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            without_null(object);
            describe_only_key(object);
            // The width of Rust's numbers; minimum and maximum already give the range.
            object.remove("format");
        }
        _ => {}
    }
}

fn without_null(object: &mut Map<String, Value>) {
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |form: &Value| form.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(forms)) = object.get_mut("anyOf") {
        forms.retain(|form| !is_null(form));
        if let [only] = forms.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            object.insert("allOf".to_owned(), Value::Array(vec![only]));
        }
    }
}

/// A value as a file writes it.
pub fn written(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries = table.iter().map(|(key, value)| {
                let key = crate::config::path::key(key);
                format!("{key} = {}", written(value))
            });
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        // Strings, numbers and booleans are written alike in JSON and TOML.
        plain => plain.to_string(),
    }
}

/// A value for both directions of a link, or one for each.
pub fn both_ways(one: &Schema) -> Schema {
    json_schema!({
        "anyOf": [one, {
            "type": "object",
            "description": "One for each direction.",
            "properties": {
                "down": { "description": "From the first end to the second.", "allOf": [one] },
                "up": { "description": "From the second end to the first.", "allOf": [one] },
            },
            "required": ["down", "up"],
            "additionalProperties": false,
        }],
    })
}

/// Implements [`JsonSchema`] for a type that files write as a string, or as several kinds of values, from its name and
/// its schema as `json_schema!` takes it.
#[macro_export]
macro_rules! schema_of {
    ($type:ty, $name:literal, $($schema:tt)+) => {
        impl $crate::schema::schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(
                _: &mut $crate::schema::schemars::SchemaGenerator,
            ) -> $crate::schema::schemars::Schema {
                $crate::schema::schemars::json_schema!($($schema)+)
            }
        }
    };
}

#[doc(hidden)]
pub use schemars;
