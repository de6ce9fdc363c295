//! `kind = "telnet"` and `kind = "mail"`: what a file may say about them.

use airlane_base::config::Problems;
use airlane_base::{Duration, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A terminal session: a client at the second end types, a server at the first echoes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelnetConfig {
    /// Keystrokes are this far apart on average; the times are exponential.
    #[serde(default = "default_interval")]
    pub interval: Duration,
    /// A packet with one keystroke is this long, and so is its echo; each further one in the same
    /// packet adds a byte. One character is so little that the headers, which data packets leave out
    /// elsewhere, are counted here.
    #[serde(default = "default_keystroke")]
    pub keystroke: Size,
    /// How many keystrokes are typed. Left out: there is always another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// A packet is at most this long. Left out: the smallest frame on the path, or
    /// `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

fn default_interval() -> Duration {
    Duration::from_secs(1)
}

/// A character, and the 40 bytes of an acknowledgment.
fn default_keystroke() -> Size {
    Size::from_bytes(41)
}

/// Mail checks: a client at the second end fetches messages from a server at the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MailConfig {
    /// A check has this many short turns: one command and one response each. The last follows the
    /// messages.
    #[serde(default = "default_turns")]
    #[schemars(extend("x-unit" = "turns"))]
    pub turns: u32,
    /// A command is this long.
    #[serde(default = "default_command")]
    pub command: Size,
    /// A response that brings no message is this long.
    #[serde(default = "default_response")]
    pub response: Size,
    /// Each check finds this many messages.
    #[serde(default = "default_messages")]
    #[schemars(extend("x-unit" = "messages"))]
    pub messages: u32,
    /// A message is this long on average; sizes are exponential.
    #[serde(default = "default_message")]
    pub message: Size,
    /// This long after the end of a check the next begins.
    #[serde(default = "default_pause")]
    pub pause: Duration,
    /// How many checks are made. Left out: there is always another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// A packet has this many user bytes. Left out: the smallest frame on the path, or
    /// `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

/// USER, PASS, STAT, LIST and QUIT (RFC 1939).
fn default_turns() -> u32 {
    5
}

fn default_command() -> Size {
    Size::from_bytes(20)
}

fn default_response() -> Size {
    Size::from_bytes(40)
}

fn default_messages() -> u32 {
    3
}

fn default_message() -> Size {
    Size::from_bytes(3_000)
}

fn default_pause() -> Duration {
    Duration::from_secs(10)
}

/// More turns than a mailbox has messages.
const MAX_TURNS: u32 = 1_000_000;
/// No message is larger than a file.
const MAX_MESSAGE: u64 = 1_000_000_000;

impl TelnetConfig {
    pub(super) fn check(&self, packet: Size, problems: &mut Problems) {
        if self.interval < Duration::from_micros(1) {
            problems.add(
                "app.interval",
                format!("nobody types every {}", self.interval),
                "at least \"1 us\"",
            );
        }
        let largest = packet.as_bytes();
        if !(1..=largest).contains(&self.keystroke.as_bytes()) {
            problems.add(
                "app.keystroke",
                format!(
                    "a keystroke of {} does not travel in one packet",
                    self.keystroke
                ),
                format!("\"1 B\" to \"{largest} B\""),
            );
        }
    }
}

impl MailConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        for (path, value, least) in [
            ("app.turns", self.turns, 1),
            ("app.messages", self.messages, 0),
        ] {
            if !(least..=MAX_TURNS).contains(&value) {
                problems.add(
                    path,
                    format!("{value} cannot be"),
                    format!("{least} to {MAX_TURNS}"),
                );
            }
        }
        for (path, size) in [
            ("app.command", self.command),
            ("app.response", self.response),
            ("app.message", self.message),
        ] {
            if !(1..=MAX_MESSAGE).contains(&size.as_bytes()) {
                problems.add(path, format!("{size} cannot be"), "\"1 B\" to \"1 GB\"");
            }
        }
    }
}
