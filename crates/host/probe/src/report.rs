//! What the applications got.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ports::ServerPorts;

/// All three applications over one measuring period.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Length of the measuring period.
    pub measured_ns: u64,
    /// Length of the warm-up before it.
    pub warmup_ns: u64,
    /// Where the server was.
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
    /// Round trips while nothing else was carried, if echoes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<EchoReport>,
    /// Round trips in the measuring period, if echoes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<EchoReport>,
    /// What the clocks of the ends said, if they are not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockReport>,
}

impl TrafficReport {
    /// Voice lost in both directions together, as a part of what was sent; none if an end sent nothing.
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
    /// Bytes that the receiver's application got in the measuring period.
    pub received_bytes: u64,
    /// These bytes as a rate.
    pub goodput_bps: f64,
    /// Why the transfer ended early, if it did.
    pub error: Option<String>,
}

/// A download over UDP as QUIC has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DownloadReport {
    /// Bytes that came in the measuring period, each once.
    pub received_bytes: u64,
    /// Packets that came in it.
    pub packets: u64,
    /// These bytes as a rate.
    pub goodput_bps: f64,
}

/// Page fetches, each over a fresh TCP connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PagesReport {
    /// Pages begun in the measuring period and completed.
    pub completed: u64,
    /// Pages begun in it that failed or did not end in time.
    pub failed: u64,
    /// How, and how many of them.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// From the start of the connection to the last byte.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95 of 100 pages are faster.
    pub p95_ns: u64,
    /// The slowest.
    pub max_ns: u64,
}

/// One direction of voice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VoiceReport {
    /// Packets sent in the measuring period.
    pub sent: u64,
    /// Packets of these that arrived, each counted once.
    pub received: u64,
    /// Packets of these that did not arrive.
    pub lost: u64,
    /// Arrivals of packets that had arrived before.
    pub duplicates: u64,
    /// Arrivals after a packet that was sent later.
    pub reordered: u64,
    /// Lost of sent.
    pub loss: f64,
    /// One-way delay of the fastest packet that arrived.
    #[serde(default)]
    pub delay_min_ns: u64,
    /// Median of the packets that arrived.
    pub delay_p50_ns: u64,
    /// What 95 of 100 do not exceed.
    #[serde(default)]
    pub delay_p95_ns: u64,
    /// What 99 of 100 do not exceed.
    pub delay_p99_ns: u64,
    /// The longest.
    pub delay_max_ns: u64,
    /// Packets that arrived and took more than 300 ms.
    #[serde(default)]
    pub late: u64,
}

/// Round trips.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EchoReport {
    /// Requests.
    pub sent: u64,
    /// Requests that were not answered.
    pub lost: u64,
    /// The fastest.
    pub rtt_min_ns: u64,
    /// Median.
    pub rtt_p50_ns: u64,
    /// 99 of 100 are faster.
    pub rtt_p99_ns: u64,
    /// The slowest.
    pub rtt_max_ns: u64,
}

/// The clocks of the two ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClockReport {
    /// How far the server's is ahead of the client's, as they were when the load began.
    pub server_ahead_ns: i64,
    /// The most that one-way delays are wrong by: as much if all of the round trip were on one way.
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
