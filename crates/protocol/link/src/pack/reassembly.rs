//! Packets whose fragments arrive: each goes up when the last of them is there.
//!
//! The service below has repaired what it repairs. A reliable one delivers every fragment, in order,
//! however long it takes, so a packet waits as long as it must and there is never a second. Otherwise a
//! packet may wait in vain: it is dropped and counted when its oldest fragment has waited for
//! [`PATIENCE`], longer than any scheme asks for a frame, or when too many others are begun.
//!
//! Invariants: at most [`PACKETS`] packets and [`FRAGMENTS`] fragments wait; a packet that is complete
//! waits no longer. Left out: fragments that overlap, which nobody sends.

use airlane_base::{Duration, Instant};

use super::{Divisible, Fragment};
use crate::ledger::ServiceLedger;

/// How long fragments wait for others of their packet.
const PATIENCE: Duration = Duration::from_secs(10);
/// Packets of which something has come.
const PACKETS: usize = 64;
/// Fragments of all of them.
const FRAGMENTS: usize = 1024;

/// A packet of which not everything has come.
#[derive(Clone, Debug)]
struct Begun<P> {
    packet: u16,
    /// When its first fragment came.
    since: Instant,
    parts: Vec<Option<P>>,
    have: usize,
    /// How many there are, once the last has come.
    all: Option<usize>,
}

/// The packets that a receiver puts together.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly<P> {
    /// Without a limit, parts wait for as long as it takes.
    patience: Option<Duration>,
    /// The oldest first.
    begun: Vec<Begun<P>>,
    fragments: usize,
    /// Room that packets had, for the next.
    spare: Vec<Vec<Option<P>>>,
    /// Packets that are complete or given up, in turn: what comes of them still begins nothing.
    ended: [Option<u16>; PACKETS],
    next_ended: usize,
}

impl<P: Divisible> Reassembly<P> {
    /// `reliable`: every fragment comes some day.
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

    /// Takes a fragment; gives the packet that it completes.
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
            // It is of another packet with this number, or of nobody's, and nothing of it can be believed.
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

    /// Drops what has waited for too long.
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

    /// A packet of zeros, or a part of one that says how long it is.
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
    fn a_packet_is_there_with_its_last_fragment_in_whatever_order() {
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut reassembly = Reassembly::new(false);
            for (n, index) in order.into_iter().enumerate() {
                let (whole, ledger) = reassembly.arrives(0, 9, index, index == 2);
                assert_eq!(whole, n == 2, "{order:?}");
                assert_eq!(ledger, ServiceLedger::default());
                // A part of another packet comes in between.
                assert!(!reassembly.arrives(0, 10, index, false).0);
            }
            assert_eq!(reassembly.fragments, 3);
            let (again, ledger) = reassembly.arrives(0, 9, 1, false);
            assert!(!again && ledger.late == 1 && reassembly.fragments == 3);
            assert_eq!(reassembly.arrives(0, 10, 0, false).1.duplicates, 1);
        }
    }

    #[test]
    fn what_waits_in_vain_is_given_up_and_counted() {
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
        // Long ones fill it as well.
        for packet in 0..10u16 {
            (0..200).for_each(|index| _ = reassembly.arrives(0, packet, index, false));
        }
        assert!(reassembly.fragments <= FRAGMENTS && reassembly.begun.len() == 5);
        // Where everything comes some day, so long it waits.
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
