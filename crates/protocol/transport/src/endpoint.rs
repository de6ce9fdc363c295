//! The interface of a transport connection to applications and relays.

use airlane_base::Instant;

/// One end of a transport connection: it carries its application's bytes to the peer, and delivers the peer's bytes
/// to its application, in order and once.
///
/// Bytes are counted, not carried. The counts start again with each connection.
///
/// A driver that is generic over the protocol can be written against this trait:
///
/// ```
/// use airlane_base::{Duration, Instant};
/// use airlane_transport::tcp::Profile;
/// use airlane_transport::{Endpoint, Tcp, TcpConfig};
///
/// /// Sends everything that may be sent now over a path without delay; returns how many segments that were.
/// fn pump<E: Endpoint>(from: &mut E, to: &mut E, now: Instant) -> usize {
///     std::iter::from_fn(|| from.poll_transmit(now))
///         .map(|segment| to.handle_segment(now, segment))
///         .count()
/// }
///
/// let config = TcpConfig::profile(Profile::Ns2In1999); // no handshake, initial window of one segment
/// let [mut a, mut b] = [(); 2].map(|()| Tcp::new(&config, 1_000, Duration::ZERO));
/// a.write(5_000);
/// assert_eq!(pump(&mut a, &mut b, Instant::ORIGIN), 1);
/// assert_eq!(pump(&mut b, &mut a, Instant::ORIGIN), 1); // its acknowledgment opens the window
/// assert_eq!(pump(&mut a, &mut b, Instant::ORIGIN), 2);
/// assert_eq!(b.read(), Some(3_000));
/// ```
pub trait Endpoint {
    /// The unit that two ends exchange.
    type Segment;

    /// The application writes `bytes` more, which begin a new segment. An endless source writes `u64::MAX`, once.
    fn write(&mut self, bytes: u64);

    /// The application has written everything. The peer is told if the protocol has a way to say so.
    fn close(&mut self);

    /// Bytes that became available to the application, in order, since the last call; none if there are none.
    fn read(&mut self) -> Option<u64>;

    /// A segment has arrived from the peer.
    fn handle_segment(&mut self, now: Instant, segment: Self::Segment);

    /// A link below recognized this segment from the peer, but it was destroyed on the way.
    fn handle_destroyed(&mut self, segment: &Self::Segment);

    /// Advances time. An early call does nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// The path is known to be down: until [`thaw`](Self::thaw) the endpoint sends no data, and its data timers stop
    /// and keep their remaining time.
    fn freeze(&mut self, now: Instant);

    /// The path is up again.
    fn thaw(&mut self, now: Instant);

    /// The next segment to send now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Segment>;

    /// When `handle_timeout` is due.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Bytes that the application has written.
    fn written(&self) -> u64;

    /// Bytes of these that the peer has acknowledged cumulatively.
    fn acknowledged(&self) -> u64;

    /// Bytes received from the peer in order, whether the application has read them or not.
    fn received(&self) -> u64;

    /// Whether the peer has acknowledged everything that was written.
    fn is_acknowledged(&self) -> bool;
}
