//! Two ends, each restarted at will, and an adversary that loses, duplicates, reorders and replays.

use super::*;
use airlane_base::Rng;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn config(epoch: u64, table: &str) -> SessionConfig {
    SessionConfig {
        epoch,
        table: table.to_owned(),
        peer_table: mirrored(table),
        keepalives: Keepalives {
            busy: SECOND,
            idle: SECOND * 4,
            silence: SECOND * 5,
        },
    }
}

/// The peer's view of a table: the parts of the two ends are swapped.
fn mirrored(table: &str) -> String {
    match table {
        "1 snoop here" => "1 snoop peer".to_owned(),
        "1 snoop peer" => "1 snoop here".to_owned(),
        same => same.to_owned(),
    }
}

/// A data frame, with the state of its sender at the time.
#[derive(Clone, Debug)]
struct DataFrame {
    session: u32,
    sender_epoch: u64,
    receiver_epoch: u64,
    table: &'static str,
}

#[derive(Clone, Debug)]
enum Wire {
    Hello(Vec<u8>),
    Data(DataFrame),
}

struct End {
    session: Session,
    table: &'static str,
    /// Own epoch and peer's epoch of every session that ever began here.
    begun: Vec<(u64, u64)>,
    events: Vec<SessionEvent>,
    accepted_data: usize,
}

impl End {
    fn new(now: Instant, epoch: u64, table: &'static str) -> Self {
        let mut session = Session::new(now, config(epoch, table));
        session.set_table(now, table.to_owned(), &mirrored(table), own(table, 6));
        Self {
            session,
            table,
            begun: Vec::new(),
            events: Vec::new(),
            accepted_data: 0,
        }
    }
}

/// Both ends, and everything that is or was in flight.
struct World {
    now: Instant,
    ends: [End; 2],
    wire: Vec<(Instant, usize, Wire)>,
    history: Vec<(usize, Wire)>,
    rng: Rng,
    loss: f64,
    duplication: f64,
    delay_ms: u64,
    next_epoch: u64,
    /// Whether both ends send data.
    traffic: bool,
    /// An end that receives nothing.
    deaf: Option<usize>,
}

impl World {
    fn new(seed: u64, tables: [&'static str; 2]) -> Self {
        let now = Instant::ORIGIN + SECOND;
        Self {
            now,
            ends: [End::new(now, 1, tables[0]), End::new(now, 2, tables[1])],
            wire: Vec::new(),
            history: Vec::new(),
            rng: Streams::new(seed, 0).stream("world"),
            loss: 0.0,
            duplication: 0.0,
            delay_ms: 20,
            next_epoch: 3,
            traffic: true,
            deaf: None,
        }
    }

    fn restart(&mut self, end: usize, table: &'static str) {
        self.ends[end] = End::new(self.now, self.next_epoch, table);
        self.next_epoch += 1;
    }

    fn post(&mut self, to: usize, item: Wire) {
        self.history.push((to, item.clone()));
        let copies = 1 + usize::from(self.rng.chance(self.duplication));
        for _ in 0..copies {
            if !self.rng.chance(self.loss) && self.deaf != Some(to) {
                let delay = MS * (1 + self.rng.next_u64() % self.delay_ms);
                self.wire.push((self.now + delay, to, item.clone()));
            }
        }
    }

    fn replay(&mut self, pick: usize) {
        if !self.history.is_empty() {
            let (to, item) = self.history[pick % self.history.len()].clone();
            self.receive(to, item);
        }
    }

    fn receive(&mut self, to: usize, item: Wire) {
        let now = self.now;
        let end = &mut self.ends[to];
        match item {
            Wire::Hello(body) => {
                let _counted = end.session.handle_hello(now, &body);
                self.note_events(to);
            }
            Wire::Data(frame) => {
                if end.session.check(now, frame.session) {
                    assert_eq!(
                        frame.table,
                        mirrored(end.table),
                        "another configuration's data"
                    );
                    assert_eq!(frame.receiver_epoch, end.session.epoch());
                    assert_eq!(Some(frame.sender_epoch), end.session.peer_epoch());
                    end.session.note_received(now);
                    end.accepted_data += 1;
                }
            }
        }
    }

    fn note_events(&mut self, at: usize) {
        let end = &mut self.ends[at];
        while let Some(event) = end.session.poll_event() {
            if let SessionEvent::Established { peer_epoch, .. } = event {
                let pair = (end.session.epoch(), peer_epoch);
                assert!(!end.begun.contains(&pair), "{pair:?} was begun twice");
                end.begun.push(pair);
            }
            end.events.push(event);
        }
    }

    /// Runs in steps of a millisecond; both ends send data all the time if `traffic` is set.
    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now += MS;
            let (due, later) = std::mem::take(&mut self.wire)
                .into_iter()
                .partition(|(at, ..)| *at <= self.now);
            self.wire = later;
            let due: Vec<(Instant, usize, Wire)> = due;
            for (_, to, item) in due {
                self.receive(to, item);
            }
            for at in 0..2 {
                let session = &mut self.ends[at].session;
                session.handle_timeout(self.now);
                if let Some(hello) = session.poll_transmit(self.now, &[]) {
                    let mut body = Vec::new();
                    hello.encode(&mut body);
                    self.post(1 - at, Wire::Hello(body));
                    assert!(self.ends[at].session.poll_timeout() > self.now);
                }
                self.note_events(at);
                let end = &self.ends[at];
                if let (Some(session), Some(peer)) = (end.session.id(), end.session.peer_epoch())
                    && self.traffic
                    && self.now.as_nanos().is_multiple_of(10_000_000)
                {
                    self.ends[at].session.note_sent(self.now);
                    let end = &self.ends[at];
                    let frame = DataFrame {
                        session,
                        sender_epoch: end.session.epoch(),
                        receiver_epoch: peer,
                        table: end.table,
                    };
                    self.post(1 - at, Wire::Data(frame));
                }
            }
        }
    }

    fn states(&self) -> [SessionState; 2] {
        [0, 1].map(|i| self.ends[i].session.state())
    }

    fn assert_established(&self) {
        let [a, b] = [&self.ends[0].session, &self.ends[1].session];
        assert_eq!(self.states(), [SessionState::Confirmed; 2]);
        assert_eq!(a.id(), b.id());
        assert_eq!(a.peer_epoch(), Some(b.epoch()));
        assert_eq!(b.peer_epoch(), Some(a.epoch()));
    }
}

#[test]
fn two_ends_are_established_within_three_round_trips() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(MS * 120);
    world.assert_established();
    // Seconds with nothing but keepalives change nothing.
    world.run(SECOND * 3);
    assert_eq!(world.ends[0].begun.len(), 1);
    assert!(world.ends[0].accepted_data > 200);
    let rtt = world.ends[0].session.srtt().expect("hellos were answered");
    assert!(rtt >= MS * 2 && rtt <= MS * 41, "{rtt}");
}

#[test]
fn a_restart_is_noticed_at_once_and_resets_both_ends() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND);
    world.restart(1, "t");
    world.run(MS * 120);
    world.assert_established();
    assert!(world.ends[0].events.iter().any(|event| matches!(
        event,
        SessionEvent::Established {
            replaced: true,
            peer_epoch: 3,
            ..
        }
    )));
}

#[test]
fn different_tables_are_refused_with_both_texts_and_a_new_table_is_tried() {
    let mut world = World::new(1, ["1 rlp", "1 sr-m2"]);
    world.run(SECOND);
    assert_eq!(world.states(), [SessionState::Refused; 2]);
    let refused = SessionEvent::Refused {
        ours: "1 rlp".to_owned(),
        theirs: "1 sr-m2".to_owned(),
    };
    assert_eq!(world.ends[0].events, [refused]);
    // Slowly: about five hellos in 20 s.
    let before = world.history.len();
    world.run(SECOND * 20);
    assert!(world.history.len() - before < 12);
    // The operator corrects one end.
    world.restart(1, "1 rlp");
    world.run(MS * 120);
    world.assert_established();
}

#[test]
fn asymmetric_tables_need_both_parts() {
    for parts in [["here", "peer"], ["peer", "here"], ["here"; 2], ["peer"; 2]] {
        let table = |part| match part {
            "here" => "1 snoop here",
            _ => "1 snoop peer",
        };
        let mut world = World::new(1, parts.map(table));
        world.run(SECOND);
        if parts[0] != parts[1] {
            world.assert_established();
            assert!(world.ends[0].accepted_data > 0);
        } else {
            assert_eq!(world.states(), [SessionState::Refused; 2], "{parts:?}");
        }
    }
}

#[test]
fn a_peer_that_comes_back_with_another_table_ends_the_session() {
    let mut world = World::new(1, ["a", "a"]);
    world.run(SECOND);
    world.restart(1, "b");
    world.run(SECOND);
    assert_eq!(world.states(), [SessionState::Refused; 2]);
    assert_eq!(world.ends[0].session.id(), None);
}

#[test]
fn a_silent_peer_is_reported_once_and_again_when_it_is_back() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND);
    let id = world.ends[0].session.id();
    world.loss = 1.0;
    world.run(SECOND * 20);
    assert_eq!(world.states(), [SessionState::Disconnected; 2]);
    world.loss = 0.0;
    world.run(SECOND * 2);
    world.assert_established();
    assert_eq!(world.ends[0].session.id(), id);
    let count = |wanted: fn(&SessionEvent) -> bool| {
        world.ends[0].events.iter().filter(|e| wanted(e)).count()
    };
    assert_eq!(count(|e| matches!(e, SessionEvent::PeerLost { .. })), 1);
    assert_eq!(count(|e| matches!(e, SessionEvent::PeerBack { .. })), 1);
}

#[test]
fn another_version_is_named_once_and_changes_nothing() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND);
    let id = world.ends[0].session.id();
    for _ in 0..3 {
        let error = world.ends[0]
            .session
            .handle_hello(world.now, &[VERSION + 1, 1, 2, 3]);
        let (ours, theirs) = (VERSION, VERSION + 1);
        assert_eq!(error, Err(HelloError::Version { ours, theirs }));
    }
    world.note_events(0);
    let mismatches = world.ends[0].events.iter();
    let mismatches = mismatches.filter(|e| matches!(e, SessionEvent::VersionMismatch { .. }));
    assert_eq!(mismatches.count(), 1);
    assert_eq!(world.ends[0].session.id(), id);
}

#[test]
fn our_own_hello_coming_back_is_refused() {
    let mut session = Session::new(Instant::ORIGIN, config(5, "t"));
    let hello = session
        .poll_transmit(Instant::ORIGIN, &[])
        .expect("the first hello is due at once");
    let mut body = Vec::new();
    hello.encode(&mut body);
    assert_eq!(
        session.handle_hello(Instant::ORIGIN, &body),
        Err(HelloError::OwnEpoch)
    );
}

/// A standby node takes over the peer's address and gives it back. The first node was never reports that its session ended,
/// so it must not continue in it.
#[test]
fn an_abandoned_epoch_must_be_renewed() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND);
    let first = world.ends[1].session.clone();
    world.restart(1, "t");
    world.run(SECOND);
    world.assert_established();
    world.ends[1].session = first;
    world.run(SECOND * 3);
    world.assert_established();
    let renewed = &SessionEvent::EpochRenewed;
    assert!(world.ends[1].events.contains(renewed));
    assert_eq!(world.ends[0].begun.len(), 3);
}

#[test]
fn loss_reports_reach_the_sender() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND);
    let report = LossReport {
        service: 3,
        received_packets: 97,
        lost_packets: 3,
        loss_ppm: Some(30_000),
    };
    world.now += SECOND * 2;
    let hello = world.ends[0].session.poll_transmit(world.now, &[report]);
    let hello = hello.expect("a keepalive is due");
    assert_eq!(hello.table, None, "a confirmed peer knows the table");
    let mut body = Vec::new();
    hello.encode(&mut body);
    let peer = &mut world.ends[1].session;
    peer.handle_hello(world.now, &body).expect("newer");
    assert_eq!(peer.peer_reports(), [report]);
}

/// Hellos of both ends since `since`, and their bytes with overhead: 28 of UDP, 24 of the secure session, 2 of the
/// frame.
fn hellos(world: &World, since: usize) -> (usize, usize) {
    let bodies = world.history[since..]
        .iter()
        .filter_map(|(_, item)| match item {
            Wire::Hello(body) => Some(body.len() + 54),
            Wire::Data(_) => None,
        });
    (bodies.clone().count(), bodies.sum())
}

/// The services of an end with this table.
fn own(table: &str, services: u8) -> Vec<OwnService> {
    let own = |service| OwnService {
        offer: ServiceOffer {
            service,
            instance: 7,
            partner: 0,
            terms: fnv1a(table.as_bytes()),
        },
        fits: fnv1a(mirrored(table).as_bytes()),
    };
    (0..services).map(own).collect()
}

#[test]
fn an_idle_session_sends_little_and_repeats_nothing() {
    let mut world = World::new(1, ["t", "t"]);
    world.delay_ms = 40;
    for end in &mut world.ends {
        let session = &mut end.session;
        session.set_keepalives(Keepalives {
            idle: SECOND * 25,
            ..session.keepalives
        });
    }
    world.run(SECOND * 2);
    world.assert_established();
    world.traffic = false;
    // The link counts as busy for three seconds after the last frame.
    world.run(SECOND * 40);
    let since = world.history.len();
    world.run(SECOND * 3_600);
    let (count, bytes) = hellos(&world, since);
    assert!(
        (2 * 3_600 / 32..=2 * 3_600 / 25 + 2).contains(&count),
        "{count}"
    );
    // 50 MB a month for both directions together, less 13 MB for keys and their confirmation.
    assert!(
        (bytes as f64) < 37e6 / (30.0 * 24.0),
        "{bytes} B in an hour"
    );
    world.assert_established();
    // Changes are sent at once, and repeated.
    let since = world.history.len();
    world.ends[0]
        .session
        .set_table(world.now, "t".to_owned(), "t", own("t", 5));
    world.run(SECOND);
    let offered = world.ends[1]
        .events
        .iter()
        .rev()
        .find_map(|event| match event {
            SessionEvent::Offered { offers, .. } => Some(offers.len()),
            _ => None,
        });
    assert_eq!(offered, Some(5));
    assert!(hellos(&world, since).0 <= 3);
}

/// The last hello with a new table is lost, and so are the next ones: an idle session repeats it until the peer knows
/// it.
#[test]
fn a_new_table_is_repeated_until_it_is_known() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND * 2);
    world.traffic = false;
    world.run(SECOND * 20);
    world.loss = 1.0;
    world.ends[0]
        .session
        .set_table(world.now, "t".to_owned(), "t", own("t", 5));
    world.run(SECOND * 2);
    world.loss = 0.0;
    world.run(SECOND + MS * 100);
    let offers = |event: &SessionEvent| match event {
        SessionEvent::Offered { offers, .. } => Some(offers.len()),
        _ => None,
    };
    assert_eq!(world.ends[1].events.iter().rev().find_map(offers), Some(5));
}

/// With traffic, within the allowed silence; without, after the next question.
#[test]
fn a_dead_peer_is_noticed() {
    for traffic in [false, true] {
        let mut world = World::new(1, ["t", "t"]);
        world.run(SECOND * 2);
        world.traffic = false;
        world.run(SECOND * 60);
        world.assert_established();
        (world.loss, world.traffic) = (1.0, traffic);
        let within = if traffic { SECOND * 5 } else { SECOND * 10 };
        world.run(within + MS * 20);
        assert_eq!(world.states(), [SessionState::Disconnected; 2], "{traffic}");
        world.loss = 0.0;
        world.run(SECOND * 4);
        world.assert_established();
    }
}

/// While the ends have no keys, no hello can leave, and none asks the peer for a sign of life.
#[test]
fn a_peer_falls_silent_although_no_hello_can_leave() {
    let mut world = World::new(1, ["t", "t"]);
    world.run(SECOND * 2);
    world.traffic = false;
    world.run(SECOND * 60);
    let (session, begun) = (&mut world.ends[0].session, world.now);
    let mut turns = 0;
    while session.poll_timeout_unsent() < Instant::FAR_FUTURE {
        let now = session.poll_timeout_unsent();
        session.handle_timeout(now);
        session.note_unsent(now);
        turns += 1;
        assert!(turns < 5 && now < begun + SECOND * 11, "turn {turns}");
    }
    assert_eq!(session.state(), SessionState::Disconnected);
}

#[derive(Clone, Debug)]
enum Op {
    Run(u64),
    Restart(usize, bool),
    Replay(usize),
    Loss(f64),
    Duplication(f64),
    Delay(u64),
    Traffic(bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1u64..2000).prop_map(Op::Run),
        2 => (0usize..2, prop::bool::weighted(0.8)).prop_map(|(end, same)| Op::Restart(end, same)),
        4 => any::<usize>().prop_map(Op::Replay),
        1 => (0.0..1.0).prop_map(Op::Loss),
        1 => (0.0..1.0).prop_map(Op::Duplication),
        1 => (1u64..3000).prop_map(Op::Delay),
        1 => any::<bool>().prop_map(Op::Traffic),
    ]
}

proptest! {
    /// Whatever happened before, both ends agree three seconds after the channel becomes reliable. `World` asserts
    /// throughout that no session begins twice and that no frame of another session or configuration is accepted.
    #[test]
    fn both_ends_agree_soon_after_the_adversary_stops(
        seed: u64,
        ops in prop::collection::vec(op(), 0..40),
        replays in 0usize..200,
    ) {
        let mut world = World::new(seed, ["t", "t"]);
        for op in ops {
            match op {
                Op::Run(ms) => world.run(MS * ms),
                Op::Restart(end, same) => world.restart(end, if same { "t" } else { "u" }),
                Op::Replay(pick) => world.replay(pick),
                Op::Loss(loss) => world.loss = loss,
                Op::Duplication(duplication) => world.duplication = duplication,
                Op::Delay(ms) => world.delay_ms = ms,
                Op::Traffic(traffic) => world.traffic = traffic,
            }
        }
        // An end with nothing to send finds out when it asks next.
        let patience = if world.traffic { SECOND * 3 } else { SECOND * 8 };
        (world.loss, world.delay_ms) = (0.0, 20);
        world.wire.clear();
        world.run(patience);
        if world.ends[0].table == world.ends[1].table {
            world.assert_established();
        } else {
            // The end that refused first retries only every five seconds.
            world.run(REFUSED_RETRY);
            prop_assert_eq!(world.states(), [SessionState::Refused; 2]);
        }
        // Replaying everything that was ever sent changes nothing.
        let ids = [0, 1].map(|i| world.ends[i].session.id());
        let begun = [0, 1].map(|i| world.ends[i].begun.len());
        for _ in 0..replays {
            let pick = world.rng.next_u64() as usize;
            world.replay(pick);
        }
        world.run(SECOND * 3);
        prop_assert_eq!([0, 1].map(|i| world.ends[i].session.id()), ids);
        prop_assert_eq!([0, 1].map(|i| world.ends[i].begun.len()), begun);
    }

    #[test]
    fn only_an_unheard_end_reports_that_it_is_unheard(
        seed in any::<u64>(), deaf in 0..2_usize, before in 1..20_u64, traffic in any::<bool>(),
        delay_ms in 1..900_u64, loss in 0.0..0.1,
    ) {
        let mut world = World::new(seed, ["t", "t"]);
        (world.delay_ms, world.traffic) = (delay_ms, traffic);
        world.run(SECOND * 5);
        world.assert_established();
        world.loss = loss;
        let reports = |world: &World| {
            world.ends.iter().flat_map(|end| &end.events).filter(|e| matches!(e, SessionEvent::Unheard { .. })).count()
        };
        world.run(SECOND * before);
        prop_assert_eq!(reports(&world), 0, "both ends are heard");
        world.deaf = Some(deaf);
        world.run(SECOND * 40);
        let mute = &world.ends[1 - deaf].session;
        prop_assert_eq!(mute.state(), SessionState::Unheard);
        let unheard = mute.unheard_since().map(|since| world.now.saturating_since(since));
        prop_assert!(unheard.is_some_and(|unheard| unheard > SECOND * 25 && unheard < SECOND * 50), "{:?}", unheard);
        prop_assert_eq!(world.ends[deaf].session.state(), SessionState::Disconnected);
        prop_assert_eq!(world.ends[deaf].session.unheard_since(), None);
        prop_assert_eq!(reports(&world), 1, "said once");
        (world.deaf, world.loss) = (None, 0.0);
        world.run(SECOND * 10);
        world.assert_established();
        for end in &world.ends {
            prop_assert_eq!(end.session.unheard_since(), None);
        }
        let again = world.ends[1 - deaf].events.contains(&SessionEvent::HeardAgain);
        prop_assert!(again);
    }

    #[test]
    fn hellos_round_trip(
        words in prop::array::uniform8(any::<u64>()),
        asks: bool,
        session: u32,
        retired: bool,
        reports in prop::collection::vec((0u8..16, any::<u64>(), any::<u64>(), prop::option::of(0u32..=1_000_000)), 0..=16),
        offers in prop::collection::vec((0u8..16, any::<u32>(), any::<u32>(), any::<u64>()), 0..=16),
        table in prop::option::of(".{0,200}"),
    ) {
        let [epoch, nonce, echo, digest, sent_ns, echo_sent_ns, held_ns, knows] = words;
        let reports = reports.into_iter().map(|(service, received_packets, lost_packets, loss_ppm)| LossReport {
            service,
            received_packets,
            lost_packets,
            loss_ppm,
        }).collect();
        let offers = offers.into_iter().map(|(service, instance, partner, terms)| ServiceOffer {
            service,
            instance,
            partner,
            terms,
        }).collect();
        let hello = Hello {
            epoch, nonce, echo, digest, session, retired, sent_ns, echo_sent_ns, held_ns, asks, knows, reports, offers, table,
        };
        let mut body = Vec::new();
        hello.encode(&mut body);
        prop_assert_eq!(Hello::decode(&body), Ok(hello));
        for cut in 0..body.len() {
            prop_assert!(Hello::decode(&body[..cut]).is_err(), "{} of {} B", cut, body.len());
        }
        body.push(0);
        prop_assert_eq!(Hello::decode(&body), Err(HelloError::TooLong { extra: 1 }));
    }

    #[test]
    fn no_bytes_panic(
        mut body in prop::collection::vec(any::<u8>(), 0..400),
        versioned: bool,
    ) {
        if versioned && !body.is_empty() {
            body[0] = VERSION;
        }
        let mut session = Session::new(Instant::ORIGIN, config(1, "t"));
        let _refused = session.handle_hello(Instant::ORIGIN, &body);
        prop_assert_eq!(session.id(), None);
    }
}

/// A path that is cut counts as established until an end asks, which learns the truth within a round trip.
#[test]
fn an_asking_end_learns_at_once_whether_the_peer_hears_it() {
    for traffic in [false, true] {
        let mut world = World::new(7, ["t", "t"]);
        world.traffic = traffic;
        world.run(SECOND * 60);
        world.assert_established();
        let asked = world.now;
        world.ends[0].session.ask(asked);
        world.run(MS * 100);
        assert!(world.ends[0].session.reached() >= Some(asked), "{traffic}");
        world.deaf = Some(1);
        let asked = world.now;
        world.ends[0].session.ask(asked);
        world.run(SECOND * 3);
        assert!(world.ends[0].session.reached() < Some(asked), "{traffic}");
        assert_eq!(world.states()[0], SessionState::Confirmed, "{traffic}");
    }
}
