//! User-supplied parts that imitate built-in ones, compared with these.

use crate::common::load;
use airlane_base::{Duration, Instant, Rng};
use airlane_channel::CustomErrors;
use airlane_link::ServiceStatus;
use airlane_sim::custom::{Application, Delivery, Host, Pieces, WeightPolicy};
use airlane_sim::event::{Event, Watcher};
use airlane_sim::{Prepared, RunResult, Scenario, ScenarioError};

pub(crate) struct Nobody;

impl Watcher for Nobody {
    fn on_event(&mut self, _: Instant, _: &Event) {}
}

fn custom(scenario: &Scenario, pieces: Pieces) -> Result<RunResult, ScenarioError> {
    let prepared = Prepared::new(scenario).unwrap();
    prepared.run_custom(3, 2, pieces, &mut Nobody)
}

/// Loses frames like `{ kind = "uniform" }`.
#[derive(Debug)]
struct Uniform(f64);

impl CustomErrors for Uniform {
    fn loses(&mut self, _: Instant, _: Instant, _: usize, random: &mut Rng) -> bool {
        random.chance(self.0)
    }
}

fn uniform(rate: f64) -> Pieces {
    let mut pieces = Pieces::default();
    for down in [true, false] {
        let make = move |_: Rng| -> Box<dyn CustomErrors> { Box::new(Uniform(rate)) };
        pieces
            .errors
            .insert(("radio".to_owned(), down), Box::new(make));
    }
    pieces
}

#[test]
fn a_model_with_the_draws_of_a_built_in_one_gives_its_run() {
    let size = "flows[file].app.size=20 kB";
    for name in ["three-applications", "three-applications-raw"] {
        let built_in = load(name, &["duration=60 s", size]);
        let errors = "links.radio.errors.rate=0";
        let without = load(name, &["duration=60 s", size, errors]);
        let expected = Prepared::new(&built_in).unwrap().run(3, 2);
        let mut result = custom(&without, uniform(0.05)).unwrap();
        assert!(result.scenario_hash.ends_with("+custom"));
        result.scenario_hash.clone_from(&expected.scenario_hash);
        assert_eq!(result, expected);
    }
}

/// Sends a file, like bulk.
#[derive(Debug)]
struct File(u64);

impl Application for File {
    fn on_start(&mut self, host: &mut Host) {
        host.send(0, self.0);
        host.finish();
    }
    fn on_delivered(&mut self, _: &mut Host, _: Delivery) {}
    fn on_timer(&mut self, _: &mut Host) {}
}

#[test]
fn a_custom_file_application_equals_bulk() {
    let errors = "links.radio.errors.mean=16384 B";
    let world = load("wlan-lan1", &["flows[file].app.size=300 kB", errors]);
    let expected = Prepared::new(&world).unwrap().run(3, 2);
    let mut pieces = Pieces::default();
    let make = |_: Rng| -> Box<dyn Application> { Box::new(File(300_000)) };
    pieces
        .applications
        .insert("file".to_owned(), Box::new(make));
    let result = custom(&world, pieces).unwrap();
    let (ours, bulk) = (&result.flows[0], &expected.flows[0]);
    assert_eq!(ours.app, "custom");
    assert_eq!(ours.finished, Some(true));
    assert_eq!(ours.delivered_bytes, 300_000);
    assert_eq!(ours.packets_sent, bulk.packets_sent);
    assert_eq!(ours.retransmissions, bulk.retransmissions);
    assert!(
        bulk.retransmissions > Some(0),
        "there is something to compare"
    );
    assert_eq!(result.links, expected.links);
    assert_eq!(result.stopped_s.to_bits(), expected.stopped_s.to_bits());
}

/// Sends a datagram, answers with one, and sends again after a second.
#[derive(Debug, Default)]
struct Ping {
    asked: Instant,
    sent: u64,
}

impl Application for Ping {
    fn on_start(&mut self, host: &mut Host) {
        self.on_timer(host);
    }
    fn on_delivered(&mut self, host: &mut Host, delivery: Delivery) {
        assert!(delivery.delay.unwrap() > Duration::from_millis(100));
        match delivery.end {
            1 => host.send(1, delivery.len_bytes),
            _ => host.record_response(host.now().saturating_since(self.asked)),
        }
    }
    fn on_timer(&mut self, host: &mut Host) {
        if self.sent == 20 {
            host.finish();
            return;
        }
        self.sent += 1;
        self.asked = host.now();
        host.send(0, 30);
        host.set_timer(Some(host.now() + Duration::from_secs(1)));
    }
}

#[test]
fn datagrams_go_both_ways_and_timers_run() {
    let world = load(
        "conferencing-cellular-lan1",
        &["duration=40 s", "links.radio.errors.rate=0"],
    );
    let flow = world.flows[0].name.clone();
    let mut pieces = Pieces::default();
    let make = |_: Rng| -> Box<dyn Application> { Box::new(Ping::default()) };
    pieces.applications.insert(flow, Box::new(make));
    let result = custom(&world, pieces).unwrap();
    let ours = &result.flows[0];
    assert_eq!((ours.packets_sent, ours.packets_received), (40, 40));
    assert_eq!(ours.responses, Some(20));
    assert_eq!(ours.loss_ratio, Some(0.0));
    let (there, back) = (
        ours.delay_mean_s.unwrap(),
        ours.response_time_mean_s.unwrap(),
    );
    assert!((back - 2.0 * there).abs() < 1e-6, "{back} {there}");
}

/// Sends datagrams of 1000 B.
#[derive(Debug)]
pub(crate) struct Pinger {
    pub(crate) every: Duration,
}

impl Application for Pinger {
    fn on_start(&mut self, host: &mut Host) {
        self.on_timer(host);
    }
    fn on_delivered(&mut self, _: &mut Host, _: Delivery) {}
    fn on_timer(&mut self, host: &mut Host) {
        host.send(0, 1000);
        host.set_timer(Some(host.now() + self.every));
    }
}

/// Gives one service nearly all the capacity.
#[derive(Debug)]
struct Favour {
    number: u8,
    weight: f64,
}

impl WeightPolicy for Favour {
    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
    fn weights(&mut self, _: Instant, _: bool, services: &[ServiceStatus]) -> Vec<(u8, f64)> {
        assert!(services.iter().any(|service| service.number == self.number));
        vec![(self.number, self.weight)]
    }
}

#[test]
fn weights_move_the_link_from_one_service_to_another() {
    let world = load("three-applications", &["duration=200 s"]);
    let favoured = |number, weight| {
        let mut pieces = Pieces::default();
        let policy = Favour { number, weight };
        pieces.weights.insert("radio".to_owned(), Box::new(policy));
        custom(&world, pieces)
    };
    let file = |result: RunResult| result.flows[0].delivered_bytes as f64;
    let much = file(favoured(1, 10.0).unwrap());
    let little = file(favoured(1, 0.001).unwrap());
    assert!(much > 1.1 * little, "{much} {little}");
    let refused = favoured(1, -1.0).unwrap_err();
    assert!(
        matches!(refused, ScenarioError::Weights { .. }),
        "{refused}"
    );
}

#[test]
fn custom_pieces_without_a_place_are_refused() {
    let world = load("handoff-wlan-cellular", &[]);
    let bare = world
        .links
        .iter()
        .find(|(_, link)| link.services.is_empty());
    let bare = bare.unwrap().0.clone();
    let mut pieces = Pieces::default();
    let policy = Favour {
        number: 1,
        weight: 1.0,
    };
    pieces.weights.insert(bare, Box::new(policy));
    let refused = custom(&world, pieces).unwrap_err();
    assert!(refused.to_string().contains("no services"), "{refused}");
    let mut pieces = Pieces::default();
    let make = |_: Rng| -> Box<dyn Application> { Box::new(File(1)) };
    pieces.applications.insert("fax".to_owned(), Box::new(make));
    let refused = custom(&world, pieces).unwrap_err();
    assert!(refused.to_string().contains("\"fax\""), "{refused}");
}
