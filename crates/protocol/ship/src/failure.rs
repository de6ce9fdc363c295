//! Why a job ends without its files.

use thiserror::Error;

/// Why a job ended without its files.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// Nothing was heard for so long that nobody expects it back.
    #[error("the other end was not heard for 64 s")]
    Silence,
    /// The other end does not want the files, or cannot keep them.
    #[error("the other end refuses: {0}")]
    Refused(String),
    /// The receiver is with a sender of the same ticket that was started later.
    #[error(
        "the receiver is with a sender of this ticket that was started later: another host, or this one before its \
         clock was set back; each sender needs a ticket and a receiver of its own"
    )]
    Later,
    /// It said something that this version does not understand.
    #[error(
        "the other end said what this version does not understand ({0}); run the same version of airlane at both ends"
    )]
    NotUnderstood(String),
    /// The files came otherwise than they were sent, more than once.
    #[error("{0} came otherwise than it was sent, twice; does something change it meanwhile?")]
    Damaged(String),
    /// The list of files is longer than a list may be.
    #[error(
        "the list of files has {0} bytes; at most 32 MiB travel: send an archive of them instead"
    )]
    LongList(usize),
}

/// What another host wrote, without the control characters that a terminal obeys, and not longer than a message.
pub fn printable(text: &str) -> String {
    const MOST: usize = 1_000;
    let plain = |c: char| {
        if c.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    text.chars().take(MOST).map(plain).collect()
}
