//! `airlane send` and `airlane recv`: files over CLAP-final ([`airlane_ship`]), sealed ([`airlane_secure`]), with the
//! sockets, clocks and disks of this machine.
//!
//! Two ends know each other by a *ticket*, 32 bytes that both have and nobody else: the keys of both follow from it.

mod called;
mod digest;
mod entry;
mod inbox;
mod interface;
mod line;
mod receive;
mod send;
mod source;
mod store;
mod ticket;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use airlane_base::Duration;
use airlane_ship::Failure;
use serde::Serialize;
use thiserror::Error;

use crate::control::ControlError;
use crate::device::DeviceError;

pub use receive::{ReceiveOptions, receive};
pub use send::{SendOptions, send};
pub use source::{Skipped, Source};
#[doc(hidden)]
pub use store::Store;
pub use ticket::Ticket;

/// The UDP port at which a receiver listens unless it is told another.
pub const PORT: u16 = 7008;

/// Why files were not shipped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShipError {
    /// What is to be sent, or where it is to go, cannot be.
    #[error("{0}")]
    Input(String),
    /// The operating system refuses a file.
    #[error("{}: {doing}: {source}", airlane_ship::printable(&path.to_string_lossy()))]
    File {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What it says.
        source: io::Error,
    },
    /// The operating system refuses a socket.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The link that was named does not answer, or does not lead there.
    #[error(transparent)]
    Link(#[from] ControlError),
    /// The job failed.
    #[error("{0}{hint}", hint = hint(.0))]
    Job(Failure),
    /// Nobody answered.
    #[error(
        "nobody answers at {0}: is `airlane recv` running there with this ticket, may UDP reach its port, and is this \
         host's clock right?"
    )]
    Nobody(SocketAddr),
    /// Nothing more came from the other end for as long as one was waited for.
    #[error("nothing was heard from the other end for {0}{hint}", hint = hint(&Failure::Silence))]
    Silent(Duration),
    /// Somebody asked for the end.
    #[error("stopped; a later try with the same files goes on from here")]
    Stopped,
    /// Nobody called for as long as one was waited for.
    #[error(
        "nobody has called: does the other end have this ticket and this host, and may UDP reach its port?"
    )]
    Unheard,
    /// Somebody asked for the end before anything came.
    #[error("stopped before anything came")]
    Unused,
}

fn hint(failure: &Failure) -> &'static str {
    match failure {
        Failure::Silence => "; a later try with the same files goes on from here",
        _ => "",
    }
}

impl ShipError {
    fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            path,
            doing,
            source,
        }
    }

    fn waiting(source: impl Into<io::Error>) -> Self {
        Self::Device(DeviceError::new("udp", "wait for datagrams", source))
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShipProgress {
    /// Bytes of files that are there, those of earlier tries included.
    pub done: u64,
    /// Bytes of all files.
    pub total: u64,
    /// What happens now.
    pub doing: &'static str,
}

/// A file that was shipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShippedFile {
    /// Its name, below what the receiver chose.
    pub path: String,
    /// How long it is.
    pub bytes: u64,
    /// Its BLAKE3, as `b3sum` prints it.
    pub blake3: String,
}

/// What was shipped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shipment {
    /// Each file.
    pub files: Vec<ShippedFile>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Those that an earlier try had left.
    pub resumed_bytes: u64,
    /// From the first word to the last, seconds.
    pub took_s: f64,
    /// Bits of files that went over the path in that time, by the time.
    pub goodput_mbps: f64,
    /// Packets of files that were sent, or came.
    pub packets: u64,
    /// Those of them that were sent again, or came twice.
    pub again: u64,
    /// The link of this machine whose interface said how fast to send; none where that was measured.
    pub link: Option<String>,
}

impl Shipment {
    fn new(
        files: Vec<ShippedFile>,
        resumed_bytes: u64,
        took: Duration,
        packets: (u64, u64),
    ) -> Self {
        let bytes = files.iter().map(|file| file.bytes).sum::<u64>();
        let took_s = took.as_secs_f64();
        let carried = bytes.saturating_sub(resumed_bytes) as f64 * 8.0;
        Self {
            files,
            bytes,
            resumed_bytes,
            took_s,
            goodput_mbps: carried / took_s.max(1e-9) / 1e6,
            packets: packets.0,
            again: packets.1,
            link: None,
        }
    }
}

/// What those who watch are told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ShipEvent {
    /// A receiver listens there.
    Listening(SocketAddr),
    /// Something to know that ends nothing.
    Note(String),
    /// So far it is.
    Progress(ShipProgress),
    /// It is there.
    Done(Shipment),
}

/// Whoever watches.
pub type Watch<'a> = &'a mut dyn FnMut(ShipEvent);
