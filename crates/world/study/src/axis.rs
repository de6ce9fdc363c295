//! The axes of a study: what differs between its scenarios.

use toml::{Table, Value};

use crate::pattern::Assignment;

/// One respect in which the scenarios of a study differ.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Such as `scheme` or `level`.
    pub name: String,
    /// Such as `rlp` or `L1`, in the order of the file.
    pub values: Vec<String>,
    /// The assignments for each value.
    pub(crate) set: Vec<Vec<Assignment>>,
}

/// A place at which a claim is checked: one value for each open axis.
pub(crate) type AxisValues = Vec<String>;

impl Axis {
    /// Reads an axis of a study: its values with their assignments, or a selection of values from
    /// an axis that a part defines.
    pub(crate) fn new(name: &str, choice: &Value, known: Option<&Table>) -> Result<Self, String> {
        let (values, table): (Vec<String>, &Table) = match choice {
            Value::Table(table) => (table.keys().cloned().collect(), table),
            Value::Array(values) => {
                let values = values.iter().map(|value| value.as_str().map(str::to_owned));
                let values: Option<Vec<String>> = values.collect();
                let wrong = || format!("axes.{name}: a list of names, such as [\"L1\", \"L2\"]");
                let no_part = || format!("axes.{name}: no part of this study defines it");
                (values.ok_or_else(wrong)?, known.ok_or_else(no_part)?)
            }
            other => {
                let kind = other.type_str();
                return Err(format!(
                    "axes.{name}: its type is {kind}; write a list of values or a table"
                ));
            }
        };
        if values.is_empty() {
            return Err(format!("axes.{name} has no values"));
        }
        let set = values
            .iter()
            .map(|value| {
                let list = table.get(value).and_then(Value::as_array).ok_or_else(|| {
                    let known: Vec<&str> = table.keys().map(String::as_str).collect();
                    let known = known.join(", ");
                    format!(
                        "axes.{name}: no list of assignments for \"{value}\"; there are: {known}"
                    )
                })?;
                let texts: Option<Vec<String>> = list
                    .iter()
                    .map(|text| text.as_str().map(str::to_owned))
                    .collect();
                let texts =
                    texts.ok_or_else(|| format!("axes.{name}.{value}: assignments are text"))?;
                Assignment::parse_all(&texts).map_err(|e| e.to_string())
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            name: name.to_owned(),
            values,
            set,
        })
    }
}
