//! Translates the messages of `toml` and `serde` into what is wrong and what would be right.

use serde_json::Value;

use crate::schema::written;

/// The remedy for an address that lacks its port, or is none.
pub const ADDRESS_HELP: &str =
    "write an address and a port, such as \"127.0.0.1:7007\" or \"[::1]:7007\"";

/// What is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) message: String,
    pub(super) help: String,
}

impl Text {
    pub(super) fn new(message: &str, help: &str) -> Self {
        Self {
            message: message.to_owned(),
            help: help.to_owned(),
        }
    }
}

/// The missing key, if that is the error, in serde's words or in those of a type that reads itself: errors of a kind
/// "need `rate`".
pub(super) fn missing_key(message: &str) -> Option<&str> {
    if let Some(rest) = message.strip_prefix("missing field `") {
        return rest.strip_suffix('`');
    }
    let (_, rest) = message.split_once(" need `")?;
    Some(rest.split_once('`')?.0)
}

/// The text for missing keys, with an example value for each; for `missed` alone if no examples are known.
pub(super) fn of_missing(missed: &str, missing: &[(String, Value)]) -> Text {
    if missing.is_empty() {
        return Text::new(
            &format!("`{missed}` is missing"),
            &format!("add `{missed} = ...` here"),
        );
    }
    let names: Vec<String> = missing.iter().map(|(key, _)| format!("`{key}`")).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let lines = missing
        .iter()
        .map(|(key, example)| format!("`{key} = {}`", written(example)));
    Text {
        message: format!("{} {verb} missing", listed(&names)),
        help: format!(
            "add {} here, for example",
            listed(&lines.collect::<Vec<_>>())
        ),
    }
}

/// Joins items: `a`, `b` and `c`.
fn listed(items: &[String]) -> String {
    match items {
        [all @ .., before, last] => {
            let first: String = all.iter().map(|item| format!("{item}, ")).collect();
            format!("{first}{before} and {last}")
        }
        items => items.concat(),
    }
}

/// The help where a table is expected whose keys are not known yet.
pub(super) const WRITE_TABLE: &str = "write a table";

/// The help where a table is expected: an example, and the names of its possible keys.
pub(super) fn table_help(example: &Value, names: &str) -> String {
    format!("{WRITE_TABLE} such as {}; {names}", written(example))
}

/// The unknown key, if that is the error.
pub(super) fn unknown_key(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("unknown field `")?;
    Some(rest.split_once('`')?.0)
}

/// The beginning of the message about an unknown key.
pub(super) const UNKNOWN_KEY: &str = "unknown key `";

/// The key that an unknown one was probably meant to be.
pub(super) fn meant_key(message: &str) -> Option<&str> {
    nearest(unknown_key(message)?, alternatives(message))
}

/// Whether the error is that a value is neither a name nor a table with one key, in the words of `toml` or in those of
/// `serde`, which reads tables with a `kind`.
pub(super) fn is_of_choice(message: &str) -> bool {
    message.starts_with("wanted exactly 1 element")
        || message == "wanted string or table"
        || message.starts_with("expected table, found ")
        || message.ends_with("expected map with a single key")
        || message.ends_with("expected string or map")
        || message.ends_with("expected unit")
        || message.contains("unit variant")
}

/// A key in a sentence; items of lists have none.
fn named(key: Option<&str>) -> String {
    key.map_or_else(|| "this value".to_owned(), |key| format!("`{key}`"))
}

/// The text for a `key` that has none of its `forms`.
pub(super) fn of_choice(key: Option<&str>, forms: &[String]) -> Text {
    let help = format!("choices: {}", forms.join(", "));
    Text::new(
        &format!("{} has none of the forms it may have", named(key)),
        &help,
    )
}

/// The text for an error of `serde` about the value of `key`.
pub(super) fn of_serde(message: &str, key: Option<&str>) -> Text {
    let subject = named(key);
    if let Some(name) = unknown_key(message) {
        let known = alternatives(message);
        let help = if known.is_empty() {
            "nothing may stand here".to_owned()
        } else {
            suggestion(name, &known, "keys that exist here")
        };
        return Text::new(&format!("{UNKNOWN_KEY}{name}`"), &help);
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let name = rest.split_once('`').map_or("", |(name, _)| name);
        let known = alternatives(message);
        if Some(name) == key {
            // `key` names a form with a value.
            let help = suggestion(name, &known, "choices");
            return Text::new(&format!("{UNKNOWN_KEY}{name}`"), &help);
        }
        return Text::new(
            &format!("{subject} cannot be \"{name}\""),
            &suggestion(name, &known, "choices"),
        );
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        let Some(rest) = message.strip_prefix(prefix) else {
            continue;
        };
        let (found, expected) = rest.split_once(", expected ").unwrap_or((rest, ""));
        let expected = in_words(expected);
        return Text {
            message: format!("{subject} cannot be {}", found_in_words(found)),
            help: if expected.is_empty() {
                String::new()
            } else {
                format!("write {expected}")
            },
        };
    }
    if message.starts_with("data did not match any variant") {
        return Text::new(&format!("{subject} has none of the forms it may have"), "");
    }
    if message == "invalid socket address syntax" {
        return Text::new(message, ADDRESS_HELP);
    }
    // Our own messages give the help after a semicolon.
    match message.split_once("; ") {
        Some((message, help)) => Text::new(message, help),
        None => Text::new(message, ""),
    }
}

/// The text for an error of the TOML parser about `line`.
pub(super) fn of_syntax(message: &str, line: &str) -> Text {
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    let bare = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    let whole = !value.contains(['"', '\'', ',', '{', '[', '#']);
    let help = if bare && whole && value.contains(|c: char| c.is_ascii_alphabetic()) {
        format!("text and values with units stand in quotes: \"{value}\"")
    } else {
        String::new()
    };
    Text {
        message: message.replace('\n', " "),
        help,
    }
}

/// The text for an error of `toml` about a repeated key or header in this line of `file`.
pub(super) fn of_repeated(message: &str, file: &str, line: usize) -> Text {
    let lines = || file.lines().map(str::trim);
    let here = lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let is_header = |line: &str| line.starts_with('[');
    let above: Vec<&str> = lines().take(line.saturating_sub(1)).collect();
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let first = if is_header(here) {
        above.iter().rposition(|line| *line == here)
    } else {
        let table = above.iter().rposition(|line| is_header(line));
        let table = table.map_or(0, |at| at + 1);
        let same = |line: &&str| key(line).is_some() && key(line) == key(here);
        let found = above[table..].iter().position(same);
        found.map(|at| table + at)
    };
    let already = match first {
        Some(at) => format!(", and this one stands at line {}", at + 1),
        None => String::new(),
    };
    let help = if is_header(here) {
        format!("a table has one header{already}: put its keys together under one of the two")
    } else {
        format!("a key stands once in its table{already}: keep one of the two")
    };
    Text::new(message, &help)
}

/// The known name that `written` was probably meant to be. Characters other than letters and digits weigh least: `F42`
/// matches `F4.2`.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bare = |name: &str| {
        name.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
    };
    let key = |candidate: &&str| {
        let signs = distance(written, candidate);
        (distance(&bare(written), &bare(candidate)), signs)
    };
    let nearest = known.into_iter().min_by_key(key)?;
    near(&bare(written), &bare(nearest)).then_some(nearest)
}

/// The names that serde lists in backquotes after "expected".
fn alternatives(message: &str) -> Vec<&str> {
    let Some((_, list)) = message.split_once("expected ") else {
        return Vec::new();
    };
    list.split('`').skip(1).step_by(2).collect()
}

/// The nearest known name, if it is near, and all of them.
fn suggestion(name: &str, known: &[&str], what: &str) -> String {
    let all = format!("{what}: {}", known.join(", "));
    match nearest(name, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`? {all}"),
        None => all,
    }
}

/// Whether `written` is probably a misspelt `meant`.
fn near(written: &str, meant: &str) -> bool {
    distance(written, meant) <= 1 + meant.chars().count() / 4
}

/// Levenshtein distance, ignoring case and the difference between `-` and `_`.
fn distance(a: &str, b: &str) -> usize {
    let plain = |s: &str| -> Vec<char> {
        // Names are short, and a long text is near to none of them.
        s.chars()
            .take(64)
            .map(|c| {
                if c == '_' {
                    '-'
                } else {
                    c.to_ascii_lowercase()
                }
            })
            .collect()
    };
    let (a, b) = (plain(a), plain(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// What serde found, without the terms of Rust.
fn found_in_words(found: &str) -> String {
    let inner = |text: &str| text.trim_matches('`').to_owned();
    match found.split_once(' ') {
        Some(("integer" | "boolean", value)) => inner(value),
        Some(("floating", value)) => inner(value.trim_start_matches("point ")),
        Some(("string", value)) => format!("the text {value}"),
        _ => match found {
            "map" => "a table".to_owned(),
            "sequence" => "a list".to_owned(),
            other => other.to_owned(),
        },
    }
}

/// What serde expects, without the terms of Rust.
fn in_words(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "a nonzero u8" | "a nonzero u16" | "a nonzero u32" | "a nonzero u64"
        | "a nonzero usize" => "a whole number, 1 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" => "text in quotes",
        "path string" => "a path in quotes",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => {
            "a table"
        }
        other if other.starts_with("struct variant ") => "a table",
        other => other,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_not() {
        assert_eq!(distance("delay", "dealy"), 2);
        assert_eq!(distance("sr_m2", "SR-M2"), 0);
        let help = suggestion("dealy", &["rate", "delay"], "keys");
        assert_eq!(help, "did you mean `delay`? keys: rate, delay");
        assert_eq!(suggestion("colour", &["rate"], "keys"), "keys: rate");
    }

    #[test]
    fn serde_messages_are_cleaned_of_rust_terms() {
        let text = of_serde("invalid value: integer `300`, expected u8", Some("number"));
        assert_eq!(text.message, "`number` cannot be 300");
        assert_eq!(text.help, "write a whole number from 0 to 255");
        let text = of_serde("invalid type: map, expected f64", Some("rate"));
        assert_eq!(text.message, "`rate` cannot be a table");
    }
}
