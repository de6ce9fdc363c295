//! Protection of frames as the file configures it, and key files.
//!
//! ```toml
//! security = { private-key = "/etc/airlane/hill-top.key", peer-key = "qzR7…=" }
//! security = { private-key = "/etc/airlane/hill-top.key", peer-key = "qzR7…=", preshared-key = "/etc/airlane/pair.psk" }
//! security = "none"
//! ```
//!
//! A file with a private or pre-shared key holds the key's text and nothing else, and is accessible only to
//! its owner: a file that others may read is refused, as `ssh` does.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use airlane_node::Secrets;
pub use airlane_node::config::{Keys, NoSecurity, Security};
use airlane_secure::{KeyError, PresharedKey, PrivateKey, PublicKey};
use rustix::event::{PollFd, PollFlags, Timespec};
use zeroize::Zeroizing;

use crate::config::{LiveConfig, PeerConfig};

/// Time to wait for a key from a pipe.
const PIPE_PATIENCE: Duration = Duration::from_secs(3);

/// Reads the keys that a file names; `None` with `security = "none"`.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn secrets(config: &LiveConfig) -> Result<Option<Secrets>, KeyFileError> {
    match &config.link.security {
        Some(Security::Keys(keys)) => secrets_of(keys, &config.peers()).map(Some),
        _ => Ok(None),
    }
}

/// Reads our private key, and the pre-shared keys with these peers.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn secrets_of(keys: &Keys, peers: &[PeerConfig]) -> Result<Secrets, KeyFileError> {
    let mut preshared = BTreeMap::new();
    for peer in peers {
        if let Some(path) = &peer.preshared_key {
            preshared.insert(peer.name.clone(), read_preshared(path)?);
        }
    }
    Ok(Secrets {
        private: read_key(&keys.private_key)?,
        preshared,
        fast_aes: has_fast_aes(),
    })
}

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Far more than a key and a newline, bytes.
const LONGEST_FILE: u64 = 4096;

/// What a file of a secret holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// An end's private key.
    Private,
    /// A key that two ends share.
    Preshared,
    /// A ticket of `send` and `recv`.
    Ticket,
}

impl Secret {
    const fn name(self) -> &'static str {
        match self {
            Self::Private => "private key",
            Self::Preshared => "pre-shared key",
            Self::Ticket => "ticket",
        }
    }

    /// How a user gets one.
    const fn made_by(self) -> &'static str {
        match self {
            Self::Private => "`airlane keygen FILE` makes one",
            Self::Preshared => {
                "`airlane keygen --preshared FILE` makes one, of which both ends have a copy"
            }
            Self::Ticket => {
                "`airlane keygen --preshared FILE` makes one, of which both ends have a copy; `airlane recv` without a \
                 ticket prints one for one job"
            }
        }
    }
}

/// Why a private key, a pre-shared key or a ticket could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file does not exist, or may not be accessed.
    #[error("cannot {verb} the {} {}: {source}{}", .secret.name(), .path.display(), hint(*.secret, .path, .source))]
    File {
        /// Read or write.
        verb: &'static str,
        /// What it holds.
        secret: Secret,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others may read the file.
    #[error(
        "others may use the {} {1} (mode {mode:04o}): chmod 600 {1}", .secret.name(), .path.display()
    )]
    Exposed {
        /// What it holds.
        secret: Secret,
        /// Path of the file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file does not hold a key.
    #[error("{} holds no {}: {source}; {}", .path.display(), .secret.name(), .secret.made_by())]
    NotAKey {
        /// What it should hold.
        secret: Secret,
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyError,
    },
}

fn hint(secret: Secret, path: &Path, error: &io::Error) -> String {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match error.kind() {
        io::ErrorKind::NotFound if folder.is_some_and(|folder| !folder.exists()) => {
            "; make its folder first".to_owned()
        }
        io::ErrorKind::NotFound => format!("; {}", secret.made_by()),
        io::ErrorKind::AlreadyExists => match secret {
            Secret::Private => {
                "; it stays as it is, since its peers know it (--public prints its public key)"
            }
            Secret::Preshared | Secret::Ticket => "; it stays as it is, since its peer has a copy",
        }
        .to_owned(),
        io::ErrorKind::PermissionDenied => {
            "; it has to belong to the user that the program runs as: `chown USER FILE`".to_owned()
        }
        _ => String::new(),
    }
}

/// Reads the private key in this file.
///
/// # Errors
/// If there is none, or others may read it.
pub fn read_key(path: &Path) -> Result<PrivateKey, KeyFileError> {
    read_secret(path, Secret::Private)
}

/// Reads the pre-shared key in this file.
///
/// # Errors
/// If there is none, or others may read it.
pub fn read_preshared(path: &Path) -> Result<PresharedKey, KeyFileError> {
    read_secret(path, Secret::Preshared)
}

/// Reads a secret, which only the owner of its file may be able to read.
pub(crate) fn read_secret<K: FromStr<Err = KeyError>>(
    path: &Path,
    secret: Secret,
) -> Result<K, KeyFileError> {
    let failed = |source| KeyFileError::File {
        verb: "read",
        secret,
        path: path.to_owned(),
        source,
    };
    // Opening a pipe without a writer would block for ever and ignore signals.
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(failed)?;
    // Checks the open file, as the name may refer to another one by now.
    let mode = file.metadata().map_err(failed)?.mode() & 0o7777;
    if mode & OTHERS != 0 {
        let path = path.to_owned();
        return Err(KeyFileError::Exposed { secret, path, mode });
    }
    let text = read_soon(&file).map_err(failed)?;
    text.parse().map_err(|source| KeyFileError::NotAKey {
        secret,
        path: path.to_owned(),
        source,
    })
}

/// Reads a file, which may be a pipe with a writer.
fn read_soon(file: &File) -> io::Result<Zeroizing<String>> {
    let until = Instant::now() + PIPE_PATIENCE;
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST_FILE as usize));
    let is_pipe = file.metadata()?.file_type().is_fifo();
    loop {
        if is_pipe {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            if rustix::event::poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout))? == 0 {
                let why = "it is a pipe, and nobody writes to it";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
        let left = LONGEST_FILE.saturating_sub(text.len() as u64);
        match file.take(left).read_to_end(&mut text) {
            Ok(_) => break,
            Err(error) if is_pipe && error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let text = std::str::from_utf8(&text).map_err(io::Error::other)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Generates a private key and writes it to a new file that only the owner can read. Returns the public key.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn new_key(path: &Path) -> Result<PublicKey, KeyFileError> {
    let key = PrivateKey::generate(random_for(path, Secret::Private)?);
    save_key(path, &key)?;
    Ok(key.public())
}

/// Generates a pre-shared key and writes it to a new file that only the owner can read.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn new_preshared(path: &Path) -> Result<(), KeyFileError> {
    let bytes = random_for(path, Secret::Preshared)?;
    save_preshared(path, &PresharedKey::generate(bytes))
}

fn random_for(path: &Path, secret: Secret) -> Result<[u8; 32], KeyFileError> {
    random().map_err(|source| KeyFileError::File {
        verb: "write",
        secret,
        path: path.to_owned(),
        source,
    })
}

/// Writes a private key to a new file that only the owner can read.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn save_key(path: &Path, key: &PrivateKey) -> Result<(), KeyFileError> {
    save_secret(path, Secret::Private, &key.to_text())
}

/// Writes a pre-shared key to a new file that only the owner can read.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn save_preshared(path: &Path, key: &PresharedKey) -> Result<(), KeyFileError> {
    save_secret(path, Secret::Preshared, &key.to_text())
}

fn save_secret(path: &Path, secret: Secret, text: &str) -> Result<(), KeyFileError> {
    let failed = |source| KeyFileError::File {
        verb: "write",
        secret,
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.write_all(b"\n").map_err(failed)?;
    file.sync_all().map_err(failed)
}

/// Whether the processor has instructions for AES and for the carry-less multiplication of GCM.
pub(crate) fn has_fast_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// Random bytes from the system.
///
/// # Errors
/// If it gives none.
pub fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    match got == bytes.len() {
        true => Ok(bytes),
        false => Err(io::Error::other(
            "the random source gave less than asked for",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_new_key_file_is_private_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("end.key");
        let public = new_key(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(read_key(&path).unwrap().public(), public);
        let error = new_key(&path).unwrap_err().to_string();
        assert!(error.contains("it stays as it is"), "{error}");
        assert_eq!(read_key(&path).unwrap().public(), public);
    }

    #[test]
    fn a_key_may_come_through_a_pipe_and_a_pipe_without_one_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, key) = (directory.path().join("pipe"), directory.path().join("key"));
        new_key(&key).unwrap();
        let made = std::process::Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(&pipe)
            .status();
        assert!(made.unwrap().success());
        let begun = Instant::now();
        let error = read_key(&pipe).unwrap_err().to_string();
        assert!(error.contains("nobody writes to it"), "{error}");
        assert!(begun.elapsed() >= PIPE_PATIENCE);
        let (text, to) = (fs::read(&key).unwrap(), pipe.clone());
        let writer = std::thread::spawn(move || {
            let mut to = OpenOptions::new().write(true).open(to).unwrap();
            let (first, last) = text.split_at(20);
            to.write_all(first).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            to.write_all(last).unwrap();
        });
        assert_eq!(
            read_key(&pipe).unwrap().public(),
            read_key(&key).unwrap().public()
        );
        writer.join().unwrap();
    }

    #[test]
    fn missing_exposed_and_invalid_keys_are_refused_with_advice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("end.key");
        let says = |part: &str| {
            let error = read_key(&path).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        says("airlane keygen");
        new_key(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        says("(mode 0640): chmod 600");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "secret").unwrap();
        says("44 characters");
        says("`airlane keygen FILE` makes one");
    }
}
