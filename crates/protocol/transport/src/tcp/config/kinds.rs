//! The parts that a TCP endpoint can be made of, by the names that files use.

use airlane_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A complete set of TCP settings, by the name of what it reproduces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// ns-2 as it stood in 1999 (docs/spec/multi-service.md, section 4): no connection set-up, initial
    /// window of one segment, half-second ticks, no limited transmit, an acknowledgment for
    /// every segment.
    #[serde(rename = "ns2-1999")]
    Ns2In1999,
    /// ns-2 of July 2002, as Gopal 2007 used it: ticks of 10 ms, limited transmit, headers of 40 bytes, two segments after a
    /// SYN that is not sent, a window longer than any file, and duplicates that inflate Reno's and NewReno's window as they
    /// did until July 2003.
    #[serde(rename = "ns2-2002")]
    Ns2In2002,
    /// A BSD host of 1997 as Balakrishnan et al. measured with it (4.4BSD; Wright and Stevens 1995): no connection
    /// set-up, ticks of half a second at which timers expire, delayed acknowledgments by a clock of 200 ms, a
    /// window of 32 kB (2^15 bytes) in bytes, and 58 bytes of headers.
    #[serde(rename = "bsd-1997")]
    BsdIn1997,
    /// What today's TCP does: handshake and end, timestamps and scaled windows (RFC 7323), RACK-TLP, CUBIC with
    /// HyStart++, duplicates reported (RFC 2883), a timer that measures and waits for 1 s at least (RFC 6298; Linux:
    /// 200 ms), an initial window of 10 (RFC 6928), delayed acknowledgments, pacing, ECN, Eifel, and 40 bytes of headers
    /// beside options.
    #[default]
    Modern,
}

/// What finds losses and repairs them. Source: RFC 5681, RFC 6582, RFC 6675, RFC 8985 and Balakrishnan et al. 1997.
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
    /// Selective acknowledgments, losses found by time, proportional rate reduction, and probes of the tail
    /// (RACK-TLP, RFC 8985).
    Rack,
    /// Each acknowledgment names the segment that caused it, and every gap is a loss at once (SMART, Keshav and
    /// Morgan 1997, as Balakrishnan et al. 1997 simplify it). For paths that keep the order.
    Smart,
    /// Reno with explicit loss notification: what a link destroyed is sent again with the third duplicate, and
    /// the window stays as it is (Balakrishnan et al. 1997).
    Eln,
    /// Likewise, with the first duplicate.
    ElnRxmt,
    /// Vegas' own: every segment is timed, and a late one is sent again with the first duplicate (Brakmo and
    /// Peterson 1995). With `congestion = "vegas"` only.
    Vegas,
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
    /// Each ends all inflation up to then (ns-2 until May 2003, `partial_window_deflation_` 0).
    EachAck,
}

/// What a cut that was not needed gives back, and when timestamps take it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UndoKind {
    /// Slow start up to what was outstanding or allowed to be (RFC 4015, section 3.2). With selective
    /// acknowledgments what has come above a hole is outstanding, too.
    #[default]
    #[serde(rename = "rfc4015")]
    Rfc4015,
    /// The window, its threshold and CUBIC's curve as they were (RFC 9438, section 4.9).
    #[serde(rename = "rfc9438")]
    Rfc9438,
    /// The window, and a threshold of three quarters of it or more, as Linux has it: CUBIC's curve begins anew; and
    /// within a recovery timestamps count only once no copy is on its way (`tcp_try_undo_partial`).
    Linux,
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

/// What acknowledgments say beside their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportKind {
    /// Nothing.
    Plain,
    /// What has come above holes, in up to three blocks (RFC 2018).
    Sack,
    /// The segment that caused the acknowledgment (Balakrishnan et al. 1997: SMART).
    Smart,
}

/// How many of the segments that a link destroyed a receiver remembers (ELN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossMemory {
    /// All that have not come since.
    #[default]
    All,
    /// The latest.
    Last,
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
    /// So many segments from the first on are acknowledged each at once, as Linux does while its peer's window is
    /// small: 16. Left out: none.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schemars(extend("x-unit" = "segments"))]
    pub quick: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

const fn every_second() -> u32 {
    2
}

const fn fifth_of_a_second() -> Duration {
    Duration::from_millis(200)
}

/// Acknowledgments that are left out because a later one says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SkipAcks {
    /// This many are left out between two that leave, delayed ones (`delayed-ack`) as any. Source: Gopal 2007, section
    /// 2.4, has 1 to 3.
    #[schemars(extend("x-unit" = "acknowledgments"))]
    pub count: u32,
    /// None is left out before the segment of this number has come, so that a small window can grow. Source:
    /// Gopal 2007, section 2.4.
    #[serde(default = "fiftieth")]
    #[schemars(extend("x-unit" = "segments"))]
    pub from: u32,
    /// Whether those around a hole are left out, too. Source: docs/lab/choices.md.
    #[serde(default)]
    pub holes: SkippedHoles,
}

const fn fiftieth() -> u32 {
    50
}

/// What skipping does around a hole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkippedHoles {
    /// While segments wait behind a hole, and when it closes, every acknowledgment leaves.
    #[default]
    Exempt,
    /// A segment that fills a hole is in order, and its acknowledgment may be left out: as the rule is printed.
    Literal,
}

/// How the congestion window opens, and how it reacts to a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionKind {
    /// Slow start and congestion avoidance (RFC 5681, section 3.1).
    #[default]
    Reno,
    /// The same as 4.4BSD has them: in bytes, at most 65,535 of them. Tahoe, Reno and ELN may then retransmit fast
    /// more than once in a window (Wright and Stevens 1995, chapters 24 and 29).
    Bsd,
    /// A search for the largest window that loses nothing (BIC, Xu et al. 2004).
    Bic,
    /// A cubic function of the time since the last loss (CUBIC, RFC 9438).
    Cubic,
    /// A model of the path, its rate and its round trip, and not losses (BBR v1, Cardwell et al. 2016). With
    /// `recovery = "rack"` and `pacing = true` only.
    Bbr,
    /// One to three segments wait in queues (Vegas, Brakmo and Peterson 1995); losses do what they do to Reno, unless
    /// `recovery` is Vegas' own.
    Vegas,
}

/// How the retransmission timer reads its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimerKind {
    /// Round trips count ticks, timeouts run for their whole length, as in ns-2.
    #[default]
    Ticks,
    /// Timeouts expire with a tick as well, so one of n ticks takes between n - 1 and n; round trips count from
    /// 1 (Wright and Stevens 1995, chapter 25).
    Bsd,
    /// Round trips are measured, and `tick` is only the clock's granularity (RFC 6298, section 2).
    Fine,
}

/// A name for a choice of all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// `recovery = "reno"`, `congestion = "reno"`.
    Reno,
}
