//! Snoop's memory of TCP as ns-2's module has it (section 4.2 of docs/spec/tcp-over-wireless.md, after ns-2 2.35).
//! For reproductions: simulated connections, whose segments count from 0.
//!
//! One state serves all connections of two hosts, as in the module of 1997, or those that one pair of
//! TCP endpoints has after each other, as from February 1998 on, while a port was a part of an address; later
//! ones have a state for two hosts again. Either is cleared by the first segment of each connection, as
//! from February 1998 on, or by nothing: then segments up to the highest number that any
//! connection had acknowledged are not kept, so one is helped only beyond the longest before it.
//! Where it departs from [`Connection`](super::connection::Connection):
//! - every second duplicate that nothing explains asks for a repair; new acknowledgments do not begin
//!   the count anew, all states of a base station have one, and a segment is repaired at most once by
//!   it, later by the timer alone;
//! - duplicates to come are counted in segments kept, less two, which may be less than none;
//! - the timer is for the segment that the last acknowledgment asked for; where the oldest one kept is
//!   another, it runs out and stays so until the next segment or acknowledgment;
//! - a round trip is measured from the last copy that left, with gains of 7/8 and 1/8, and outlives the
//!   connection.
//!
//! Left out: that nothing is kept while the queue below is full, as a packet comes here when it leaves it.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::connection::{
    Admission, CACHE, Cached, FIRST_RTTVAR, FIRST_SRTT, MAX_REPAIRS, TICK, Verdict,
};
use crate::flow::TcpView;

/// Duplicates expected where the count has gone wrong: the next one asks for a repair.
const MISCOUNTED: i32 = -1;

/// One direction of TCP connections that share a state, towards the wireless host.
#[derive(Clone, Debug)]
pub(super) struct Ns2<P> {
    /// Ascending by number.
    cache: VecDeque<Cached<P>>,
    /// The highest number seen.
    last_seen: i64,
    /// The highest number acknowledged.
    last_ack: i64,
    expected_dup: i32,
    /// Whether the duplicates of the oldest segment have been counted.
    counted: bool,
    srtt: Duration,
    rttvar: Duration,
    pub(super) expires: Option<Instant>,
    pub(super) active: Instant,
}

impl<P: Clone> Ns2<P> {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            cache: VecDeque::new(),
            last_seen: -1,
            last_ack: -1,
            expected_dup: 0,
            counted: false,
            srtt: FIRST_SRTT,
            rttvar: FIRST_RTTVAR,
            expires: None,
            active: now,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }

    /// A new connection: of those before only the round trip stays.
    pub(super) fn clear(&mut self, now: Instant) {
        let mut cache = std::mem::take(&mut self.cache);
        cache.clear();
        *self = Self {
            cache,
            srtt: self.srtt,
            rttvar: self.rttvar,
            ..Self::new(now)
        };
    }

    /// A segment is on its way to the wireless host.
    pub(super) fn on_data(&mut self, now: Instant, segment: &TcpView, packet: &P) -> Admission {
        self.active = now;
        let seq = i64::from(segment.seq);
        if self.cache.len() >= CACHE {
            self.last_seen = self.last_seen.max(seq);
            return Admission::Full;
        }
        let keeps = seq > self.last_ack;
        if keeps && self.keep(now, segment, packet) {
            self.expires = None;
        }
        if self.expires.is_none() {
            self.start_timer(now);
        }
        if keeps {
            Admission::Cached
        } else {
            Admission::Acknowledged
        }
    }

    /// Keeps a copy. Whether the segment is an old one, for which the timer starts again.
    fn keep(&mut self, now: Instant, segment: &TcpView, packet: &P) -> bool {
        let at = self.cache.partition_point(|c| c.start < segment.seq);
        let known = self.cache.get_mut(at).filter(|c| c.start == segment.seq);
        if let Some(cached) = known {
            (cached.sender_rxmit, cached.repairs, cached.sent) = (true, 0, now);
            return true;
        }
        let seq = i64::from(segment.seq);
        let old = seq < self.last_seen;
        let cached = Cached {
            start: segment.seq,
            end: segment.end,
            packet: packet.clone(),
            sent: now,
            repairs: 0,
            sender_rxmit: old && at == 0,
            waits: false,
            arrived: false,
        };
        self.cache.insert(at, cached);
        if old {
            self.counted = false;
        } else {
            self.last_seen = seq;
        }
        old
    }

    /// An acknowledgment has come from the wireless host. `duplicate_seen`: an unexplained duplicate has
    /// been forwarded since the last one that was not.
    pub(super) fn on_ack(&mut self, now: Instant, ack: u32, duplicate_seen: &mut bool) -> Verdict {
        self.active = now;
        let ack = i64::from(ack) - 1;
        if ack < self.last_ack {
            return Verdict::Below;
        }
        if ack > self.last_ack {
            self.on_new_ack(now, ack);
            return Verdict::New;
        }
        let Some(oldest) = self.cache.front() else {
            return Verdict::Duplicate;
        };
        if i64::from(oldest.start) > ack + 1 {
            return Verdict::Duplicate;
        }
        if self.expected_dup > 0 {
            self.expected_dup -= 1;
            return Verdict::Suppress;
        }
        let repairs = oldest.repairs;
        if self.expected_dup < 0 {
            let again = self.expected_dup == MISCOUNTED && repairs < 2;
            return if again {
                self.repair(now)
            } else {
                Verdict::Duplicate
            };
        }
        *duplicate_seen = !*duplicate_seen;
        if *duplicate_seen || oldest.sender_rxmit {
            return Verdict::Duplicate;
        }
        // They are places of a ring, which looks empty when it is full.
        let kept = (self.cache.len() % CACHE) as i32 - i32::from(self.counted);
        let causes = if kept < 0 { CACHE as i32 - 1 } else { kept };
        (self.expected_dup, self.counted) = (causes - 2, true);
        if repairs == 0 {
            self.repair(now)
        } else {
            Verdict::Duplicate
        }
    }

    fn on_new_ack(&mut self, now: Instant, ack: i64) {
        let mut newest = None;
        while let Some(cached) = self.cache.pop_front_if(|c| i64::from(c.start) <= ack) {
            newest = Some(cached.sent);
        }
        // The timer of the next segment is set before the round trip of this one is known.
        self.start_timer(now);
        if let Some(sent) = newest {
            self.measure(now.saturating_since(sent));
        }
        (self.expected_dup, self.counted) = (0, false);
        self.last_ack = ack;
    }

    /// The timer has run out. The number of the segment that goes out again, if one does.
    pub(super) fn on_timer(&mut self, now: Instant) -> Option<u32> {
        self.expires = None;
        let oldest = self.cache.front()?;
        if i64::from(oldest.start) != self.last_ack + 1 {
            return None;
        }
        let verdict = self.repair(now);
        match verdict {
            Verdict::Repair(start) => {
                self.counted = true;
                Some(start)
            }
            Verdict::Suppress => {
                self.counted = true;
                None
            }
            Verdict::New | Verdict::Below | Verdict::Duplicate => None,
        }
    }

    fn repair(&mut self, now: Instant) -> Verdict {
        let Some(oldest) = self.cache.front_mut() else {
            return Verdict::Duplicate;
        };
        if oldest.repairs >= MAX_REPAIRS {
            return Verdict::Duplicate;
        }
        oldest.repairs += 1;
        oldest.sent = now;
        let (start, waited) = (oldest.start, std::mem::replace(&mut oldest.waits, true));
        self.start_timer(now);
        if waited {
            Verdict::Suppress
        } else {
            Verdict::Repair(start)
        }
    }

    /// The segment to be repaired leaves now; none if it has been acknowledged meanwhile.
    pub(super) fn take_repair(&mut self, start: u32) -> Option<P> {
        let at = self.cache.partition_point(|c| c.start < start);
        let cached = self.cache.get_mut(at).filter(|c| c.start == start)?;
        std::mem::take(&mut cached.waits).then(|| cached.packet.clone())
    }

    fn start_timer(&mut self, now: Instant) {
        let runs = TICK.max(self.srtt + self.rttvar * 4);
        self.expires = (!self.cache.is_empty()).then(|| now + runs);
    }

    fn measure(&mut self, rtt: Duration) {
        self.srtt = (self.srtt + rtt * 7) / 8;
        self.rttvar = (self.rttvar * 7 + self.srtt.abs_diff(rtt)) / 8;
    }
}
