//! Transports in a world: a flow's TCP settings show in its metrics.

use crate::common::runs;
use airlane_base::Instant;
use airlane_sim::event::{Event, Role, Watcher};
use airlane_sim::{FlowResult, Prepared, Scenario};

/// A TCP with these settings; otherwise that of 1999.
fn tcp(settings: &str) -> String {
    let profile = match settings.contains("profile") {
        true => "",
        false => "profile = \"ns2-1999\", ",
    };
    format!("{{ kind = \"tcp\", {profile}{settings} }}")
}

/// A file over a wired and a radio hop (Balakrishnan et al. 1997, section 4, without contention).
fn file(transport: &str, size: &str, mean: &str, app: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"tcp\"\nduration = \"10000 s\"\nuntil = \"file\"\n\
         [nodes.source]\n[nodes.base]\n[nodes.mobile]\n\
         [links.wired]\nends = [\"source\", \"base\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n\
         [links.radio]\nends = [\"base\", \"mobile\"]\nrate = \"1.562 Mbit/s\"\ndelay = \"1 ms\"\n\
         frame = \"1500 B\"\nerrors = {{ kind = \"byte-exponential\", mean = \"{mean}\" }}\n\
         [[flows]]\nname = \"file\"\nends = [\"source\", \"mobile\"]\n\
         transport = {}\n\
         app = {{ kind = \"bulk\", size = \"{size}\", packet = \"1400 B\"{app} }}\n",
        tcp(transport)
    );
    Scenario::from_toml(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn results(scenario: &Scenario) -> Vec<FlowResult> {
    let runs = runs(scenario, 6).into_iter();
    runs.flat_map(|run| run.flows).collect()
}

/// Mean throughput over runs, Mbit/s; each run must complete the file.
fn throughput(transport: &str) -> f64 {
    let scenario = file(transport, "2 MB", "65536 B", "");
    let flows = results(&scenario);
    for flow in &flows {
        assert_eq!(flow.delivered_bytes, 2_000_000, "{transport}");
    }
    let sum: f64 = flows.iter().filter_map(|flow| flow.throughput_bps).sum();
    sum / flows.len() as f64 / 1e6
}

/// Balakrishnan et al. 1997, section 4.3: the order of the end-to-end schemes in the LAN.
#[test]
fn link_losses_cost_less_where_tcp_is_informed() {
    let reno = throughput("window = 23");
    let newreno = throughput("window = 23, recovery = \"newreno\"");
    let eln = throughput("window = 23, recovery = \"eln\"");
    let eln_rxmt = throughput("window = 23, recovery = \"eln-rxmt\"");
    let smart = throughput("window = 23, recovery = \"smart\"");
    assert!(reno < newreno, "{reno} {newreno}");
    assert!(reno < eln && eln < eln_rxmt, "{reno} {eln} {eln_rxmt}");
    assert!(eln_rxmt < smart, "{eln_rxmt} {smart}");
}

/// Balakrishnan et al. 1997, section 3: of data from the wireless host the base station sees what the radio lost, which
/// no receiver beyond it knows. What the wire loses stays congestion.
#[test]
fn a_base_station_tells_a_wireless_sender_what_the_radio_lost() {
    let text = file(
        "window = 23, recovery = \"eln-rxmt\"",
        "2 MB",
        "65536 B",
        "",
    )
    .to_toml();
    let sums = |notify: bool, lossy: &str| {
        let services = format!(
            "links.radio.services=[{{ number = 0, name = \"all\", rate = 1.0, scheme = {{ kind = \"snoop\", \
             base-station = \"first\", notify = {notify} }} }}]"
        );
        let clean = match lossy {
            "radio" => "links.wired.errors={ kind = \"none\" }",
            _ => "links.radio.errors={ kind = \"none\" }",
        };
        let errors =
            format!("links.{lossy}.errors={{ kind = \"byte-exponential\", mean = \"65536 B\" }}");
        let extra = [
            "flows[0].ends=[\"mobile\", \"source\"]",
            "links.radio.header=study",
            &services,
            clean,
            &errors,
        ];
        let world = Scenario::from_toml_with(&text, "up", &extra).unwrap_or_else(|e| panic!("{e}"));
        let flows = results(&world);
        assert!(flows.iter().all(|flow| flow.delivered_bytes == 2_000_000));
        let rate: f64 = flows.iter().filter_map(|flow| flow.throughput_bps).sum();
        (
            rate,
            flows
                .iter()
                .filter_map(|flow| flow.window_cuts)
                .sum::<u64>(),
        )
    };
    let ((untold, cuts), (told, fewer)) = (sums(false, "radio"), sums(true, "radio"));
    assert!(
        told > 1.2 * untold && fewer * 2 < cuts,
        "{told} {untold} {fewer} {cuts}"
    );
    // A receiver that is the next node is told by the wire itself; nothing is lost on the way to the base station.
    assert_eq!(sums(false, "wired"), sums(true, "wired"));
}

/// A receiver that remembers only the latest loss makes the source halve its window for the others.
#[test]
fn a_receiver_that_forgets_destroyed_segments_cuts_the_window() {
    let cuts = |memory: &str| {
        let transport = format!("window = 23, recovery = \"eln-rxmt\"{memory}");
        let flows = results(&file(&transport, "2 MB", "32768 B", ""));
        flows
            .iter()
            .filter_map(|flow| flow.window_cuts)
            .sum::<u64>()
    };
    assert!(cuts(", eln-memory = \"last\"") > cuts(""));
}

/// An application that reads 40 kB per second closes the window, and gets everything at that rate.
#[test]
fn a_slow_application_slows_the_sender() {
    let app = ", takes = \"320 kbit/s\"";
    for transport in [
        "window = 2",
        "window = 20",
        "window = 20, recovery = \"sack\"",
    ] {
        for flow in results(&file(transport, "1 MB", "1000000 B", app)) {
            assert_eq!(flow.delivered_bytes, 1_000_000);
            let rate = flow.throughput_bps.unwrap_or_default();
            assert!((250e3..=345e3).contains(&rate), "{transport}: {rate}");
        }
    }
}

/// Balakrishnan et al. 1997, in closed form: 1400 of 1458 bytes are user data, and a frame of 1458 bytes is destroyed
/// with probability 1 - exp(-1458 / 65536).
#[test]
fn headers_take_air_time_and_errors_and_are_no_user_data() {
    let bsd = "profile = \"bsd-1997\"";
    for flow in results(&file(bsd, "8 MB", "1000 GB", "")) {
        let peak = 1.562 * 1400.0 / 1458.0;
        let rate = flow.throughput_bps.unwrap_or_default() / 1e6;
        assert!((peak * 0.98..=peak).contains(&rate), "{rate} of {peak}");
    }
    let (mut sent, mut lost, mut bytes) = (0, 0, 0);
    for run in runs(&file(bsd, "8 MB", "65536 B", ""), 20) {
        let down = &run.links[0].down.channel;
        assert_eq!(run.links[0].name, "radio");
        sent += down.offered.frames;
        bytes += down.offered.bytes;
        lost += down.lost_air.frames;
        assert_eq!(run.flows[0].delivered_bytes, 8_000_000);
    }
    assert!(bytes > (sent - 20) * 1458 && bytes <= sent * 1458);
    let ratio = lost as f64 / sent as f64;
    // Four standard deviations over 117,000 frames.
    assert!((ratio - 0.022_002).abs() < 0.001_75, "{ratio}");
}

/// A file over one error-free hop with a queue of 100 packets.
fn hop(transport: &str, more: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"hop\"\nduration = \"10000 s\"\nuntil = \"file\"\n\
         [nodes.a]\n[nodes.b]\n\
         [links.hop]\nends = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n\
         frame = \"1500 B\"\nqueue = \"100 packets\"\n{more}\
         [[flows]]\nname = \"file\"\nends = [\"a\", \"b\"]\n\
         transport = {}\n\
         app = {{ kind = \"bulk\", size = \"20 MB\", packet = \"1400 B\" }}\n",
        tcp(transport)
    );
    Scenario::from_toml(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// Brakmo and Peterson 1995: a few segments wait, so nothing is lost; Reno fills the queue until it overflows.
#[test]
fn vegas_keeps_the_queue_short() {
    let vegas = &results(&hop(
        "window = 500, timer = \"fine\", congestion = \"vegas\", recovery = \"vegas\"",
        "",
    ))[0];
    let newreno = &results(&hop("window = 500, recovery = \"newreno\"", ""))[0];
    assert_eq!(
        (vegas.window_cuts, vegas.retransmissions),
        (Some(0), Some(0))
    );
    assert!(newreno.window_cuts > Some(0));
    let delay = |flow: &FlowResult| flow.delay_mean_s.unwrap_or_default();
    // 51 ms without a queue; three segments add 3.4 ms.
    assert!(delay(vegas) < 0.058, "{}", delay(vegas));
    assert!(delay(newreno) > 0.060, "{}", delay(newreno));
    assert!(
        vegas.throughput_bps > Some(8.0e6),
        "{:?}",
        vegas.throughput_bps
    );
}

/// RFC 9438: after a loss CUBIC uses more of a long path than Reno does.
#[test]
fn cubic_fills_a_long_path_sooner() {
    let modern = "timer = \"fine\", tick = \"1 ms\", initial-rto = \"1 s\", initial-window = 10, window = 500, \
                  recovery = \"sack\", prr = true";
    let errors = "errors = { kind = \"uniform\", rate = 0.0005 }\n";
    let mean = |congestion: &str| {
        let transport = format!("{modern}, congestion = \"{congestion}\"");
        let flows = results(&hop(&transport, errors));
        flows
            .iter()
            .filter_map(|flow| flow.throughput_bps)
            .sum::<f64>()
            / flows.len() as f64
    };
    let (cubic, reno) = (mean("cubic"), mean("reno"));
    assert!(cubic > 1.04 * reno, "{cubic} {reno}");
}

/// RFC 3522: the link pauses and then delivers everything; the timeout's retransmission was spurious.
#[test]
fn eifel_undoes_the_timeout_of_a_path_that_stood_still() {
    let more = "outages = [{ from = \"5 s\", to = \"9 s\" }]\n\
                header = \"study\"\nservices = [{ number = 0, name = \"all\", rate = 1, scheme = { kind = \"sr\" } }]\n";
    let again = |eifel: bool| {
        let transport = format!("window = 100, timestamps = true, eifel = {eifel}");
        let flows = results(&hop(&transport, more));
        flows
            .iter()
            .filter_map(|flow| flow.retransmissions)
            .sum::<u64>()
    };
    let (with, without) = (again(true), again(false));
    assert!(with > 0 && with < without / 4, "{with} {without}");
}

/// RFC 8985: losses of single segments, of retransmissions and of tails need no timeout.
#[test]
fn modern_repairs_without_the_timer() {
    let errors = "errors = { kind = \"uniform\", rate = 0.01 }\n";
    let total = |transport: &str| {
        let flows = results(&hop(transport, errors));
        let timeouts: u64 = flows.iter().filter_map(|flow| flow.timeouts).sum();
        let rate: f64 = flows.iter().filter_map(|flow| flow.throughput_bps).sum();
        assert!(flows.iter().all(|flow| flow.delivered_bytes == 20_000_000));
        (timeouts, rate)
    };
    let (modern, fast) = total("profile = \"modern\"");
    let (reno, slow) = total("window = 500");
    assert!(modern * 20 < reno, "{modern} {reno}");
    assert!(fast > 1.25 * slow, "{fast} {slow}");
}

/// RFC 3168: a queue that marks loses nothing, and stays shorter than one that has to overflow.
#[test]
fn marks_keep_the_queue_from_overflowing() {
    let sack = "window = 500, recovery = \"sack\", initial-window = 2";
    let marking = "mark-above = \"30 packets\"\n";
    let of = |transport: &str, more: &str| results(&hop(transport, more)).swap_remove(0);
    let plain = of(sack, marking);
    let ecn = of(&format!("{sack}, ecn = true"), marking);
    assert!(plain.retransmissions > Some(0));
    assert_eq!(ecn.retransmissions, Some(0));
    assert!(ecn.window_cuts > Some(0));
    assert!(ecn.delay_mean_s < plain.delay_mean_s);
    // Without marks from the link it changes nothing.
    assert_eq!(of(&format!("{sack}, ecn = true"), ""), of(sack, ""));
}

/// Windows and waits for timeouts, computed from events.
#[derive(Default)]
struct Naive {
    since: Option<Instant>,
    cwnd: f64,
    usable: f64,
    sums: [f64; 2],
    active: Instant,
    waited: f64,
    duplicates: u64,
    acknowledged: u64,
    falls: u64,
}

/// Where falls of the window are counted: 8 segments.
const LEVEL: f64 = 8.0;

impl Watcher for Naive {
    fn on_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::PacketSent(packet) if packet.role == Role::Data => {
                self.active = now;
                self.since.get_or_insert(now);
            }
            Event::PacketReceived(packet) if packet.role == Role::Ack => {
                self.active = now;
                self.duplicates += u64::from(packet.seq == self.acknowledged);
                self.acknowledged = packet.seq;
            }
            Event::Timeout(_) => {
                self.waited += now.saturating_since(self.active).as_secs_f64();
            }
            Event::TcpState(_, state) => {
                if let Some(since) = &mut self.since {
                    let stood = now.saturating_since(*since).as_secs_f64();
                    self.sums[0] += self.cwnd * stood;
                    self.sums[1] += self.usable * stood;
                    *since = now;
                }
                self.falls += u64::from(self.cwnd >= LEVEL && state.cwnd_segments < LEVEL);
                self.cwnd = state.cwnd_segments;
                self.usable = state.cwnd_segments.min(state.window_segments as f64);
            }
            _ => {}
        }
    }
}

/// The window probe agrees with the events, and changes nothing.
#[test]
fn window_probes_agree_with_events() {
    for transport in [
        "profile = \"bsd-1997\"",
        "window = 23, recovery = \"newreno\"",
    ] {
        let watched = file(
            transport,
            "2 MB",
            "16384 B",
            ", windows = true, window-level = \"11200 B\"",
        );
        let mut naive = Naive::default();
        let result = Prepared::new(&watched).unwrap();
        let mut result = result.run_watched(1, 0, &mut naive);
        let flow = result.flows.remove(0);
        let (first, last) = (0.0, result.stopped_s);
        let close = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            let off = (found / expected - 1.0).abs();
            assert!(off < 1e-6, "{transport}: {found} {expected}");
        };
        let mean = |sum: f64| sum / (last - first) * 1400.0;
        close(flow.cwnd_mean_bytes, mean(naive.sums[0]));
        close(flow.window_mean_bytes, mean(naive.sums[1]));
        assert!(naive.waited > 0.0, "there is something to wait for");
        close(flow.timeout_wait_s, naive.waited);
        assert_eq!(flow.duplicate_acks, Some(naive.duplicates), "{transport}");
        assert!(naive.falls > 0, "{transport}: it falls");
        assert_eq!(flow.window_falls, Some(naive.falls), "{transport}");
        let asked = FlowResult {
            window_falls: None,
            cwnd_mean_bytes: None,
            window_mean_bytes: None,
            timeout_wait_s: None,
            duplicate_acks: None,
            ..flow
        };
        let unwatched = file(transport, "2 MB", "16384 B", "");
        let unwatched = Prepared::new(&unwatched).unwrap().run(1, 0);
        assert_eq!(unwatched.flows, [asked], "{transport}");
    }
}
