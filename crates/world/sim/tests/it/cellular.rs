//! Links with the rates of real cellular networks, which fall by a factor of ten within a second and recover.

use airlane_base::{Duration, Instant};
use airlane_sim::event::{Event, Watcher};
use airlane_sim::{Prepared, Scenario};

use crate::found_rates::{bits, file, load_traces, stream, world};

const SECONDS: u32 = 60;
const LINK: &str = "rate = { down = { kind = \"opportunities\", file = \"down\" }, up = { kind = \"opportunities\", file = \"up\" } }\n\
    delay = \"25 ms\"\nqueue = \"500 kB\"\n";
/// Packets of a call are useless after this delay.
const LATE: Duration = Duration::from_millis(300);

/// Sending opportunities in Mahimahi's format, from counts per 20 ms.
fn opportunities(counts: &str) -> Vec<u8> {
    let mut text = String::new();
    for (slot, count) in counts.lines().skip(1).enumerate() {
        let count: usize = count.trim().parse().unwrap();
        for at in 0..count {
            text += &format!("{}\n", slot * 20 + at * 20 / count);
        }
    }
    text.into_bytes()
}

fn pages() -> String {
    "[[flows]]\nname = \"pages\"\nends = [\"client\", \"server\"]\ntransport = { kind = \"tcp\", pacing = false }\n\
     app = { kind = \"pages\", request = \"100 B\", reply = \"20 kB\", pause = \"100 ms\", packet = \"1370 B\" }\n"
        .to_owned()
}

/// The best case without Airlane: the radio's own queue is one CoDel queue per flow.
fn under_codel(flows: &[String]) -> Scenario {
    let queue = "{ kind = \"fq-codel\", target = \"20 ms\", interval = \"100 ms\" }";
    let link = format!(
        "{LINK}header = \"study\"\npaced-by = \"link\"\n\
         services = [{{ number = 0, name = \"codel\", rate = 1, scheme = {{ kind = \"default\" }}, queue = {queue} }}]\n"
    );
    world(SECONDS, &link, false, flows)
}

/// Counts a flow's packets that arrive in time.
struct InTime {
    flow: u32,
    count: u64,
}

impl Watcher for InTime {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if let Event::PacketReceived(packet) = event
            && packet.flow == self.flow
            && now.saturating_since(packet.created) <= LATE
        {
            self.count += 1;
        }
    }
}

/// The results of each application: Mbit/s of the file, mean page time in seconds, share of the call that was late or
/// lost.
struct Got {
    file_mbps: f64,
    page_s: f64,
    call_lost: f64,
}

fn measure(mut scenario: Scenario, traces: &[Vec<u8>; 2]) -> Got {
    load_traces(&mut scenario, &traces[0], &traces[1]);
    let mut call = InTime { flow: 2, count: 0 };
    let result = Prepared::new(&scenario)
        .unwrap()
        .run_watched(1, 0, &mut call);
    let flow = |name: &str| result.flows.iter().find(|flow| flow.name == name).unwrap();
    Got {
        file_mbps: bits(&result, "file") / 1e6 / f64::from(SECONDS),
        page_s: flow("pages").page_time_mean_s.unwrap(),
        call_lost: 1.0 - call.count as f64 / flow("call").packets_sent as f64,
    }
}

/// A file gets 85 % of its rate on the raw link, or, if that is less, 95 % of its rate under CoDel; pages and calls
/// are no worse than on the raw link.
#[test]
fn rates_of_cellular_networks_are_followed() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cellular");
    let mut wrong = vec![];
    for network in [
        "ATT-LTE-driving-2016",
        "TMobile-LTE-short",
        "TMobile-UMTS-driving",
        "Verizon-EVDO-driving",
        "Verizon-LTE-short",
    ] {
        let traces = ["down", "up"].map(|way| {
            opportunities(&std::fs::read_to_string(format!("{data}/{network}.{way}.csv")).unwrap())
        });
        for congestion in ["cubic", "bbr"] {
            let flows = [file(congestion, ""), pages(), stream("call", 160, 64)];
            let [bare, found] =
                [false, true].map(|served| measure(world(SECONDS, LINK, served, &flows), &traces));
            let codel = measure(under_codel(&flows), &traces);
            let enough = (0.85 * bare.file_mbps).min(0.95 * codel.file_mbps);
            let cell = format!(
                "{network}, {congestion}: file {:.2} of {:.2} Mbit/s (CoDel {:.2}), page {:.2} of {:.2} s, call lost or late {:.1} of {:.1} %",
                found.file_mbps,
                bare.file_mbps,
                codel.file_mbps,
                found.page_s,
                bare.page_s,
                100.0 * found.call_lost,
                100.0 * bare.call_lost,
            );
            println!("{cell}");
            let is_worse = found.page_s > bare.page_s || found.call_lost > bare.call_lost;
            if found.file_mbps < enough || is_worse {
                wrong.push(cell);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
