//! Detects that the machine was suspended, or is a copy, since the keys were made.
//!
//! While the machine sleeps, anyone with access to it can read its memory, so the keys are replaced when it
//! resumes: it slept if `CLOCK_BOOTTIME` has gained on `CLOCK_MONOTONIC`. A copy of a virtual machine has the
//! same keys, and would seal different frames with the same nonces. The kernel reports a copy if the
//! hypervisor has a generation counter (`NEW_VMGENID`, Linux 6.10 and later). Left out: frames sent in the
//! moment before the report, and copies without such a counter, which nothing inside the machine can detect.

use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::{Duration, Instant};
use netlink_sys::protocols::NETLINK_KOBJECT_UEVENT;
use netlink_sys::{Socket, SocketAddr};

/// Difference of the two clocks when read one after the other; far less than any suspend.
const TOLERANCE: Duration = Duration::from_millis(1);
/// The netlink group of the kernel's own messages.
const FROM_KERNEL: u32 = 1;
/// Longest message (linux/kobject.h).
const LONGEST: usize = 2048;

/// See the module.
pub(super) struct SuspendDetector {
    /// Suspended time since boot.
    asleep: Duration,
    /// The kernel's device events; `None` if unavailable.
    devices: Option<Socket>,
}

impl std::fmt::Debug for SuspendDetector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asleep = &self.asleep;
        f.debug_struct("SuspendDetector")
            .field("asleep", asleep)
            .finish()
    }
}

impl SuspendDetector {
    /// Starts from the present readings of both clocks.
    pub(super) fn new(now: Instant, awake: Instant) -> Self {
        Self {
            asleep: now.saturating_since(awake),
            devices: listen().ok(),
        }
    }

    /// Suspended time since the last call, if any. `awake` must be read after `now`, so that a pause in
    /// between makes the result smaller and never larger.
    pub(super) fn slept(&mut self, now: Instant, awake: Instant) -> Option<Duration> {
        let asleep = now.saturating_since(awake);
        let more = asleep.saturating_sub(self.asleep);
        self.asleep = self.asleep.max(asleep);
        (more > TOLERANCE).then_some(more)
    }

    /// Readable when [`SuspendDetector::is_copy`] has messages to read.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.devices.as_ref().map(AsFd::as_fd)
    }

    /// Whether the kernel has reported that this machine is a copy. Lost messages count as such a report.
    pub(super) fn is_copy(&mut self) -> bool {
        let mut message = Vec::with_capacity(LONGEST);
        let mut copy = false;
        while let Some(devices) = &self.devices {
            message.clear();
            match devices.recv(&mut message, 0) {
                Ok(_) => copy |= says_copy(&message),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => copy = true,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => self.devices = None,
            }
        }
        copy
    }
}

fn listen() -> std::io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_KOBJECT_UEVENT)?;
    socket.bind(&SocketAddr::new(0, FROM_KERNEL))?;
    socket.set_non_blocking(true)?;
    Ok(socket)
}

/// A message is a list of zero-terminated strings.
fn says_copy(message: &[u8]) -> bool {
    let mut words = message.split(|byte| *byte == 0);
    words.any(|word| word == b"NEW_VMGENID=1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_suspend_is_seen_once_and_a_scheduling_pause_never() {
        let start = Instant::ORIGIN + SECOND * 100;
        // It has been suspended for 60 s before.
        let mut suspend = SuspendDetector::new(start, start - SECOND * 60);
        let mut look = |now: Duration, awake: Duration| {
            suspend.slept(Instant::ORIGIN + now, Instant::ORIGIN + awake)
        };
        assert_eq!(look(SECOND * 110, SECOND * 50), None);
        // This thread did not run for two seconds between the two readings.
        assert_eq!(look(SECOND * 120, SECOND * 62), None);
        assert_eq!(look(SECOND * 125, SECOND * 65), None);
        assert_eq!(look(SECOND * 430, SECOND * 70), Some(SECOND * 300));
        assert_eq!(look(SECOND * 431, SECOND * 71), None);
    }

    #[test]
    fn only_the_vm_generation_event_marks_a_cloned_machine() {
        let message = b"change@/devices/platform/QEMUVGID:00\0ACTION=change\0SUBSYSTEM=platform\0NEW_VMGENID=1\0SEQNUM=7\0";
        assert!(says_copy(message));
        let other = b"change@/devices/NEW_VMGENID=1/x\0ACTION=change\0SEQNUM=8\0";
        assert!(!says_copy(other));
    }
}
