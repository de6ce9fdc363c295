//! Drops privileges that the program no longer needs (capabilities(7)).
//!
//! A node needs several at the start, for its interface, sockets and priority. Afterwards it keeps only
//! `CAP_NET_ADMIN`, in the thread of the loop: a reload changes routes, and the MTU follows the path.
//! Capabilities belong to threads, so each other thread drops all of its own when it starts. The user
//! identifier belongs to the whole process, so it changes before there are other threads. If the new user may
//! not read a file, the start fails, and not the first reload.

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, lchown};
use std::path::Path;

use nix::unistd::{Gid, Uid, User, initgroups, setresgid, setresuid};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::clock;

/// Capabilities for the start.
const TO_BEGIN: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE);
/// Capabilities for the running node.
const TO_GO_ON: CapabilitySet = CapabilitySet::NET_ADMIN;

/// The user that the program becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    name: CString,
    uid: Uid,
    gid: Gid,
}

/// Why privileges could not be dropped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// There is no such user.
    #[error("there is no user \"{name}\"; `useradd --system {name}` makes one")]
    NoSuchUser {
        /// The name.
        name: String,
    },
    /// Only root can become another user.
    #[error("only root can become another user, \"{name}\"; start it as root, or leave --user out")]
    NotRoot {
        /// The name.
        name: String,
    },
    /// The system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> PrivilegeError {
    move |source| PrivilegeError::System { what, source }
}

impl Account {
    /// Looks up a user that the program can become.
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

    /// Creates the directory for sockets, owned by this user, unless it exists.
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

    /// Changes the process to this user, with the capabilities for the start. There must be no other threads
    /// yet, because they would lose their capabilities.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn assume(&self) -> Result<(), PrivilegeError> {
        if self.uid == Uid::effective() {
            return Ok(());
        }
        let become_it = || {
            // Only root may do this.
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

/// Drops all capabilities of the calling thread, the loop, but `CAP_NET_ADMIN`, once everything is open, and
/// makes the process's memory inaccessible to debuggers and core dumps.
///
/// # Errors
/// If the system refuses; the program should end then.
pub fn keep_what_a_node_needs() -> Result<(), PrivilegeError> {
    // This needs a capability that is dropped next.
    clock::be_punctual(clock::NICENESS);
    keep(TO_GO_ON).map_err(failed("give up capabilities"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| failed("keep memory out of core files")(error.into()))
}

/// Drops all capabilities of the calling thread. If the system refuses, the thread had none that matter.
pub fn give_up_all() {
    let _refused = keep(CapabilitySet::empty());
}

/// Limits the capabilities of programs that this thread starts. A service's user may lack the capability to
/// do so, but `no_new_privs` has the same effect.
fn bound(kept: CapabilitySet) {
    for capability in (CapabilitySet::all() & !kept).iter() {
        let _missing_right = rustix::thread::remove_capability_from_bounding_set(capability);
    }
}

/// Keeps only these capabilities, in this thread and in programs that it starts.
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
