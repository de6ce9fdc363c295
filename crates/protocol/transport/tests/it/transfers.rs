//! Over any path, every byte arrives once and in order.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_transport::tcp::{Ecn, Over};
use airlane_transport::{Endpoint, Segment, Tcp, TcpConfig};
use proptest::prelude::*;

/// What the path does to one segment.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    /// As above, and a link reports which segment it was.
    Destroyed,
    Marked,
    Twice,
    /// Extra delay, milliseconds: other segments overtake it.
    Late(u16),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        2 => Just(Fate::Lost),
        1 => Just(Fate::Destroyed),
        1 => Just(Fate::Marked),
        1 => Just(Fate::Twice),
        6 => (1u16..40).prop_map(Fate::Late),
        1 => (40u16..3_000).prop_map(Fate::Late),
    ];
    prop::collection::vec(fate, 0..500)
}

/// BBR needs settings of its own beside it.
fn settings() -> impl Strategy<Value = TcpConfig> {
    let bbr = (1u32..24, 1u32..5).prop_map(|(window, initial)| {
        let text = format!(
            "profile = \"modern\"\ncongestion = \"bbr\"\nwindow = {window}\ninitial-window = {initial}"
        );
        toml::from_str(&text).unwrap()
    });
    prop_oneof![1 => bbr, 8 => combinations()]
}

fn combinations() -> impl Strategy<Value = TcpConfig> {
    let recovery = prop_oneof![
        Just("recovery = \"tahoe\""),
        Just("recovery = \"reno\""),
        Just("recovery = \"newreno\""),
        Just(
            "recovery = \"newreno\"\npartial-deflation = \"first-ack\"\npartial-restart = \"first\""
        ),
        Just("recovery = \"sack\""),
        Just("recovery = \"sack\"\nprr = true"),
        Just("recovery = \"sack\"\ncounted-pipe = true"),
        Just("recovery = \"sack\"\ndsack = true"),
        Just("recovery = \"smart\""),
        Just("recovery = \"newreno\"\nlimited-transmit = true"),
        Just("recovery = \"sack\"\nlimited-transmit = true"),
        Just("recovery = \"rack\""),
        Just("recovery = \"eln\""),
        Just("recovery = \"eln-rxmt\""),
        Just("recovery = \"eln-rxmt\"\neln-memory = \"last\""),
        Just("recovery = \"vegas\"\ncongestion = \"vegas\""),
        Just("recovery = \"vegas\"\ncongestion = \"vegas\"\nstale-times = true"),
    ];
    let delayed = prop_oneof![
        Just(""),
        Just("delayed-ack = {}"),
        Just("delayed-ack = { every = 3, clock = \"free-running\" }"),
    ];
    let era = prop_oneof![
        2 => Just(""),
        1 => Just("pacing = true"),
        1 => Just("ecn = true"),
        1 => Just("timestamps = true\neifel = true"),
        1 => Just("profile = \"modern\"\nundo = \"linux\""),
        1 => Just("profile = \"modern\"\nundo = \"rfc9438\"\nmin-rto = \"5 ms\""),
        1 => Just("congestion = \"cubic\"\ntimer = \"fine\"\ntick = \"1 ms\"\nmin-rto = \"5 ms\"\ntimestamps = true\neifel = true\nhystart = true"),
        1 => Just("profile = \"modern\""),
        1 => Just("profile = \"modern\"\ncongestion = \"reno\"\nmin-rto = \"5 ms\""),
        1 => Just("handshake = true\nwindow-scaling = true\ncongestion = \"reno\"\nbyte-counting = true"),
        1 => Just("congestion = \"vegas\"\ntimer = \"fine\""),
        1 => Just("profile = \"ns2-2002\""),
        1 => Just("profile = \"bsd-1997\""),
        1 => Just("profile = \"bsd-1997\"\nbuffer = \"800 B\"\neighth = true"),
    ];
    (recovery, delayed, era, 1u32..24, 1u32..5).prop_map(
        |(recovery, delayed, era, window, initial)| {
            // Vegas' recovery already names a congestion control, and not BSD's.
            let has_own = recovery.contains("congestion");
            let era = match has_own && (era.contains("congestion") || era.contains("bsd")) {
                true => "timer = \"fine\"",
                false => era,
            };
            let profile = match era.contains("profile") {
                true => "",
                false => "profile = \"ns2-1999\"",
            };
            let text = format!(
                "{profile}\n{recovery}\n{delayed}\n{era}\nwindow = {window}\ninitial-window = {initial}"
            );
            toml::from_str(&text).unwrap()
        },
    )
}

/// Two ends and the segments in flight between them, by arrival and number.
struct World {
    ends: [Tcp; 2],
    travelling: BTreeMap<(Instant, u64), (usize, Segment)>,
    sent: u64,
    now: Instant,
}

impl World {
    fn new(config: &TcpConfig) -> Self {
        Self {
            ends: [120, 310].map(|ms| Tcp::new(config, 100, Duration::from_millis(ms))),
            travelling: BTreeMap::new(),
            sent: 0,
            now: Instant::ORIGIN,
        }
    }

    fn drain(&mut self, fates: &mut impl Iterator<Item = Fate>) {
        for from in 0..2 {
            while let Some(mut segment) = self.ends[from].poll_transmit(self.now) {
                let (copies, late) = match fates.next().unwrap_or(Fate::Late(7)) {
                    Fate::Lost => (0, 0),
                    Fate::Destroyed => {
                        self.ends[1 - from].handle_destroyed(&segment);
                        (0, 0)
                    }
                    Fate::Marked => {
                        if let Segment::Data(data) = &mut segment
                            && data.ecn == Ecn::Capable
                        {
                            data.ecn = Ecn::Marked;
                        }
                        (1, 7)
                    }
                    Fate::Twice => (2, 7),
                    Fate::Late(late) => (1, late),
                };
                for _ in 0..copies {
                    let at = self.now + Duration::from_millis(u64::from(late));
                    self.travelling.insert((at, self.sent), (1 - from, segment));
                    self.sent += 1;
                }
            }
        }
    }

    /// Runs the next arrival or timer; none if no event is left.
    fn step(&mut self) -> Option<()> {
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let arrival = self.travelling.keys().next().copied();
        let next = timers.chain(arrival.map(|(at, _)| at)).min()?;
        self.now = self.now.max(next);
        match arrival.filter(|(at, _)| *at <= next) {
            Some(key) => {
                let (to, segment) = self.travelling.remove(&key)?;
                self.ends[to].handle_segment(self.now, segment);
            }
            None => self
                .ends
                .iter_mut()
                .for_each(|end| end.handle_timeout(self.now)),
        }
        Some(())
    }
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order(
        fates in fates(),
        mut config in settings(),
        patience in prop_oneof![3 => Just(1u32), 1 => 2u32..200],
        closes in any::<bool>(),
        writes in prop::collection::vec((0usize..2, 1u64..4_000, 0usize..60), 1..8),
    ) {
        config.give_up = None;
        let mut world = World::new(&config);
        let mut fates = fates.into_iter();
        let mut written = [0u64; 2];
        let mut read = [0u64; 2];
        let window = u64::from(config.window);
        let mut writes = writes.into_iter();
        let mut wait = 0;
        for step in 0u32.. {
            prop_assert!(step < 50_000, "the transfer does not end");
            if wait == 0 && let Some((end, bytes, next)) = writes.next() {
                world.ends[end].write(bytes);
                written[end] += bytes;
                wait = next;
                if closes && writes.len() == 0 {
                    world.ends.iter_mut().for_each(Endpoint::close);
                }
            }
            wait = wait.saturating_sub(1);
            world.drain(&mut fates);
            for (end, read) in world.ends.iter_mut().zip(&mut read) {
                // Applications may read late.
                if step % patience == 0 {
                    *read += end.read().unwrap_or(0);
                }
                let sender = end.sender();
                prop_assert!(sender.flight_size() <= window);
                prop_assert!(sender.cwnd() >= 0.0 && sender.cwnd() < 1e5);
                prop_assert!(sender.ssthresh() >= 1);
                // No timer is lost, and none runs without need.
                let due = sender.poll_timeout();
                let waits = sender.flight_size() > 0 || sender.is_shut() || sender.is_paced();
                prop_assert_eq!(due.is_some(), waits);
                prop_assert!(due.is_none_or(|due| due >= world.now));
            }
            prop_assert!(read[1] <= written[0] && read[0] <= written[1]);
            // What a read releases is sent as well.
            world.drain(&mut fates);
            let over = world.ends.iter().all(Endpoint::is_acknowledged);
            if over && writes.len() == 0 && wait == 0 {
                break;
            }
            if world.step().is_none() {
                prop_assert!(over, "nothing will ever happen");
                wait = 0;
            }
        }
        for (end, read) in world.ends.iter_mut().zip(&mut read) {
            *read += end.read().unwrap_or(0);
        }
        prop_assert_eq!([read[1], read[0]], written);
        for (end, written) in world.ends.iter().zip(written) {
            prop_assert_eq!((end.written(), end.acknowledged()), (written, written));
        }
    }

    /// On a path that is cut for good each end that waits for something gives up, not before the limit in the
    /// settings and at most one more timeout later. Then no event is left, and nothing was delivered that was not
    /// written.
    #[test]
    fn a_disconnected_sender_gives_up(
        fates in fates(),
        mut config in settings(),
        bytes in 1u64..20_000,
        limit in 1u64..200,
    ) {
        let limit = Duration::from_secs(limit).max(config.min_rto);
        config.give_up = Some(limit);
        let mut world = World::new(&config);
        world.ends[0].write(bytes);
        let mut fates = fates.into_iter().chain(std::iter::repeat(Fate::Lost));
        let mut read = 0;
        let mut progress = (0, Instant::ORIGIN);
        for step in 0u32.. {
            prop_assert!(step < 50_000, "it never gives up");
            world.drain(&mut fates);
            read += world.ends[1].read().unwrap_or(0);
            let acked = world.ends[0].acknowledged();
            if acked > progress.0 {
                progress = (acked, world.now);
            }
            if world.step().is_none() {
                break;
            }
        }
        let end = &world.ends[0];
        prop_assert!(end.acknowledged() <= read && read <= bytes);
        if end.is_acknowledged() {
            prop_assert_eq!(end.over(world.now), None);
        } else {
            prop_assert_eq!(end.over(world.now), Some(Over::GaveUp));
            let waited = world.now.saturating_since(progress.1);
            prop_assert!(waited >= limit.saturating_sub(config.max_rto), "after {waited}");
            // The SYN, the data and the FIN each have the limit.
            prop_assert!(waited <= (limit + config.max_rto) * 3, "after {waited}");
        }
    }
}
