//! How long a datagram the path to a peer takes, found by probing: Datagram Packetization Layer Path MTU
//! Discovery (RFC 8899).
//!
//! ```text
//!          begin: is what is used true?
//!  Idle ──────────────────────────────► Confirm ── answered ──► Search, by halves
//!                                        │ ▲ ▲                    │ nothing is left between
//!          not answered: a black hole;   └─┘ └─ every CONFIRM ─── Settled ── ever later ──► Search
//!          less is used at once, BASE, then LEAST
//! ```
//!
//! Sizes are those of IP packets, headers included. A probe is as long as the size that it tests; with each
//! goes a short one, the *control*. A size is taken as too long only when [`MISSES`] probes of it were not
//! answered while their controls were: whatever else a path does, losing, delaying or being away for a
//! while, meets short and long ones alike, and decides nothing.
//!
//! What the system hears of the path (ICMP, which nobody authenticates) is a hint: it has what is used
//! confirmed at once, with fewer probes, and is the first size that is tried after that. It is never
//! believed by itself (RFC 8899, section 4.6.1).
//!
//! A path that does not even take [`LEAST`], while controls are answered, is *too narrow*: it is looked at again ever
//! later, and carries nothing meanwhile.
//!
//! Invariants: no more than the interface takes is ever used, and no less than [`LEAST`] for what the path
//! does; what is used rises only to a size of which a probe was answered, and once, when the search has
//! ended; after `handle_timeout` at `t` the next deadline is later than `t`.
//!
//! Where nothing longer than [`LEAST`] leaves, nothing is confirmed or looked for: it would be of no use, and costs
//! more than all else on an idle link. The first that leaves again has it confirmed at once.
//!
//! Left out: data as probes (section 4.1), which would lose it.

use std::cmp::Ordering;

use airlane_base::{Duration, Instant, Rng, Streams};

/// What every path of IPv6 takes (RFC 8200, section 5), and nearly every one of IPv4.
const BASE: usize = 1280;
/// The narrowest path that is used: of less, headers and seals leave next to nothing.
pub const LEAST: usize = 256;
/// Probes of a size that stay without an answer while their controls get one, before it is too long.
const MISSES: u8 = 4;
/// As many where the system has heard that it is.
const MISSES_HINTED: u8 = 2;
/// How often what is used is confirmed.
const CONFIRM: Duration = Duration::from_secs(5);
/// How long after a search the next looks whether the path has become wider (PMTU_RAISE_TIMER): at first,
/// then twice as long each time, up to the last.
const RAISE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// How long an answer may take where no round trip is known, and at most.
const ANSWER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// What an answer may take beyond three round trips.
const SLACK: Duration = Duration::from_millis(100);
/// What confirming may cost: a hundredth of the link, as hellos.
const SHARE: u64 = 100;

/// What is being found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing: there is nobody to answer.
    Idle,
    /// Whether the path still takes what is used; if so, whether it takes more, up to what is `beyond` it.
    Confirm(Test, Option<usize>),
    /// Whether it takes a size between what was found and what is `beyond` it.
    Search(Test, usize),
    /// Nothing: what it takes is known.
    Settled,
}

/// Probes of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    size: usize,
    /// Number of the first probe. Those of controls are odd from there, those of probes even.
    first: u64,
    /// Pairs that were sent.
    rounds: u64,
    /// Whether the control of the last pair was answered.
    control: bool,
    /// Probes without an answer whose controls had one.
    misses: u8,
    /// Pairs in a row without any answer.
    silent: u8,
}

/// A probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// How long the IP packet has to be. None: a control, as short as can be.
    pub size: Option<usize>,
    /// What the answer has to name.
    pub number: u64,
}

/// The search for the MTU of a path. Sans-IO: time and answers in, probes out.
#[derive(Clone, Debug)]
pub struct PathSearch {
    /// What is used.
    used: usize,
    /// What the search has found so far.
    found: usize,
    /// What the interface takes.
    most: usize,
    /// What the system said of the path last, and whether that is to be looked into.
    said: usize,
    hint: Option<usize>,
    phase: Phase,
    due: Instant,
    raise: Duration,
    raise_due: Instant,
    /// Whether something has left since the last search that a narrower path would swallow.
    used_since: bool,
    too_narrow: bool,
    numbers: Rng,
    to_send: [Option<ProbeRequest>; 2],
    round_trip: Option<Duration>,
    /// What the longest datagram takes of the link's time.
    cost: Duration,
}

impl PathSearch {
    /// A path of which only the interface is known, which takes `most`. Nobody may guess the seed.
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

    /// Whether the path does not even take that, as far as is known.
    pub const fn is_too_narrow(&self) -> bool {
        self.too_narrow
    }

    /// Says how long a round trip takes, as far as that is known, and the longest datagram on the link.
    pub const fn set_pace(&mut self, round_trip: Option<Duration>, cost: Duration) {
        (self.round_trip, self.cost) = (round_trip, cost);
    }

    /// There is a peer, or it is elsewhere: everything is looked into.
    pub fn begin(&mut self, now: Instant) {
        self.hint = Some(self.said).filter(|said| *said < self.used);
        self.raise = RAISE.0;
        self.confirm(now, Some(self.most + 1));
    }

    /// There is no peer any more.
    pub const fn stop(&mut self) {
        self.phase = Phase::Idle;
        self.due = Instant::FAR_FUTURE;
        self.to_send = [None; 2];
    }

    /// The interface takes so much.
    pub fn set_most(&mut self, now: Instant, most: usize) {
        let was = std::mem::replace(&mut self.most, most);
        if was == most {
            return;
        }
        match self.phase {
            // Nobody is there who could say more.
            Phase::Idle => (self.used, self.found) = (most, most),
            _ => {
                self.used = self.used.min(most);
                self.begin(now);
            }
        }
    }

    /// The system has heard that the path takes so much.
    pub fn hear(&mut self, now: Instant, said: usize) {
        let was = std::mem::replace(&mut self.said, said);
        if was == said || self.phase == Phase::Idle {
            return;
        }
        match said.cmp(&self.used) {
            Ordering::Less => {
                self.hint = Some(said);
                // A search goes on to where it was going.
                let beyond = match self.phase {
                    Phase::Confirm(_, beyond) => beyond,
                    Phase::Search(_, beyond) => Some(beyond),
                    Phase::Idle | Phase::Settled => None,
                };
                self.confirm(now, beyond);
            }
            // What narrowed it may be gone.
            Ordering::Greater if self.used < self.most => self.begin(now),
            _ => {}
        }
    }

    /// Much is lost: long datagrams alone, perhaps. Whether the path takes what is used is looked into now.
    pub fn doubt(&mut self, now: Instant) {
        if self.phase == Phase::Settled && !self.too_narrow {
            self.confirm(now, None);
        }
    }

    /// An IP packet of this length has left.
    pub const fn note_sent(&mut self, length: usize) {
        // On the narrowest path nothing longer can leave: what fills it shows that a wider one would be of use.
        self.used_since |= length > LEAST || length == self.used;
    }

    /// When [`PathSearch::handle_timeout`] wants to be called.
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
            // It has idled: first, whether what is used is still true.
            Phase::Settled if now > self.due + CONFIRM => {
                self.raise_due = self.raise_due.max(now + CONFIRM);
                self.confirm(now, None);
            }
            Phase::Settled if self.used < self.most && self.raise_due <= now => {
                self.raise = (self.raise * 2).min(RAISE.1);
                // Whether there is anything to gain shows with the least that would be.
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

    /// The next probe to send.
    pub fn poll_probe(&mut self) -> Option<ProbeRequest> {
        let next = self.to_send.iter_mut().find(|next| next.is_some());
        next.and_then(Option::take)
    }

    /// The peer has received the probe of this number.
    pub fn handle_answer(&mut self, now: Instant, number: u64) {
        let (Phase::Confirm(test, _) | Phase::Search(test, _)) = &mut self.phase else {
            return;
        };
        let offset = number.wrapping_sub(test.first);
        if offset >= test.rounds * 2 {
            return;
        }
        if offset % 2 == 1 {
            // That of an earlier pair says nothing of the last one.
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

    /// Looks whether the path takes what is used, then for more below what is `beyond` it.
    fn confirm(&mut self, now: Instant, beyond: Option<usize>) {
        self.found = self.used;
        self.test(now, self.used, |test| Phase::Confirm(test, beyond));
    }

    /// What is used does not arrive.
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

    /// Goes on between what was found and what is `beyond` the path.
    fn search(&mut self, now: Instant, beyond: usize) {
        let between = |size: &usize| (self.found + 1..beyond).contains(size);
        let next = match self.hint.take().filter(between) {
            Some(hint) => hint,
            None if beyond - self.found <= 1 => return self.settle(now),
            // Nothing says yet that the path takes less than the interface.
            None if beyond > self.most => self.most,
            None => self.found + (beyond - self.found) / 2,
        };
        self.test(now, next, |test| Phase::Search(test, beyond));
    }

    fn settle(&mut self, now: Instant) {
        if std::mem::replace(&mut self.used, self.found) != self.found {
            (self.raise, self.raise_due) = (RAISE.0, now);
        }
        // A look at what is used says nothing of more, which may have become due meanwhile.
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

    /// Has the next pair of a test sent.
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
    /// The time for an answer is over: whether the size is too long by now.
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
