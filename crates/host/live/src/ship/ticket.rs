//! The shared secret of two ends of a file transfer.

use std::path::Path;
use std::str::FromStr;

use airlane_secure::{KeyError, PresharedKey, PrivateKey};
use zeroize::Zeroizing;

use crate::device::DeviceError;
use crate::security::{KeyFileError, Secret, random, read_secret};

/// 32 secret bytes of two ends, written like a pre-shared key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket(PresharedKey);

impl Ticket {
    /// Generates a ticket.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new() -> Result<Self, DeviceError> {
        let bytes = random();
        let bytes =
            bytes.map_err(|error| DeviceError::new("random numbers", "draw a ticket", error))?;
        Ok(Self(PresharedKey::generate(bytes)))
    }

    /// Reads a ticket from a file, which `airlane keygen --preshared` creates.
    ///
    /// # Errors
    /// If the file cannot be read, others may read it, or it holds no ticket.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        read_secret(path, Secret::Ticket).map(Self)
    }

    /// The text form.
    pub fn to_text(&self) -> Zeroizing<String> {
        self.0.to_text()
    }

    pub(super) const fn preshared(&self) -> &PresharedKey {
        &self.0
    }

    pub(super) fn sender(&self) -> PrivateKey {
        self.key("airlane 2026 ticket: the private key of who sends")
    }

    pub(super) fn receiver(&self) -> PrivateKey {
        self.key("airlane 2026 ticket: the private key of who receives")
    }

    fn key(&self, context: &str) -> PrivateKey {
        PrivateKey::generate(blake3::derive_key(context, self.0.to_text().as_bytes()))
    }
}

impl FromStr for Ticket {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_that_is_copied_gives_the_same_keys_and_another_gives_others() {
        let ticket = Ticket::new().unwrap();
        let copy: Ticket = ticket.to_text().parse().unwrap();
        assert_eq!(ticket.sender().public(), copy.sender().public());
        assert_ne!(ticket.sender().public(), ticket.receiver().public());
        assert_ne!(
            Ticket::new().unwrap().sender().public(),
            ticket.sender().public()
        );
        assert!("short".parse::<Ticket>().is_err());
    }

    #[test]
    fn a_file_that_holds_no_ticket_is_told_how_one_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ticket");
        for contents in [None, Some("no ticket")] {
            if let Some(contents) = contents {
                crate::security::new_preshared(&path).unwrap();
                std::fs::write(&path, contents).unwrap();
            }
            let error = Ticket::read(&path).unwrap_err().to_string();
            assert!(error.contains("ticket"), "{error}");
            assert!(
                error.contains("`airlane keygen --preshared FILE` makes one"),
                "{error}"
            );
        }
    }
}
