//! Fills the frames of a service: with a packet each, several small ones, or a fragment of a large one.
//!
//! The service below sees only payloads: each has one number, one copy, one repair, whatever it contains. So
//! all three work with every scheme, except those that look into packets.
//!
//! - **Aggregates** join packets that are in the queue when a frame is built, in the queue's order: no flow
//!   gains an advantage, and nothing waits for more packets unless the configuration asks for it. Where the
//!   order is kept only within flows, they are of one flow. The first packet that does not fit, or whose
//!   traffic class would need another outer header, goes into the next frame.
//! - **Fragments** carry a packet that is longer than a frame, one after the other with nothing in between.
//!   Where frames have a target length, fragments are equal while it stays the same, and their number comes
//!   as near to it as possible.
//! - **Short headers** replace those that the other end can restore. Shortening is the last step: no packet
//!   is dropped or reordered after it.
//!
//! Invariants: packets leave in the order in which they are given; at most one is held beyond the queue's
//! limit; nothing is allocated once a frame has been filled.

use airlane_base::{Duration, Instant};

use super::Fragment;
use super::anchors::Anchors;
use super::contents::{AGGREGATE_HEAD, FRAGMENT_HEAD, MOST_FRAGMENTS, MOST_TOGETHER, len_together};
use super::lost::EpochLoss;
use super::shorten::Shortener;
use crate::config::AggregateOptions;
use crate::context::Origin;
use crate::flow::{Lane, Packet, endures};
use crate::ledger::ServiceLedger;

/// A packet and its arrival time.
type Timestamped<P> = (P, Instant);

/// Fills frames from a queue.
#[derive(Clone, Debug)]
pub(crate) struct Packer<P> {
    /// Longest payload of a frame.
    longest: usize,
    /// Target length of a frame's payload, where there is one.
    aim: Option<usize>,
    /// Whether packets can be joined, cut and shortened at all.
    packs: bool,
    /// Aggregation; without it, each packet has its own frame.
    together: Option<Together>,
    shortening: Shortening,
    /// Taken from the queue and not sent yet.
    held: Option<Timestamped<P>>,
    cutting: Option<Cutting<P>>,
    gathered: Vec<P>,
    /// Number of the next packet to fragment.
    next: u16,
    wait: Wait,
    /// Salt for flow hashes, where only flows keep their order.
    flows: Option<u64>,
}

/// How headers are compressed.
#[derive(Clone, Debug)]
pub(crate) enum Shortening {
    /// Not at all.
    None,
    /// As differences from the previous packet.
    Before(Shortener),
    /// As differences from a packet known to have arrived.
    Anchored(Box<Anchors>),
}

impl Shortening {
    /// The method for a service that is `reliable`, or whose frames can still arrive until `reach` later ones
    /// have left.
    pub(crate) fn of(reliable: bool, reach: u32) -> Self {
        match reliable {
            true => Self::Before(Shortener::default()),
            false => Self::Anchored(Box::new(Anchors::new(reach))),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Together {
    /// Longest packet that shares a frame.
    largest: usize,
    /// Longest payload with several packets.
    most: usize,
    /// How long packets wait for others.
    wait: Duration,
    /// Bits of the traffic class that must be equal.
    alike: u8,
}

/// A packet with fragments still to send.
#[derive(Clone, Debug)]
struct Cutting<P> {
    packet: P,
    /// Header bytes saved by compression.
    spared: u64,
    number: u16,
    index: u8,
    at: usize,
    /// The origin of its next fragment.
    from: Origin,
}

/// Whether queued packets should wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing waits.
    Idle,
    Until(Instant),
    /// They have waited long enough, or are enough.
    Over,
}

/// What was put into a frame.
#[derive(Clone, Copy, Debug)]
struct Filled {
    packets: u64,
    bytes: u64,
    /// Header bytes saved by compression.
    spared: u64,
    /// Whether it is a fragment.
    fragment: bool,
    /// Its origin: of several packets, that of the youngest.
    from: Origin,
}

impl Filled {
    #[inline]
    fn count(&self, ledger: &mut ServiceLedger) {
        ledger.packets_sent += self.packets;
        ledger.sent_bytes += self.bytes;
        ledger.spared_bytes += self.spared;
        if self.fragment {
            ledger.fragments_sent += 1;
            ledger.packets_cut += self.packets;
        } else {
            ledger.packets_joined += self.packets - 1;
        }
    }
}

impl<P: Packet> Packer<P> {
    /// Frames carry up to `longest` bytes. Where short packets are copied, an aggregate carries no more than
    /// `copied` bytes, so that it is copied as well.
    pub(crate) fn new(
        longest: usize,
        aggregate: Option<&AggregateOptions>,
        shortening: Shortening,
        copied: Option<usize>,
        alike: u8,
        flows: Option<u64>,
    ) -> Self {
        let together = aggregate.map(|options| Together {
            largest: options.largest.as_bytes() as usize,
            most: copied.unwrap_or(usize::MAX),
            wait: options.wait,
            alike,
        });
        Self {
            longest,
            aim: None,
            packs: P::DIVISIBLE,
            together,
            shortening,
            held: None,
            cutting: None,
            gathered: Vec::new(),
            next: 0,
            wait: Wait::Idle,
            flows,
        }
    }

    /// Counts a packet that is sent unchanged, and returns its origin.
    // A function apart from the one that moves the packet on: a packet that has been inspected is moved in
    // pieces.
    #[inline(never)]
    pub(crate) fn pass(&self, packet: &P, came: Instant, ledger: &mut ServiceLedger) -> Origin {
        let filled = self.whole(packet, came);
        filled.count(ledger);
        filled.from
    }

    #[inline]
    fn whole(&self, packet: &P, came: Instant) -> Filled {
        Filled {
            packets: 1,
            bytes: packet.len() as u64,
            spared: 0,
            fragment: false,
            from: Origin {
                came: Some(came),
                lane: self.lane(packet),
                endures: endures(packet),
            },
        }
    }

    #[inline]
    fn lane(&self, packet: &P) -> Lane {
        match self.flows {
            Some(salt) => Lane::of(packet.flow().hash(salt)),
            None => Lane::default(),
        }
    }

    /// Builds and counts the payload of the next frame, from the held packet and then packets that `pop`
    /// returns, and its origin.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        ledger: &mut ServiceLedger,
        mut pop: impl FnMut(&mut ServiceLedger) -> Option<Timestamped<P>>,
    ) -> Option<(P, Origin)> {
        if self.packs {
            let (payload, filled) = self.fill_from(&mut || pop(ledger))?;
            filled.count(ledger);
            return Some((payload, filled.from));
        }
        // A packet is held only for aggregation.
        let (packet, came) = pop(ledger)?;
        let from = self.pass(&packet, came, ledger);
        Some((packet, from))
    }

    fn fill_from(
        &mut self,
        pop: &mut impl FnMut() -> Option<Timestamped<P>>,
    ) -> Option<(P, Filled)> {
        if let Shortening::Anchored(anchors) = &mut self.shortening {
            anchors.begin_frame();
        }
        if self.cutting.is_some() {
            return self.next_fragment();
        }
        let (first, came) = self.held.take().or_else(&mut *pop)?;
        let mut filled = self.whole(&first, came);
        let whole = first.len();
        let class = first.traffic_class();
        let first = self.shortened(first, &mut filled);
        if first.len() > self.room() && self.parts(first.len()) > 1 {
            self.cutting = Some(Cutting {
                packet: first,
                spared: filled.spared,
                number: self.next,
                index: 0,
                at: 0,
                from: filled.from,
            });
            self.next = self.next.wrapping_add(1);
            return self.next_fragment();
        }
        let Some(together) = self.together.filter(|t| whole <= t.largest) else {
            return Some((first, filled));
        };
        let most = together.most.min(self.room());
        let mut len = AGGREGATE_HEAD + len_together(first.len());
        let class = class & together.alike;
        self.gathered.push(first);
        // No further packet is short enough to be worth taking.
        while len < most && self.gathered.len() < MOST_TOGETHER {
            let Some((packet, came)) = pop() else {
                break;
            };
            // The uncompressed length counts, since a compressed packet could no longer be left for the next
            // frame.
            let with = len + len_together(packet.len());
            let fits = packet.len() <= together.largest && with <= most;
            let lane = self.lane(&packet).number;
            if !fits
                || packet.traffic_class() & together.alike != class
                || lane != filled.from.lane.number
            {
                self.held = Some((packet, came));
                break;
            }
            filled.packets += 1;
            filled.bytes += packet.len() as u64;
            filled.from.came = filled.from.came.max(Some(came));
            filled.from.endures |= endures(&packet);
            let packet = self.shortened(packet, &mut filled);
            len += len_together(packet.len());
            self.gathered.push(packet);
        }
        let payload = match self.gathered.len() {
            1 => self.gathered.pop(),
            _ => P::aggregated(&self.gathered),
        };
        self.gathered.clear();
        debug_assert!(
            payload.is_some(),
            "packets that are divisible can be joined"
        );
        Some((payload?, filled))
    }

    /// Whether [`Packer::handle_up`] learns anything.
    pub(crate) const fn watches_up(&self) -> bool {
        self.packs && matches!(self.shortening, Shortening::Anchored(_))
    }

    /// A packet is delivered, which may acknowledge packets of the other direction.
    pub(crate) fn handle_up(&mut self, packet: &P) {
        if let Shortening::Anchored(anchors) = &mut self.shortening
            && let Some(ack) = packet.tcp().and_then(|segment| segment.ack)
        {
            anchors.on_acknowledged(packet.flow().reversed().hash(0), ack);
        }
    }

    fn shortened(&mut self, packet: P, filled: &mut Filled) -> P {
        let whole = packet.len();
        let (short, takes_over) = match &mut self.shortening {
            Shortening::None => return packet,
            Shortening::Before(shortener) => shortener.shorten(packet),
            Shortening::Anchored(anchors) => (anchors.shorten(packet), false),
        };
        filled.spared += (whole - short.len()) as u64;
        // The peer must first have restored all packets that use the context of the other connection.
        filled.from.lane.behind_all |= takes_over;
        short
    }

    /// The next fragment of the current packet.
    fn next_fragment(&mut self) -> Option<(P, Filled)> {
        let cutting = self.cutting.as_ref()?;
        let len = cutting.packet.len();
        let rest = len - cutting.at;
        let part = match self.aim {
            Some(_) => rest.div_ceil(self.parts(rest)),
            None => self.longest.saturating_sub(FRAGMENT_HEAD).max(1),
        };
        // The number of fragments is limited, so those of a very long packet are longer.
        let part = part.max(rest.div_ceil(MOST_FRAGMENTS - usize::from(cutting.index)));
        let Cutting {
            packet,
            spared,
            number,
            index,
            at,
            from,
        } = self.cutting.as_mut()?;
        let to = (*at + part).min(len);
        let which = Fragment {
            packet: *number,
            index: *index,
            last: to == len,
        };
        let payload = packet.fragment(which, *at, to)?;
        let spared = if *index == 0 { *spared } else { 0 };
        let filled = Filled {
            packets: u64::from(*index == 0),
            bytes: (to - *at) as u64 + spared,
            spared,
            fragment: true,
            from: *from,
        };
        (from.came, from.lane.behind_all) = (None, false);
        (*index, *at) = (index.saturating_add(1), to);
        if which.last {
            self.cutting = None;
        }
        Some((payload, filled))
    }

    /// Whether packets should wait for others: `queued` bytes are in the queue, and a packet of `arriving`
    /// bytes comes now.
    pub(crate) fn waits(&mut self, now: Instant, queued: usize, arriving: Option<usize>) -> bool {
        let waits = |t: &Together| self.packs && t.wait > Duration::ZERO;
        let Some(together) = self.together.filter(waits) else {
            return false;
        };
        if self.held.is_some() || self.cutting.is_some() {
            return false;
        }
        let waiting = queued + arriving.unwrap_or(0);
        if waiting == 0 {
            self.wait = Wait::Idle;
            return false;
        }
        let enough = waiting >= together.most.min(self.room())
            || arriving.is_some_and(|len| len > together.largest);
        self.wait = match self.wait {
            _ if enough => Wait::Over,
            // It is the first.
            _ if queued == 0 => Wait::Until(now + together.wait),
            Wait::Until(until) if now < until => Wait::Until(until),
            _ => Wait::Over,
        };
        self.wait != Wait::Over
    }

    /// When packets have waited long enough for others.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.wait {
            Wait::Until(until) => Some(until),
            Wait::Idle | Wait::Over => None,
        }
    }

    /// Whether the wait of packets for others ends now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let due = self.poll_timeout().is_some_and(|until| until <= now);
        if due {
            self.wait = Wait::Over;
        }
        due
    }

    /// The held packet, if there is one.
    pub(crate) fn held(&self) -> Option<&P> {
        self.held.as_ref().map(|(packet, _)| packet)
    }

    /// Removes the held packet, if the predicate on it and its arrival time holds.
    pub(crate) fn take_held_if(&mut self, which: impl Fn(&P, Instant) -> bool) -> Option<P> {
        let held = self.held.take_if(|(packet, came)| which(packet, *came));
        held.map(|(packet, _)| packet)
    }

    /// A new epoch: the rest of a fragmented packet is useless, and the peer's header contexts are gone.
    pub(crate) fn reset(&mut self, lost: &mut EpochLoss) {
        if let Some(cutting) = self.cutting.take() {
            lost.add_part(cutting.number, cutting.packet.len() - cutting.at);
        }
        match &mut self.shortening {
            Shortening::None => {}
            Shortening::Before(shortener) => shortener.reset(),
            Shortening::Anchored(anchors) => anchors.reset(),
        }
    }

    /// Whether each packet travels as it is, in a frame of its own.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        !self.packs
    }

    /// Whether there is nothing to send but the queue's packets.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_none() && self.cutting.is_none()
    }

    /// Whether it is empty and waits for nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_empty() && self.wait == Wait::Idle
    }

    /// Sets the longest payload of later frames.
    pub(crate) fn set_longest(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Sets the target length of later payloads that can be split.
    pub(crate) fn set_aim(&mut self, aim: usize) {
        self.aim = Some(aim.max(1));
    }

    /// The longest payload, unless a packet needs more.
    fn room(&self) -> usize {
        self.aim.map_or(self.longest, |aim| aim.min(self.longest))
    }

    /// Number of fragments for this many bytes: the fewest that fit, or the number whose length is nearest,
    /// as a ratio, to the target.
    fn parts(&self, len: usize) -> usize {
        let least = len.div_ceil(self.longest.saturating_sub(FRAGMENT_HEAD).max(1));
        let Some(aim) = self.aim.map(|aim| aim.min(self.longest)) else {
            return least;
        };
        let fewer = (len / aim).max(1);
        let more = usize::from(len * len > fewer * (fewer + 1) * aim * aim);
        (fewer + more).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{FlowKey, TCP};
    use crate::pack::Divisible;
    use crate::sample;

    #[derive(Clone, Debug)]
    struct Long(usize);

    sample::payload!(Long, long => long.0);

    impl Divisible for Long {
        const DIVISIBLE: bool = true;

        fn fragment(&self, _: Fragment, from: usize, to: usize) -> Option<Self> {
            Some(Self(FRAGMENT_HEAD + to - from))
        }

        fn aggregated(packets: &[Self]) -> Option<Self> {
            Some(Self(packets.iter().map(|packet| packet.0).sum()))
        }
    }

    impl Packet for Long {
        fn flow(&self) -> FlowKey {
            // Odd lengths are TCP's.
            sample::flow(if self.0 % 2 == 1 { TCP } else { 17 }, 0, 0)
        }
    }

    /// Also one that did not fit the previous frame.
    #[test]
    fn a_frame_is_durable_if_one_of_its_packets_is() {
        let options = AggregateOptions {
            largest: "1 kB".parse().unwrap(),
            wait: Duration::ZERO,
        };
        let mut packer = Packer::new(1_400, Some(&options), Shortening::None, None, 0, None);
        let mut packets = vec![Long(900), Long(701), Long(100), Long(900), Long(800)];
        packets.reverse();
        let mut ledger = ServiceLedger::default();
        let mut pop = |_: &mut _| Some((packets.pop()?, Instant::ORIGIN));
        let frames = std::iter::from_fn(|| packer.fill(&mut ledger, &mut pop));
        let frames: Vec<_> = frames
            .map(|(frame, from)| (frame.0, from.endures))
            .collect();
        assert_eq!(
            frames,
            [(900, false), (801, true), (900, false), (800, false)]
        );
    }

    /// The maximum number of the shortest fragments would not hold all of a long packet.
    #[test]
    fn no_fragment_exceeds_the_frame_size() {
        for aim in [None, Some(60), Some(900)] {
            let mut packer = Packer::new(1_400, None, Shortening::None, None, 0, None);
            aim.into_iter().for_each(|aim| packer.set_aim(aim));
            let mut packets = vec![Long(60_000)];
            let mut ledger = ServiceLedger::default();
            let mut pop = |_: &mut _| Some((packets.pop()?, Instant::ORIGIN));
            let parts = std::iter::from_fn(|| packer.fill(&mut ledger, &mut pop));
            let lens: Vec<usize> = parts.map(|(part, _)| part.0).collect();
            assert!(lens.len() <= MOST_FRAGMENTS, "{aim:?}: {}", lens.len());
            assert!(lens.iter().all(|len| *len <= 1_400), "{aim:?}: {lens:?}");
            let carried = lens.iter().map(|len| len - FRAGMENT_HEAD).sum::<usize>();
            assert_eq!(carried, 60_000);
        }
    }
}
