//! Checks that the ledgers of both ends add up: across restarts, for each service and direction.
//!
//! ```text
//! one end      offered = sent + dropped + queued                           in every status
//! both ends    sent = delivered + residual lost + epoch lost + in flight   when nothing is in flight
//! ```
//! The second sum counts frames with something new: packets may share one, or take several (docs/metrics.md).
//!
//! In-flight is zero then, so in a round without restarts every packet is accounted for. The peer may have received
//! packets that a new epoch lost, so with restarts the second sum is bounded from both sides. What a killed process
//! counted after its last status is unknown; the length of that time and the process's pace are measured.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

/// The ends' names.
pub const ENDS: [&str; 2] = ["left", "right"];

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    offered: i64,
    dropped: i64,
    sent: i64,
    originals_sent: i64,
    epoch_lost: i64,
    originals_delivered: i64,
    residual: i64,
    queued: i64,
}

type Ledgers = BTreeMap<String, Counts>;

/// The running process of an end.
#[derive(Debug)]
struct Life {
    at: Instant,
    ledgers: Ledgers,
    /// Highest rates of packets sent and delivered, per second, by service.
    pace: BTreeMap<String, [f64; 2]>,
}

/// Bounds on what is unknown about the packets that an end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Unknown {
    /// Sent or lost without an entry: the sum may be too high by this much.
    missing: i64,
    /// Delivered without an entry in the sender's ledger: the sum may be too low by this much.
    surplus: i64,
}

/// The ledgers of both ends.
#[derive(Debug, Default)]
pub struct Books {
    /// Ledgers of processes that have ended.
    past: [Ledgers; 2],
    lives: [Option<Life>; 2],
    unknown: [BTreeMap<String, Unknown>; 2],
    /// At the last audit, by sender and service: the unexplained and the unknown packets.
    before: BTreeMap<(usize, String), (i64, Unknown)>,
}

/// One service in one direction, since the last audit or in total.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The sender.
    pub from: &'static str,
    /// The service.
    pub service: String,
    /// Packets offered, in total.
    pub offered: i64,
    /// Dropped before they were sent.
    pub dropped: i64,
    /// Sent: frames with something new.
    pub sent: i64,
    /// Of these, delivered by the other end.
    pub delivered: i64,
    /// Abandoned, according to the other end.
    pub residual_lost: i64,
    /// Packets unacknowledged when a new epoch began: at least their number of frames, unless packets are fragmented.
    pub epoch_lost: i64,
    /// Sent - delivered - residual lost, since the last audit.
    pub unexplained: i64,
    /// The range of `unexplained` that restarts account for.
    pub allowed: [i64; 2],
    /// Whether `unexplained` lies in this range.
    pub adds_up: bool,
}

/// Packets that may be unacknowledged when a sender ends, in addition to those of a second.
const FEW: i64 = 64;

impl Books {
    /// Reads the status of a running end; returns where the end's own ledger does not add up.
    pub fn observe(&mut self, end: usize, status: &Value) -> Vec<String> {
        let (ledgers, at) = (read(status), Instant::now());
        let mut problems = Vec::new();
        for (service, l) in &ledgers {
            if l.offered != l.sent + l.dropped + l.queued {
                problems.push(format!(
                    "{} {service}: offered is not sent + dropped + queued: {l:?}",
                    ENDS[end]
                ));
            }
        }
        let life = self.lives[end].get_or_insert_with(|| Life {
            at,
            ledgers: Ledgers::new(),
            pace: BTreeMap::new(),
        });
        let passed = (at - life.at).as_secs_f64();
        if passed > 0.5 {
            for (service, now) in &ledgers {
                let then = life.ledgers.get(service).copied().unwrap_or_default();
                let pace = life.pace.entry(service.clone()).or_default();
                let per_second = |n: i64| n as f64 / passed;
                pace[0] = pace[0].max(per_second(now.originals_sent - then.originals_sent));
                pace[1] = pace[1].max(per_second(
                    now.originals_delivered - then.originals_delivered,
                ));
            }
            life.at = at;
            life.ledgers = ledgers;
        }
        problems
    }

    /// An end has stopped. `last` is its last status; it may have run for `unseen_s` after that.
    pub fn gone(&mut self, end: usize, last: &Value, unseen_s: f64) {
        let life = self.lives[end].take();
        for (service, l) in read(last) {
            let pace = life.as_ref().and_then(|life| life.pace.get(&service));
            let [sent, delivered] = pace.copied().unwrap_or_default();
            let unseen = |per_second: f64| (2.0 * per_second * unseen_s).ceil() as i64;
            // Packets that it had sent and that were not acknowledged yet are unknown.
            let own = self.unknown[end].entry(service.clone()).or_default();
            own.missing += FEW + sent.ceil() as i64;
            own.surplus += unseen(sent) + i64::from(unseen_s > 0.0) * FEW;
            let others = self.unknown[1 - end].entry(service.clone()).or_default();
            others.missing += unseen(delivered) + i64::from(unseen_s > 0.0) * FEW;
            let past = self.past[end].entry(service).or_default();
            *past = past.plus(l);
        }
    }

    /// Packets that an end sent while the other one was stopped: from its first status to its second.
    pub fn sent_to_nobody(&mut self, end: usize, before: &Value, after: &Value) {
        let before = read(before);
        for (service, l) in read(after) {
            let then = before.get(&service).copied().unwrap_or_default();
            self.unknown[end].entry(service).or_default().missing +=
                l.originals_sent - then.originals_sent;
        }
    }

    /// Compares the ends when nothing is in flight.
    pub fn audit(&mut self, statuses: [&Value; 2]) -> Vec<Line> {
        let mut total = self.past.clone();
        for (total, status) in total.iter_mut().zip(statuses) {
            for (service, l) in read(status) {
                let sum = total.entry(service).or_default();
                *sum = sum.plus(l);
            }
        }
        let mut lines = Vec::new();
        for end in [0, 1] {
            for (service, own) in &total[end] {
                let peer = total[1 - end].get(service).copied().unwrap_or_default();
                let unknown = self.unknown[end].get(service).copied().unwrap_or_default();
                let missing = unknown.missing + own.epoch_lost;
                let sum = own.originals_sent - peer.originals_delivered - peer.residual;
                let now = (sum, Unknown { missing, ..unknown });
                let before = self.before.insert((end, service.clone()), now);
                let (sum_before, unknown_before) = before.unwrap_or_default();
                let unexplained = sum - sum_before;
                let allowed = [
                    unknown_before.surplus - unknown.surplus,
                    missing - unknown_before.missing,
                ];
                // Frames of the default service have no numbers: losses cannot be detected.
                let numbered = service != "default";
                let adds_up = unexplained >= allowed[0] && (unexplained <= allowed[1] || !numbered);
                lines.push(Line {
                    from: ENDS[end],
                    service: service.clone(),
                    offered: own.offered,
                    dropped: own.dropped,
                    sent: own.originals_sent,
                    delivered: peer.originals_delivered,
                    residual_lost: peer.residual,
                    epoch_lost: own.epoch_lost,
                    unexplained,
                    allowed,
                    adds_up,
                });
            }
        }
        lines
    }
}

impl Counts {
    const fn plus(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            dropped: self.dropped + other.dropped,
            sent: self.sent + other.sent,
            originals_sent: self.originals_sent + other.originals_sent,
            epoch_lost: self.epoch_lost + other.epoch_lost,
            originals_delivered: self.originals_delivered + other.originals_delivered,
            residual: self.residual + other.residual,
            queued: self.queued + other.queued,
        }
    }
}

fn services(status: &Value) -> impl Iterator<Item = &Value> {
    status["peers"][0]["services"]
        .as_array()
        .into_iter()
        .flatten()
}

fn read(status: &Value) -> Ledgers {
    let ledger = |service: &Value| {
        let of = |key: &str| service["ledger"][key].as_i64().unwrap_or_default();
        Counts {
            offered: of("packets_offered"),
            dropped: [
                "dropped_queue_full",
                "dropped_codel",
                "dropped_window_full",
                "dropped_disconnected",
                "dropped_too_old",
                "dropped_too_big",
            ]
            .map(of)
            .iter()
            .sum(),
            sent: of("packets_sent"),
            originals_sent: of("packets_sent") - of("packets_joined") - of("packets_cut")
                + of("fragments_sent"),
            epoch_lost: of("epoch_lost"),
            originals_delivered: of("packets_delivered")
                - of("joined_delivered")
                - of("packets_reassembled")
                + of("fragments_received"),
            residual: of("residual_lost"),
            queued: service["queue_packets"].as_i64().unwrap_or_default(),
        }
    };
    let named = |service: &Value| {
        (
            service["name"].as_str().unwrap_or_default().to_owned(),
            ledger(service),
        )
    };
    services(status).map(named).collect()
}

/// Frames that an end has sent and received.
pub fn frames(status: &Value) -> u64 {
    let of = |service: &Value, key: &str| service["ledger"][key].as_u64().unwrap_or_default();
    services(status)
        .map(|service| of(service, "frames_sent") + of(service, "frames_received"))
        .sum()
}

/// Whether nothing happened between two statuses, and nothing waits.
pub fn is_quiet(before: &Value, after: &Value) -> bool {
    let (before, after) = (read(before), read(after));
    after.iter().all(|(service, now)| {
        let then = before.get(service).copied().unwrap_or_default();
        let done = |counts: &Counts| (counts.sent, counts.originals_delivered);
        now.queued == 0 && done(now) == done(&then)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(sent: i64, delivered: i64, epoch_lost: i64) -> Value {
        json!({ "peers": [{ "services": [{ "name": "files", "queue_packets": 0, "ledger": {
            "packets_offered": sent, "packets_sent": sent, "packets_delivered": delivered,
            "epoch_lost": epoch_lost, "residual_lost": 0, "dropped_codel": 0,
        } }] }] })
    }

    #[test]
    fn one_unaccounted_packet_fails_the_audit() {
        let mut books = Books::default();
        let whole = books.audit([&status(1_000, 500, 0), &status(500, 1_000, 0)]);
        assert!(whole.iter().all(|line| line.adds_up));
        let missing = books.audit([&status(2_000, 500, 0), &status(500, 1_999, 0)]);
        assert!(!missing[0].adds_up && missing[1].adds_up, "{missing:?}");
        let twice = books.audit([&status(2_000, 500, 0), &status(500, 2_001, 0)]);
        assert!(!twice[0].adds_up, "{twice:?}");
    }

    #[test]
    fn a_restart_explains_a_bounded_difference() {
        for (delivered, adds_up) in [(990, true), (900, true), (1_001, false), (880, false)] {
            let mut books = Books::default();
            // The right end stops cleanly; ten packets of the left one were in flight.
            books.gone(1, &status(0, 600, 0), 0.0);
            let lines = books.audit([&status(1_000, 0, 100), &status(0, delivered - 600, 0)]);
            assert_eq!(lines[0].adds_up, adds_up, "{lines:?}");
        }
    }

    #[test]
    fn the_ledger_of_one_end_must_add_up_at_any_time() {
        let mut wrong = status(10, 0, 0);
        assert!(Books::default().observe(0, &wrong).is_empty());
        wrong["peers"][0]["services"][0]["queue_packets"] = json!(1);
        assert_eq!(Books::default().observe(0, &wrong).len(), 1);
    }
}
