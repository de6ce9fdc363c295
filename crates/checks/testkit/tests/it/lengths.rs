//! Services that choose the length of their frames, on the radios of Ludwig et al. 1999, compared with every fixed
//! length.

use airlane_base::{Duration, Instant, Rate, Streams};
use airlane_channel::blocks::{Blocks, BlocksHeader, Generator};
use airlane_link::HeaderProfile::Sealed;
use airlane_link::pack::contents::FRAGMENT_HEAD;
use airlane_testkit::{Adversary, Fate, FrameDeparture, Pair, RandomAdversary, Setup, TestPacket};

/// Bytes of a packet: the longest frame takes the 47 blocks of the published optimum.
const PACKET: usize = 1_400;
/// Blocks of ten minutes.
const TURN: u32 = 30_000;
/// 30 bytes per 20 ms.
const RATE: u64 = 12_000;
const BLOCK_NS: u64 = 20_000_000;
/// Overhead of a sealed selective repeat frame, in its header and below: about as much as in the published study at
/// its best length, 6 bytes and one for each of 7 blocks.
const HEADER: usize = 11;
const BELOW: usize = 2;

/// The radios alternate, ten minutes each.
fn radio(models: &[&str], turns: u32) -> Blocks {
    let mut mixed = Blocks::new(BlocksHeader::default());
    for turn in 0..turns {
        let model = models[turn as usize % models.len()];
        let generator: Generator = model.parse().unwrap();
        let mut random = Streams::new(21, turn.into()).stream("blocks");
        let blocks = generator.generate(TURN, BlocksHeader::default(), &mut random);
        for (erased, len) in blocks.rows().flatten() {
            mixed.push(erased, len);
        }
    }
    mixed
}

/// Frames that overlap an erased block are lost; the reverse direction is clean.
fn erasing(blocks: &Blocks) -> impl Adversary + use<> {
    let bursts: Vec<[u64; 2]> = blocks
        .bursts()
        .iter()
        .map(|burst| [burst.start, burst.start + burst.len].map(|at| u64::from(at) * BLOCK_NS))
        .collect();
    let rate = Rate::from_bps(RATE).unwrap();
    let mut at = 0;
    move |frame: FrameDeparture<'_>| {
        if frame.from == 1 {
            return Fate::ARRIVE;
        }
        let len = frame.frame.payload_len() + HEADER + BELOW;
        let from = frame.now.saturating_since(Instant::ORIGIN);
        let to = (from + rate.transmission_time(len)).as_nanos();
        while bursts
            .get(at)
            .is_some_and(|burst| burst[1] <= from.as_nanos())
        {
            at += 1;
        }
        match bursts.get(at).is_some_and(|burst| burst[0] < to) {
            true => Fate::Lose,
            false => Fate::ARRIVE,
        }
    }
}

/// Bytes of packets delivered over a radio, over its whole duration.
fn carried(blocks: &Blocks, payload: Option<usize>) -> u64 {
    through(erasing(blocks), payload, blocks.duration())
}

/// Bytes of packets delivered in `time`, in frames with this payload or one that the service chooses.
fn through(adversary: impl Adversary, payload: Option<usize>, time: Duration) -> u64 {
    let queue = "kind = \"drop-tail\", limit = \"10 packets\"";
    let scheme = "kind = \"sr-m2\", repeat-naks = true";
    let setup = Setup::new(Sealed).rate("12 kbit/s");
    let mut setup = setup.service(0, 1.0, scheme, queue);
    setup.config.max_payload = PACKET;
    setup.config.frame_overhead = BELOW;
    setup.config.delay = Duration::from_millis(110);
    setup.config.max_frame_payload = payload;
    setup.config.adaptive_frames = payload.is_none();
    let mut pair = Pair::new(&setup, adversary);
    let end = Instant::ORIGIN + time;
    let mut id = 0;
    while pair.now() < end {
        let books = pair.ledger(0, 0);
        for _ in books.packets_offered - books.packets_sent..4 {
            pair.offer(0, TestPacket::new(0, id, PACKET));
            id += 1;
        }
        pair.run_for(Duration::from_secs(1));
    }
    pair.ledger(1, 0).delivered_bytes
}

/// The ratio of an adaptive service to the best fixed length: whole packets, or two to nine fragments.
fn ratio(models: &[&str]) -> f64 {
    let blocks = radio(models, 12);
    let of = |payload| carried(&blocks, payload);
    let whole = of(Some(PACKET));
    let cut = (2..=9).map(|parts| of(Some(PACKET.div_ceil(parts) + FRAGMENT_HEAD)));
    let best = cut.fold(whole, u64::max);
    of(None) as f64 / best as f64
}

#[test]
fn a_service_that_chooses_is_as_good_as_the_best_fixed_length() {
    for radio in ["onoff-b", "onoff-c", "a-literal"] {
        let ratio = ratio(&[radio]);
        assert!(ratio >= 0.998, "{radio}: {ratio}");
    }
    for (radio, more) in [("onoff-c", 1.01), ("bernoulli 0.047", 1.03)] {
        let ratio = ratio(&["a-literal", radio]);
        assert!(ratio >= more, "A and {radio} in turn: {ratio}");
    }
}

/// Routers drop packets of any length: then shorter frames gain nothing, and cost little if losses are rare.
#[test]
fn losses_independent_of_length_cost_little() {
    for (loss, least) in [(0.02, 0.98), (0.1, 0.93)] {
        let of = |payload| {
            through(
                RandomAdversary::losing(1, loss),
                payload,
                Duration::from_secs(7_200),
            )
        };
        let [whole, chosen] = [Some(PACKET), None].map(of);
        let ratio = chosen as f64 / whole as f64;
        assert!(ratio >= least, "{loss}: {ratio}");
    }
}

/// A service added while the path is narrow must use long frames when it is wide again.
#[test]
fn a_service_added_on_a_narrow_path_uses_a_widened_one() {
    let queue = "kind = \"drop-tail\", limit = \"10 packets\"";
    let setup = Setup::new(Sealed).rate("10 Mbit/s").cut(1_000);
    let mut setup = setup.service(1, 1.0, "kind = \"sr-m2\"", queue);
    setup.config.adaptive_frames = true;
    let mut pair = Pair::new(&setup, |_: FrameDeparture<'_>| Fate::ARRIVE);
    pair.keeps_journal = true;
    let all = std::mem::take(&mut setup.config.services);
    for table in [&[][..], &all] {
        for end in 0..2 {
            pair.admin(end, |port, _| port.set_frame_room(200));
            pair.set_services(end, table);
        }
        pair.run_for(Duration::from_secs(60));
    }
    pair.admin(0, |port, _| port.set_frame_room(1_000));
    for id in 0..20 {
        pair.offer(0, TestPacket::new(1, id, 1_000));
        pair.run_for(Duration::from_millis(50));
    }
    let lens = pair.journal.iter().map(|(.., frame)| frame.payload_len());
    assert_eq!(lens.rev().find(|len| *len > 0), Some(1_000));
    assert_eq!(pair.ids(1, 1).len(), 20);
}
