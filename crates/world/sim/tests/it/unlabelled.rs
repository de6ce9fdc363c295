//! Links for unmarked traffic, with services by goal, classes by behaviour and a found rate: with no kind of TCP is a
//! file worse off than on the raw link.

use airlane_sim::{Summary, run};

use crate::common;

fn summed(name: &str, congestion: &str, round_trip_ms: u32, loss: f64) -> Summary {
    let scenario = common::load(
        name,
        &[
            &format!("links.radio.delay={} ms", round_trip_ms / 2),
            &format!("links.radio.errors.rate={loss}"),
            &format!("flows[0].transport.congestion={congestion}"),
            &format!("flows[0].transport.pacing={}", congestion == "bbr"),
        ],
    );
    common::sums(&scenario, 2)
}

fn mean(summary: &Summary, flow: &str, metric: &str) -> f64 {
    let flow = summary.flows.iter().find(|f| f.name == flow).unwrap();
    flow.get(metric).unwrap().mean
}

#[test]
fn a_file_is_no_worse_whatever_controls_it() {
    // Allows for the overhead of keys, numbers and tags, and for chance between two runs.
    let least = 0.9;
    for (congestion, round_trip_ms, loss) in [
        ("bbr", 50, 0.05),
        ("bbr", 150, 0.1),
        ("bbr", 150, 0.01),
        ("cubic", 50, 0.05),
        ("cubic", 150, 0.1),
    ] {
        let [raw, served] = ["unlabelled-raw", "unlabelled"].map(|name| {
            mean(
                &summed(name, congestion, round_trip_ms, loss),
                "file",
                "throughput_bps",
            )
        });
        let case = format!("{congestion}, {round_trip_ms} ms, {loss}: {raw} and {served}");
        assert!(served > least * raw, "{case}");
        // CUBIC takes losses for congestion; once they are repaired, it has nearly the whole link.
        assert!(congestion == "bbr" || served > 5.0 * raw, "{case}");
    }
}

#[test]
fn bbr_retransmits_little_of_what_the_link_repairs() {
    // Segments that TCP retransmits before they arrive: its receiver drops older ones (PAWS), and without a hold so
    // many are affected that TCP repairs most of the link's 5 % itself.
    let summary = summed("unlabelled", "bbr", 50, 0.05);
    let count = |metric| mean(&summary, "file", metric);
    let needed = count("retransmissions") - count("duplicates");
    let lost = 0.05 * count("throughput_bps") * 30.0 / (8.0 * 1370.0);
    assert!(needed < 0.1 * lost, "{needed} of {lost}");
}

#[test]
fn pages_and_calls_are_better() {
    let [raw, served] =
        ["unlabelled-raw", "unlabelled"].map(|name| summed(name, "cubic", 50, 0.05));
    let page = |summary: &Summary| mean(summary, "pages", "page_time_mean_s");
    assert!(
        page(&served) < 0.7 * page(&raw),
        "{} and {}",
        page(&raw),
        page(&served)
    );
    for call in ["call-down", "call-up"] {
        let lost = |summary: &Summary| mean(summary, call, "loss_ratio");
        assert!(
            lost(&raw) > 0.03 && lost(&served) < 0.003,
            "{call}: {}",
            lost(&served)
        );
    }
}

/// Loss of a call with a budget of 300 ms to fades of a mean length, in percent: both directions, with services.
fn lost_to_fades(round_trip_ms: u32, fade_ms: u32) -> f64 {
    let errors = format!(
        "links.radio.errors={{ kind = \"two-state-arrival\", good = \"{} ms\", bad = \"{fade_ms} ms\", ber_good = 0, ber_bad = 1 }}",
        19 * fade_ms
    );
    let delay = format!("links.radio.delay={} ms", round_trip_ms / 2);
    let scenario = common::load("unlabelled", &[&errors, &delay, "duration=40 s"]);
    // With fades of 80 ms and a round trip of 150 ms, four runs have a standard error of 0.2 and would only test the
    // draws.
    let summary = common::sums(&scenario, 48);
    ["call-down", "call-up"]
        .map(|call| 50.0 * mean(&summary, call, "loss_ratio"))
        .iter()
        .sum()
}

#[test]
fn a_call_loses_to_fades_little_more_than_it_must() {
    // A sender that repeats all the time loses only packets in fades that outlast the budget: of 5 %, a share of
    // exp((half the round trip - 300 ms) / fade). The third column allows for sending only two or three times; it is
    // one and a half times what was measured.
    for (round_trip_ms, fade_ms, added) in [
        (10, 50, 0.1),
        (50, 50, 0.2),
        (50, 80, 0.25),
        (150, 50, 0.45),
        (150, 80, 0.6),
        (300, 20, 1.1),
        (300, 50, 0.7),
    ] {
        let left = f64::from(round_trip_ms) / 2.0 - 300.0;
        let least = 5.0 * libm::exp(left / f64::from(fade_ms));
        let lost = lost_to_fades(round_trip_ms, fade_ms);
        assert!(
            lost < least + added,
            "{round_trip_ms} ms, fades of {fade_ms} ms: {lost} %, at least {least}"
        );
    }
}

#[test]
fn a_flow_says_which_services_its_packets_got_while_it_showed_what_it_is() {
    let scenario = common::load("unlabelled", &["duration=10 s", "drain=0 s"]);
    let result = run(&scenario, 1, 0).unwrap();
    let file = &result.flows[0].services[0];
    let [first, others @ ..] = &file.there[..] else {
        panic!("{file:?}");
    };
    // The flow looks like a page until it is long.
    assert_eq!(first.service, "files");
    assert!(first.ratio > 0.9 && !others.is_empty(), "{file:?}");
    assert!(
        others.iter().all(|other| other.service == "pages"),
        "{file:?}"
    );
    // The packets of the flows are those offered to the services, one by one.
    let radio = result
        .links
        .iter()
        .find(|link| link.name == "radio")
        .unwrap();
    // The second flow starts at the client.
    let ways = [(&radio.down, true), (&radio.up, false)];
    for (way, down) in ways {
        for service in &way.services {
            let got = result.flows.iter().flat_map(|flow| {
                let of_server = ["file", "call-down"].contains(&&*flow.name);
                let used = flow.services.iter().filter(|used| used.link == "radio");
                used.flat_map(move |used| {
                    if of_server == down {
                        &used.there
                    } else {
                        &used.back
                    }
                })
            });
            let got = got.filter(|share| share.service == service.name);
            let packets: u64 = got.map(|share| share.packets).sum();
            assert_eq!(packets, service.sender.packets_offered, "{}", service.name);
        }
    }
}
