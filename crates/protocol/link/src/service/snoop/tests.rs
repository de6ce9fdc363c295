use std::rc::Rc;

use airlane_base::Rate;
use proptest::prelude::*;

use super::connection::CACHE;
use super::*;
use crate::context::Output;
use crate::flow::{Lane, TCP, TcpView};
use crate::ledger::ServiceLedger;
use crate::sample;
use crate::wire::{Codec, HeaderProfile};

/// A segment to the wireless host, or an acknowledgment from it; all clones share one count.
#[derive(Clone, Debug)]
struct Segment {
    port: u16,
    down: bool,
    view: TcpView,
    lost: bool,
    _copies: Rc<()>,
}

sample::payload!(Segment, segment => segment.view.end.wrapping_sub(segment.view.seq) as usize + 40);

impl crate::pack::Divisible for Segment {}

impl Packet for Segment {
    fn flow(&self) -> FlowKey {
        let down = sample::flow(TCP, self.port, 80);
        if self.down { down } else { down.reversed() }
    }

    fn tcp(&self) -> Option<TcpView> {
        Some(self.view)
    }

    fn mark_lost(&mut self) {
        self.lost = true;
    }
}

struct Base {
    snoop: Snoop<Segment>,
    ledger: ServiceLedger,
    out: Output<Segment>,
    now: Instant,
    copies: Rc<()>,
}

const LEN: u32 = 100;

impl Base {
    fn new() -> Self {
        Self::with(SnoopVariant::Standard)
    }

    fn with(variant: SnoopVariant) -> Self {
        Self::told(SnoopConfig {
            variant,
            ..SnoopConfig::new(BaseStation::Here)
        })
    }

    fn told(config: SnoopConfig) -> Self {
        let facts = PortFacts {
            codec: Codec::new(HeaderProfile::Live),
            rate: Rate::from_bps(1_000_000).unwrap(),
            delay: Duration::from_millis(1),
            max_payload: 1000,
            frame_overhead: 0,
        };
        Self {
            snoop: Snoop::new(&config, &facts),
            ledger: ServiceLedger::default(),
            out: Output::default(),
            now: Instant::ORIGIN,
            copies: Rc::new(()),
        }
    }

    fn segment(&self, port: u16, seq: u32, end: u32, ack: Option<u32>) -> Segment {
        Segment {
            port,
            down: ack.is_none(),
            view: TcpView {
                connection: 0,
                endpoints: 0,
                seq,
                end,
                ack,
                window: 1000,
                block: None,
                syn: false,
                rst: false,
            },
            lost: false,
            _copies: Rc::clone(&self.copies),
        }
    }

    fn poll(&mut self, mut packet: Option<Segment>) -> Option<Frame<Segment>> {
        let mut cx = Context::new(self.now, &mut self.out, &mut self.ledger);
        self.snoop.poll_any(&mut cx, &mut packet, Lane::default())
    }

    fn send(&mut self, segment: Segment) {
        let frame = self.poll(Some(segment)).unwrap();
        assert_eq!(frame.header.kind, FrameKind::Data);
    }

    /// A segment with this number.
    fn data(&mut self, seq: u32) {
        self.send(self.segment(1, seq, seq.wrapping_add(LEN), None));
    }

    fn receive(&mut self, packet: Segment) -> bool {
        let before = self.out.payloads.len();
        let frame = self.snoop.raw.frame(FrameKind::Data, packet);
        let mut cx = Context::new(self.now, &mut self.out, &mut self.ledger);
        self.snoop.handle_frame(&mut cx, frame);
        self.out.payloads.len() > before
    }

    /// Whether a pure acknowledgment is forwarded to the sender.
    fn ack(&mut self, ack: u32) -> bool {
        self.receive(self.segment(1, 7, 7, Some(ack)))
    }

    /// Numbers of the segments that are retransmitted now.
    fn repairs(&mut self) -> Vec<u32> {
        let mut repairs = Vec::new();
        while let Some(frame) = self.poll(None) {
            assert_eq!(frame.header.kind, FrameKind::Retransmission);
            repairs.push(frame.into_packet().unwrap().view.seq);
        }
        repairs
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = Scheme::<Segment>::poll_timeout(&self.snoop).filter(|t| *t <= until) {
            self.now = self.now.max(due);
            let mut cx = Context::new(self.now, &mut self.out, &mut self.ledger);
            self.snoop.handle_timeout(&mut cx);
            let next = Scheme::<Segment>::poll_timeout(&self.snoop);
            assert!(next.is_none_or(|next| next > self.now));
        }
        self.now = until;
    }

    fn copies(&self) -> usize {
        Rc::strong_count(&self.copies) - 1 - self.out.payloads.len()
    }
}

/// Initial sequence numbers: zero, and one near the wrap.
const STARTS: [u32; 2] = [0, u32::MAX - 250];

fn at(start: u32, n: u32) -> u32 {
    start.wrapping_add(n * LEN)
}

#[test]
fn a_loss_after_the_base_station_never_reaches_the_sender() {
    for start in STARTS {
        let mut base = Base::new();
        (0..8).for_each(|n| base.data(at(start, n)));
        assert!(base.ack(at(start, 1)));
        // Segment 1 was lost: 2 to 7 cause six duplicates. The first is forwarded, the second triggers the
        // repair, and the next four are expected.
        assert!(base.ack(at(start, 1)));
        assert!(base.repairs().is_empty());
        assert!(!base.ack(at(start, 1)));
        assert_eq!(base.repairs(), [at(start, 1)]);
        for _ in 0..4 {
            assert!(!base.ack(at(start, 1)));
        }
        assert!(base.repairs().is_empty());
        assert!(base.ack(at(start, 8)));
        assert_eq!((base.ledger.suppressed_acks, base.copies()), (5, 0));
        assert_eq!(base.ledger.suppressed_bytes, 5 * 40);
    }
}

#[test]
fn a_repair_that_is_lost_too_comes_again_by_the_timer() {
    let mut base = Base::new();
    (0..3).for_each(|n| base.data(at(0, n)));
    assert!(base.ack(0) && !base.ack(0));
    assert_eq!(base.repairs(), [0]);
    // From srtt 100 ms and rttvar 250 ms: 1.1 s, counted from the first segment.
    base.wait(Duration::from_millis(1_099));
    assert!(base.repairs().is_empty());
    base.wait(Duration::from_millis(1));
    assert_eq!(base.repairs(), [0]);
    assert_eq!(base.ledger.timeouts, 1);
    // At most ten times, and then duplicates are forwarded.
    for _ in 0..20 {
        base.wait(Duration::from_secs(2));
        base.repairs();
    }
    assert_eq!(base.ledger.timeouts, 9);
    assert!(base.ack(0) && base.ack(0) && base.ack(0));
}

#[test]
fn the_timeout_follows_the_round_trip() {
    let mut base = Base::new();
    for n in 0..200 {
        base.data(at(0, n));
        base.wait(Duration::from_millis(30));
        assert!(base.ack(at(0, n + 1)));
    }
    base.data(at(0, 200));
    // srtt + 4 rttvar is below the minimum timeout by now.
    base.wait(Duration::from_millis(100));
    assert_eq!(base.repairs(), [at(0, 200)]);
}

/// Segments after a hole are acknowledged when it is filled, however soon they arrived: if the timer learned
/// from that, a burst of losses would delay the next repairs by seconds.
#[test]
fn a_segment_held_by_a_hole_gives_no_round_trip_sample() {
    let mut base = Base::new();
    for n in 0..200 {
        base.data(at(0, n));
        base.wait(Duration::from_millis(30));
        assert!(base.ack(at(0, n + 1)));
    }
    // 200 is lost, and its repair is late.
    (200..210).for_each(|n| base.data(at(0, n)));
    base.wait(Duration::from_millis(30));
    (0..9).for_each(|_| _ = base.ack(at(0, 200)));
    assert_eq!(base.repairs(), [at(0, 200)]);
    base.wait(Duration::from_millis(60));
    assert!(base.ack(at(0, 210)));
    base.data(at(0, 210));
    base.wait(Duration::from_millis(100));
    assert_eq!(base.repairs(), [at(0, 210)]);
}

#[test]
fn network_losses_are_left_to_the_sender() {
    let mut base = Base::new();
    base.data(0);
    // Segment 1 never arrived here.
    (2..6).for_each(|n| base.data(at(0, n)));
    assert!(base.ack(at(0, 1)));
    assert!((0..4).all(|_| base.ack(at(0, 1))));
    assert!(base.repairs().is_empty());
    // The sender's retransmission is lost on the radio link: it relies on duplicates of its own.
    base.data(at(0, 1));
    assert!((0..4).all(|_| base.ack(at(0, 1))));
    assert!(base.repairs().is_empty());
    // The same holds for a cached segment that the sender retransmits.
    let mut base = Base::new();
    (0..6).for_each(|n| base.data(at(0, n)));
    base.data(0);
    assert!((0..4).all(|_| base.ack(0)));
    assert!(base.repairs().is_empty());
}

#[test]
fn acknowledgments_with_new_information_are_not_duplicates() {
    let mut base = Base::new();
    (0..6).for_each(|n| base.data(at(0, n)));
    assert!(base.ack(0));
    let mut wider = base.segment(1, 7, 7, Some(0));
    wider.view.window = 2000;
    assert!(base.receive(wider));
    // One acknowledgment carries data.
    let with_data = base.segment(1, 7, 70, Some(0));
    assert!(base.receive(with_data));
    assert!(base.repairs().is_empty());
    // Old ones are forwarded, and other connections are not affected.
    assert!(base.ack(at(0, 3)) && base.ack(at(0, 2)));
    let other = base.segment(2, 7, 7, Some(0));
    assert!((0..5).all(|_| base.receive(other.clone())));
}

#[test]
fn a_new_connection_with_old_ports_begins_anew() {
    let mut base = Base::new();
    (0..6).for_each(|n| base.data(at(0, n)));
    let mut syn = base.segment(1, 5_000, 5_001, None);
    syn.view.syn = true;
    base.send(syn);
    assert_eq!(base.copies(), 0);
    (0..4).for_each(|n| base.data(at(5_001, n)));
    assert!(base.ack(5_001), "the first duplicate");
    assert!(!base.ack(5_001));
    assert_eq!(base.repairs(), [5_001]);
    let mut reset = base.segment(1, at(5_001, 4), at(5_001, 4), None);
    reset.view.rst = true;
    base.send(reset);
    assert_eq!(base.copies(), 0);
}

/// The first segment of one connection is lost while another one continues. It is repaired locally only where
/// the agent distinguishes the two.
#[test]
fn connections_of_a_host_pair_share_state_only_if_configured() {
    for (variant, repaired) in [(SnoopVariant::Standard, true), (SnoopVariant::Ns2, false)] {
        let mut base = Base::with(variant);
        base.send(base.segment(2, 0, LEN, None));
        for n in 0..8 {
            base.data(n * LEN);
            base.ack(n * LEN);
        }
        base.wait(Duration::from_secs(3));
        assert_eq!(base.repairs().contains(&0), repaired);
    }
}

/// Segments numbered as in simulations, for ns-2's rules.
fn simulated(segments: u32) -> Base {
    let mut base = Base::with(SnoopVariant::Ns2);
    (0..segments).for_each(|n| base.send(base.segment(1, n, n + 1, None)));
    base
}

#[test]
fn ns2_repairs_at_every_second_duplicate_and_only_once_by_them() {
    let mut base = simulated(8);
    assert!(base.ack(1), "the first segment has come");
    assert!(base.ack(1), "the first duplicate goes on");
    assert!(!base.ack(1), "the second one asks for the segment");
    assert_eq!(base.repairs(), [1]);
    // Seven segments are cached: five more duplicates are explained.
    assert!((0..5).all(|_| !base.ack(1)));
    assert!(base.ack(1) && base.ack(1), "it has been repaired once");
    assert!(base.repairs().is_empty());
    base.wait(Duration::from_secs(3));
    assert_eq!(base.repairs(), [1], "the timer may do it again");
}

#[test]
fn ns2_does_not_begin_its_count_anew_with_an_acknowledgment() {
    let mut base = simulated(8);
    base.ack(1);
    assert!(base.ack(1), "the first duplicate of this segment goes on");
    assert!(base.ack(3), "new");
    assert!(!base.ack(3), "and counts for the next hole");
    assert_eq!(base.repairs(), [3]);
}

/// Otherwise the next repair would be late if the last one's own repair made the round trip long.
#[test]
fn ns2_sets_the_next_timer_before_it_measures() {
    let mut base = simulated(2);
    base.wait(Duration::from_millis(1_000));
    assert!(base.ack(1));
    // From srtt 100 ms and rttvar 250 ms; with the second just measured it would be 1.8 s.
    base.wait(Duration::from_millis(1_099));
    assert!(base.repairs().is_empty());
    base.wait(Duration::from_millis(1));
    assert_eq!(base.repairs(), [1]);
}

#[test]
fn ns2_waits_for_the_segment_asked_for() {
    let mut base = simulated(3);
    // Another connection of the same hosts has been acknowledged further; the segment that it asks for is not
    // cached.
    base.ack(1);
    base.send(base.segment(2, 5, 6, None));
    base.ack(5);
    base.send(base.segment(2, 7, 8, None));
    base.ack(6);
    base.wait(Duration::from_secs(10));
    assert!(base.repairs().is_empty());
}

/// Segments 0 to 3 on the first pair of endpoints; then a second connection on the given pair loses its first
/// segment, and duplicates ask for it. Returns whether it is repaired, and how often a state was cleared.
fn second_connection(variant: SnoopVariant, endpoints: u32) -> (bool, u64) {
    let mut base = Base::with(variant);
    let on = |base: &Base, endpoints: u32, seq: u32, ack: Option<u32>| {
        let mut segment = base.segment(1, seq, seq + u32::from(ack.is_none()), ack);
        segment.view.endpoints = endpoints;
        segment
    };
    for n in 0..4 {
        base.send(on(&base, 0, n, None));
        assert!(base.receive(on(&base, 0, 0, Some(n + 1))));
    }
    for n in 0..3 {
        base.send(on(&base, endpoints, n, None));
    }
    base.receive(on(&base, endpoints, 0, Some(1)));
    base.receive(on(&base, endpoints, 0, Some(1)));
    base.receive(on(&base, endpoints, 0, Some(1)));
    let repaired = !base.repairs().is_empty();
    let cleared = base.snoop.counts().iter().map(|row| row.cleared).sum();
    (repaired, cleared)
}

#[test]
fn the_state_left_by_a_connection_is_as_in_the_release() {
    use SnoopVariant::{Ns2, Ns2Agents, Ns2Cleared, Ns2Connections};
    for (variant, same, other) in [
        (Ns2, (false, 0), (false, 0)),
        (Ns2Agents, (false, 0), (true, 0)),
        (Ns2Cleared, (true, 2), (true, 2)),
        (Ns2Connections, (true, 2), (true, 2)),
    ] {
        assert_eq!(second_connection(variant, 0), same, "{variant:?}");
        assert_eq!(second_connection(variant, 1), other, "{variant:?}");
    }
}

#[test]
fn every_segment_and_acknowledgment_is_counted_by_outcome() {
    let mut base = simulated(8);
    base.ack(1);
    for _ in 0..4 {
        base.ack(1);
    }
    assert_eq!(base.repairs(), [1]);
    base.send(base.segment(1, 0, 1, None));
    base.ack(0);
    base.wait(Duration::from_secs(3));
    assert_eq!(base.repairs(), [1], "the timer");
    let [row] = base.snoop.counts() else {
        panic!("two hosts and one port");
    };
    let expected = SnoopCounts {
        hosts: row.hosts,
        port: row.port,
        segments: 9,
        not_kept_acknowledged: 1,
        acks_below: 1,
        duplicates_passed: 1,
        duplicates_suppressed: 3,
        repairs_by_duplicates: 1,
        repairs_by_timer: 1,
        ..SnoopCounts::default()
    };
    assert_eq!(*row, expected);
}

/// Hosts have any number of applications; the number of rows is bounded.
#[test]
fn counts_are_bounded_and_lose_nothing() {
    let mut base = Base::new();
    for port in 1..=100 {
        base.send(base.segment(port, 0, LEN, None));
    }
    let rows = base.snoop.counts();
    assert_eq!(rows.len(), 32);
    assert_eq!(rows.iter().map(|row| row.segments).sum::<u64>(), 100);
    assert!(rows[31].hosts.is_none() && rows[31].segments == 69);
}

#[test]
fn memory_is_bounded_and_silence_frees_it() {
    let mut base = Base::new();
    for n in 0..2 * CACHE as u32 {
        for port in 0..=CONNECTIONS as u16 + 50 {
            base.now += Duration::from_nanos(1);
            base.send(base.segment(port, at(0, n), at(0, n + 1), None));
            assert!(base.copies() <= CONNECTIONS * CACHE);
        }
    }
    let mut quiet = Base::new();
    (0..2 * CACHE as u32).for_each(|n| quiet.data(at(0, n)));
    assert_eq!(quiet.copies(), CACHE);
    quiet.wait(SILENCE + Duration::from_secs(2));
    quiet.repairs();
    assert_eq!(quiet.copies(), 0);
    assert_eq!(Scheme::<Segment>::poll_timeout(&quiet.snoop), None);
}

proptest! {
    /// For all sequences of segments and acknowledgments, near each other and across the wrap: no new
    /// acknowledgment is withheld, nor one whose segment is not cached, and every repair is a segment that
    /// was sent and not acknowledged.
    #[test]
    fn no_new_acknowledgment_is_withheld(
        start in prop::sample::select(STARTS.to_vec()),
        steps in prop::collection::vec((0..12u32, 1..4u32, 0..3u8, 0..300u64), 0..200),
    ) {
        let mut base = Base::new();
        let (mut acked, mut sent) = (0, std::collections::BTreeSet::new());
        base.data(start);
        sent.insert(0);
        for (n, len, what, ms) in steps {
            match what {
                0 => {
                    base.send(base.segment(1, at(start, n), at(start, n + len), None));
                    sent.insert(n);
                }
                1 => {
                    let passed = base.ack(at(start, n));
                    prop_assert!(passed || n == acked, "{} after {}", n, acked);
                    acked = acked.max(n);
                }
                _ => base.wait(Duration::from_millis(ms)),
            }
            for seq in base.repairs() {
                let n = seq.wrapping_sub(start) / LEN;
                prop_assert!(sent.contains(&n));
                prop_assert!(n + 4 > acked, "{} is acknowledged up to {}", n, acked);
            }
        }
    }
}

impl Base {
    /// Whether an acknowledgment that names one more segment is forwarded to the sender.
    fn smart_ack(&mut self, ack: u32, named: u32) -> bool {
        let mut packet = self.segment(1, 7, 7, Some(ack));
        packet.view.block = Some([named, named.wrapping_add(LEN)]);
        self.receive(packet)
    }
}

/// Balakrishnan et al. 1997, section 3: LL is the same agent without suppression.
#[test]
fn without_suppression_the_segment_is_repaired_and_every_duplicate_goes_on() {
    let mut base = Base::told(SnoopConfig {
        suppress: false,
        ..SnoopConfig::new(BaseStation::Here)
    });
    (0..5).for_each(|n| base.data(at(0, n)));
    for _ in 0..3 {
        assert!(base.ack(0));
    }
    assert_eq!(base.repairs(), [0]);
    assert_eq!(base.ledger.suppressed_acks, 0);
    let counts = base.snoop.counts()[0];
    assert_eq!(
        (counts.duplicates_passed, counts.duplicates_suppressed),
        (3, 0)
    );
}

/// Two of five segments are lost: the first acknowledgment that names a segment shows both at once.
#[test]
fn smart_repairs_all_holes_at_the_first_duplicate_and_each_once_in_a_round_trip() {
    for (start, suppress) in STARTS.into_iter().flat_map(|s| [(s, true), (s, false)]) {
        let mut base = Base::told(SnoopConfig {
            suppress,
            detect: SnoopDetection::Smart,
            ..SnoopConfig::new(BaseStation::Here)
        });
        (0..5).for_each(|n| base.data(at(start, n)));
        assert!(
            base.smart_ack(start, at(start, 2)),
            "the first duplicate goes on"
        );
        assert_eq!(base.repairs(), [start, at(start, 1)]);
        assert_eq!(base.smart_ack(start, at(start, 3)), !suppress);
        assert_eq!(base.smart_ack(start, at(start, 4)), !suppress);
        assert!(base.repairs().is_empty(), "a round trip has not passed");
        // The first repair is lost as well, and the acknowledgment of the second shows it again.
        base.wait(Duration::from_millis(100));
        assert_eq!(base.smart_ack(start, at(start, 1)), !suppress);
        assert_eq!(base.repairs(), [start]);
        assert!(base.ack(at(start, 5)));
        assert_eq!(base.copies(), 0);
    }
}

#[test]
fn threshold_and_least_timeout_follow_the_configuration() {
    let mut base = Base::told(SnoopConfig {
        threshold: 1,
        min_timeout: Duration::from_secs(2),
        ..SnoopConfig::new(BaseStation::Here)
    });
    (0..4).for_each(|n| base.data(at(0, n)));
    assert!(!base.ack(0));
    assert_eq!(base.repairs(), [0]);
    base.wait(Duration::from_millis(1_999));
    assert!(base.repairs().is_empty());
    base.wait(Duration::from_millis(1));
    assert_eq!(base.repairs(), [0]);
}

#[test]
fn repairs_leave_first_or_when_nothing_else_waits() {
    for (order, first) in [(RepairOrder::First, true), (RepairOrder::Last, false)] {
        let mut base = Base::told(SnoopConfig {
            repairs: order,
            ..SnoopConfig::new(BaseStation::Here)
        });
        (0..4).for_each(|n| base.data(at(0, n)));
        assert!(base.ack(0) && !base.ack(0));
        let waits = base.segment(1, at(0, 4), at(0, 5), None);
        let frame = base.poll(Some(waits)).unwrap();
        assert_eq!(frame.header.kind == FrameKind::Retransmission, first);
    }
}

#[test]
fn acknowledgments_that_ask_for_what_the_link_lost_are_marked() {
    for notify in [false, true] {
        let mut base = Base::told(SnoopConfig {
            notify,
            ..SnoopConfig::new(BaseStation::Here)
        });
        // Over the wrap of numbers; the second, the fourth and the fifth are lost.
        let start = u32::MAX - LEN;
        let up = |base: &mut Base, n: u32| {
            let mut segment = base.segment(1, at(start, n), at(start, n + 1), None);
            segment.down = false;
            assert!(base.receive(segment));
        };
        let marked = |base: &mut Base, n: u32| {
            let mut ack = base.segment(1, 7, 7, Some(at(start, n)));
            ack.down = true;
            base.poll(Some(ack)).unwrap().into_packet().unwrap().lost
        };
        for n in [0, 2, 5] {
            up(&mut base, n);
        }
        assert_eq!(marked(&mut base, 1), notify);
        up(&mut base, 1);
        assert!(!marked(&mut base, 1), "it has come");
        assert_eq!([3, 4].map(|n| marked(&mut base, n)), [notify; 2]);
        // Lost beyond this link, or not sent yet.
        assert!(!marked(&mut base, 5) && !marked(&mut base, 6));
        assert!(base.repairs().is_empty());
    }
}
