//! Whether the machine has been awake, and the only one with its memory, since the keys were made.
//!
//! While it sleeps its memory lies there for whoever has it, so keys go when it resumes: it has slept where
//! `CLOCK_BOOTTIME` is further ahead of `CLOCK_MONOTONIC` than before. A copy of a virtual machine has
//! the keys, too, and would seal other frames under the same numbers: the kernel says that it runs in a
//! copy where the hypervisor has a generation counter (`NEW_VMGENID`, Linux 6.10 and later). Left out: what
//! leaves in the moment before the kernel says so, and copies made without such a counter, which nobody
//! inside can know of.

use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::{Duration, Instant};
use netlink_sys::protocols::NETLINK_KOBJECT_UEVENT;
use netlink_sys::{Socket, SocketAddr};

/// What the two clocks may differ by when read one after the other, and far less than any sleep.
const TOLERANCE: Duration = Duration::from_millis(1);
/// The group of messages from the kernel itself.
const FROM_KERNEL: u32 = 1;
/// Longest message (linux/kobject.h).
const LONGEST: usize = 2048;

/// See the module.
pub(super) struct Lineage {
    /// How long the machine has slept since it started.
    asleep: Duration,
    /// Where the kernel says what happens to devices. None where it does not.
    devices: Option<Socket>,
}

impl std::fmt::Debug for Lineage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asleep = &self.asleep;
        f.debug_struct("Lineage").field("asleep", asleep).finish()
    }
}

impl Lineage {
    /// From now on, by both clocks.
    pub(super) fn new(now: Instant, awake: Instant) -> Self {
        Self {
            asleep: now.saturating_since(awake),
            devices: listen().ok(),
        }
    }

    /// How long the machine has slept since the last call. `awake` was read behind `now`, so that a pause
    /// in between looks like less sleep, and never like more.
    pub(super) fn slept(&mut self, now: Instant, awake: Instant) -> Option<Duration> {
        let asleep = now.saturating_since(awake);
        let more = asleep.saturating_sub(self.asleep);
        self.asleep = self.asleep.max(asleep);
        (more > TOLERANCE).then_some(more)
    }

    /// Readable when [`Lineage::is_copy`] has something to look at.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.devices.as_ref().map(AsFd::as_fd)
    }

    /// Whether the kernel has said that this machine is a copy. What was lost may have said so.
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

/// A message is a list of words, each with a zero behind it.
fn says_copy(message: &[u8]) -> bool {
    let mut words = message.split(|byte| *byte == 0);
    words.any(|word| word == b"NEW_VMGENID=1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_sleep_is_seen_once_and_a_pause_between_two_clocks_never() {
        let start = Instant::ORIGIN + SECOND * 100;
        // It has slept for 60 s before.
        let mut lineage = Lineage::new(start, start - SECOND * 60);
        let mut look = |now: Duration, awake: Duration| {
            lineage.slept(Instant::ORIGIN + now, Instant::ORIGIN + awake)
        };
        assert_eq!(look(SECOND * 110, SECOND * 50), None);
        // This thread did not run for two seconds between the two.
        assert_eq!(look(SECOND * 120, SECOND * 62), None);
        assert_eq!(look(SECOND * 125, SECOND * 65), None);
        assert_eq!(look(SECOND * 430, SECOND * 70), Some(SECOND * 300));
        assert_eq!(look(SECOND * 431, SECOND * 71), None);
    }

    #[test]
    fn only_the_kernel_s_word_for_it_says_that_a_machine_is_a_copy() {
        let message = b"change@/devices/platform/QEMUVGID:00\0ACTION=change\0SUBSYSTEM=platform\0NEW_VMGENID=1\0SEQNUM=7\0";
        assert!(says_copy(message));
        let other = b"change@/devices/NEW_VMGENID=1/x\0ACTION=change\0SEQNUM=8\0";
        assert!(!says_copy(other));
    }
}
