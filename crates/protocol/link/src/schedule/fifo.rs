//! FIFO: one queue for all services (the comparison of Xylomenos 1999, chapter 8).

use std::collections::VecDeque;

use super::turn::{Schedule, Turn};

/// One queue for all services.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    queue: VecDeque<Turn<T>>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
        }
    }
}

impl<T> Schedule<T> for Fifo<T> {
    fn enqueue(&mut self, service: u8, len: usize, item: T) {
        self.queue.push_back(Turn {
            service: usize::from(service),
            len,
            item,
        });
    }

    fn pass(&mut self, _service: u8, _len: usize) {}

    fn dequeue(&mut self) -> Option<Turn<T>> {
        self.queue.pop_front()
    }
    fn peek(&self) -> Option<(u8, usize)> {
        let turn = self.queue.front()?;
        Some((turn.service as u8, turn.len))
    }
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    fn set_rate(&mut self, _service: u8, _rate: f64) {}
    fn link_idle(&mut self) {}
    fn remove(&mut self, service: u8, removed: &mut dyn FnMut(T)) {
        for turn in std::mem::take(&mut self.queue) {
            if turn.service == usize::from(service) {
                removed(turn.item);
            } else {
                self.queue.push_back(turn);
            }
        }
    }
}
