//! TOML paths as people write them: `links.radio.services[1].rate`, `services[voice].rate`.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Deepest path, the limit of the TOML parser; deeper ones could exhaust the stack.
const DEEPEST: usize = 64;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into a list, by position from 0.
    Index(usize),
    /// Into a list of tables, by the element's `name`.
    Named(String),
}

impl Step {
    /// Whether the step may select several places.
    fn is_many(&self) -> bool {
        match self {
            Self::Key(text) | Self::Named(text) => text.contains('*'),
            Self::Index(_) => false,
        }
    }
}

/// Whether `name` matches `glob`, in which `*` matches any text.
pub fn fits(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Steps from the root of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPath(Vec<Step>);

/// The place that a path leads to.
pub(super) struct Found {
    pub(super) span: Range<usize>,
    /// Whether the whole path exists, not only its beginning.
    pub(super) complete: bool,
}

/// The steps of a path as written. `None` if it is not a path.
pub fn steps(path: &str) -> Option<Vec<Step>> {
    Some(KeyPath::parse(path)?.0)
}

/// `name` as one key of a path, quoted if necessary.
pub fn key(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        if c == '"' || c == '\\' {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

impl KeyPath {
    /// None if `text` is not a path.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (name, after) = inside.split_once(']')?;
                steps.push(match name.parse() {
                    Ok(index) => Step::Index(index),
                    Err(_) if name.is_empty() => return None,
                    Err(_) => Step::Named(name.to_owned()),
                });
                rest = after;
                continue;
            }
            if !steps.is_empty() {
                rest = rest.strip_prefix('.')?;
            }
            let (name, after) = take_key(rest)?;
            steps.push(Step::Key(name));
            rest = after;
            if steps.len() > DEEPEST {
                return None;
            }
        }
        Some(Self(steps))
    }

    pub(super) fn as_steps(&self) -> &[Step] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn with_key(&self, name: &str) -> Self {
        self.with(Step::Key(name.to_owned()))
    }

    pub(super) fn with_index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The path without its last step.
    pub(super) fn parent(&self) -> Self {
        let kept = self.0.len().saturating_sub(1);
        Self(self.0[..kept].to_vec())
    }

    /// The last key, if the last step is a key.
    pub(super) fn last_key(&self) -> Option<&str> {
        match self.0.last() {
            Some(Step::Key(name)) => Some(name),
            _ => None,
        }
    }

    /// The name of the entry of the root table `table` that the path leads into.
    pub(super) fn entry_of(&self, table: &str) -> Option<&str> {
        match self.0.as_slice() {
            [Step::Key(first), Step::Key(name), _, ..] if first == table => Some(name),
            _ => None,
        }
    }

    /// The value at the path, or the deepest one on the way.
    pub(super) fn find(&self, root: &Spanned<DeTable<'_>>) -> Found {
        // An empty span: the whole file would be no useful place to show.
        let mut span = 0..0;
        let mut at = Node::Table(root.get_ref());
        for step in &self.0 {
            let Some(value) = at.step(step) else {
                return Found {
                    span,
                    complete: false,
                };
            };
            span = value.span();
            at = Node::of(value.get_ref());
        }
        Found {
            span,
            complete: true,
        }
    }

    /// The value at the path; `None` for the root.
    pub(super) fn value<'t, 'i>(&self, root: &'t Spanned<DeTable<'i>>) -> Option<&'t DeValue<'i>> {
        let mut at = Node::Table(root.get_ref());
        let mut value = None;
        for step in &self.0 {
            let here = at.step(step)?.get_ref();
            (at, value) = (Node::of(here), Some(here));
        }
        value
    }

    /// The places that the path selects: `*` in a key matches any text, `[*]` selects all entries of a list. The path up
    /// to a `*` must exist; a path without `*` selects itself.
    pub(super) fn places(&self, root: &Spanned<DeTable<'_>>) -> Vec<Self> {
        let mut found = vec![];
        let mut open = vec![(Self::default(), Node::Table(root.get_ref()), &self.0[..])];
        while let Some((so_far, at, steps)) = open.pop() {
            if !steps.iter().any(Step::is_many) {
                found.push(Self([so_far.0, steps.to_vec()].concat()));
                continue;
            }
            let chosen = at.many(&steps[0]).into_iter().map(|(step, value)| {
                let place = so_far.with(step);
                (place, Node::of(value.get_ref()), &steps[1..])
            });
            // Reversed, so that the first place is popped first.
            open.extend(chosen.rev());
        }
        found
    }

    /// The steps of the path, with list entries by index where they exist.
    pub(super) fn steps(&self, root: &Spanned<DeTable<'_>>) -> Vec<Step> {
        let mut at = Node::Table(root.get_ref());
        let resolved = self.0.iter().map(|step| {
            let resolved = match &at {
                Node::Array(items) => position(items, step).map(Step::Index),
                Node::Table(_) | Node::Leaf => None,
            };
            let value = at.step(step);
            at = value.map_or(Node::Leaf, |value| Node::of(value.get_ref()));
            resolved.unwrap_or_else(|| step.clone())
        });
        resolved.collect()
    }

    /// Mutable access to the value at the path.
    pub(super) fn value_mut<'t, 'i>(
        &self,
        root: &'t mut Spanned<DeTable<'i>>,
    ) -> Option<&'t mut DeValue<'i>> {
        let (first, rest) = self.0.split_first()?;
        let Step::Key(name) = first else {
            return None;
        };
        let mut value = root.get_mut().get_mut(name.as_str())?.get_mut();
        for step in rest {
            value = step_mut(value, step)?;
        }
        Some(value)
    }

    /// The table at the path; the root for the empty path.
    pub(super) fn table_mut<'t, 'i>(
        &self,
        root: &'t mut Spanned<DeTable<'i>>,
    ) -> Option<&'t mut DeTable<'i>> {
        if self.is_empty() {
            return Some(root.get_mut());
        }
        match self.value_mut(root)? {
            DeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Removes the value from its table or list. False if there is none.
    pub(super) fn remove(&self, root: &mut Spanned<DeTable<'_>>) -> bool {
        let Some(last) = self.0.last() else {
            return false;
        };
        let parent = self.parent();
        match last {
            Step::Key(name) => parent
                .table_mut(root)
                .is_some_and(|table| table.remove(name.as_str()).is_some()),
            Step::Index(index) => match parent.value_mut(root) {
                Some(DeValue::Array(items)) if *index < items.len() => {
                    let all = std::mem::replace(items, DeArray::new());
                    let others = all.into_iter().enumerate().filter(|(i, _)| i != index);
                    *items = others.map(|(_, item)| item).collect();
                    true
                }
                _ => false,
            },
            Step::Named(_) => false,
        }
    }

    /// Renames the key in its table and returns the new path. `None` if that key exists already.
    pub(super) fn rename(&self, root: &mut Spanned<DeTable<'_>>, name: &str) -> Option<Self> {
        let (parent, old) = (self.parent(), self.last_key()?);
        let table = parent.table_mut(root)?;
        if table.contains_key(name) {
            return None;
        }
        let value = table.remove(old)?;
        table.insert(Spanned::new(0..0, name.to_owned().into()), value);
        Some(parent.with_key(name))
    }

    /// Whether the path equals `other` or lies below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Inserts `value` at the path and creates the tables on the way; `left` is the span of the path's text.
    pub(super) fn insert<'i>(
        &self,
        root: &mut Spanned<DeTable<'i>>,
        value: Spanned<DeValue<'i>>,
        left: Range<usize>,
    ) -> Result<(), String> {
        let Some((Step::Key(first), rest)) = self.0.split_first() else {
            return Err("a path starts with a key".to_owned());
        };
        let mut so_far = Self::default();
        // A list cannot be created on the way: the first key that is missing is the one at fault.
        let mut absent = so_far.absent(root.get_ref(), first);
        let mut slot = entry(root.get_mut(), first, &left);
        so_far.0.push(Step::Key(first.clone()));
        for step in rest {
            let inner = slot.get_mut();
            slot = match (step, inner) {
                (Step::Key(name), DeValue::Table(table)) => {
                    absent = absent.or_else(|| so_far.absent(table, name));
                    entry(table, name, &left)
                }
                (Step::Key(name), DeValue::Array(_)) => {
                    return Err(format!(
                        "`{so_far}` is a list and has no key `{name}`; an entry is `{so_far}[0]`, \
                         or `{so_far}[NAME]` where entries have names"
                    ));
                }
                (Step::Key(name), other) => {
                    let kind = other.type_str();
                    return Err(format!(
                        "`{so_far}` has no key `{name}`: its type is {kind}"
                    ));
                }
                (choice, DeValue::Array(items)) => {
                    let count = items.len();
                    let index = position(items, choice);
                    let Some(index) = index.filter(|i| *i < count) else {
                        let choice = Self(vec![choice.clone()]);
                        let named: Vec<_> = items.iter().filter_map(name).collect();
                        let known = match named.is_empty() {
                            true => String::new(),
                            false => format!("; there are: {}", named.join(", ")),
                        };
                        return Err(format!(
                            "`{so_far}` has {count} elements and none is `{choice}`{known}"
                        ));
                    };
                    items.get_mut(index).expect("within the list")
                }
                (_, other) => {
                    let kind = other.type_str();
                    let no_list = || format!("`{so_far}` is no list: its type is {kind}");
                    return Err(absent.unwrap_or_else(no_list));
                }
            };
            so_far.0.push(step.clone());
        }
        *slot = value;
        Ok(())
    }

    /// The error text if the `table` here has no `name`.
    fn absent(&self, table: &DeTable<'_>, name: &str) -> Option<String> {
        if table.contains_key(name) {
            return None;
        }
        let known: Vec<&str> = table.keys().map(|key| &**key.get_ref()).collect();
        missing(&self.with_key(name), &known)
    }
}

impl std::fmt::Display for KeyPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if i == 0 => write!(f, "{}", key(name))?,
                Step::Key(name) => write!(f, ".{}", key(name))?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Named(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

/// The error text if `path` does not exist but its siblings `known` do.
pub(super) fn missing(path: &KeyPath, known: &[&str]) -> Option<String> {
    let mut known: Vec<_> = known.iter().map(|name| key(name)).collect();
    known.sort();
    (!known.is_empty()).then(|| format!("there is no `{path}`; there are: {}", known.join(", ")))
}

/// Takes a key off the front of `text`, bare or quoted, and returns the rest, too.
fn take_key(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut name = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Some((name, &quoted[at + 1..])),
                '\\' => name.push(chars.next()?.1),
                c => name.push(c),
            }
        }
        return None;
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let name = text[..end].trim();
    (!name.is_empty()).then(|| (name.to_owned(), &text[end..]))
}

/// The value of `name`, created as an empty table if absent.
fn entry<'t, 'i>(
    table: &'t mut DeTable<'i>,
    name: &str,
    span: &Range<usize>,
) -> &'t mut Spanned<DeValue<'i>> {
    let name: Cow<'i, str> = Cow::Owned(name.to_owned());
    table
        .entry(Spanned::new(span.clone(), name))
        .or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())))
}

fn position(items: &DeArray<'_>, step: &Step) -> Option<usize> {
    match step {
        Step::Index(index) => Some(*index),
        Step::Key(_) => None,
        Step::Named(wanted) => items.iter().position(|item| name(item) == Some(wanted)),
    }
}

/// The `name` of an element of a list.
fn name<'v>(item: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
    item.get_ref().get("name")?.get_ref().as_str()
}

fn is_text_that(value: &Spanned<DeValue<'_>>, holds: impl Fn(&str) -> bool) -> bool {
    value.get_ref().as_str().is_some_and(holds)
}

fn step_mut<'t, 'i>(value: &'t mut DeValue<'i>, step: &Step) -> Option<&'t mut DeValue<'i>> {
    match (value, step) {
        (DeValue::Table(table), Step::Key(name)) => {
            table.get_mut(name.as_str()).map(Spanned::get_mut)
        }
        (DeValue::Array(items), step) => {
            let index = position(items, step)?;
            items.get_mut(index).map(Spanned::get_mut)
        }
        _ => None,
    }
}

/// A value that has children.
enum Node<'t, 'i> {
    Table(&'t DeTable<'i>),
    Array(&'t DeArray<'i>),
    Leaf,
}

impl<'t, 'i> Node<'t, 'i> {
    fn of(value: &'t DeValue<'i>) -> Self {
        match value {
            DeValue::Table(table) => Self::Table(table),
            DeValue::Array(items) => Self::Array(items),
            _ => Self::Leaf,
        }
    }

    fn step(&self, step: &Step) -> Option<&'t Spanned<DeValue<'i>>> {
        match (self, step) {
            (Self::Table(table), Step::Key(name)) => table.get(name.as_str()),
            (Self::Array(items), step) => items.get(position(items, step)?),
            _ => None,
        }
    }

    /// All children that a step with `*` selects, or the single child of any other step.
    fn many(&self, step: &Step) -> Vec<(Step, &'t Spanned<DeValue<'i>>)> {
        match (self, step) {
            (Self::Table(table), Step::Key(glob)) if step.is_many() => {
                let children = table.iter().map(|(name, value)| (name.get_ref(), value));
                let chosen = children.filter(|(name, _)| fits(glob, name));
                chosen
                    .map(|(name, value)| (Step::Key(name.to_string()), value))
                    .collect()
            }
            (Self::Array(items), Step::Named(glob)) if step.is_many() => {
                let entries = items.iter().enumerate();
                let chosen = entries.filter(|(_, item)| {
                    let name = item.get_ref().get("name");
                    glob == "*" || name.is_some_and(|name| is_text_that(name, |n| fits(glob, n)))
                });
                chosen.map(|(i, item)| (Step::Index(i), item)).collect()
            }
            _ => {
                let only = self.step(step);
                only.into_iter()
                    .map(|child| (step.clone(), child))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_they_are_written() {
        for text in [
            "a",
            "links.radio.services[1].rate",
            "a[0][3].b",
            "\"a.b\".c",
            "s[voice].x",
        ] {
            assert_eq!(KeyPath::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            KeyPath::parse("\"say \\\"hi\\\"\"").unwrap().last_key(),
            Some("say \"hi\"")
        );
    }

    #[test]
    fn a_name_and_an_index_lead_to_the_same_entry() {
        let table =
            DeTable::parse("s = [{ name = \"tcp\" }, { name = \"voice\", x = 1 }]").unwrap();
        let steps = |text: &str| KeyPath::parse(text).unwrap().steps(&table);
        assert_eq!(steps("s[voice].x"), steps("s[1].x"));
        assert_eq!(
            steps("s[none].y[0]"),
            KeyPath::parse("s[none].y[0]").unwrap().0
        );
        assert_eq!(steps("t.u"), KeyPath::parse("t.u").unwrap().0);
    }

    #[test]
    fn an_asterisk_matches_every_entry() {
        let file = "l.r1 = { s = [{ name = \"tcp\", x = 1 }, { name = \"voice\" }] }\nl.r2.y = 1\nl.w.s = [{}]";
        let root = DeTable::parse(file).unwrap();
        let places = |text: &str| -> Vec<String> {
            let places = KeyPath::parse(text).unwrap().places(&root);
            places.iter().map(KeyPath::to_string).collect()
        };
        assert_eq!(
            places("l.*.s[*].x"),
            ["l.r1.s[0].x", "l.r1.s[1].x", "l.w.s[0].x"]
        );
        assert_eq!(places("l.r*.y"), ["l.r1.y", "l.r2.y"]);
        assert_eq!(places("l.r1.s[v*].x"), ["l.r1.s[1].x"]);
        assert_eq!(places("l.*.none[*].x"), [""; 0]);
        assert_eq!(places("l.none.x"), ["l.none.x"]);
    }

    #[test]
    fn globs() {
        for (glob, name, is_right) in [
            ("*", "", true),
            ("radio*", "radio-1", true),
            ("radio*", "wired", false),
            ("*-1", "radio-1", true),
            ("r*o*1", "radio-1", true),
            ("r*o*1", "radio-2", false),
            ("radio", "radio-1", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(fits(glob, name), is_right, "{glob} {name}");
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        for text in [
            ".",
            "a..b",
            "a.",
            "a[1",
            "a[]",
            "\"open",
            "[0]x",
            &"a.".repeat(99),
        ] {
            assert_eq!(KeyPath::parse(text), None, "{text}");
        }
    }
}
