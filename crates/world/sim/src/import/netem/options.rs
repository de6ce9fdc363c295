//! netem's options, as `tc` and the kernel keep them.
//!
//! `tc qdisc change` sets delay, limit, duplication and loss anew each time, with defaults for those not named; rate,
//! corruption, reordering and slots keep their values unless they are named.

use std::collections::BTreeMap;

use airlane_base::{Duration, Probability, QueueLimit, Rate};
use airlane_channel::{Distribution, ErrorModelConfig, JitterConfig};

use super::units::{count, percent, percents, rate, size, time};
use crate::import::words::{ImportError, Word, Words};

/// A full packet as a qdisc on Ethernet counts it, bytes.
pub(super) const PACKET: (u64, &str) = (
    1_514,
    " # 1500 B of IP with headers; tc counts Ethernet's 14 B, too",
);
/// netem's default.
pub(super) const USUAL_LIMIT: QueueLimit = QueueLimit::Packets(1_000);

/// The options of one netem qdisc.
#[derive(Clone, Debug, Default)]
pub(super) struct Netem {
    pub(super) rate: Option<Rate>,
    pub(super) delay: Duration,
    pub(super) jitter: JitterConfig,
    /// The share of packets that are not delayed.
    reorder: Probability,
    pub(super) errors: ErrorModelConfig,
    pub(super) corrupt: Option<Probability>,
    pub(super) limit: Option<QueueLimit>,
    pub(super) seed: Option<u64>,
    /// By the option that they concern.
    notes: BTreeMap<&'static str, Vec<String>>,
}

/// Options that a change keeps unless it names them.
const STAYS: [&str; 4] = ["rate", "corrupt", "reorder", "slot"];

impl Netem {
    /// Reads the options; for a change, `before` holds the previous ones.
    pub(super) fn new(words: Words<'_>, before: Option<&Self>) -> Result<Self, ImportError> {
        let mut netem = match before {
            None => Self::default(),
            Some(before) => Self {
                rate: before.rate,
                corrupt: before.corrupt,
                reorder: before.reorder,
                jitter: JitterConfig {
                    distribution: before.jitter.distribution,
                    ..JitterConfig::default()
                },
                seed: before.seed,
                notes: before.notes.clone(),
                ..Self::default()
            },
        };
        netem.notes.retain(|of, _| STAYS.contains(of));
        netem.netem(words)?;
        netem.settle();
        Ok(netem)
    }

    /// Expresses reordering as jitter: the delayed packets are the late ones.
    fn settle(&mut self) {
        let jitters = self.jitter.spread > Duration::ZERO;
        // With a rate, each packet begins to leave after the previous one, late or not.
        self.jitter.in_order = jitters && self.rate.is_some() && self.reorder == Probability::ZERO;
        if self.reorder == Probability::ZERO || self.delay == Duration::ZERO {
            return;
        }
        self.jitter.late = std::mem::take(&mut self.delay);
        self.jitter.share = probability(1.0 - self.reorder.value());
        if jitters {
            self.note(
                "reorder",
                "reorder: netem sends what does not wait at once; here its delay has jitter, too",
            );
        }
    }

    /// The jitter of its packets, if there is any.
    pub(super) fn jitter(&self) -> Option<JitterConfig> {
        let JitterConfig { spread, late, .. } = self.jitter;
        (spread > Duration::ZERO || late > Duration::ZERO).then_some(self.jitter)
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = &String> {
        self.notes.values().flatten()
    }

    fn note(&mut self, of: &'static str, note: impl Into<String>) {
        self.notes.entry(of).or_default().push(note.into());
    }

    fn netem(&mut self, mut words: Words<'_>) -> Result<(), ImportError> {
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "limit" => {
                    let word = words.expect("a number of packets")?;
                    let packets = size(word)?;
                    self.limit = Some(QueueLimit::Packets(packets));
                    if word.text.parse() != Ok(packets) {
                        let said = &word.text;
                        self.note(
                            "limit",
                            format!("limit {said}: tc reads a size, so {packets} packets"),
                        );
                    }
                }
                "delay" | "latency" => self.delay(&mut words)?,
                "distribution" => {
                    let word = words.expect("a distribution, such as \"normal\"")?;
                    self.jitter.distribution = match word.text.as_str() {
                        "uniform" => Distribution::Uniform,
                        "normal" => Distribution::Normal,
                        "pareto" => Distribution::Pareto,
                        "paretonormal" => Distribution::ParetoNormal,
                        other => {
                            let note = format!(
                                "distribution {other}: its table is not known here; taken as normal"
                            );
                            self.note("delay", note);
                            Distribution::Normal
                        }
                    };
                }
                "loss" | "drop" => self.loss(&mut words)?,
                "corrupt" => {
                    let part = percent(words.expect("a percentage")?)?;
                    self.notes.remove("corrupt");
                    self.correlation("corrupt", &mut words)?;
                    self.corrupt = Some(part);
                    let shown = part.value() * 100.0;
                    self.note("corrupt", format!(
                        "corrupt: a packet with a wrong checksum is dropped at the other end, so {shown} % more \
                         are lost"
                    ));
                }
                "duplicate" => {
                    let part = words.expect("a percentage")?;
                    percent(part)?;
                    self.correlation("duplicate", &mut words)?;
                    self.note(
                        "duplicate",
                        format!(
                            "duplicate {}: left out; links here double no packets",
                            part.text
                        ),
                    );
                }
                "reorder" => {
                    let part = percent(words.expect("a percentage")?)?;
                    self.notes.remove("reorder");
                    self.correlation("reorder", &mut words)?;
                    self.reorder = part;
                }
                "gap" => {
                    let gap = count(words.expect("a number of packets")?)?;
                    if gap > 1 {
                        let note = format!(
                            "gap {gap}: left out; any packet may be the one that does not wait"
                        );
                        self.note("gap", note);
                    }
                }
                "rate" => {
                    self.notes.remove("rate");
                    let word = words.expect("a rate, such as \"20mbit\"")?;
                    self.rate = rate(word)?;
                    if let Some(note) = bytes_note(word, self.rate) {
                        self.note("rate", note);
                    }
                    self.overhead(&mut words)?;
                }
                "slot" => self.slot(&mut words)?,
                "ecn" => self.note("ecn", "ecn: left out; what netem would mark is lost"),
                "seed" => {
                    let seed = count(words.expect("a number")?)?;
                    // The scenario file has room for 63 bits.
                    self.seed = Some(seed & i64::MAX as u64);
                }
                _ => {
                    return Err(word.unknown(
                        "an option of netem: limit, delay, distribution, loss, corrupt, duplicate, \
                         reorder, gap, rate, slot, ecn or seed",
                    ));
                }
            }
        }
        Ok(())
    }

    fn delay(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let word = words.expect("a time, such as \"25ms\"")?;
        self.delay = time(word)?;
        let delay = self.delay;
        if word.text.bytes().all(|c| c.is_ascii_digit()) && delay > Duration::ZERO {
            self.note(
                "delay",
                format!("delay {}: tc reads microseconds, so {delay}", word.text),
            );
        }
        if let Some(word) = words.next_number() {
            let jitter = time(word)?;
            let correlation = words.next_number();
            let part = correlation.map(percent).transpose()?;
            self.jitter.spread = jitter;
            if let Some(word) = correlation.filter(|_| part > Some(Probability::ZERO)) {
                self.note(
                    "delay",
                    format!("delay: the correlation of {} is left out", word.text),
                );
            }
        }
        Ok(())
    }

    fn loss(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        const FORMS: &str = "a percentage, \"random\", \"state\" or \"gemodel\"";
        if words.skip("state") {
            return self.loss_state(words);
        }
        if words.skip("gemodel") {
            let [p, r, h, k] = percents(words, ["p", "r", "1-h", "1-k"])?;
            let p = p.unwrap_or(Probability::ZERO);
            self.errors = gilbert_elliott(
                p.value(),
                r.map_or(1.0 - p.value(), Probability::value),
                k.map_or(0.0, Probability::value),
                h.map_or(1.0, Probability::value),
            );
            return Ok(());
        }
        words.skip("random");
        let word = words.expect(FORMS)?;
        if !word.is_number() {
            return Err(word.unknown(FORMS));
        }
        let rate = percent(word)?;
        self.errors = uniform(rate.value());
        if let Some(word) = words.next_number()
            && percent(word)? > Probability::ZERO
        {
            let shown = &word.text;
            self.note("loss", format!(
                "loss: the correlation of {shown} is left out; losses are independent (loss gemodel has bursts)"
            ));
        }
        Ok(())
    }

    /// See the module documentation of `netem`.
    fn loss_state(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let last = words.clone();
        let names = ["p13", "p31", "p32", "p23", "p14"];
        let [p13, p31, p32, p23, p14] = percents(words, names)?;
        let value = |p: Option<Probability>, usual: f64| p.map_or(usual, Probability::value);
        let p13 = value(p13, 0.0);
        let (p31, p32) = (value(p31, 1.0 - p13), value(p32, 0.0));
        let (p23, p14) = (value(p23, 1.0), value(p14, 0.0));
        if p32 > 0.0 && p23 == 0.0 {
            let word = last.peek().expect("there was a number");
            return Err(word.wrong(
                "with p32 and without p23 a burst ends up losing nothing, for ever",
                "give p23 a value above 0",
            ));
        }
        if p31 + p32 > 1.0 || p13 + p14 > 1.0 {
            let word = last.peek().expect("there was a number");
            return Err(word.wrong(
                "the probabilities of leaving a state are more than 1 together",
                "p31 + p32 and p13 + p14 are at most 100%",
            ));
        }
        let lost_in_burst = if p32 > 0.0 { p23 / (p23 + p32) } else { 1.0 };
        let lost_in_gap = p14 / (1.0 + p14);
        self.errors = gilbert_elliott(
            p13 / (1.0 + p14),
            p31 * lost_in_burst,
            lost_in_gap,
            lost_in_burst,
        );
        if p32 > 0.0 || p14 > 0.0 {
            self.note(
                "loss",
                "loss state: gaps and bursts are the two states of a Gilbert-Elliott link, as long and as lossy; \
                 where in them the losses are is drawn independently",
            );
        }
        Ok(())
    }

    /// Reads and leaves out a correlation.
    fn correlation(&mut self, of: &'static str, words: &mut Words<'_>) -> Result<(), ImportError> {
        if let Some(word) = words.next_number()
            && percent(word)? > Probability::ZERO
        {
            let shown = &word.text;
            self.note(of, format!("{of}: the correlation of {shown} is left out"));
        }
        Ok(())
    }

    /// The bytes that netem adds to each packet's length: typed as numbers, shown with names.
    fn overhead(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let mut some = false;
        loop {
            let named = ["packetoverhead", "cellsize", "celloverhead"];
            let named = named.iter().any(|name| words.skip(name));
            let word = match words.next_number() {
                Some(word) => word,
                None if named => words.expect("a number of bytes")?,
                None => break,
            };
            let bytes: Option<i64> = word.text.parse().ok();
            some |= bytes.ok_or_else(|| word.unknown("a number of bytes"))? != 0;
        }
        if some {
            self.note(
                "rate",
                "rate: overhead and cells are left out; a packet is as long as it is",
            );
        }
        Ok(())
    }

    fn slot(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        if words.skip("distribution") {
            words.expect("a distribution, such as \"normal\"")?;
        }
        time(words.expect("a time, such as \"10ms\"")?)?;
        if let Some(word) = words.next_number() {
            time(word)?;
        }
        while words.skip("packets") || words.skip("bytes") {
            size(words.expect("a number")?)?;
        }
        self.notes.remove("slot");
        self.note(
            "slot",
            "slot: left out; a link that sends at certain times only is \
             rate = { kind = \"opportunities\", ... }",
        );
        Ok(())
    }
}

/// A note for a rate in bytes, which is easily taken for bits.
pub(super) fn bytes_note(word: &Word, rate: Option<Rate>) -> Option<String> {
    let rate = rate.filter(|_| word.text.to_ascii_lowercase().ends_with("bps"))?;
    let said = &word.text;
    Some(format!("rate {said}: tc reads bytes a second, so {rate}"))
}

fn probability(p: f64) -> Probability {
    Probability::new(p.clamp(0.0, 1.0)).unwrap_or(Probability::ZERO)
}

fn uniform(rate: f64) -> ErrorModelConfig {
    match probability(rate) {
        Probability::ZERO => ErrorModelConfig::None,
        rate => ErrorModelConfig::Uniform { rate },
    }
}

/// A chain that never changes state stays in its good state.
fn gilbert_elliott(to_bad: f64, to_good: f64, loss_good: f64, loss_bad: f64) -> ErrorModelConfig {
    if to_bad == 0.0 {
        return uniform(loss_good);
    }
    ErrorModelConfig::GilbertElliott {
        good_to_bad: probability(to_bad),
        bad_to_good: probability(to_good),
        loss_good: probability(loss_good),
        loss_bad: probability(loss_bad),
    }
}
