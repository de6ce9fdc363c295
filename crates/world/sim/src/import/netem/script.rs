//! Scripts that contain `tc`, and the output of `tc qdisc show` and `tc class show`: each interface's settings over
//! time.

use std::collections::BTreeMap;

use airlane_base::Duration;

use super::tree::{Device, Handle, Verb, handle};
use crate::import::words::{Command, ImportError, Joint, Word, Words, commands};

pub(super) const EXPECTED: &str = "the output of `tc qdisc show`, `tc qdisc add dev X root netem ...`, or what \
     stands behind `netem`";
/// Words that netem's options begin with.
const OPTIONS: [&str; 12] = [
    "netem",
    "tbf",
    "limit",
    "delay",
    "latency",
    "loss",
    "drop",
    "corrupt",
    "duplicate",
    "reorder",
    "rate",
    "slot",
];
/// Shell words that may precede a command.
const SHELL: [&str; 18] = [
    "do", "then", "else", "{", "(", "!", "if", "while", "until", "elif", "time", "nohup", "exec",
    "command", "env", "doas", "busybox", "-",
];
/// Programs that shape traffic in their own way.
const SHAPERS: [&str; 8] = [
    "tcset",
    "tcdel",
    "comcast",
    "pumba",
    "wondershaper",
    "trickle",
    "toxiproxy-cli",
    "blade",
];
/// Limit on the steps of a script.
const MOST_STEPS: usize = 1_000;

/// Interfaces by name.
pub(super) type Devices = BTreeMap<String, Device>;

/// The result of a script.
#[derive(Default)]
pub(super) struct Script {
    /// The settings from each time on, if time passes; the last ones are those at the end.
    pub(super) states: Vec<(Duration, Devices)>,
    devices: Devices,
    now: Duration,
    pub(super) notes: Vec<String>,
    /// The first command that prints settings, and the first unknown command.
    prints: Option<ImportError>,
    unknown: Option<ImportError>,
    variables: BTreeMap<String, String>,
    /// Whether there was output of tc, and whether there were commands of tc.
    shown: bool,
    commands: bool,
    /// Classes in output that names no interface.
    stray: Vec<Vec<Word>>,
}

impl Script {
    pub(super) fn read(text: &str) -> Result<Self, ImportError> {
        let mut script = Self::default();
        let all = commands(text)?;
        script.run(&all, "")?;
        for words in std::mem::take(&mut script.stray) {
            script.stray_class(&words)?;
        }
        let devices = std::mem::take(&mut script.devices);
        if !script.shown {
            // An idle qdisc in a script was meant to do something; output of tc lists every interface anyway.
            let idle = devices.iter().filter(|(_, device)| device.is_idle());
            for name in idle.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
                script.note(format!("{name}: its qdiscs shape nothing; left out"));
            }
        }
        script.states.push((script.now, devices));
        Ok(script)
    }

    /// A more specific error than that nothing is shaped, if there is one.
    pub(super) fn complaint(&self) -> Option<ImportError> {
        let unknown = self
            .unknown
            .as_ref()
            .filter(|_| !self.commands && !self.shown);
        unknown.or(self.prints.as_ref()).cloned()
    }

    /// Whether there was nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        !(self.shown || self.commands)
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn run(&mut self, all: &[Command], place: &str) -> Result<(), ImportError> {
        let mut went_well = true;
        for (i, command) in all.iter().enumerate() {
            let skipped = match command.joint {
                Joint::Next => false,
                Joint::And => !went_well,
                Joint::Or => went_well,
                Joint::Pipe => true,
            };
            if skipped {
                continue;
            }
            let or_else = all.get(i + 1).is_some_and(|next| next.joint == Joint::Or);
            let words: Vec<Word> = command.words.iter().map(|word| self.valued(word)).collect();
            went_well = self.command(&words, place, or_else, all.len() == 1)?;
        }
        Ok(())
    }

    /// Replaces the variables that the script has set.
    fn valued(&self, word: &Word) -> Word {
        let (mut text, mut rest) = (String::new(), word.text.as_str());
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let (name, usual, len) = if let Some(inner) = rest[1..].strip_prefix('{') {
                let Some(end) = inner.find('}') else { break };
                let (name, usual) = match inner[..end].split_once(":-") {
                    Some((name, usual)) => (name, Some(usual)),
                    None => (&inner[..end], None),
                };
                (name, usual, end + 3)
            } else {
                let name = rest[1..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = name.into_iter().next().unwrap_or("");
                (name, None, name.len() + 1)
            };
            match self.variables.get(name).map(String::as_str).or(usual) {
                Some(value) if text.len() + value.len() < 1_000 => text.push_str(value),
                _ => text.push_str(&rest[..len]),
            }
            rest = &rest[len..];
        }
        text.push_str(rest);
        Word {
            text,
            ..word.clone()
        }
    }

    /// Carries out a command. Returns whether it succeeded.
    fn command(
        &mut self,
        all: &[Word],
        place: &str,
        or_else: bool,
        alone: bool,
    ) -> Result<bool, ImportError> {
        let (mut words, mut place) = (Words::new(all), place.to_owned());
        while let Some(word) = words.peek() {
            let program = word.text.rsplit('/').next().unwrap_or("");
            let assigned = word.text.split_once('=').filter(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            if let Some((name, value)) = assigned {
                if !value.contains(['$', '`']) && self.variables.len() < MOST_STEPS {
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
                words.next();
                continue;
            }
            match program {
                "export" | "local" | "readonly" | "sudo" | "$SUDO" => {
                    words.next();
                    options(&mut words, &["-u", "-g"]);
                }
                program if SHELL.contains(&program) => {
                    words.next();
                }
                "docker" | "podman" | "nerdctl" | "kubectl" => {
                    words.next();
                    words.skip("compose");
                    if !words.skip("exec") {
                        self.note(format!("{program}: is not run"));
                        return Ok(true);
                    }
                    options(
                        &mut words,
                        &["-u", "-e", "-w", "-n", "-c", "--user", "--env"],
                    );
                    place = words.expect("the name of a container")?.text.clone();
                    options(&mut words, &["-c"]);
                }
                "ip" => {
                    words.next();
                    if !(words.skip("netns") && words.skip("exec")) {
                        self.note("ip: is not run".to_owned());
                        return Ok(true);
                    }
                    place = words.expect("the name of a namespace")?.text.clone();
                }
                "nsenter" => {
                    words.next();
                    options(&mut words, &["-t", "--target"]);
                }
                "ssh" => {
                    words.next();
                    options(&mut words, &["-i", "-p", "-o", "-l"]);
                    place = words
                        .next()
                        .map_or_else(String::new, |word| word.text.clone());
                    if let Some(word) = words.peek().filter(|word| word.text.contains(' ')) {
                        return self.inner(word, &place);
                    }
                }
                "sh" | "bash" | "ash" | "dash" => {
                    words.next();
                    let text = words.skip("-c").then(|| words.next()).flatten();
                    return text.map_or(Ok(true), |word| self.inner(word, &place));
                }
                _ => break,
            }
        }
        let Some(word) = words.peek() else {
            return Ok(true);
        };
        let program = word.text.rsplit('/').next().unwrap_or("");
        match program {
            "tc" => {
                words.next();
                self.commands = true;
                while let Some(option) = words.peek().filter(|word| word.text.starts_with('-')) {
                    words.next();
                    if matches!(option.text.as_str(), "-n" | "-netns") {
                        place = words.expect("the name of a namespace")?.text.clone();
                    }
                }
                self.tc(&mut words, &place, or_else)
            }
            "sleep" => {
                words.next();
                self.sleep(&mut words)?;
                Ok(true)
            }
            "qdisc" | "class" | "filter" => {
                let verbs = [
                    "add", "replace", "change", "del", "delete", "show", "list", "ls",
                ];
                let verb = all
                    .get(1)
                    .is_some_and(|word| verbs.contains(&word.text.as_str()));
                if verb {
                    self.commands = true;
                    return self.tc(&mut words, &place, or_else);
                }
                self.shown = true;
                self.output(&mut words, all)?;
                Ok(true)
            }
            // `tc -s` has counters below each line.
            _ if self.shown => Ok(true),
            program if SHAPERS.contains(&program) => Err(word.wrong(
                format!("{program} is another program, and its rules are not known here"),
                "give the tc commands that it prints, as those of `tcset --tc-command`",
            )),
            program if OPTIONS.contains(&program) => {
                let mut name = word.clone();
                if word.text == "tbf" || word.text == "netem" {
                    words.next();
                } else {
                    "netem".clone_into(&mut name.text);
                }
                let device = self.devices.entry(String::new()).or_default();
                let refused = device.qdisc(Verb::Replace, None, None, &name, words)?;
                Ok(refused.is_ok())
            }
            _ => {
                let expected =
                    format!("expected {EXPECTED}; give the tc commands that tcset prints");
                let error = word.wrong(format!("\"{}\" is not known here", word.text), expected);
                self.unknown.get_or_insert(error);
                let loops = matches!(program, "for" | "done" | "fi" | "}" | "echo" | "set" | "#");
                match program {
                    "for" => self.note("for: what it repeats is read once".to_owned()),
                    _ if loops || alone => {}
                    _ => self.note(format!("{}: is not run", word.text)),
                }
                Ok(true)
            }
        }
    }

    /// Runs a command inside a command.
    fn inner(&mut self, word: &Word, place: &str) -> Result<bool, ImportError> {
        let at = |error: ImportError| ImportError {
            line: word.line,
            column: word.column,
            ..error
        };
        let mut all = commands(&word.text).map_err(at)?;
        for inner in all.iter_mut().flat_map(|command| &mut command.words) {
            (inner.line, inner.column) = (word.line, word.column);
        }
        // Each nested text is shorter than the one around it, so this ends.
        self.run(&all, place)?;
        Ok(true)
    }

    fn sleep(&mut self, words: &mut Words<'_>) -> Result<(), ImportError> {
        let word = words.expect("a time, such as 30")?;
        let end = word.text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, unit) = word.text.split_at(end.unwrap_or(word.text.len()));
        let factor = match unit {
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => f64::NAN,
        };
        let seconds = number.parse::<f64>().unwrap_or(f64::NAN) * factor;
        if !(0.0..1e7).contains(&seconds) {
            self.note(format!(
                "sleep {}: nobody knows how long; left out",
                word.text
            ));
            return Ok(());
        }
        if self.states.len() >= MOST_STEPS {
            return Err(word.wrong(
                "this script has too many steps",
                format!("at most {MOST_STEPS}"),
            ));
        }
        self.states.push((self.now, self.devices.clone()));
        self.now = self.now + Duration::from_secs_f64(seconds);
        Ok(())
    }

    /// The arguments of `tc`.
    fn tc(
        &mut self,
        words: &mut Words<'_>,
        place: &str,
        or_else: bool,
    ) -> Result<bool, ImportError> {
        let what = words.expect("\"qdisc\" or \"class\"")?;
        if matches!(
            what.text.as_str(),
            "chain" | "action" | "actions" | "monitor" | "exec"
        ) {
            self.note(format!("tc {}: left out", what.text));
            return Ok(true);
        }
        if !matches!(what.text.as_str(), "qdisc" | "class" | "filter") {
            return Err(what.unknown("\"qdisc\" or \"class\""));
        }
        let word = words.expect("\"add\"")?;
        let verb = match word.text.as_str() {
            "add" => Some(Verb::Add),
            "replace" => Some(Verb::Replace),
            "change" => Some(Verb::Change),
            "del" | "delete" => None,
            "show" | "list" | "ls" | "get" => {
                self.prints.get_or_insert(word.wrong(
                    format!(
                        "\"{}\" prints what is shaped, and shapes nothing",
                        word.text
                    ),
                    "give its output: `tc qdisc show | airlane scenario from-netem -`",
                ));
                return Ok(true);
            }
            _ => return Err(word.unknown("\"add\", \"replace\", \"change\" or \"del\"")),
        };
        let mut at = At::read(words, what.text == "filter")?;
        let name = match place {
            "" => at.device.clone(),
            place => format!("{place}/{}", at.device),
        };
        if what.text == "filter" {
            return Ok(self.filter(words, &mut at, &name, verb.is_some()));
        }
        let major = at.own.map(|own| own[0]);
        let Some(verb) = verb else {
            let device = self.devices.entry(name).or_default();
            return Ok(match (what.text.as_str(), at.class.or(at.own)) {
                ("class", Some(own)) => device.delete_class(own),
                ("class", None) => false,
                _ => device.delete(at.parent, major),
            });
        };
        let kind = match at.kind.take() {
            Some(kind) => kind,
            None => words.expect("a qdisc, such as \"netem\"")?.clone(),
        };
        if matches!(kind.text.as_str(), "ingress" | "clsact") {
            return Ok(true);
        }
        let options = words.clone();
        self.name_left_out(&kind.text, options.clone());
        let device = self.devices.entry(name.clone()).or_default();
        let mut done = match what.text.as_str() {
            "class" => {
                let Some(own) = at.class.or(at.own) else {
                    return Err(what.wrong("this class has no name", "write classid 1:10"));
                };
                let parent = at.parent.unwrap_or([own[0], 0]);
                device.class(verb, parent, own, &kind, options.clone())?
            }
            _ => device.qdisc(verb, at.parent, major, &kind, options.clone())?,
        };
        // A script may change what another one has added; the change then says what there is.
        if let (Err(why), Verb::Change, "qdisc", false) = (&done, verb, what.text.as_str(), or_else)
            && why.contains("no qdisc")
        {
            let device = self.devices.entry(name).or_default();
            done = device.qdisc(Verb::Add, at.parent, major, &kind, options)?;
            self.note("change: nothing was there before; it is read as add".to_owned());
        }
        if let (Err(why), false) = (&done, or_else) {
            let line = word.line;
            self.note(format!(
                "line {line}: {} fails, as it does in tc: {why}",
                word.text
            ));
        }
        Ok(done.is_ok())
    }

    /// Notes options that only matter between classes, and so have no effect on a link made of one of them.
    fn name_left_out(&mut self, kind: &str, mut options: Words<'_>) {
        let said = match kind {
            "htb" => &["default", "r2q", "prio", "quantum", "burst", "cburst"][..],
            "hfsc" => &["default"],
            "cbq" => &["prio", "allot", "weight", "maxburst", "avpkt"],
            "prio" | "multiq" => &["bands", "priomap"],
            "drr" | "qfq" | "ets" => &["quantum", "weight", "maxpkt", "priomap"],
            _ => &[],
        };
        while let Some(word) = options.next() {
            if said.contains(&word.text.as_str()) {
                self.note(format!(
                    "{kind}: {} is left out; every flow of the file takes the one way that stands here",
                    word.text
                ));
            }
        }
    }

    /// Records a filter to a class. Returns whether it was understood; it may match all packets or some.
    fn filter(&mut self, words: &mut Words<'_>, at: &mut At, device: &str, adds: bool) -> bool {
        let (mut all, mut class, mut some) = (true, at.class, false);
        let matchall = at.kind.as_ref().is_some_and(|kind| kind.text == "matchall");
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "flowid" | "classid" => class = words.next().and_then(|word| handle(word).ok()),
                "match" => {
                    let mut next = || words.next().map_or("", |word| word.text.as_str());
                    let (of, first, second) = (next(), next(), next());
                    let any =
                        matches!(second, "0.0.0.0/0" | "::/0") || (first == "0" && second == "0");
                    some = true;
                    all &= any && matches!(of, "ip" | "ip6" | "u32" | "u16" | "u8");
                }
                "police" | "mirred" => self.note(format!(
                    "filter: {} is left out; what comes from elsewhere is for --reverse-dev",
                    word.text
                )),
                "matchall" => some = true,
                _ => {}
            }
        }
        if let (Some(class), true) = (
            class,
            adds && at.parent.is_none_or(|parent| parent[0] != 0xffff),
        ) {
            let everything = Some(class).filter(|_| all && (some || matchall));
            if everything.is_none() {
                self.note(
                    "filter: what it matches is left out; every flow of the file takes the one way that stands here"
                        .to_owned(),
                );
            }
            self.devices
                .entry(device.to_owned())
                .or_default()
                .filter(everything);
        }
        true
    }

    /// A line of the output of `tc qdisc show` or `tc class show`.
    fn output(&mut self, words: &mut Words<'_>, all: &[Word]) -> Result<(), ImportError> {
        let what = words.expect("\"qdisc\"")?;
        if what.text == "filter" {
            return Ok(());
        }
        let kind = words.expect("a qdisc, such as \"netem\"")?.clone();
        let own = handle(words.expect("its handle, such as \"8001:\"")?)?;
        let at = At::read_further(words, None)?;
        if what.text == "class" {
            if !matches!(kind.text.as_str(), "htb" | "hfsc" | "cbq") {
                return Ok(());
            }
            if at.device.is_empty() {
                self.stray.push(all.to_vec());
                return Ok(());
            }
            return self.shown_class(&at.device, &at, own, &kind, words.clone());
        }
        // A default qdisc has no handle.
        let major = Some(own[0]).filter(|major| *major > 0);
        let device = self.devices.entry(at.device).or_default();
        let refused = device.qdisc(Verb::Is, at.parent, major, &kind, words.clone())?;
        refused.map_err(|why| kind.wrong(why, "give the output of one `tc qdisc show`"))
    }

    fn shown_class(
        &mut self,
        device: &str,
        at: &At,
        own: Handle,
        kind: &Word,
        options: Words<'_>,
    ) -> Result<(), ImportError> {
        let device = self.devices.entry(device.to_owned()).or_default();
        let parent = at.parent.unwrap_or([own[0], 0]);
        let refused = device.class(Verb::Is, parent, own, kind, options)?;
        refused.map_err(|why| kind.wrong(why, "give the output of one `tc class show`"))
    }

    /// `tc class show` names no interface: the class belongs to the one that has its qdisc.
    fn stray_class(&mut self, all: &[Word]) -> Result<(), ImportError> {
        let mut words = Words::new(all);
        words.next();
        let kind = words.expect("a class")?.clone();
        let own = handle(words.expect("its handle")?)?;
        let at = At::read_further(&mut words, None)?;
        let has = |device: &&String| self.devices[*device].has(own[0]);
        let found: Vec<String> = self.devices.keys().filter(has).cloned().collect();
        let device = match found.as_slice() {
            [] => String::new(),
            [device] => device.clone(),
            several => {
                let names = several.join(", ");
                return Err(kind.wrong(
                    format!("{names} have a qdisc for this class"),
                    "give the classes of one interface, with its `tc qdisc show dev X`",
                ));
            }
        };
        self.shown_class(&device, &at, own, &kind, words)
    }
}

/// Skips options, some of which have a value.
fn options(words: &mut Words<'_>, valued: &[&str]) {
    while let Some(word) = words.peek().filter(|word| word.text.starts_with('-')) {
        words.next();
        if valued.contains(&word.text.as_str()) {
            words.next();
        }
    }
}

/// Where a qdisc or class is attached.
#[derive(Default)]
struct At {
    device: String,
    parent: Option<Handle>,
    own: Option<Handle>,
    class: Option<Handle>,
    /// A kind that precedes part of it, as in `add dev x root netem`.
    kind: Option<Word>,
}

impl At {
    /// Reads a command up to its kind.
    fn read(words: &mut Words<'_>, filter: bool) -> Result<Self, ImportError> {
        Self::read_further(words, Some(filter))
    }

    /// Reads the words before the options. For commands this includes the kind; the flag says whether it is a filter.
    fn read_further(words: &mut Words<'_>, command: Option<bool>) -> Result<Self, ImportError> {
        let mut at = Self::default();
        while let Some(word) = words.peek() {
            match word.text.as_str() {
                "root" => {
                    words.next();
                }
                "dev" => {
                    words.next();
                    at.device.clone_from(&words.expect("an interface")?.text);
                }
                "parent" => {
                    words.next();
                    let word = words.expect("a handle, such as \"1:1\"")?;
                    at.parent = match word.text.as_str() {
                        "root" | "none" => None,
                        _ => Some(handle(word)?),
                    };
                }
                "handle" if at.kind.is_none() => {
                    words.next();
                    let word = words.expect("a handle, such as \"1:\"")?;
                    // Handles of filters have another form.
                    at.own = handle(word).ok();
                }
                "classid" => {
                    words.next();
                    at.class = Some(handle(words.expect("a handle, such as \"1:10\"")?)?);
                }
                // `prio` is also the name of a qdisc.
                "protocol" | "prio" | "pref" if command != Some(false) => {
                    words.next();
                    words.expect("a number")?;
                }
                "refcnt" | "leaf" | "ingress_block" => {
                    words.next();
                    words.expect("a number")?;
                }
                "offloaded" | "ingress" | "egress" => {
                    words.next();
                }
                _ if command.is_some() && at.kind.is_none() => {
                    at.kind = words.next().cloned();
                    break;
                }
                _ => break,
            }
        }
        Ok(at)
    }
}
