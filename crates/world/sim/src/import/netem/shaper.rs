//! The qdiscs and classes in a tree, with their settings other than netem's: rates and queue limits.

use airlane_base::{QueueLimit, Rate};

use super::options::{Netem, PACKET, bytes_note};
use super::units::{rate, size, size_of_cells, time};
use crate::import::words::{ImportError, Word, Words, nothing};

/// Qdiscs that neither shape nor drop by themselves.
const PLAIN: [&str; 7] = [
    "noqueue",
    "mq",
    "pfifo_fast",
    "ingress",
    "clsact",
    "mqprio",
    "noop",
];
/// Qdiscs that have classes or bands, each with its own child.
const SHARED: [&str; 9] = [
    "htb", "hfsc", "cbq", "prio", "drr", "qfq", "ets", "multiq", "taprio",
];
/// Queue disciplines that a link here does not have.
const QUEUES: [&str; 10] = [
    "fq_codel", "fq", "codel", "cake", "sfq", "red", "pie", "fq_pie", "sfb", "choke",
];

/// What a qdisc does itself.
#[derive(Clone, Debug)]
pub(super) enum Shaper {
    Netem(Box<Netem>),
    /// A queue, with its rate if it has one, and its limit.
    Queue {
        rate: Option<Rate>,
        limit: Option<QueueLimit>,
        notes: Vec<String>,
    },
    /// Its classes do the work.
    Shared,
    Plain,
}

impl Shaper {
    /// Reads the options of the qdisc `word`; for a change, `before` holds the previous ones.
    pub(super) fn new(
        word: &Word,
        mut words: Words<'_>,
        before: Option<&Self>,
    ) -> Result<Self, ImportError> {
        Ok(match word.text.as_str() {
            "netem" => {
                let before = match before {
                    Some(Self::Netem(netem)) => Some(&**netem),
                    _ => None,
                };
                Self::Netem(Box::new(Netem::new(words, before)?))
            }
            "tbf" => tbf(words)?,
            kind @ ("pfifo" | "bfifo" | "pfifo_head_drop") => {
                let mut limit = None;
                while let Some(word) = words.next() {
                    if word.text != "limit" {
                        return Err(word.unknown("\"limit\""));
                    }
                    let room = size(words.expect("a number")?)?;
                    limit = Some(match kind {
                        "bfifo" => QueueLimit::Bytes(room),
                        _ => QueueLimit::Packets(room),
                    });
                }
                Self::Queue {
                    rate: None,
                    limit,
                    notes: vec![],
                }
            }
            kind if PLAIN.contains(&kind) => Self::Plain,
            kind if SHARED.contains(&kind) => Self::Shared,
            kind if QUEUES.contains(&kind) => queue(kind, words)?,
            _ => {
                return Err(word.unknown("a qdisc that tc knows, such as \"netem\" or \"tbf\""));
            }
        })
    }

    /// Whether it affects the link.
    pub(super) const fn shapes(&self) -> bool {
        matches!(self, Self::Netem(_) | Self::Queue { rate: Some(_), .. })
    }
}

/// Queues with other drop rules: only the limit counts here, and cake's rate.
fn queue(kind: &str, mut words: Words<'_>) -> Result<Shaper, ImportError> {
    let (mut shaped, mut limit) = (None, None);
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "bandwidth" if kind == "cake" => {
                let word = words.expect("a rate, such as \"20mbit\"")?;
                shaped = if word.text == "unlimited" {
                    None
                } else {
                    rate(word)?
                };
            }
            "unlimited" => shaped = None,
            "memlimit" => limit = Some(QueueLimit::Bytes(size(words.expect("a size")?)?)),
            "limit" => {
                let word = words.expect("a number")?;
                // tc shows it with a unit of its own.
                let text = word.text.trim_end_matches('p').to_owned();
                let room = size(&Word {
                    text,
                    ..word.clone()
                })?;
                limit = Some(match kind {
                    "red" => QueueLimit::Bytes(room),
                    _ => QueueLimit::Packets(room),
                });
            }
            _ => {}
        }
    }
    let note = format!(
        "{kind}: left out; the queue is drop-tail (services have queues of their own: `airlane explain`)"
    );
    Ok(Shaper::Queue {
        rate: shaped,
        limit,
        notes: vec![note],
    })
}

fn tbf(mut words: Words<'_>) -> Result<Shaper, ImportError> {
    let (mut rated, mut burst, mut limit, mut latency) = (None, None, None, None);
    let (mut all, mut notes) = (words.clone(), vec![]);
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "rate" => {
                let word = words.expect("a rate, such as \"20mbit\"")?;
                rated = rate(word)?;
                notes.extend(bytes_note(word, rated));
            }
            "burst" | "buffer" | "maxburst" => burst = Some(size_of_cells(&mut words)?),
            "limit" => limit = Some(size(words.expect("a size, such as \"32kb\"")?)?),
            "lat" | "latency" => latency = Some(time(words.expect("a time, such as \"50ms\"")?)?),
            "peakrate" => {
                rate(words.expect("a rate")?)?;
                notes.push(
                    "peakrate: left out; what leaves never comes faster than the rate".to_owned(),
                );
            }
            "mtu" | "minburst" | "mpu" | "overhead" => {
                size_of_cells(&mut words)?;
            }
            "linklayer" => {
                words.expect("\"ethernet\"")?;
            }
            _ => {
                return Err(word.unknown(
                    "an option of tbf: rate, burst, limit, latency, peakrate, mtu, mpu, overhead or linklayer",
                ));
            }
        }
    }
    let Some(rated) = rated else {
        let word = all.next();
        return Err(word.map_or_else(
            || nothing("tbf rate RATE burst SIZE latency TIME"),
            |word| word.wrong("tbf has no rate", "write rate 20mbit, or another one"),
        ));
    };
    let burst = burst.unwrap_or(0);
    let waiting = latency.map(|time| rated.bytes_within(time) as u64);
    let limit = limit.or(waiting.map(|bytes| bytes.saturating_add(burst)));
    if burst > 2 * PACKET.0 {
        notes.push(format!(
            "burst: a burst of {burst} B leaves at the rate, too, as everything does"
        ));
    }
    Ok(Shaper::Queue {
        rate: Some(rated),
        limit: limit.map(QueueLimit::Bytes),
        notes,
    })
}

/// The options of a class of htb, hfsc or cbq.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shares {
    /// Guaranteed rate.
    pub(super) sure: Option<Rate>,
    /// Maximum rate: `ceil`, `ul`, or the rate of a bounded class.
    pub(super) most: Option<Rate>,
}

impl Shares {
    /// Reads the options of a class; a change of hfsc's curves keeps those that it does not name.
    pub(super) fn new(
        word: &Word,
        mut words: Words<'_>,
        before: Option<&Self>,
    ) -> Result<Self, ImportError> {
        let kind = word.text.as_str();
        let mut shares = match (kind, before) {
            ("hfsc", Some(before)) => *before,
            _ => Self::default(),
        };
        // The hfsc curve being read, and whether the cbq class never borrows.
        let (mut curve, mut bounded) = ("", false);
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            match (kind, text) {
                ("htb" | "cbq", "rate") => shares.sure = rate(words.expect("a rate")?)?,
                ("htb", "ceil") => shares.most = rate(words.expect("a rate")?)?,
                ("cbq", "bounded") => bounded = true,
                ("hfsc", "rt" | "ls" | "sc" | "ul") => curve = text,
                ("hfsc", "m2" | "rate") => {
                    let found = rate(words.expect("a rate")?)?;
                    match curve {
                        "ul" => shares.most = found,
                        _ => shares.sure = found.or(shares.sure),
                    }
                }
                _ => {}
            }
        }
        if bounded {
            shares.most = shares.sure;
        }
        if kind == "htb" && shares.sure.is_none() {
            return Err(word.wrong(
                "this class has no rate",
                "write rate 20mbit, or another one",
            ));
        }
        Ok(shares)
    }
}

/// The rate that a path of classes of one kind allows when no other class sends, and a note about it.
pub(super) fn alone(kind: &str, path: &[Shares]) -> (Option<Rate>, Option<String>) {
    let sure = path.last().and_then(|leaf| leaf.sure);
    let found = match kind {
        // A class at the top has nothing to borrow from.
        "htb" => path.iter().fold(None, |above: Option<Rate>, class| {
            let (sure, most) = (class.sure?, class.most.or(class.sure)?);
            Some(above.map_or(sure, |above| above.max(sure)).min(most))
        }),
        _ => path.iter().filter_map(|class| class.most).min().or(sure),
    };
    let note = match (found, sure) {
        (Some(found), Some(sure)) if found > sure => Some(format!(
            "{kind}: {sure} are sure to this class, alone it gets {found}, which stands here"
        )),
        (Some(found), _) if kind != "htb" && path.iter().all(|class| class.most.is_none()) => {
            Some(format!(
                "{kind}: nothing bounds this class, which may borrow what others leave; its own {found} stand here"
            ))
        }
        _ => None,
    };
    (found, note)
}
