//! A Snoop agent's state of one TCP connection: copies of the segments in flight to the wireless host, its
//! acknowledgments, and a timer.
//!
//! Sequence numbers are TCP's, modulo 2^32; they count bytes in real segments and segments in simulated ones.
//! An acknowledgment is the next number expected, one more than in section 7.10.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use crate::flow::TcpView;

/// Maximum number of connections.
pub(super) const CONNECTIONS: usize = 256;
/// A connection is forgotten after so long a silence; longer than TCP's longest timeout.
pub(super) const SILENCE: Duration = Duration::from_secs(120);
/// Segments cached per connection (XYL-S-16).
pub(super) const CACHE: usize = 100;
/// Maximum number of local retransmissions of a segment.
pub(super) const MAX_REPAIRS: u8 = 10;
/// Initial estimates of the round trip (XYL-S-16).
pub(super) const FIRST_SRTT: Duration = Duration::from_millis(100);
pub(super) const FIRST_RTTVAR: Duration = Duration::from_millis(250);
/// Minimum timeout of ns-2's module.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// A cached segment.
#[derive(Clone, Debug)]
pub(super) struct Cached<P> {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) packet: P,
    /// When it last left.
    pub(super) sent: Instant,
    pub(super) repairs: u8,
    /// Whether the TCP sender has retransmitted it, and relies on duplicates of its own.
    pub(super) sender_rxmit: bool,
    /// Whether a local retransmission waits to leave.
    pub(super) waits: bool,
    /// Whether an acknowledgment has named it, so that the wireless host has it.
    pub(super) arrived: bool,
}

/// What the agent does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It keeps a copy.
    Cached,
    /// None: it, or a later one, has been acknowledged.
    Acknowledged,
    /// None: there was no room.
    Full,
}

/// What the agent does with an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is new, and is forwarded.
    New,
    /// It is lower than an earlier one, and is forwarded.
    Below,
    /// A duplicate that is forwarded.
    Duplicate,
    /// A duplicate that is withheld.
    Suppress,
    /// A duplicate that is withheld, and the segment with this number is retransmitted.
    Repair(u32),
}

/// The rules of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Number of consecutive duplicates that start a repair.
    pub(super) threshold: u32,
    /// Minimum timeout.
    pub(super) min_timeout: Duration,
    /// Whether losses are detected by what an acknowledgment names, rather than by duplicates.
    pub(super) smart: bool,
}

/// One direction of a TCP connection, towards the wireless host.
#[derive(Clone, Debug)]
pub(super) struct Connection<P> {
    rules: Rules,
    /// In ascending order.
    cache: VecDeque<Cached<P>>,
    /// The number after the highest seen.
    last_seen: u32,
    last_ack: u32,
    /// The window of the last acknowledgment: one that changes it is not a duplicate.
    window: Option<u16>,
    /// Duplicates that the segments counted so far will still cause.
    expected_dup: u32,
    /// Segments before this have been counted.
    counted: u32,
    /// The number after the highest segment that an acknowledgment has named.
    named: u32,
    /// Duplicates since the last new acknowledgment or local repair.
    duplicates: u32,
    srtt: Duration,
    rttvar: Duration,
    /// When the timer expires; it runs while anything is cached.
    pub(super) expires: Option<Instant>,
    /// When the last segment or acknowledgment passed.
    pub(super) active: Instant,
}

/// Whether `a` precedes `b` in sequence space (RFC 9293 3.4).
const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl<P: Clone> Connection<P> {
    /// A connection whose next segment has this number.
    pub(super) fn new(rules: Rules, now: Instant, next: u32) -> Self {
        Self {
            rules,
            cache: VecDeque::new(),
            last_seen: next,
            last_ack: next,
            window: None,
            expected_dup: 0,
            counted: next,
            named: next,
            duplicates: 0,
            srtt: FIRST_SRTT,
            rttvar: FIRST_RTTVAR,
            expires: None,
            active: now,
        }
    }

    /// Starts anew and keeps the allocation.
    pub(super) fn restart(&mut self, now: Instant, next: u32) {
        let mut cache = std::mem::take(&mut self.cache);
        cache.clear();
        *self = Self {
            cache,
            ..Self::new(self.rules, now, next)
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }

    /// A segment leaves for the wireless host.
    pub(super) fn on_data(&mut self, now: Instant, segment: &TcpView, packet: &P) -> Admission {
        self.active = now;
        if segment.syn {
            self.restart(now, segment.end);
            return Admission::Cached;
        }
        let (start, end) = (segment.seq, segment.end);
        if start == end || !before(self.last_ack, end) {
            // All of it has been acknowledged already.
            return Admission::Acknowledged;
        }
        let mut kept = Admission::Cached;
        let at = self.cache.partition_point(|c| before(c.start, start));
        if let Some(cached) = self.cache.get_mut(at).filter(|c| c.start == start) {
            cached.packet = packet.clone();
            (cached.end, cached.sent) = (end, now);
            (cached.sender_rxmit, cached.repairs) = (true, 0);
            self.start_timer(now);
        } else if self.cache.len() < CACHE {
            // The oldest hole arose before the base station: the sender repairs it.
            let sender_rxmit = at == 0 && before(start, self.last_seen);
            let cached = Cached {
                start,
                end,
                packet: packet.clone(),
                sent: now,
                repairs: 0,
                sender_rxmit,
                waits: false,
                arrived: false,
            };
            self.cache.insert(at, cached);
        } else {
            kept = Admission::Full;
        }
        if before(self.last_seen, end) {
            self.last_seen = end;
        }
        if self.expires.is_none() {
            self.start_timer(now);
        }
        kept
    }

    /// An acknowledgment arrives from the wireless host. Segments that SMART shows to be missing go to
    /// `holes`, for retransmission.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        segment: &TcpView,
        ack: u32,
        holes: &mut Vec<u32>,
    ) -> Verdict {
        self.active = now;
        let window = self.window.replace(segment.window);
        let opens_window = window.is_some_and(|before| before != segment.window);
        if before(self.last_ack, ack) {
            self.on_new_ack(now, ack);
            self.find_holes(now, segment, holes);
            return Verdict::New;
        }
        let bare = segment.seq == segment.end && !segment.syn;
        if opens_window || !bare {
            return Verdict::New;
        }
        if ack != self.last_ack {
            return Verdict::Below;
        }
        let Some(oldest) = self.cache.front() else {
            return Verdict::Duplicate;
        };
        if before(ack, oldest.start) {
            // The segment was lost before the base station, by congestion, which the sender must learn of.
            return Verdict::Duplicate;
        }
        if self.rules.smart {
            self.duplicates += 1;
            let explained = !oldest.sender_rxmit && self.duplicates >= self.rules.threshold;
            self.find_holes(now, segment, holes);
            return match explained {
                true => Verdict::Suppress,
                false => Verdict::Duplicate,
            };
        }
        if self.expected_dup > 0 {
            self.expected_dup -= 1;
            return Verdict::Suppress;
        }
        let (sender_rxmit, repairs) = (oldest.sender_rxmit, oldest.repairs);
        self.duplicates = (self.duplicates + 1).min(self.rules.threshold);
        let below = self.duplicates < self.rules.threshold;
        if below || sender_rxmit || repairs >= MAX_REPAIRS {
            return Verdict::Duplicate;
        }
        // Each segment after the hole causes one duplicate; as many as the threshold have arrived.
        let causes = self.cache.iter().skip(1);
        let causes = causes.filter(|c| !before(c.start, self.counted)).count();
        self.expected_dup = (causes as u32).saturating_sub(self.rules.threshold);
        self.counted = self.last_seen;
        match self.repair_oldest() {
            Some(start) => Verdict::Repair(start),
            None => Verdict::Suppress,
        }
    }

    /// The wireless host has the segment that the acknowledgment names, and misses all earlier ones that no
    /// acknowledgment has named. A retransmitted segment is given a round trip to arrive.
    fn find_holes(&mut self, now: Instant, segment: &TcpView, holes: &mut Vec<u32>) {
        let Some([start, end]) = segment.block.filter(|_| self.rules.smart) else {
            return;
        };
        let at = self.cache.partition_point(|c| before(c.start, start));
        for cached in self.cache.range_mut(at..) {
            if before(end, cached.end) {
                break;
            }
            cached.arrived = true;
        }
        if before(self.named, end) {
            self.named = end;
        }
        let (srtt, named) = (self.srtt, self.named);
        let covered = self.cache.iter_mut().take_while(|c| before(c.start, named));
        for cached in covered {
            let again = cached.repairs == 0 || now.saturating_since(cached.sent) >= srtt;
            let missing = !cached.arrived && !cached.sender_rxmit && !cached.waits;
            if missing && again && cached.repairs < MAX_REPAIRS {
                cached.waits = true;
                cached.repairs += 1;
                holes.push(cached.start);
            }
        }
    }

    fn on_new_ack(&mut self, now: Instant, ack: u32) {
        let mut newest = None;
        let mut again = false;
        while let Some(cached) = self.cache.pop_front_if(|c| !before(ack, c.end)) {
            again |= cached.repairs > 0 || cached.sender_rxmit;
            newest = Some(cached);
        }
        // Segments acknowledged by a repair have waited after the hole, which is not a round trip.
        if let Some(cached) = newest.filter(|_| !again) {
            self.measure(now.saturating_since(cached.sent));
        }
        self.last_ack = ack;
        if before(self.last_seen, ack) {
            self.last_seen = ack;
        }
        if before(self.counted, ack) {
            self.counted = ack;
        }
        (self.expected_dup, self.duplicates) = (0, 0);
        self.start_timer(now);
    }

    /// The timer has expired. Returns the number of the segment to retransmit, if there is one.
    pub(super) fn on_timer(&mut self, now: Instant) -> Option<u32> {
        self.start_timer(now);
        let oldest = self.cache.front()?;
        let expected = !before(self.last_ack, oldest.start);
        if !expected || oldest.repairs >= MAX_REPAIRS {
            return None;
        }
        self.repair_oldest()
    }

    /// Marks the oldest segment for a local repair; none if one is pending already.
    fn repair_oldest(&mut self) -> Option<u32> {
        let oldest = self.cache.front_mut()?;
        self.duplicates = 0;
        if std::mem::replace(&mut oldest.waits, true) {
            return None;
        }
        oldest.repairs += 1;
        Some(oldest.start)
    }

    /// The repaired segment leaves now; none if it has been acknowledged meanwhile.
    pub(super) fn take_repair(&mut self, now: Instant, start: u32) -> Option<P> {
        let at = self.cache.partition_point(|c| before(c.start, start));
        let cached = self.cache.get_mut(at)?;
        if cached.start != start || !std::mem::take(&mut cached.waits) {
            return None;
        }
        cached.sent = now;
        Some(cached.packet.clone())
    }

    fn start_timer(&mut self, now: Instant) {
        let runs = self.rules.min_timeout.max(self.srtt + self.rttvar * 4);
        self.expires = (!self.cache.is_empty()).then(|| now + runs);
    }

    /// RFC 6298 2.3, starting from the initial values: the first segments may not be typical.
    fn measure(&mut self, rtt: Duration) {
        self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
        self.srtt = (self.srtt * 7 + rtt) / 8;
    }
}
