//! `tc qdisc` with netem and tbf, as it is typed and as `tc qdisc show` prints it.
//!
//! What netem says exactly, and a link here does exactly: `delay`, `rate`, `limit`, `loss` (random),
//! `loss gemodel` and the two-state form of `loss state`. Everything else is put as near as it can be
//! or left out, with a note.
//!
//! `loss state` is a chain of four states, received and lost in gaps and in bursts. Gaps and bursts are
//! the two states of a Gilbert-Elliott link that has the same rates of entering and leaving bursts and
//! the same losses in each; without `p32`, `p23` and `p14` that is the chain itself.

use airlane_base::{BothWays, Duration, Probability, QueueLimit, Rate};
use airlane_channel::{ErrorModelConfig, LinkRate};

use super::direction::{Direction, UNLIMITED};
use super::words::{ImportError, Word, Words, commands, nothing};
use super::write::Draft;
use super::{ImportedApp, ImportedScenario};
use crate::scenario::LONGEST_RUN;

const EXPECTED: &str = "the output of `tc qdisc show`, `tc qdisc add dev X root netem ...`, or what \
     stands behind `netem`";
/// As large as netem's and tbf's own numbers get.
const FASTEST_BPS: f64 = 1e15;
/// netem's own.
const USUAL_LIMIT: QueueLimit = QueueLimit::Packets(1_000);
/// A full packet as a qdisc on Ethernet counts it.
const PACKET: (u64, &str) = (1_514, " # 1500 B of IP in Ethernet, which tc counts");

/// Qdiscs that shape nothing and lose nothing by themselves.
const PLAIN: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "ingress", "clsact", "mqprio"];
/// Qdiscs that a link here does not have.
const OTHERS: [&str; 17] = [
    "fq_codel", "fq", "codel", "cake", "htb", "hfsc", "prio", "sfq", "red", "pie", "fq_pie", "drr",
    "qfq", "cbq", "ets", "multiq", "sfb",
];

/// Makes a scenario of the qdiscs of one interface. What it sends goes "down"; `reverse` holds those
/// of the interface at the other end. `device` says which interface, where the text has several.
///
/// # Errors
/// Names the word that is not understood, and what could stand there. Places are those of `text`, or,
/// if the error says so, of `reverse`.
///
/// # Examples
/// ```
/// use airlane_sim::import::{ImportedApp, from_netem};
///
/// let import = from_netem("netem delay 25ms loss 5%", None, None, &[ImportedApp::File]).unwrap();
/// let scenario = airlane_sim::Scenario::from_toml(&import.text, "netem.toml").unwrap();
/// assert_eq!(scenario.links["link"].delay.down.to_string(), "25 ms");
/// ```
pub fn from_netem(
    text: &str,
    reverse: Option<&str>,
    device: Option<&str>,
    apps: &[ImportedApp],
) -> Result<ImportedScenario, ImportError> {
    let down = shaped(text, device)?;
    let mut notes = down.notes;
    let mut source = text.trim().to_owned();
    let up = match reverse {
        None => {
            notes.push(
                "the other direction: tc shapes what one interface sends, so what comes back has no delay \
                 and no loss (--reverse says otherwise)"
                    .to_owned(),
            );
            let mut open = Direction::open(USUAL_LIMIT);
            if down.direction.rate.mean() > Some(UNLIMITED) {
                open.rate = down.direction.rate.clone();
            }
            open
        }
        Some(text) => {
            let up = shaped(text, None).map_err(|error| ImportError {
                problem: format!("in the reverse direction: {}", error.problem),
                ..error
            })?;
            notes.extend(up.notes.iter().map(|note| format!("reverse: {note}")));
            source = format!("{source}\n# and in reverse\n{}", text.trim());
            up.direction
        }
    };
    let draft = Draft {
        name: "netem",
        source: &source,
        seed: down.seed.unwrap_or(1),
        ends: ["sender", "receiver"],
        ways: BothWays {
            down: down.direction,
            up,
        },
        packet: PACKET,
        notes,
    };
    Ok(draft.finish(apps))
}

/// What the qdiscs of an interface come to.
struct Shaped {
    direction: Direction,
    seed: Option<u64>,
    notes: Vec<String>,
}

/// A qdisc, and the words behind its kind.
struct Qdisc<'a> {
    kind: &'a str,
    /// Where it is named.
    word: &'a Word,
    device: Option<&'a str>,
    /// Below another one.
    is_child: bool,
    options: Words<'a>,
}

fn shaped(text: &str, device: Option<&str>) -> Result<Shaped, ImportError> {
    let commands = commands(text)?;
    let mut qdiscs = vec![];
    for command in &commands {
        qdiscs.extend(qdisc(command)?);
    }
    let shapes = |qdisc: &&Qdisc<'_>| matches!(qdisc.kind, "netem" | "tbf");
    let mut devices: Vec<&str> = qdiscs
        .iter()
        .filter(shapes)
        .map(|qdisc| qdisc.device.unwrap_or(""))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    let device = match (device, devices.as_slice()) {
        (Some(device), devices) if devices.contains(&device) || *devices == [""] => devices
            .iter()
            .copied()
            .find(|known| *known == device)
            .unwrap_or(""),
        (None, [device]) => *device,
        (None, []) | (Some(_), []) => {
            let first = commands.first().and_then(|command| command.first());
            return Err(first.map_or_else(
                || nothing(EXPECTED),
                |word| {
                    word.wrong(
                        "nothing here is shaped by netem or tbf",
                        format!("expected {EXPECTED}"),
                    )
                },
            ));
        }
        (device, devices) => {
            let first = qdiscs.iter().find(|qdisc| shapes(qdisc));
            let word = first.expect("there are devices").word;
            let names = devices.join(", ");
            let problem = match device {
                Some(device) => format!("nothing shapes \"{device}\""),
                None => "more than one interface is shaped".to_owned(),
            };
            return Err(word.wrong(problem, format!("choose one by --dev: {names}")));
        }
    };
    let mut all = Options::default();
    for qdisc in qdiscs {
        if qdisc.device.unwrap_or("") == device {
            all.read(qdisc)?;
        }
    }
    Ok(all.finish())
}

/// Reads what is in front of a qdisc's options; none if the command is about something else.
fn qdisc(command: &[Word]) -> Result<Option<Qdisc<'_>>, ImportError> {
    let mut words = Words::new(command);
    words.skip("sudo");
    let (first, mut device, mut is_child) = (words.clone().expect(EXPECTED)?, None, false);
    let word = match first.text.as_str() {
        // `tc -s qdisc show` has counters below each qdisc.
        "Sent" | "backlog" | "maxpacket" | "new_flows_len" => return Ok(None),
        "tc" => {
            words.next();
            while words.peek().is_some_and(|word| word.text.starts_with('-')) {
                words.next();
            }
            let what = words.expect("\"qdisc\"")?;
            match what.text.as_str() {
                "qdisc" => {}
                "class" | "filter" => return Ok(None),
                _ => return Err(what.unknown("\"qdisc\"")),
            }
            let verb = words.expect("\"add\"")?;
            match verb.text.as_str() {
                "add" | "replace" | "change" => {}
                "del" | "delete" => return Ok(None),
                "show" | "list" | "ls" => {
                    return Err(verb.wrong(
                        format!(
                            "\"{}\" prints what is shaped, and shapes nothing",
                            verb.text
                        ),
                        "give its output: `tc qdisc show | airlane scenario from-netem -`",
                    ));
                }
                _ => return Err(verb.unknown("\"add\", \"replace\" or \"change\"")),
            }
            attach(&mut words, &mut device, &mut is_child)?;
            words.expect("a qdisc, such as \"netem\"")?
        }
        "qdisc" => {
            words.next();
            let word = words.expect("a qdisc, such as \"netem\"")?;
            words.expect("its handle, such as \"8001:\"")?;
            attach(&mut words, &mut device, &mut is_child)?;
            word
        }
        "netem" | "tbf" => words.expect(EXPECTED)?,
        // What stands behind the word.
        _ => first,
    };
    let kind = match word.text.as_str() {
        _ if std::ptr::eq(word, first) && word.text != "tbf" => "netem",
        kind => kind,
    };
    Ok(Some(Qdisc {
        kind,
        word,
        device,
        is_child,
        options: words,
    }))
}

/// Where a qdisc stands.
fn attach<'a>(
    words: &mut Words<'a>,
    device: &mut Option<&'a str>,
    is_child: &mut bool,
) -> Result<(), ImportError> {
    while let Some(word) = words.peek() {
        match word.text.as_str() {
            "root" => {
                words.next();
            }
            "dev" => {
                words.next();
                *device = Some(words.expect("an interface")?.text.as_str());
            }
            "parent" => {
                words.next();
                words.expect("a handle, such as \"1:1\"")?;
                *is_child = true;
            }
            "handle" | "refcnt" => {
                words.next();
                words.expect("a number")?;
            }
            _ => break,
        }
    }
    Ok(())
}

/// What the qdiscs of an interface were told.
#[derive(Default)]
struct Options {
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

    fn read(&mut self, qdisc: Qdisc<'_>) -> Result<(), ImportError> {
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
                    // What a file has place for.
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

    fn finish(mut self) -> Shaped {
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

/// Percentages in their order, with or without their names; the first must be there.
fn percents<const N: usize>(
    words: &mut Words<'_>,
    names: [&str; N],
) -> Result<[Option<Probability>; N], ImportError> {
    let mut found = [None; N];
    for (i, name) in names.iter().enumerate() {
        let named = words.skip(name);
        // "1-h" begins as a number does.
        let other = words
            .peek()
            .is_some_and(|word| names.contains(&word.text.as_str()));
        let word = match words.peek() {
            Some(word) if word.is_number() && !other => word,
            _ if named || i == 0 => {
                return Err(words.expect("a percentage")?.unknown("a percentage"));
            }
            _ => continue,
        };
        words.next();
        found[i] = Some(percent(word)?);
    }
    Ok(found)
}

/// A number and the unit behind it.
fn number<'a>(word: &'a Word, expected: &str) -> Result<(f64, &'a str), ImportError> {
    let text = word.text.as_str();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let value: Option<f64> = text[..end].parse().ok();
    let value = value.filter(|value| *value >= 0.0 && value.is_finite());
    Ok((value.ok_or_else(|| word.unknown(expected))?, &text[end..]))
}

fn count(word: &Word) -> Result<u64, ImportError> {
    let expected = "a whole number";
    word.text.parse().map_err(|_| word.unknown(expected))
}

/// Of hundred, with or without a sign.
fn percent(word: &Word) -> Result<Probability, ImportError> {
    let expected = "a percentage, 0% to 100%";
    let (value, unit) = number(word, expected)?;
    let found = Probability::new(value / 100.0).filter(|_| matches!(unit, "" | "%"));
    found.ok_or_else(|| word.unknown(expected))
}

/// Microseconds where no unit is given.
fn time(word: &Word) -> Result<Duration, ImportError> {
    let expected = "a time, such as \"25ms\"";
    let (value, unit) = number(word, expected)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1.0,
        "ms" | "msec" | "msecs" => 1e-3,
        "" | "us" | "usec" | "usecs" => 1e-6,
        "ns" | "nsec" | "nsecs" => 1e-9,
        _ => return Err(word.unknown(expected)),
    };
    let time = Duration::from_secs_f64(value * factor);
    if time > LONGEST_RUN {
        return Err(word.wrong(
            format!("\"{}\" is longer than any run", word.text),
            format!("at most {LONGEST_RUN}"),
        ));
    }
    Ok(time)
}

/// K is 1000, with an `i` 1024; `bps` are bytes. None for zero, which is no limit.
fn rate(word: &Word) -> Result<Option<Rate>, ImportError> {
    let expected = "a rate, such as \"20mbit\"";
    let (value, unit) = number(word, expected)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None => (unit.strip_suffix("bit").unwrap_or(&unit), 1.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1_024.0,
        "mi" => 1_048_576.0,
        "gi" => 1_073_741_824.0,
        _ => return Err(word.unknown(expected)),
    };
    let bps = value * factor * bits;
    if bps > FASTEST_BPS {
        return Err(word.wrong(
            format!("\"{}\" is faster than anything", word.text),
            "expected at most 1000tbit",
        ));
    }
    // Less than a bit in a second is not nothing.
    let bps = if bps > 0.0 { (bps + 0.5).max(1.0) } else { 0.0 };
    Ok(Rate::from_bps(bps as u64))
}

/// Bytes; K is 1024.
fn size(word: &Word) -> Result<u64, ImportError> {
    let expected = "a size, such as \"32kb\"";
    let (value, unit) = number(word, expected)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "p" => 1.0,
        "k" | "kb" => 1_024.0,
        "m" | "mb" => 1_048_576.0,
        "g" | "gb" => 1_073_741_824.0,
        "kbit" => 128.0,
        "mbit" => 131_072.0,
        "gbit" => 134_217_728.0,
        _ => return Err(word.unknown(expected)),
    };
    let bytes = value * factor;
    if bytes > 1e15 {
        return Err(word.wrong(
            format!("\"{}\" is too much", word.text),
            "expected at most 1000000gb",
        ));
    }
    Ok(bytes as u64)
}

/// A size, behind which `/8` may stand.
fn size_of_cells(words: &mut Words<'_>) -> Result<u64, ImportError> {
    let word = words.expect("a size, such as \"32kbit\"")?;
    let text = word
        .text
        .split_once('/')
        .map_or(word.text.as_str(), |(size, _)| size);
    size(&Word {
        text: text.to_owned(),
        ..word.clone()
    })
}
