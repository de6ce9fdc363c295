//! Links that compress the headers of TCP/IP: what they save, and what a lost packet takes with it.

use airlane_base::Instant;
use airlane_sim::event::{Event, EventRecord, Names, Watcher};
use airlane_sim::{DirectionResult, Prepared, RunResult, Scenario, run};

const COMPRESSED: &str = "header-compression = \"rfc1144\"";

/// A file over a radio, with these settings of its link and its transport.
fn file(link: &str, transport: &str) -> Result<Scenario, String> {
    let text = format!(
        "schema = 1\nname = \"phone\"\nduration = \"6000 s\"\nuntil = \"file\"\n[nodes]\nbase = {{}}\nphone = {{}}\n\
         [links.radio]\nends = [\"base\", \"phone\"]\nrate = \"12 kbit/s\"\ndelay = \"110 ms\"\n{link}\n\
         [[flows]]\nname = \"file\"\nends = [\"base\", \"phone\"]\n\
         app = {{ kind = \"bulk\", size = \"200 kB\", packet = \"256 B\" }}\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 8, {transport} }}\n"
    );
    Scenario::from_toml(&text, "phone.toml").map_err(|error| error.to_string())
}

fn sent(link: &str, transport: &str) -> RunResult {
    run(&file(link, transport).unwrap(), 1, 0).unwrap()
}

fn down(result: &RunResult) -> &DirectionResult {
    &result.links[0].down
}

/// Only the number of a segment steps, by its length: 4 bytes (Ludwig et al. 1999, LUD-T1-r8).
#[test]
fn a_clean_link_carries_four_bytes_of_header() {
    let counted = "header-size = \"40 B\"";
    let [whole, compressed] = ["", COMPRESSED].map(|link| sent(link, counted));
    assert!(down(&whole).headers.is_none());
    let headers = down(&compressed).headers.unwrap();
    assert_eq!((headers.whole, headers.out_of_step.frames), (1, 0));
    assert_eq!(headers.bytes, 40 + 4 * headers.compressed);
    // Acknowledgments step by a segment of 256 bytes, which takes three bytes to say.
    let acks = compressed.links[0].up.headers.unwrap();
    assert!(
        (6.9..7.5).contains(&acks.mean_bytes()),
        "{}",
        acks.mean_bytes()
    );
    let rate = |result: &RunResult| result.flows[0].throughput_bps.unwrap();
    let gain = rate(&compressed) / rate(&whole) / (296.0 / 260.0);
    assert!((0.99..1.01).contains(&gain), "{gain}");
}

/// Ludwig et al. 1999, LUD-C-32: a loss after the compressor takes what follows with it, and a timeout ends it.
#[test]
fn a_lost_packet_takes_the_rest_of_the_window_with_it() {
    let lossy = "errors = { kind = \"uniform\", rate = 0.02 }";
    let counted = "header-size = \"40 B\"";
    let whole = sent(lossy, counted);
    let compressed = sent(&format!("{lossy}\n{COMPRESSED}"), counted);
    for result in [&whole, &compressed] {
        assert!(result.flows[0].finished == Some(true));
    }
    let headers = down(&compressed).headers.unwrap();
    let damaged = down(&compressed).channel.lost_air.frames;
    let each = headers.out_of_step.frames as f64 / damaged as f64;
    assert!((2.0..8.0).contains(&each), "{each} of {damaged}");
    let timeouts = |result: &RunResult| result.flows[0].timeouts.unwrap();
    assert!(timeouts(&compressed) > 2 * timeouts(&whole));
}

/// Where the link repairs, nothing comes out of step.
#[test]
fn a_link_that_repairs_keeps_both_ends_in_step() {
    let counted = "header-size = \"40 B\"";
    let radio = "errors = { kind = \"blocks\", model = \"onoff-c\" }\n\
                 gsm = { frame = { blocks = 7 }, persistence = { polls = 128 } }";
    let whole = sent(radio, counted);
    let compressed = sent(&format!("{radio}\n{COMPRESSED}"), counted);
    let headers = down(&compressed).headers.unwrap();
    assert_eq!(headers.out_of_step.frames, 0);
    assert!(headers.mean_bytes() < 6.0, "{}", headers.mean_bytes());
    let rate = |result: &RunResult| result.flows[0].throughput_bps.unwrap();
    assert!(rate(&compressed) > 1.1 * rate(&whole));
}

/// A reset of the circuit loses octets, and the compressor does not know.
#[test]
fn a_reset_of_the_circuit_puts_its_ends_out_of_step() {
    let outage = "outages = [{ from = \"10 s\", to = \"16 s\" }]\ngsm = {}";
    let result = sent(&format!("{outage}\n{COMPRESSED}"), "header-size = \"40 B\"");
    let way = down(&result);
    assert!(way.circuit.unwrap().spoiled.frames > 0);
    assert!(result.flows[0].finished == Some(true));
    assert_eq!(way.channel.dropped_queue.frames, 0);
    assert!(way.headers.unwrap().whole > 1, "{:?}", way.headers);
}

#[test]
fn headers_with_timestamps_are_whole() {
    let stamped = "header-size = \"40 B\", timestamps = true";
    let result = sent(COMPRESSED, stamped);
    let headers = down(&result).headers.unwrap();
    assert_eq!((headers.compressed, headers.mean_bytes()), (0, 40.0));
}

struct Dropped(Names, u64);

impl Watcher for Dropped {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if matches!(event, Event::PacketDropped { .. }) {
            let record = EventRecord::new(&self.0, now, event);
            assert_eq!(record.reason, Some("out-of-step"));
            assert_eq!(record.link, Some("radio"));
            self.1 += 1;
        }
    }
}

#[test]
fn each_packet_out_of_step_is_an_event() {
    let link = format!("errors = {{ kind = \"uniform\", rate = 0.01 }}\n{COMPRESSED}");
    let scenario = file(&link, "header-size = \"40 B\"").unwrap();
    let prepared = Prepared::new(&scenario).unwrap();
    let mut dropped = Dropped(prepared.names(), 0);
    let result = prepared.run_watched(1, 0, &mut dropped);
    let link = &result.links[0];
    let ways = [&link.down, &link.up].map(|way| way.headers.unwrap().out_of_step.frames);
    assert!(dropped.1 > 0);
    assert_eq!(dropped.1, ways[0] + ways[1]);
}

#[test]
fn what_cannot_be_compressed_is_refused() {
    for (link, transport, wrong) in [
        ("", "", "no flow has TCP/IP headers of 40 B"),
        (
            "services = [{ number = 0, name = \"all\", rate = 1.0, scheme = { kind = \"sr-m2\" } }]",
            "header-size = \"40 B\"",
            "this link has services",
        ),
        (
            "jitter = { spread = \"1 ms\" }",
            "header-size = \"40 B\"",
            "this link has jitter",
        ),
    ] {
        let error = file(&format!("{link}\n{COMPRESSED}"), transport).unwrap_err();
        assert!(error.contains(wrong), "{error}");
        assert!(error.contains("header-compression"), "{error}");
    }
}
