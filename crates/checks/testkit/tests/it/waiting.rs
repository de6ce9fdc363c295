//! Where packets wait before they can leave: nowhere, in the service, or at IP.

use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::Study;
use airlane_testkit::{Pair, RandomAdversary, Setup, TestPacket};

const NO_QUEUE: &str = "kind = \"none\"";

fn offer(pair: &mut Pair<RandomAdversary>, packets: u64) {
    for id in 0..packets {
        pair.offer(0, TestPacket::new(0, id, 1_000));
    }
}

/// Section 7.5: "when the window is full, new packets are dropped".
#[test]
fn without_a_queue_a_full_window_drops_and_counts() {
    let setup =
        Setup::new(Study)
            .unlimited()
            .service(0, 1.0, "kind = \"sr-m2\", window = 8", NO_QUEUE);
    let mut pair = Pair::new(&setup, RandomAdversary::losing(1, 0.0));
    offer(&mut pair, 20);
    let ledger = pair.ledger(0, 0);
    assert_eq!((ledger.packets_sent, ledger.dropped_window_full), (8, 12));
    assert!(pair.run_until_quiet(Instant::from_nanos(10_000_000_000)));
    assert_eq!(pair.ids(1, 0), (0..8).collect::<Vec<_>>());
}

/// Section 9.2: after a packet, the next one is accepted only after the nominal time.
#[test]
fn nominal_pacing_keeps_the_queue_at_ip() {
    let mut setup = Setup::new(Study)
        .unlimited()
        .service(0, 1.0, "kind = \"sr-m2\"", NO_QUEUE);
    setup.config.pacing = "20 packets".parse().ok();
    let mut pair = Pair::new(&setup, RandomAdversary::losing(1, 0.0));
    offer(&mut pair, 30);
    // One is sent, 20 wait, the rest is dropped and counted.
    let ledger = pair.ledger(0, 0);
    assert_eq!((ledger.packets_sent, ledger.dropped_queue_full), (1, 9));
    // 1000 B at 1 Mbit/s take 8 ms.
    pair.run_for(Duration::from_micros(7_999));
    assert_eq!(pair.ledger(0, 0).packets_sent, 1);
    pair.run_for(Duration::from_micros(2));
    assert_eq!(pair.ledger(0, 0).packets_sent, 2);
    assert!(pair.run_until_quiet(Instant::from_nanos(10_000_000_000)));
    assert_eq!(pair.ids(1, 0), (0..21).collect::<Vec<_>>());
}

/// A new epoch begins while a frame is being sent: waiting packets leave after it.
#[test]
fn waiting_packets_survive_a_new_epoch() {
    let queue = "kind = \"drop-tail\", limit = \"50 packets\"";
    let setup = Setup::new(Study).service(0, 1.0, "kind = \"default\"", queue);
    let mut pair = Pair::new(&setup, RandomAdversary::losing(1, 0.0));
    offer(&mut pair, 5);
    let waiting = 5 - pair.ledger(0, 0).packets_sent;
    assert!(waiting > 0);
    pair.run_for(Duration::from_millis(1));
    pair.reset();
    assert!(pair.run_until_quiet(Instant::from_nanos(10_000_000_000)));
    assert_eq!(pair.ids(1, 0), (5 - waiting..5).collect::<Vec<_>>());
}

/// Packets waiting at IP wait there and then use their service: they are visible, and sent or counted as dropped.
#[test]
fn packets_waiting_at_ip_are_in_the_ledger_of_their_service() {
    let queue = "kind = \"drop-tail\", limit = \"50 packets\"";
    let mut setup = Setup::new(Study)
        .service(0, 1.0, "kind = \"default\"", queue)
        .service(1, 1.0, "kind = \"sr-m2\"", queue);
    setup.config.pacing = "5000 packets".parse().ok();
    let mut pair = Pair::new(&setup, RandomAdversary::losing(1, 0.0));
    // 40 s of packets; those of service 1 come last.
    for id in 0..4_000 {
        pair.offer(0, TestPacket::new(0, id, 1_000));
    }
    for id in 0..1_000 {
        pair.offer(0, TestPacket::new(1, id, 1_000));
    }
    let status = |pair: &Pair<RandomAdversary>, number| {
        let mut services = pair.port(0).services();
        services
            .find(|service| service.number == number)
            .map(|service| (service.queue_packets, service.queue_bytes))
    };
    let (packets, bytes) = status(&pair, 0).expect("it is there");
    assert_eq!(packets as u64, 4_000 - pair.ledger(0, 0).packets_sent);
    assert_eq!(bytes, packets * 1_000);
    assert_eq!(status(&pair, 1), Some((1_000, 1_000_000)));
    pair.set_services(0, &setup.config.services[..1]);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.port(0).layout_of(1), None);
    let (_, books) = &pair.port(0).retired()[0];
    assert_eq!(books.packets_offered, 1_000);
    assert_eq!(
        books.packets_sent + books.packets_dropped(),
        1_000,
        "{books:?}"
    );
    assert_eq!(books.sent_bytes + books.dropped_bytes, books.offered_bytes);
}
