//! Why a job fails.

use thiserror::Error;

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The peer was silent for so long that it is not expected back.
    #[error("the other end was not heard for 64 s")]
    Silence,
    /// The peer does not want the files, or cannot store them.
    #[error("the other end refuses: {0}")]
    Refused(String),
    /// The receiver works with a sender of the same ticket that was started later.
    #[error(
        "the receiver is with a sender of this ticket that was started later: another host, or this one before its \
         clock was set back; each sender needs a ticket and a receiver of its own"
    )]
    Later,
    /// The peer sent something that this version does not understand.
    #[error(
        "the other end said what this version does not understand ({0}); run the same version of airlane at both ends"
    )]
    NotUnderstood(String),
    /// The received files differed from those sent, more than once.
    #[error("{0} arrived damaged twice; does something change it meanwhile?")]
    Damaged(String),
    /// The list of files is too long.
    #[error(
        "the list of files has {0} bytes; at most 32 MiB travel: send an archive of them instead"
    )]
    LongList(usize),
}

/// Text from the peer without control characters, which a terminal would obey, cut to the length of a message.
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
