//! The order in which the services' frames leave.

mod fifo;
mod scfq;
mod shares;
mod turn;

pub use fifo::Fifo;
pub use scfq::Scfq;
pub(crate) use shares::{LEAST as LEAST_SHARE, Shares};
pub use turn::{Schedule, Turn};

use crate::config::SchedulerConfig;

/// The closed set of schedulers.
#[derive(Clone, Debug)]
pub(crate) enum Scheduler<T> {
    // Boxed because its table of 16 services is much larger than the other scheduler.
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
    fn remove(&mut self, service: u8, removed: &mut dyn FnMut(T)) {
        each!(self, s => s.remove(service, removed));
    }
}
