use proptest::prelude::*;

use super::Behaviour::{Call, File, Interactive, Paced, Page, Video};
use super::*;
use crate::flow::UDP;
use crate::sample;

fn flow(protocol: u8, port: u16) -> FlowKey {
    sample::flow(protocol, port, 40_000)
}

/// A flow under observation, and the time.
struct Watched {
    conduct: Conduct,
    protocol: u8,
    now: u64,
}

impl Watched {
    fn new(protocol: u8, port: u16) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            conduct: Conduct::new(now, &flow(protocol, port)),
            protocol,
            now: 1_000_000,
        }
    }

    /// Adds a packet this many microseconds after the previous one.
    fn add(&mut self, gap_us: u64, way: Way, len: usize, payload: &[u8]) -> Behaviour {
        self.now += gap_us;
        let now = Instant::from_nanos(self.now * 1_000);
        self.conduct.add(now, self.protocol, way, len, || payload)
    }

    fn sent(&mut self, gap_ms: u64, len: usize) -> Behaviour {
        self.add(gap_ms * 1_000, Way::Sent, len, &[])
    }

    fn received(&mut self, gap_ms: u64, len: usize) -> Behaviour {
        self.add(gap_ms * 1_000, Way::Received, len, &[])
    }
}

#[test]
fn small_packets_at_even_gaps_both_ways_are_a_call() {
    let mut call = Watched::new(UDP, 7_000);
    let judged: Vec<_> = (0..500)
        .map(|n| {
            call.received(7, 90 + n % 60);
            call.sent(13, 200)
        })
        .collect();
    let first = judged.iter().position(|b| *b == Call).unwrap();
    assert!(first < 20, "{first}");
    assert!(judged[first..].iter().all(|b| *b == Call));
    // It stays a call during silence with comfort noise.
    assert!((0..50).all(|_| call.sent(400, 40) == Call));
}

/// A transfer whose first window leaves in volleys of two, and which is ACK-clocked from then on.
fn transfer(protocol: u8, volley_us: u64) -> Vec<Behaviour> {
    let mut flow = Watched::new(protocol, 443);
    flow.received(0, 60);
    let mut judged = Vec::new();
    for n in 0..10 {
        let gap = if n % 2 == 0 { volley_us } else { 20 };
        judged.push(flow.add(gap, Way::Sent, 1_460, &[]));
    }
    flow.received(150, 60);
    for n in 0..800 {
        judged.push(flow.add(600, Way::Sent, 1_460, &[]));
        if n % 2 == 0 {
            flow.add(10, Way::Received, 60, &[]);
        }
    }
    judged
}

#[test]
fn a_paced_first_window_makes_a_paced_file_and_a_burst_does_not() {
    let paced = transfer(TCP, 10_400);
    let first = paced.iter().position(|b| *b == Paced).unwrap();
    assert!(paced[..first].iter().all(|b| *b == Page), "a page at first");
    assert!((40..50).contains(&first), "{first}");
    assert!(paced[first..].iter().all(|b| *b == Paced));
    for (protocol, volley_us) in [(TCP, 20), (SCTP, 10_400)] {
        let judged = transfer(protocol, volley_us);
        assert!(judged.iter().all(|b| [Page, File].contains(b)));
        assert_eq!(judged.last(), Some(&File));
    }
}

#[test]
fn a_game_is_not_a_call() {
    let mut game = Watched::new(UDP, 27_015);
    // It sends 64 commands per second and receives as many states.
    for n in 0..3_000 {
        assert_eq!(game.sent(8, 80 + n % 30), Interactive);
        assert_eq!(
            game.add(7_600, Way::Received, 120 + n % 200, &[]),
            Interactive
        );
    }
    // The gaps are a codec's, but they differ between the directions.
    let mut game = Watched::new(UDP, 27_016);
    for n in 0..3_000 {
        assert_eq!(game.sent(20, 80), Interactive);
        if n % 3 == 0 {
            assert_eq!(game.received(0, 150), Interactive);
        }
    }
}

#[test]
fn a_transfer_is_a_page_until_it_grows_and_again_after_a_pause() {
    for (protocol, port) in [(TCP, 443), (UDP, 443), (UDP, 9_999)] {
        let mut file = Watched::new(protocol, port);
        let judged: Vec<_> = (0..2_000)
            .map(|_| {
                file.received(0, 52);
                file.sent(1, 1_400)
            })
            .collect();
        let first = judged.iter().position(|b| *b == File).unwrap();
        assert!((700..760).contains(&first), "{first}");
        assert!(judged[first..].iter().all(|b| *b == File));
        assert!(judged[..first].iter().all(|b| *b == Page));
        assert_eq!(file.received(0, 52), File, "its acknowledgments go with it");
        assert_eq!(file.sent(1_500, 1_400), Page);
    }
}

#[test]
fn keystrokes_are_interactive_and_what_they_print_is_a_page() {
    let mut ssh = Watched::new(TCP, 22);
    assert!((0..5).all(|_| ssh.sent(5, 1_400) == Page));
    let typed: Vec<_> = (0..40).map(|_| ssh.sent(150, 88)).collect();
    assert!(typed[15..].iter().all(|b| *b == Interactive));
    assert_eq!(ssh.received(20, 1_400), Page);
    // Acknowledgments alone do not count as keystrokes.
    for _ in 0..50 {
        ssh.received(1, 1_400);
        assert_eq!(ssh.sent(1, 52), Page);
    }
}

#[test]
fn large_even_packets_without_answers_are_video() {
    let mut video = Watched::new(UDP, 6_000);
    let judged: Vec<_> = (0..2_000).map(|_| video.sent(5, 1_344)).collect();
    assert!(judged[130..].iter().all(|b| *b == Video));
    // The receiver reports now and then.
    for _ in 0..10 {
        assert!((0..200).all(|_| video.sent(5, 1_344) == Video));
        video.received(0, 80);
    }
}

fn rtp(number: u16) -> [u8; 12] {
    let [high, low] = number.to_be_bytes();
    [0x80, 96, high, low, 0, 0, 0, 0, 1, 2, 3, 4]
}

#[test]
fn rtp_is_recognised_by_its_numbers() {
    let mut call = Watched::new(UDP, 7_000);
    for n in 0..60u16 {
        let judged = call.add(33_000, Way::Sent, 120, &rtp(n));
        assert!(n < 2 || judged == Call, "{n}: {judged:?}");
    }
    let mut video = Watched::new(UDP, 7_002);
    for n in 0..60u16 {
        let judged = video.add(3_000, Way::Sent, 1_200, &rtp(n));
        assert!(n < 2 || judged == Video, "{n}: {judged:?}");
    }
    // These packets have the same bits, but their numbers are not consecutive.
    let mut noise = Watched::new(UDP, 7_004);
    for n in 0..60u16 {
        noise.add(3_000, Way::Sent, 1_200, &rtp(n * 1_000));
    }
    assert_eq!(noise.conduct.sign, None);
}

#[test]
fn names_are_interactive_whatever_their_length() {
    let mut names = Watched::new(UDP, 53);
    assert_eq!(names.sent(0, 70), Interactive);
    assert_eq!(names.received(20, 1_260), Interactive);
}

proptest! {
    /// Arbitrary packets at arbitrary times.
    #[test]
    fn any_packets_are_classified_without_panic(
        protocol in prop::sample::select(vec![TCP, UDP, 1, 50, 132, 255]),
        port: u16,
        packets in prop::collection::vec(
            (any::<u64>(), any::<bool>(), any::<usize>(), prop::collection::vec(any::<u8>(), 0..40)), 0..300,
        ),
    ) {
        let flow = flow(protocol, port);
        let mut conduct = Conduct::new(Instant::from_nanos(0), &flow);
        for (at, sent, len, payload) in packets {
            let way = if sent { Way::Sent } else { Way::Received };
            conduct.add(Instant::from_nanos(at), protocol, way, len, || &payload);
            prop_assert!(conduct.why(protocol).ends_with('.'));
        }
    }
}
