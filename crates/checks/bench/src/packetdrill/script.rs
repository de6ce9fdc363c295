//! What a script of packetdrill says (Cardwell et al. 2013), as far as its scripts of TCP need.

/// When something happens, microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Moment {
    /// Since the beginning of the script.
    At(u64, u64),
    /// Behind what was before.
    After(u64, u64),
    /// Whenever.
    Any,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) line: usize,
    pub(super) moment: Moment,
    pub(super) action: Action,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A packet comes in.
    Arrives(Packet),
    /// A packet leaves.
    Leaves(Packet),
    Call(Call),
    /// Of a shell.
    Command(String),
    /// Assertions in Python.
    Code(String),
}

/// A packet of TCP. Numbers are the script's, which begin at 0 with the SYN.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Packet {
    pub(super) flags: String,
    pub(super) seq: u64,
    pub(super) end: u64,
    pub(super) ack: Option<u64>,
    pub(super) window: Option<u64>,
    /// None where any will do.
    pub(super) options: Option<Options>,
    /// What the IP header says of congestion, where the script says it.
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

/// Options of TCP.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) mss: Option<u64>,
    pub(super) sack_permitted: bool,
    pub(super) scale: Option<u32>,
    /// Value and echo.
    pub(super) stamp: Option<(u64, u64)>,
    pub(super) sack: Vec<(u64, u64)>,
    /// The name of one that this does not know.
    pub(super) other: Option<String>,
}

/// A system call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// As they stand, split at the commas outside of brackets.
    pub(super) arguments: Vec<String>,
    /// What it gives; negative for an error.
    pub(super) result: i64,
}

/// A whole script.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// `--name=value`.
    pub(super) options: Vec<(String, String)>,
    pub(super) events: Vec<Event>,
}
