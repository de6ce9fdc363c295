//! Rights that the program gives up once it has what it needs them for (capabilities(7)).
//!
//! A node needs some to begin: for its interface, its sockets, a priority. From then on it keeps
//! `CAP_NET_ADMIN` alone, in the thread of the loop: a reload changes routes, and the MTU follows the
//! path. Rights belong to threads, so each other thread gives up all of its own when it begins. Who the
//! process is belongs to all threads, so it becomes another user before there are any; what that user may
//! not read then fails at the start, and not at the first reload.

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, lchown};
use std::path::Path;

use nix::unistd::{Gid, Uid, User, initgroups, setresgid, setresuid};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::clock;

/// What a node needs to begin.
const TO_BEGIN: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE);
/// What it needs to go on.
const TO_GO_ON: CapabilitySet = CapabilitySet::NET_ADMIN;

/// Who the program becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    name: CString,
    uid: Uid,
    gid: Gid,
}

/// Why rights could not be given up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// There is nobody of this name.
    #[error("there is no user \"{name}\"; `useradd --system {name}` makes one")]
    NoSuchUser {
        /// The name.
        name: String,
    },
    /// It is for root alone to become somebody else.
    #[error("only root can become another user, \"{name}\"; start it as root, or leave --user out")]
    NotRoot {
        /// The name.
        name: String,
    },
    /// The system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> PrivilegeError {
    move |source| PrivilegeError::System { what, source }
}

impl Account {
    /// The user of this name, whom the program can become.
    ///
    /// # Errors
    /// If there is none, or the program does not run as root.
    pub fn named(name: &str) -> Result<Self, PrivilegeError> {
        let found = User::from_name(name).map_err(|e| failed("look the user up")(e.into()))?;
        let name = name.to_owned();
        let Some(user) = found else {
            return Err(PrivilegeError::NoSuchUser { name });
        };
        if !Uid::effective().is_root() && user.uid != Uid::effective() {
            return Err(PrivilegeError::NotRoot { name });
        }
        let name = CString::new(user.name)
            .map_err(|error| failed("take the user's name")(io::Error::other(error)))?;
        Ok(Self {
            name,
            uid: user.uid,
            gid: user.gid,
        })
    }

    /// Makes the folder of a socket, where there is none, for this user to put sockets in.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn make_folder(&self, folder: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o755).create(folder) {
            Ok(()) => lchown(folder, Some(self.uid.as_raw()), Some(self.gid.as_raw())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The process becomes this user, with the capabilities that a node needs to begin. It must not have
    /// other threads yet, which would lose theirs.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn assume(&self) -> Result<(), PrivilegeError> {
        if self.uid == Uid::effective() {
            return Ok(());
        }
        let become_it = || {
            // Root alone can.
            bound(TO_GO_ON);
            rustix::thread::set_keep_capabilities(true)?;
            initgroups(&self.name, self.gid)?;
            setresgid(self.gid, self.gid, self.gid)?;
            setresuid(self.uid, self.uid, self.uid)?;
            set_capabilities(TO_BEGIN)
        };
        become_it().map_err(failed("become another user"))
    }
}

/// For the thread of the loop, once everything is open: it has `CAP_NET_ADMIN` alone from now on, and what
/// the process has in its memory is for no debugger and no core file.
///
/// # Errors
/// If the system refuses; the program should end then.
pub fn keep_what_a_node_needs() -> Result<(), PrivilegeError> {
    // It takes a right that is given up here.
    clock::be_punctual(clock::NICENESS);
    keep(TO_GO_ON).map_err(failed("give up capabilities"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| failed("keep memory out of core files")(error.into()))
}

/// For a thread that needs no rights. Where the system refuses, it has none worth giving up.
pub fn give_up_all() {
    let _refused = keep(CapabilitySet::empty());
}

/// No program that this thread starts gets others. It takes a right that a service's user has not; that
/// programs get no new rights at all holds all the same.
fn bound(kept: CapabilitySet) {
    for capability in (CapabilitySet::all() & !kept).iter() {
        let _missing_right = rustix::thread::remove_capability_from_bounding_set(capability);
    }
}

/// Keeps no other capabilities than these, neither here nor in programs that this thread starts.
fn keep(kept: CapabilitySet) -> io::Result<()> {
    bound(kept);
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_no_new_privs(true)?;
    set_capabilities(kept)
}

fn set_capabilities(kept: CapabilitySet) -> io::Result<()> {
    let kept = rustix::thread::capabilities(None)?.permitted & kept;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
