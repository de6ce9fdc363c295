//! The metrics that each application has, and their values as numbers.

use super::progress::Measured;
use super::{FlowResult, Scalar};

const THROUGHPUT: &[&str] = &["throughput_bps"];
const TCP: &[&str] = &["retransmissions", "timeouts"];
const DATAGRAMS: &[&str] = &[
    "loss_ratio",
    "delay_mean_s",
    "delay_sd_s",
    "delay_mean_plus_2sd_s",
    "delay_median_s",
    "delay_p95_s",
    "delay_p99_s",
    "jitter_mean_s",
];
const CLAP: &[&str] = &["nacks", "duplicates_before_sweep"];
const RESPONSES: &[&str] = &[
    "responses",
    "response_time_mean_s",
    "response_time_median_s",
    "response_time_p95_s",
    "response_time_max_s",
];
const PAGES: &[&str] = &[
    "pages",
    "page_time_mean_s",
    "page_time_median_s",
    "page_time_p95_s",
    "page_time_max_s",
];

/// Present if the sender's windows of a file are measured.
const WINDOWS: &[&str] = &[
    "cwnd_mean_bytes",
    "window_mean_bytes",
    "timeout_wait_s",
    "duplicate_acks",
];

/// Present if a relay splits the connection.
const RELAY: &[&str] = &[
    "relay_retransmissions",
    "relay_timeouts",
    "relay_early_bytes",
    "relay_held_bytes",
];

impl FlowResult {
    /// The measured metrics that are averaged over repetitions.
    pub fn scalars(&self) -> Vec<Scalar> {
        let all = self.all().into_iter();
        all.filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }

    /// The metrics that its application has: the same in every run of a scenario, whether or not they could be
    /// measured.
    pub fn measures(&self) -> Vec<&'static str> {
        let always: &[&[&'static str]] = match self.app {
            "conferencing" => &[THROUGHPUT, DATAGRAMS],
            "bulk" => &[
                THROUGHPUT,
                &["goodput_ratio"],
                TCP,
                &[
                    "window_cuts",
                    "duplicates",
                    "delay_mean_s",
                    "delay_p95_s",
                    "pause_max_s",
                ],
            ],
            "telnet" | "mail" => &[RESPONSES, TCP],
            "pages" | "web" => &[THROUGHPUT, PAGES, TCP],
            // Losses and delays over UDP, counters over TCP: the set of names is the same.
            "custom" => &[THROUGHPUT, DATAGRAMS, RESPONSES, TCP],
            other => unreachable!("no metrics are listed for the application \"{other}\""),
        };
        let relay = match self.relay_timeouts {
            Some(_) => RELAY,
            None => &[],
        };
        let windows = match self.timeout_wait_s {
            Some(_) => WINDOWS,
            None => &[],
        };
        let falls: &[&str] = match self.window_falls {
            Some(_) => &["window_falls"],
            None => &[],
        };
        let clap = match self.nacks {
            Some(_) => CLAP,
            None => &[],
        };
        let always = always.iter().copied().flatten();
        let more = windows.iter().chain(falls).chain(relay).chain(clap);
        always.chain(more).copied().collect()
    }

    /// The names of all metrics, in the order of results.
    pub fn metric_names() -> Vec<&'static str> {
        Self::default().all().map(|(name, _)| name).to_vec()
    }

    /// All metrics, in the order of results.
    pub(crate) fn all(&self) -> [Measured; 37] {
        let count = |n: Option<u64>| n.map(|n| n as f64);
        [
            ("throughput_bps", self.throughput_bps),
            ("goodput_ratio", self.goodput_ratio),
            ("packets_under_way", Some(self.packets_under_way as f64)),
            ("loss_ratio", self.loss_ratio),
            ("delay_mean_s", self.delay_mean_s),
            ("delay_sd_s", self.delay_sd_s),
            ("delay_mean_plus_2sd_s", self.delay_mean_plus_2sd_s),
            ("delay_median_s", self.delay_median_s),
            ("delay_p95_s", self.delay_p95_s),
            ("delay_p99_s", self.delay_p99_s),
            ("jitter_mean_s", self.jitter_mean_s),
            ("pages", count(self.pages)),
            ("page_time_mean_s", self.page_time_mean_s),
            ("page_time_median_s", self.page_time_median_s),
            ("page_time_p95_s", self.page_time_p95_s),
            ("page_time_max_s", self.page_time_max_s),
            ("responses", count(self.responses)),
            ("response_time_mean_s", self.response_time_mean_s),
            ("response_time_median_s", self.response_time_median_s),
            ("response_time_p95_s", self.response_time_p95_s),
            ("response_time_max_s", self.response_time_max_s),
            ("retransmissions", count(self.retransmissions)),
            ("timeouts", count(self.timeouts)),
            ("window_cuts", count(self.window_cuts)),
            ("duplicates", count(self.duplicates)),
            (
                "duplicates_before_sweep",
                count(self.duplicates_before_sweep),
            ),
            ("nacks", count(self.nacks)),
            ("pause_max_s", self.pause_max_s),
            ("cwnd_mean_bytes", self.cwnd_mean_bytes),
            ("window_mean_bytes", self.window_mean_bytes),
            ("timeout_wait_s", self.timeout_wait_s),
            ("duplicate_acks", count(self.duplicate_acks)),
            ("window_falls", count(self.window_falls)),
            ("relay_retransmissions", count(self.relay_retransmissions)),
            ("relay_timeouts", count(self.relay_timeouts)),
            ("relay_early_bytes", count(self.relay_early_bytes)),
            ("relay_held_bytes", count(self.relay_held_bytes)),
        ]
    }
}
