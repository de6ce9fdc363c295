//! What applications and relays stand on.

use airlane_base::Instant;

/// One end of a transport connection: it takes bytes from its application, brings them to its peer,
/// and gives the peer's bytes to its application, in order and once.
///
/// Bytes are counted and not carried. Counts begin anew with each connection.
pub trait Endpoint {
    /// What it exchanges with its peer.
    type Segment;

    /// The application gives `bytes` more; they begin a new segment. A source that never ends gives
    /// `u64::MAX`, once.
    fn write(&mut self, bytes: u64);

    /// The application has written all: its peer may know, where the protocol says so.
    fn close(&mut self);

    /// In-order bytes for the application since the last call; none if there are none.
    fn read(&mut self) -> Option<u64>;

    /// A segment has arrived from the peer.
    fn handle_segment(&mut self, now: Instant, segment: Self::Segment);

    /// A segment from the peer has come destroyed, and a link knows which it was.
    fn handle_destroyed(&mut self, segment: &Self::Segment);

    /// Time has passed; an early call does nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// The path is known to be down: until [`thaw`](Self::thaw) the endpoint sends no data and keeps
    /// what is left of its timers for them.
    fn freeze(&mut self, now: Instant);

    /// The path is there again.
    fn thaw(&mut self, now: Instant);

    /// The next segment to leave now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Segment>;

    /// When `handle_timeout` is due.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Bytes that the application has given.
    fn written(&self) -> u64;

    /// Bytes of these that the peer has confirmed, counted without gaps.
    fn acknowledged(&self) -> u64;

    /// Bytes that have arrived from the peer in order, whether the application has read them or not.
    fn received(&self) -> u64;

    /// Whether the peer has confirmed all that was written.
    fn is_acknowledged(&self) -> bool;
}
