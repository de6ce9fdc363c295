//! Shares that follow the traffic, and timers that follow the shares (docs/spec/multi-service.md, 9.2 and 9.3).

use airlane_base::{Duration, Instant};
use airlane_link::config::Rates;
use airlane_link::{HeaderProfile, Port};
use airlane_testkit::{Setup, TestPacket};

const SECOND: Duration = Duration::from_secs(1);

/// Selective repeat with a retransmission timer of exactly one second times the factor, counted from hand-over.
fn timed(multiplier: &str) -> String {
    format!(
        "kind = \"sr-m2\", timer-origin = \"hand-over\", multiplier = {multiplier}, timers = {{ \
         ack = \"1 s\", nak = \"1 s\", keepalive = \"1 s\", rto = \"1 s\" }}"
    )
}

fn port(rates: Rates, schemes: &[(f64, String)]) -> Port<TestPacket> {
    let mut setup = Setup::new(HeaderProfile::Study);
    setup.config.rates = rates;
    for (index, (rate, scheme)) in schemes.iter().enumerate() {
        setup = setup.service(index as u8 + 1, *rate, scheme, "kind = \"none\"");
    }
    setup.build()
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Duration::from_millis(ms)
}

/// The shares of the services, the implicit raw one first.
fn rates(port: &Port<TestPacket>) -> Vec<f64> {
    port.services().map(|service| service.rate).collect()
}

fn send(port: &mut Port<TestPacket>, now: Instant, service: u8, len: usize) {
    port.handle_packet(now, TestPacket::new(service, 0, len));
    drain_all(port, now);
}

fn drain_all(port: &mut Port<TestPacket>, now: Instant) {
    while port.poll_transmit(now).is_some() {}
    while port.poll_deliver().is_some() {}
}

/// The duration of the retransmission timer of a frame of service 1.
fn timeout(port: &mut Port<TestPacket>, now: Instant) -> Duration {
    port.handle_timeout(now);
    send(port, now, 1, 100);
    port.poll_timeout()
        .expect("a frame is outstanding")
        .saturating_since(now)
}

#[test]
fn timers_follow_the_number_of_services_or_the_share() {
    // The implicit raw service does not count.
    for (multiplier, seconds) in [("\"services\"", 3), ("\"share\"", 4), ("2.0", 2)] {
        let default = "kind = \"default\"".to_owned();
        let services = [
            (0.5, timed(multiplier)),
            (1.0, default.clone()),
            (0.5, default),
        ];
        let mut port = port(Rates::Fixed, &services);
        assert_eq!(timeout(&mut port, at(0)), SECOND * seconds, "{multiplier}");
    }
}

#[test]
fn both_heuristics_agree_on_equal_shares() {
    for multiplier in ["\"services\"", "\"share\""] {
        let services = [(0.3, timed(multiplier)), (0.3, timed(multiplier))];
        assert_eq!(
            timeout(&mut port(Rates::Fixed, &services), at(0)),
            SECOND * 2
        );
    }
}

#[test]
fn measured_shares_are_those_of_the_traffic_before_overhead() {
    let services = [(0.5, timed("1.0")), (0.5, "kind = \"default\"".to_owned())];
    let mut measured = port(Rates::Measured, &services);
    let mut fixed = port(Rates::Fixed, &services);
    for port in [&mut measured, &mut fixed] {
        for ms in 0..10 {
            send(port, at(100 * ms), 1, 300);
            send(port, at(100 * ms), 2, 100);
        }
        port.handle_timeout(at(999));
        assert_eq!(rates(port)[1..], [0.5, 0.5]);
        port.handle_timeout(at(1_000));
        drain_all(port, at(1_000));
    }
    assert_eq!(rates(&fixed)[1..], [0.5, 0.5]);
    assert_eq!(rates(&measured), [0.01, 0.75, 0.25]);
    // A second without any traffic changes nothing; a second without traffic for one service leaves that service a
    // hundredth.
    measured.handle_timeout(at(2_000));
    assert_eq!(rates(&measured), [0.01, 0.75, 0.25]);
    send(&mut measured, at(2_500), 2, 100);
    measured.handle_timeout(at(3_000));
    assert_eq!(rates(&measured), [0.01, 0.01, 1.0]);
}

#[test]
fn a_measured_share_stretches_the_timers_that_follow_it() {
    let services = [
        (0.5, timed("\"share\"")),
        (0.5, "kind = \"default\"".to_owned()),
    ];
    let mut port = port(Rates::Measured, &services);
    send(&mut port, at(0), 2, 900);
    send(&mut port, at(10), 1, 100);
    // Running timers are extended, too: from 2 s to 10 s after the hand-over.
    port.handle_timeout(at(1_000));
    drain_all(&mut port, at(1_000));
    assert_eq!(rates(&port)[1], 0.1);
    assert_eq!(port.poll_timeout(), Some(at(10_010)));
}
