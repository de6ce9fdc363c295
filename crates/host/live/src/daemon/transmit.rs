//! Output: the node's datagrams, over the underlay.

use std::io;

use airlane_base::Instant;
use airlane_node::{Outlet, Quiet, Reason, Run, SendError};

use super::Daemon;
use crate::device::says_interface_is_away;
use crate::underlay::Underlay;

impl Daemon {
    /// Sends the node's datagrams.
    pub(super) fn transmit(&mut self, now: Instant) {
        let mut wire = Wire {
            underlay: &self.underlay,
            said: &mut self.unsent_said,
            now,
        };
        self.node.transmit(now, &mut wire);
    }
}

/// The underlay as the node's [`Outlet`].
struct Wire<'a> {
    underlay: &'a Underlay,
    /// Limits log entries about unsent datagrams.
    said: &'a mut Quiet,
    now: Instant,
}

impl Outlet for Wire<'_> {
    fn run_max(&self, mark: u8) -> usize {
        self.underlay.run_max(mark)
    }

    fn send(&mut self, run: &Run<'_>) -> Result<usize, SendError> {
        let _as_it_was = self.underlay.allow_fragments(run.fragments);
        let sent = self
            .underlay
            .send((run.to, run.from), run.bytes, run.size, run.mark);
        sent.map_err(|error| {
            let why = of(&error);
            // The node counts the drop but knows no system errors, so the error is logged here. Without a
            // chosen source address the node has no alternative.
            let ends = match why {
                SendError::NoSource => run.from.is_none(),
                SendError::Refused(_) => true,
                _ => false,
            };
            if ends && self.said.speak(self.now, || 0).is_some() {
                let (Ok(by) | Err(by)) = self.underlay.way_out(run.to);
                tracing::warn!(to = %run.to, by, %error, "a datagram did not leave");
            }
            why
        })
    }
}

/// Classifies the kernel's error.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::underlay::Udp;

    #[test]
    fn send_errors_are_logged_once_a_minute_with_their_cause() {
        let bound = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let underlay = Underlay::Udp(bound);
        let mut said = Quiet::NEW;
        let mut send = |seconds, from| {
            let now = Instant::ORIGIN + airlane_base::Duration::from_secs(seconds);
            let mut wire = Wire {
                underlay: &underlay,
                said: &mut said,
                now,
            };
            // No datagram can be sent to port 0.
            let run = Run {
                to: "127.0.0.1:0".parse().unwrap(),
                from,
                bytes: b"?",
                size: 1,
                mark: 0,
                fragments: false,
            };
            assert_eq!(wire.send(&run), Err(SendError::NoSource));
            // `Quiet` now suppresses an entry if one has just been logged.
            said.speak(now, || 0).is_none()
        };
        assert!(
            !send(0, "127.0.0.1".parse().ok()),
            "the node tries on without the address"
        );
        let mut spoke = |seconds| send(seconds, None);
        assert!(spoke(100), "the first");
        assert!(spoke(130));
    }
}
