//! A chain of Mahimahi's shells: `mm-delay`, `mm-loss`, `mm-onoff`, `mm-link`.
//!
//! The application runs in the innermost shell, which is written last: an uplink packet meets that shell first. Up
//! and down are reversed against the flows here, whose server sends down to a client.
//!
//! `mm-link` becomes [opportunities](airlane_channel::Opportunities); `mm-onoff` a two-state link whose state at a
//! packet's time decides; `mm-loss` uniform losses; `mm-delay` the delay of both directions.

use airlane_base::{BothWays, Duration, Probability, QueueLimit};
use airlane_channel::{ErrorModelConfig, LinkRate, OpportunitiesConfig};

use super::direction::{Direction, UNLIMITED};
use super::words::{ImportError, Word, Words, commands, nothing};
use super::write::{Draft, USUAL_DURATION};
use super::{ImportedApp, ImportedScenario};
use crate::scenario::LONGEST_RUN;

const SHELLS: &str = "mm-delay, mm-loss, mm-onoff or mm-link";
/// Mahimahi's default queue is unlimited; a scenario needs a number.
const INFINITE: QueueLimit = QueueLimit::Packets(1_000_000);
/// A full packet as Mahimahi counts it.
const PACKET: (u64, &str) = (
    1_504,
    " # 1500 B of IP with headers; Mahimahi counts 4 B in front",
);

/// Makes a scenario from a chain of Mahimahi's shells.
///
/// `read` returns the bytes of a trace, or why it cannot be read; `place` maps its name to the one in the scenario,
/// which is relative to where the scenario will be.
///
/// # Errors
/// Names the word that is not understood, or the trace that is invalid.
///
/// # Examples
/// ```
/// use airlane_sim::import::{ImportedApp, from_mahimahi};
///
/// let command = "mm-delay 25 mm-link UP.trace DOWN.trace";
/// let read = |_: &str| Ok(b"1\n2\n5\n".to_vec());
/// let import = from_mahimahi(command, read, str::to_owned, &[ImportedApp::File]).unwrap();
/// assert!(import.text.contains("opportunities"));
/// ```
pub fn from_mahimahi(
    text: &str,
    mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
    place: impl Fn(&str) -> String,
    apps: &[ImportedApp],
) -> Result<ImportedScenario, ImportError> {
    let commands = commands(text)?;
    let [command] = commands.as_slice() else {
        return Err(
            match commands.get(1).and_then(|command| command.words.first()) {
                None => nothing(SHELLS),
                Some(word) => word.wrong(
                    "this is a second command",
                    "give one, from its first mm- to its last",
                ),
            },
        );
    };
    let mut shells = Shells {
        ways: Direction::open(INFINITE).into(),
        has_link: false,
        notes: vec![],
    };
    let command = command.words.as_slice();
    let mut words = Words::new(command);
    if !command[0].text.starts_with("mm-") {
        return Err(command[0].unknown(SHELLS));
    }
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "mm-delay" => shells.delay(&mut words)?,
            "mm-loss" => shells.loss(&mut words)?,
            "mm-onoff" => shells.onoff(&mut words)?,
            "mm-link" => {
                if shells.has_link {
                    return Err(
                        word.wrong("this is a second mm-link", "a scenario of one link has one")
                    );
                }
                shells.link(&mut words, &mut read)?;
            }
            shell if shell.starts_with("mm-") => return Err(word.unknown(SHELLS)),
            command => {
                let command = if command == "--" {
                    words.peek().map(|word| word.text.as_str())
                } else {
                    Some(command)
                };
                if let Some(command) = command {
                    shells
                        .notes
                        .push(format!("{command}: is not run; the flows of the file are"));
                }
                break;
            }
        }
    }
    Ok(shells.finish(text.trim(), place, apps))
}

/// The combined effect of the shells.
struct Shells {
    ways: BothWays<Direction>,
    has_link: bool,
    notes: Vec<String>,
}

impl Shells {
    fn delay(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let expected = "milliseconds, such as 25";
        let word = words.expect(expected)?;
        let ms: u64 = word.text.parse().map_err(|_| word.unknown(expected))?;
        let delay = Duration::from_millis(ms) + self.ways.down.delay;
        if delay > LONGEST_RUN {
            return Err(word.wrong(
                "this is longer than any run",
                format!("at most {LONGEST_RUN}"),
            ));
        }
        (self.ways.down.delay, self.ways.up.delay) = (delay, delay);
        Ok(())
    }

    fn direction(&mut self, words: &mut Words<'_>) -> Result<(bool, &mut Direction), ImportError> {
        let expected = "\"uplink\" or \"downlink\"";
        let word = words.expect(expected)?;
        match word.text.as_str() {
            "uplink" => Ok((false, &mut self.ways.up)),
            "downlink" => Ok((true, &mut self.ways.down)),
            _ => Err(word.unknown(expected)),
        }
    }

    fn loss(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let expected = "the part of the packets that is lost, 0 to 1";
        let (down, direction) = self.direction(words)?;
        let word = words.expect(expected)?;
        let part = word.text.parse().ok().and_then(Probability::new);
        let part = part.ok_or_else(|| word.unknown(expected))?;
        if !direction.also_loses(part) {
            return Err(both(word));
        }
        self.order("mm-loss", down);
        Ok(())
    }

    fn onoff(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let expected = "seconds, such as 0.5";
        let (down, direction) = self.direction(words)?;
        let mut mean = || {
            let word = words.expect(expected)?;
            let seconds: Option<f64> = word.text.parse().ok();
            let seconds = seconds.filter(|s| *s >= 0.0 && *s <= LONGEST_RUN.as_secs_f64());
            let mean = seconds.map(Duration::from_secs_f64);
            Ok((mean.ok_or_else(|| word.unknown(expected))?, word))
        };
        let ((on, first), (off, _)) = (mean()?, mean()?);
        let certain = |p| Probability::new(p).expect("between 0 and 1");
        let shortest = Duration::from_micros(1);
        let model = match (on < shortest, off < shortest) {
            (true, true) => {
                return Err(first.wrong(
                    "this link is neither on nor off",
                    "one of the two is above 0",
                ));
            }
            (true, false) => ErrorModelConfig::Uniform { rate: certain(1.0) },
            (false, true) => return Ok(()),
            (false, false) => ErrorModelConfig::TwoStateArrival {
                good: on,
                bad: off,
                ber_good: certain(0.0),
                ber_bad: certain(1.0),
            },
        };
        if direction.errors != ErrorModelConfig::None {
            return Err(both(first));
        }
        direction.errors = model;
        self.order("mm-onoff", down);
        Ok(())
    }

    /// Here a packet is lost after the link has sent it. An uplink packet meets the last shell first.
    fn order(&mut self, shell: &str, down: bool) {
        if self.has_link != down {
            let direction = if down { "downlink" } else { "uplink" };
            self.notes.push(format!(
                "{shell} {direction}: there a packet is lost before mm-link, if there is one, here after it"
            ));
        }
    }

    fn link(
        &mut self,
        words: &mut Words<'_>,
        read: &mut impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), ImportError> {
        let mut files = vec![];
        // For uplink and downlink: the kind of queue, and its arguments.
        let mut queues = [(None, None), (None, None)];
        while let Some(word) = words.peek() {
            let Some(option) = word.text.strip_prefix("--").filter(|name| !name.is_empty()) else {
                if files.len() == 2 {
                    break;
                }
                files.push(words.expect("a trace")?);
                continue;
            };
            words.next();
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            let mut value = || match value {
                Some(value) => Ok((word, value)),
                None => words
                    .expect("its value")
                    .map(|word| (word, word.text.as_str())),
            };
            match name {
                "uplink-queue" => queues[0].0 = Some(value()?),
                "downlink-queue" => queues[1].0 = Some(value()?),
                "uplink-queue-args" => queues[0].1 = Some(value()?),
                "downlink-queue-args" => queues[1].1 = Some(value()?),
                "uplink-log" | "downlink-log" => {
                    value()?;
                    self.notes.push(format!(
                        "--{name}: left out; `airlane sim run FILE --pcap link=link.pcapng` has every packet"
                    ));
                }
                "once" => self
                    .notes
                    .push("--once: left out; traces begin again".to_owned()),
                meter if meter.starts_with("meter-") => {
                    self.notes.push(format!(
                        "--{name}: left out; `airlane sim run` prints what came of it"
                    ));
                }
                _ => {
                    return Err(word.unknown(
                        "an option of mm-link: --uplink-queue, --uplink-queue-args, --uplink-log, the same \
                         with downlink, --once or --meter-all",
                    ));
                }
            }
        }
        let [up, down] = files[..] else {
            words.expect("the traces of uplink and downlink")?;
            return Err(nothing("the traces of uplink and downlink"));
        };
        self.has_link = true;
        for (down, file) in [(false, up), (true, down)] {
            let trace = OpportunitiesConfig::new(file.text.clone(), None);
            let mut rate = LinkRate::Opportunities(trace);
            rate.load(&mut *read)
                .map_err(|error| file.wrong(error, "one time in milliseconds a line"))?;
            self.ways.of_mut(down).rate = rate;
        }
        for (down, (kind, arguments)) in [false, true].into_iter().zip(queues) {
            let queue = self.queue(down, kind, arguments)?;
            self.ways.of_mut(down).queue = queue;
        }
        Ok(())
    }

    fn queue(
        &mut self,
        down: bool,
        kind: Option<(&Word, &str)>,
        arguments: Option<(&Word, &str)>,
    ) -> Result<QueueLimit, ImportError> {
        let name = if down {
            "downlink-queue"
        } else {
            "uplink-queue"
        };
        let (packets, bytes, mut unused) = match arguments {
            Some((word, text)) => limits(word, text)?,
            None => (None, None, vec![]),
        };
        if matches!(kind, None | Some((_, "infinite"))) {
            let said = [packets.map(|_| "packets"), bytes.map(|_| "bytes")];
            unused.extend(said.into_iter().flatten());
        }
        if !unused.is_empty() {
            let unused = unused.join(", ");
            self.notes.push(format!("--{name}-args: {unused} left out"));
        }
        let limit = packets
            .map(QueueLimit::Packets)
            .or(bytes.map(QueueLimit::Bytes));
        let note = match (kind, limit) {
            (None | Some((_, "infinite")), _) => {
                self.notes
                    .push(format!("--{name}: infinite there, {INFINITE} here"));
                return Ok(INFINITE);
            }
            (Some((word, "droptail" | "drophead")), None) => {
                return Err(word.wrong(
                    "how much does the queue hold?",
                    format!("--{name}-args=packets=100, or bytes=150000"),
                ));
            }
            (Some((_, "droptail")), _) if packets.is_some() && bytes.is_some() => {
                Some("the limit of packets counts, that of bytes is left out".to_owned())
            }
            (Some((_, "droptail")), _) => None,
            (Some((_, kind @ ("drophead" | "codel" | "pie"))), _) => Some(format!(
                "{kind}: drop-tail here; queues of services know CoDel"
            )),
            (Some((word, _)), _) => {
                return Err(word.unknown("infinite, droptail, drophead, codel or pie"));
            }
        };
        self.notes
            .extend(note.map(|note| format!("--{name}: {note}")));
        Ok(limit.unwrap_or(INFINITE))
    }

    fn finish(
        mut self,
        source: &str,
        place: impl Fn(&str) -> String,
        apps: &[ImportedApp],
    ) -> ImportedScenario {
        if !self.has_link {
            self.notes.push(format!(
                "mm-link: none was given; {UNLIMITED} stands for no limit"
            ));
        }
        for down in [true, false] {
            if let LinkRate::Opportunities(config) = &mut self.ways.of_mut(down).rate {
                config.file = place(&config.file);
            }
        }
        let draft = Draft {
            name: "mahimahi",
            source,
            duration: USUAL_DURATION,
            seed: 1,
            ends: ["server", "client"],
            ways: self.ways,
            packet: PACKET,
            notes: self.notes,
        };
        draft.finish(apps)
    }
}

/// Packets, bytes, and the names of all other options.
type Limits<'a> = (Option<u64>, Option<u64>, Vec<&'a str>);

fn both(word: &Word) -> ImportError {
    word.wrong(
        "mm-onoff stands in one direction with mm-loss or another mm-onoff",
        "a link here has one kind of loss for each direction; keep one",
    )
}

/// `packets=100, bytes=3000`, and the names of a queue's other options.
fn limits<'a>(word: &Word, text: &'a str) -> Result<Limits<'a>, ImportError> {
    let expected = "NAME=NUMBER, such as packets=100";
    let (mut packets, mut bytes, mut others) = (None, None, vec![]);
    for argument in text.split(',') {
        let (name, value) = argument
            .split_once('=')
            .ok_or_else(|| word.unknown(expected))?;
        let value: u64 = value.trim().parse().map_err(|_| word.unknown(expected))?;
        match name.trim() {
            "packets" => packets = Some(value),
            "bytes" => bytes = Some(value),
            other @ ("target" | "interval" | "qdelay_ref" | "max_burst") => others.push(other),
            _ => {
                return Err(
                    word.unknown("packets, bytes, target, interval, qdelay_ref or max_burst")
                );
            }
        }
    }
    Ok((packets, bytes, others))
}
