//! Which service's frame leaves next.

mod fifo;
mod scfq;

pub use fifo::Fifo;
pub use scfq::Scfq;

use crate::config::SchedulerConfig;

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
    /// Removes everything that waits.
    fn clear(&mut self, removed: &mut dyn FnMut(u8, T));
}

/// The closed set of schedulers.
#[derive(Clone, Debug)]
pub(crate) enum Scheduler<T> {
    // Boxed: its table of 16 services is much larger than the other's single queue.
    Scfq(Box<Scfq<T>>),
    Fifo(Fifo<T>),
}

macro_rules! each {
    ($self:expr, $s:ident => $body:expr) => {
        match $self {
            Scheduler::Scfq($s) => $body,
            Scheduler::Fifo($s) => $body,
        }
    };
}

impl<T> Scheduler<T> {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        match config {
            SchedulerConfig::Scfq => Self::Scfq(Box::default()),
            SchedulerConfig::Fifo => Self::Fifo(Fifo::default()),
        }
    }
}

impl<T> Schedule<T> for Scheduler<T> {
    #[inline]
    fn enqueue(&mut self, service: u8, len: usize, item: T) {
        each!(self, s => s.enqueue(service, len, item));
    }
    #[inline]
    fn pass(&mut self, service: u8, len: usize) {
        each!(self, s => s.pass(service, len));
    }
    #[inline]
    fn dequeue(&mut self) -> Option<Turn<T>> {
        each!(self, s => s.dequeue())
    }
    fn peek(&self) -> Option<(u8, usize)> {
        each!(self, s => s.peek())
    }
    #[inline]
    fn is_empty(&self) -> bool {
        each!(self, s => s.is_empty())
    }
    fn set_rate(&mut self, service: u8, rate: f64) {
        each!(self, s => s.set_rate(service, rate));
    }
    fn link_idle(&mut self) {
        each!(self, s => s.link_idle());
    }
    fn clear(&mut self, removed: &mut dyn FnMut(u8, T)) {
        each!(self, s => s.clear(removed));
    }
}
