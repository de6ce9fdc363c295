//! Which TCP settings are valid.

use airlane_base::{Duration, Size};

use super::kinds::{CongestionKind, DelayedAck, RecoveryKind, ReportKind};
use super::{TcpConfig, reads};

impl TcpConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// A sentence that names the key, its value and the allowed range.
    ///
    /// ```
    /// use airlane_transport::TcpConfig;
    ///
    /// let mut config = TcpConfig::default();
    /// config.window = 0;
    /// assert!(config.validate().unwrap_err().contains("window"));
    /// ```
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
        let (needs, says) = (reads(self.recovery()), self.report());
        if needs.is_some_and(|needs| needs != says) {
            return Err(format!(
                "recovery = \"{0}\" reads what only acknowledgments = \"{0}\" say; leave acknowledgments out",
                if needs == Some(ReportKind::Sack) {
                    "sack"
                } else {
                    "smart"
                }
            ));
        }
        if says != ReportKind::Plain && self.window > MAX_SACK_WINDOW {
            return Err(format!(
                "window = {} is too large where acknowledgments say more than their number; at most \
                 {MAX_SACK_WINDOW} segments",
                self.window
            ));
        }
        if self.eighth.is_some() && self.congestion() != CongestionKind::Bsd {
            return Err("eighth does nothing without congestion = \"bsd\"".to_owned());
        }
        if self.prr.is_some() && self.recovery() != RecoveryKind::Sack {
            return Err("prr does nothing without recovery = \"sack\"".to_owned());
        }
        if self.counted_pipe.is_some() && self.recovery() != RecoveryKind::Sack {
            return Err("counted-pipe does nothing without recovery = \"sack\"".to_owned());
        }
        if self.counted_pipe == Some(true) && self.prr == Some(true) {
            let problem = "counted-pipe does nothing with prr, which has an account of its own";
            return Err(problem.to_owned());
        }
        if self.late_deflation.is_some() && self.recovery() != RecoveryKind::Reno {
            return Err("late-deflation does nothing without recovery = \"reno\"".to_owned());
        }
        let inflates = matches!(self.recovery(), RecoveryKind::Reno | RecoveryKind::NewReno);
        if self.stray_inflation.is_some() && !inflates {
            return Err(
                "stray-inflation does nothing without recovery = \"reno\" or \"newreno\""
                    .to_owned(),
            );
        }
        if self.repeated_cuts.is_some()
            && (self.recovery() != RecoveryKind::Reno || self.congestion() == CongestionKind::Bsd)
        {
            return Err(
                "repeated-cuts does nothing without recovery = \"reno\", and with congestion = \"bsd\", which has them"
                    .to_owned(),
            );
        }
        let vegas = self.recovery() == RecoveryKind::Vegas;
        if vegas && self.congestion() != CongestionKind::Vegas {
            return Err("recovery = \"vegas\" needs congestion = \"vegas\"".to_owned());
        }
        if vegas && self.window > MAX_SACK_WINDOW {
            return Err(format!(
                "window = {} is too large for recovery = \"vegas\", which times every segment; at most \
                 {MAX_SACK_WINDOW} segments",
                self.window
            ));
        }
        if self.stale_times.is_some() && !vegas {
            return Err("stale-times does nothing without recovery = \"vegas\"".to_owned());
        }
        self.check_companions()?;
        if let Some(buffer) = self.buffer {
            at_least(
                "buffer",
                format!("\"{buffer}\""),
                buffer.as_bytes() >= 1,
                "\"1 B\"",
            )?;
        }
        if self
            .header_size
            .is_some_and(|size| size.as_bytes() > MAX_HEADER)
        {
            return Err(format!(
                "header-size is too large; at most \"{}\"",
                Size::from_bytes(MAX_HEADER)
            ));
        }
        if self.eln_memory.is_some() && self.loss_memory().is_none() {
            return Err(
                "eln-memory does nothing without recovery = \"eln\" or \"eln-rxmt\"".to_owned(),
            );
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
        if let Some(ssthresh) = self.initial_ssthresh {
            at_least("initial-ssthresh", ssthresh.to_string(), ssthresh >= 2, "2")?;
            let ignores = match self.congestion() {
                CongestionKind::Bsd => Some("bsd"),
                CongestionKind::Bbr => Some("bbr"),
                _ => None,
            };
            if let Some(kind) = ignores {
                return Err(format!(
                    "initial-ssthresh does nothing with congestion = \"{kind}\""
                ));
            }
        }
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
        if let Some(give_up) = self.give_up {
            let value = format!("\"{give_up}\"");
            at_least("give-up", value, give_up >= self.min_rto, "min-rto")?;
        }
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

impl TcpConfig {
    /// Settings that have no effect without another one.
    fn check_companions(&self) -> Result<(), String> {
        let on = Option::unwrap_or_default;
        let rack = self.recovery() == RecoveryKind::Rack;
        if self.congestion() == CongestionKind::Bbr && !(rack && on(self.pacing)) {
            return Err(
                "congestion = \"bbr\" needs recovery = \"rack\" and pacing = true".to_owned(),
            );
        }
        if self.idle_restart.is_some() && self.congestion() == CongestionKind::Bbr {
            return Err(
                "idle-restart does nothing with congestion = \"bbr\", which paces by its model of the path".to_owned(),
            );
        }
        if on(self.eifel) && !on(self.timestamps) {
            return Err("eifel = true needs timestamps = true, which tell copies apart".to_owned());
        }
        if self.undo.is_some() && !(on(self.eifel) || on(self.dsack)) {
            return Err(
                "undo does nothing without eifel = true or dsack = true, which find a cut that was not needed".to_owned(),
            );
        }
        if self.dsack.is_some() && self.report() != ReportKind::Sack {
            return Err(
                "dsack does nothing without acknowledgments = \"sack\", which recovery = \"sack\" or \"rack\" \
                 implies"
                    .to_owned(),
            );
        }
        if self.byte_counting.is_some() && self.congestion() != CongestionKind::Reno {
            return Err("byte-counting does nothing without congestion = \"reno\"".to_owned());
        }
        let cubic = self.congestion() == CongestionKind::Cubic;
        if self.hystart.is_some() && !cubic {
            return Err("hystart does nothing without congestion = \"cubic\"".to_owned());
        }
        let counts_duplicates = !(rack || self.recovery() == RecoveryKind::Smart);
        let usual = Self::profile(self.profile).dupack_threshold;
        if !counts_duplicates && self.dupack_threshold != usual {
            return Err(
                "dupack-threshold does nothing with recovery = \"rack\" or \"smart\", which count no duplicates"
                    .to_owned(),
            );
        }
        if self.keep_rtt_mark && on(self.timestamps) {
            return Err(
                "keep-rtt-mark does nothing with timestamps = true, which measure every round trip"
                    .to_owned(),
            );
        }
        if self.catch_up.is_some() && !cubic {
            return Err("catch-up does nothing without congestion = \"cubic\"".to_owned());
        }
        if self.conservative_rounds.is_some() && !(cubic && on(self.hystart)) {
            return Err(
                "conservative-rounds does nothing without congestion = \"cubic\" and hystart = true".to_owned(),
            );
        }
        if on(self.window_scaling) && !on(self.handshake) {
            return Err(
                "window-scaling = true needs handshake = true, which agrees on it".to_owned(),
            );
        }
        if on(self.limited_transmit) && !counts_duplicates {
            return Err(
                "limited-transmit does nothing with recovery = \"rack\" or \"smart\": what has come makes room \
                 for new segments there"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Checks that one time is not longer than another. Each has a key, a value and the profile's value; the message
/// blames the one that differs from the profile, because the user stated it.
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

/// More than the headers of any real network.
const MAX_HEADER: u64 = 1_000;

/// With a larger window the offsets of blocks would not fit into a simulated packet.
const MAX_SACK_WINDOW: u32 = u16::MAX as u32;
