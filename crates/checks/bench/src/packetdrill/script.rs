//! A parsed packetdrill script (Cardwell et al. 2013), as far as its TCP scripts need.

/// The time of an event, microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Moment {
    /// Since the beginning of the script.
    At(u64, u64),
    /// After the previous event.
    After(u64, u64),
    /// At any time.
    Any,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) line: usize,
    pub(super) moment: Moment,
    pub(super) action: Action,
}

/// An event.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A packet comes in.
    Arrives(Packet),
    /// A packet leaves.
    Leaves(Packet),
    Call(Call),
    /// A shell command.
    Command(String),
    /// Assertions in Python.
    Code(String),
}

/// A TCP packet. Numbers are those of the script, which begin at 0 with the SYN.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Packet {
    pub(super) flags: String,
    pub(super) seq: u64,
    pub(super) end: u64,
    pub(super) ack: Option<u64>,
    pub(super) window: Option<u64>,
    /// None if any options match.
    pub(super) options: Option<Options>,
    /// The ECN field of the IP header, if the script states it.
    pub(super) ecn: Option<String>,
}

impl Packet {
    pub(super) fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    pub(super) fn len(&self) -> u64 {
        self.end - self.seq
    }
}

/// TCP options.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) mss: Option<u64>,
    pub(super) sack_permitted: bool,
    pub(super) scale: Option<u32>,
    /// Value and echo.
    pub(super) stamp: Option<(u64, u64)>,
    pub(super) sack: Vec<(u64, u64)>,
    /// The name of an unknown option.
    pub(super) other: Option<String>,
}

/// A system call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// As written, split at commas outside of brackets.
    pub(super) arguments: Vec<String>,
    /// The return value; negative for an error.
    pub(super) result: i64,
}

/// A whole script.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// `--name=value`.
    pub(super) options: Vec<(String, String)>,
    pub(super) events: Vec<Event>,
}
