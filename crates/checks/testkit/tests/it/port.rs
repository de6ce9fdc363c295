//! Properties across services (docs/spec/multi-service.md, section 9.6) and across epochs.

use std::collections::{BTreeMap, BTreeSet};

use crate::strategies::{Offer, cases, fates, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::{Live, Study};
use airlane_link::{Frame, FrameKind, ServiceConfig};
use airlane_testkit::setup::service;
use airlane_testkit::{
    Adversary, Fate, FrameDeparture, Pair, RandomAdversary, Reordering, Scripted, Setup, TestPacket,
};
use proptest::prelude::*;

const ROOMY: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";
const SR: &str = "kind = \"sr-m2\", window = 50, timers = \"tight\"";
const RLP: &str = "kind = \"rlp\", window = 50, timers = \"tight\"";
const OOS: &str = "kind = \"rlp-oos\", window = 50, timers = \"tight\", retries = 1";
const RAW: &str = "kind = \"default\"";

/// One service of each scheme, all numbers shifted by one.
fn four(base: Setup) -> Setup {
    base.service(1, 0.4, SR, ROOMY)
        .service(2, 0.3, RLP, ROOMY)
        .service(3, 0.2, OOS, ROOMY)
        .service(4, 0.1, RAW, ROOMY)
}

/// Offers many packets of several lengths to several services of end 0, all at once.
fn flood<A: Adversary>(pair: &mut Pair<A>, services: std::ops::RangeInclusive<u8>, packets: u64) {
    for id in 0..packets {
        for service in services.clone() {
            let len = 1 + (id as usize * 131 + usize::from(service) * 57) % 1_000;
            pair.offer(0, TestPacket::new(service, id, len));
        }
    }
}

/// XYL-R-2: while services are backlogged, the bytes that each sends, headers, repairs and requests included, follow
/// its rate to within one frame each, whatever the others repair.
#[test]
fn bytes_on_the_link_follow_the_rates() {
    for (profile, loss) in [(Study, 0.0), (Live, 0.0), (Live, 0.2)] {
        let setup = Setup::new(profile)
            .service(
                1,
                0.4,
                "kind = \"sr-m2\", window = 127, timers = \"tight\"",
                ROOMY,
            )
            .service(2, 0.3, RLP, ROOMY)
            .service(3, 0.2, OOS, ROOMY)
            .service(4, 0.1, RAW, ROOMY);
        let mut pair = Pair::new(&setup, RandomAdversary::losing(3, loss));
        pair.keeps_journal = true;
        flood(&mut pair, 1..=4, 2_000);
        pair.run_for(Duration::from_secs(4));
        let rates = [f64::INFINITY, 0.4, 0.3, 0.2, 0.1];
        let longest = |s: usize| (1_000 + 20) as f64 / rates[s];
        for i in 1..=4 {
            for j in i + 1..=4 {
                let (mut sum, mut least, mut greatest) = (0.0f64, 0.0f64, 0.0f64);
                for (from, _, frame) in &pair.journal {
                    let s = usize::from(frame.header.service);
                    let served = pair.port(0).frame_len(frame) as f64 / rates[s];
                    match s {
                        _ if *from != 0 => {}
                        _ if s == i => sum += served,
                        _ if s == j => sum -= served,
                        _ => {}
                    }
                    least = least.min(sum);
                    greatest = greatest.max(sum);
                }
                let bound = longest(i) + longest(j);
                assert!(
                    greatest - least <= bound * (1.0 + 1e-9),
                    "{profile:?}, loss {loss}: services {i} and {j} apart by {} of {bound}",
                    greatest - least
                );
            }
        }
        let sent = pair.ledger(0, 4).packets_sent;
        assert!(
            (1..2_000).contains(&sent),
            "the flood must outlast the test"
        );
    }
}

/// A driver on a busy machine is always late: waiting frames then leave back to back, up to `late`, and the rate is
/// reached. Capacity unused while nothing waited is lost, except for `burst`.
#[test]
fn a_late_driver_catches_up_only_for_waiting_frames() {
    let second = Duration::from_secs(1);
    let begin = Instant::ORIGIN + second;
    let filled = || {
        let mut setup = Setup::new(Live)
            .rate("10 Mbit/s")
            .service(1, 1.0, RAW, ROOMY);
        setup.config.burst = Duration::from_millis(1);
        setup.config.late = Duration::from_millis(20);
        let mut port = setup.build();
        for id in 0..5_000 {
            port.handle_packet(begin, TestPacket::new(1, id, 1_000));
        }
        port
    };
    for (lateness_ms, kept) in [(0, 1.0), (5, 1.0), (19, 1.0), (40, 0.5)] {
        let mut port = filled();
        let (mut now, mut bytes) = (begin, 0);
        while now < begin + second {
            while let Some(frame) = port.poll_transmit(now) {
                bytes += port.frame_len(&frame);
            }
            now = port.poll_timeout().unwrap() + Duration::from_millis(lateness_ms);
        }
        let part = bytes as f64 * 8.0 / 10e6;
        assert!((part - kept).abs() < 0.03, "{lateness_ms} ms late: {part}");
    }
    // The link was idle for a second before.
    let mut port = filled();
    let at_once = std::iter::from_fn(|| port.poll_transmit(begin)).count();
    assert_eq!(at_once, 2, "of 0.8 ms each");
}

proptest! {
    #![proptest_config(cases(300))]

    /// XYL-R-3 and XYL-R-9: a waiting raw frame leaves the moment the link is free; with one service, exactly when it
    /// would on a plain link.
    #[test]
    fn the_link_is_never_idle_while_a_frame_waits(
        services in 1u8..=4,
        traffic in traffic(100, 4, 20),
    ) {
        let mut setup = Setup::new(Study);
        for number in 1..=4 {
            setup = setup.service(number, 0.1 * f64::from(number), RAW, ROOMY);
        }
        let mut pair = Pair::new(&setup, Scripted::new(vec![]));
        pair.keeps_journal = true;
        let mut arrivals = Vec::new();
        for (id, offer) in traffic.iter().enumerate() {
            let service = 1 + offer.service % services;
            arrivals.push((pair.now(), id as u64, offer.len));
            pair.offer(0, TestPacket::new(service, id as u64, offer.len));
            pair.run_for(offer.gap);
        }
        pair.run_for(Duration::from_secs(2));
        prop_assert_eq!(pair.journal.len(), arrivals.len());
        // When a link without services would start its k-th frame, if it chose the same one.
        let arrived: BTreeMap<u64, Instant> = arrivals.iter().map(|(t, id, _)| (*id, *t)).collect();
        let mut waiting: BTreeSet<(Instant, u64)> = arrivals.iter().map(|(t, id, _)| (*t, *id)).collect();
        let mut free = Instant::ORIGIN;
        for (k, (_, departed, frame)) in pair.journal.iter().enumerate() {
            let earliest = waiting.first().expect("as many as were offered").0;
            prop_assert_eq!(*departed, free.max(earliest), "frame {}", k);
            let packet = frame.packet().expect("raw frames carry packets");
            if services == 1 {
                prop_assert_eq!(packet.id, k as u64);
            }
            waiting.remove(&(arrived[&packet.id], packet.id));
            free = *departed + setup.config.rate.transmission_time(packet.len + 1);
        }
    }

    /// XYL-R-1: lost, duplicated or late frames of other services do not affect a service. The others are raw, so
    /// that only their arrivals change.
    #[test]
    fn services_are_isolated_from_each_other(
        scheme in prop::sample::select(vec![SR, RLP, OOS]),
        traffic in traffic(120, 3, 20),
        mine in fates(200, 100),
        others in fates(200, 100),
    ) {
        let setup = Setup::new(Live).service(1, 0.5, scheme, ROOMY).service(2, 0.5, RAW, ROOMY);
        let run = |others: &[Fate]| {
            let (mut mine, mut others) = (mine.iter(), others.iter());
            let mut pair = Pair::new(&setup, |departure: FrameDeparture<'_>| {
                let is_mine = departure.frame.header.service == 1;
                let fates = if is_mine { &mut mine } else { &mut others };
                fates.next().copied().unwrap_or(Fate::ARRIVE)
            });
            pair.keeps_journal = true;
            play(&mut pair, &traffic);
            pair.run_for(Duration::from_secs(3));
            let delivered = [0, 1].map(|end| {
                let mine = pair.delivered(end).iter().filter(|d| d.packet.service == 1);
                mine.map(|d| (d.at, d.packet.id)).collect::<Vec<_>>()
            });
            let sent: Vec<_> = pair.journal.iter().filter(|(.., f)| f.header.service == 1).cloned().collect();
            let ledgers = [pair.ledger(0, 1), pair.ledger(1, 1)];
            (delivered, sent, ledgers)
        };
        prop_assert_eq!(run(&others), run(&[]));
    }

    /// XYL-R-4: services are added and removed and change their rates; no packet that a service has accepted is lost
    /// by that, and only the timing of others changes.
    #[test]
    fn services_come_and_go_without_losing_packets(
        profile in prop::sample::select(vec![Study, Live]),
        lossy: bool,
        traffic in traffic(150, 5, 20),
        changes in prop::collection::vec((0u8..3, 2u8..=4, 0.05..3.0f64), 0..12),
        script in fates(400, 40),
    ) {
        let setup = four(Setup::new(profile));
        let script = if lossy { script } else { vec![] };
        let mut pair = Pair::new(&setup, Scripted::new(script));
        pair.reordering = if profile == Live { Reordering::Any } else { Reordering::None };
        pair.originals_in_order = profile == Study;
        // 2 and 4 are SR/M2 here, too: all packets of removed services must arrive.
        let schemes = [RAW, SR, SR, OOS, SR];
        let mut table = setup.config.services.clone();
        for (number, at) in [(2, 1), (4, 3)] {
            table[at] = service(number, 0.3, SR, ROOMY);
        }
        change(&mut pair, &table);
        while (0..2).any(|end| pair.port(end).services().any(|service| service.draining)) {
            prop_assert!(pair.next_event().is_some(), "an unused service goes in time");
            pair.step();
        }
        let mut exists = [true; 5];
        let mut taken: BTreeMap<(usize, u8), Vec<u64>> = BTreeMap::new();
        let every = traffic.len() / (changes.len() + 1) + 1;
        let mut changes = changes.into_iter();
        for (id, offer) in traffic.iter().enumerate() {
            let to = offer.service;
            if exists[usize::from(to)] {
                taken.entry((offer.end, to)).or_default().push(id as u64);
                pair.offer(offer.end, TestPacket::new(to, id as u64, offer.len));
            }
            pair.run_for(offer.gap);
            if id % every != every - 1 {
                continue;
            }
            let Some((what, number, rate)) = changes.next() else { continue };
            let there = &mut exists[usize::from(number)];
            if *there && what == 2 {
                let mut all = table.iter_mut();
                all.find(|service| service.number == number).expect("it is there").rate = rate;
            } else if *there {
                table.retain(|service| service.number != number);
                *there = false;
            } else if (0..2).all(|end| pair.port(end).layout_of(number).is_none()) {
                // Removed at both ends: it may be added again.
                table.push(service(number, rate, schemes[usize::from(number)], ROOMY));
                *there = true;
            }
            change(&mut pair, &table);
        }
        pair.adversary.end();
        pair.run_for(Duration::from_secs(60));
        for ((from, service), sent) in taken {
            let reliable = schemes[usize::from(service)] == SR || !lossy;
            let received = pair.ids(1 - from, service);
            if reliable {
                prop_assert_eq!(&received, &sent, "service {} from {}", service, from);
            }
        }
        // A service that was removed and not added again is gone, but its ledger is kept.
        for (number, exists) in exists.iter().enumerate() {
            for end in 0..2 {
                prop_assert_eq!(pair.port(end).layout_of(number as u8).is_some(), *exists, "{} at {}", number, end);
            }
        }
    }

    /// A new epoch: waiting packets stay, those in flight are lost and counted, and numbering restarts at both ends.
    /// Nothing is delivered twice.
    #[test]
    fn a_new_epoch_resets_everything(
        profile in prop::sample::select(vec![Study, Live]),
        bursts in prop::collection::vec(traffic(40, 5, 10), 1..5),
        script in fates(300, 40),
    ) {
        let setup = four(Setup::new(profile));
        let mut pair = Pair::new(&setup, Scripted::new(script));
        pair.reordering = if profile == Live { Reordering::Any } else { Reordering::None };
        pair.originals_in_order = true;
        let mut ids = [[0u64; 5]; 2];
        for burst in &bursts {
            for offer in burst {
                let id = &mut ids[offer.end][usize::from(offer.service)];
                pair.offer(offer.end, TestPacket::new(offer.service, *id, offer.len));
                *id += 1;
                pair.run_for(offer.gap);
            }
            pair.reset();
        }
        pair.adversary.end();
        for (end, ids) in ids.iter().enumerate() {
            for (service, id) in (0..).zip(ids) {
                pair.offer(end, TestPacket::new(service, *id, 10));
            }
        }
        pair.run_for(Duration::from_secs(60));
        for end in 0..2 {
            for service in 0..5u8 {
                let sender = pair.ledger(1 - end, service);
                let receiver = pair.ledger(end, service);
                let received = pair.ids(end, service);
                let distinct: BTreeSet<_> = received.iter().collect();
                prop_assert_eq!(sender.packets_offered, ids[1 - end][usize::from(service)] + 1);
                prop_assert_eq!(sender.packets_offered, sender.packets_sent + sender.packets_dropped());
                prop_assert_eq!(receiver.resyncs, 0);
                if matches!(service, 1..=3) {
                    prop_assert_eq!(distinct.len(), received.len(), "twice: {:?}", received);
                }
                if matches!(service, 1 | 2) {
                    prop_assert!(received.is_sorted(), "{:?}", received);
                }
                // The last packet arrived after the last epoch began, over a link without loss.
                prop_assert!(received.contains(&ids[1 - end][usize::from(service)]), "{}", service);
                if service == 1 {
                    // Sent and not delivered: lost with its epoch.
                    let missing = sender.packets_sent - received.len() as u64;
                    prop_assert!(missing <= sender.epoch_lost, "{} of {:?}", missing, sender);
                }
            }
        }
    }

    /// Live: repeated frames of this session, however old, cause no reset, and do not affect deliveries.
    #[test]
    fn old_frames_reset_nothing(
        traffic in traffic(120, 5, 10),
        script in fates(200, 40),
        again in prop::collection::vec((any::<prop::sample::Index>(), 0u64..30), 1..100),
    ) {
        let setup = four(Setup::new(Live));
        let mut pair = Pair::new(&setup, Scripted::new(script));
        pair.keeps_journal = true;
        let half = traffic.len() / 2;
        let mut offered = play(&mut pair, &traffic[..half]);
        for (i, (index, gap)) in again.iter().enumerate() {
            if !pair.journal.is_empty() {
                let (from, _, frame) = index.get(&pair.journal).clone();
                pair.inject(1 - from, frame);
            }
            if let Some(offer) = traffic.get(half + i) {
                let id = &mut offered[offer.end][usize::from(offer.service)];
                pair.offer(offer.end, TestPacket::new(offer.service, *id, offer.len));
                *id += 1;
            }
            pair.run_for(Duration::from_millis(*gap));
        }
        pair.adversary.end();
        for (end, offered) in offered.iter().enumerate() {
            for service in 1..=3 {
                let id = offered[usize::from(service)];
                pair.offer(end, TestPacket::new(service, id, 10));
            }
        }
        pair.run_for(Duration::from_secs(20));
        for end in 0..2 {
            let all = |service: u8| (0..=offered[1 - end][usize::from(service)]).collect::<Vec<_>>();
            prop_assert_eq!(pair.ids(end, 1), all(1));
            for service in [2, 3] {
                let ledger = pair.ledger(end, service);
                let received = pair.ids(end, service);
                let distinct: BTreeSet<_> = received.iter().copied().collect();
                prop_assert_eq!(distinct.len(), received.len(), "twice: {:?}", received);
                prop_assert!(service == 3 || received.is_sorted());
                prop_assert_eq!(ledger.resyncs, 0);
                // Each number is either delivered or counted as lost, once.
                let total = all(service).len() as u64;
                prop_assert_eq!(ledger.packets_delivered + ledger.residual_lost, total);
            }
        }
    }
}

/// Gives both ends another table of services.
fn change<A: Adversary>(pair: &mut Pair<A>, table: &[ServiceConfig]) {
    (0..2).for_each(|end| pair.set_services(end, table));
}

/// A service that the peer has removed is removed here as well, however much it still has to send, and reports it.
#[test]
fn a_removed_service_does_not_wait_for_a_silent_peer() {
    let setup = Setup::new(Live).service(1, 1.0, "kind = \"sr-m2\", window = 4", ROOMY);
    let mut pair = Pair::new(&setup, |_: FrameDeparture<'_>| Fate::ARRIVE);
    pair.set_services(0, &[]);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.port(0).layout_of(1), None);
    for id in 0..10 {
        pair.offer(1, TestPacket::new(1, id, 100));
    }
    pair.set_services(1, &[]);
    pair.run_for(Duration::from_secs(600));
    assert_eq!(pair.port(1).layout_of(1), None);
    let (name, books) = &pair.port(1).retired()[0];
    assert_eq!(name, "s1");
    let (sent, waited) = (books.packets_sent, books.dropped_window_full);
    assert_eq!((sent, books.epoch_lost, waited), (4, 4, 6));
}

/// A flood on the raw service gets no more than its share: the delay of voice stays low.
#[test]
fn a_flood_leaves_others_their_share() {
    let setup = Setup::new(Live)
        .service(1, 0.2, OOS, ROOMY)
        .service(2, 0.8, RAW, ROOMY);
    let mut pair = Pair::new(&setup, |_: FrameDeparture<'_>| Fate::ARRIVE);
    flood(&mut pair, 2..=2, 1_000);
    for id in 0..50 {
        // 100 B per 20 ms are 45 kbit/s with headers, of a share of 200 kbit/s.
        pair.offer(0, TestPacket::new(1, id, 100));
        pair.run_for(Duration::from_millis(20));
    }
    let voice: Vec<_> = pair
        .delivered(1)
        .iter()
        .filter(|d| d.packet.service == 1)
        .collect();
    assert!(voice.len() >= 49, "{}", voice.len());
    for delivery in voice {
        let offered = Duration::from_millis(20 * delivery.packet.id);
        let delay = delivery.at.saturating_since(Instant::ORIGIN + offered);
        // 5 ms of propagation, and at most two long frames and its own on the link.
        assert!(delay < Duration::from_millis(5 + 3 * 9), "{delay}");
    }
}

#[test]
fn frames_of_unknown_services_are_discarded() {
    let mut pair = Pair::new(&four(Setup::new(Live)), |_: FrameDeparture<'_>| {
        Fate::ARRIVE
    });
    let mut header = airlane_link::Header::new(FrameKind::Data, 0);
    header.service = 9;
    let payload = Some(TestPacket::new(9, 0, 10));
    pair.inject(1, Frame::new(header, payload));
    assert!(pair.delivered(1).is_empty());
}

#[test]
fn traffic_without_a_rule_gets_the_raw_service() {
    let mut pair = Pair::new(&four(Setup::new(Live)), |_: FrameDeparture<'_>| {
        Fate::ARRIVE
    });
    let offer = |service| Offer {
        end: 0,
        service,
        len: 10,
        gap: Duration::ZERO,
    };
    play(&mut pair, &[offer(7), offer(1), offer(7)]);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.ledger(1, 0).packets_delivered, 2);
    assert_eq!(pair.ledger(1, 1).packets_delivered, 1);
}
