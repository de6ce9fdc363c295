//! Runs the scripts of `tests/scripts`: timed segments in, expected segments out, in the spirit of
//! packetdrill (Cardwell et al. 2013).
//!
//! A script drives one end. `#` begins a comment; a number at the beginning of a line is the time, in
//! milliseconds, and applies until the next one.
//!
//! ```text
//! tcp KEY = VALUE        a setting, as in a scenario; the profile is `ns2-1999` if none is named; comes first
//! phase MS               the offset of the host's clock ticks; comes first
//! write BYTES | endless  the application writes bytes; full segments are 100 bytes long
//! < ack N [sack A-B ..]  an acknowledgment arrives; `ack N..M` is one after the other, `ack N x3` thrice;
//!                        A-B reports segments A to B
//!                        `echo`: it echoes a mark; `ts MS`: it echoes the timestamp of that time;
//!                        `dup N`: it reports segment N as a duplicate; `eln`: it reports that N was destroyed;
//!                        `win W`: it advertises W segments
//! < N ..                 data arrives: segment numbers, `3..6` is 3 4 5 6; `7!` is a retransmission,
//!                        `7*` was marked on its way, `7^` announces a cut window, `7@200` was sent at 200 ms,
//!                        `7.` is the FIN
//! < syn | syn-ack        the peer requests a connection, accepts one
//! < destroyed N ..       data arrives that a link has destroyed; < probe: the peer probes the window
//! > N ..                 these segments are sent, in this order; `7!` is a retransmission, `7^`
//!                        announces a cut window, `7.` is the FIN
//! > ack N [sack A-B ..] [echo] [ts MS] [eln] [win W]   this acknowledgment is sent; `win` unless it is the whole window
//! > probe | syn | syn-ack    a window probe is sent, a connection is requested, or accepted
//! close                  the application has written everything
//! unread | read          the application stops reading; it reads everything available
//! freeze | thaw          the path goes down, comes back
//! restart                a new connection on the same end
//! over never | closed | gave-up    why the connection is over
//! cwnd X | ssthresh N | rto MS | due MS | due never | acked BYTES | received BYTES | finished
//! timeouts N | fast-retransmits N | retransmissions N | cuts N | undone N | probes N | marked N | duplicates N | invalid N
//! ```
//!
//! Timers run by themselves. Everything that is sent has to be expected before time advances and before the next
//! input, so a script lists every segment. `due` is the next timer.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;

use airlane_base::{Duration, Instant};
use airlane_transport::tcp::{Ecn, Over, Timestamp};
use airlane_transport::{Ack, Data, Endpoint, Range, Segment, Tcp, TcpConfig};

const SEGMENT: u32 = 100;

type Outcome = Result<(), String>;

struct Script {
    config: TcpConfig,
    phase: Duration,
    end: Tcp,
    now: Instant,
    /// Whether the application reads what arrives.
    reads: bool,
    /// Segments that were sent and not expected yet.
    sent: VecDeque<String>,
}

#[test]
fn every_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut failures = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        if let Err(failure) = run(&text) {
            writeln!(failures, "{name}:{failure}").unwrap();
        }
    }
    assert!(!files.is_empty());
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn a_script_that_says_too_little_or_too_much_fails() {
    let why = |text: &str| run(text).unwrap_err();
    assert_eq!(
        why("write 300\n100 cwnd 1"),
        "2: at 0 ms, nobody expected: 0"
    );
    assert_eq!(why("write 300\n> 0 1"), "2: 1 did not leave at 0 ms");
    assert_eq!(why("write 300\n> 0!"), "2: 0 left in place of 0! at 0 ms");
    assert_eq!(
        why("write 300\n> 0\n< ack 1"),
        "3: at 0 ms, nobody expected: 1, 2"
    );
    assert_eq!(why("write 300\n> 0\ncwnd 2"), "3: cwnd is 1");
    assert_eq!(
        why("write 300\n> 0\n9000 due never"),
        "3: at 6000 ms, nobody expected: 0!"
    );
    assert!(why("tcp window = 0").contains("at least 1"));
    assert!(why("jump").contains("unknown"));
}

/// Runs a script; an error names the line.
fn run(text: &str) -> Outcome {
    let lines = text.lines().enumerate().map(|(at, line)| {
        let line = line.split('#').next().unwrap_or_default();
        (at + 1, line.split_whitespace().collect::<Vec<_>>())
    });
    let (settings, actions): (Vec<_>, Vec<_>) = lines
        .filter(|(_, words)| !words.is_empty())
        .partition(|(_, words)| matches!(words[0], "tcp" | "phase"));
    let mut options = String::new();
    let mut phase = Duration::ZERO;
    for (at, words) in settings {
        match words[0] {
            "tcp" => options += &(words[1..].join(" ") + "\n"),
            _ => phase = millis(words.get(1)).map_err(|why| format!("{at}: {why}"))?,
        }
    }
    if !options.contains("profile") {
        options += "profile = \"ns2-1999\"\n";
    }
    let config: TcpConfig = toml::from_str(&options).map_err(|error| format!("1: {error}"))?;
    let mut script = Script {
        end: Tcp::new(&config, SEGMENT, phase),
        config,
        phase,
        now: Instant::ORIGIN,
        reads: true,
        sent: VecDeque::new(),
    };
    let mut last = 1;
    for (at, words) in actions {
        last = at;
        script.line(&words).map_err(|why| format!("{at}: {why}"))?;
    }
    script.quiet().map_err(|why| format!("{last}: {why}"))
}

fn millis(word: Option<&&str>) -> Result<Duration, String> {
    let number = word.and_then(|word| word.parse().ok());
    number
        .map(Duration::from_millis)
        .ok_or_else(|| "a number of milliseconds is missing".to_owned())
}

/// The timestamp of a time in a script.
fn stamp(word: &str) -> Result<Timestamp, String> {
    Ok(Timestamp::of(Instant::ORIGIN + millis(Some(&word))?))
}

fn in_millis(at: Instant) -> u64 {
    at.saturating_since(Instant::ORIGIN).as_nanos() / 1_000_000
}

/// `3..6` is 3 to 6, `3` is 3.
fn numbers(word: &str) -> Result<std::ops::RangeInclusive<u64>, String> {
    let (from, to) = word.split_once("..").unwrap_or((word, word));
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) => Ok(from..=to),
        _ => Err(format!("{word} is no number")),
    }
}

impl Script {
    fn line(&mut self, words: &[&str]) -> Outcome {
        let mut words = words;
        if words[0].starts_with(|c: char| c.is_ascii_digit()) {
            self.pass_to(Instant::ORIGIN + millis(words.first())?)?;
            words = &words[1..];
        }
        let Some((what, rest)) = words.split_first() else {
            return Ok(());
        };
        let first = rest.first().copied().unwrap_or_default();
        match *what {
            ">" => return self.expect(rest),
            "<" => self.quiet().and_then(|()| self.arrive(rest))?,
            "write" => {
                self.quiet()?;
                self.end.write(first.parse().unwrap_or(u64::MAX));
            }
            "close" => {
                self.quiet()?;
                self.end.close();
            }
            "unread" => self.reads = false,
            "read" => _ = self.end.read(),
            "freeze" => self.end.freeze(self.now),
            "thaw" => self.end.thaw(self.now),
            "restart" => self.end.restart(&self.config, self.phase),
            _ => return self.check(what, first),
        }
        self.drain();
        Ok(())
    }

    /// Advances time and runs the timers that are due on the way.
    fn pass_to(&mut self, to: Instant) -> Outcome {
        if to < self.now {
            return Err("scripts do not go back".to_owned());
        }
        while let Some(due) = self.end.poll_timeout().filter(|due| *due <= to) {
            if due > self.now {
                self.quiet()?;
            }
            self.now = due;
            self.end.handle_timeout(due);
            self.drain();
            let next = self.end.poll_timeout();
            if next.is_some_and(|next| next <= due) {
                return Err("a timer is due again at once".to_owned());
            }
        }
        if to > self.now {
            self.quiet()?;
        }
        self.now = to;
        Ok(())
    }

    fn drain(&mut self) {
        if self.reads {
            self.end.read();
        }
        while let Some(segment) = self.end.poll_transmit(self.now) {
            self.sent.push_back(match segment {
                Segment::Data(data) => {
                    let again = if data.retransmission { "!" } else { "" };
                    let cut = if data.cut { "^" } else { "" };
                    let end = if data.len == 0 { "." } else { "" };
                    format!("{}{end}{again}{cut}", data.seq)
                }
                Segment::Ack(ack) => {
                    let mut text = format!("ack {}", ack.ack);
                    for (at, block) in ack.blocks.iter().enumerate() {
                        let sack = if at == 0 { " sack" } else { "" };
                        write!(text, "{sack} {}-{}", block.start, block.end - 1).unwrap();
                    }
                    if ack.echo {
                        text += " echo";
                    }
                    if let Some(stamp) = ack.stamp {
                        write!(text, " ts {}", stamp.number() / 1_000).unwrap();
                    }
                    if ack.eln {
                        text += " eln";
                    }
                    if u64::from(ack.window) != u64::from(self.config.window_of(SEGMENT)) {
                        write!(text, " win {}", ack.window).unwrap();
                    }
                    text
                }
                Segment::Syn { answers: false } => "syn".to_owned(),
                Segment::Syn { answers: true } => "syn-ack".to_owned(),
                Segment::Probe(_) => "probe".to_owned(),
            });
        }
    }

    /// Fails if something was sent that the script does not expect.
    fn quiet(&self) -> Outcome {
        if self.sent.is_empty() {
            return Ok(());
        }
        let all: Vec<&str> = self.sent.iter().map(String::as_str).collect();
        Err(format!(
            "at {} ms, nobody expected: {}",
            in_millis(self.now),
            all.join(", ")
        ))
    }

    fn expect(&mut self, words: &[&str]) -> Outcome {
        let is_whole = matches!(words.first(), Some(&"ack" | &"probe" | &"syn" | &"syn-ack"));
        let expected: Vec<String> = if is_whole {
            vec![words.join(" ")]
        } else {
            let mut all = vec![];
            for word in words {
                let bare = word.trim_end_matches(['!', '^', '.']);
                let again = &word[bare.len()..];
                for number in numbers(bare)? {
                    all.push(format!("{number}{again}"));
                }
            }
            all
        };
        let now = in_millis(self.now);
        for one in expected {
            match self.sent.pop_front() {
                None => return Err(format!("{one} did not leave at {now} ms")),
                Some(sent) if sent != one => {
                    return Err(format!("{sent} left in place of {one} at {now} ms"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn arrive(&mut self, words: &[&str]) -> Outcome {
        let whole = match words {
            ["probe"] => Some(Segment::Probe(0)),
            ["syn"] => Some(Segment::Syn { answers: false }),
            ["syn-ack"] => Some(Segment::Syn { answers: true }),
            _ => None,
        };
        if let Some(segment) = whole {
            self.end.handle_segment(self.now, segment);
            return Ok(());
        }
        let (words, destroyed) = match words.split_first() {
            Some((&"destroyed", rest)) => (rest, true),
            _ => (words, false),
        };
        let Some((&"ack", rest)) = words.split_first() else {
            for word in words {
                let (word, left) = match word.split_once('@') {
                    Some((word, left)) => (word, Some(stamp(left)?)),
                    None => (*word, None),
                };
                for seq in numbers(word.trim_end_matches(['!', '*', '^', '.']))? {
                    let data = Data {
                        seq,
                        len: if word.ends_with('.') { 0 } else { SEGMENT },
                        retransmission: word.ends_with('!'),
                        ecn: match word.ends_with('*') {
                            true => Ecn::Marked,
                            false => Ecn::NotCapable,
                        },
                        cut: word.ends_with('^'),
                        stamp: left,
                    };
                    let segment = Segment::Data(data);
                    if destroyed {
                        self.end.handle_destroyed(&segment);
                    } else {
                        self.end.handle_segment(self.now, segment);
                    }
                    self.drain();
                }
            }
            return Ok(());
        };
        let (word, rest) = rest.split_first().ok_or("which acknowledgment?")?;
        let mut template = Ack {
            window: self.config.window,
            ..Ack::default()
        };
        let mut times = 1;
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            if let Some(number) = word.strip_prefix('x') {
                times = number.parse().map_err(|_| format!("{word}: how often?"))?;
            } else if *word == "echo" {
                template.echo = true;
            } else if *word == "ts" {
                template.stamp = Some(stamp(rest.next().unwrap_or(&""))?);
            } else if *word == "dup" {
                let (start, _) = numbers(rest.next().unwrap_or(&""))?.into_inner();
                let end = start + 1;
                template.blocks.push(Range { start, end });
            } else if *word == "eln" {
                template.eln = true;
            } else if *word == "win" {
                let window = rest.next().and_then(|word| word.parse().ok());
                template.window = window.ok_or("a window of how many?")?;
            } else if *word != "sack" {
                let (from, to) = word.split_once('-').ok_or("a block is A-B")?;
                let [start, last] = [from, to].map(|number| number.parse().unwrap_or(0));
                template.blocks.push(Range {
                    start,
                    end: last + 1,
                });
            }
        }
        for ack in numbers(word)? {
            for _ in 0..times {
                let segment = Segment::Ack(Ack { ack, ..template });
                self.end.handle_segment(self.now, segment);
                self.drain();
            }
        }
        Ok(())
    }

    fn check(&self, what: &str, expected: &str) -> Outcome {
        let (sender, stats) = (self.end.sender(), self.end.sender().stats());
        let is = match what {
            "cwnd" => {
                let wanted: f64 = expected.parse().map_err(|_| "cwnd of how much?")?;
                let close = (sender.cwnd() - wanted).abs() < 0.005;
                return match close {
                    true => Ok(()),
                    false => Err(format!("cwnd is {}", sender.cwnd())),
                };
            }
            "ssthresh" => sender.ssthresh().to_string(),
            "rto" => (sender.rto().as_nanos() / 1_000_000).to_string(),
            "due" => match self.end.poll_timeout() {
                Some(due) => in_millis(due).to_string(),
                None => "never".to_owned(),
            },
            "over" => match self.end.over(self.now) {
                None => "never",
                Some(Over::Closed) => "closed",
                Some(Over::GaveUp) => "gave-up",
            }
            .to_owned(),
            "acked" => self.end.acknowledged().to_string(),
            "received" => self.end.received().to_string(),
            "finished" => match self.end.is_acknowledged() {
                true => String::new(),
                false => "not yet".to_owned(),
            },
            "timeouts" => stats.timeouts.to_string(),
            "fast-retransmits" => stats.fast_retransmits.to_string(),
            "retransmissions" => stats.retransmissions.to_string(),
            "cuts" => stats.window_cuts.to_string(),
            "duplicates" => stats.duplicate_acks.to_string(),
            "marked" => stats.marked_cuts.to_string(),
            "probes" => stats.probes.to_string(),
            "undone" => stats.undone_cuts.to_string(),
            "invalid" => stats.invalid_acks.to_string(),
            _ => return Err(format!("{what} is unknown")),
        };
        match is == expected {
            true => Ok(()),
            false => Err(format!("{what} is {is}")),
        }
    }
}
