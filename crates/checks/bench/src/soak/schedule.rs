//! The events of a soak and their times, drawn from a seed.

use std::fmt;
use std::time::Duration;

use airlane_base::{Rng, Streams};
use serde::Serialize;

use crate::bench_live::channel::{self, LossChannel};

/// An event on the link while applications use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoakEvent {
    /// Another loss process from now on.
    Loss(LossChannel),
    /// The link is blocked for this time.
    Outage(Duration),
    /// An end gets `kill -9`, and is restarted.
    Kill(usize),
    /// An end gets SIGTERM, and is restarted.
    Stop(usize),
    /// An end gets SIGTERM, and is restarted with its log on a full disk.
    FullLog(usize),
    /// An end gets SIGTERM, and is restarted without a route to its peer, which is added later.
    NoRoute(usize),
    /// New keys at both ends by `airlane reload`.
    NewKeys,
    /// New keys at both ends by SIGHUP.
    Hangup,
    /// The right end changes its address several times, and then back.
    Move,
}

impl SoakEvent {
    /// The emulator's file that blocks the link.
    pub fn silence() -> String {
        channel::air("{ kind = \"uniform\", rate = 1 }")
    }
}

impl fmt::Display for SoakEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: usize| ["left", "right"][end];
        match *self {
            Self::Loss(channel) => write!(f, "loss {channel}"),
            Self::Outage(time) => write!(f, "outage of {} s", time.as_secs()),
            Self::Kill(e) => write!(f, "kill -9 {}", end(e)),
            Self::Stop(e) => write!(f, "restart {}", end(e)),
            Self::FullLog(e) => write!(f, "full log {}", end(e)),
            Self::NoRoute(e) => write!(f, "no route {}", end(e)),
            Self::NewKeys => f.write_str("new keys"),
            Self::Hangup => f.write_str("SIGHUP"),
            Self::Move => f.write_str("move right"),
        }
    }
}

impl Serialize for SoakEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A period of load with events, after which the ledgers are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoakRound {
    /// How long the load lasts.
    pub length: Duration,
    /// The events and their times.
    pub events: Vec<(Duration, SoakEvent)>,
}

/// Load before the first event, and after the last one: time to recover.
const BEFORE: Duration = Duration::from_secs(8);
const AFTER: Duration = Duration::from_secs(20);

/// Three rounds. The first one restarts the left end, the second one the right end, and the third one neither, so
/// that each end has a long life in which its memory must not grow. Each deck of events has one of each kind,
/// shuffled by the seed.
pub fn rounds(total: Duration, every: Duration, seed: u64) -> Vec<SoakRound> {
    let mut rng = Streams::new(seed, 0).stream("soak");
    // The longest outage comes first: afterwards the buffers have reached their largest size.
    let longest = (total / 20).min(Duration::from_secs(60));
    let plan = [Some(0), Some(1), None].into_iter().enumerate();
    plan.map(|(round, restarted)| {
        let length = total / 3;
        let mut events = Vec::new();
        let mut at = BEFORE;
        if round == 0 {
            events.push((at, SoakEvent::Outage(longest)));
            at += longest + every;
        }
        let mut deck = Vec::new();
        while at + AFTER < length {
            if deck.is_empty() {
                deck = shuffled(restarted, &mut rng);
            }
            let event = deck.pop().expect("a deck has events");
            events.push((at, event));
            let outage = match event {
                SoakEvent::Outage(time) => time,
                _ => Duration::ZERO,
            };
            at += outage + every.mul_f64(0.75 + 0.5 * rng.uniform());
        }
        SoakRound { length, events }
    })
    .collect()
}

/// Links with a varying rate, until the next change of loss.
const STEPS: [LossChannel; 2] = [LossChannel::Steps, LossChannel::Steps5];

fn shuffled(restarted: Option<usize>, rng: &mut Rng) -> Vec<SoakEvent> {
    let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
    let mut deck = vec![
        SoakEvent::Outage(Duration::from_secs(2 + below(8) as u64)),
        SoakEvent::NewKeys,
        SoakEvent::Hangup,
        SoakEvent::Move,
    ];
    deck.extend(
        [(); 3].map(|()| SoakEvent::Loss(LossChannel::USUAL[below(LossChannel::USUAL.len())])),
    );
    deck.push(SoakEvent::Loss(STEPS[below(STEPS.len())]));
    deck.extend(restarted.into_iter().flat_map(|end| {
        [
            SoakEvent::Kill,
            SoakEvent::Stop,
            SoakEvent::FullLog,
            SoakEvent::NoRoute,
        ]
        .map(|of| of(end))
    }));
    for last in (1..deck.len()).rev() {
        deck.swap(last, below(last + 1));
    }
    deck
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_schedule_with_everything_in_it() {
        let s = Duration::from_secs;
        let all = rounds(s(1_200), s(15), 1);
        assert_eq!(all, rounds(s(1_200), s(15), 1));
        assert_ne!(all, rounds(s(1_200), s(15), 2));
        let any = |round: usize, wanted: SoakEvent| all[round].events.iter().any(|e| e.1 == wanted);
        assert!(any(0, SoakEvent::Outage(s(60))));
        assert!(
            any(0, SoakEvent::Kill(0)) && any(0, SoakEvent::Stop(0)) && !any(0, SoakEvent::Kill(1))
        );
        assert!(
            any(1, SoakEvent::Kill(1)) && any(1, SoakEvent::Stop(1)) && !any(1, SoakEvent::Stop(0))
        );
        for round in &all {
            assert!(round.events.iter().any(|e| e.1 == SoakEvent::NewKeys));
            assert!(round.events.iter().any(|e| e.1 == SoakEvent::Hangup));
            let is_step = |e: &(Duration, SoakEvent)| matches!(e.1, SoakEvent::Loss(channel) if STEPS.contains(&channel));
            assert!(round.events.iter().any(is_step));
            assert!(
                round
                    .events
                    .iter()
                    .any(|e| matches!(e.1, SoakEvent::Loss(_)) && !is_step(e))
            );
            assert!(round.events.is_sorted_by_key(|e| e.0));
            assert!(round.events.iter().all(|e| e.0 + AFTER < round.length));
        }
        for end in [0, 1] {
            assert!(any(end, SoakEvent::FullLog(end)) && any(end, SoakEvent::NoRoute(end)));
        }
        let stays = |e: &(Duration, SoakEvent)| {
            use SoakEvent::{Hangup, Loss, Move, NewKeys, Outage};
            matches!(e.1, Loss(_) | Outage(_) | NewKeys | Hangup | Move)
        };
        assert!(all[2].events.iter().all(stays));
    }
}
