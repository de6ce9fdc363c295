//! The files to send.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use airlane_ship::{Entry, Kind, Manifest};

use super::ShipError;

/// Bytes to read ahead.
const AHEAD: usize = 256 << 10;

/// An entry of a directory that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

/// Files and directories of this machine.
#[derive(Debug)]
pub struct Source {
    manifest: Manifest,
    starts: Vec<u64>,
    paths: Vec<PathBuf>,
    skipped: Vec<Skipped>,
    /// The file that was read last.
    open: Option<(usize, File)>,
    /// Bytes read ahead, from a position of the stream on.
    ahead: Vec<u8>,
    ahead_at: u64,
}

impl Source {
    /// Lists these paths: files, and directories with their contents.
    ///
    /// # Errors
    /// If a path does not exist, a name cannot be sent, or two entries have the same name.
    pub fn new(paths: &[PathBuf]) -> Result<Self, ShipError> {
        let mut list = List::default();
        for path in paths {
            let whole = fs::canonicalize(path).map_err(ShipError::file(path, "find"))?;
            let name = whole.file_name().ok_or_else(|| {
                ShipError::Input(format!(
                    "{}: a folder without a name cannot be sent; name what is in it",
                    path.display()
                ))
            })?;
            list.add(path, Path::new(name))?;
        }
        let List {
            entries,
            paths,
            skipped,
        } = list;
        let manifest = Manifest::new(entries).map_err(ShipError::Input)?;
        Ok(Self {
            starts: manifest.starts(),
            manifest,
            paths,
            skipped,
            open: None,
            ahead: Vec::new(),
            ahead_at: 0,
        })
    }

    /// The list of files.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Entries that are not sent.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Reads bytes of the stream for a packet.
    pub(super) fn fill(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), ShipError> {
        let end = self.ahead_at + self.ahead.len() as u64;
        let inside = at >= self.ahead_at && at + bytes.len() as u64 <= end;
        if !inside {
            // Reading that continues the last piece is a first transmission; anything else is a repair.
            if at < self.ahead_at || at > end {
                return self.read(at, bytes);
            }
            let len = (self.manifest.total() - at).min(AHEAD as u64) as usize;
            let mut ahead = std::mem::take(&mut self.ahead);
            ahead.resize(len, 0);
            self.read(at, &mut ahead)?;
            (self.ahead, self.ahead_at) = (ahead, at);
        }
        let from = (at - self.ahead_at) as usize;
        bytes.copy_from_slice(&self.ahead[from..from + bytes.len()]);
        Ok(())
    }

    /// Reads bytes of the stream.
    pub(super) fn read(&mut self, mut at: u64, mut bytes: &mut [u8]) -> Result<(), ShipError> {
        while !bytes.is_empty() {
            let place = self.starts.partition_point(|start| *start <= at) - 1;
            let inside = at - self.starts[place];
            let left = self.manifest.entries()[place].bytes - inside;
            let len = left.min(bytes.len() as u64) as usize;
            let (now, later) = bytes.split_at_mut(len);
            let path = &self.paths[place];
            if self.open.as_ref().is_none_or(|(open, _)| *open != place) {
                self.open = Some((
                    place,
                    File::open(path).map_err(ShipError::file(path, "open"))?,
                ));
            }
            if let Some((_, file)) = &self.open {
                let read = file
                    .read_exact_at(now, inside)
                    .map_err(|error| match error.kind() {
                        io::ErrorKind::UnexpectedEof => io::Error::new(
                            error.kind(),
                            "it has become shorter: it was changed meanwhile",
                        ),
                        _ => error,
                    });
                read.map_err(ShipError::file(path, "read"))?;
            }
            (at, bytes) = (at + len as u64, later);
        }
        Ok(())
    }
}

#[derive(Default)]
struct List {
    entries: Vec<Entry>,
    paths: Vec<PathBuf>,
    skipped: Vec<Skipped>,
}

impl List {
    fn skip(&mut self, path: &Path, why: impl ToString) {
        let (path, why) = (path.to_owned(), why.to_string());
        self.skipped.push(Skipped { path, why });
    }

    fn add(&mut self, path: &Path, name: &Path) -> Result<(), ShipError> {
        // Links are followed for named paths, but not inside directories.
        let is_named = name.components().count() == 1;
        let facts = match is_named {
            true => fs::metadata(path),
            false => fs::symlink_metadata(path),
        };
        let facts = facts.map_err(ShipError::file(path, "find"))?;
        if !facts.is_file() && !facts.is_dir() {
            let kind = match facts.file_type() {
                kind if kind.is_symlink() => "a symbolic link",
                kind if kind.is_fifo() => "a FIFO",
                kind if kind.is_socket() => "a socket",
                _ => "a device",
            };
            if is_named {
                let path = path.display();
                return Err(ShipError::Input(format!("{path}: {kind} cannot be sent")));
            }
            self.skip(path, kind);
            return Ok(());
        }
        // A named path must be readable; an unreadable entry of a directory is skipped.
        let opened = match facts.is_dir() {
            true => fs::read_dir(path).map(|_| ()),
            false => File::open(path).map(|_| ()),
        };
        match opened {
            Err(error) if is_named => return Err(ShipError::file(path, "open")(error)),
            Err(error) => {
                self.skip(path, error);
                return Ok(());
            }
            Ok(()) => {}
        }
        let Some(text) = name.to_str() else {
            const WHY: &str = "its name is no UTF-8 and cannot be sent; rename it";
            if is_named {
                return Err(ShipError::Input(format!("{}: {WHY}", path.display())));
            }
            self.skip(path, WHY);
            return Ok(());
        };
        let kind = if facts.is_dir() {
            Kind::Folder
        } else {
            Kind::File
        };
        self.entries.push(Entry {
            path: text.to_owned(),
            kind,
            bytes: if kind == Kind::File { facts.len() } else { 0 },
            mode: facts.mode() & 0o777,
            modified_ns: nanoseconds(facts.mtime(), facts.mtime_nsec() as u64),
        });
        self.paths.push(path.to_owned());
        if kind == Kind::Folder {
            let inside = fs::read_dir(path).map_err(ShipError::file(path, "list"))?;
            let inside: Result<Vec<_>, _> = inside
                .map(|entry| entry.map(|entry| entry.file_name()))
                .collect();
            let mut inside = inside.map_err(ShipError::file(path, "list"))?;
            // The same directory must give the same list, so that a later attempt can resume the job.
            inside.sort();
            for child in inside {
                self.add(&path.join(&child), &name.join(&child))?;
            }
        }
        Ok(())
    }
}

/// A file's time in nanoseconds since 1970, limited to the range from 1970 to 2554.
pub(super) fn nanoseconds(seconds: i64, nanoseconds: u64) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_times_out_of_range_are_clamped() {
        assert_eq!(nanoseconds(1, 7), 1_000_000_007);
        assert_eq!(nanoseconds(20_000_000_000, 999_999_999), u64::MAX);
        assert_eq!(nanoseconds(i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(nanoseconds(-5, 7), 7);
    }

    #[test]
    fn bytes_are_ordered_by_the_names_of_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("b/empty")).unwrap();
        fs::write(root.join("c"), "world").unwrap();
        fs::write(root.join("a"), "hello ").unwrap();
        fs::write(root.join("b/none"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let mut source = Source::new(std::slice::from_ref(&root)).unwrap();
        let names: Vec<_> = source
            .manifest()
            .entries()
            .iter()
            .map(|e| e.path.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "root",
                "root/a",
                "root/b",
                "root/b/empty",
                "root/b/none",
                "root/c"
            ]
        );
        let [skipped] = source.skipped() else {
            panic!("{:?}", source.skipped());
        };
        assert_eq!(
            (&skipped.path, &*skipped.why),
            (&root.join("link"), "a symbolic link")
        );
        let mut bytes = [0; 11];
        source.read(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"hello world");
        let mut piece = [0; 3];
        source.fill(4, &mut piece).unwrap();
        assert_eq!(&piece, b"o w");
        source.fill(0, &mut piece).unwrap();
        assert_eq!(&piece, b"hel");
        fs::write(root.join("c"), "w").unwrap();
        let error = source.read(5, &mut bytes[..4]).unwrap_err().to_string();
        assert!(error.contains("changed meanwhile"), "{error}");
    }

    #[test]
    fn names_without_utf_8_are_skipped_in_folders_and_refused_by_name() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let strange = root.join(std::ffi::OsStr::from_bytes(b"na\xefve"));
        fs::create_dir_all(&strange).unwrap();
        fs::write(strange.join("below"), "not sent").unwrap();
        fs::write(root.join("a"), "sent").unwrap();
        let source = Source::new(std::slice::from_ref(&root)).unwrap();
        let entries = source.manifest().entries();
        let names: Vec<_> = entries.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(names, ["root", "root/a"]);
        let [skipped] = source.skipped() else {
            panic!("{:?}", source.skipped());
        };
        assert_eq!(skipped.path, strange);
        let refused = Source::new(&[strange]).unwrap_err().to_string();
        assert!(refused.contains("no UTF-8"), "{refused}");
    }

    #[test]
    fn unsendable_files_are_skipped_in_folders_and_refused_by_name() {
        use std::os::unix::fs::PermissionsExt as _;
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("shut")).unwrap();
        fs::write(root.join("a"), "sent").unwrap();
        fs::write(root.join("secret"), "not sent").unwrap();
        let socket = root.join("socket");
        let _listens = UnixListener::bind(&socket).unwrap();
        for shut in ["secret", "shut"] {
            fs::set_permissions(root.join(shut), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let source = Source::new(std::slice::from_ref(&root)).unwrap();
        let why: Vec<_> = source
            .skipped()
            .iter()
            .map(|skipped| &*skipped.why)
            .collect();
        // Root can read every file.
        let all = [
            "Permission denied (os error 13)",
            "Permission denied (os error 13)",
            "a socket",
        ];
        assert!(
            why == all || rustix::process::geteuid().is_root() && why == all[2..],
            "{why:?}"
        );
        let refused = Source::new(std::slice::from_ref(&socket))
            .unwrap_err()
            .to_string();
        assert!(refused.ends_with("a socket cannot be sent"), "{refused}");
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn missing_files_are_named() {
        let error = Source::new(&["/nowhere/at/all".into()])
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("cannot find /nowhere/at/all: "),
            "{error}"
        );
        assert!(Source::new(&["/".into()]).is_err());
    }
}
