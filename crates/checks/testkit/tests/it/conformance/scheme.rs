//! What every scheme must do, whatever it repairs.

use std::collections::{BTreeMap, BTreeSet};

use airlane_base::{Duration, Instant, Rate};
use airlane_link::{Bitmap, Body, Frame, FrameKind, Header, HeaderProfile, ServiceLedger};
use proptest::prelude::*;

use crate::strategies::{Offer, cases, fates, play, traffic};
use airlane_testkit::{Adversary, Pair, Reordering, Scripted, Setup, Tally, TestPacket};

/// A scheme under test, and its guarantees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contract {
    /// The content of the `scheme` table.
    pub(crate) scheme: &'static str,
    /// Header profile.
    pub(crate) header: HeaderProfile,
    /// Its window; 0 if it buffers nothing.
    pub(crate) window: usize,
    /// Frames buffered in addition at one end, whatever the window.
    pub(crate) kept: usize,
    /// Packets are delivered in the order in which they were sent.
    pub(crate) in_order: bool,
    /// No packet is delivered twice.
    pub(crate) once: bool,
    /// No timer expires without loss. Measured timers are estimates: when the peer sends its first long frame, they
    /// may expire too early once.
    pub(crate) sure_timers: bool,
    /// Frames are copied: those that are not lost arrive twice.
    pub(crate) copies: bool,
    /// Original frames must arrive once and in order, or the ends lose synchronisation.
    pub(crate) originals_in_order: bool,
    /// How far frames may be reordered.
    pub(crate) reordering: Reordering,
}

/// The service under test; another one exists and is idle.
const SERVICE: u8 = 1;
const ROOMY: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";

/// Runs the suite on a scheme: `scheme_conformance!(sr_m2_live, Contract { ... })`.
macro_rules! scheme_conformance {
    ($name:ident, $contract:expr) => {
        mod $name {
            use super::*;
            use crate::conformance::scheme;

            #[test]
            fn a_clean_link_needs_no_repair() {
                scheme::a_clean_link_needs_no_repair($contract);
            }

            #[test]
            fn keeps_its_delivery_contract() {
                scheme::keeps_its_delivery_contract($contract);
            }

            #[test]
            fn keeps_its_ledger_balanced() {
                scheme::keeps_its_ledger_balanced($contract);
            }

            #[test]
            fn early_timeouts_change_nothing() {
                scheme::early_timeouts_change_nothing($contract);
            }

            #[test]
            fn repeats_itself() {
                scheme::repeats_itself($contract);
            }

            #[test]
            fn a_rate_change_equals_a_configured_rate() {
                scheme::a_rate_change_equals_a_configured_rate($contract);
            }

            #[test]
            fn keeps_no_more_than_its_window() {
                scheme::keeps_no_more_than_its_window($contract);
            }

            #[test]
            fn survives_any_header() {
                scheme::survives_any_header($contract);
            }

            #[test]
            fn is_isolated_from_other_services() {
                scheme::is_isolated_from_other_services($contract);
            }
        }
    };
}

impl Contract {
    fn setup(&self, queue: &str) -> Setup {
        let one = "multiplier = 1.0";
        let scheme = match self.window {
            0 => self.scheme.to_owned(),
            window => format!("{}, {one}, window = {window}", self.scheme),
        };
        Setup::new(self.header).service(SERVICE, 0.5, &scheme, queue)
    }

    fn pair(&self, queue: &str, script: Vec<airlane_testkit::Fate>) -> Pair<Scripted> {
        let mut pair = Pair::new(&self.setup(queue), Scripted::new(script));
        pair.originals_in_order = self.originals_in_order;
        pair.reordering = self.reordering;
        pair.keeps_journal = true;
        pair
    }
}

fn for_service(traffic: Vec<Offer>) -> Vec<Offer> {
    let service = SERVICE;
    traffic
        .into_iter()
        .map(|offer| Offer { service, ..offer })
        .collect()
}

fn offers(n: usize, gap_ms: u64) -> impl Strategy<Value = Vec<Offer>> {
    traffic(n, 1, gap_ms).prop_map(for_service)
}

/// Without loss, every packet is delivered in order, and nothing is retransmitted.
pub(crate) fn a_clean_link_needs_no_repair(contract: Contract) {
    proptest!(cases(200), |(offers in offers(100, 20))| {
        let mut pair = contract.pair(ROOMY, vec![]);
        let offered = play(&mut pair, &offers);
        pair.run_for(Duration::from_secs(3));
        for end in 0..2 {
            let expected: Vec<u64> = (0..offered[1 - end][usize::from(SERVICE)]).collect();
            prop_assert_eq!(pair.ids(end, SERVICE), expected);
            let ledger = pair.ledger(end, SERVICE);
            let copies = pair.ledger(1 - end, SERVICE).copy_frames_sent;
            prop_assert!(contract.copies || copies == 0);
            let lost = [ledger.residual_lost, ledger.duplicates, ledger.resyncs];
            prop_assert_eq!(lost, [0, copies, 0], "{:?}", ledger);
            if contract.copies {
                let unasked = ledger.repair_frames_sent == ledger.copy_frames_sent;
                prop_assert!(unasked && ledger.late == 0, "{:?}", ledger);
            }
            if contract.sure_timers {
                let repairs = [ledger.repair_frames_sent, ledger.timeouts, ledger.late];
                prop_assert_eq!(repairs, [0; 3], "{:?}", ledger);
            }
        }
    });
}

/// Order and uniqueness under loss, duplication and the reordering that the scheme tolerates.
pub(crate) fn keeps_its_delivery_contract(contract: Contract) {
    proptest!(cases(200), |(offers in offers(100, 20), script in fates(300, 100))| {
        let mut pair = contract.pair(ROOMY, script);
        play(&mut pair, &offers);
        pair.run_for(Duration::from_secs(10));
        for end in 0..2 {
            let ids = pair.ids(end, SERVICE);
            if contract.in_order {
                prop_assert!(ids.is_sorted(), "out of order: {:?}", ids);
            }
            if contract.once {
                let distinct: BTreeSet<_> = ids.iter().collect();
                prop_assert_eq!(distinct.len(), ids.len(), "twice: {:?}", ids);
            }
        }
    });
}

/// At every moment: packets offered = sent + dropped by reason + waiting, likewise bytes, and the counters agree with
/// an outside view. They never decrease.
pub(crate) fn keeps_its_ledger_balanced(contract: Contract) {
    let queues = [
        "kind = \"none\"",
        "kind = \"drop-tail\", limit = \"3 packets\"",
        "kind = \"fq-codel\", limit = \"4 kB\", target = \"5 ms\", interval = \"20 ms\"",
    ];
    proptest!(cases(200), |(
        queue in prop::sample::select(queues.to_vec()),
        offers in offers(150, 12),
        script in fates(300, 100),
    )| {
        let mut pair = contract.pair(queue, script);
        let mut offered = [0; 2];
        let mut seen = Seen::default();
        for offer in offers {
            pair.offer(offer.end, TestPacket::new(SERVICE, offered[offer.end], offer.len));
            offered[offer.end] += 1;
            check_books(&pair, offered, &mut seen)?;
            pair.run_for(offer.gap);
            check_books(&pair, offered, &mut seen)?;
            if offered[0] % 16 == 0 {
                check_growth(&pair, &mut seen)?;
            }
        }
        pair.run_for(Duration::from_secs(5));
        check_books(&pair, offered, &mut seen)?;
        check_growth(&pair, &mut seen)?;
    });
}

/// Frames and bytes sent by each end, and the counters before.
#[derive(Default)]
struct Seen {
    journal: usize,
    all: [(u64, u64); 2],
    repairs: [(u64, u64); 2],
    control: [(u64, u64); 2],
    /// All counters at the last comparison.
    before: [BTreeMap<String, i64>; 2],
}

impl Seen {
    fn read<A: Adversary>(&mut self, pair: &Pair<A>) {
        for (end, _, frame) in &pair.journal[self.journal..] {
            let len = pair.port(*end).frame_len(frame) as u64;
            let count = |column: &mut [(u64, u64); 2]| {
                column[*end].0 += 1;
                column[*end].1 += len;
            };
            count(&mut self.all);
            if frame.header.kind.repairs() {
                count(&mut self.repairs);
            } else if !frame.header.kind.carries_packet() {
                count(&mut self.control);
            }
        }
        self.journal = pair.journal.len();
    }
}

fn check_books<A: Adversary>(
    pair: &Pair<A>,
    offered: [u64; 2],
    seen: &mut Seen,
) -> Result<(), TestCaseError> {
    seen.read(pair);
    for (end, offered) in offered.into_iter().enumerate() {
        let status = pair.port(end).services().find(|s| s.number == SERVICE);
        let status = status.expect("the service is there");
        let ledger = status.ledger;
        prop_assert_eq!(ledger.packets_offered, offered);
        prop_assert_eq!(
            ledger.packets_offered,
            ledger.packets_sent + ledger.packets_dropped() + status.queue_packets as u64,
            "{:?}",
            status
        );
        prop_assert_eq!(
            ledger.offered_bytes,
            ledger.sent_bytes + ledger.dropped_bytes + status.queue_bytes as u64,
            "{:?}",
            status
        );
        prop_assert_eq!(ledger.packets_delivered, pair.delivered(end).len() as u64);
        let delivered: usize = pair.delivered(end).iter().map(|d| d.packet.len).sum();
        prop_assert_eq!(ledger.delivered_bytes, delivered as u64);

        prop_assert_eq!((ledger.frames_sent, ledger.frame_sent_bytes), seen.all[end]);
        prop_assert_eq!(
            (ledger.repair_frames_sent, ledger.repair_frame_bytes),
            seen.repairs[end]
        );
        prop_assert_eq!(
            (ledger.control_frames_sent, ledger.control_frame_bytes),
            seen.control[end]
        );
    }
    Ok(())
}

/// Counters only grow.
fn check_growth<A: Adversary>(pair: &Pair<A>, seen: &mut Seen) -> Result<(), TestCaseError> {
    for end in 0..2 {
        let now = counters(&pair.ledger(end, SERVICE));
        for (name, then) in &seen.before[end] {
            // Some are omitted while they are zero.
            let now = now.get(name).copied().unwrap_or(0);
            prop_assert!(now >= *then, "{} went from {} to {}", name, then, now);
        }
        seen.before[end] = now;
    }
    Ok(())
}

/// All counters of a ledger, from its serialised form, so that new ones cannot be forgotten.
fn counters(ledger: &ServiceLedger) -> BTreeMap<String, i64> {
    let table = toml::Table::try_from(ledger).expect("a ledger is a table of numbers");
    let number = |(name, value): (String, toml::Value)| match value.as_integer() {
        Some(n) => (name, n),
        None => panic!("{name} is not a number"),
    };
    table.into_iter().map(number).collect()
}

/// An early call of `handle_timeout` does nothing.
pub(crate) fn early_timeouts_change_nothing(contract: Contract) {
    proptest!(cases(200), |(offers in offers(80, 20), script in fates(200, 100))| {
        let run = |early_calls| {
            let mut pair = contract.pair(ROOMY, script.clone());
            pair.early_calls = early_calls;
            play(&mut pair, &offers);
            pair.run_for(Duration::from_secs(3));
            (pair.ids(0, SERVICE), pair.ids(1, SERVICE), pair.journal)
        };
        prop_assert_eq!(run(false), run(true));
    });
}

/// Equal inputs give equal outputs.
pub(crate) fn repeats_itself(contract: Contract) {
    proptest!(cases(200), |(offers in offers(80, 20), script in fates(200, 100))| {
        let run = || {
            let mut pair = contract.pair(ROOMY, script.clone());
            play(&mut pair, &offers);
            pair.run_for(Duration::from_secs(3));
            (pair.ids(0, SERVICE), pair.ids(1, SERVICE), pair.journal)
        };
        prop_assert_eq!(run(), run());
    });
}

/// A port built for one rate and given another behaves like one built for that: its timers, its budgets, and
/// everything computed from the rate.
pub(crate) fn a_rate_change_equals_a_configured_rate(contract: Contract) {
    proptest!(cases(100), |(
        offers in offers(80, 20),
        script in fates(200, 100),
        before in prop::collection::vec(10..100_000u64, 1..3),
    )| {
        let run = |before: &[u64]| {
            let mut pair = contract.pair(ROOMY, script.clone());
            let rate = pair.link_rate();
            for kbps in before {
                pair.set_link_rate(Rate::from_bps(kbps * 1_000).expect("it is above zero"));
            }
            pair.set_link_rate(rate);
            play(&mut pair, &offers);
            pair.run_for(Duration::from_secs(3));
            (pair.ids(0, SERVICE), pair.ids(1, SERVICE), pair.journal)
        };
        prop_assert_eq!(run(&[]), run(&before));
    });
}

/// Packets buffered at one end: those that may be requested again (RLP forgets a frame when its slot is reused, so it
/// keeps up to the next power of two of two windows), those held after a hole, those waiting, one in the scheduler,
/// and the last one sent.
pub(crate) fn keeps_no_more_than_its_window(contract: Contract) {
    const WAITING: usize = 5;
    let kept = (2 * contract.window).next_power_of_two();
    let bound = 2 * (kept + contract.window + contract.kept + WAITING + 2);
    let queue = format!("kind = \"drop-tail\", limit = \"{WAITING} packets\"");
    proptest!(cases(200), |(offers in offers(400, 3), script in fates(600, 100))| {
        let tally = Tally::default();
        let mut pair = contract.pair(&queue, script);
        pair.keeps_journal = false;
        for (id, offer) in offers.iter().enumerate() {
            let packet = TestPacket::new(SERVICE, id as u64, offer.len).counted(&tally);
            pair.offer(offer.end, packet);
            pair.run_for(offer.gap);
            let outside = pair.delivered(0).len() + pair.delivered(1).len() + pair.packets_in_flight();
            let kept = tally.copies() - outside;
            prop_assert!(kept <= bound, "{} copies of packets kept, allowed {}", kept, bound);
        }
    });
}

/// Frames with any type, numbers and payload are counted and survived, and the contract holds. The schemes may lose
/// synchronisation, so afterwards nothing is promised but that time advances.
pub(crate) fn survives_any_header(contract: Contract) {
    let kinds = prop::sample::select(vec![
        FrameKind::Data,
        FrameKind::Ack,
        FrameKind::Nak,
        FrameKind::Keepalive,
        FrameKind::Parity,
        FrameKind::Copy,
        FrameKind::Link,
        FrameKind::Retransmission,
        FrameKind::Bitmap,
        FrameKind::Hello,
    ]);
    let number = prop_oneof![0..8u32, 120..136u32, 248..256u32, any::<u32>()];
    let bits = prop::collection::vec(0..128u32, 0..9);
    let forged = (
        kinds,
        number.clone(),
        number,
        bits,
        any::<bool>(),
        0..2usize,
    );
    proptest!(cases(200), |(
        offers in offers(60, 20),
        script in fates(100, 100),
        forged in prop::collection::vec(forged, 60),
    )| {
        let mut pair = contract.pair(ROOMY, script);
        let layout = pair.port(0).layout_of(SERVICE).expect("it has this service");
        let space = pair.port(0).codec().space(layout);
        let mut received = [0; 2];
        for (id, (offer, (kind, seq, ack, ones, has_payload, end))) in offers.iter().zip(forged).enumerate() {
            pair.offer(offer.end, TestPacket::new(SERVICE, id as u64, offer.len));
            let header = Header {
                service: SERVICE,
                ack: space.reduce(ack),
                index: ack as u8,
                coded_len: ack as u16,
                octets: (ack as u16).to_be_bytes(),
                ..Header::new(kind, space.reduce(seq))
            };
            let forgery = TestPacket::new(SERVICE, 1_000_000 + id as u64, 10);
            let payload = has_payload.then_some(forgery);
            let before = pair.ledger(end, SERVICE).frames_received;
            let mut frame = Frame::new(header, payload);
            if !has_payload && !ones.is_empty() {
                let mut bits = Bitmap::EMPTY;
                ones.into_iter().for_each(|at| bits.set(at));
                frame.body = Body::Bitmap(bits);
            }
            pair.inject(end, frame);
            received[end] += 1;
            prop_assert_eq!(pair.ledger(end, SERVICE).frames_received, before + 1);
            pair.run_for(offer.gap);
        }
        pair.adversary.end();
        pair.run_for(Duration::from_secs(20));
    });
}

/// With any scheduler, and with other services present but idle: the same frames at the same times (XYL-R-9, and
/// XYL-R-1 as far as idle services go).
pub(crate) fn is_isolated_from_other_services(contract: Contract) {
    proptest!(cases(200), |(offers in offers(80, 20), script in fates(200, 100))| {
        let run = |change: fn(Setup) -> Setup| {
            let setup = change(contract.setup(ROOMY));
            let mut pair = Pair::new(&setup, Scripted::new(script.clone()));
            pair.originals_in_order = contract.originals_in_order;
            pair.reordering = contract.reordering;
            pair.keeps_journal = true;
            play(&mut pair, &offers);
            pair.run_for(Duration::from_secs(3));
            let times: Vec<Instant> = pair.delivered(0).iter().map(|d| d.at).collect();
            (times, pair.ids(1, SERVICE), pair.journal)
        };
        let alone = run(|setup| setup);
        prop_assert_eq!(&alone, &run(|mut setup| {
            setup.config.scheduler = airlane_link::config::SchedulerConfig::Fifo;
            setup
        }));
        prop_assert_eq!(&alone, &run(|setup| {
            setup
                .service(2, 7.0, "kind = \"default\"", ROOMY)
                .service(3, 0.1, "kind = \"sr-m2\", window = 4", ROOMY)
                .service(4, 1.0, "kind = \"rlp\", window = 4", ROOMY)
        }));
    });
}
