//! Settings of `kind = "telnet"` and `kind = "mail"`.

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
    /// Length of a packet with one keystroke, and of its echo; each further keystroke in the same packet adds a byte.
    /// Unlike in other data packets, headers are counted here, because they are longer than the data.
    #[serde(default = "default_keystroke")]
    pub keystroke: Size,
    /// The number of keystrokes. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The longest packet. Left out: the smallest frame on the path, or `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

fn default_interval() -> Duration {
    Duration::from_secs(1)
}

/// One character, and the 40 bytes of an acknowledgment.
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
    /// Length of a command.
    #[serde(default = "default_command")]
    pub command: Size,
    /// Length of a response without a message.
    #[serde(default = "default_response")]
    pub response: Size,
    /// Messages in each check.
    #[serde(default = "default_messages")]
    #[schemars(extend("x-unit" = "messages"))]
    pub messages: u32,
    /// Mean length of a message; sizes are exponential.
    #[serde(default = "default_message")]
    pub message: Size,
    /// Time from the end of a check to the start of the next.
    #[serde(default = "default_pause")]
    pub pause: Duration,
    /// The number of checks. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// User bytes of a packet. Left out: the smallest frame on the path, or `1500 B`.
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
