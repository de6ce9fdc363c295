//! What leaves: datagrams of the node, by the underlay.

use std::io;

use airlane_base::Instant;
use airlane_node::{Outlet, Reason, Run, SendError};

use super::Daemon;
use crate::device::says_interface_is_away;
use crate::underlay::Underlay;

impl Daemon {
    /// Sends what the node has to send.
    pub(super) fn transmit(&mut self, now: Instant) {
        self.node.transmit(now, &mut Wire(&self.underlay));
    }
}

/// An underlay as a node sends by it.
struct Wire<'a>(&'a Underlay);

impl Outlet for Wire<'_> {
    fn run_max(&self, mark: u8) -> usize {
        self.0.run_max(mark)
    }

    fn send(&mut self, run: &Run<'_>) -> Result<usize, SendError> {
        let _as_it_was = self.0.allow_fragments(run.fragments);
        let sent = self
            .0
            .send((run.to, run.from), run.bytes, run.size, run.mark);
        sent.map_err(|error| of(&error))
    }
}

/// What the kernel has against datagrams.
fn of(error: &io::Error) -> SendError {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::WouldBlock, _) => SendError::Full,
        (io::ErrorKind::Interrupted, _) => SendError::Interrupted,
        (_, Some(libc::EMSGSIZE)) => SendError::TooLong,
        (_, Some(libc::ENOBUFS | libc::ENOMEM)) => SendError::Refused(Reason::NoBuffer),
        _ if says_interface_is_away(error) => SendError::Refused(Reason::InterfaceAway),
        (_, Some(libc::EINVAL | libc::EADDRNOTAVAIL | libc::ENETUNREACH | libc::EHOSTUNREACH)) => {
            SendError::NoSource
        }
        _ => SendError::Refused(Reason::NotSent),
    }
}
