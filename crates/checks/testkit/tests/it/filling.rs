//! Frames with several packets and with fragments, under every scheme: packets are delivered as sent and as each
//! scheme guarantees, the ledgers of both ends add up, and the exchange ends.

use std::collections::BTreeMap;

use crate::strategies::{Offer, cases, fates, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::{Live, Sealed};
use airlane_link::{Frame, FrameKind, ServiceLedger};
use airlane_testkit::{Pair, Reordering, Scripted, Setup, TestPacket};
use proptest::prelude::*;

/// A scheme and its guarantees: everything is delivered, in order, once.
#[derive(Clone, Copy, Debug)]
struct Scheme {
    scheme: &'static str,
    all: bool,
    in_order: bool,
    /// Each missing frame is detected once others follow.
    numbered: bool,
}

const fn reliable(scheme: &'static str) -> Scheme {
    Scheme {
        scheme,
        all: true,
        in_order: true,
        numbered: true,
    }
}

const fn partial(scheme: &'static str, in_order: bool) -> Scheme {
    Scheme {
        scheme,
        all: false,
        in_order,
        numbered: true,
    }
}

const SCHEMES: [Scheme; 14] = [
    Scheme {
        numbered: false,
        ..partial("kind = \"default\"", false)
    },
    reliable("kind = \"gbn\", timers = \"tight\", window = 8"),
    reliable("kind = \"sr\", timers = \"tight\", window = 16"),
    reliable("kind = \"sr-m1\", timers = \"tight\", window = 16"),
    reliable("kind = \"sr-m2\", timers = \"tight\", window = 16"),
    reliable(
        "kind = \"sr-m2\", timers = \"tight\", keepalives = 4, repeat-naks = true, \
         copies = { number = 2, after = \"16 ms\", share = 0.2, longest = \"100 B\" }",
    ),
    reliable("kind = \"sr-bitmap\", timers = \"tight\", window = 16"),
    reliable(
        "kind = \"gsm-rlp\", timers = \"tight\", window = 16, persistence = { polls = 100000 }",
    ),
    partial("kind = \"rlp\", timers = \"tight\", window = 16", true),
    partial("kind = \"rlp-oos\", timers = \"tight\", window = 16", false),
    Scheme {
        numbered: false,
        ..partial("kind = \"xor\", block = 3", false)
    },
    Scheme {
        numbered: false,
        ..partial("kind = \"xor-ad\", block = 3, silence = \"20 ms\"", false)
    },
    Scheme {
        numbered: false,
        ..partial("kind = \"rse\", block = 3, parity = 2", false)
    },
    Scheme {
        numbered: false,
        ..partial(
            "kind = \"rse-ad\", block = 3, timers = \"tight\", window = 9",
            false,
        )
    },
];

const SERVICE: u8 = 1;
const ROOMY: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";
const ENDS: Instant = Instant::from_nanos(600_000_000_000);

/// How packets are put into frames.
#[derive(Clone, Copy, Debug)]
struct Filling {
    together: Option<&'static str>,
    cut: Option<usize>,
}

const FILLINGS: [Filling; 5] = [
    Filling {
        together: Some("largest = \"300 B\""),
        cut: None,
    },
    Filling {
        together: Some("largest = \"1 kB\", wait = \"8 ms\""),
        cut: None,
    },
    Filling {
        together: None,
        cut: Some(150),
    },
    Filling {
        together: Some("largest = \"80 B\""),
        cut: Some(150),
    },
    Filling {
        together: Some("largest = \"80 B\", wait = \"3 ms\""),
        cut: Some(20),
    },
];

impl Filling {
    fn setup(self, scheme: &str, sealed: bool) -> Setup {
        let header = if sealed { Sealed } else { Live };
        let mut setup = Setup::new(header).service(SERVICE, 1.0, scheme, ROOMY);
        if let Some(aggregate) = self.together {
            setup = setup.together(aggregate);
        }
        if let Some(payload) = self.cut {
            setup = setup.cut(payload);
        }
        setup
    }
}

fn books(pair: &Pair<Scripted>) -> [ServiceLedger; 2] {
    [0, 1].map(|end| pair.ledger(end, SERVICE))
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    // Many small packets in bursts, so that they wait together.
    traffic(60, 1, 20).prop_map(|offers| {
        let small = |offer: &Offer| match offer.len % 3 {
            0 => offer.len,
            _ => 1 + offer.len % 90,
        };
        let all = offers.into_iter();
        all.map(|offer| Offer {
            service: SERVICE,
            len: small(&offer),
            ..offer
        })
        .collect()
    })
}

fn check(
    scheme: Scheme,
    filling: Filling,
    sealed: bool,
    offers: &[Offer],
    script: Vec<airlane_testkit::Fate>,
) {
    let mut pair = Pair::new(&filling.setup(scheme.scheme, sealed), Scripted::new(script));
    pair.keeps_journal = true;
    pair.early_calls = true;
    if !scheme.all {
        // Radio links keep the order that these sequence numbers cannot restore.
        pair.reordering = Reordering::None;
        pair.originals_in_order = true;
    }
    // A last packet at each end reveals earlier losses, at a time without further loss.
    let last = [0, 1].map(|end| Offer {
        end,
        service: SERVICE,
        len: 50,
        gap: Duration::ZERO,
    });
    let (mut lens, mut ids) = (BTreeMap::new(), [0u64; 2]);
    for offer in offers.iter().chain(&last) {
        lens.insert((offer.end, ids[offer.end]), offer.len);
        ids[offer.end] += 1;
    }
    let mut offered = play(&mut pair, offers);
    pair.run_until_quiet(ENDS);
    pair.adversary.end();
    for offer in last {
        let id = &mut offered[offer.end][usize::from(SERVICE)];
        pair.offer(offer.end, TestPacket::new(SERVICE, *id, offer.len));
        *id += 1;
    }
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.in_flight(), 0, "{scheme:?}");
    let books = books(&pair);
    for end in 0..2 {
        let (from, own, peer) = (1 - end, books[1 - end], books[end]);
        let sent = offered[from][usize::from(SERVICE)];
        let ids = pair.ids(end, SERVICE);
        for delivery in pair.delivered(end) {
            let packet = &delivery.packet;
            assert_eq!(
                lens.get(&(from, packet.id)),
                Some(&packet.len),
                "{packet:?}"
            );
        }
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "{scheme:?}: {ids:?}");
        if scheme.in_order {
            assert!(ids.is_sorted(), "{scheme:?}: {ids:?}");
        }
        if scheme.all {
            assert_eq!(ids.len() as u64, sent, "{scheme:?} {filling:?}");
            assert_eq!(peer.packets_incomplete, 0);
        }
        // The sender's ledger must be exact in packets.
        assert_eq!(own.packets_offered, sent);
        assert_eq!(own.packets_sent + own.packets_dropped(), sent, "{own:?}");
        assert_eq!(own.sent_bytes + own.dropped_bytes, own.offered_bytes);
        // The ledgers of both ends must agree in frames.
        let missing = own.originals_sent() as i64 - peer.originals_delivered() as i64;
        if scheme.all {
            assert_eq!(missing, 0, "{own:?} {peer:?}");
        } else if scheme.numbered {
            assert_eq!(
                missing, peer.residual_lost as i64,
                "{scheme:?} {own:?} {peer:?}"
            );
        } else {
            assert!(missing >= 0, "{own:?} {peer:?}");
        }
        assert_eq!(peer.malformed, 0);
        // Missing packets were in lost frames, or waited for their other fragments in vain.
        assert_eq!(peer.packets_delivered, ids.len() as u64);
        let ended = ids.len() as u64 + peer.packets_incomplete;
        assert!(ended <= sent, "{scheme:?} {peer:?}");
        if missing == 0 {
            assert_eq!(ended, sent, "{scheme:?} {filling:?} {peer:?}");
        }
    }
    let most = filling.cut.unwrap_or(1_000);
    for (_, _, frame) in &pair.journal {
        assert!(frame.payload_len() <= most, "{frame:?}");
        if frame.header.kind == FrameKind::Copy {
            assert!(frame.payload_len() <= 100, "longer than what is copied");
        }
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn every_scheme_keeps_its_contract_with_any_filling(
        scheme in 0..SCHEMES.len(),
        filling in 0..FILLINGS.len(),
        sealed: bool,
        offers in offers(),
        script in fates(150, 60),
    ) {
        check(SCHEMES[scheme], FILLINGS[filling], sealed, &offers, script);
    }
}

/// Waiting packets share frames, so there are fewer frames than packets; on an idle link each packet leaves at once.
#[test]
fn waiting_packets_share_frames_and_none_waits_to_be_joined() {
    let setup = FILLINGS[0].setup(SCHEMES[4].scheme, true);
    let mut pair = Pair::new(&setup, Scripted::new(vec![]));
    pair.keeps_journal = true;
    // 1000 B take 8 ms; packets offered meanwhile wait.
    pair.offer(0, TestPacket::new(SERVICE, 0, 1_000));
    for id in 1..=30 {
        pair.offer(0, TestPacket::new(SERVICE, id, 60));
    }
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.ids(1, SERVICE), (0..=30).collect::<Vec<_>>());
    let own = pair.ledger(0, SERVICE);
    // The first alone, the second alone as it was ready before the others came, and 29 x 61 B in frames of up to
    // 1000 B.
    assert_eq!((own.packets_sent, own.packets_joined), (31, 27), "{own:?}");
    assert_eq!(own.originals_sent(), 4);
    let before = pair.journal.len();
    pair.offer(0, TestPacket::new(SERVICE, 31, 60));
    assert_eq!(pair.journal.len(), before + 1, "it waits for nobody");
}

#[test]
fn an_aggregate_leaves_after_its_wait_or_when_full() {
    let setup = Filling {
        together: Some("largest = \"300 B\", wait = \"20 ms\""),
        cut: None,
    }
    .setup(SCHEMES[8].scheme, true);
    let mut pair = Pair::new(&setup, Scripted::new(vec![]));
    pair.keeps_journal = true;
    let frames = |pair: &Pair<Scripted>| {
        let data = pair.journal.iter();
        data.filter(|(_, _, frame)| frame.header.kind == FrameKind::Data)
            .count()
    };
    pair.offer(0, TestPacket::new(SERVICE, 0, 60));
    pair.run_for(Duration::from_millis(19));
    pair.offer(0, TestPacket::new(SERVICE, 1, 60));
    assert_eq!(frames(&pair), 0);
    pair.run_for(Duration::from_millis(2));
    assert_eq!(frames(&pair), 1, "both, when the first has waited");
    pair.run_for(Duration::from_millis(200));
    for id in 2..6 {
        pair.offer(0, TestPacket::new(SERVICE, id, 300));
    }
    assert_eq!(frames(&pair), 2, "three fill a frame");
    pair.run_for(Duration::from_millis(200));
    pair.offer(0, TestPacket::new(SERVICE, 6, 60));
    pair.offer(0, TestPacket::new(SERVICE, 7, 700));
    pair.run_for(Duration::from_millis(15));
    assert_eq!(
        pair.ids(1, SERVICE),
        (0..8).collect::<Vec<_>>(),
        "a large one waits for nobody"
    );
}

/// A packet with an abandoned fragment is not delivered, and is counted with its reason.
#[test]
fn a_packet_without_all_its_parts_is_dropped_and_counted() {
    let setup = Setup::new(Sealed)
        .service(SERVICE, 1.0, SCHEMES[0].scheme, ROOMY)
        .cut(254);
    let mut pair =
        Pair::new(
            &setup,
            |departure: airlane_testkit::FrameDeparture<'_>| match departure.ordinal {
                2 => airlane_testkit::Fate::Lose,
                _ => airlane_testkit::Fate::ARRIVE,
            },
        );
    for id in 0..3 {
        pair.offer(0, TestPacket::new(SERVICE, id, 1_000));
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.ids(1, SERVICE), [1, 2]);
    assert_eq!(
        pair.ledger(1, SERVICE).packets_incomplete,
        0,
        "it may still come"
    );
    pair.run_for(Duration::from_secs(10));
    let (own, peer) = (pair.ledger(0, SERVICE), pair.ledger(1, SERVICE));
    assert_eq!((own.packets_cut, own.fragments_sent), (3, 12), "{own:?}");
    assert_eq!((peer.fragments_received, peer.packets_reassembled), (11, 2));
    assert_eq!((peer.packets_incomplete, peer.residual_lost), (1, 1));
}

/// The sender's ledger counts the packets that a new epoch discards, however many frames carry them.
#[test]
fn a_new_epoch_counts_lost_packets_not_frames() {
    let nothing = |_: airlane_testkit::FrameDeparture<'_>| airlane_testkit::Fate::Lose;
    for (scheme, filling, packets, len) in [
        ("kind = \"sr-m2\"", FILLINGS[0], 41, 50),
        ("kind = \"sr-m2\"", FILLINGS[2], 3, 900),
        // Here one packet has left in part.
        ("kind = \"sr-m2\", window = 3", FILLINGS[2], 3, 900),
        ("kind = \"rlp\"", FILLINGS[2], 1, 900),
        ("kind = \"default\"", FILLINGS[2], 1, 900),
    ] {
        let mut pair = Pair::new(&filling.setup(scheme, false), nothing);
        for id in 0..packets {
            pair.offer(0, TestPacket::new(SERVICE, id, len));
        }
        let unreliable = !scheme.contains("sr-m2");
        let time = if unreliable { 2 } else { 100 };
        pair.run_for(Duration::from_millis(time));
        // Waiting packets are sent in the new epoch.
        let sent = pair.ledger(0, SERVICE).packets_sent;
        pair.reset();
        let books = pair.ledger(0, SERVICE);
        assert_eq!(sent < packets, scheme.contains("window = 3"), "{books:?}");
        assert_eq!(books.epoch_lost, sent, "{scheme} {books:?}");
        let bytes = books.epoch_lost_bytes;
        // Of a fragmented packet, the fragments that are unacknowledged or unsent.
        let most = sent * len as u64;
        assert!(
            bytes == most || unreliable && (1..most).contains(&bytes),
            "{scheme} {books:?}"
        );
    }
}

/// After a hole a window of frames may wait, each with many packets, and each of these takes a buffer if packets are
/// bytes: they are not all created at once when the hole is filled.
#[test]
fn a_filled_hole_unpacks_few_payloads_at_a_time() {
    let setup = Setup::new(Live)
        .service(SERVICE, 1.0, "kind = \"sr-m2\", window = 127", ROOMY)
        .together("largest = \"80 B\"");
    let (mut sender, mut receiver) = (setup.build(), setup.build());
    let mut now = Instant::ORIGIN;
    for id in 0..900 {
        sender.handle_packet(now, TestPacket::new(SERVICE, id, 20));
    }
    let mut frames = Vec::new();
    while frames.len() < 15 {
        match sender.poll_transmit(now) {
            // The first frame is never acknowledged, so it is retransmitted.
            Some(frame) if frame.header.kind == FrameKind::Data => frames.push(frame),
            Some(_) => {}
            None => now = sender.poll_timeout().expect("it has more"),
        }
        sender.handle_timeout(now);
    }
    let packets = |frame: &Frame<TestPacket>| TestPacket::all(frame.packet().unwrap()).len();
    let all: usize = frames.iter().map(packets).sum();
    let most = frames.iter().map(packets).max().unwrap();
    assert!(all > 300, "{all}");
    let first = frames.remove(0);
    for frame in frames.drain(..) {
        receiver.handle_frame(now, frame);
        assert_eq!(receiver.poll_deliver(), None);
    }
    receiver.handle_frame(now, first);
    for id in 0..all as u64 {
        let made = receiver.deliveries();
        assert!(made <= 64 + most + 15, "{made} packets of {all} wait");
        assert_eq!(receiver.poll_deliver().map(|packet| packet.id), Some(id));
    }
    assert_eq!(receiver.poll_deliver(), None);
}
