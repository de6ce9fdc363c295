//! What netem, tbf and the queues below them were told, and what a direction of a link does for it.

use airlane_base::{Duration, Probability, QueueLimit, Rate};
use airlane_channel::{ErrorModelConfig, LinkRate};

use super::command::Qdisc;
use super::units::{count, percent, percents, rate, size, size_of_cells, time};
use crate::import::direction::{Direction, UNLIMITED};
use crate::import::words::{ImportError, Words, nothing};

/// A full packet as a qdisc on Ethernet counts it.
pub(super) const PACKET: (u64, &str) = (1_514, " # 1500 B of IP in Ethernet, which tc counts");
/// netem's own.
pub(super) const USUAL_LIMIT: QueueLimit = QueueLimit::Packets(1_000);
/// Qdiscs that shape nothing and lose nothing by themselves.
const PLAIN: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "ingress", "clsact", "mqprio"];
/// Qdiscs that a link here does not have.
const OTHERS: [&str; 17] = [
    "fq_codel", "fq", "codel", "cake", "htb", "hfsc", "prio", "sfq", "red", "pie", "fq_pie", "drr",
    "qfq", "cbq", "ets", "multiq", "sfb",
];

/// What the qdiscs of an interface come to.
pub(super) struct Shaped {
    pub(super) direction: Direction,
    pub(super) seed: Option<u64>,
    pub(super) notes: Vec<String>,
}

/// What the qdiscs of an interface were told.
#[derive(Default)]
pub(super) struct Options {
    rates: Vec<Rate>,
    delay: Duration,
    errors: ErrorModelConfig,
    corrupt: Option<Probability>,
    /// netem's `limit`, or that of a queue below it.
    limit: Option<QueueLimit>,
    /// tbf's, unless netem is its queue.
    tbf_limit: Option<QueueLimit>,
    netem_in_tbf: bool,
    seed: Option<u64>,
    notes: Vec<String>,
}

impl Options {
    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(super) fn read(&mut self, qdisc: Qdisc<'_>) -> Result<(), ImportError> {
        match qdisc.kind {
            "netem" => {
                self.netem_in_tbf = qdisc.is_child;
                self.netem(qdisc.options)?;
            }
            "tbf" => self.tbf(qdisc.options)?,
            "pfifo" | "bfifo" => self.fifo(qdisc.kind, qdisc.options)?,
            kind if PLAIN.contains(&kind) => {}
            kind if OTHERS.contains(&kind) => self.note(format!(
                "{kind}: left out; the queue is drop-tail (services have queues of their own: \
                 `airlane explain`)"
            )),
            _ => {
                return Err(qdisc
                    .word
                    .unknown("a qdisc that tc knows, such as \"netem\" or \"tbf\""));
            }
        }
        Ok(())
    }

    fn netem(&mut self, mut words: Words<'_>) -> Result<(), ImportError> {
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "limit" => {
                    let packets = count(words.expect("a number of packets")?)?;
                    self.limit = Some(QueueLimit::Packets(packets));
                }
                "delay" | "latency" => self.delay(&mut words)?,
                "distribution" => {
                    words.expect("a distribution, such as \"normal\"")?;
                }
                "loss" | "drop" => self.loss(&mut words)?,
                "corrupt" => {
                    let part = percent(words.expect("a percentage")?)?;
                    self.correlation("corrupt", &mut words)?;
                    self.corrupt = Some(part);
                    let shown = part.value() * 100.0;
                    self.note(format!(
                        "corrupt: a packet with a wrong checksum is dropped at the other end, so {shown} % more \
                         are lost"
                    ));
                }
                "duplicate" => {
                    let part = words.expect("a percentage")?;
                    percent(part)?;
                    self.correlation("duplicate", &mut words)?;
                    self.note(format!(
                        "duplicate {}: left out; links here double no packets",
                        part.text
                    ));
                }
                "reorder" => {
                    let part = words.expect("a percentage")?;
                    percent(part)?;
                    self.correlation("reorder", &mut words)?;
                    self.note(format!(
                        "reorder {}: left out; links here keep the order",
                        part.text
                    ));
                }
                "gap" => {
                    count(words.expect("a number of packets")?)?;
                }
                "rate" => {
                    self.rates
                        .extend(rate(words.expect("a rate, such as \"20mbit\"")?)?);
                    self.overhead(&mut words)?;
                }
                "slot" => self.slot(&mut words)?,
                "ecn" => self.note("ecn: left out; what netem would mark is lost"),
                "seed" => {
                    let seed = count(words.expect("a number")?)?;
                    // A file has place for so many bits.
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
        self.delay = time(words.expect("a time, such as \"25ms\"")?)?;
        if let Some(word) = words.next_number() {
            let jitter = time(word)?;
            if let Some(word) = words.next_number() {
                percent(word)?;
            }
            if jitter > Duration::ZERO {
                let delay = self.delay;
                self.note(format!(
                    "delay: the jitter of {jitter} is left out; every packet takes {delay}, the mean, and none \
                     overtakes another"
                ));
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
            self.note(format!(
                "loss: the correlation of {shown} is left out; losses are independent (loss gemodel has bursts)"
            ));
        }
        Ok(())
    }

    /// See the head of this file.
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
                "loss state: gaps and bursts are the two states of a Gilbert-Elliott link, as long and as lossy; \
                 where in them the losses are is drawn independently",
            );
        }
        Ok(())
    }

    /// A correlation that is left out.
    fn correlation(&mut self, of: &str, words: &mut Words<'_>) -> Result<(), ImportError> {
        if let Some(word) = words.next_number()
            && percent(word)? > Probability::ZERO
            && of == "corrupt"
        {
            let shown = &word.text;
            self.note(format!("{of}: the correlation of {shown} is left out"));
        }
        Ok(())
    }

    /// What netem adds to each packet's length: typed as numbers, shown with names.
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
            self.note("rate: overhead and cells are left out; a packet is as long as it is");
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
        self.note(
            "slot: left out; a link that sends at certain times only is \
             rate = { kind = \"opportunities\", ... }",
        );
        Ok(())
    }

    fn tbf(&mut self, mut words: Words<'_>) -> Result<(), ImportError> {
        let (mut rated, mut burst, mut limit, mut latency) = (None, None, None, None);
        let mut all = words.clone();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            match text {
                "rate" => rated = rate(words.expect("a rate, such as \"20mbit\"")?)?,
                "burst" | "buffer" | "maxburst" => burst = Some(size_of_cells(&mut words)?),
                "limit" => limit = Some(size(words.expect("a size, such as \"32kb\"")?)?),
                "lat" | "latency" => {
                    latency = Some(time(words.expect("a time, such as \"50ms\"")?)?)
                }
                "peakrate" => {
                    rate(words.expect("a rate")?)?;
                    self.note("peakrate: left out; what leaves never comes faster than the rate");
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
        self.rates.push(rated);
        let burst = burst.unwrap_or(0);
        let waiting = latency.map(|time| rated.bytes_within(time) as u64);
        let limit = limit.or(waiting.map(|bytes| bytes.saturating_add(burst)));
        self.tbf_limit = limit.map(QueueLimit::Bytes);
        if burst > 2 * PACKET.0 {
            self.note(format!(
                "burst: a burst of {burst} B leaves at the rate, too, as everything does"
            ));
        }
        Ok(())
    }

    fn fifo(&mut self, kind: &str, mut words: Words<'_>) -> Result<(), ImportError> {
        while let Some(word) = words.next() {
            if word.text != "limit" {
                return Err(word.unknown("\"limit\""));
            }
            let limit = size(words.expect("a number")?)?;
            self.limit = Some(match kind {
                "pfifo" => QueueLimit::Packets(limit),
                _ => QueueLimit::Bytes(limit),
            });
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Shaped {
        let tbf = self.tbf_limit.filter(|_| !self.netem_in_tbf);
        let queue = tbf.or(self.limit).unwrap_or(USUAL_LIMIT);
        let mut direction = Direction::open(queue);
        (direction.delay, direction.errors) = (self.delay, self.errors.clone());
        if let Some(part) = self.corrupt {
            // netem has no other errors than these two.
            direction.also_loses(part);
        }
        let lossy = direction.errors != ErrorModelConfig::None;
        match self.rates.iter().min() {
            Some(rate) => {
                direction.rate = LinkRate::Constant(*rate);
                if self.rates.len() > 1 {
                    self.note("rate: of several in a row the lowest counts");
                }
                if lossy {
                    self.note(
                        "loss: netem loses packets before they wait and take time; here they are lost on the way, \
                         after that",
                    );
                }
                if self.delay > Duration::ZERO && tbf.is_none() {
                    self.note(format!(
                        "limit: netem counts packets that it delays, too; here {queue} may wait for the \
                         transmitter, and any number be on the way"
                    ));
                }
            }
            None => self.note(format!(
                "rate: none was given; {UNLIMITED} stands for no limit"
            )),
        }
        Shaped {
            direction,
            seed: self.seed,
            notes: self.notes,
        }
    }
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

/// A chain that leaves no state is in its good one.
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
