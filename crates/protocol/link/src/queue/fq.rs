//! Fair queueing, RFC 8290: a queue for each flow, served by deficit round robin.
//!
//! Two lists hold the flows with packets. A flow that becomes active joins `new` and may send one quantum
//! before those in `old`; so a flow that sends less than a quantum between its turns (a voice call, a name
//! look-up, the first packets of a page) never waits for a bulk transfer. A flow whose queue runs empty
//! passes once through `old`, so that it does not count as new in every round.
//!
//! Packets are stored in one slab and linked by index, flows likewise, so nothing is allocated once the slab
//! has grown to the limit. Left out: ECN, and the set-associative hash of later work; two flows with the same
//! hash share one queue.

use std::num::NonZeroU32;

use airlane_base::{Duration, Instant, QueueLimit, Rate};

use super::codel::{Codel, Head, Parameters};
use super::drops::DropReason;
use crate::flow::Packet;

/// The bytes that a packet counts towards a limit.
pub(super) fn charge<P: Packet>(packet: &P) -> usize {
    packet.len().max(1)
}

/// A queue fitted to the link holds what leaves within this time, or two round trips, within these bounds in
/// bytes.
const FILLS: Duration = Duration::from_secs(1);
const LEAST_BYTES: u64 = 24_000;
const MOST_BYTES: u64 = 8_000_000;

/// The null index.
const NIL: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct FqCodel<P> {
    limit: QueueLimit,
    codel: Parameters,
    /// CoDel's initial parameters, where limit, target and interval follow the link.
    least: Option<Parameters>,
    salt: u64,
    /// Number of flow queues, which are allocated with the first packet.
    count: NonZeroU32,
    flows: Vec<Flow>,
    /// Bytes of each flow, apart from `flows` so that the search for the longest backlog reads little memory.
    backlog: Vec<usize>,
    new: List,
    old: List,
    entries: Vec<Entry<P>>,
    /// First unused entry.
    free: u32,
    packets: usize,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry<P> {
    /// None while the entry is unused.
    packet: Option<P>,
    enqueued: Instant,
    /// The next packet of the flow, or the next unused entry.
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// First and last packet.
    head: u32,
    tail: u32,
    /// Bytes it may still send in this turn.
    deficit: i64,
    /// The next flow in its list.
    next: u32,
    listed: bool,
    codel: Codel,
}

impl Flow {
    const IDLE: Self = Self {
        head: NIL,
        tail: NIL,
        deficit: 0,
        next: NIL,
        listed: false,
        codel: Codel::IDLE,
    };
}

/// A list of flows, linked through `Flow::next`.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
    };

    fn push(&mut self, flows: &mut [Flow], flow: u32) {
        flows[flow as usize].next = NIL;
        match self.tail {
            NIL => self.head = flow,
            tail => flows[tail as usize].next = flow,
        }
        self.tail = flow;
    }

    fn pop(&mut self, flows: &[Flow]) {
        self.head = flows[self.head as usize].next;
        if self.head == NIL {
            self.tail = NIL;
        }
    }
}

impl<P: Packet> FqCodel<P> {
    /// The limit, and CoDel's target.
    pub(super) const fn bounds(&self) -> (QueueLimit, Duration) {
        (self.limit, self.codel.target)
    }

    /// An empty queue. Its bounds follow the link if it `fits`.
    pub(super) fn new(
        limit: QueueLimit,
        codel: Parameters,
        flows: NonZeroU32,
        salt: u64,
        fits: bool,
    ) -> Self {
        Self {
            limit,
            codel,
            least: fits.then_some(codel),
            salt,
            count: flows,
            flows: Vec::new(),
            backlog: Vec::new(),
            new: List::EMPTY,
            old: List::EMPTY,
            entries: Vec::new(),
            free: NIL,
            packets: 0,
            bytes: 0,
        }
    }

    /// Adapts the bounds to this rate and round trip of the link.
    pub(super) fn fit(&mut self, rate: Rate, round_trip: Duration) {
        let Some(least) = self.least else { return };
        // A flow that fills the link keeps a round trip of bytes here after its window was halved; and on a
        // slow link, a longer queue than `FILLS` would not help any flow.
        let time = (round_trip * 2).max(FILLS);
        let bytes = (rate.bytes_within(time) as u64).clamp(LEAST_BYTES, MOST_BYTES);
        self.limit = QueueLimit::Bytes(bytes);
        self.codel.target = least.target.max(round_trip);
        self.codel.interval = least.interval.max(round_trip * 3);
    }

    pub(super) fn len(&self) -> usize {
        self.packets
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// RFC 8290 4.1.
    pub(super) fn push(
        &mut self,
        now: Instant,
        packet: P,
        dropped: &mut impl FnMut(DropReason, P),
    ) {
        let len = charge(&packet);
        if !self.limit.admits(0, 0, len) {
            // It would not fit even alone; dropping other packets would be useless.
            return dropped(DropReason::QueueFull, packet);
        }
        if self.flows.is_empty() {
            self.flows = vec![Flow::IDLE; self.count.get() as usize];
            self.backlog = vec![0; self.flows.len()];
        }
        let flow = self.index_of(&packet);
        self.append(flow, now, packet, len);
        if !self.flows[flow].listed {
            self.flows[flow].listed = true;
            self.flows[flow].deficit = self.quantum();
            self.new.push(&mut self.flows, flow as u32);
        }
        while !self.limit.admits(self.packets - 1, self.bytes, 0) {
            let fattest = self.fattest();
            let head = self.take(fattest).expect("the fattest flow has a packet");
            dropped(DropReason::QueueFull, head.packet);
        }
    }

    /// RFC 8290 4.2.
    pub(super) fn pop(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(DropReason, P),
    ) -> Option<(P, Instant)> {
        loop {
            let is_new = self.new.head != NIL;
            let flow = if is_new { self.new.head } else { self.old.head };
            if flow == NIL {
                return None;
            }
            let index = flow as usize;
            let had_its_turn = self.flows[index].deficit <= 0;
            if !had_its_turn && let Some((packet, since)) = self.dequeue(index, now, dropped) {
                self.flows[index].deficit -= charge(&packet) as i64;
                return Some((packet, since));
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop(&self.flows);
            if had_its_turn {
                self.flows[index].deficit += self.quantum();
                self.old.push(&mut self.flows, flow);
            } else if is_new && self.old.head != NIL {
                self.old.push(&mut self.flows, flow);
            } else {
                self.flows[index].listed = false;
            }
        }
    }

    pub(super) fn drain(&mut self, take: &mut impl FnMut(P)) {
        for flow in 0..self.flows.len() {
            while let Some(head) = self.take(flow) {
                take(head.packet);
            }
        }
    }

    /// The index of a packet's flow queue.
    pub(super) fn index_of(&self, packet: &P) -> usize {
        (packet.flow().hash(self.salt) % u64::from(self.count.get())) as usize
    }

    /// Whether the flow queue of this packet holds any packets.
    pub(super) fn holds_flow_of(&self, packet: &P) -> bool {
        let backlog = self.backlog.get(self.index_of(packet));
        backlog.is_some_and(|backlog| *backlog > 0)
    }

    fn quantum(&self) -> i64 {
        self.codel.mtu.max(1) as i64
    }

    /// The flow with the most bytes; of several, the first.
    fn fattest(&self) -> usize {
        let (mut fattest, mut most) = (0, 0);
        for (flow, backlog) in self.backlog.iter().enumerate() {
            if *backlog > most {
                (fattest, most) = (flow, *backlog);
            }
        }
        fattest
    }

    fn dequeue(
        &mut self,
        flow: usize,
        now: Instant,
        dropped: &mut impl FnMut(DropReason, P),
    ) -> Option<(P, Instant)> {
        let mut codel = self.flows[flow].codel;
        let parameters = self.codel;
        let head = codel.dequeue(
            &parameters,
            now,
            || self.take(flow),
            |packet| dropped(DropReason::CoDel, packet),
        );
        self.flows[flow].codel = codel;
        head
    }

    fn append(&mut self, flow: usize, now: Instant, packet: P, len: usize) {
        let entry = Entry {
            packet: Some(packet),
            enqueued: now,
            next: NIL,
        };
        let index = match self.free {
            NIL => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
            index => {
                self.free = self.entries[index as usize].next;
                self.entries[index as usize] = entry;
                index
            }
        };
        match self.flows[flow].tail {
            NIL => self.flows[flow].head = index,
            tail => self.entries[tail as usize].next = index,
        }
        self.flows[flow].tail = index;
        self.backlog[flow] += len;
        self.bytes += len;
        self.packets += 1;
    }

    /// Removes the first packet of a flow.
    fn take(&mut self, flow: usize) -> Option<Head<P>> {
        let index = self.flows[flow].head;
        let entry = self.entries.get_mut(index as usize)?;
        let packet = entry.packet.take()?;
        let enqueued = entry.enqueued;
        self.flows[flow].head = entry.next;
        if entry.next == NIL {
            self.flows[flow].tail = NIL;
        }
        entry.next = self.free;
        self.free = index;
        let len = charge(&packet);
        self.backlog[flow] -= len;
        self.bytes -= len;
        self.packets -= 1;
        Some(Head {
            packet,
            enqueued,
            backlog: self.backlog[flow],
        })
    }

    /// Slab entries ever used, for the test that memory stays bounded.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }
}
