//! Requested and measured properties of the emulated link.

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
    /// Duration of the run.
    pub ran_ns: u64,
    /// The interface whose disappearance ended the run, if it did.
    pub lost_interface: Option<String>,
    /// From the first interface to the second.
    pub down: DirectionReport,
    /// From the second interface to the first.
    pub up: DirectionReport,
}

/// One direction of the emulated link. Bytes are those of whole Ethernet frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Interface where frames arrive.
    pub from: String,
    /// Interface where frames leave.
    pub to: String,
    /// Frames that arrived, after super-packets were segmented.
    pub offered: Count,
    /// Frames dropped because the queue was full.
    pub dropped_queue: Count,
    /// Frames sent and lost on the air.
    pub lost_air: Count,
    /// Of these, frames sent during an outage.
    #[serde(default)]
    pub lost_outage: Count,
    /// Of these, frames dropped by the policer.
    #[serde(default)]
    pub lost_policed: Count,
    /// Frames sent out at the other end.
    pub delivered: Count,
    /// Of these, frames delivered after one that was sent later, where delays vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overtaken: Option<Count>,
    /// Frames still in the queue or on the air at the end.
    pub in_flight: Count,
    /// Frames that never entered the link, by reason.
    pub refused: Refused,
    /// Super-packets that were segmented into frames before they were offered.
    pub super_packets: u64,
    /// Frames whose checksum the sender had left to its network card.
    pub checksums_completed: u64,
    /// Expected loss probability of the frames sent, by the error model.
    pub fer_asked: f64,
    /// Share of the frames sent that was lost on the air, without outages and policing.
    pub fer_measured: f64,
    /// Rate of the link; the mean rate if it varies.
    pub rate_asked_bps: u64,
    /// Delivered rate over the whole run.
    pub rate_mean_bps: f64,
    /// Delivered rate in the busiest second.
    pub rate_busiest_second_bps: f64,
    /// Propagation delay.
    pub delay_asked_ns: u64,
    /// Mean delay of the frames beyond their due time.
    pub late_mean_ns: u64,
    /// Maximum delay of a frame beyond its due time.
    pub late_max_ns: u64,
}

/// Frames that never entered the link, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Longer than the MTU at the other end.
    pub too_long: u64,
    /// Super-packets of a type that cannot be segmented here, such as tunnels.
    pub not_segmentable: u64,
    /// Shorter than an Ethernet header, or with offload data that point beyond the frame.
    pub malformed: u64,
    /// Dropped by the kernel because the emulator did not read fast enough.
    pub missed: u64,
    /// Carried by the link, but not accepted by the interface at the other end.
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
