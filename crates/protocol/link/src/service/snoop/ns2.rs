//! Snoop's state of TCP as in ns-2's module (section 4.2 of docs/spec/tcp-over-wireless.md, after ns-2 2.35).
//! For reproductions: simulated connections, whose segments count from 0.
//!
//! One state serves all connections of two hosts, as in the module of 1997, or the successive connections
//! between one pair of TCP endpoints, as from February 1998 on, while a port was part of an address; later
//! versions again have one state for two hosts. The first segment of each connection clears the state, as
//! from February 1998 on, or nothing does: then segments up to the highest number that any connection had
//! acknowledged are not cached, so a connection is only helped beyond the longest before it. Differences from
//! [`Connection`](super::connection::Connection):
//! - every second unexplained duplicate requests a repair; new acknowledgments do not reset the count, which
//!   all states of a base station share, and duplicates cause at most one repair of a segment, later only the
//!   timer does;
//! - the number of duplicates to come is that of the cached segments less two, which may be negative;
//! - the timer is for the segment that the last acknowledgment asked for; if the oldest cached one differs,
//!   the timer expires and stays so until the next segment or acknowledgment;
//! - a round trip is measured from the last copy that left, with gains of 7/8 and 1/8, and outlives the
//!   connection.
//!
//! Left out: the rule that nothing is cached while the queue below is full, because here a packet has already
//! left the queue.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::connection::{
    Admission, CACHE, Cached, FIRST_RTTVAR, FIRST_SRTT, MAX_REPAIRS, TICK, Verdict,
};
use crate::flow::TcpView;

/// Expected duplicates after a miscount: the next one requests a repair.
const MISCOUNTED: i32 = -1;

/// One direction of TCP connections that share a state, towards the wireless host.
#[derive(Clone, Debug)]
pub(super) struct Ns2<P> {
    /// In ascending order.
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

    /// A new connection: of earlier ones only the round trip stays.
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

    /// A segment leaves for the wireless host.
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

    /// Caches a segment. Returns whether it is an old one, for which the timer restarts.
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

    /// An acknowledgment arrives from the wireless host. `duplicate_seen`: an unexplained duplicate has been
    /// forwarded since the last one that was not.
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
        // The cache is a ring, which looks empty when it is full.
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

    /// The timer has expired. Returns the number of the segment to retransmit, if there is one.
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

    /// The repaired segment leaves now; none if it has been acknowledged meanwhile.
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
