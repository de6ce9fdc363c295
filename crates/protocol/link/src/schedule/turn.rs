//! The interface of a scheduler.

/// A scheduled item and its service.
// `service` is as wide as the rest: after a single byte the item would be moved in unaligned pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<T> {
    /// Number of the service.
    pub service: usize,
    /// Bytes of the item.
    pub len: usize,
    /// The enqueued item.
    pub item: T,
}

/// A frame scheduler over up to 16 services.
///
/// It does not know the link's rate: the port requests a frame when the link is free.
pub trait Schedule<T> {
    /// Adds an item of a service with `len` bytes.
    fn enqueue(&mut self, service: u8, len: usize, item: T);
    /// Accounts for an item of `len` bytes that leaves at once, since nothing waits.
    fn pass(&mut self, service: u8, len: usize);
    /// The next item to send.
    fn dequeue(&mut self) -> Option<Turn<T>>;
    /// Service and length of the item that [`dequeue`](Self::dequeue) would return now.
    fn peek(&self) -> Option<(u8, usize)>;
    /// Whether nothing is queued.
    fn is_empty(&self) -> bool;
    /// Changes a service's share, for later items.
    fn set_rate(&mut self, service: u8, rate: f64);
    /// The link has become idle: nothing waits, and the last frame has been sent.
    fn link_idle(&mut self);
    /// Removes the queued items of a service, the next one first.
    fn remove(&mut self, service: u8, removed: &mut dyn FnMut(T));
}
