//! What was asked of the emulator and what it delivered.

use std::fmt;

use airlane_channel::Count;
use serde::{Deserialize, Serialize};

/// One run of the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AirReport {
    /// Name of the link.
    pub name: String,
    /// Seed of the error models.
    pub seed: u64,
    /// How long the emulator ran.
    pub ran_ns: u64,
    /// The interface whose loss ended the run, if it was not asked to end.
    pub lost_interface: Option<String>,
    /// From the first interface to the second.
    pub down: DirectionReport,
    /// From the second interface to the first.
    pub up: DirectionReport,
}

/// One direction of the emulated link. Bytes are those of whole Ethernet frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Interface where frames come in.
    pub from: String,
    /// Interface where they go out.
    pub to: String,
    /// Frames that came in, after super-packets were cut.
    pub offered: Count,
    /// Frames that found the queue full.
    pub dropped_queue: Count,
    /// Frames sent, and lost on the air.
    pub lost_air: Count,
    /// Of these, frames that left during an outage.
    #[serde(default)]
    pub lost_outage: Count,
    /// Of these, frames that exceeded what the policer lets pass.
    #[serde(default)]
    pub lost_policed: Count,
    /// Frames sent out at the other end.
    pub delivered: Count,
    /// Of these, frames that went out after one that was sent later, where delays differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overtaken: Option<Count>,
    /// Frames still in the queue or on the air at the end.
    pub in_flight: Count,
    /// Frames that never entered the link, by reason.
    pub refused: Refused,
    /// Super-packets that were cut into frames before they were offered.
    pub super_packets: u64,
    /// Frames whose checksum the sender had left to its card.
    pub checksums_completed: u64,
    /// Loss probability that the error model has for the frames that were sent, in the long run.
    pub fer_asked: f64,
    /// Part of the frames sent that was lost on the air, and not by an outage or the policer.
    pub fer_measured: f64,
    /// Rate of the link; of one whose rate changes, its mean.
    pub rate_asked_bps: u64,
    /// Delivered over the whole run.
    pub rate_mean_bps: f64,
    /// Delivered in the busiest second.
    pub rate_busiest_second_bps: f64,
    /// Propagation delay.
    pub delay_asked_ns: u64,
    /// How long after they were due frames were sent out, on average.
    pub late_mean_ns: u64,
    /// The latest of them.
    pub late_max_ns: u64,
}

/// Frames that never entered the link, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Longer than the interface at the other end sends.
    pub too_long: u64,
    /// Super-packets of a kind that cannot be cut here, such as tunnels.
    pub not_segmentable: u64,
    /// Shorter than an Ethernet header, or with offload data that point outside the frame.
    pub malformed: u64,
    /// Dropped by the kernel because the emulator did not read fast enough.
    pub missed: u64,
    /// Came through the link, but the interface at the other end did not take them.
    pub not_sent: u64,
}

impl Refused {
    /// Sum over all reasons.
    pub const fn total(&self) -> u64 {
        self.too_long + self.not_segmentable + self.malformed + self.missed + self.not_sent
    }
}

impl fmt::Display for AirReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.ran_ns as f64 / 1e9;
        writeln!(f, "{}: seed {}, ran {seconds:.1} s", self.name, self.seed)?;
        if let Some(interface) = &self.lost_interface {
            writeln!(f, "ended because the interface {interface} is gone")?;
        }
        let both = [&self.down, &self.up];
        let mut row = |name: &str, cell: &dyn Fn(&DirectionReport) -> String| {
            let [down, up] = both.map(cell);
            writeln!(f, "{name:<32} {down:>22} {up:>22}")
        };
        let count = |c: Count| format!("{} ({:.1} MB)", c.frames, c.bytes as f64 / 1e6);
        let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
        let mbit = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
        row("", &|d| format!("{} -> {}", d.from, d.to))?;
        row("frames offered", &|d| count(d.offered))?;
        row("  lost on the air", &|d| count(d.lost_air))?;
        if both.iter().any(|d| !d.lost_outage.is_zero()) {
            row("    of these, in outages", &|d| count(d.lost_outage))?;
        }
        if both.iter().any(|d| !d.lost_policed.is_zero()) {
            row("    of these, by the policer", &|d| count(d.lost_policed))?;
        }
        row("  dropped, queue full", &|d| count(d.dropped_queue))?;
        row("  delivered", &|d| count(d.delivered))?;
        if both.iter().any(|d| d.overtaken.is_some()) {
            row("    of these, overtaken", &|d| {
                count(d.overtaken.unwrap_or_default())
            })?;
        }
        row("  still on the way", &|d| count(d.in_flight))?;
        row("frame error rate asked", &|d| {
            format!("{:.3} %", d.fer_asked * 100.0)
        })?;
        row("frame error rate delivered", &|d| {
            format!("{:.3} %", d.fer_measured * 100.0)
        })?;
        row("rate asked", &|d| mbit(d.rate_asked_bps as f64))?;
        row("rate delivered, busiest second", &|d| {
            mbit(d.rate_busiest_second_bps)
        })?;
        row("rate delivered, mean", &|d| mbit(d.rate_mean_bps))?;
        row("delay asked", &|d| ms(d.delay_asked_ns))?;
        row("delivered late by, mean", &|d| ms(d.late_mean_ns))?;
        row("delivered late by, at most", &|d| ms(d.late_max_ns))?;
        row("super-packets cut into frames", &|d| {
            d.super_packets.to_string()
        })?;
        row("checksums completed", &|d| {
            d.checksums_completed.to_string()
        })?;
        type Reason = (&'static str, fn(&Refused) -> u64);
        let reasons: [Reason; 5] = [
            ("refused, too long", |r| r.too_long),
            ("refused, cannot be cut", |r| r.not_segmentable),
            ("refused, malformed", |r| r.malformed),
            ("missed, came too fast to read", |r| r.missed),
            ("not taken by the interface", |r| r.not_sent),
        ];
        for (name, reason) in reasons {
            if both.iter().any(|d| reason(&d.refused) > 0) {
                row(name, &|d| reason(&d.refused).to_string())?;
            }
        }
        Ok(())
    }
}
