//! Discovers the MTU of the path to a peer by probing: Datagram Packetization Layer Path MTU Discovery (RFC 8899).
//!
//! ```text
//!          begin: does the path carry the size in use?
//!  Idle ──────────────────────────────► Confirm ── answered ──► Search, by halves
//!                                        │ ▲ ▲                    │ nothing is left between
//!          not answered: a black hole;   └─┘ └─ every CONFIRM ─── Settled ── with backoff ──► Search
//!          a smaller size at once, BASE, then LEAST
//! ```
//!
//! Sizes are those of IP packets, headers included. A probe is as long as the size it tests and is accompanied by a
//! short one, the *control*. A size counts as too long only when [`MISSES`] probes of it were not answered while their
//! controls were. Loss, delay and outages affect short and long probes alike and so decide nothing.
//!
//! What the operating system learns about the path from ICMP, which is not authenticated, is only a hint: the size in
//! use is confirmed at once, with fewer probes, and the hint is the first size tried after that. It is never trusted by
//! itself (RFC 8899, section 4.6.1).
//!
//! A path that does not even carry [`LEAST`] while controls are answered is *too narrow*: it carries nothing, and is
//! tested again at growing intervals.
//!
//! Invariants: the size in use never exceeds the interface's, and path conditions never lower it below [`LEAST`]. It
//! grows only to a size of which a probe was answered, and only once, when the search has ended. After `handle_timeout`
//! at `t` the next deadline is later than `t`.
//!
//! While nothing longer than [`LEAST`] is sent, nothing is confirmed or searched: it would be useless, and cost more
//! than everything else on an idle link. The first longer packet triggers a confirmation at once.
//!
//! Left out: data packets as probes (section 4.1), because a failed probe would lose the data.

use std::cmp::Ordering;

use airlane_base::{Duration, Instant, Rng, Streams};

/// Every IPv6 path carries this (RFC 8200, section 5), and nearly every IPv4 path.
const BASE: usize = 1280;
/// The narrowest path that is used: below it, headers and seals leave almost no payload.
pub const LEAST: usize = 256;
/// Unanswered probes of a size, with answered controls, after which it counts as too long.
const MISSES: u8 = 4;
/// The same if the operating system has hinted at it.
const MISSES_HINTED: u8 = 2;
/// Interval at which the size in use is confirmed.
const CONFIRM: Duration = Duration::from_secs(5);
/// Time after a search before a larger size is tried again (PMTU_RAISE_TIMER): initially, doubling each time, and at
/// most.
const RAISE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// Time allowed for an answer: without a known round trip, and at most.
const ANSWER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// Time allowed for an answer in addition to three round trips.
const SLACK: Duration = Duration::from_millis(100);
/// Confirming may use one part in this many of the link, as hellos do.
const SHARE: u64 = 100;

/// The current phase of the discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No peer.
    Idle,
    /// Tests the size in use; after that, if given, searches for more, below the second value.
    Confirm(Test, Option<usize>),
    /// Tests a size between the best one found and the second value, which is too long.
    Search(Test, usize),
    /// The size is known.
    Settled,
}

/// Probes of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    size: usize,
    /// Number of the first probe. Offsets from it are even for probes and odd for controls.
    first: u64,
    /// Pairs sent.
    rounds: u64,
    /// Whether the control of the last pair was answered.
    control: bool,
    /// Unanswered probes whose controls were answered.
    misses: u8,
    /// Consecutive pairs without any answer.
    silent: u8,
}

/// A probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// Length of the IP packet; `None` for a control, which is as short as possible.
    pub size: Option<usize>,
    /// The number that the answer must repeat.
    pub number: u64,
}

/// The search for the MTU of a path. Sans-IO: time and answers in, probes out.
#[derive(Clone, Debug)]
pub struct PathSearch {
    /// The size in use.
    used: usize,
    /// The largest size confirmed so far.
    found: usize,
    /// The size that the interface carries.
    most: usize,
    /// The size that the operating system reported last; `hint` holds it while it is to be tested.
    said: usize,
    hint: Option<usize>,
    phase: Phase,
    due: Instant,
    raise: Duration,
    raise_due: Instant,
    /// Whether a packet was sent since the last search that a narrower path would drop.
    used_since: bool,
    too_narrow: bool,
    numbers: Rng,
    to_send: [Option<ProbeRequest>; 2],
    round_trip: Option<Duration>,
    /// Transmission time of the longest datagram on the link.
    cost: Duration,
}

impl PathSearch {
    /// A path of which nothing is known except that its interface carries `most`. The seed must be unpredictable.
    pub fn new(most: usize, seed: u64) -> Self {
        Self {
            used: most,
            found: most,
            most,
            said: most,
            hint: None,
            phase: Phase::Idle,
            due: Instant::FAR_FUTURE,
            raise: RAISE.0,
            raise_due: Instant::ORIGIN,
            used_since: false,
            too_narrow: false,
            numbers: Streams::new(seed, 0).stream("path.probes"),
            to_send: [None; 2],
            round_trip: None,
            cost: Duration::ZERO,
        }
    }

    /// The longest IP packet to be sent.
    pub const fn mtu(&self) -> usize {
        self.used
    }

    /// Whether the path is known not to carry even that.
    pub const fn is_too_narrow(&self) -> bool {
        self.too_narrow
    }

    /// Whether the path is a black hole: it discards datagrams longer than those in use, and no ICMP message says so.
    pub const fn is_black_hole(&self) -> bool {
        self.used < self.most && self.said > self.used
    }

    /// Sets the round trip time, if known, and the transmission time of the longest datagram.
    pub const fn set_pace(&mut self, round_trip: Option<Duration>, cost: Duration) {
        (self.round_trip, self.cost) = (round_trip, cost);
    }

    /// Starts discovery for a new peer, or for a peer at a new address.
    pub fn begin(&mut self, now: Instant) {
        self.hint = Some(self.said).filter(|said| *said < self.used);
        self.raise = RAISE.0;
        self.confirm(now, Some(self.most + 1));
    }

    /// Stops discovery, because there is no peer.
    pub const fn stop(&mut self) {
        self.phase = Phase::Idle;
        self.due = Instant::FAR_FUTURE;
        self.to_send = [None; 2];
    }

    /// Sets the size that the interface carries.
    pub fn set_most(&mut self, now: Instant, most: usize) {
        let was = std::mem::replace(&mut self.most, most);
        if was == most {
            return;
        }
        match self.phase {
            // Without a peer, the interface is all that is known.
            Phase::Idle => (self.used, self.found) = (most, most),
            _ => {
                self.used = self.used.min(most);
                self.begin(now);
            }
        }
    }

    /// Takes a size that the operating system reports for the path.
    pub fn hear(&mut self, now: Instant, said: usize) {
        let was = std::mem::replace(&mut self.said, said);
        if was == said || self.phase == Phase::Idle {
            return;
        }
        match said.cmp(&self.used) {
            Ordering::Less => {
                self.hint = Some(said);
                // An ongoing search keeps its upper bound.
                let beyond = match self.phase {
                    Phase::Confirm(_, beyond) => beyond,
                    Phase::Search(_, beyond) => Some(beyond),
                    Phase::Idle | Phase::Settled => None,
                };
                self.confirm(now, beyond);
            }
            // The narrow part of the path may be gone.
            Ordering::Greater if self.used < self.most => self.begin(now),
            _ => {}
        }
    }

    /// Confirms the size in use now, because heavy loss might be loss of long datagrams only.
    pub fn doubt(&mut self, now: Instant) {
        if self.phase == Phase::Settled && !self.too_narrow {
            self.confirm(now, None);
        }
    }

    /// Notes that an IP packet of this length was sent.
    pub const fn note_sent(&mut self, length: usize) {
        // On the narrowest path nothing longer can be sent: a packet that fills it shows that a larger size would be
        // used.
        self.used_since |= length > LEAST || length == self.used;
    }

    /// When to call [`PathSearch::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        match self.phase == Phase::Settled && !self.used_since && !self.too_narrow {
            true => Instant::FAR_FUTURE,
            false => self.due,
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout() > now {
            return;
        }
        match self.phase {
            Phase::Idle => self.due = Instant::FAR_FUTURE,
            Phase::Settled if self.too_narrow => self.confirm(now, Some(self.most + 1)),
            // After an idle period, first confirm the size in use.
            Phase::Settled if now > self.due + CONFIRM => {
                self.raise_due = self.raise_due.max(now + CONFIRM);
                self.confirm(now, None);
            }
            Phase::Settled if self.used < self.most && self.raise_due <= now => {
                self.raise = (self.raise * 2).min(RAISE.1);
                // The smallest larger size shows whether there is anything to gain.
                let beyond = self.most + 1;
                self.test(now, self.used + 1, |test| Phase::Search(test, beyond));
            }
            Phase::Settled => self.confirm(now, None),
            Phase::Confirm(mut test, beyond) => match test.has_failed(self.hint.is_some()) {
                true => self.on_black_hole(now),
                false => {
                    self.send(now, &mut test);
                    self.phase = Phase::Confirm(test, beyond);
                }
            },
            Phase::Search(mut test, beyond) => match test.has_failed(false) {
                true => self.search(now, test.size),
                false => {
                    self.send(now, &mut test);
                    self.phase = Phase::Search(test, beyond);
                }
            },
        }
    }

    /// The next probe to send, if any.
    pub fn poll_probe(&mut self) -> Option<ProbeRequest> {
        let next = self.to_send.iter_mut().find(|next| next.is_some());
        next.and_then(Option::take)
    }

    /// Takes the peer's answer to the probe of this number.
    pub fn handle_answer(&mut self, now: Instant, number: u64) {
        let (Phase::Confirm(test, _) | Phase::Search(test, _)) = &mut self.phase else {
            return;
        };
        let offset = number.wrapping_sub(test.first);
        if offset >= test.rounds * 2 {
            return;
        }
        if offset % 2 == 1 {
            // The control of an earlier pair says nothing about the last one.
            test.control |= offset / 2 + 1 == test.rounds;
            return;
        }
        match self.phase {
            Phase::Confirm(test, beyond) => {
                self.found = test.size;
                self.too_narrow = false;
                match beyond {
                    Some(beyond) => self.search(now, beyond),
                    None => self.settle(now),
                }
            }
            Phase::Search(test, beyond) => {
                self.found = test.size;
                self.search(now, beyond);
            }
            Phase::Idle | Phase::Settled => {}
        }
    }

    /// Confirms the size in use, then searches for a larger one below `beyond`, if given.
    fn confirm(&mut self, now: Instant, beyond: Option<usize>) {
        self.found = self.used;
        self.test(now, self.used, |test| Phase::Confirm(test, beyond));
    }

    /// Reacts to a size in use that does not arrive.
    fn on_black_hole(&mut self, now: Instant) {
        let lost = self.used;
        if lost <= LEAST {
            self.too_narrow = true;
            self.raise_due = now + self.raise;
            self.raise = (self.raise * 2).min(RAISE.1);
            return self.settle(now);
        }
        self.used = if lost > BASE { BASE } else { LEAST };
        (self.raise, self.raise_due) = (RAISE.0, now);
        self.confirm(now, Some(lost));
    }

    /// Searches between the best size found and `beyond`, which is too long.
    fn search(&mut self, now: Instant, beyond: usize) {
        let between = |size: &usize| (self.found + 1..beyond).contains(size);
        let next = match self.hint.take().filter(between) {
            Some(hint) => hint,
            None if beyond - self.found <= 1 => return self.settle(now),
            // Nothing suggests yet that the path carries less than the interface.
            None if beyond > self.most => self.most,
            None => self.found + (beyond - self.found) / 2,
        };
        self.test(now, next, |test| Phase::Search(test, beyond));
    }

    fn settle(&mut self, now: Instant) {
        if std::mem::replace(&mut self.used, self.found) != self.found {
            (self.raise, self.raise_due) = (RAISE.0, now);
        }
        // Confirming the size in use does not replace a search that may have become due meanwhile.
        let has_searched = !matches!(self.phase, Phase::Confirm(_, None));
        self.phase = Phase::Settled;
        self.used_since = false;
        self.hint = None;
        self.to_send = [None; 2];
        if has_searched && self.raise_due <= now {
            self.raise_due = now + self.raise;
        }
        let again = self.used < self.most || self.too_narrow;
        let wider = Some(self.raise_due).filter(|_| again);
        let confirm = Some(now + CONFIRM.max(self.cost * SHARE)).filter(|_| !self.too_narrow);
        let due = wider.into_iter().chain(confirm).min();
        self.due = due.unwrap_or(Instant::FAR_FUTURE);
    }

    fn test(&mut self, now: Instant, size: usize, phase: impl Fn(Test) -> Phase) {
        let mut test = Test {
            size,
            first: self.numbers.next_u64(),
            rounds: 0,
            control: false,
            misses: 0,
            silent: 0,
        };
        self.send(now, &mut test);
        self.phase = phase(test);
    }

    /// Queues the next pair of a test.
    fn send(&mut self, now: Instant, test: &mut Test) {
        let number = test.first.wrapping_add(test.rounds * 2);
        test.rounds += 1;
        test.control = false;
        let pair = [(Some(test.size), 0), (None, 1)];
        self.to_send = pair.map(|(size, odd)| {
            let number = number.wrapping_add(odd);
            Some(ProbeRequest { size, number })
        });
        let answer = self.round_trip.map_or(ANSWER.0, |trip| trip * 3 + SLACK);
        let patience = (answer + self.cost * 4) * (1 << test.silent.min(6));
        self.due = now + patience.min(ANSWER.1.max(self.cost * 8));
    }
}

impl Test {
    /// Counts the last pair, whose answers are overdue. Returns whether the size counts as too long.
    const fn has_failed(&mut self, hinted: bool) -> bool {
        if self.control {
            self.misses += 1;
            self.silent = 0;
        } else {
            self.silent = self.silent.saturating_add(1);
        }
        self.misses >= if hinted { MISSES_HINTED } else { MISSES }
    }
}

#[cfg(test)]
mod tests;
