//! Web transactions: page times, what counts, and which sizes are drawn.

use std::path::Path;

use airlane_sim::{FlowResult, Scenario, run};

const MAH_FILES: &str = include_str!("../../data/http-mah/HttpConnections.cdf");

/// A client and a server over one link of 1 Mbit/s and 10 ms, with frames of 1000 B.
fn world(app: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"test\"\nduration = \"100 s\"\n[nodes.server]\n[nodes.client]\n\
         [links.wire]\nends = [\"server\", \"client\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
         frame = \"1000 B\"\n[[flows]]\nname = \"web\"\nends = [\"server\", \"client\"]\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\" }}\napp = {{ kind = \"web\", {app} }}\n"
    );
    Scenario::from_toml(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

/// The world with these tables for requests, replies and files.
fn with_tables(app: &str, tables: [&str; 3]) -> Scenario {
    let mut scenario = world(&format!("distributions = \"tables\", {app}"));
    let read = |path: &Path| {
        let index = match path.to_str().unwrap() {
            "tables/HttpRequestLength.cdf" => 0,
            "tables/HttpReplyLength.cdf" => 1,
            "tables/HttpConnections.cdf" => 2,
            other => panic!("{other} was not asked for"),
        };
        Ok(tables[index].to_owned())
    };
    scenario.load_tables(read).unwrap();
    scenario
}

fn web(scenario: &Scenario) -> FlowResult {
    run(scenario, 1, 0).unwrap().flows.remove(0)
}

fn close(found: Option<f64>, exact: f64) {
    assert!(
        (found.unwrap() / exact - 1.0).abs() < 1e-9,
        "{found:?}, not {exact}"
    );
}

const SMALL: [&str; 3] = ["300 1 1", "2500 1 1", "1 1 1"];

#[test]
fn a_page_without_objects_takes_two_transfers() {
    // Delivered: like a page of 3 kB, since 2500 B fill three packets (see the test of `pages`).
    let app = "files = \"total\", completion = \"delivered\"";
    let delivered_s = (2.4 + 10.0 + 0.32 + 8.0 + 10.0 + 0.32 + 10.0 + 16.0 + 10.0) / 1e3;
    let page = web(&with_tables(app, SMALL));
    close(page.page_time_mean_s, delivered_s);
    // Acknowledged: each transfer waits for its last acknowledgment to come back.
    let round_s = |data_ms: f64| (data_ms + 10.0 + 0.32 + 10.0) / 1e3;
    let acknowledged_s = round_s(2.4) + round_s(8.0) + round_s(16.0);
    let app = "files = \"total\", throughput = \"completed\"";
    let page = web(&with_tables(app, SMALL));
    close(page.page_time_mean_s, acknowledged_s);
    close(page.throughput_bps, 24_000.0 / acknowledged_s);
    assert_eq!(page.pages, Some((100.0 / acknowledged_s) as u64));
    assert_eq!((page.retransmissions, page.timeouts), (Some(0), Some(0)));
}

#[test]
fn every_object_is_requested_and_all_bytes_of_complete_pages_count() {
    // Five objects and the page: six requests of one packet, six replies of three.
    let tables = ["300 1 1", "2500 1 1", "5 1 1"];
    let page = web(&with_tables("count = 20", tables));
    assert_eq!((page.pages, page.finished), (Some(20), Some(true)));
    assert_eq!(page.packets_sent, 20 * 6 * (1 + 3));
    assert_eq!(page.delivered_bytes, 20 * 6 * 3_000);
    // Pages follow each other directly.
    let all_s = 20.0 * page.page_time_mean_s.unwrap();
    close(page.throughput_bps, 20.0 * 18_000.0 * 8.0 / all_s);
    // With a think time they do not, and it counts as part of the time.
    let thinking = web(&with_tables("count = 20, think = \"1 s\"", tables));
    close(
        thinking.throughput_bps,
        20.0 * 18_000.0 * 8.0 / (all_s + 19.0),
    );
}

#[test]
fn an_unfinished_last_transaction_adds_neither_bytes_nor_time() {
    let app = "parallel = 1, throughput = \"completed\"";
    let mut scenario = with_tables(app, ["300 1 1", "2500 1 1", "5 1 1"]);
    let full = web(&scenario);
    let page_s = full.page_time_mean_s.unwrap();
    // Two and a half pages.
    scenario.duration = format!("{} ms", (2.5 * page_s * 1e3) as u64)
        .parse()
        .unwrap();
    let cut = web(&scenario);
    assert_eq!(cut.pages, Some(2));
    assert!(cut.delivered_bytes > 2 * 18_000, "{cut:?}");
    close(cut.throughput_bps, full.throughput_bps.unwrap());
    // By default, both count.
    let duration = scenario.duration;
    let mut scenario = with_tables("parallel = 1", ["300 1 1", "2500 1 1", "5 1 1"]);
    scenario.duration = duration;
    let cut = web(&scenario);
    let bits = cut.delivered_bytes as f64 * 8.0;
    close(cut.throughput_bps, bits / duration.as_secs_f64());
}

#[test]
fn parallel_and_persistent_connections_are_faster() {
    let tables = ["300 1 1", "9000 1 1", "7 1 1"];
    let time = |app: &str| web(&with_tables(app, tables)).page_time_mean_s.unwrap();
    let one = time("parallel = 1");
    let four = time("");
    let persistent = time("persistent = true");
    assert!(four < 0.7 * one, "{four} {one}");
    // The window of an open connection is already large.
    assert!(persistent < 0.96 * four, "{persistent} {four}");
    // The link limits the rate: eight replies of nine packets.
    assert!(persistent > 8.0 * 9.0 * 0.008, "{persistent}");
}

#[test]
fn files_per_page_are_read_both_ways() {
    let tables = ["300 1 1", "1000 1 1", MAH_FILES];
    let n = 3_000.0;
    // 2.838 files with a deviation of 4.11: a standard error of 0.075 over 3000 pages. The bound is four of them.
    for (files, expected) in [("total", 2.838), ("additional", 3.838)] {
        let app = format!("count = {n}, files = \"{files}\"");
        let mut scenario = with_tables(&app, tables);
        scenario.duration = "100000 s".parse().unwrap();
        let web = web(&scenario);
        assert_eq!(web.finished, Some(true));
        let per_page = web.delivered_bytes as f64 / 1_000.0 / n;
        assert!((per_page - expected).abs() < 0.3, "{files}: {per_page}");
    }
}

#[test]
fn a_zero_size_means_a_thousand_bytes_and_long_requests_are_split() {
    let empty = web(&with_tables("count = 10", ["0 1 1", "0 1 1", "0 1 1"]));
    assert_eq!(empty.delivered_bytes, 10_000);
    assert_eq!(empty.packets_sent, 10 * 2);
    let long = web(&with_tables("count = 10", ["2100 1 1", "1 1 1", "0 1 1"]));
    assert_eq!(long.packets_sent, 10 * (3 + 1), "{long:?}");
    assert_eq!(long.delivered_bytes, 10_000);
}

#[test]
fn repetitions_draw_the_same_sizes_and_seeds_do_not() {
    let scenario = world("count = 40");
    let all: Vec<FlowResult> = (0..3)
        .map(|k| run(&scenario, 1, k).unwrap().flows.remove(0))
        .collect();
    // Without losses the repetitions are identical.
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    let other = run(&scenario, 2, 0).unwrap().flows.remove(0);
    assert_ne!(all[0].delivered_bytes, other.delivered_bytes);
}

#[test]
fn pages_get_through_heavy_losses_with_every_kind_of_connection() {
    for app in [
        "",
        "persistent = true",
        "completion = \"delivered\"",
        "persistent = true, completion = \"delivered\"",
        "parallel = 1, think = \"1 s\"",
    ] {
        let mut scenario = with_tables(app, ["300 1 1", "5000 1 1", "4 1 1"]);
        scenario.duration = "20000 s".parse().unwrap();
        let wire = scenario.links.get_mut("wire").unwrap();
        wire.errors = toml::from_str("kind = \"uniform\"\nrate = 0.15").unwrap();
        let web = web(&scenario);
        let pages = web.pages.unwrap();
        assert!(pages > 100 && web.timeouts.unwrap() > 100, "{app}: {web:?}");
        // No byte counts twice; at most one page is in progress.
        let complete = pages * 25_000;
        assert!(
            (complete..complete + 25_000).contains(&web.delivered_bytes),
            "{app}"
        );
    }
}

#[test]
fn tables_are_read_with_care_and_belong_to_the_world() {
    let built_in = world("count = 3");
    let own = with_tables("count = 3", SMALL);
    let other = with_tables("count = 3", ["300 1 1", "2501 1 1", "1 1 1"]);
    assert_ne!(own.hash(), other.hash());
    assert_ne!(own.hash(), built_in.hash());

    let mut missing = world("distributions = \"tables\"");
    let e = run(&missing, 1, 0).unwrap_err().to_string();
    assert!(e.contains("have not been read"), "{e}");
    let e = missing
        .load_tables(|_| Err("no such file".to_owned()))
        .unwrap_err();
    let e = e.to_string();
    assert!(
        e.contains("flows[0].app.distributions names tables/HttpRequestLength.cdf")
            && e.contains("no such file"),
        "{e}"
    );
    for (text, needle) in [
        (
            "10 1 0.5\n9 1 1\n",
            "tables/HttpRequestLength.cdf:2: the value 9 follows 10",
        ),
        (
            "2000000000 1 1\n",
            "HttpRequestLength.cdf:1: a value of 2000000000",
        ),
    ] {
        let e = missing.load_tables(|_| Ok(text.to_owned())).unwrap_err();
        assert!(e.to_string().contains(needle), "{e}");
    }
}

#[test]
fn impossible_clients_are_refused() {
    let refused = |assignment: &str| {
        let text = world("").to_toml();
        Scenario::from_toml_with(&text, "w", &[assignment])
            .unwrap_err()
            .to_string()
    };
    assert!(refused("flows[web].app.parallel=0").contains("1 to 64"));
    assert!(refused("flows[web].app.parallel=65").contains("1 to 64"));
    assert!(refused("flows[web].app.count=0").contains("at least 1"));
    assert!(refused("flows[web].app.files=some").contains("additional"));
    assert!(
        refused("flows[web].transport={ kind = \"udp\" }").contains("web does not run over udp")
    );
}

#[test]
fn a_bundle_is_one_request_and_one_reply_of_all_objects() {
    // A page of 3 kB with two objects of the same size: one more request, and one reply of 5000 B.
    let tables = ["300 1 1", "2500 1 1", "2 1 1"];
    let round_s = |data_ms: f64| (data_ms + 10.0 + 0.32 + 10.0) / 1e3;
    let app = "persistent = true, bundle = true, count = 1";
    let page = web(&with_tables(app, tables));
    // The page has opened the window of its connection to four segments; the fifth follows them without a pause.
    let page_s = round_s(2.4) + round_s(8.0) + round_s(16.0);
    close(page.page_time_mean_s, page_s + round_s(2.4) + round_s(40.0));
    assert_eq!(page.delivered_bytes, 8_000);
    assert_eq!(page.packets_sent, 2 + 3 + 5);
}

#[test]
fn a_request_may_be_one_packet_of_its_length() {
    let tables = ["700 1 1", "200 1 1", "0 1 1"];
    let sent = |app: &str| web(&with_tables(app, tables)).packets_sent;
    assert_eq!(sent("packet = \"200 B\", count = 1"), 4 + 1);
    assert_eq!(
        sent("packet = \"200 B\", requests = \"one\", count = 1"),
        1 + 1
    );
    // The part that the frames cannot carry is left out.
    let long = ["1700 1 1", "200 1 1", "0 1 1"];
    let page = web(&with_tables("requests = \"one\", count = 1", long));
    assert_eq!(page.packets_sent, 2);
}

#[test]
fn a_run_without_a_page_has_zero_throughput_or_none() {
    let cut = |app: &str| {
        let mut scenario = world(app);
        scenario.duration = airlane_base::Duration::from_millis(5);
        web(&scenario).throughput_bps
    };
    for (throughput, bps) in [
        ("delivered", Some(0.0)),
        ("completed", None),
        ("completed-or-zero", Some(0.0)),
    ] {
        let app = format!("count = 1, throughput = \"{throughput}\"");
        assert_eq!(cut(&app), bps, "{throughput}");
    }
}

#[test]
fn traffic_is_seeded_apart_from_errors() {
    let bytes = |key: &str, seed: u64, repetition: u64| {
        let text = format!("{key}\n{}", world("count = 50, parallel = 1").to_toml());
        let scenario = Scenario::from_toml(&text, "test").unwrap();
        run(&scenario, seed, repetition).unwrap().flows[0].delivered_bytes
    };
    // By default the seed decides, the same in every repetition.
    assert_eq!(bytes("", 1, 0), bytes("", 1, 1));
    assert_ne!(bytes("", 1, 0), bytes("", 2, 0));
    assert_eq!(bytes("traffic-seed = 1", 2, 3), bytes("", 1, 0));
    let each = |repetition| bytes("traffic-seed = \"each-run\"", 1, repetition);
    assert_eq!(each(0), bytes("", 1, 0));
    assert_ne!(each(0), each(1));
}
