//! The behaviour of applications, and the metrics reported for them.

use crate::common::{Air, Link, load, runs, talk};
use airlane_base::BothWays;
use airlane_sim::{FlowResult, Scenario, ServiceShare, run};

/// A server and a client over one link of 1 Mbit/s and 10 ms.
fn two_hosts(extra: &str, flow: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"test\"\nduration = \"100 s\"\n{extra}\n[nodes.server]\n[nodes.client]\n\
         [links.wire]\nends = [\"server\", \"client\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
         frame = \"1000 B\"\n[[flows]]\nname = \"flow\"\nends = [\"server\", \"client\"]\n{flow}"
    );
    Scenario::from_toml(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

fn flow(scenario: &Scenario) -> FlowResult {
    run(scenario, 1, 0).unwrap().flows.remove(0)
}

const PAGES: &str = "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\n\
    app = { kind = \"pages\", request = \"300 B\", reply = \"3 kB\", pause = \"100 ms\" }\n";

#[test]
fn a_file_reports_the_delay_of_its_packets_and_what_of_the_link_it_used() {
    // A window of one segment: a segment takes 8 ms and 10 ms, its acknowledgment 0.32 ms and 10 ms.
    let alone = "transport = { kind = \"tcp\", profile = \"ns2-1999\", window = 1 }\napp = { kind = \"bulk\" }\n";
    let scenario = two_hosts("", alone);
    let result = run(&scenario, 1, 0).unwrap();
    let file = &result.flows[0];
    assert!(
        (file.delay_mean_s.unwrap() - 0.018).abs() < 1e-9,
        "{file:?}"
    );
    assert!(
        (file.delay_p95_s.unwrap() / 0.018 - 1.0).abs() < 1.0 / 32.0,
        "{file:?}"
    );
    let [down, up] = [&result.links[0].down, &result.links[0].up].map(|way| way.utilisation_ratio);
    let cycle_ms = 8.0 + 10.0 + 0.32 + 10.0;
    assert!((down - 8.0 / cycle_ms).abs() < 1e-3, "{down}");
    assert!((up - 0.32 / cycle_ms).abs() < 1e-3, "{up}");
    // A full queue: the queueing delay is part of the delay, and the link is never idle.
    let greedy = "transport = { kind = \"tcp\", profile = \"ns2-1999\", window = 20 }\napp = { kind = \"bulk\" }\n";
    let result = run(&two_hosts("", greedy), 1, 0).unwrap();
    assert!(result.flows[0].delay_mean_s.unwrap() > 0.1, "{result:?}");
    let down = result.links[0].down.utilisation_ratio;
    assert!((0.98..=1.0).contains(&down), "{down}");
}

#[test]
fn a_flow_says_which_service_it_used() {
    let services =
        "header = \"study\"\nservices = [{ number = 1, name = \"all\", rate = 1, scheme = { kind = \"sr-m2\" } },
        { number = 2, name = \"acks\", rate = 1, scheme = { kind = \"sr-m2\" } }]
        classes = [{ match = { dst-port = 20 }, service = \"acks\" },
                   { match = { protocol = \"tcp\" }, service = \"all\" }]\n";
    let scenario = |services: &str| {
        let bulk =
            "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"bulk\" }\n";
        let text = two_hosts("", bulk).to_toml();
        let text = text.replace("[links.wire]\n", &format!("[links.wire]\n{services}"));
        Scenario::from_toml(&text, "test").unwrap_or_else(|e| panic!("{e}"))
    };
    let used = flow(&scenario(services)).services;
    let [wire] = &used[..] else {
        panic!("{used:?}");
    };
    let got = |shares: &[ServiceShare]| -> Vec<(String, f64)> {
        shares
            .iter()
            .map(|s| (s.service.clone(), s.ratio))
            .collect()
    };
    assert_eq!(wire.link, "wire");
    assert_eq!(got(&wire.there), [("all".to_owned(), 1.0)]);
    assert_eq!(got(&wire.back), [("acks".to_owned(), 1.0)]);
    assert_eq!(scenario(services).unreached(), []);
    assert_eq!(flow(&scenario("")).services, []);
    let without = services.split("classes").next().unwrap();
    let used = flow(&scenario(&format!("{without}\n"))).services;
    let default = [("default".to_owned(), 1.0)];
    assert_eq!(
        [&used[0].there, &used[0].back].map(|way| got(way)),
        [default.clone(), default]
    );
}

#[test]
fn a_page_takes_the_request_and_slow_start() {
    // Request: 300 B = 2.4 ms, 10 ms. Its acknowledgment leaves first: 0.32 ms. First segment: 8 ms, 10 ms; its
    // acknowledgment: 0.32 ms, 10 ms. Then the window is 2: the other two segments, back to back: 16 ms, 10 ms.
    let exact_s = (2.4 + 10.0 + 0.32 + 8.0 + 10.0 + 0.32 + 10.0 + 16.0 + 10.0) / 1e3;
    let pages = flow(&two_hosts("", PAGES));
    assert!(
        (pages.page_time_mean_s.unwrap() - exact_s).abs() < 1e-9,
        "{pages:?}"
    );
    assert_eq!(pages.page_time_sd_s, Some(0.0));
    let tail = pages.page_time_p95_s.unwrap();
    assert!((exact_s..=exact_s * 33.0 / 32.0).contains(&tail), "{tail}");
    // 100 s, with 67.04 ms per page and a pause of 100 ms.
    assert_eq!(pages.pages, Some((100.0 / (exact_s + 0.1)) as u64 + 1));
    assert_eq!(pages.retransmissions, Some(0));
    // Bits of replies over the time from the first request to the stop or, if all pages are complete, to the last
    // reply.
    let rate = |pages: &FlowResult, took_s: f64| {
        let bps = pages.delivered_bytes as f64 * 8.0 / took_s;
        let off = pages.throughput_bps.unwrap() / bps - 1.0;
        assert!(off.abs() < 1e-9, "{pages:?}");
    };
    assert!(pages.delivered_bytes >= pages.pages.unwrap() * 3_000);
    rate(&pages, 100.0);
    let seven = PAGES.replace("pause = \"100 ms\"", "pause = \"100 ms\", count = 7");
    let seven = flow(&two_hosts("", &seven));
    assert_eq!(seven.delivered_bytes, 7 * 3_000);
    rate(&seven, 7.0 * exact_s + 6.0 * 0.1);
}

#[test]
fn a_number_of_pages_ends_the_run() {
    let counted = PAGES.replace("pause = \"100 ms\"", "pause = \"100 ms\", count = 7");
    let result = run(&two_hosts("until = \"flow\"", &counted), 1, 0).unwrap();
    assert_eq!(result.flows[0].pages, Some(7));
    assert!(result.finished);
    assert!((result.stopped_s - (7.0 * 0.067_04 + 6.0 * 0.1)).abs() < 1e-9);
}

#[test]
fn pages_get_through_heavy_losses_one_fresh_connection_after_the_other() {
    let mut lossy = two_hosts("", PAGES);
    lossy.duration = "20000 s".parse().unwrap();
    let wire = lossy.links.get_mut("wire").unwrap();
    wire.errors = toml::from_str("kind = \"uniform\"\nrate = 0.2").unwrap();
    let pages = flow(&lossy);
    assert!(pages.pages.unwrap() > 500, "{pages:?}");
    assert!(pages.timeouts.unwrap() > 100, "{pages:?}");
    // Only complete pages count, and no byte twice: at most one page is in progress.
    let complete = pages.pages.unwrap() * 3_000;
    assert!((complete..complete + 3_000).contains(&pages.delivered_bytes));
}

#[test]
fn a_talker_is_active_as_long_as_its_means_say() {
    let result = runs(&talk(Link::Cellular, "LAN1", Air::default(), 40_000), 1).remove(0);
    let talk = &result.flows[0];
    // 24 packets a second, 1 / 2.35 of the time. A cycle of 2.35 s has a deviation of 1.68 s, and its packets one of
    // 24: over 17,000 cycles, 0.9 % for their ratio. The bound is four of these.
    let expected = 40_000.0 * 24.0 / 2.35;
    let share = talk.packets_sent as f64 / expected;
    assert!((share - 1.0).abs() < 0.036, "{share}");
    assert_eq!(talk.packets_received, talk.packets_sent);
}

#[test]
fn speech_leaves_every_20_ms_whatever_a_frame_takes() {
    let talk = |rate: &str, frame: &str| {
        let talk = format!(
            "transport = {{ kind = \"udp\" }}\napp = {{ kind = \"conferencing\", rate = \"{rate}\", \
             talk = \"1 s\", silence = \"0 s\" }}\n"
        );
        let text = two_hosts("", &talk).to_toml();
        let text = text.replace("frame = \"1 kB\"", &format!("frame = \"{frame}\""));
        flow(&Scenario::from_toml(&text, "test").unwrap_or_else(|e| panic!("{e}")))
    };
    let voice = talk("9.6 kbit/s", "1000 B");
    assert_eq!(voice.packets_sent, 5_001);
    assert_eq!(voice.packets_under_way, 1);
    assert_eq!(voice.delivered_bytes, 5_000 * 24);
    // A smaller frame, and a rate whose 20 ms exceed a packet.
    assert_eq!(talk("9.6 kbit/s", "12 B").packets_sent, 10_001);
    assert_eq!(talk("800 kbit/s", "1000 B").packets_sent, 10_001);
}

#[test]
fn a_source_without_silence_sends_at_its_rate() {
    let steady = two_hosts(
        "",
        "transport = { kind = \"udp\" }\napp = { kind = \"conferencing\", rate = \"64 kbit/s\", \
         packet = \"160 B\", talk = \"1 s\", silence = \"0 s\" }\n",
    );
    // 50 packets a second, the first at 0, the last at 100 s.
    assert_eq!(flow(&steady).packets_sent, 5_001);
}

#[test]
fn packets_on_their_way_at_the_end_are_not_lost() {
    let mut scenario = two_hosts(
        "",
        "transport = { kind = \"udp\" }\napp = { kind = \"conferencing\", rate = \"500 kbit/s\", \
         packet = \"160 B\", talk = \"1 s\", silence = \"0 s\" }\n",
    );
    scenario.links.get_mut("wire").unwrap().delay = BothWays::same("5 s".parse().unwrap());
    let voice = flow(&scenario);
    assert_eq!(voice.loss_ratio, Some(0.0));
    // 5 s of 100 s: these packets count for no throughput.
    let share = voice.packets_under_way as f64 / voice.packets_sent as f64;
    assert!((share - 0.05).abs() < 1e-3, "{voice:?}");
    let bps = voice.throughput_bps.unwrap();
    assert!((bps / 475e3 - 1.0).abs() < 1e-3, "{bps}");
    // Regardless of the drain.
    scenario.drain = "0 s".parse().unwrap();
    assert_eq!(flow(&scenario), voice);
}

#[test]
fn a_flow_starts_at_its_configured_time() {
    let late = two_hosts(
        "",
        "start = \"99 s\"\ntransport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"bulk\" }\n",
    );
    let file = flow(&late);
    assert_eq!(file.finished, Some(false));
    // One second of slow start and then line rate, not a hundred seconds.
    assert!(file.delivered_bytes < 125_000 && file.delivered_bytes > 100_000);
}

#[test]
fn a_run_that_may_not_finish_is_reported() {
    let bulk = "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"bulk\", size = \"1 GB\" }\n";
    let result = run(&two_hosts("until = \"flow\"", bulk), 1, 0).unwrap();
    assert!(!result.finished);
    assert_eq!(result.stopped_s, 100.0);
    assert_eq!(result.flows[0].finished, Some(false));
}

#[test]
fn goodput_is_reported_only_where_the_bytes_are_the_flows_own() {
    let alone = run(&load("cellular-lan1", &["duration=100 s"]), 1, 0).unwrap();
    assert!(alone.flows[0].goodput_ratio.is_some());
    let shared = run(&load("three-applications-raw", &["duration=100 s"]), 1, 0).unwrap();
    assert!(shared.flows.iter().all(|f| f.goodput_ratio.is_none()));
    // Without a wireless link, the denominator is undefined.
    let bulk = "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"bulk\", size = \"1 MB\" }\n";
    assert_eq!(flow(&two_hosts("", bulk)).goodput_ratio, None);
}

#[test]
fn services_repair_what_the_link_loses_and_say_so() {
    let result = run(&load("three-applications", &["duration=300 s"]), 1, 0).unwrap();
    let radio = result.links.iter().find(|l| l.name == "radio").unwrap();
    let service = |name: &str| radio.down.services.iter().find(|s| s.name == name).unwrap();
    let file = service("file");
    assert_eq!(file.scheme, "sr-m2");
    assert!(file.sender.repair_frames_sent > 0);
    assert!(file.receiver.packets_recovered > 0);
    assert_eq!(file.receiver.residual_lost, 0);
    assert!(file.receiver.packets_delivered <= file.sender.packets_sent);
    let voice = service("voice");
    assert!(
        voice.receiver.residual_lost > 0,
        "one retransmission is not enough at 5 %"
    );
    for s in [file, voice, service("pages")] {
        let (g, l) = (s.goodput_ratio.unwrap(), s.loss_ratio.unwrap());
        assert!((s.effective_goodput_ratio.unwrap() - g * (1.0 - l)).abs() < 1e-12);
        assert!(s.delay_s.unwrap() > 0.1);
    }
    // The bytes sent by the services are those that entered the channel.
    let sent: u64 = radio
        .down
        .services
        .iter()
        .map(|s| s.sender.frame_sent_bytes)
        .sum();
    assert_eq!(sent, radio.down.channel.offered.bytes);
    let received: u64 = radio
        .down
        .services
        .iter()
        .map(|s| s.receiver.frames_received)
        .sum();
    assert_eq!(received, radio.down.channel.delivered.frames);
}

#[test]
fn unmatched_packets_take_the_raw_service() {
    // No packet is EF or TCP: the speech uses the implicit default service.
    let assignments = ["duration=100 s", "flows[voice].dscp=BE"];
    let result = run(&load("three-applications", &assignments), 1, 0).unwrap();
    let radio = result.links.iter().find(|l| l.name == "radio").unwrap();
    let raw = radio.down.services.iter().find(|s| s.number == 0).unwrap();
    assert_eq!(raw.name, "default");
    let voice = result.flows.iter().find(|f| f.name == "voice").unwrap();
    assert_eq!(raw.sender.packets_offered, voice.packets_sent);
}

#[test]
fn a_path_combines_the_measures_of_its_links() {
    let result = run(&load("mixed-cellular-wan2", &["duration=600 s"]), 1, 0).unwrap();
    let [path] = &result.paths[..] else {
        panic!("all flows join the same ends: {:?}", result.paths);
    };
    assert_eq!(path.links, ["radio-a", "wired", "radio-b"]);
    // The services of TCP and voice combine only with their own kind; the raw one carried nothing.
    let services: Vec<_> = path.offers.iter().map(|o| o.services.clone()).collect();
    assert_eq!(
        services,
        [[Some(1), None, Some(1)], [Some(2), None, Some(2)]]
    );
    let measured = |link: &str, number: u8| {
        let link = result.links.iter().find(|l| l.name == link).unwrap();
        let mut services = link.down.services.iter();
        services.find(|s| s.number == number).unwrap().clone()
    };
    for (offer, rate) in path.offers.iter().zip([0.33, 0.66]) {
        let number = offer.services[0].unwrap();
        let radios = ["radio-a", "radio-b"].map(|link| measured(link, number));
        let kept = radios.iter().map(|s| 1.0 - s.loss_ratio.unwrap());
        let loss = 1.0 - kept.product::<f64>();
        assert!(
            (offer.loss_ratio.unwrap() - loss).abs() < 1e-12,
            "{offer:?}"
        );
        let delay_s = radios
            .iter()
            .map(|s| s.delay_s.unwrap() + s.queueing_s.unwrap());
        let delay_s = delay_s.sum::<f64>() + 0.05;
        assert!((offer.delay_s - delay_s).abs() < 1e-9, "{offer:?}");
        let e = radios.iter().map(|s| s.effective_goodput_ratio.unwrap());
        // The raw service gets the smallest share that any service states.
        let bps = 14_400.0 * rate / (0.33 + 0.33 + 0.66) * e.fold(1.0, f64::min);
        assert!((offer.capacity_bps / bps - 1.0).abs() < 1e-9, "{offer:?}");
    }
}

/// On a link without errors, RLP's receiver sends nothing, but must measure all the same.
#[test]
fn an_end_that_only_receives_measures() {
    let changes = ["duration=20 s", "links.radio.errors.rate=0"];
    let result = run(&load("conferencing-cellular-lan1-rlp", &changes), 1, 0).unwrap();
    let [offer] = &result.paths[0].offers[..] else {
        panic!("{:?}", result.paths);
    };
    assert_eq!(offer.loss_ratio, Some(0.0));
}

/// The same source on an underloaded link, and on one that it overloads while it talks.
#[test]
fn a_loaded_path_reports_queueing() {
    let path = |source: &str| {
        let rate = format!("flows[talk].app.rate={source}");
        let changes = ["duration=300 s", "links.radio.errors.rate=0", &rate];
        let result = run(&load("conferencing-cellular-lan1-rlp", &changes), 1, 0).unwrap();
        let service = result.links.iter().find(|l| l.name == "radio").unwrap();
        let service = service.down.services[0].clone();
        (result.paths[0].offers[0].delay_s, service)
    };
    let (idle_s, idle) = path("2 kbit/s");
    let (loaded_s, loaded) = path("20 kbit/s");
    let q = |s: &airlane_sim::ServiceResult| s.queueing_s.unwrap();
    // A packet that arrives alone leaves at once; the delay of a link itself does not depend on the load.
    assert!(q(&idle) < 1e-3, "{idle:?}");
    assert!(q(&loaded) > 0.02, "{loaded:?}");
    assert_eq!(idle.delay_s, loaded.delay_s);
    assert!(((loaded_s - idle_s) - (q(&loaded) - q(&idle))).abs() < 1e-12);
}

/// On a link without repair, on one whose parities carry the blocks of acknowledgments, and on one that delivers in
/// order.
#[test]
fn every_recovery_completes_the_file() {
    let schemes = [
        "{ kind = \"default\" }",
        "{ kind = \"xor\" }",
        "{ kind = \"sr-m2\" }",
    ];
    for scheme in schemes {
        let throughput = ["tahoe", "reno", "newreno", "sack"].map(|recovery| {
            let set = |key: &str, value: &str| format!("{key}={value}");
            let world = load(
                "wlan-lan1-rlp",
                &[
                    "flows[file].app.size=1 MB",
                    "links.radio.errors.mean=32768 B",
                    &set("links.radio.services[0].scheme", scheme),
                    &set("flows[file].transport.recovery", recovery),
                ],
            );
            let file = flow(&world);
            assert_eq!(file.finished, Some(true), "{recovery} over {scheme}");
            assert_eq!(file.delivered_bytes, 1_000_000, "{recovery} over {scheme}");
            file.throughput_bps.unwrap()
        });
        let [_, reno, _, sack] = throughput;
        assert!(sack > 0.95 * reno, "{throughput:?} over {scheme}");
    }
}
