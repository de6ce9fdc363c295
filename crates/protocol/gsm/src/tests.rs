//! Two stations and the radio between them, block by block.

use std::collections::VecDeque;

use airlane_base::random::Streams;
use airlane_base::{Duration, Instant};
use airlane_channel::blocks::retrace::Overhead;
use airlane_channel::blocks::{Blocks, BlocksHeader, Generator};
use proptest::prelude::*;

use crate::frame::{Body, Header, Supervisory};
use crate::{Counts, Frame, Lengths, Parameters, Persistence, Repair, Station};

const BLOCK: Duration = Duration::from_millis(20);
/// The delay of interleaving and of the network after it, and half a block: 90 ms and 20 ms.
const DELAY: Duration = Duration::from_millis(110);

/// One direction: the transmitter of its sender, and the frames in flight.
struct Direction {
    /// The first block at which the next frame can begin.
    free_at: u64,
    on_their_way: VecDeque<(Instant, Frame<u64>)>,
    /// The next information.
    fresh: u64,
    /// How much information there is in total.
    offered: u64,
    received: Vec<u64>,
    abandoned: Vec<u64>,
}

/// Two stations; the first one sends downlink.
struct World {
    blocks: u8,
    block: u64,
    stations: [Station<u64>; 2],
    directions: [Direction; 2],
    /// Whether received information is kept.
    keeps: bool,
    delivered: [u64; 2],
    /// The lowest number that may arrive next.
    next: [u64; 2],
}

impl World {
    fn new(parameters: Parameters, blocks: u8, offered: [u64; 2]) -> Self {
        Self {
            blocks,
            block: 0,
            stations: [(); 2].map(|()| Station::new(parameters)),
            directions: offered.map(|offered| Direction {
                free_at: 0,
                on_their_way: VecDeque::new(),
                fresh: 0,
                offered,
                received: Vec::new(),
                abandoned: Vec::new(),
            }),
            keeps: true,
            delivered: [0; 2],
            next: [0; 2],
        }
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + BLOCK * self.block
    }

    /// Advances time by one block. `erased` says whether the block of a direction is erased.
    fn step(&mut self, erased: &mut impl FnMut(usize, u64) -> bool) {
        let now = self.now();
        for way in 0..2 {
            let direction = &mut self.directions[way];
            let due = |(at, _): &mut (Instant, Frame<u64>)| *at <= now;
            while let Some((_, frame)) = direction.on_their_way.pop_front_if(due) {
                let (keeps, delivered) = (self.keeps, &mut self.delivered[way]);
                let (received, next) = (&mut direction.received, &mut self.next[way]);
                self.stations[1 - way].handle_frame(now, frame, |number| {
                    assert!(number >= *next, "{number} comes behind {next}");
                    *next = number + 1;
                    *delivered += 1;
                    if keeps {
                        received.push(number);
                    }
                });
            }
        }
        for way in 0..2 {
            let direction = &mut self.directions[way];
            let station = &mut self.stations[way];
            station.handle_timeout(now);
            while let Some(number) = station.poll_abandoned() {
                direction.abandoned.push(number);
            }
            assert!(station.fates().count() <= 62);
            if self.block < direction.free_at {
                continue;
            }
            let (fresh, offered) = (&mut direction.fresh, direction.offered);
            let blocks = Lengths {
                full: self.blocks,
                bare: self.blocks,
            };
            let frame = station.transmit(now, blocks, || {
                (*fresh < offered).then(|| {
                    *fresh += 1;
                    *fresh - 1
                })
            });
            let Some(frame) = frame else { continue };
            direction.free_at = self.block + u64::from(frame.blocks);
            let lost = (self.block..direction.free_at).filter(|block| erased(way, *block));
            if lost.count() == 0 {
                let arrives = now + BLOCK * u64::from(frame.blocks) + DELAY;
                direction.on_their_way.push_back((arrives, frame));
            }
        }
        self.block += 1;
    }

    fn run(&mut self, blocks: u64, mut erased: impl FnMut(usize, u64) -> bool) {
        for _ in 0..blocks {
            self.step(&mut erased);
        }
    }

    fn counts(&self) -> [Counts; 2] {
        [0, 1].map(|end| self.stations[end].counts())
    }

    fn is_idle(&self) -> bool {
        let silent = self
            .directions
            .iter()
            .all(|direction| direction.on_their_way.is_empty());
        silent
            && self
                .stations
                .iter()
                .all(|station| station.is_idle(self.now()))
    }

    /// Everything arrived once and in order, except what a station reported as abandoned.
    fn check(&self) {
        for direction in &self.directions {
            let received = &direction.received;
            assert!(received.is_sorted_by(|a, b| a < b), "{received:?}");
            let missing =
                (0..direction.fresh).filter(|number| received.binary_search(number).is_err());
            for number in missing {
                assert!(
                    direction.abandoned.contains(&number),
                    "{number} has vanished"
                );
            }
        }
    }
}

fn patient() -> Parameters {
    Parameters {
        persistence: Persistence::Time(Duration::from_secs(1_000_000)),
        ..Parameters::default()
    }
}

/// Whether a block is erased, for blocks that are looked up in order.
fn lookup(blocks: &Blocks) -> impl FnMut(u64) -> bool + use<> {
    let mut bursts: VecDeque<[u64; 2]> = blocks
        .bursts()
        .iter()
        .map(|burst| {
            [
                burst.start.into(),
                u64::from(burst.start) + u64::from(burst.len),
            ]
        })
        .collect();
    move |at| {
        while bursts.pop_front_if(|burst| burst[1] <= at).is_some() {}
        bursts.front().is_some_and(|burst| burst[0] <= at)
    }
}

fn radio(name: &str, seed: u64, minutes: u32) -> Blocks {
    let generator: Generator = name.parse().unwrap();
    let mut random = Streams::new(seed, 0).stream(name);
    generator.generate(minutes * 3000, BlocksHeader::default(), &mut random)
}

/// Bulk traffic in both directions over models of the published radios: the share of what retransmission could carry
/// at best.
fn carried(name: &str, blocks: u8, clean_uplink: bool) -> f64 {
    const MINUTES: u32 = 600;
    let down = radio(name, 1, MINUTES);
    let mut lost = [lookup(&down), lookup(&radio(name, 2, MINUTES))];
    let mut world = World::new(patient(), blocks, [u64::MAX; 2]);
    world.keeps = false;
    world.run(u64::from(MINUTES) * 3000, |way, at| {
        !(clean_uplink && way == 1) && lost[way](at)
    });
    let best = down.frames(blocks.into(), Overhead::Published, 0).unwrap();
    world.delivered[0] as f64 / f64::from(best.sent - best.lost)
}

#[test]
fn a_busy_link_carries_what_its_radio_allows() {
    for name in ["onoff-b", "onoff-c"] {
        for (blocks, least) in [(1, 0.98), (2, 0.99), (7, 0.998)] {
            let share = carried(name, blocks, false);
            assert!((least..=1.0).contains(&share), "{name} {blocks}: {share}");
        }
        let share = carried(name, 1, true);
        assert!(
            (0.995..=1.0).contains(&share),
            "{name} clean uplink: {share}"
        );
    }
}

/// How often a station resets the link in an hour of bulk traffic in one direction.
fn resets_per_hour(persistence: Persistence, blocks: u8) -> f64 {
    const MINUTES: u32 = 1200;
    let names = ["onoff-b", "onoff-c"];
    let mut resets = 0;
    for name in names {
        let mut lost = [3, 4].map(|seed| lookup(&radio(name, seed, MINUTES)));
        let parameters = Parameters {
            persistence,
            ..Parameters::default()
        };
        let mut world = World::new(parameters, blocks, [u64::MAX, 0]);
        world.keeps = false;
        world.run(u64::from(MINUTES) * 3000, |way, at| lost[way](at));
        resets += world
            .counts()
            .iter()
            .map(|counts| counts.resets)
            .sum::<u64>();
    }
    resets as f64 * 60.0 / f64::from(MINUTES) / names.len() as f64
}

#[test]
fn resets_are_rare_where_polls_count_and_not_where_frames_do() {
    let polls = resets_per_hour(Persistence::Polls(6), 1);
    assert!(polls < 1.0, "{polls}");
    let long = resets_per_hour(Persistence::Polls(6), 7);
    assert!(long < 0.2, "{long}");
    let frames = resets_per_hour(Persistence::Frames(6), 1);
    assert!((1.0..=8.0).contains(&frames), "{frames}");
}

#[test]
fn an_outage_is_survived_as_long_as_the_link_persists() {
    let polls = Persistence::Polls;
    let two_minutes = Persistence::Time(Duration::from_secs(120));
    for (persistence, survived, fatal) in [
        (polls(6), 4.0, 5.1),
        (polls(128), 60.0, 65.0),
        (two_minutes, 110.0, 130.0),
    ] {
        for (outage, resets) in [(survived, false), (fatal, true)] {
            let parameters = Parameters {
                persistence,
                ..Parameters::default()
            };
            let mut world = World::new(parameters, 1, [20_000, 0]);
            let (from, to) = (500, 500 + (outage * 50.0) as u64);
            world.run(60_000, |_, at| (from..to).contains(&at));
            world.check();
            assert!(world.is_idle());
            let [down, up] = world.counts();
            assert_eq!(
                down.resets > 0,
                resets,
                "{persistence:?}, {outage} s: {down:?}"
            );
            assert_eq!(down.abandoned > 0, resets);
            assert!(down.abandoned <= 61 && up.abandoned == 0);
            let lost = 20_000 - world.delivered[0];
            assert!(lost <= down.abandoned, "{lost} of {}", down.abandoned);
        }
    }
}

/// A second request for a frame may cross the acknowledgment of its retransmission. The frame after it was lost.
#[test]
fn a_stale_selective_reject_is_followed_by_a_new_request() {
    let mut station = Station::new(Parameters::default());
    let blocks = Lengths { full: 1, bare: 1 };
    for number in 0..2 {
        let sent = station.transmit(Instant::ORIGIN, blocks, || Some(number));
        assert!(sent.is_some());
    }
    for (says, about) in [(Supervisory::SelectiveReject, 0), (Supervisory::Ready, 1)] {
        let body = Body::Numbered {
            says,
            about,
            carries: None,
        };
        let header = Header {
            command: true,
            poll: false,
            body,
        };
        let frame = Frame {
            blocks: 1,
            header,
            information: None,
        };
        station.handle_frame(Instant::ORIGIN, frame, |_| {});
    }
    let later = Instant::ORIGIN + Duration::from_secs(2);
    station.handle_timeout(later);
    let asks = station.transmit(later, blocks, || None);
    assert!(asks.is_some_and(|frame| frame.header.poll), "it stalls");
}

/// Every pattern of at most this many erasures among the first blocks of a small transfer.
fn every_pattern(repair: Repair, numbers: u8, erasures: usize) -> u32 {
    const AMONG: u64 = 26;
    let parameters = Parameters {
        window: 3,
        numbers,
        t1: Duration::from_millis(320),
        persistence: Persistence::Polls(2),
        repair,
        ..Parameters::default()
    };
    let mut patterns = 0;
    let mut chosen: Vec<u64> = Vec::new();
    loop {
        let mut world = World::new(parameters, 1, [6, 2]);
        world.run(260, |way, at| {
            at < AMONG && chosen.contains(&(at * 2 + way as u64))
        });
        world.check();
        assert!(world.is_idle(), "{chosen:?} never ends");
        let gave_up = world.counts().iter().any(|counts| counts.resets > 0);
        assert!(gave_up || world.delivered == [6, 2], "{chosen:?}");
        assert!(
            !gave_up || chosen.len() > 2,
            "{chosen:?} need no new beginning"
        );
        patterns += 1;
        // The next combination in lexicographic order: a prefix comes before its extensions.
        let next = chosen.last().map_or(0, |last| last + 1);
        if chosen.len() < erasures && next < AMONG * 2 {
            chosen.push(next);
            continue;
        }
        while let Some(last) = chosen.pop() {
            if last + 1 < AMONG * 2 {
                chosen.push(last + 1);
                break;
            }
        }
        if chosen.is_empty() {
            return patterns;
        }
    }
}

#[test]
fn no_pattern_of_erasures_loses_or_repeats_information() {
    // All subsets of up to three of 52 blocks; with all numbers but one under way, too.
    for repair in [Repair::Selective, Repair::GoBack] {
        for numbers in [4, 62] {
            let patterns = every_pattern(repair, numbers, 3);
            assert_eq!(patterns, 1 + 52 + 1326 + 22_100);
        }
    }
}

proptest! {
    #[test]
    fn everything_arrives_once_and_in_order_or_is_known_to_be_abandoned(
        seed: u64, erased in 0.0..0.6_f64, window in 1_u8..=61, n2 in 0_u32..8, go_back: bool, blocks in 1_u8..4,
        offered in [0_u64..600, 0_u64..600],
    ) {
        let parameters = Parameters {
            window,
            persistence: Persistence::Polls(n2),
            repair: if go_back { Repair::GoBack } else { Repair::Selective },
            ..Parameters::default()
        };
        let mut random = Streams::new(seed, 0).stream("erasures");
        let mut world = World::new(parameters, blocks, offered);
        world.run(6000, |_, _| random.uniform() < erased);
        // A link that works again becomes idle.
        world.run(40_000, |_, _| false);
        world.check();
        prop_assert!(world.is_idle());
        prop_assert_eq!(world.directions[0].fresh, offered[0]);
        prop_assert_eq!(world.directions[1].fresh, offered[1]);
    }
}
