//! Reassembles fragmented packets: each is delivered when its last fragment has arrived.
//!
//! The service below has done its repairs already. A reliable one delivers every fragment in order, however
//! long it takes, so a packet waits as long as it must, and only one is incomplete at a time. With other
//! services a packet may wait in vain: it is dropped and counted when its oldest fragment has waited for
//! [`PATIENCE`], longer than any scheme requests a frame, or when too many others are incomplete.
//!
//! Invariants: at most [`PACKETS`] packets and [`FRAGMENTS`] fragments wait; a complete packet waits no
//! longer. Left out: overlapping fragments, which no sender makes.

use airlane_base::{Duration, Instant};

use super::{Divisible, Fragment};
use crate::ledger::ServiceLedger;

/// How long fragments wait for others of their packet.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of incomplete packets.
const PACKETS: usize = 64;
/// Maximum number of their fragments.
const FRAGMENTS: usize = 1024;

/// An incomplete packet.
#[derive(Clone, Debug)]
struct Begun<P> {
    packet: u16,
    /// When its first fragment arrived.
    since: Instant,
    parts: Vec<Option<P>>,
    have: usize,
    /// Number of its fragments, once the last has arrived.
    all: Option<usize>,
}

/// The incomplete packets of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly<P> {
    /// None: fragments wait without limit.
    patience: Option<Duration>,
    /// The oldest first.
    begun: Vec<Begun<P>>,
    fragments: usize,
    /// Fragment buffers of ended packets, for reuse.
    spare: Vec<Vec<Option<P>>>,
    /// A ring of packets completed or given up: a late fragment of one does not begin it again.
    ended: [Option<u16>; PACKETS],
    next_ended: usize,
}

impl<P: Divisible> Reassembly<P> {
    /// `reliable`: every fragment arrives eventually.
    pub(crate) fn new(reliable: bool) -> Self {
        Self {
            patience: (!reliable).then_some(PATIENCE),
            begun: Vec::new(),
            fragments: 0,
            spare: Vec::new(),
            ended: [None; PACKETS],
            next_ended: 0,
        }
    }

    /// Takes a fragment; returns the packet that it completes.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        which: Fragment,
        payload: P,
        ledger: &mut ServiceLedger,
    ) -> Option<P> {
        let index = usize::from(which.index);
        let at = match self.begun.iter().rposition(|b| b.packet == which.packet) {
            Some(at) => at,
            None if self.ended.contains(&Some(which.packet)) => {
                ledger.repeat(false, payload.len());
                return None;
            }
            None => {
                let parts = self.spare.pop().unwrap_or_default();
                self.begun.push(Begun {
                    packet: which.packet,
                    since: now,
                    parts,
                    have: 0,
                    all: None,
                });
                self.begun.len() - 1
            }
        };
        let begun = &mut self.begun[at];
        let fits = match begun.all {
            Some(all) => index < all && which.last == (index + 1 == all),
            None => !which.last || begun.parts.len() <= index + 1,
        };
        if !fits {
            // It is of another packet with this number, or forged, and nothing of the packet can be trusted.
            ledger.malformed += 1;
            self.give_up(at, ledger);
            return None;
        }
        if begun.parts.len() <= index {
            begun.parts.resize(index + 1, None);
        }
        if begun.parts[index].is_some() {
            ledger.duplicates += 1;
            return None;
        }
        begun.parts[index] = Some(payload);
        begun.have += 1;
        self.fragments += 1;
        if which.last {
            begun.all = Some(index + 1);
        }
        if begun.all == Some(begun.have) {
            let whole = P::reassembled(&begun.parts);
            self.forget(at);
            ledger.malformed += u64::from(whole.is_none());
            return whole;
        }
        while self.begun.len() > PACKETS || self.fragments > FRAGMENTS {
            self.give_up(0, ledger);
        }
        None
    }

    /// When [`Reassembly::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        Some(self.begun.first()?.since + self.patience?)
    }

    /// Drops packets that have waited too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ledger: &mut ServiceLedger) {
        while self.poll_timeout().is_some_and(|due| due <= now) {
            self.give_up(0, ledger);
        }
    }

    /// Drops everything: a new epoch.
    pub(crate) fn reset(&mut self, ledger: &mut ServiceLedger) {
        while !self.begun.is_empty() {
            self.give_up(0, ledger);
        }
        self.ended = [None; PACKETS];
    }

    fn give_up(&mut self, at: usize, ledger: &mut ServiceLedger) {
        ledger.packets_incomplete += 1;
        self.forget(at);
    }

    fn forget(&mut self, at: usize) {
        let mut begun = self.begun.remove(at);
        self.ended[self.next_ended] = Some(begun.packet);
        self.next_ended = (self.next_ended + 1) % PACKETS;
        self.fragments -= begun.have;
        begun.parts.clear();
        self.spare.push(begun.parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// A packet of zeros, or a fragment with the length of its packet.
    impl Reassembly<Part> {
        fn arrives(
            &mut self,
            now: u64,
            packet: u16,
            index: u8,
            last: bool,
        ) -> (bool, ServiceLedger) {
            let which = Fragment {
                packet,
                index,
                last,
            };
            let (now, mut ledger) = (Instant::from_nanos(now), ServiceLedger::default());
            let whole = self.take(now, which, Part, &mut ledger);
            (whole.is_some(), ledger)
        }
    }

    #[derive(Clone, Debug, PartialEq)]
    struct Part;

    sample::payload!(Part, _part => 100);

    impl Divisible for Part {
        fn reassembled(fragments: &[Option<Self>]) -> Option<Self> {
            fragments.iter().all(Option::is_some).then_some(Self)
        }
    }

    #[test]
    fn a_packet_completes_with_its_last_fragment_in_any_order() {
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut reassembly = Reassembly::new(false);
            for (n, index) in order.into_iter().enumerate() {
                let (whole, ledger) = reassembly.arrives(0, 9, index, index == 2);
                assert_eq!(whole, n == 2, "{order:?}");
                assert_eq!(ledger, ServiceLedger::default());
                // A fragment of another packet comes in between.
                assert!(!reassembly.arrives(0, 10, index, false).0);
            }
            assert_eq!(reassembly.fragments, 3);
            let (again, ledger) = reassembly.arrives(0, 9, 1, false);
            assert!(!again && ledger.late == 1 && reassembly.fragments == 3);
            assert_eq!(reassembly.arrives(0, 10, 0, false).1.duplicates, 1);
        }
    }

    #[test]
    fn incomplete_packets_are_given_up_and_counted() {
        let mut reassembly = Reassembly::new(false);
        for packet in 0..1_000 {
            let (_, ledger) = reassembly.arrives(packet.into(), packet, 0, false);
            assert_eq!(
                ledger.packets_incomplete,
                u64::from(packet >= PACKETS as u16)
            );
        }
        assert_eq!(reassembly.begun.len(), PACKETS);
        let due = reassembly.poll_timeout().expect("they wait");
        assert_eq!(due, Instant::from_nanos(1_000 - PACKETS as u64) + PATIENCE);
        let mut ledger = ServiceLedger::default();
        reassembly.handle_timeout(due, &mut ledger);
        assert_eq!(ledger.packets_incomplete, 1);
        assert!(reassembly.poll_timeout().is_some_and(|next| next > due));
        reassembly.reset(&mut ledger);
        assert_eq!((ledger.packets_incomplete, reassembly.fragments), (64, 0));
        // Long packets reach the limit as well.
        for packet in 0..10u16 {
            (0..200).for_each(|index| _ = reassembly.arrives(0, packet, index, false));
        }
        assert!(reassembly.fragments <= FRAGMENTS && reassembly.begun.len() == 5);
        // Where every fragment arrives eventually, packets wait without limit.
        assert_eq!(Reassembly::<Part>::new(true).poll_timeout(), None);
    }

    #[test]
    fn fragments_that_cannot_be_of_one_packet_are_malformed() {
        for second in [(5, false), (1, true), (3, false), (4, true)] {
            let mut reassembly = Reassembly::new(true);
            reassembly.arrives(0, 1, 3, true);
            let (_, ledger) = reassembly.arrives(0, 1, second.0, second.1);
            assert_eq!(
                (ledger.malformed, ledger.packets_incomplete),
                (1, 1),
                "{second:?}"
            );
        }
        let mut reassembly = Reassembly::new(true);
        reassembly.arrives(0, 1, 3, false);
        assert_eq!(reassembly.arrives(0, 1, 2, true).1.malformed, 1);
    }
}
