//! The directory for received files. Each path is resolved beneath its handle and without following links, so
//! that no file is written elsewhere, whatever the list contains and whatever another user creates meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, flock,
    fstat, fstatvfs, linkat, mkdirat, openat2, renameat, renameat_with, statat, syncfs, unlinkat,
};
use rustix::io::Errno;

use super::ShipError;

/// A directory, by its handle.
pub(super) struct Inbox {
    handle: OwnedFd,
    path: PathBuf,
}

impl Inbox {
    /// Opens the directory at a path, which may itself be a link.
    pub(super) fn open(path: &Path) -> Result<Self, ShipError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let handle = opened.map_err(|error| ShipError::file(path, "open")(error.into()))?;
        Ok(Self {
            handle,
            path: path.to_owned(),
        })
    }

    /// Its path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn below(&self, path: &str, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(
            &self.handle,
            path,
            flags | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            mode,
            resolve,
        )
    }

    /// Opens a subdirectory.
    pub(super) fn folder(&self, path: &str) -> io::Result<Self> {
        let path = if path.is_empty() { "." } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(Self {
            handle: self.below(path, flags, Mode::empty())?,
            path: self.path.join(path),
        })
    }

    /// Opens a file for reading and writing; a new file is accessible only to its owner.
    pub(super) fn file(&self, path: &str, make: bool) -> io::Result<File> {
        let (flags, mode) = match make {
            true => (OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR),
            false => (OFlags::RDWR, Mode::empty()),
        };
        Ok(File::from(self.below(path, flags, mode)?))
    }

    /// Opens a file for reading.
    pub(super) fn reading(&self, path: &str) -> io::Result<File> {
        Ok(File::from(self.below(
            path,
            OFlags::RDONLY,
            Mode::empty(),
        )?))
    }

    /// Metadata of a path; `None` if nothing, or no directory for it, exists.
    pub(super) fn look(&self, path: &str) -> io::Result<Option<Stat>> {
        let (above, name) = split(path);
        let found = self
            .folder(above)
            .and_then(|above| Ok(statat(&above.handle, name, AtFlags::SYMLINK_NOFOLLOW)?));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a directory and its parents. Returns whether it was new. The system's umask applies.
    pub(super) fn make_folder(&self, path: &str, mode: u32) -> io::Result<()> {
        let (above, name) = split(path);
        if name.is_empty() {
            return Ok(());
        }
        let above = match self.folder(above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folder(above, 0o777)?;
                self.folder(above)?
            }
            found => found?,
        };
        // The owner must be able to create files in it, whatever its final mode.
        match mkdirat(&above.handle, name, Mode::from_raw_mode(mode | 0o700)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => self.folder(path).map(drop),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a file of this directory to a path in another one. Without `replace` it fails if the path exists.
    pub(super) fn place(&self, name: &str, to: &Self, path: &str, replace: bool) -> io::Result<()> {
        let (above, last) = split(path);
        to.make_folder(above, 0o777)?;
        let above = to.folder(above)?;
        if replace {
            return Ok(renameat(&self.handle, name, &above.handle, last)?);
        }
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(&self.handle, name, &above.handle, last, flags) {
            // Not every file system supports this flag. A hard link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(&self.handle, name, &above.handle, last, AtFlags::empty())?;
                self.remove(name)
            }
            placed => Ok(placed?),
        }
    }

    /// Reads a small file.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut self.reading(name).ok()?, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Replaces a small file atomically.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        const NEW: &str = "new";
        let mut file = self.file(NEW, true)?;
        file.set_len(0)?;
        io::Write::write_all(&mut file, bytes)?;
        Ok(renameat(&self.handle, NEW, &self.handle, name)?)
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Removes a subdirectory. Returns whether it was empty.
    pub(super) fn remove_folder(&self, name: &str) -> io::Result<bool> {
        match unlinkat(&self.handle, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Its files with their metadata.
    pub(super) fn files(&self) -> io::Result<Vec<(String, Stat)>> {
        let mut all = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let found = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                all.push((name.to_owned(), found));
            }
        }
        Ok(all)
    }

    /// Free space, bytes.
    pub(super) fn room(&self) -> io::Result<u64> {
        let facts = fstatvfs(&self.handle)?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    /// Waits until everything is written to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.handle)?)
    }

    /// The umask of this process, from the mode of a new directory.
    pub(super) fn umask(&self) -> io::Result<u32> {
        const PROBE: &str = "umask";
        self.remove_folder(PROBE).ok();
        mkdirat(&self.handle, PROBE, Mode::from_raw_mode(0o777))?;
        let found = statat(&self.handle, PROBE, AtFlags::SYMLINK_NOFOLLOW)?;
        self.remove_folder(PROBE)?;
        Ok(!found.st_mode & 0o777)
    }

    /// Opens a subdirectory that only this user may access and no other process uses: the first free one of
    /// `name`, `name-2` and so on. Returns it with its name.
    pub(super) fn private(&self, name: &str) -> Result<(Self, String), ShipError> {
        const MOST: u32 = 16;
        for number in 1..=MOST {
            let name = match number {
                1 => name.to_owned(),
                _ => format!("{name}-{number}"),
            };
            let path = self.path.join(&name);
            // Retry if it was removed between creation and opening.
            for _ in 0..MOST {
                match mkdirat(&self.handle, &*name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(ShipError::file(&path, "make")(error.into())),
                }
                let folder = match self.folder(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    folder => folder.map_err(ShipError::file(&path, "open"))?,
                };
                let refuse = |error: Errno| ShipError::file(&path, "find")(error.into());
                let facts = fstat(&folder.handle).map_err(refuse)?;
                let is_mine = facts.st_uid == rustix::process::geteuid().as_raw();
                if !is_mine || facts.st_mode & 0o077 != 0 {
                    return Err(ShipError::Input(format!(
                        "{}: it holds files while they come, and others may write there (owner {}, mode {:03o}); \
                         remove it, or receive into a folder of your own",
                        path.display(),
                        facts.st_uid,
                        facts.st_mode & 0o777,
                    )));
                }
                if flock(&folder.handle, FlockOperation::NonBlockingLockExclusive).is_err() {
                    break;
                }
                let named = statat(&self.handle, &*name, AtFlags::SYMLINK_NOFOLLOW);
                if named.is_ok_and(|named| named.st_ino == facts.st_ino) {
                    return Ok((folder, name));
                }
            }
        }
        Err(ShipError::Input(format!(
            "{}: {MOST} receivers are at work in it; receive into another folder",
            self.path.display()
        )))
    }
}

/// Splits a path into its directory and name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether this is a directory.
pub(super) fn is_folder(facts: &Stat) -> bool {
    FileType::from_raw_mode(facts.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn nothing_leaves_the_folder_through_links_or_names() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("link")).unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let inbox = Inbox::open(inside.path()).unwrap();
        assert!(inbox.make_folder("link/new", 0o777).is_err());
        assert!(inbox.make_folder("../new", 0o777).is_err());
        assert!(inbox.file("link/secret", false).is_err());
        assert!(inbox.look("link/secret").is_err());
        let (work, _) = inbox.private(".parts").unwrap();
        drop(work.file("a", true).unwrap());
        assert!(work.place("a", &inbox, "link/a", true).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn existing_files_are_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Inbox::open(folder.path()).unwrap();
        let (work, _) = inbox.private(".parts").unwrap();
        fs::write(folder.path().join("a"), "mine").unwrap();
        work.write("part", b"theirs").unwrap();
        let error = work.place("part", &inbox, "a", false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(work.read("part").unwrap(), b"theirs");
        work.place("part", &inbox, "d/e/a", false).unwrap();
        work.write("part", b"theirs").unwrap();
        work.place("part", &inbox, "a", true).unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"theirs");
    }

    /// A handle of this kind names a file system without leave to sync it, which the system alone refuses.
    #[test]
    fn the_system_is_asked_to_sync() {
        let folder = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inbox = Inbox {
            handle: rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap(),
            path: folder.path().to_owned(),
        };
        let error = inbox.sync().unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::BADF));
        Inbox::open(folder.path()).unwrap().sync().unwrap();
    }

    #[test]
    fn a_private_folder_is_locked_and_another_process_gets_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Inbox::open(folder.path()).unwrap();
        let first = inbox.private(".parts").unwrap();
        assert_eq!(inbox.private(".parts").unwrap().1, ".parts-2");
        drop(first);
        assert_eq!(inbox.private(".parts").unwrap().1, ".parts");
        let path = folder.path().join(".parts");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = inbox.private(".parts").err().unwrap().to_string();
        assert!(refused.contains("mode 777"), "{refused}");
    }
}
