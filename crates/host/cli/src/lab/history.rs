//! The last ten minutes of each service of a node, in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use airlane_live::status::{ServiceReport, Status, losses_of};
use serde::Serialize;

/// Points of a line: one a second.
const POINTS: usize = 600;
/// Services of all peers whose history is kept; others are counted.
const LINES: usize = 256;

/// A service's traffic between two answers of the node. `None` where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Point {
    /// Seconds since the watch began.
    at_s: f64,
    /// Packets sent to the peer, bit/s.
    sent_bps: Option<f64>,
    /// Packets delivered from the peer, bit/s.
    delivered_bps: Option<f64>,
    /// The node's smoothed one-way delay of packets from the peer, repairs included, s.
    delay_s: Option<f64>,
    /// The share of the peer's packets that the link lost.
    lost_before_repair: Option<f64>,
    /// The share that was not repaired.
    lost_after_repair: Option<f64>,
}

impl Point {
    fn between(before: &ServiceReport, now: &ServiceReport, at_s: f64, seconds: f64) -> Self {
        let (was, is) = (&before.ledger, &now.ledger);
        let bps = |was: u64, is: u64| Some(is.saturating_sub(was) as f64 * 8.0 / seconds);
        let delivered = is.packets_delivered.saturating_sub(was.packets_delivered);
        let recovered = is.packets_recovered.saturating_sub(was.packets_recovered);
        let lost = is.residual_lost.saturating_sub(was.residual_lost);
        let [lost_before_repair, lost_after_repair] = match now.metrics.loss {
            // Frames without numbers show no losses.
            None => [None; 2],
            Some(_) => losses_of([delivered, recovered, lost]),
        };
        Self {
            at_s,
            sent_bps: bps(was.sent_bytes, is.sent_bytes),
            delivered_bps: bps(was.delivered_bytes, is.delivered_bytes),
            // A node without packets repeats the last delay.
            delay_s: now.metrics.delay_s.filter(|_| delivered > 0),
            lost_before_repair,
            lost_after_repair,
        }
    }
}

/// A service's peer, number and name; a reload may give a number to another service.
type Key = (String, u8, String);

/// A line for each service, the newest point last.
#[derive(Debug, Default)]
pub(super) struct History {
    before: Option<Status>,
    lines: BTreeMap<Key, VecDeque<Point>>,
    left_out: usize,
}

/// A service with its points.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    service: &'a str,
    points: &'a VecDeque<Point>,
}

impl History {
    /// Records the node's answer; `None` if there was none.
    pub(super) fn take(&mut self, at_s: f64, now: Option<&Status>) {
        let before = std::mem::replace(&mut self.before, now.cloned());
        // A restarted node counts from 0.
        let since = before.as_ref().zip(now).and_then(|(before, now)| {
            let ns = now.uptime_ns.checked_sub(before.uptime_ns);
            let seconds = ns.filter(|ns| *ns > 0)? as f64 / 1e9;
            Some((before, seconds))
        });
        self.left_out = 0;
        for peer in now.iter().flat_map(|now| &now.peers) {
            for service in &peer.services {
                let key = (peer.name.clone(), service.number, service.name.clone());
                if self.lines.len() < LINES || self.lines.contains_key(&key) {
                    self.lines.entry(key).or_default();
                } else {
                    self.left_out += 1;
                }
            }
        }
        for (key, points) in &mut self.lines {
            let there = |status| service_of(status, key);
            let both = now
                .and_then(there)
                .zip(since)
                .and_then(|(now, (before, seconds))| {
                    Some(Point::between(there(before)?, now, at_s, seconds))
                });
            let unknown = Point {
                at_s,
                ..Point::default()
            };
            points.push_back(both.unwrap_or(unknown));
            if points.len() > POINTS {
                points.pop_front();
            }
        }
        let is_known = |point: &Point| point.sent_bps.is_some();
        self.lines
            .retain(|_, points| points.len() < POINTS || points.iter().any(is_known));
    }

    /// The lines of a peer, by the numbers of its services.
    pub(super) fn of<'a>(&'a self, peer: &'a str) -> impl Iterator<Item = Line<'a>> {
        let lines = self.lines.iter().filter(move |((of, ..), _)| of == peer);
        lines.map(|((_, _, service), points)| Line { service, points })
    }

    /// The number of services without a line.
    pub(super) const fn left_out(&self) -> usize {
        self.left_out
    }
}

fn service_of<'a>(status: &'a Status, (peer, number, name): &Key) -> Option<&'a ServiceReport> {
    let peer = status.peers.iter().find(|other| other.name == *peer)?;
    let same = |other: &&ServiceReport| other.number == *number && other.name == *name;
    peer.services.iter().find(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::status;

    fn points(history: &History) -> Vec<Point> {
        let lines = history.of("farm");
        lines.flat_map(|line| line.points.clone()).collect()
    }

    #[test]
    fn a_point_is_of_what_happened_since_the_last_one() {
        let mut history = History::default();
        let mut now = status(10, 1_000_000);
        history.take(0.0, Some(&now));
        assert_eq!(points(&history)[0].sent_bps, None);
        now = status(12, 2_000_000);
        let service = &mut now.peers[0].services[0];
        service.metrics.loss = Some(0.5);
        service.metrics.delay_s = Some(0.025);
        service.ledger.packets_delivered = 96;
        service.ledger.packets_recovered = 6;
        // Three were lost before.
        service.ledger.residual_lost = 7;
        history.take(2.0, Some(&now));
        let expected = Point {
            at_s: 2.0,
            sent_bps: Some(4e6),
            delivered_bps: Some(0.0),
            delay_s: Some(0.025),
            lost_before_repair: Some(0.1),
            lost_after_repair: Some(0.04),
        };
        assert_eq!(points(&history)[1], expected);
        // Nothing came: no delay, no loss.
        now.uptime_ns += 1_000_000_000;
        history.take(3.0, Some(&now));
        let last = points(&history)[2];
        assert_eq!(
            (last.sent_bps, last.delay_s, last.lost_before_repair),
            (Some(0.0), None, None)
        );
    }

    #[test]
    fn a_node_that_is_away_or_was_started_again_leaves_a_gap() {
        let mut history = History::default();
        let answers = [
            Some(status(100, 5_000)),
            Some(status(101, 6_000)),
            None,
            Some(status(1, 10)),
            Some(status(2, 1_010)),
        ];
        for (at, answer) in answers.iter().enumerate() {
            history.take(at as f64, answer.as_ref());
        }
        let sent: Vec<_> = points(&history)
            .iter()
            .map(|point| point.sent_bps)
            .collect();
        assert_eq!(sent, [None, Some(8e3), None, None, Some(8e3)]);
    }

    #[test]
    fn a_number_that_gets_another_service_gets_another_line() {
        let mut history = History::default();
        let mut now = status(10, 1_000_000);
        history.take(0.0, Some(&now));
        now.peers[0].services[0].name = "pages".to_owned();
        now.uptime_ns += 1_000_000_000;
        history.take(1.0, Some(&now));
        let lines: Vec<_> = history.of("farm").map(|line| line.service).collect();
        assert_eq!(lines, ["files", "pages"]);
        // What the one sent is not what the other one has begun with.
        assert!(
            points(&history)
                .iter()
                .all(|point| point.sent_bps.is_none())
        );
    }

    #[test]
    fn memory_is_bounded_and_what_has_gone_is_forgotten() {
        let mut history = History::default();
        let mut many = status(1, 0);
        let peer = many.peers[0].clone();
        many.peers = (0..LINES + 3)
            .map(|n| {
                let mut other = peer.clone();
                other.name = format!("peer-{n}");
                other
            })
            .collect();
        history.take(0.0, Some(&many));
        assert_eq!((history.lines.len(), history.left_out()), (LINES, 3));
        for second in 1..2 * POINTS {
            history.take(second as f64, Some(&status(second as u64, 0)));
        }
        assert_eq!(history.lines.len(), 1);
        assert_eq!(points(&history).len(), POINTS);
        assert_eq!(history.left_out(), 0);
    }
}
