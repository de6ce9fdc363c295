//! Assignments that may match many places of a scenario at once:
//! `links.radio*.services[*].scheme(kind=rlp|rlp-oos).timers="tight"`.
//!
//! A path consists of keys, in which `*` stands for any text, and of selectors in brackets: an
//! index, a `name`, or `*` for all elements. A condition in parentheses keeps only the tables that
//! have the key with one of the values. Tables on the way must exist; the last key may be new.
//! Unlike [`Document::set`](airlane_base::config::Document::set), an assignment may match no place
//! at all, because a scenario with two wireless links and one with a single link share their files.

use airlane_base::config::fits;
use toml::{Table, Value};

use crate::error::StudyError;

/// An assignment `PATH=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    text: String,
    path: Pattern,
    value: Value,
}

/// A path that may match many places.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Into a table, by a key in which `*` stands for any text.
    Key(String),
    /// Into a list, by position.
    Index(usize),
    /// Into a list of tables, by `name`; `*` for all.
    Named(String),
    /// Stays at this table if it has `key` with one of the values.
    Where(String, Vec<String>),
}

impl Assignment {
    /// Parses `PATH=VALUE`. A value that is not TOML is taken as text.
    ///
    /// # Errors
    /// If there is no `=`, or no path before it.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let refuse = |what: &str| StudyError::Assignment {
            text: text.to_owned(),
            problem: what.to_owned(),
        };
        let at = equals_sign(text).ok_or_else(|| refuse("there is no `=` outside parentheses"))?;
        let path = Pattern::parse(&text[..at]).ok_or_else(|| refuse("its left side is no path"))?;
        if !matches!(
            path.0.last(),
            Some(Step::Key(_) | Step::Index(_) | Step::Named(_))
        ) {
            return Err(refuse("its path ends with a condition"));
        }
        let right = text[at + 1..].trim();
        let value = toml::from_str::<Table>(&format!("value = {right}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(right.to_owned()));
        Ok(Self {
            text: text.to_owned(),
            path,
            value,
        })
    }

    /// Parses a list of assignments; the error is the first one's.
    pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Self>, StudyError> {
        texts.iter().map(|text| Self::parse(text)).collect()
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets the value at every place that the path matches; returns how many there were.
    pub fn apply(&self, root: &mut Table) -> usize {
        let Some((first, rest)) = self.path.0.split_first() else {
            return 0;
        };
        let Step::Key(key) = first else {
            return 0;
        };
        set_key(root, key, rest, &self.value)
    }
}

/// The `=` between path and value: the first one outside parentheses.
fn equals_sign(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

impl Pattern {
    /// `None` if `text` is not a path.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = vec![];
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (name, after) = inside.split_once(']')?;
                steps.push(match name.parse() {
                    Ok(index) => Step::Index(index),
                    Err(_) if name.is_empty() => return None,
                    Err(_) => Step::Named(name.to_owned()),
                });
                rest = after;
            } else if let Some(inside) = rest.strip_prefix('(') {
                let (condition, after) = inside.split_once(')')?;
                let (key, values) = condition.split_once('=')?;
                let values = values.split('|').map(|v| v.trim().to_owned()).collect();
                steps.push(Step::Where(key.trim().to_owned(), values));
                rest = after;
            } else {
                if !steps.is_empty() {
                    rest = rest.strip_prefix('.')?;
                }
                let end = rest.find(['.', '[', '(']).unwrap_or(rest.len());
                let key = rest[..end].trim();
                if key.is_empty() {
                    return None;
                }
                steps.push(Step::Key(key.to_owned()));
                rest = &rest[end..];
            }
        }
        matches!(steps.first(), Some(Step::Key(_))).then_some(Self(steps))
    }

    /// Every value that the path matches.
    pub fn find<'t>(&self, root: &'t Table) -> Vec<&'t Value> {
        let mut found = vec![];
        if let Some((Step::Key(key), rest)) = self.0.split_first() {
            for (name, value) in root {
                if fits(key, name) {
                    find_in(value, rest, &mut found);
                }
            }
        }
        found
    }
}

fn find_in<'t>(value: &'t Value, steps: &[Step], found: &mut Vec<&'t Value>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match (step, value) {
        (Step::Where(key, values), value) if holds(value, key, values) => {
            find_in(value, rest, found);
        }
        (Step::Key(key), Value::Table(table)) => {
            let chosen = table.iter().filter(|(name, _)| fits(key, name));
            chosen.for_each(|(_, value)| find_in(value, rest, found));
        }
        (Step::Index(index), Value::Array(items)) => {
            if let Some(item) = items.get(*index) {
                find_in(item, rest, found);
            }
        }
        (Step::Named(name), Value::Array(items)) => {
            let chosen = items.iter().filter(|item| is_named(item, name));
            chosen.for_each(|item| find_in(item, rest, found));
        }
        _ => {}
    }
}

fn set_key(table: &mut Table, key: &str, rest: &[Step], new: &Value) -> usize {
    if rest.is_empty() && !key.contains('*') {
        table.insert(key.to_owned(), new.clone());
        return 1;
    }
    let chosen = table.iter_mut().filter(|(name, _)| fits(key, name));
    chosen.map(|(_, value)| set(value, rest, new)).sum()
}

fn set(value: &mut Value, steps: &[Step], new: &Value) -> usize {
    let Some((step, rest)) = steps.split_first() else {
        *value = new.clone();
        return 1;
    };
    if let Step::Where(key, values) = step {
        return if holds(value, key, values) {
            set(value, rest, new)
        } else {
            0
        };
    }
    match (step, value) {
        (Step::Key(key), Value::Table(table)) => set_key(table, key, rest, new),
        (Step::Index(index), Value::Array(items)) => {
            items.get_mut(*index).map_or(0, |item| set(item, rest, new))
        }
        (Step::Named(name), Value::Array(items)) => {
            let chosen = items.iter_mut().filter(|item| is_named(item, name));
            chosen.map(|item| set(item, rest, new)).sum()
        }
        _ => 0,
    }
}

fn is_named(item: &Value, name: &str) -> bool {
    name == "*"
        || item
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|n| fits(name, n))
}

fn holds(value: &Value, key: &str, values: &[String]) -> bool {
    let Some(found) = value.get(key) else {
        return false;
    };
    let text = found
        .as_str()
        .map_or_else(|| found.to_string(), str::to_owned);
    values.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLD: &str = r#"
        [links.wired]
        rate = "10 Mbit/s"
        [links.radio-1]
        services = [{ name = "tcp", scheme = { kind = "rlp" } }, { name = "udp", scheme = { kind = "rlp-oos" } }]
        [links.radio-2]
        services = [{ name = "tcp", scheme = { kind = "sr-m2" } }]
    "#;

    fn after(assignment: &str) -> (usize, Table) {
        let mut world: Table = toml::from_str(WORLD).unwrap();
        let count = Assignment::parse(assignment).unwrap().apply(&mut world);
        (count, world)
    }

    fn at<'t>(world: &'t Table, path: &str) -> Vec<&'t Value> {
        Pattern::parse(path).unwrap().find(world)
    }

    #[test]
    fn wildcards_reach_every_place_and_no_other() {
        let (count, world) = after("links.radio*.frame=50 B");
        assert_eq!(count, 2);
        assert_eq!(at(&world, "links.*.frame").len(), 2);
        assert!(at(&world, "links.wired.frame").is_empty());
    }

    #[test]
    fn conditions_choose_tables_by_a_value() {
        let (count, world) = after("links.*.services[*].scheme(kind=rlp|rlp-oos).timers=\"tight\"");
        assert_eq!(count, 2);
        let chosen = at(&world, "links.*.services[*].scheme(timers=tight).kind");
        assert_eq!(chosen.len(), 2);
        assert!(at(&world, "links.radio-2.services[tcp].scheme.timers").is_empty());
    }

    #[test]
    fn values_are_toml_or_text() {
        for (text, value) in [
            ("seed=7", Value::Integer(7)),
            ("seed=100 ms", Value::String("100 ms".into())),
            ("seed = \"7\"", Value::String("7".into())),
        ] {
            let (count, world) = after(text);
            assert_eq!((count, &world["seed"]), (1, &value));
        }
    }

    #[test]
    fn no_missing_entry_is_created() {
        let (count, world) = after("links.satellite.rate=1 Mbit/s");
        assert_eq!(count, 0);
        assert!(world["links"].get("satellite").is_none());
    }

    #[test]
    fn invalid_assignments_are_refused() {
        for text in [
            "rate",
            "=5",
            "a(b=c).=5",
            "a(b=c)=5",
            "a..b=5",
            "a[=5",
            "[0]=1",
        ] {
            assert!(Assignment::parse(text).is_err(), "{text}");
        }
    }
}
