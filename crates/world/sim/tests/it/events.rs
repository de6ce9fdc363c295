//! Events must agree with the run's own counters, and watched runs with unwatched ones.

use std::collections::BTreeMap;

use crate::common::load;
use airlane_base::Instant;
use airlane_sim::event::{Event, EventFilter, EventKind, EventRecord, Role, Watcher};
use airlane_sim::{Prepared, RunResult, Scenario, ScenarioError};

#[derive(Default)]
struct Keeper {
    events: Vec<(Instant, Event)>,
    most: Option<usize>,
}

impl Watcher for Keeper {
    fn on_event(&mut self, now: Instant, event: &Event) {
        self.events.push((now, *event));
    }

    fn is_over(&self) -> bool {
        self.most.is_some_and(|most| self.events.len() >= most)
    }
}

impl Keeper {
    fn count(&self, wanted: impl Fn(&Event) -> bool) -> u64 {
        self.events
            .iter()
            .filter(|(_, event)| wanted(event))
            .count() as u64
    }

    fn of(&self, kind: EventKind) -> u64 {
        self.count(|event| event.kind() == kind)
    }
}

fn watched(scenario: &Scenario) -> (RunResult, Keeper) {
    let mut keeper = Keeper::default();
    let result = Prepared::new(scenario)
        .unwrap()
        .run_watched(7, 1, &mut keeper);
    // Counters end at the stop, events continue.
    let counted =
        |at: Instant| at.saturating_since(Instant::ORIGIN).as_secs_f64() <= result.stopped_s;
    keeper.events.retain(|(at, _)| counted(*at));
    (result, keeper)
}

/// Worlds that produce every kind of event.
fn worlds() -> [Scenario; 5] {
    let small = "flows[file].app.size=20 kB";
    [
        load("three-applications", &["duration=60 s", small]),
        load("three-applications-raw", &["duration=60 s", small]),
        load("handoff-wlan-cellular", &["duration=60 s"]),
        // A handshake, windows that fill the path, and delayed acknowledgments.
        load(
            "handoff-wlan-cellular",
            &[
                "duration=60 s",
                "flows[file].transport={ kind = \"tcp\", profile = \"modern\", freeze = true }",
            ],
        ),
        load("interactive-cellular-lan1", &["duration=60 s"]),
    ]
}

#[test]
fn watching_does_not_change_a_run() {
    for world in worlds() {
        let (result, keeper) = watched(&world);
        assert_eq!(result, Prepared::new(&world).unwrap().run(7, 1));
        assert!(keeper.events.len() > 1_000, "{}", keeper.events.len());
        assert!(
            keeper.events.is_sorted_by_key(|(at, _)| *at),
            "{}",
            world.name
        );
    }
}

/// A frame arrives at a port at the very instant at which its link becomes free: an observer must not make the port
/// send early.
#[test]
fn watching_keeps_the_order_of_simultaneous_events() {
    let text = "schema = 1\nname = \"at once\"\nduration = \"1 s\"\n[nodes.a]\n[nodes.relay]\n[nodes.b]\n\
        [links.l1]\nends = [\"relay\", \"a\"]\nrate = { down = \"1281 kbit/s\", up = \"91 kbit/s\" }\n\
        delay = \"7 ms\"\nframe = \"80 B\"\nerrors = { kind = \"uniform\", rate = 0.03283569663912895 }\n\
        header = \"study\"\nservices = [{ number = 1, name = \"all\", rate = 1, scheme = { kind = \"default\" }, \
        queue = { kind = \"drop-tail\", limit = \"20 packets\" } }]\n\
        classes = [{ match = { protocol = \"tcp\" }, service = \"all\" }]\n\
        [links.l2]\nends = [\"relay\", \"b\"]\nrate = \"10 kbit/s\"\ndelay = \"0 s\"\nframe = \"80 B\"\nqueue = \"0 packets\"\n\
        [[flows]]\nname = \"f0\"\nends = [\"a\", \"b\"]\nrelay = { kind = \"split\", at = \"relay\" }\n\
        transport = { kind = \"tcp\", profile = \"bsd-1997\", header-size = \"40 B\" }\napp = { kind = \"bulk\" }\n";
    let world = Prepared::new(&Scenario::from_toml(text, "at once").unwrap()).unwrap();
    for seed in 0..20 {
        let watched = world.run_watched(seed, 0, &mut Keeper::default());
        assert_eq!(watched, world.run(seed, 0), "seed {seed}");
    }
}

#[test]
fn events_add_up_to_the_ledger_of_links() {
    let mut gave_up = 0;
    for world in worlds() {
        let (result, keeper) = watched(&world);
        for (index, link) in result.links.iter().enumerate() {
            for (down, way) in [(true, &link.down), (false, &link.up)] {
                let here = |event: &Event| {
                    let way = event.way();
                    way.is_some_and(|way| usize::from(way.link) == index && way.down == down)
                };
                let count = |kind| keeper.count(|event| here(event) && event.kind() == kind);
                let channel = &way.channel;
                let sent = channel.offered.frames - channel.dropped_queue.frames;
                assert_eq!(count(EventKind::FrameSent), sent);
                assert_eq!(count(EventKind::FrameLost), channel.lost_air.frames);
                assert_eq!(count(EventKind::FrameReceived), channel.delivered.frames);
                let (mut dropped, mut delivered) = (channel.dropped_queue.frames, 0);
                for service in &way.services {
                    let sender = &service.sender;
                    let entered = keeper.count(|event| match event {
                        Event::PacketEntered { service: by, .. } => {
                            here(event) && *by == Some(service.number)
                        }
                        _ => false,
                    });
                    assert_eq!(entered, sender.packets_offered, "{}", service.name);
                    dropped += sender.dropped_queue_full
                        + sender.dropped_codel
                        + sender.dropped_window_full
                        + sender.dropped_disconnected
                        + sender.dropped_too_old
                        + sender.dropped_too_big;
                    delivered += service.receiver.packets_delivered;
                }
                assert_eq!(count(EventKind::PacketDropped), dropped);
                if way.services.is_empty() {
                    delivered = channel.delivered.frames;
                }
                assert_eq!(count(EventKind::PacketLeft), delivered);
                // Receivers are at the far end, and report from there.
                let told = keeper.count(|event| match event {
                    Event::ServiceReported { way, event } => {
                        let gives_up = ["gave-up", "overrun"].contains(&event.name);
                        usize::from(way.link) == index && way.down != down && gives_up
                    }
                    _ => false,
                });
                let books = way.services.iter().map(|service| service.receiver.given_up);
                assert_eq!(told, books.sum::<u64>());
                gave_up += told;
            }
        }
    }
    assert!(gave_up > 0);
}

/// A SYN is not data: each packet of a flow is identified by its role and number.
#[test]
fn a_packet_is_known_by_its_role_and_number() {
    for world in worlds() {
        let (_, keeper) = watched(&world);
        let mut first = std::collections::BTreeSet::new();
        let mut asked = 0;
        for (_, event) in &keeper.events {
            let Event::PacketSent(packet) = event else {
                continue;
            };
            asked += u64::from(matches!(packet.role, Role::Syn | Role::RequestSyn));
            if packet.role.carries_data() && !packet.retransmission {
                let known = (
                    packet.flow,
                    packet.connection,
                    packet.role.name(),
                    packet.seq,
                );
                assert!(first.insert(known), "{}: {known:?}", world.name);
            }
        }
        let modern = world.resolved().to_toml().contains("handshake = true");
        assert_eq!(asked > 0, modern, "{}", world.name);
    }
}

/// A file's receiver counts segments and their time, without the SYN.
#[test]
fn files_count_the_segments_that_arrived() {
    let mut files = 0;
    for world in worlds() {
        let (result, keeper) = watched(&world);
        for (index, flow) in result.flows.iter().enumerate() {
            let came = keeper.events.iter().filter_map(|(at, event)| match event {
                Event::PacketReceived(packet)
                    if packet.flow == index as u32 && packet.role == Role::Data =>
                {
                    let delay = at.saturating_since(packet.created).as_secs_f64();
                    (at.as_secs_f64() <= result.stopped_s).then_some(delay)
                }
                _ => None,
            });
            let delays: Vec<f64> = came.collect();
            if flow.app == "bulk" {
                files += 1;
                assert_eq!(delays.len() as u64, flow.packets_received, "{}", world.name);
                let mean = delays.iter().sum::<f64>() / delays.len() as f64;
                assert!(
                    (mean - flow.delay_mean_s.unwrap()).abs() < 1e-9,
                    "{}",
                    world.name
                );
            }
        }
    }
    assert!(files > 2);
}

#[test]
fn events_add_up_to_the_ledger_of_flows() {
    for world in worlds() {
        let (result, keeper) = watched(&world);
        for (index, flow) in result.flows.iter().enumerate() {
            let count = |kind| {
                let here = |event: &Event| event.flow() == Some(index as u32);
                keeper.count(|event| here(event) && event.kind() == kind)
            };
            let carries = |event: &Event| match event {
                Event::PacketSent(packet) => {
                    packet.flow == index as u32 && packet.role.carries_data()
                }
                _ => false,
            };
            assert_eq!(keeper.count(carries), flow.packets_sent, "{}", flow.name);
            let again = |event: &Event| match event {
                Event::PacketSent(packet) => carries(event) && packet.retransmission,
                _ => false,
            };
            assert_eq!(keeper.count(again), flow.retransmissions.unwrap_or(0));
            assert_eq!(count(EventKind::Timeout), flow.timeouts.unwrap_or(0));
            let done = flow.pages.or(flow.responses).unwrap_or(0);
            let last = keeper
                .events
                .iter()
                .rev()
                .find_map(|(_, event)| match event {
                    Event::ResponseDone { flow, number, .. } if *flow == index as u32 => {
                        Some(*number)
                    }
                    _ => None,
                });
            assert_eq!(last.unwrap_or(0), done, "{}", flow.name);
            assert_eq!(
                count(EventKind::FlowFinished),
                u64::from(flow.finished == Some(true)),
                "{}",
                flow.name
            );
        }
        assert!(keeper.of(EventKind::PacketEntered) > 0);
    }
}

#[test]
fn response_times_have_the_mean_of_the_result() {
    let (result, keeper) = watched(&worlds()[0]);
    let pages = result
        .flows
        .iter()
        .position(|flow| flow.pages.is_some())
        .unwrap();
    let times: Vec<f64> = keeper
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::ResponseDone { flow, duration, .. } if *flow == pages as u32 => {
                Some(duration.as_secs_f64())
            }
            _ => None,
        })
        .collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    assert!((mean - result.flows[pages].page_time_mean_s.unwrap()).abs() < 1e-9);
}

#[test]
fn a_watcher_may_end_the_run() {
    let mut keeper = Keeper {
        most: Some(100),
        ..Keeper::default()
    };
    let prepared = Prepared::new(&worlds()[0]).unwrap();
    let result = prepared.run_watched(7, 1, &mut keeper);
    // `is_over` is asked after each event of the engine, which may produce several events here.
    assert!((100..200).contains(&keeper.events.len()));
    assert!(result.stopped_s < 5.0, "{}", result.stopped_s);
}

#[test]
fn filters_admit_by_name_and_refuse_unknown_names() {
    let world = &worlds()[0];
    let names = Prepared::new(world).unwrap().names();
    let (_, keeper) = watched(world);
    let filter = EventFilter::new(&names, &["frame-lost"], &["voice"], &["radio"]).unwrap();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, event) in keeper
        .events
        .iter()
        .filter(|(_, event)| filter.admits(event))
    {
        let record = EventRecord::new(&names, *at, event);
        assert_eq!(record.event, "frame-lost");
        assert_eq!((record.flow, record.link), (Some("voice"), Some("radio")));
        *seen.entry(record.service.unwrap()).or_default() += 1;
    }
    assert_eq!(seen.keys().collect::<Vec<_>>(), [&"voice"]);
    let refused = EventFilter::new(&names, &[], &["file", "fax"], &[]).unwrap_err();
    assert!(
        matches!(refused, ScenarioError::Unknown { what: "flow", .. }),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("file, pages, voice"),
        "{refused}"
    );
}
