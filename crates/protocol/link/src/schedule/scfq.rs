//! Self-clocked fair queueing (section 9.4 of docs/spec/multi-service.md, after Xylomenos 1999, section
//! 6.2.3; Golestani 1994).
//!
//! ```text
//! stamp = L / r_i + max(last_i, V)        V = stamp of the frame in transmission
//! ```
//!
//! Virtual time is the stamp of the frame in transmission, so no reference system has to be simulated. While
//! services i and j stay backlogged, the bytes served satisfy |S_i / r_i - S_j / r_j| <= L_i / r_i + L_j /
//! r_j (XYL-R-2). A heap over the services with frames finds the lowest stamp; ties go to the lower service
//! number (XYL-S-13).
//!
//! The sharers are the services of a port or, in a [`SharedLink`](crate::SharedLink), whole ports.

use std::collections::VecDeque;

use super::turn::{Schedule, Turn};

/// The queue of one service.
#[derive(Clone, Debug)]
struct Queue<T> {
    rate: f64,
    /// The last stamp, and the busy period of the link in which it is valid.
    last: f64,
    period: u64,
    /// Stamp, length and item.
    items: VecDeque<(f64, usize, T)>,
}

/// Self-clocked fair queueing over at most `SERVICES` services, up to 256.
#[derive(Clone, Debug)]
pub struct Scfq<T, const SERVICES: usize = 16> {
    queues: [Queue<T>; SERVICES],
    /// The first `active` entries are a heap of the services with items, by head stamp.
    heap: [u8; SERVICES],
    active: usize,
    virtual_time: f64,
    /// Counts the busy periods of the link.
    period: u64,
}

impl<T, const SERVICES: usize> Default for Scfq<T, SERVICES> {
    fn default() -> Self {
        Self {
            queues: std::array::from_fn(|_| Queue {
                rate: 1.0,
                last: 0.0,
                period: 0,
                items: VecDeque::new(),
            }),
            heap: [0; SERVICES],
            active: 0,
            virtual_time: 0.0,
            period: 0,
        }
    }
}

impl<T, const SERVICES: usize> Scfq<T, SERVICES> {
    /// Length of a service's first item, if it has any.
    pub fn first_of(&self, service: u8) -> Option<usize> {
        let queue = &self.queues[usize::from(service) % SERVICES];
        queue.items.front().map(|item| item.1)
    }

    /// Changes the length of a service's first item to `len` bytes: it and the items after it are stamped as
    /// if it had arrived with that length. Does nothing if there is none.
    pub fn resize_first(&mut self, service: u8, len: usize) {
        let queue = self.queue(service);
        let Some(first) = queue.items.front_mut() else {
            return;
        };
        let more = (len as f64 - first.1 as f64) / queue.rate;
        first.1 = len;
        queue.items.iter_mut().for_each(|item| item.0 += more);
        queue.last += more;
        let active = &self.heap[..self.active];
        if let Some(place) = active.iter().position(|s| *s == service) {
            self.sift_up(place);
            self.sift_down(place);
        }
    }

    /// Adds an item that follows the service's last one without a pause: its stamp counts from that one's,
    /// even if virtual time has advanced meanwhile, as [`Scfq::resize_first`] may cause.
    pub fn follow(&mut self, service: u8, len: usize, item: T) {
        let queue = self.queue(service);
        let stamp = len as f64 / queue.rate + queue.last;
        self.stamp(service, stamp, len, item);
    }

    /// The stamp of an item that arrives now.
    #[inline]
    fn next_stamp(&mut self, service: u8, len: usize) -> f64 {
        let (virtual_time, period) = (self.virtual_time, self.period);
        let queue = self.queue(service);
        if queue.period != period {
            (queue.last, queue.period) = (0.0, period);
        }
        len as f64 / queue.rate + queue.last.max(virtual_time)
    }

    #[inline]
    fn stamp(&mut self, service: u8, stamp: f64, len: usize, item: T) {
        let queue = self.queue(service);
        queue.last = stamp;
        queue.items.push_back((stamp, len, item));
        if queue.items.len() == 1 {
            self.heap[self.active] = service;
            self.active += 1;
            if self.active > 1 {
                self.sift_up(self.active - 1);
            }
        }
    }

    #[inline]
    fn queue(&mut self, service: u8) -> &mut Queue<T> {
        &mut self.queues[usize::from(service) % SERVICES]
    }

    /// Whether the service at heap position `a` precedes that at `b`.
    fn before(&self, a: usize, b: usize) -> bool {
        let key = |place: usize| {
            let service = self.heap[place];
            let head = self.queues[usize::from(service)].items.front();
            (head.map_or(f64::INFINITY, |item| item.0), service)
        };
        let ((stamp_a, service_a), (stamp_b, service_b)) = (key(a), key(b));
        stamp_a < stamp_b || (stamp_a == stamp_b && service_a < service_b)
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.before(place, parent) {
                return;
            }
            self.heap.swap(place, parent);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.active && self.before(child, least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}

impl<T, const SERVICES: usize> Schedule<T> for Scfq<T, SERVICES> {
    #[inline]
    fn enqueue(&mut self, service: u8, len: usize, item: T) {
        let stamp = self.next_stamp(service, len);
        self.stamp(service, stamp, len, item);
    }

    #[inline]
    fn pass(&mut self, service: u8, len: usize) {
        debug_assert!(
            self.active == 0,
            "what leaves at once has nothing in front of it"
        );
        let stamp = self.next_stamp(service, len);
        self.queue(service).last = stamp;
        self.virtual_time = self.virtual_time.max(stamp);
    }

    #[inline]
    fn dequeue(&mut self) -> Option<Turn<T>> {
        if self.active == 0 {
            return None;
        }
        let service = self.heap[0];
        let queue = self.queue(service);
        let (stamp, len, item) = queue.items.pop_front()?;
        let empty = queue.items.is_empty();
        // An item that was shortened may have been stamped below virtual time.
        self.virtual_time = self.virtual_time.max(stamp);
        if empty {
            self.active -= 1;
            self.heap[0] = self.heap[self.active];
        }
        if self.active > 1 {
            self.sift_down(0);
        }
        Some(Turn {
            service: usize::from(service),
            len,
            item,
        })
    }

    fn peek(&self) -> Option<(u8, usize)> {
        let service = *self.heap[..self.active].first()?;
        Some((service, self.first_of(service)?))
    }

    fn is_empty(&self) -> bool {
        self.active == 0
    }

    fn set_rate(&mut self, service: u8, rate: f64) {
        self.queue(service).rate = rate;
    }

    fn link_idle(&mut self) {
        debug_assert!(self.active == 0, "an idle link has nothing to send");
        self.virtual_time = 0.0;
        self.period += 1;
    }

    fn remove(&mut self, service: u8, removed: &mut dyn FnMut(T)) {
        let queue = self.queue(service);
        queue.items.drain(..).for_each(|(_, _, item)| removed(item));
        queue.last = 0.0;
        let active = &self.heap[..self.active];
        if let Some(place) = active.iter().position(|s| *s == service) {
            self.active -= 1;
            self.heap[place] = self.heap[self.active];
            if place < self.active {
                self.sift_up(place);
                self.sift_down(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(scfq: &mut Scfq<u32>) -> Vec<usize> {
        std::iter::from_fn(|| scfq.dequeue().map(|turn| turn.service)).collect()
    }

    #[test]
    fn backlogged_services_share_by_rate() {
        let mut scfq = Scfq::default();
        scfq.set_rate(1, 0.25);
        scfq.set_rate(2, 0.75);
        for i in 0..40 {
            scfq.enqueue(1, 100, i);
            scfq.enqueue(2, 100, i);
        }
        let sent = order(&mut scfq);
        let first: Vec<_> = sent.iter().take(40).collect();
        assert_eq!(first.iter().filter(|s| ***s == 1).count(), 10);
    }

    #[test]
    fn equal_stamps_go_to_the_lower_number() {
        let mut scfq = Scfq::default();
        for service in [9, 3, 5] {
            scfq.enqueue(service, 100, 0);
        }
        assert_eq!(order(&mut scfq), [3, 5, 9]);
    }

    #[test]
    fn a_removed_packet_is_not_charged() {
        for taken in [0, 2, 5] {
            let mut scfq = Scfq::default();
            for service in [0, 2, 4, 5] {
                scfq.enqueue(service, 100 * (10 - u32::from(service)) as usize, 0);
                scfq.enqueue(service, 50, 1);
            }
            let mut removed = vec![];
            scfq.remove(taken, &mut |item| removed.push(item));
            assert_eq!(removed, [0, 1]);
            scfq.enqueue(taken, 100, 2);
            let left = [5, 4, 2, 0].into_iter().filter(|s| *s != taken);
            let expected: Vec<_> = [taken]
                .into_iter()
                .chain(left.flat_map(|s| [s, s]))
                .collect();
            let sent: Vec<_> = order(&mut scfq).into_iter().map(|s| s as u8).collect();
            assert_eq!(sent, expected);
        }
    }

    #[test]
    fn an_idle_service_gains_no_credit() {
        let mut scfq = Scfq::default();
        scfq.set_rate(1, 0.5);
        scfq.set_rate(2, 0.5);
        for i in 0..10 {
            scfq.enqueue(1, 100, i);
        }
        for _ in 0..5 {
            scfq.dequeue();
        }
        for i in 0..5 {
            scfq.enqueue(2, 100, i);
        }
        // From now on they alternate; service 2 does not catch up on unused capacity.
        assert_eq!(order(&mut scfq), [1, 2, 1, 2, 1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn a_packet_that_grew_is_charged_and_delayed() {
        let mut scfq = Scfq::default();
        for service in [1, 2, 3] {
            scfq.enqueue(service, 100, 0);
        }
        scfq.resize_first(1, 250);
        scfq.resize_first(9, 250);
        assert_eq!((scfq.first_of(1), scfq.first_of(9)), (Some(250), None));
        scfq.enqueue(2, 100, 1);
        scfq.enqueue(1, 100, 1);
        assert_eq!(scfq.peek(), Some((2, 100)));
        // Stamps: 250 and 350, 100 and 200, 100.
        assert_eq!(order(&mut scfq), [2, 3, 2, 1, 1]);
        for (service, len) in [(1, 900), (2, 500)] {
            scfq.enqueue(service, len, 0);
        }
        scfq.resize_first(1, 10);
        assert_eq!(order(&mut scfq), [1, 2], "what became shorter goes sooner");
    }
}
