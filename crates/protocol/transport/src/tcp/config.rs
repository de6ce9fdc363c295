//! What a TCP endpoint can be told in a scenario file.
//!
//! A profile names a complete set of values, and every value can be overridden beside it. The values are filled in
//! while the file is read, so what is printed is what runs.

mod check;
mod kinds;
mod profiles;

use airlane_base::{Duration, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use kinds::{
    AckClock, CongestionKind, Deflation, DelayedAck, LossMemory, Profile, RecoveryKind, ReportKind,
    SkipAcks, SkippedHoles, TimerKind, TimerRestart, UndoKind, Variant,
};

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
    /// What finds losses and repairs them. Source: RFC 5681, RFC 6582, RFC 6675, RFC 8985 and Balakrishnan et al.
    /// 1997.
    /// Left out: `reno`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryKind>,
    /// How the congestion window reacts. Source: RFC 5681, section 3.1; RFC 9438; Brakmo and Peterson 1995. Left
    /// out: `reno`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionKind>,
    /// What a partial acknowledgment does to NewReno's window. Source: RFC 6582. Left out: `rfc6582`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_deflation: Option<Deflation>,
    /// Which partial acknowledgments restart NewReno's timer. Source: RFC 6582, section 4. Left out:
    /// `every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_restart: Option<TimerRestart>,
    /// What acknowledgments say beside their number; whatever sends or repairs on the path may read it. Source:
    /// Balakrishnan et al. 1997, LL-SMART. Left out: what `recovery` reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledgments: Option<ReportKind>,
    /// How many destroyed segments the receiver of an explicit loss notification remembers. Source: Balakrishnan
    /// et al. 1997. Left out: `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eln_memory: Option<LossMemory>,
    /// Whether acknowledgments wait for a second segment. Source: RFC 5681, section 4.2. Left out: each
    /// segment is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<DelayedAck>,
    /// Which acknowledgments are left out because a later one says the same. Source: Gopal 2007, section 2.4. Left
    /// out: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_acks: Option<SkipAcks>,
    /// Whether the segments of a recovery with selective acknowledgments leave in proportion to those that arrive
    /// (proportional rate reduction), and not as the window opens. Source: RFC 6937. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// Whether the sender of SACK counts what is on its way by acknowledgments: one less for each duplicate, two for each
    /// partial acknowledgment. Nothing repairs a repair, and each hole below what was reported is lost. Source: Fall and
    /// Floyd 1996. Left out: `false`, RFC 6675's scoreboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_pipe: Option<bool>,
    /// Whether connections begin with a handshake and end with FIN; without, data flows from the first packet.
    /// Source: RFC 9293, section 3.5. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    /// Whether the handshake agrees on a scale of windows; without one a handshake leaves 65,535 bytes of them.
    /// Source: RFC 7323, section 2. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Whether segments carry timestamps, 12 bytes, and acknowledgments echo them: each measures a round trip.
    /// Source: RFC 7323, section 3. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Whether selective acknowledgments report what has come twice, and a cut is undone all of whose retransmissions
    /// were. Source: RFC 2883, RFC 3708. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsack: Option<bool>,
    /// Whether the first two duplicate acknowledgments let new segments leave. Source: RFC 3042. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Whether Reno's window opens by what an acknowledgment acknowledges, and not by one segment for each. Source:
    /// RFC 3465. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_counting: Option<bool>,
    /// Whether CUBIC's first slow start ends when round trips grow (HyStart++). Source: RFC 9406. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hystart: Option<bool>,
    /// How many round trips of slower slow start HyStart++ waits for shorter ones before slow start is over; 0 is
    /// Linux's HyStart, which waits for none, and ends slow start also where acknowledgments come for half a round trip
    /// without a pause. Source: RFC 9406, section 4.3; Ha and Rhee 2008. Left out: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "round trips"))]
    pub conservative_rounds: Option<u32>,
    /// Whether CUBIC's estimate of Reno's window grows at Reno's own pace once it has caught up with the window of
    /// before the loss; Linux's does not. Source: RFC 9438, section 4.3. Left out: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<bool>,
    /// Whether a cut is undone whose retransmission an echoed timestamp shows to have been needless (Eifel).
    /// Source: RFC 3522 and RFC 4015. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eifel: Option<bool>,
    /// What a cut that was not needed gives back, where `eifel` or `dsack` finds it out. Source: RFC 4015; RFC 9438,
    /// section 4.9. Left out: `rfc4015`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoKind>,
    /// Whether links with `mark-above` may mark segments in place of dropping them later, and the sender cuts its
    /// window for it (explicit congestion notification). Source: RFC 3168. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Whether segments leave evenly over the round trip. Source: docs/lab/choices.md. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Whether Reno deflates its window after a recovery only if more than the first duplicates have come, as
    /// both releases of 4.4BSD do. Source: Wright and Stevens 1995, chapter 29. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_deflation: Option<bool>,
    /// Whether duplicates from the third on inflate the window of Reno and NewReno although the third began no recovery,
    /// because its loss is one of those that the window was cut for: so in ns-2 until July 2003. Source: docs/lab/choices.md.
    /// Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stray_inflation: Option<bool>,
    /// Whether Reno cuts its window anew for each loss that three duplicates show, unless a timeout has cut it for what
    /// was sent then: so in ns-2 until July 2003. Source: docs/lab/choices.md. Left out: `false`, one cut for each window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_cuts: Option<bool>,
    /// Whether congestion avoidance adds an eighth of a segment to BSD's window for each acknowledgment, as
    /// 4.4BSD-Lite does. Source: Wright and Stevens 1995, chapter 29. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eighth: Option<bool>,
    /// Whether Vegas' recovery keeps times of segments beyond their acknowledgment, and so sends some twice: a slip
    /// of ns-2, off unless a file compares with it. Source: docs/lab/choices.md. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_times: Option<bool>,
    /// How the retransmission timer reads its clock. Source: Wright and Stevens 1995, chapter 25; RFC 6298. Left
    /// out: `ticks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerKind>,
    /// The socket buffers hold this much: the window is as many full segments as fit, at least 1, and at most
    /// `window`. Source: Balakrishnan et al. 1997. Left out: `window` alone says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
    /// Headers of a data segment, all layers together: they take time on links and meet errors, and are no
    /// user data. At most 1,000 B. Source: Balakrishnan et al. 1997. Left out: `0 B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_size: Option<Size>,
    /// The receiver advertises this window, at least 1 segment; with selective acknowledgments, SMART's
    /// too, at most 65,535.
    #[schemars(extend("x-unit" = "segments"))]
    pub window: u32,
    /// A fresh connection starts with this congestion window, at least 1 segment. Source: RFC 2001,
    /// section 1.
    #[schemars(extend("x-unit" = "segments"))]
    pub initial_window: u32,
    /// Slow start of a fresh connection ends at this congestion window, at least 2 segments. Source: Gopal 2007, section
    /// 5.3, has 64. Left out: at the receiver's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "segments"))]
    pub initial_ssthresh: Option<u32>,
    /// Whether a connection that has been idle for a timeout goes on with at most its initial window, and finds by slow
    /// start what the path takes now. Source: RFC 5681, section 4.1. Left out: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_restart: Option<bool>,
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
    /// A connection that nobody confirms anything of for this long is over at the next timeout, that of a SYN, too (R2).
    /// Source: RFC 1122, section 4.2.3.5. Left out: none gives up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub give_up: Option<Duration>,
    /// Whether the sender stands still while a link of its path says that it is down.
    pub freeze: bool,
    /// Whether a connection that takes over the sender of an earlier one takes over the number and the
    /// time of the segment that was timed last, too: a slip of ns-2 in 1999, off unless a file
    /// reproduces what was measured with it. Source: docs/lab/choices.md.
    pub keep_rtt_mark: bool,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self::profile(Profile::default())
    }
}

impl TcpConfig {
    /// How losses are detected and repaired.
    pub fn recovery(&self) -> RecoveryKind {
        self.recovery.unwrap_or_default()
    }

    /// How the congestion window reacts.
    pub fn congestion(&self) -> CongestionKind {
        self.congestion.unwrap_or_default()
    }

    /// The receiver's whole window, segments, when a full segment has `segment` user bytes.
    pub fn window_of(&self, segment: u32) -> u32 {
        let mut window = self.window;
        if let Some(buffer) = self.buffer {
            let fit = buffer.as_bytes() / u64::from(segment.max(1));
            window = window.min(u32::try_from(fit.max(1)).unwrap_or(u32::MAX));
        }
        if self.handshake.unwrap_or_default() && !self.window_scaling.unwrap_or_default() {
            window = window.min(Self::unscaled(segment));
        }
        window
    }

    /// What acknowledgments report besides their number.
    pub fn report(&self) -> ReportKind {
        let stated = self.acknowledgments.or(reads(self.recovery()));
        stated.unwrap_or(ReportKind::Plain)
    }

    /// How many destroyed segments the receiver remembers; none if it sends no loss notifications.
    pub fn loss_memory(&self) -> Option<LossMemory> {
        matches!(self.recovery(), RecoveryKind::Eln | RecoveryKind::ElnRxmt)
            .then(|| self.eln_memory.unwrap_or_default())
    }
}

/// What recovery reads in acknowledgments besides the number, if anything.
fn reads(recovery: RecoveryKind) -> Option<ReportKind> {
    match recovery {
        RecoveryKind::Sack | RecoveryKind::Rack => Some(ReportKind::Sack),
        RecoveryKind::Smart => Some(ReportKind::Smart),
        RecoveryKind::Tahoe
        | RecoveryKind::Reno
        | RecoveryKind::NewReno
        | RecoveryKind::Eln
        | RecoveryKind::ElnRxmt
        | RecoveryKind::Vegas => None,
    }
}

/// The keys that a file may state; the profile supplies the rest.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Overrides {
    #[serde(default)]
    profile: Profile,
    variant: Option<Variant>,
    recovery: Option<RecoveryKind>,
    congestion: Option<CongestionKind>,
    partial_deflation: Option<Deflation>,
    partial_restart: Option<TimerRestart>,
    acknowledgments: Option<ReportKind>,
    eln_memory: Option<LossMemory>,
    delayed_ack: Option<DelayedAck>,
    skip_acks: Option<SkipAcks>,
    prr: Option<bool>,
    counted_pipe: Option<bool>,
    handshake: Option<bool>,
    window_scaling: Option<bool>,
    timestamps: Option<bool>,
    dsack: Option<bool>,
    limited_transmit: Option<bool>,
    byte_counting: Option<bool>,
    hystart: Option<bool>,
    conservative_rounds: Option<u32>,
    catch_up: Option<bool>,
    eifel: Option<bool>,
    undo: Option<UndoKind>,
    pacing: Option<bool>,
    ecn: Option<bool>,
    late_deflation: Option<bool>,
    stray_inflation: Option<bool>,
    repeated_cuts: Option<bool>,
    eighth: Option<bool>,
    stale_times: Option<bool>,
    timer: Option<TimerKind>,
    buffer: Option<Size>,
    header_size: Option<Size>,
    window: Option<u32>,
    initial_window: Option<u32>,
    initial_ssthresh: Option<u32>,
    idle_restart: Option<bool>,
    dupack_threshold: Option<u32>,
    ack_size: Option<Size>,
    tick: Option<Duration>,
    initial_rto: Option<Duration>,
    min_rto: Option<Duration>,
    max_rto: Option<Duration>,
    give_up: Option<Duration>,
    freeze: Option<bool>,
    keep_rtt_mark: Option<bool>,
}

impl TryFrom<Overrides> for TcpConfig {
    type Error = String;

    fn try_from(o: Overrides) -> Result<Self, String> {
        let d = Self::profile(o.profile);
        let (recovery, congestion) = match o.variant {
            Some(Variant::Reno) => Default::default(),
            None => (d.recovery(), d.congestion()),
        };
        let recovery = o.recovery.unwrap_or(recovery);
        // A value that only the profile sets gives way to a stated one that excludes it.
        let timestamps = o.timestamps.or(d.timestamps);
        let eifel = o.eifel.or(d.eifel.filter(|_| timestamps == Some(true)));
        let handshake = o.handshake.or(d.handshake);
        let scales = handshake == Some(true);
        let congestion = o.congestion.unwrap_or(congestion);
        let is_reno = (recovery, congestion) == Default::default();
        let is_newreno = recovery == RecoveryKind::NewReno;
        let limits = !matches!(recovery, RecoveryKind::Rack | RecoveryKind::Smart);
        let inflates = is_newreno || recovery == RecoveryKind::Reno;
        let cuts_again = recovery == RecoveryKind::Reno && congestion != CongestionKind::Bsd;
        let says_sack =
            o.acknowledgments.or(d.acknowledgments).or(reads(recovery)) == Some(ReportKind::Sack);
        let dsack = o.dsack.or(d.dsack.filter(|_| says_sack));
        let finds_needless = [eifel, dsack].contains(&Some(true));
        let is_cubic = congestion == CongestionKind::Cubic;
        let counts = o.profile == Profile::Modern && congestion == CongestionKind::Reno;
        let as_in_2002 = o.profile == Profile::Ns2In2002 && is_newreno;
        let config = Self {
            profile: o.profile,
            variant: is_reno.then_some(Variant::Reno),
            recovery: (!is_reno).then_some(recovery),
            congestion: (!is_reno).then_some(congestion),
            partial_deflation: o
                .partial_deflation
                .or(as_in_2002.then_some(Deflation::EachAck)),
            partial_restart: o.partial_restart.or(d.partial_restart),
            acknowledgments: o.acknowledgments.or(d.acknowledgments),
            eln_memory: o.eln_memory.or(d.eln_memory),
            delayed_ack: o.delayed_ack.or(d.delayed_ack),
            skip_acks: o.skip_acks.or(d.skip_acks),
            prr: o.prr.or(d.prr),
            counted_pipe: o.counted_pipe.or(d.counted_pipe),
            handshake,
            window_scaling: o.window_scaling.or(d.window_scaling.filter(|_| scales)),
            timestamps,
            dsack,
            limited_transmit: o.limited_transmit.or(d.limited_transmit.filter(|_| limits)),
            byte_counting: o.byte_counting.or(counts.then_some(true)),
            hystart: o.hystart.or(d.hystart.filter(|_| is_cubic)),
            conservative_rounds: o.conservative_rounds.or(d.conservative_rounds),
            catch_up: o.catch_up.or(d.catch_up),
            eifel,
            undo: o.undo.or(d.undo.filter(|_| finds_needless)),
            pacing: o.pacing.or(d.pacing),
            ecn: o.ecn.or(d.ecn),
            late_deflation: o.late_deflation.or(d.late_deflation),
            stray_inflation: o.stray_inflation.or(d.stray_inflation.filter(|_| inflates)),
            repeated_cuts: o.repeated_cuts.or(d.repeated_cuts.filter(|_| cuts_again)),
            eighth: o.eighth.or(d.eighth),
            stale_times: o.stale_times.or(d.stale_times),
            timer: o.timer.or(d.timer),
            buffer: o.buffer.or(d.buffer),
            header_size: o.header_size.or(d.header_size),
            window: o.window.unwrap_or(d.window),
            initial_window: o.initial_window.unwrap_or(d.initial_window),
            initial_ssthresh: o.initial_ssthresh.or(d.initial_ssthresh),
            idle_restart: o.idle_restart.or(d.idle_restart),
            dupack_threshold: o.dupack_threshold.unwrap_or(d.dupack_threshold),
            ack_size: o.ack_size.unwrap_or(d.ack_size),
            tick: o.tick.unwrap_or(d.tick),
            initial_rto: o.initial_rto.unwrap_or(d.initial_rto),
            min_rto: o.min_rto.unwrap_or(d.min_rto),
            max_rto: o.max_rto.unwrap_or(d.max_rto),
            give_up: o.give_up.or(d.give_up),
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
    fn contradictory_times_are_blamed_on_the_one_that_was_given() {
        for (text, blamed) in [
            (
                "min-rto = \"70 s\"",
                "min-rto = \"70 s\" is longer than max-rto",
            ),
            (
                "max-rto = \"0.6 s\"",
                "max-rto = \"600 ms\" is shorter than min-rto",
            ),
            (
                "tick = \"2 s\"",
                "tick = \"2 s\" is longer than initial-rto",
            ),
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
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn the_default_is_the_tcp_of_today() {
        let config: TcpConfig = toml::from_str("").unwrap();
        assert_eq!(config, TcpConfig::profile(Profile::Modern));
    }

    #[test]
    fn one_value_beside_todays_profile_needs_no_second() {
        for text in [
            "variant = \"reno\"",
            "recovery = \"tahoe\"",
            "recovery = \"reno\"",
            "recovery = \"newreno\"",
            "recovery = \"sack\"",
            "recovery = \"smart\"",
            "recovery = \"eln\"",
            "recovery = \"eln-rxmt\"",
            "congestion = \"reno\"",
            "congestion = \"bsd\"",
            "congestion = \"vegas\"",
            "congestion = \"bbr\"",
            "recovery = \"vegas\"\ncongestion = \"vegas\"",
            "skip-acks = { count = 2 }",
            "timestamps = false",
            "handshake = false",
            "eifel = false",
            "dsack = false",
            "hystart = false",
            "delayed-ack = { every = 1 }",
            "pacing = false",
            "ecn = false",
            "timer = \"ticks\"",
            "timer = \"bsd\"",
            "window = 65535",
            "window = 1",
        ] {
            let read = toml::from_str::<TcpConfig>(text);
            assert!(read.is_ok(), "{text}: {read:?}");
        }
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        for profile in ["ns2-2002", "bsd-1997", "modern"] {
            let config: TcpConfig = toml::from_str(&format!("profile = \"{profile}\"")).unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(toml::from_str::<TcpConfig>(&text).unwrap(), config);
        }
        let oldest = TcpConfig::profile(Profile::Ns2In1999);
        let text = toml::to_string(&oldest).unwrap();
        assert!(text.starts_with("profile = \"ns2-1999\"\nvariant = \"reno\"\nwindow = 20\n"));
        assert_eq!(toml::from_str::<TcpConfig>(&text).unwrap(), oldest);
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
            ("acknowledgments = \"plain\"\nrecovery = \"sack\"", "sack"),
            (
                "recovery = \"reno\"\nacknowledgments = \"smart\"\nwindow = 70000",
                "65535",
            ),
            ("partial-restart = \"first\"", "newreno"),
            ("recovery = \"smart\"\nwindow = 70000", "65535"),
            ("eln-memory = \"last\"", "eln-rxmt"),
            ("eighth = true", "bsd"),
            ("congestion = \"bbr\"\ninitial-ssthresh = 64", "bbr"),
            ("congestion = \"cubic\"\nbyte-counting = true", "reno"),
            ("congestion = \"bic\"\nhystart = true", "cubic"),
            ("recovery = \"newreno\"\ndsack = true", "acknowledgments"),
            ("recovery = \"smart\"\ndupack-threshold = 5", "smart"),
            (
                "profile = \"ns2-1999\"\ntimestamps = true\nkeep-rtt-mark = true",
                "timestamps",
            ),
            ("initial-ssthresh = 1", "initial-ssthresh = 1"),
            ("congestion = \"bsd\"\ninitial-ssthresh = 64", "bsd"),
            ("recovery = \"newreno\"\nprr = true", "sack"),
            ("recovery = \"newreno\"\ncounted-pipe = true", "sack"),
            (
                "recovery = \"sack\"\nprr = true\ncounted-pipe = true",
                "prr",
            ),
            ("undo = \"linux\"\neifel = false\ndsack = false", "eifel"),
            ("header-size = \"2 kB\"", "1 kB"),
            ("recovery = \"sack\"\nlate-deflation = true", "reno"),
            ("recovery = \"sack\"\nstray-inflation = true", "newreno"),
            ("recovery = \"newreno\"\nrepeated-cuts = true", "reno"),
            ("congestion = \"bsd\"\nrepeated-cuts = true", "bsd"),
            ("delayed-ack = { every = 0 }", "delayed-ack.every = 0"),
            ("delayed-ack = { within = \"1 s\" }", "500 ms"),
        ] {
            let e = toml::from_str::<TcpConfig>(text).unwrap_err().to_string();
            assert!(e.contains(needle), "{text}: {e}");
        }
    }
}
