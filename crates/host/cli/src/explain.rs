//! `airlane explain`: prints a file with every default filled in.
//!
//! The file is deserialized into its type, which is serialized again. Small tables that select a
//! variant (`scheme = { kind = ... }`) stay on one line, as people write them.

use airlane_base::config::key;
#[cfg(feature = "live")]
use airlane_live::{air::AirConfig, config::LiveConfig};
use serde::Serialize;
use toml::{Table, Value};

use crate::args::ExplainArgs;
use crate::input::{self, FileContent};
use crate::output::{self, line};
#[cfg(feature = "lab")]
use crate::{sim, world};

/// Runs the verb.
pub(crate) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    let document = input::document(&args.file, &args.set.set)?;
    let text = match FileContent::of(&document)? {
        #[cfg(feature = "lab")]
        FileContent::Scenario => {
            let scenario = world::scenario(&document, &args.file)?;
            sim::warn_choices(&args.file.display().to_string(), &scenario);
            to_toml(&scenario.resolved())
        }
        #[cfg(feature = "live")]
        FileContent::Daemon => {
            let config = document.read::<LiveConfig>()?;
            for unreached in config.link.unreached() {
                output::warn(&format!("{}: {unreached}", args.file.display()));
            }
            let resolved = config.resolve();
            let mut table = Table::try_from(&resolved)?;
            let rate = resolved.link.said(resolved.link.rate);
            table["link"]["rate"] = Value::from(rate);
            to_toml(&table)
        }
        #[cfg(feature = "live")]
        FileContent::Air => to_toml(&document.read::<AirConfig>()?),
        #[cfg(not(all(feature = "live", feature = "lab")))]
        other => return Err(other.left_out(&args.file).into()),
    };
    output::print(&text?)
}

/// TOML of `value`, laid out as the files in this repository are.
///
/// # Errors
/// If `value` is not a table.
pub(crate) fn to_toml<T: Serialize>(value: &T) -> anyhow::Result<String> {
    let table = Table::try_from(value)?;
    let mut text = String::new();
    write_table(&mut text, "", &table);
    Ok(text)
}

/// Longer tables get a header and a line for each key.
const WIDTH: usize = 100;

/// Writes inline values first, then tables and arrays of tables under headers of their own.
fn write_table(text: &mut String, path: &str, table: &Table) {
    let (inline, headed): (Vec<_>, Vec<_>) = table.iter().partition(|(k, v)| is_inline(k, v));
    for (name, value) in inline {
        line(text, format_args!("{} = {}", key(name), Inline(value)));
    }
    for (name, value) in headed {
        let path = match path {
            "" => key(name).into_owned(),
            path => format!("{path}.{}", key(name)),
        };
        match value {
            Value::Table(inner) => {
                // A table that holds only tables needs no header: their headers imply it.
                let implied = !inner.is_empty() && inner.iter().all(|(k, v)| !is_inline(k, v));
                if !implied {
                    line(text, format_args!("\n[{path}]"));
                }
                write_table(text, &path, inner);
            }
            Value::Array(items) => {
                for item in items.iter().filter_map(Value::as_table) {
                    line(text, format_args!("\n[[{path}]]"));
                    write_table(text, &path, item);
                }
            }
            _ => {}
        }
    }
}

/// Whether a value is written on the line of its key: everything except long tables, arrays of
/// tables, and tables that do more than select variants. A table selects variants if it has a
/// `kind`, if each of its values has one, or if it is called `match`.
fn is_inline(name: &str, value: &Value) -> bool {
    let choice = |value: &Value| value.get("kind").is_some();
    match value {
        Value::Array(items) => items.is_empty() || !items.iter().all(Value::is_table),
        Value::Table(table) => {
            let small = choice(value)
                || name == "match"
                || (!table.is_empty() && table.values().all(choice));
            small && name.len() + Inline(value).to_string().len() <= WIDTH
        }
        _ => true,
    }
}

/// A value written on one line.
struct Inline<'a>(&'a Value);

impl std::fmt::Display for Inline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::Table(table) if table.is_empty() => f.write_str("{}"),
            Value::Table(table) => {
                for (i, (name, value)) in table.iter().enumerate() {
                    let before = if i == 0 { "{ " } else { ", " };
                    write!(f, "{before}{} = {}", key(name), Inline(value))?;
                }
                f.write_str(" }")
            }
            Value::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    let before = if i == 0 { "" } else { ", " };
                    write!(f, "{before}{}", Inline(item))?;
                }
                f.write_str("]")
            }
            scalar => scalar.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_laid_out_as_people_write_them() {
        let text = "\
schema = 1
name = \"radio\"

[nodes.base]

[nodes.mobile]

[links.radio]
ends = [\"base\", \"mobile\"]
rate = \"14.4 kbit/s\"
errors = { down = { kind = \"none\" }, up = { kind = \"uniform\", rate = 0.05 } }

[[links.radio.services]]
number = 1
scheme = { kind = \"sr-m2\", timers = { ack = \"1 s\" } }

[[links.radio.services]]
number = 2
scheme = { kind = \"default\" }
match = { dscp = \"EF\" }
";
        let table: Table = text.parse().unwrap();
        assert_eq!(to_toml(&table).unwrap(), text);
    }

    #[test]
    fn layout_never_changes_the_meaning() {
        let long = "x".repeat(120);
        for text in [
            "[[a]]\nb = [{ c = 1 }, { c = \"x \\\" y\" }]\n[[a]]\nd = 1\n".to_owned(),
            "a = [{ b = 1 }, 2]\n\"odd key\" = [[], [{}]]\n".to_owned(),
            format!("[[a]]\nb = {{ kind = \"{long}\", d = {{ e = 1 }} }}\nf = 1\n[[a]]\n"),
        ] {
            let table: Table = text.parse().unwrap();
            let text = to_toml(&table).unwrap();
            assert_eq!(text.parse::<Table>().unwrap(), table, "{text}");
        }
    }
}
