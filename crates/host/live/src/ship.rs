//! `airlane send` and `airlane recv`: file transfer over CLAP-final ([`airlane_ship`]), encrypted
//! ([`airlane_secure`]), with the sockets, clocks and disks of this machine.
//!
//! Two ends share a *ticket*, 32 secret bytes from which the keys of both are derived.

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

/// Default UDP port of a receiver.
pub const PORT: u16 = 7008;

/// Why a transfer failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShipError {
    /// The files or the destination are unusable.
    #[error("{0}")]
    Input(String),
    /// An operation on a file failed.
    #[error("cannot {doing} {}: {source}", airlane_ship::printable(&path.to_string_lossy()))]
    File {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// An operation on a socket failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The named link does not answer, or does not lead to the destination.
    #[error(transparent)]
    Link(#[from] ControlError),
    /// The job failed.
    #[error("{0}{hint}", hint = hint(.0))]
    Job(Failure),
    /// No receiver answered.
    #[error("nobody answers at {at}: {}", unanswered(.unsent.as_deref()))]
    Nobody {
        /// The address that was called last.
        at: SocketAddr,
        /// Why this machine did not let the last datagram out; `None` if it was sent.
        unsent: Option<String>,
    },
    /// Nothing more was received from the other end within the time limit.
    #[error("nothing was heard from the other end for {timeout}{}{hint}", cause(.unsent.as_deref()),
        hint = hint(&Failure::Silence))]
    Silent {
        /// The time limit.
        timeout: Duration,
        /// Why this machine did not let the last datagram out; `None` if it was sent.
        unsent: Option<String>,
    },
    /// The user stopped the transfer.
    #[error("stopped; a later try with the same files goes on from here")]
    Stopped,
    /// No sender called within the time limit.
    #[error(
        "nobody has called: does the other end have this ticket and this host, and may UDP reach its port?"
    )]
    Unheard,
    /// The user stopped the receiver before anything arrived.
    #[error("stopped before anything came")]
    Unused,
}

fn unanswered(unsent: Option<&str>) -> String {
    match unsent {
        Some(why) => format!("no datagram leaves this machine: {why}"),
        None => "is `airlane recv` running there with this ticket, may UDP reach its port, and is this host's clock \
                 right?"
            .to_owned(),
    }
}

fn cause(unsent: Option<&str>) -> String {
    unsent.map_or_else(String::new, |why| {
        format!("; no datagram leaves this machine: {why}")
    })
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

/// Progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShipProgress {
    /// Bytes of files present, those of earlier attempts included.
    pub done: u64,
    /// Bytes of all files.
    pub total: u64,
    /// The present step.
    pub doing: &'static str,
}

/// A transferred file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShippedFile {
    /// Its path below the receiver's directory.
    pub path: String,
    /// Length.
    pub bytes: u64,
    /// BLAKE3 hash, as `b3sum` prints it.
    pub blake3: String,
}

/// A completed transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shipment {
    /// Each file.
    pub files: Vec<ShippedFile>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes that an earlier attempt had transferred.
    pub resumed_bytes: u64,
    /// Duration, seconds.
    pub took_s: f64,
    /// Bits of files transferred in that time, Mbit/s.
    pub goodput_mbps: f64,
    /// Data packets sent, or received.
    pub packets: u64,
    /// Of these, packets sent again, or received twice.
    pub again: u64,
    /// The link whose interface reported the rate to send at; `None` where the rate was estimated.
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

/// Events for an observer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ShipEvent {
    /// A receiver listens at this address.
    Listening(SocketAddr),
    /// A note that does not end the job.
    Note(String),
    /// Progress of the job.
    Progress(ShipProgress),
    /// The transfer is complete.
    Done(Shipment),
}

/// An observer.
pub type Watch<'a> = &'a mut dyn FnMut(ShipEvent);
