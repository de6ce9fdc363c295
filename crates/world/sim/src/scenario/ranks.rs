//! Names in their order: where they stand, for those who ask for many, and a few of them for people.

/// So many names are worth reading in one error.
const NAMES_AT_ONCE: usize = 20;

/// Names in their order.
#[derive(Clone, Debug)]
pub(crate) struct Ranks<'a>(Vec<&'a str>);

impl<'a> Ranks<'a> {
    /// Of the keys of a map, which come in order.
    pub(crate) fn of(names: impl IntoIterator<Item = &'a String>) -> Self {
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        debug_assert!(names.is_sorted(), "keys of a map are in order");
        Self(names)
    }

    /// The place of a name; none if it is not among them.
    pub(crate) fn at(&self, name: &str) -> Option<usize> {
        self.0.binary_search(&name).ok()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Some of the names that there are.
pub(super) fn one_of<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(NAMES_AT_ONCE);
    let some: Vec<&str> = names.take(NAMES_AT_ONCE).map(String::as_str).collect();
    match more {
        0 => format!("one of: {}", some.join(", ")),
        _ => format!("one of: {}, or {more} more", some.join(", ")),
    }
}
