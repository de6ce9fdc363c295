//! What a TCP endpoint can be told in a scenario file.
//!
//! A profile names a complete set of values; every value can be overridden next to it. Values are
//! filled in while the file is read, so that what is printed is what runs.

use airlane_base::{Duration, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MOST_BLOCKS, sack_option_len};

/// A complete set of TCP settings, by the name of what it reproduces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// ns-2 as it stood in 1999 (the specification, section 4): no connection set-up, initial
    /// window of one segment, half-second ticks, no limited transmit, an acknowledgment for
    /// every segment.
    #[default]
    #[serde(rename = "ns2-1999")]
    Ns2In1999,
}

/// What finds losses and repairs them. Source: RFC 5681, RFC 6582 and RFC 6675.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryKind {
    /// Fast retransmit, then slow start (Jacobson 1988).
    Tahoe,
    /// Fast retransmit and fast recovery (RFC 2001, later RFC 5681 section 3.2).
    #[default]
    Reno,
    /// Fast recovery until everything is repaired, one segment each round trip (RFC 6582).
    #[serde(rename = "newreno")]
    NewReno,
    /// Selective acknowledgments (RFC 2018) and the recovery of RFC 6675.
    Sack,
}

/// What a partial acknowledgment does to the window that duplicates have inflated (NewReno).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deflation {
    /// It takes away what it acknowledges, less one segment (RFC 6582).
    #[default]
    #[serde(rename = "rfc6582")]
    Rfc6582,
    /// The first of a recovery ends all inflation up to then (Balakrishnan et al. 1997: the window is at
    /// half of its size with the first new acknowledgment).
    FirstAck,
}

/// Which partial acknowledgments restart the retransmission timer (NewReno).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimerRestart {
    /// Every one: "slow but steady" (RFC 6582, section 4).
    #[default]
    Every,
    /// The first of a recovery: "impatient", a timeout ends a long one.
    First,
}

/// Which clock delayed acknowledgments wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckClock {
    /// A timer that starts with the segment.
    #[default]
    FromArrival,
    /// The next tick of the host's own clock, as in BSD: from no time at all to a whole period.
    FreeRunning,
}

/// Acknowledgments that wait for company.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DelayedAck {
    /// One acknowledgment stands for this many segments, at least 1. Source: RFC 5681, section 4.2.
    #[serde(default = "every_second")]
    pub every: u32,
    /// How long the first of them waits at most. At most 500 ms (RFC 5681, section 4.2).
    #[serde(default = "fifth_of_a_second")]
    pub within: Duration,
    /// Which clock says that it is over.
    #[serde(default)]
    pub clock: AckClock,
}

const fn every_second() -> u32 {
    2
}

const fn fifth_of_a_second() -> Duration {
    Duration::from_millis(200)
}

/// How the congestion window opens, and how it reacts to a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionKind {
    /// Slow start and congestion avoidance (RFC 5681, section 3.1).
    #[default]
    Reno,
}

/// A name for a choice of all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// `recovery = "reno"`, `congestion = "reno"`.
    Reno,
}

/// A TCP endpoint's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Overrides", rename_all = "kebab-case")]
#[schemars(!try_from, default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Where the values below come from unless they are stated.
    pub profile: Profile,
    /// It names `recovery` and `congestion` together; what is stated of these goes before it. Reno is
    /// printed by this name, as it always was, so that its files keep their hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// What finds losses and repairs them. Source: RFC 5681, RFC 6582 and RFC 6675. Left out: `reno`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryKind>,
    /// How the congestion window reacts. Source: RFC 5681, section 3.1. Left out: `reno`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionKind>,
    /// What a partial acknowledgment does to NewReno's window. Source: RFC 6582. Left out: `rfc6582`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_deflation: Option<Deflation>,
    /// Which partial acknowledgments restart NewReno's timer. Source: RFC 6582, section 4. Left out:
    /// `every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_restart: Option<TimerRestart>,
    /// Whether acknowledgments wait for a second segment. Source: RFC 5681, section 4.2. Left out: each
    /// segment is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<DelayedAck>,
    /// The receiver advertises this window, at least 1 segment; with selective acknowledgments at most
    /// 65,535.
    #[schemars(extend("x-unit" = "segments"))]
    pub window: u32,
    /// A fresh connection starts with this congestion window, at least 1 segment. Source: RFC 2001,
    /// section 1.
    #[schemars(extend("x-unit" = "segments"))]
    pub initial_window: u32,
    /// This many duplicate acknowledgments start a fast retransmit, at least 1. Source: RFC 5681,
    /// section 3.2.
    #[schemars(extend("x-unit" = "acknowledgments"))]
    pub dupack_threshold: u32,
    /// A pure acknowledgment is this long. Source: Xylomenos 1999.
    pub ack_size: Size,
    /// The clock of the retransmission timer ticks this often. Source: Xylomenos 1999, figure 3.1.
    pub tick: Duration,
    /// The retransmission timer starts with this before the first round trip sample.
    pub initial_rto: Duration,
    /// The retransmission timeout is never smaller than this. Source: RFC 6298.
    pub min_rto: Duration,
    /// The retransmission timeout grows up to this, after backoff. Source: RFC 6298.
    pub max_rto: Duration,
    /// Whether the sender stands still while a link of its path says that it is down.
    pub freeze: bool,
    /// Whether a connection that takes over the sender of an earlier one takes over the number and the
    /// time of the segment that was timed last, too: a slip of ns-2 in 1999, off unless a file
    /// reproduces what was measured with it. Source: docs/choices.md.
    pub keep_rtt_mark: bool,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self::profile(Profile::Ns2In1999)
    }
}

impl TcpConfig {
    /// What finds losses and repairs them.
    pub fn recovery(&self) -> RecoveryKind {
        self.recovery.unwrap_or_default()
    }

    /// Length of an acknowledgment with all options that it may have.
    pub fn longest_ack(&self) -> Size {
        let options = match self.recovery() {
            RecoveryKind::Sack => sack_option_len(MOST_BLOCKS),
            RecoveryKind::Tahoe | RecoveryKind::Reno | RecoveryKind::NewReno => 0,
        };
        Size::from_bytes(self.ack_size.as_bytes() + u64::from(options))
    }

    /// All values of a profile.
    pub fn profile(profile: Profile) -> Self {
        match profile {
            Profile::Ns2In1999 => Self {
                profile,
                variant: Some(Variant::Reno),
                recovery: None,
                congestion: None,
                partial_deflation: None,
                partial_restart: None,
                delayed_ack: None,
                window: 20,
                initial_window: 1,
                dupack_threshold: 3,
                ack_size: Size::from_bytes(40),
                tick: Duration::from_millis(500),
                initial_rto: Duration::from_secs(6),
                min_rto: Duration::from_secs(1),
                max_rto: Duration::from_secs(64),
                freeze: false,
                keep_rtt_mark: false,
            },
        }
    }

    /// Whether every value can be used; if not, which one and what is allowed.
    ///
    /// # Errors
    /// A sentence that names the key, its value and its range.
    pub fn validate(&self) -> Result<(), String> {
        let at_least = |key: &str, value: String, ok: bool, least: &str| {
            if ok {
                Ok(())
            } else {
                Err(format!("{key} = {value} is too small; at least {least}"))
            }
        };
        // The receiver keeps one slot for each segment of the window.
        if self.window > MAX_WINDOW {
            return Err(format!(
                "window = {} is too large; at most {MAX_WINDOW} segments",
                self.window
            ));
        }
        let sack = self.recovery() == RecoveryKind::Sack;
        if sack && self.window > MAX_SACK_WINDOW {
            return Err(format!(
                "window = {} is too large for recovery = \"sack\"; at most {MAX_SACK_WINDOW} segments",
                self.window
            ));
        }
        let newreno = self.recovery() == RecoveryKind::NewReno;
        for (key, is_stated) in [
            ("partial-deflation", self.partial_deflation.is_some()),
            ("partial-restart", self.partial_restart.is_some()),
        ] {
            if is_stated && !newreno {
                return Err(format!("{key} does nothing without recovery = \"newreno\""));
            }
        }
        if let Some(DelayedAck { every, within, .. }) = self.delayed_ack {
            at_least("delayed-ack.every", every.to_string(), every >= 1, "1")?;
            let longest = Duration::from_millis(500);
            if within == Duration::ZERO || within > longest {
                return Err(format!(
                    "delayed-ack.within = \"{within}\" is out of range; more than 0, and at most \"500 ms\""
                ));
            }
        }
        at_least("window", self.window.to_string(), self.window >= 1, "1")?;
        at_least(
            "initial-window",
            self.initial_window.to_string(),
            self.initial_window >= 1,
            "1",
        )?;
        at_least(
            "dupack-threshold",
            self.dupack_threshold.to_string(),
            self.dupack_threshold >= 1,
            "1",
        )?;
        at_least(
            "ack-size",
            format!("\"{}\"", self.ack_size),
            self.ack_size.as_bytes() >= 1,
            "\"1 B\"",
        )?;
        at_least(
            "tick",
            format!("\"{}\"", self.tick),
            self.tick >= Duration::from_millis(1),
            "\"1 ms\"",
        )?;
        let usual = Self::profile(self.profile);
        let tick = ("tick", self.tick, usual.tick);
        let initial = ("initial-rto", self.initial_rto, usual.initial_rto);
        let (min, max) = (
            ("min-rto", self.min_rto, usual.min_rto),
            ("max-rto", self.max_rto, usual.max_rto),
        );
        in_order(tick, initial)?;
        in_order(tick, min)?;
        in_order(min, max)
    }
}

/// A time that cannot be longer than another one: key, value, what the profile has. What differs from
/// the profile was given, and is to blame.
fn in_order(
    (low, short, usual_short): (&str, Duration, Duration),
    (high, long, usual_long): (&str, Duration, Duration),
) -> Result<(), String> {
    if short <= long {
        return Ok(());
    }
    Err(match (short != usual_short, long != usual_long) {
        (true, false) => format!(
            "{low} = \"{short}\" is longer than {high}, which is \"{long}\" unless it is given; at most \
             \"{long}\", or a longer {high}, too"
        ),
        (false, true) => format!(
            "{high} = \"{long}\" is shorter than {low}, which is \"{short}\" unless it is given; at least \
             \"{short}\", or a shorter {low}, too"
        ),
        _ => format!(
            "{low} = \"{short}\" is longer than {high} = \"{long}\"; {high} is at least {low}"
        ),
    })
}

/// Largest window in segments: 1 GB of 1000-byte segments, far above any link modelled here.
const MAX_WINDOW: u32 = 1 << 20;

/// Beyond it the offsets of blocks would not fit into a simulated packet.
const MAX_SACK_WINDOW: u32 = u16::MAX as u32;

/// What a file may state; the rest comes from the profile.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Overrides {
    #[serde(default)]
    profile: Profile,
    #[expect(dead_code, reason = "it is read for its name, and has one")]
    variant: Option<Variant>,
    recovery: Option<RecoveryKind>,
    congestion: Option<CongestionKind>,
    partial_deflation: Option<Deflation>,
    partial_restart: Option<TimerRestart>,
    delayed_ack: Option<DelayedAck>,
    window: Option<u32>,
    initial_window: Option<u32>,
    dupack_threshold: Option<u32>,
    ack_size: Option<Size>,
    tick: Option<Duration>,
    initial_rto: Option<Duration>,
    min_rto: Option<Duration>,
    max_rto: Option<Duration>,
    freeze: Option<bool>,
    keep_rtt_mark: Option<bool>,
}

impl TryFrom<Overrides> for TcpConfig {
    type Error = String;

    fn try_from(o: Overrides) -> Result<Self, String> {
        let d = Self::profile(o.profile);
        // `variant` has one value, which is what is meant without it.
        let recovery = o.recovery.unwrap_or_default();
        let congestion = o.congestion.unwrap_or_default();
        let is_reno = (recovery, congestion) == Default::default();
        let config = Self {
            profile: o.profile,
            variant: is_reno.then_some(Variant::Reno),
            recovery: (!is_reno).then_some(recovery),
            congestion: (!is_reno).then_some(congestion),
            partial_deflation: o.partial_deflation.or(d.partial_deflation),
            partial_restart: o.partial_restart.or(d.partial_restart),
            delayed_ack: o.delayed_ack.or(d.delayed_ack),
            window: o.window.unwrap_or(d.window),
            initial_window: o.initial_window.unwrap_or(d.initial_window),
            dupack_threshold: o.dupack_threshold.unwrap_or(d.dupack_threshold),
            ack_size: o.ack_size.unwrap_or(d.ack_size),
            tick: o.tick.unwrap_or(d.tick),
            initial_rto: o.initial_rto.unwrap_or(d.initial_rto),
            min_rto: o.min_rto.unwrap_or(d.min_rto),
            max_rto: o.max_rto.unwrap_or(d.max_rto),
            freeze: o.freeze.unwrap_or(d.freeze),
            keep_rtt_mark: o.keep_rtt_mark.unwrap_or(d.keep_rtt_mark),
        };
        config.validate()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_times_that_contradict_each_other_the_one_that_was_given_is_to_blame() {
        for (text, blamed) in [
            (
                "min-rto = \"70 s\"",
                "min-rto = \"70 s\" is longer than max-rto",
            ),
            (
                "max-rto = \"0.6 s\"",
                "max-rto = \"600 ms\" is shorter than min-rto",
            ),
            ("tick = \"2 s\"", "tick = \"2 s\" is longer than min-rto"),
            (
                "min-rto = \"3 s\"\nmax-rto = \"2 s\"",
                "min-rto = \"3 s\" is longer than max-rto = \"2 s\"",
            ),
        ] {
            let error = toml::from_str::<TcpConfig>(text).unwrap_err().to_string();
            assert!(error.contains(blamed), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_overrides_single_values_of_the_profile() {
        let config: TcpConfig = toml::from_str(
            "profile = \"ns2-1999\"\nvariant = \"reno\"\nwindow = 64\nmin-rto = \"2 s\"",
        )
        .unwrap();
        let expected = TcpConfig {
            window: 64,
            min_rto: Duration::from_secs(2),
            ..TcpConfig::default()
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        let text = toml::to_string(&TcpConfig::default()).unwrap();
        assert!(text.starts_with("profile = \"ns2-1999\"\nvariant = \"reno\"\nwindow = 20\n"));
        assert_eq!(
            toml::from_str::<TcpConfig>(&text).unwrap(),
            TcpConfig::default()
        );
    }

    #[test]
    fn parts_go_before_their_name_and_are_printed_as_parts() {
        let text = "variant = \"reno\"\nrecovery = \"newreno\"\npartial-restart = \"first\"";
        let config: TcpConfig = toml::from_str(text).unwrap();
        assert_eq!(config.recovery(), RecoveryKind::NewReno);
        let printed = toml::to_string(&config).unwrap();
        assert!(printed.contains("recovery = \"newreno\"\ncongestion = \"reno\""));
        assert!(!printed.contains("variant"));
        assert_eq!(toml::from_str::<TcpConfig>(&printed).unwrap(), config);
    }

    #[test]
    fn impossible_values_are_refused_with_their_range() {
        for (text, needle) in [
            ("window = 0", "window = 0"),
            ("windows = 3", "windows"),
            ("tick = \"0 s\"", "tick = \"0 s\""),
            ("max-rto = \"0.5 s\"", "max-rto"),
            ("variant = \"cubic\"", "cubic"),
            ("recovery = \"sack\"\nwindow = 70000", "65535"),
            ("partial-restart = \"first\"", "newreno"),
            ("delayed-ack = { every = 0 }", "delayed-ack.every = 0"),
            ("delayed-ack = { within = \"1 s\" }", "500 ms"),
        ] {
            let e = toml::from_str::<TcpConfig>(text).unwrap_err().to_string();
            assert!(e.contains(needle), "{text}: {e}");
        }
    }
}
