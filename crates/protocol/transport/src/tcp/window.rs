//! What a sender has sent, and how much of it is acknowledged: the send sequence space of RFC 9293, section 3.3.1, in
//! segments.
//!
//! Invariant: `una <= nxt <= max <= segments`, and `max <= edge`.

use super::messages::Messages;

/// The send window of one connection.
#[derive(Clone, Debug)]
pub(super) struct SendWindow {
    pub(super) messages: Messages,
    /// Segments of everything that was written, and the FIN.
    segments: u64,
    /// Whether the last of these is the FIN, which has no bytes.
    closed: bool,
    /// One more than the highest segment that the peer has room for. It never decreases (RFC 9293, section 3.8.6: a
    /// window does not shrink), so an overtaken acknowledgment does not reduce it.
    edge: u64,
    /// The largest window that an acknowledgment may advertise: the sender tracks no more.
    limit: u32,
    /// Oldest segment not acknowledged.
    pub(super) una: u64,
    /// Next segment to send; a timeout may take it back to `una`.
    pub(super) nxt: u64,
    /// One more than the highest segment ever sent.
    pub(super) max: u64,
}

impl SendWindow {
    /// The peer's whole window is `advertised`; `first` is assumed until the peer advertises one.
    pub(super) fn new(segment: u32, advertised: u32, first: u32) -> Self {
        Self {
            messages: Messages::new(segment),
            segments: 0,
            closed: false,
            edge: u64::from(first.min(advertised)),
            limit: advertised,
            una: 0,
            nxt: 0,
            max: 0,
        }
    }

    /// More to send, starting a new segment. Nothing follows the FIN.
    pub(super) fn write(&mut self, bytes: u64) {
        if !self.closed {
            self.messages.append(bytes, self.una);
            self.segments = self.messages.segments();
        }
    }

    /// Appends the FIN, a segment of its own.
    pub(super) fn close(&mut self) {
        self.segments += u64::from(!self.closed);
        self.closed = true;
    }

    /// Whether all that was written is acknowledged.
    #[inline]
    pub(super) const fn is_acknowledged(&self) -> bool {
        self.una + self.closed as u64 >= self.segments
    }

    /// Segments of everything that was written, and the FIN.
    #[inline]
    pub(super) const fn segments(&self) -> u64 {
        self.segments
    }

    /// Segments sent and not acknowledged.
    #[inline]
    pub(super) const fn flight_size(&self) -> u64 {
        self.max - self.una
    }

    /// The peer's advertised window, segments from the oldest that is not acknowledged.
    #[inline]
    pub(super) const fn advertised(&self) -> u64 {
        self.edge - self.una
    }

    /// An acknowledgment of `ack` advertises `window` segments from there on; true if that opens the window.
    #[inline]
    pub(super) fn advertise(&mut self, ack: u64, window: u32) -> bool {
        let before = self.edge;
        self.edge = self.edge.max(ack + u64::from(window.min(self.limit)));
        self.edge > before
    }

    /// Whether only the peer's window prevents sending.
    #[inline]
    pub(super) const fn is_shut(&self) -> bool {
        self.una == self.edge && self.max < self.segments
    }

    /// Whether the FIN has been sent, and whether it has been acknowledged.
    pub(super) const fn end(&self) -> (bool, bool) {
        let is_last = self.closed && self.max == self.segments;
        (is_last, is_last && self.una == self.segments)
    }

    /// Whether only the FIN is left to send.
    #[inline]
    pub(super) const fn has_only_its_end(&self) -> bool {
        self.closed && self.nxt + 1 == self.segments
    }

    /// Everything below `ack`, which lies between `una` and `max`, has arrived.
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: u64) {
        self.una = ack;
        self.nxt = self.nxt.max(ack);
    }

    /// Everything that is not acknowledged will be sent again.
    pub(super) const fn go_back(&mut self) {
        self.nxt = self.una;
    }

    /// Whether everything that was written has been sent, so that the application limits the sender, not a window.
    pub(super) const fn is_written_out(&self) -> bool {
        self.nxt >= self.segments
    }

    /// Whether at least `usable` segments are in flight.
    #[inline]
    pub(super) const fn is_full(&self, usable: u64) -> bool {
        self.nxt - self.una >= usable
    }

    /// The next segment in order, if `usable` segments may be in flight.
    #[inline]
    pub(super) fn take_next(&mut self, usable: u64) -> Option<u64> {
        if self.is_written_out() || self.is_full(usable) {
            return None;
        }
        let seq = self.nxt;
        self.nxt += 1;
        Some(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_is_not_the_end_of_the_written_data() {
        let mut window = SendWindow::new(1_000, 4, 0);
        window.write(6_000);
        let left = |window: &mut SendWindow| std::iter::from_fn(|| window.take_next(4)).count();
        assert_eq!((left(&mut window), window.is_written_out()), (4, false));
        window.acknowledge(3);
        assert_eq!((left(&mut window), window.is_written_out()), (2, true));
    }
}
