//! What every scheduler does, and what it gives.

/// Whose turn it was, and what left by it.
// `service` is as wide as the rest: behind a byte the item would be moved in odd pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<T> {
    /// Number of the service.
    pub service: usize,
    /// Bytes of the item.
    pub len: usize,
    /// What was enqueued.
    pub item: T,
}

/// A frame scheduler over up to 16 services.
///
/// It never sees the link's rate: the port asks for a frame when the link is free.
pub trait Schedule<T> {
    /// Adds an item of `len` bytes of a service.
    fn enqueue(&mut self, service: u8, len: usize, item: T);
    /// An item of `len` bytes leaves at once, as nothing waits.
    fn pass(&mut self, service: u8, len: usize);
    /// The next item to send.
    fn dequeue(&mut self) -> Option<Turn<T>>;
    /// Service and length of the item that [`dequeue`](Self::dequeue) would give now.
    fn peek(&self) -> Option<(u8, usize)>;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
    /// Changes a service's share; holds for items that come later.
    fn set_rate(&mut self, service: u8, rate: f64);
    /// The link has fallen idle: nothing waits and the last frame is over.
    fn link_idle(&mut self);
    /// Removes what waits of a service, the next first.
    fn remove(&mut self, service: u8, removed: &mut dyn FnMut(T));
}
