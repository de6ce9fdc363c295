//! Frames on their way to the underlay, in batches: they are written, or sealed, one behind the
//! other, and each run of one length leaves with one system call, in order.

use std::io;

use airlane_base::Instant;

use super::drops::{Drops, Reason};
use crate::underlay::{SEND_MAX, Underlay};

/// Most datagrams that wait for the next system call.
const BATCH: usize = 256;

/// What the underlay has not taken yet.
#[derive(Debug)]
pub(super) struct Transmit {
    bytes: Box<[u8]>,
    /// Where each datagram ends, in order, without gaps.
    ends: Vec<usize>,
    /// Their traffic class bytes.
    marks: Vec<u8>,
    /// Room that the next datagram may need.
    longest: usize,
    /// The underlay's buffer was full. Nothing more goes in until it has room.
    blocked: bool,
    /// Datagrams may be fragmented until then: some were made before the path became narrower.
    fragments_until: Option<Instant>,
    /// A datagram did not fit the path.
    narrow: bool,
    pub(super) datagrams_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) narrowed: u64,
}

/// How long datagrams of before may be on their way after the path became narrower.
const FRAGMENTS_FOR: airlane_base::Duration = airlane_base::Duration::from_secs(10);

impl Transmit {
    /// For datagrams of up to `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            bytes: vec![0; BATCH * longest.min(2048) + longest].into_boxed_slice(),
            ends: Vec::with_capacity(BATCH),
            marks: Vec::with_capacity(BATCH),
            longest,
            blocked: false,
            fragments_until: None,
            narrow: false,
            datagrams_sent: 0,
            bytes_sent: 0,
            narrowed: 0,
        }
    }

    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether the next datagram may find no room.
    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= BATCH || self.bytes.len() - self.end() < self.longest
    }

    /// Whether a datagram did not fit the path since the last question.
    pub(super) fn path_became_narrow(&mut self) -> bool {
        std::mem::take(&mut self.narrow)
    }

    /// Adds a datagram with this traffic class, which `write` writes and tells the length of.
    ///
    /// # Errors
    /// Those of `write`; nothing is added then.
    pub(super) fn push<E>(
        &mut self,
        mark: u8,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let start = self.end();
        let length = write(&mut self.bytes[start..])?;
        self.ends.push(start + length);
        self.marks.push(mark);
        Ok(())
    }

    /// Where the next datagram begins.
    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// How many datagrams from the one at `first` on can leave together, and where they end: all of
    /// one length and traffic class, the last may be shorter.
    fn run(&self, first: usize, start: usize, most: usize) -> (usize, usize) {
        let size = self.ends[first] - start;
        let (mut count, mut end) = (1, self.ends[first]);
        while let Some(&next) = self.ends.get(first + count) {
            let length = next - end;
            let other = length > size || self.marks[first + count] != self.marks[first];
            if count >= most || other || length == 0 || next - start > SEND_MAX {
                break;
            }
            (count, end) = (count + 1, next);
            if length < size {
                break;
            }
        }
        (count, end)
    }

    /// Gives the underlay what waits, in order. What it does not take and never will is counted.
    pub(super) fn flush(&mut self, now: Instant, underlay: &Underlay, drops: &mut Drops) {
        if self.fragments_until.is_some_and(|until| now >= until) {
            self.fragments_until = None;
            let _best_effort = underlay.allow_fragments(false);
        }
        self.blocked = false;
        let (mut done, mut start) = (0, 0);
        // Lowered for datagrams that the kernel refused together.
        let mut most = usize::MAX;
        while done < self.ends.len() {
            let together = most.min(underlay.run_max(self.marks[done]));
            let (count, end) = self.run(done, start, together);
            let size = self.ends[done] - start;
            let reason = match underlay.send(&self.bytes[start..end], size, self.marks[done]) {
                Ok(()) => {
                    self.datagrams_sent += count as u64;
                    self.bytes_sent += (end - start) as u64;
                    (done, start) = (done + count, end);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // One of them is at fault, or the device cannot do it: one by one tells.
                Err(_) if count > 1 => {
                    most = 1;
                    continue;
                }
                Err(error) => match error.raw_os_error() {
                    // The path has become narrower than the frame. A service that never gives up
                    // would send it for ever, so it travels in fragments, this once.
                    Some(libc::EMSGSIZE) if self.fragments_until.is_none() => {
                        self.narrow = true;
                        self.narrowed += 1;
                        self.fragments_until = Some(now + FRAGMENTS_FOR);
                        if underlay.allow_fragments(true).is_ok() {
                            continue;
                        }
                        Reason::TooBig
                    }
                    Some(libc::EMSGSIZE) => Reason::TooBig,
                    Some(libc::ENOBUFS | libc::ENOMEM) => Reason::NoBuffer,
                    _ => Reason::NotSent,
                },
            };
            drops.count(now, reason);
            (done, start) = (done + 1, end);
        }
        self.forget(done, start);
    }

    /// The first `done` datagrams, which end at `start`, are gone.
    fn forget(&mut self, done: usize, start: usize) {
        if done == self.ends.len() {
            self.ends.clear();
            self.marks.clear();
            return;
        }
        let end = self.end();
        self.bytes.copy_within(start..end, 0);
        self.ends.drain(..done);
        self.marks.drain(..done);
        for end in &mut self.ends {
            *end -= start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(transmit: &mut Transmit, length: usize) {
        let written = transmit.push(0, |room| {
            room[..length].fill(length as u8);
            Ok::<_, ()>(length)
        });
        written.unwrap();
    }

    #[test]
    fn a_run_ends_at_another_length() {
        let mut transmit = Transmit::new(1500);
        for length in [100, 100, 40, 100, 200, 200] {
            push(&mut transmit, length);
        }
        assert_eq!(transmit.run(0, 0, 64), (3, 240));
        assert_eq!(transmit.run(0, 0, 2), (2, 200));
        assert_eq!(transmit.run(3, 240, 64), (1, 340));
        assert_eq!(transmit.run(4, 340, 64), (2, 740));
    }

    #[test]
    fn a_run_ends_at_another_traffic_class() {
        let mut transmit = Transmit::new(1500);
        for mark in [0, 0, 46 << 2, 46 << 2, 46 << 2] {
            transmit.push(mark, |_| Ok::<_, ()>(100)).unwrap();
        }
        assert_eq!(transmit.run(0, 0, 64), (2, 200));
        assert_eq!(transmit.run(2, 200, 64), (3, 500));
        transmit.forget(2, 200);
        assert_eq!(transmit.run(0, 0, 64), (3, 300));
    }

    #[test]
    fn a_run_is_never_longer_than_a_datagram_may_be() {
        let mut transmit = Transmit::new(1500);
        for _ in 0..60 {
            push(&mut transmit, 1400);
        }
        let (count, end) = transmit.run(0, 0, 64);
        assert_eq!((count, end), (46, 46 * 1400));
    }

    #[test]
    fn what_is_not_sent_stays_in_order() {
        let mut transmit = Transmit::new(1500);
        for length in [10, 20, 30] {
            push(&mut transmit, length);
        }
        transmit.forget(1, 10);
        assert_eq!(transmit.ends, [20, 50]);
        assert_eq!(transmit.bytes[..20], [20; 20]);
        assert_eq!(transmit.bytes[20..50], [30; 30]);
        transmit.forget(2, 50);
        assert!(transmit.ends.is_empty());
    }

    #[test]
    fn there_is_room_for_the_longest_until_it_is_full() {
        for longest in [1500, 65_000] {
            let mut transmit = Transmit::new(longest);
            let mut pushed = 0;
            while !transmit.is_full() {
                push(&mut transmit, longest);
                pushed += 1;
            }
            assert!(pushed > 4, "{pushed}");
        }
    }
}
