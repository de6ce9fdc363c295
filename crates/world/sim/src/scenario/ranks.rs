//! Names in order, with a fast lookup of their index, and short lists of names for errors.

/// The most names that one error lists.
const NAMES_AT_ONCE: usize = 20;

/// Names in order.
#[derive(Clone, Debug)]
pub(crate) struct Ranks<'a>(Vec<&'a str>);

impl<'a> Ranks<'a> {
    /// From the keys of a map, which are in order.
    pub(crate) fn of(names: impl IntoIterator<Item = &'a String>) -> Self {
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        debug_assert!(names.is_sorted(), "keys of a map are in order");
        Self(names)
    }

    /// The index of a name, if it exists.
    pub(crate) fn at(&self, name: &str) -> Option<usize> {
        self.0.binary_search(&name).ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A list of some of the names.
pub(super) fn one_of<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(NAMES_AT_ONCE);
    let some: Vec<&str> = names.take(NAMES_AT_ONCE).map(String::as_str).collect();
    match more {
        0 => format!("one of: {}", some.join(", ")),
        _ => format!("one of: {}, or {more} more", some.join(", ")),
    }
}
