//! Links that themselves decide when a port's frames leave.

use airlane_sim::{RunResult, Scenario, run};

/// A file over one link with services at a rate, or at the opportunities of a trace.
fn world(rate: &str, scheme: &str, paced_by: &str, errors: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"pacing\"\nduration = \"600 s\"\nuntil = \"file\"\n\
         [nodes.a]\n[nodes.b]\n\
         [links.radio]\nends = [\"a\", \"b\"]\nrate = {rate}\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
         frame = \"1000 B\"\nerrors = {errors}\n\
         paced-by = \"{paced_by}\"\n\
         header = \"study\"\nservices = [{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"{scheme}\" }} }}]\n\
         [[flows]]\nname = \"file\"\nends = [\"a\", \"b\"]\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 20 }}\n\
         app = {{ kind = \"bulk\", size = \"1 MB\" }}\n"
    );
    let mut scenario = Scenario::from_toml(&text, "pacing").unwrap();
    scenario.load_traces(|_| Ok(bursts())).unwrap();
    scenario
}

/// Two hundred frames in 200 ms, then nothing for the rest of a second.
fn bursts() -> Vec<u8> {
    let times = (1..=200).chain([1_000]);
    times.map(|ms| format!("{ms}\n")).collect::<String>().into()
}

const LOSSY: &str = "{ kind = \"byte-exponential\", mean = \"65536 B\" }";
const WHOLE: &str = "{ kind = \"uniform\", rate = 0.0 }";

fn result(rate: &str, scheme: &str, paced_by: &str, errors: &str) -> RunResult {
    let result = run(&world(rate, scheme, paced_by, errors), 1, 0).unwrap();
    assert!(result.finished, "{rate} {scheme} {paced_by}");
    result
}

#[test]
fn a_link_with_a_rate_drives_a_port_as_the_port_paces_itself() {
    let [port, link] = ["port", "link"].map(|by| result("\"2 Mbit/s\"", "default", by, LOSSY));
    assert_eq!(port.stopped_s, link.stopped_s);
    assert_eq!(port.links[0].down.channel, link.links[0].down.channel);
    let ledger = |result: &RunResult| result.links[0].down.services[0].sender;
    assert_eq!(ledger(&port), ledger(&link));
    for scheme in ["gbn", "sr-m2", "sr-bitmap", "rlp", "xor", "rse-ad"] {
        result("\"2 Mbit/s\"", scheme, "link", LOSSY);
    }
}

/// Between bursts frames wait. A self-paced port has handed them to the queue below and believes that they have left;
/// a driven port starts its timers when they really do.
#[test]
fn timers_start_when_the_link_says_that_a_frame_has_left() {
    let bursts = "{ down = { kind = \"opportunities\", file = \"bursts\", size = \"1003 B\" }, \
                  up = \"2 Mbit/s\" }";
    let down = |result: &RunResult| result.links[0].down.clone();
    let late = |result: &RunResult| down(result).services[0].receiver.late;
    let [port, link] = ["port", "link"].map(|by| result(bursts, "sr-m2", by, WHOLE));
    assert!(late(&port) > 0, "frames that waited below were sent again");
    assert_eq!(late(&link), 0, "what arrives has been waited for");
    let [port, link] = ["port", "link"].map(|by| result(bursts, "sr-m2", by, LOSSY));
    assert!(late(&link) < late(&port), "{}", late(&link));
    let timeouts = |result: &RunResult| down(result).services[0].sender.timeouts;
    assert!(timeouts(&link) < timeouts(&port), "{}", timeouts(&link));
    assert!(link.stopped_s <= port.stopped_s);
    // Nothing queues below.
    assert_eq!(down(&link).channel.dropped_queue.frames, 0);
}
