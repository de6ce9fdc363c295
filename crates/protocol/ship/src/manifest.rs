//! The contents of a job: files and folders, by name and length.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

/// Maximum number of components of a path: each is looked up when a list is checked.
const DEEPEST: usize = 128;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A file.
    File,
    /// A folder. A folder that is not empty needs no entry.
    Folder,
}

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Entry {
    /// Path below the folder that the receiver chose, with `/` between its components.
    pub path: String,
    /// The kind of entry.
    pub kind: Kind,
    /// Length in bytes; 0 for a folder.
    pub bytes: u64,
    /// Permissions, as for `chmod`.
    pub mode: u32,
    /// Time of the last change, nanoseconds since 1970.
    pub modified_ns: u64,
}

/// The list of everything that a job transfers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    entries: Vec<Entry>,
}

impl Manifest {
    /// Checks the entries. Both ends must do so, because the author of a list may be mistaken or malicious.
    ///
    /// # Errors
    /// Names the entry that is invalid, and why.
    pub fn new(entries: Vec<Entry>) -> Result<Self, String> {
        let manifest = Self { entries };
        manifest.check()?;
        Ok(manifest)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.entries.is_empty() {
            return Err("there is nothing to send".to_owned());
        }
        let mut total = 0_u64;
        for Entry {
            path, kind, bytes, ..
        } in &self.entries
        {
            let is_plain = |part| matches!(part, Component::Normal(_));
            // `a/./b` yields plain components, too, but is not a plain path.
            let parts = path.split('/').count();
            if parts > DEEPEST {
                let begin: String = path.chars().take(60).collect();
                return Err(format!(
                    "{begin:?}... is {parts} levels deep; at most {DEEPEST} are taken"
                ));
            }
            let plain = Path::new(path).components().all(is_plain)
                && path.split('/').all(|part| !part.is_empty() && part != ".");
            if !plain || path.len() > 4_000 || path.contains('\0') {
                return Err(format!("{path:?} is no path below a folder"));
            }
            if *kind == Kind::Folder && *bytes != 0 {
                return Err(format!(
                    "the folder {path:?} has {bytes} bytes; 0 would be right"
                ));
            }
            total = total
                .checked_add(*bytes)
                .ok_or("the files are longer than 16 EiB")?;
        }
        // In this order, what lies in a folder follows it at once.
        let mut sorted: Vec<&Entry> = self.entries.iter().collect();
        sorted.sort_unstable_by_key(|entry| Path::new(&entry.path));
        for pair in sorted.windows(2) {
            let (above, path) = (&pair[0].path, &pair[1].path);
            if above == path {
                return Err(format!("{path:?} stands twice in the list"));
            }
            if pair[0].kind == Kind::File && Path::new(path).starts_with(above) {
                return Err(format!("{above:?} is a file, and {path:?} lies in it"));
            }
        }
        Ok(())
    }

    /// The files and folders, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The files, each with its index among the entries.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let all = self.entries.iter().enumerate();
        all.filter(|(_, entry)| entry.kind == Kind::File)
    }

    /// Total length of all files, bytes.
    pub fn total(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// The offset of each entry in the sequence of all bytes.
    pub fn starts(&self) -> Vec<u64> {
        let lengths = self.entries.iter().map(|entry| entry.bytes);
        lengths
            .scan(0, |at, bytes| {
                let start = *at;
                *at += bytes;
                Some(start)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: Kind, bytes: u64) -> Entry {
        Entry {
            path: path.to_owned(),
            kind,
            bytes,
            mode: 0o644,
            modified_ns: 0,
        }
    }

    #[test]
    fn only_plain_paths_below_a_folder_are_taken() {
        let of = |path| Manifest::new(vec![entry(path, Kind::File, 1)]);
        for path in ["a", "a/b.txt", "..a/b", "a b/c", "ü"] {
            assert!(of(path).is_ok(), "{path}");
        }
        for path in [
            "", "/a", "../a", "a/../b", "a//b", "./a", "a/.", "a/", "a\0b",
        ] {
            assert!(of(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_list_that_no_disk_can_hold_is_refused() {
        let refused = |entries| Manifest::new(entries).unwrap_err();
        assert!(refused(vec![]).contains("nothing"));
        let twice = refused(vec![entry("a", Kind::File, 1), entry("a", Kind::Folder, 0)]);
        assert!(twice.contains("twice"), "{twice}");
        let inside = refused(vec![
            entry("a", Kind::File, 1),
            entry("a/b/c", Kind::File, 1),
        ]);
        assert!(inside.contains("lies in it"), "{inside}");
        let long = refused(vec![
            entry("a", Kind::File, u64::MAX),
            entry("b", Kind::File, 1),
        ]);
        assert!(long.contains("16 EiB"), "{long}");
        assert!(refused(vec![entry("a", Kind::Folder, 1)]).contains("0 would be"));
        let deep = refused(vec![entry(&"a/".repeat(1_999), Kind::Folder, 0)]);
        assert!(deep.contains("2000 levels deep"), "{deep}");
    }

    #[test]
    fn entries_begin_where_the_ones_before_end() {
        let files = vec![
            entry("a", Kind::File, 3),
            entry("d", Kind::Folder, 0),
            entry("b", Kind::File, 5),
        ];
        let manifest = Manifest::new(files).unwrap();
        assert_eq!((manifest.starts(), manifest.total()), (vec![0, 3, 3], 8));
    }
}
