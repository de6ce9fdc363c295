//! Balakrishnan et al. 1997, figure 1, as whole transfers: of five segments in flight the radio destroys the first
//! two and nothing else, and each of the twelve mechanisms reacts in its own way.

use airlane_base::{Instant, Rng};
use airlane_channel::CustomErrors;
use airlane_sim::custom::Pieces;
use airlane_sim::event::{Event, Role, Watcher};
use airlane_sim::{FlowResult, Prepared, Scenario};

const SEGMENTS: u64 = 60;

/// Loses frames by number, counted from 1.
#[derive(Debug)]
struct Loses(&'static [u32], u32);

impl CustomErrors for Loses {
    fn loses(&mut self, _: Instant, _: Instant, _: usize, _: &mut Rng) -> bool {
        self.1 += 1;
        self.0.contains(&self.1)
    }
}

/// A reaction of a node to the losses, or a sign of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The source, or the relay, retransmits a segment.
    Again(u64),
    /// The base station retransmits a segment that the source has sent once.
    Repair(u64),
    /// A duplicate acknowledgment reaches the source.
    Duplicate(u64),
    /// A TCP timer has expired.
    Timeout,
}

/// The steps, each with its time.
#[derive(Default)]
struct Story {
    steps: Vec<(Instant, Step)>,
    acknowledged: Option<u64>,
    /// How often each of the first segments has left its source, and entered the radio.
    sent: [[u32; 2]; 8],
}

impl Watcher for Story {
    fn on_event(&mut self, now: Instant, event: &Event) {
        let step = match *event {
            Event::PacketSent(packet) if packet.role == Role::Data => {
                if let Some([source, _]) = self.sent.get_mut(packet.seq as usize) {
                    *source += 1;
                }
                match packet.retransmission {
                    true => Step::Again(packet.seq),
                    false => return,
                }
            }
            Event::FrameSent { way, frame, .. } if way.down && way.link == RADIO => {
                let Some(packet) = frame.packet else { return };
                let Some([source, radio]) = self.sent.get_mut(packet.seq as usize) else {
                    return;
                };
                *radio += 1;
                match *radio > *source {
                    true => Step::Repair(packet.seq),
                    false => return,
                }
            }
            Event::PacketReceived(packet) if packet.role == Role::Ack => {
                let known = self.acknowledged.replace(packet.seq);
                match known == Some(packet.seq) || (known, packet.seq) == (None, 0) {
                    true => Step::Duplicate(packet.seq),
                    false => return,
                }
            }
            Event::Timeout(_) => Step::Timeout,
            _ => return,
        };
        self.steps.push((now, step));
    }
}

/// Links are numbered in the order of their names.
const RADIO: u16 = 0;

struct Outcome {
    flow: FlowResult,
    steps: Vec<Step>,
    times: Vec<Instant>,
}

impl Outcome {
    /// How often a kind of step occurred.
    fn count(&self, of: fn(&Step) -> bool) -> usize {
        self.steps.iter().filter(|step| of(step)).count()
    }

    fn time(&self, step: Step) -> Instant {
        let at = self.steps.iter().position(|found| *found == step);
        self.times[at.unwrap_or_else(|| panic!("{step:?} in {:?}", self.steps))]
    }

    /// Counters of the source: timeouts, window reductions, retransmissions.
    fn source(&self) -> [Option<u64>; 3] {
        let FlowResult {
            timeouts,
            window_cuts,
            retransmissions,
            ..
        } = self.flow;
        [timeouts, window_cuts, retransmissions]
    }
}

fn transfer(transport: &str, radio: &str, flow: &str) -> Outcome {
    transfer_losing(&[1, 2], transport, radio, flow)
}

/// A transfer with `transport` at its source, `radio` settings for the radio, which loses the frames `lost`, and
/// `flow` settings.
fn transfer_losing(lost: &'static [u32], transport: &str, radio: &str, flow: &str) -> Outcome {
    let text = format!(
        "schema = 1\nname = \"figure-1\"\nduration = \"60 s\"\nuntil = \"file\"\n\
         [nodes.source]\n[nodes.base]\n[nodes.mobile]\n\
         [links.radio]\nends = [\"base\", \"mobile\"]\nrate = \"2 Mbit/s\"\ndelay = \"1 ms\"\n\
         frame = \"1500 B\"\n{radio}\n\
         [links.wire]\nends = [\"source\", \"base\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [[flows]]\nname = \"file\"\nends = [\"source\", \"mobile\"]\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", initial-window = 5, {transport} }}\n{flow}\
         app = {{ kind = \"bulk\", size = \"{} B\", packet = \"1400 B\", windows = true }}\n",
        1400 * SEGMENTS
    );
    let scenario = Scenario::from_toml(&text, "figure-1").unwrap_or_else(|e| panic!("{e}"));
    let mut pieces = Pieces::default();
    let make = move |_: Rng| -> Box<dyn CustomErrors> { Box::new(Loses(lost, 0)) };
    pieces
        .errors
        .insert(("radio".to_owned(), true), Box::new(make));
    let mut story = Story::default();
    let prepared = Prepared::new(&scenario).unwrap();
    let mut result = prepared.run_custom(1, 0, pieces, &mut story).unwrap();
    let flow = result.flows.remove(0);
    assert!(result.finished, "{transport}");
    assert_eq!(flow.delivered_bytes, 1400 * SEGMENTS);
    let (times, steps) = story.steps.into_iter().unzip();
    Outcome { flow, steps, times }
}

fn end_to_end(recovery: &str) -> Outcome {
    transfer(&format!("window = 5, recovery = \"{recovery}\""), "", "")
}

fn link_layer(switches: &str, transport: &str) -> Outcome {
    let radio = format!(
        "header = \"study\"\nservices = [{{ number = 0, name = \"all\", rate = 1.0, scheme = {{ kind = \"snoop\", \
         base-station = \"first\", min-timeout = \"200 ms\"{switches} }} }}]"
    );
    transfer(&format!("window = 5{transport}"), &radio, "")
}

fn split(recovery: &str) -> Outcome {
    let relay = format!(
        "relay = {{ kind = \"split\", at = \"base\", transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 5, \
         initial-window = 5, recovery = \"{recovery}\" }} }}\n"
    );
    transfer("window = 5", "", &relay)
}

/// Too few duplicates remain for the second loss: it waits for the coarse timer.
#[test]
fn e2e() {
    let reno = end_to_end("reno");
    let [first, second] = [Step::Again(0), Step::Again(1)];
    let duplicates = [Step::Duplicate(0); 3];
    let steps = [&duplicates[..], &[first, Step::Timeout, second]].concat();
    assert_eq!(reno.steps, steps);
    assert_eq!(reno.source(), [Some(1), Some(2), Some(2)]);
}

/// The partial acknowledgment causes its retransmission.
#[test]
fn e2e_newreno() {
    let newreno = end_to_end("newreno");
    let duplicates = [Step::Duplicate(0); 3];
    assert_eq!(
        newreno.steps,
        [&duplicates[..], &[Step::Again(0), Step::Again(1)]].concat()
    );
    let round_trip = newreno.times[4].saturating_since(newreno.times[3]);
    assert!(round_trip.as_secs_f64() > 0.02);
    assert_eq!(newreno.source(), [Some(0), Some(1), Some(2)]);
}

/// The first duplicate reveals both losses.
#[test]
fn e2e_smart() {
    let smart = end_to_end("smart");
    let both = [Step::Duplicate(0), Step::Again(0), Step::Again(1)];
    assert_eq!(smart.steps[..3], both);
    assert_eq!(smart.times[1], smart.times[2]);
    assert_eq!(smart.source(), [Some(0), Some(1), Some(2)]);
}

/// The third duplicate reveals the first loss; the second is retransmitted once enough has left the network.
#[test]
fn e2e_ietf_sack() {
    let sack = end_to_end("sack");
    let duplicates = [Step::Duplicate(0); 3];
    assert_eq!(
        sack.steps,
        [&duplicates[..], &[Step::Again(0), Step::Again(1)]].concat()
    );
    assert_eq!(sack.source(), [Some(0), Some(1), Some(2)]);
}

/// The window is kept, and the second loss is only noticed after three more segments.
#[test]
fn e2e_eln() {
    let narrow = end_to_end("eln");
    assert_eq!(narrow.steps[3], Step::Again(0));
    assert_eq!(narrow.steps[5..], [Step::Timeout, Step::Again(1)]);
    // The only reduction is due to the timeout.
    assert_eq!(narrow.source(), [Some(1), Some(1), Some(2)]);
    let wide = transfer("window = 8, recovery = \"eln\"", "", "");
    assert_eq!(wide.steps[4..7], [Step::Duplicate(1); 3]);
    assert_eq!(wide.steps[7], Step::Again(1));
    assert_eq!(wide.source(), [Some(0), Some(0), Some(2)]);
}

/// A single loss in a window of four segments or more needs no timeout (BAL97-C23).
#[test]
fn e2e_eln_of_single_losses() {
    for recovery in ["eln", "eln-rxmt"] {
        let transport = format!("window = 5, recovery = \"{recovery}\"");
        let single = transfer_losing(&[10, 25, 40], &transport, "", "");
        assert_eq!(single.source(), [Some(0), Some(0), Some(3)], "{recovery}");
    }
}

/// Each loss is repaired on its first duplicate.
#[test]
fn e2e_eln_rxmt() {
    let rxmt = end_to_end("eln-rxmt");
    assert_eq!(rxmt.steps[..2], [Step::Duplicate(0), Step::Again(0)]);
    assert_eq!(rxmt.steps[4..], [Step::Duplicate(1), Step::Again(1)]);
    assert_eq!(rxmt.source(), [Some(0), Some(0), Some(2)]);
}

/// Base station and source both repair the first loss, and the source halves its window.
#[test]
fn ll() {
    let ll = link_layer(", suppress = false", "");
    assert_eq!(ll.steps[0], Step::Repair(0));
    assert_eq!(ll.steps[1..4], [Step::Duplicate(0); 3]);
    assert_eq!(ll.steps[4], Step::Again(0));
    assert_eq!(ll.source(), [Some(0), Some(1), Some(1)]);
}

/// The source gets too few duplicates to react; the second loss is repaired at least 200 ms later.
#[test]
fn ll_tcp_aware() {
    let aware = link_layer("", "");
    let [first, second] = [Step::Repair(0), Step::Repair(1)];
    let heard = [Step::Duplicate(0), Step::Duplicate(1)];
    assert_eq!(aware.steps, [first, heard[0], heard[1], second]);
    let waited = aware.time(second).saturating_since(aware.time(first));
    assert!(waited.as_secs_f64() >= 0.2);
    assert_eq!(aware.source(), [Some(0); 3]);
}

/// Both are repaired at once, and the source still halves its window.
#[test]
fn ll_smart() {
    let smart = ", acknowledgments = \"smart\"";
    let ll = link_layer(", suppress = false, detect = \"smart\"", smart);
    assert!(ll.time(Step::Repair(1)) < ll.time(Step::Again(0)));
    assert_eq!(ll.count(|step| *step == Step::Duplicate(0)), 3);
    assert_eq!(ll.source(), [Some(0), Some(1), Some(1)]);
}

/// Both are repaired, one after the other, and the source notices nothing.
#[test]
fn ll_smart_tcp_aware() {
    let smart = ", acknowledgments = \"smart\"";
    let aware = link_layer(", detect = \"smart\"", smart);
    let [first, second] = [Step::Repair(0), Step::Repair(1)];
    assert_eq!(aware.steps, [first, Step::Duplicate(0), second]);
    let frame = aware.time(second).saturating_since(aware.time(first));
    assert!(frame.as_secs_f64() < 0.01);
    assert_eq!(aware.source(), [Some(0); 3]);
}

/// The relay experiences what an end-to-end source without help would, and the source continues.
#[test]
fn split_and_split_smart() {
    for (recovery, timeouts) in [("reno", 1), ("smart", 0)] {
        let relay = split(recovery);
        assert_eq!(relay.source(), [Some(0); 3], "{recovery}");
        let whole = end_to_end(recovery);
        let second = [relay.flow.relay_timeouts, relay.flow.relay_retransmissions];
        assert_eq!(second, [whole.source()[0], whole.source()[2]]);
        assert_eq!(second, [Some(timeouts), Some(2)], "{recovery}");
    }
}
