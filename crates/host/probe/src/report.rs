//! The results of the applications.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ports::ServerPorts;

/// All applications over one measuring period.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Length of the measuring period.
    pub measured_ns: u64,
    /// Length of the warm-up before it.
    pub warmup_ns: u64,
    /// The server's ports.
    #[serde(default)]
    pub ports: ServerPorts,
    /// The file, if it was carried.
    pub file: Option<FileReport>,
    /// The download over UDP, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<DownloadReport>,
    /// The pages, if they were fetched.
    pub pages: Option<PagesReport>,
    /// Voice from server to client, if it was sent.
    pub voice_down: Option<VoiceReport>,
    /// Voice from client to server, if it was sent.
    pub voice_up: Option<VoiceReport>,
    /// Round trips on the idle path, if echoes were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<EchoReport>,
    /// Round trips in the measuring period, if echoes were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<EchoReport>,
    /// The offset between the clocks of the ends, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockReport>,
}

impl TrafficReport {
    /// Voice lost in both directions together, as a share of the packets sent; none if an end sent nothing.
    pub fn voice_loss(&self) -> Option<f64> {
        let (down, up) = (self.voice_down.as_ref()?, self.voice_up.as_ref()?);
        let both = down.sent > 0 && up.sent > 0;
        both.then(|| (down.lost + up.lost) as f64 / (down.sent + up.sent) as f64)
    }
}

/// One file over one TCP connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileReport {
    /// Congestion control of the sender, as the kernel names it.
    pub congestion_control: String,
    /// Bytes delivered to the receiving application in the measuring period.
    pub received_bytes: u64,
    /// The same as a rate.
    pub goodput_bps: f64,
    /// Why the transfer ended early, if it did.
    pub error: Option<String>,
}

/// A QUIC-like download over UDP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DownloadReport {
    /// Bytes received in the measuring period, without duplicates.
    pub received_bytes: u64,
    /// Packets received in it.
    pub packets: u64,
    /// The same bytes as a rate.
    pub goodput_bps: f64,
}

/// Page fetches, each over a fresh TCP connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PagesReport {
    /// Pages begun in the measuring period and completed.
    pub completed: u64,
    /// Pages begun in it that failed or were not completed in time.
    pub failed: u64,
    /// The errors, with their counts.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Mean time from connecting to the last byte.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// One direction of voice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VoiceReport {
    /// Packets sent in the measuring period.
    pub sent: u64,
    /// How many of these arrived, without duplicates.
    pub received: u64,
    /// How many of these did not arrive.
    pub lost: u64,
    /// Duplicate arrivals.
    pub duplicates: u64,
    /// Arrivals after a packet that was sent later.
    pub reordered: u64,
    /// Lost over sent.
    pub loss: f64,
    /// Minimum one-way delay of the packets that arrived.
    #[serde(default)]
    pub delay_min_ns: u64,
    /// Median of the packets that arrived.
    pub delay_p50_ns: u64,
    /// 95th percentile.
    #[serde(default)]
    pub delay_p95_ns: u64,
    /// 99th percentile.
    pub delay_p99_ns: u64,
    /// Maximum.
    pub delay_max_ns: u64,
    /// Packets that arrived after more than 300 ms.
    #[serde(default)]
    pub late: u64,
}

/// Round trips.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EchoReport {
    /// Requests.
    pub sent: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Minimum.
    pub rtt_min_ns: u64,
    /// Median.
    pub rtt_p50_ns: u64,
    /// 99th percentile.
    pub rtt_p99_ns: u64,
    /// Maximum.
    pub rtt_max_ns: u64,
}

/// The clocks of the two ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClockReport {
    /// How far the server's clock was ahead of the client's when the load began.
    pub server_ahead_ns: i64,
    /// The largest error of one-way delays: reached if the whole round trip was in one direction.
    pub uncertainty_ns: u64,
}

impl fmt::Display for TrafficReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: f64| ns / 1e6;
        let (measured, warmup) = (self.measured_ns as f64 / 1e9, self.warmup_ns as f64 / 1e9);
        writeln!(
            f,
            "measured for {measured:.0} s after {warmup:.0} s of warm-up"
        )?;
        if let Some(file) = &self.file {
            let (rate, cc) = (file.goodput_bps / 1e6, &file.congestion_control);
            writeln!(f, "file        {rate:.2} Mbit/s (TCP {cc})")?;
            if let Some(error) = &file.error {
                writeln!(f, "            ended early: {error}")?;
            }
        }
        if let Some(p) = &self.pages {
            writeln!(
                f,
                "pages       mean {:.0} ms, median {:.0} ms, 95 % within {:.0} ms; {} completed, {} failed",
                ms(p.mean_ns),
                ms(p.p50_ns as f64),
                ms(p.p95_ns as f64),
                p.completed,
                p.failed
            )?;
        }
        for (name, voice) in [
            ("voice down", &self.voice_down),
            ("voice up", &self.voice_up),
        ] {
            if let Some(v) = voice {
                writeln!(
                    f,
                    "{name:<11} {:.2} % lost ({} of {}), delay median {:.1} ms, 99 % within {:.1} ms; \
                     {} duplicates, {} out of order",
                    v.loss * 100.0,
                    v.lost,
                    v.sent,
                    ms(v.delay_p50_ns as f64),
                    ms(v.delay_p99_ns as f64),
                    v.duplicates,
                    v.reordered
                )?;
            }
        }
        Ok(())
    }
}
