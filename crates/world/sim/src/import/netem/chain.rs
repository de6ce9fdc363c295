//! Combines the qdiscs and classes along one path: delays add up, losses combine, the lowest rate counts.

use airlane_base::{Duration, QueueLimit, Rate};
use airlane_channel::{ErrorModelConfig, LinkRate};

use super::options::USUAL_LIMIT;
use super::shaper::{Shaper, Shares, alone};
use super::tree::{Leaf, Step};
use crate::import::direction::{Direction, UNLIMITED};
use crate::import::words::ImportError;

/// The combined effect of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shaped {
    pub(super) direction: Direction,
    pub(super) seed: Option<u64>,
    pub(super) notes: Vec<String>,
}

impl Shaped {
    /// Combines the steps of a path.
    pub(super) fn new(leaf: &Leaf<'_>) -> Result<Self, ImportError> {
        let mut direction = Direction::open(USUAL_LIMIT);
        let (mut notes, mut seed) = (vec![], None);
        // Rates, each with the place whose queue it has, and limits by place.
        let mut rates: Vec<(Rate, usize)> = vec![];
        let mut limits: Vec<(usize, QueueLimit)> = vec![];
        let mut waits_below = false;
        let mut classes: Vec<Shares> = vec![];
        for (place, step) in leaf.steps.iter().enumerate() {
            match step {
                Step::Class(kind, shares) => {
                    classes.push(*shares);
                    let next = leaf.steps.get(place + 1);
                    if !matches!(next, Some(Step::Class(..))) {
                        let (rate, note) = alone(kind, &classes);
                        rates.extend(rate.map(|rate| (rate, place + 1)));
                        notes.extend(note);
                        classes.clear();
                    }
                }
                Step::Qdisc(qdisc) => match &qdisc.shaper {
                    Shaper::Netem(netem) => {
                        direction.delay = direction.delay + netem.delay;
                        match (direction.jitter, netem.jitter()) {
                            (Some(_), Some(_)) => {
                                notes.push(
                                    "jitter: of several in a row the first counts".to_owned(),
                                );
                            }
                            (before, jitter) => direction.jitter = before.or(jitter),
                        }
                        if !direction.also_errs(&netem.errors) {
                            return Err(qdisc.word.wrong(
                                "two links with bursts in a row are no Gilbert-Elliott link",
                                "leave out one of the two, or give the other as loss 5%",
                            ));
                        }
                        if let Some(part) = netem.corrupt {
                            // netem has no errors but random and Gilbert-Elliott loss, which combine with this.
                            direction.also_loses(part);
                        }
                        rates.extend(netem.rate.map(|rate| (rate, place)));
                        limits.push((place, netem.limit.unwrap_or(USUAL_LIMIT)));
                        seed = seed.or(netem.seed);
                        waits_below |= netem.delay > Duration::ZERO || netem.jitter().is_some();
                        notes.extend(netem.notes().cloned());
                    }
                    Shaper::Queue {
                        rate,
                        limit,
                        notes: said,
                    } => {
                        // The qdisc below a shaper is its queue.
                        let next = matches!(leaf.steps.get(place + 1), Some(Step::Qdisc(_)));
                        rates.extend(rate.map(|rate| (rate, place + usize::from(next))));
                        limits.extend(limit.map(|limit| (place, limit)));
                        notes.extend(said.iter().cloned());
                    }
                    Shaper::Shared | Shaper::Plain => {}
                },
            }
        }
        let slowest = rates.iter().min_by_key(|(rate, _)| *rate).copied();
        let limit = match slowest {
            Some((_, place)) => limits.iter().find(|(at, _)| *at >= place),
            None => None,
        };
        let limit = limit.or(limits.last());
        direction.queue = limit.map_or(USUAL_LIMIT, |(_, limit)| *limit);
        let lossy = direction.errors != ErrorModelConfig::None;
        match slowest {
            Some((rate, _)) => {
                direction.rate = LinkRate::Constant(rate);
                if rates.len() > 1 {
                    notes.push("rate: of several in a row the lowest counts".to_owned());
                }
                if lossy {
                    notes.push(
                        "loss: netem loses packets before they wait and take time; here they are lost on the way, \
                         after that"
                            .to_owned(),
                    );
                }
                if waits_below && matches!(direction.queue, QueueLimit::Packets(_)) {
                    let queue = direction.queue;
                    notes.push(format!(
                        "limit: netem counts packets that it delays, too; here {queue} may wait for the \
                         transmitter, and any number be on the way"
                    ));
                }
            }
            None => notes.push(format!(
                "rate: none was given; {UNLIMITED} stands for no limit"
            )),
        }
        Ok(Self {
            direction,
            seed,
            notes,
        })
    }
}
