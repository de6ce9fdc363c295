//! Parses packetdrill scripts.

use super::script::{Action, Call, Event, Moment, Options, Packet, Script};

/// Error text for other protocols.
pub(super) const OTHER: &str = ", which is not TCP";

/// Parses a script.
///
/// # Errors
/// With the line that cannot be parsed.
pub(super) fn parse(text: &str) -> Result<Script, String> {
    let mut reader = Reader { text, at: 0 };
    let mut script = Script::default();
    loop {
        reader.skip_blank();
        let line = reader.line();
        let found = reader
            .statement(&mut script)
            .map_err(|why| format!("line {line}: {why}"))?;
        match found {
            Some((moment, action)) => script.events.push(Event {
                line,
                moment,
                action,
            }),
            None if reader.rest().is_empty() => return Ok(script),
            None => {}
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    fn take(&mut self, len: usize) -> &'a str {
        let taken = &self.rest()[..len];
        self.at += len;
        taken
    }

    /// Reads up to and including `end`.
    fn take_to(&mut self, end: &str) -> Result<&'a str, String> {
        let found = self.rest().find(end);
        let len = found.ok_or_else(|| format!("{end} is missing"))?;
        let taken = self.take(len);
        self.at += end.len();
        Ok(taken)
    }

    fn take_line(&mut self) -> &'a str {
        let len = self.rest().find('\n').unwrap_or(self.rest().len());
        let line = self.take(len);
        line.split("//").next().unwrap_or_default().trim()
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let bare = rest.trim_start();
            self.at += rest.len() - bare.len();
            if bare.starts_with("//") || bare.starts_with('#') {
                self.at += bare.find('\n').unwrap_or(bare.len());
            } else if bare.starts_with("/*") {
                self.at += bare.find("*/").map_or(bare.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    fn statement(&mut self, script: &mut Script) -> Result<Option<(Moment, Action)>, String> {
        if self.rest().is_empty() {
            return Ok(None);
        }
        if self.rest().starts_with("--") {
            let line = self.take_line();
            let (name, value) = line[2..].split_once('=').unwrap_or((&line[2..], ""));
            script
                .options
                .push((name.trim().to_owned(), value.trim().to_owned()));
            return Ok(None);
        }
        let moment = self.moment()?;
        self.skip_blank();
        let rest = self.rest();
        let action = if rest.starts_with('`') {
            self.at += 1;
            Action::Command(self.take_to("`")?.to_owned())
        } else if rest.starts_with("%{") {
            self.at += 2;
            Action::Code(self.take_to("}%")?.to_owned())
        } else if rest.starts_with('<') {
            self.at += 1;
            Action::Arrives(packet(self.take_line())?)
        } else if rest.starts_with('>') {
            self.at += 1;
            Action::Leaves(packet(self.take_line())?)
        } else {
            Action::Call(self.call()?)
        };
        Ok(Some((moment, action)))
    }

    /// A time; if missing, that of the previous event.
    fn moment(&mut self) -> Result<Moment, String> {
        if self.rest().starts_with('*') {
            self.at += 1;
            return Ok(Moment::Any);
        }
        let is_relative = self.rest().starts_with('+');
        self.at += usize::from(is_relative);
        if !self
            .rest()
            .starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return Ok(Moment::After(0, 0));
        }
        let from = self.micros()?;
        let here = self.at;
        let bare = self.rest().trim_start_matches([' ', '\t']);
        let mut to = from;
        self.at = self.text.len() - bare.len();
        if bare.starts_with("...") {
            // The duration for which a call blocks; here no call does.
            self.at += 3;
            self.skip_blank();
            self.at += usize::from(self.rest().starts_with('+'));
            self.micros()?;
        } else if bare.starts_with('~') {
            self.at += 1;
            self.skip_blank();
            self.at += usize::from(self.rest().starts_with('+'));
            to = self.micros()?;
        } else {
            self.at = here;
        }
        Ok(match is_relative {
            true => Moment::After(from, to),
            false => Moment::At(from, to),
        })
    }

    /// Reads seconds, as microseconds.
    fn micros(&mut self) -> Result<u64, String> {
        let rest = self.rest();
        let len = rest
            .char_indices()
            .find(|(at, c)| !c.is_ascii_digit() && (*c != '.' || rest[*at..].starts_with("...")))
            .map_or(rest.len(), |(at, _)| at);
        let text = self.take(len);
        let seconds: f64 = text.parse().map_err(|_| format!("{text} is no time"))?;
        Ok((seconds * 1e6).round() as u64)
    }

    fn call(&mut self) -> Result<Call, String> {
        let rest = self.rest();
        let open = rest
            .find('(')
            .ok_or("a call, a packet or a command is missing")?;
        let name = rest[..open].trim().to_owned();
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("{name} is neither a call nor a packet"));
        }
        self.at += open + 1;
        let mut arguments = vec![String::new()];
        let mut depth = 0;
        loop {
            let rest = self.rest();
            let c = rest.chars().next().ok_or("a call does not end")?;
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            self.at += c.len_utf8();
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => break,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            if c == ',' && depth == 0 {
                arguments.push(String::new());
            } else if let Some(last) = arguments.last_mut() {
                last.push(c);
            }
        }
        for argument in &mut arguments {
            *argument = argument.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        let line = self.take_line();
        let result = line.trim_start_matches('=').trim();
        let word = result.split_whitespace().next().unwrap_or_default();
        let result = match word.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        Ok(Call {
            name,
            arguments,
            result: result.unwrap_or(0),
        })
    }
}

fn packet(line: &str) -> Result<Packet, String> {
    let (head, options) = match line.split_once('<') {
        Some((head, rest)) => {
            let inner = rest.split('>').next().unwrap_or_default();
            (head, Some(inner))
        }
        None => (line, None),
    };
    let mut packet = Packet {
        options: match options {
            Some("...") => None,
            Some(list) => Some(self::options(list)?),
            None => Some(Options::default()),
        },
        ..Packet::default()
    };
    let mut words = head.split_whitespace().peekable();
    if let Some(word) = words.next_if(|word| word.starts_with('[')) {
        packet.ecn = Some(word.trim_matches(['[', ']']).to_owned());
    }
    let protocol = words.peek().copied().unwrap_or_default();
    if matches!(protocol, "icmp" | "udp" | "ipv4" | "ipv6" | "mpls" | "gre") {
        return Err(format!("{protocol}{OTHER}"));
    }
    packet.flags = words.next().ok_or("a packet is missing")?.to_owned();
    if !packet
        .flags
        .chars()
        .all(|c| "SFRPUEWAC.-0123456789".contains(c))
    {
        return Err(format!("{} is no packet of TCP", packet.flags));
    }
    let numbers = words.next().ok_or("sequence numbers are missing")?;
    let wrong = || format!("{numbers} are no sequence numbers");
    let (range, _) = numbers.split_once('(').ok_or_else(wrong)?;
    let (from, to) = range.split_once(':').ok_or_else(wrong)?;
    packet.seq = from.parse().map_err(|_| wrong())?;
    packet.end = to.parse().map_err(|_| wrong())?;
    if packet.end < packet.seq {
        return Err(wrong());
    }
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|number| number.parse().ok());
            number.ok_or_else(|| format!("{word} of what?"))
        };
        match word {
            "ack" => packet.ack = Some(number()?),
            "win" => packet.window = Some(number()?),
            "urg" => {
                number()?;
                packet.flags.push('U');
            }
            _ => return Err(format!("{word} is not known of packets")),
        }
    }
    Ok(packet)
}

fn options(list: &str) -> Result<Options, String> {
    let mut options = Options::default();
    for one in list.split(',') {
        let words: Vec<&str> = one.split_whitespace().collect();
        let number = |at: usize| {
            let number = words.get(at).and_then(|number| number.parse().ok());
            number.ok_or_else(|| format!("{one} is no option"))
        };
        match words.first().copied().unwrap_or_default() {
            "" | "nop" | "eol" => {}
            "mss" => options.mss = Some(number(1)?),
            "sackOK" => options.sack_permitted = true,
            "wscale" => options.scale = Some(number(1)? as u32),
            "TS" => options.stamp = Some((number(2)?, number(4)?)),
            "sack" => {
                for block in &words[1..] {
                    let ends = block
                        .split_once(':')
                        .and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
                    options
                        .sack
                        .push(ends.ok_or_else(|| format!("{block} is no block"))?);
                }
            }
            other => options.other = Some(other.to_owned()),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line() {
        let script = parse(
            "// A comment.\n--tolerance_usecs=10000\n`defaults\n`\n 0 socket(..., SOCK_STREAM) = 3\n\
             +.1 < S. 0:0(0) ack 1 win 32792 <mss 1000,sackOK,nop,wscale 7>\n\
             +.3~+.310 > FP. 1:1001(1000) ack 1 <...> // late\n+0...0.200 connect(3, ..., {a, b}) = -1 EINPROGRESS (x)\n\
             +.1 < . 1:1(0) ack 1 win 257 <nop,TS val 7 ecr 9,sack 3:5 8:9>\n* %{ assert tcpi_snd_cwnd == 10 }%\n",
        )
        .unwrap();
        assert_eq!(
            script.options,
            [("tolerance_usecs".to_owned(), "10000".to_owned())]
        );
        assert_eq!(script.events.len(), 7);
        let lines: Vec<usize> = script.events.iter().map(|event| event.line).collect();
        assert_eq!(lines, [3, 5, 6, 7, 8, 9, 10]);
        let Action::Arrives(syn) = &script.events[2].action else {
            panic!("{:?}", script.events[2]);
        };
        assert_eq!(script.events[2].moment, Moment::After(100_000, 100_000));
        let options = syn.options.as_ref().unwrap();
        assert!(syn.has('S') && syn.ack == Some(1) && syn.window == Some(32_792));
        assert_eq!((options.mss, options.scale), (Some(1_000), Some(7)));
        assert_eq!(script.events[3].moment, Moment::After(300_000, 310_000));
        let Action::Leaves(end) = &script.events[3].action else {
            panic!("{:?}", script.events[3]);
        };
        assert!(end.options.is_none() && end.len() == 1_000);
        let Action::Call(call) = &script.events[4].action else {
            panic!("{:?}", script.events[4]);
        };
        assert_eq!((call.arguments.len(), call.result), (3, -1));
        let Action::Arrives(ack) = &script.events[5].action else {
            panic!("{:?}", script.events[5]);
        };
        let options = ack.options.as_ref().unwrap();
        assert_eq!(options.stamp, Some((7, 9)));
        assert_eq!(options.sack, [(3, 5), (8, 9)]);
        assert_eq!(script.events[6].moment, Moment::Any);
    }

    #[test]
    fn unreadable_statements_are_named_with_their_line() {
        for (text, wrong) in [
            ("\n+0 > . 1:x(0) ack 1", "line 2: 1:x(0)"),
            ("+0 < icmp unreachable", "line 1: icmp, which"),
            ("+0 write(4, ...", "line 1: a call does not end"),
            ("`a", "line 1: ` is missing"),
            ("+0 hello", "line 1: a call"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(wrong), "{why}");
        }
    }
}
