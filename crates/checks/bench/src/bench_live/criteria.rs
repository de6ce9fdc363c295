//! The criteria for Airlane, and whether a figure meets them. They apply only to Airlane; for the other tools the
//! same verdict shows where they stand.

use std::fmt;

use super::channel::{Endpoints, LossChannel};

/// Airlane's TCP throughput over that of wireguard-go, with both ends on one machine.
pub const SPEEDUP: f64 = 1.5;
/// Round trip in addition to the cable's, median, us.
pub const ADDED_US: f64 = 100.0;
/// A page on the idle link without losses, ms.
pub const IDLE_PAGE_MS: f64 = 155.0;

/// Whether a figure meets its criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CriterionVerdict {
    /// It does.
    Holds,
    /// It does not.
    Missed,
    /// There is no criterion, or no figure to compare with.
    Open,
}

impl CriterionVerdict {
    /// The verdict of a comparison.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Missed }
    }
}

impl fmt::Display for CriterionVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "ok",
            Self::Missed => "MISS",
            Self::Open => "",
        })
    }
}

/// The file: a share of its ceiling, or of the throughput of plain BBR.
pub fn file(
    channel: LossChannel,
    endpoints: Endpoints,
    mbps: f64,
    ceiling_mbps: f64,
    plain_bbr_mbps: Option<f64>,
) -> CriterionVerdict {
    match (endpoints, plain_bbr_mbps) {
        (Endpoints::Cubic, _) => {
            let part = if channel.is_bursty() { 0.85 } else { 0.92 };
            CriterionVerdict::of(mbps >= part * ceiling_mbps)
        }
        (Endpoints::Bbr, Some(plain)) => CriterionVerdict::of(mbps >= 0.95 * plain),
        (Endpoints::Bbr, None) => CriterionVerdict::Open,
    }
}

/// Pages: their mean time over that of the idle link without losses.
pub fn pages(channel: LossChannel, mean_ms: f64) -> CriterionVerdict {
    let times = match channel {
        bursty if bursty.is_bursty() => 2.0,
        LossChannel::Uniform10 => 1.6,
        _ => 1.25,
    };
    CriterionVerdict::of(mean_ms <= times * IDLE_PAGE_MS)
}

/// Voice packets that did not arrive, %.
pub fn voice_loss(channel: LossChannel, percent: f64) -> CriterionVerdict {
    let limit = match channel {
        bursty if bursty.is_bursty() => 1.5,
        LossChannel::Uniform10 => 1.0,
        _ => 0.3,
    };
    CriterionVerdict::of(percent < limit)
}

/// 99th percentile of the delay of the voice packets that arrived.
pub fn voice_p99(channel: LossChannel, ms: f64) -> CriterionVerdict {
    if channel.is_bursty() || channel == LossChannel::Uniform10 {
        return CriterionVerdict::Open;
    }
    CriterionVerdict::of(ms < 55.0)
}

/// Datagrams per second in a flood from an unknown sender.
pub const FLOOD: u64 = 100_000;

/// The file during a flood: four fifths of its throughput without; open if the machine could not send that fast.
pub fn flooded(quiet_mbps: f64, flooded_mbps: f64, sent_per_s: f64) -> CriterionVerdict {
    if sent_per_s < 0.9 * FLOOD as f64 {
        return CriterionVerdict::Open;
    }
    CriterionVerdict::of(flooded_mbps >= 0.8 * quiet_mbps)
}

#[cfg(test)]
mod tests {
    use CriterionVerdict::{Holds, Missed, Open};
    use Endpoints::{Bbr, Cubic};
    use LossChannel::{Bursts5, Uniform5, Uniform10};

    use super::*;

    #[test]
    fn the_file_is_compared_with_its_ceiling_or_plain_bbr() {
        assert_eq!(file(Uniform5, Cubic, 9.21, 10.0, None), Holds);
        assert_eq!(file(Uniform5, Cubic, 9.19, 10.0, Some(1.0)), Missed);
        assert_eq!(file(Bursts5, Cubic, 8.51, 10.0, None), Holds);
        assert_eq!(file(Bursts5, Cubic, 8.4, 10.0, None), Missed);
        assert_eq!(file(Uniform5, Bbr, 9.51, 99.0, Some(10.0)), Holds);
        assert_eq!(file(Uniform5, Bbr, 9.4, 1.0, Some(10.0)), Missed);
        assert_eq!(file(Uniform5, Bbr, 9.5, 10.0, None), Open);
    }

    #[test]
    fn a_flood_is_judged_only_at_its_full_rate() {
        assert_eq!(flooded(15.0, 12.0, 95_000.0), Holds);
        assert_eq!(flooded(15.0, 11.9, 95_000.0), Missed);
        assert_eq!(flooded(15.0, 1.0, 80_000.0), Open);
    }

    #[test]
    fn limits_grow_with_the_losses() {
        assert_eq!(pages(Uniform5, 193.0), Holds);
        assert_eq!(pages(Uniform5, 194.0), Missed);
        assert_eq!(pages(Uniform10, 248.0), Holds);
        assert_eq!(pages(Uniform10, 249.0), Missed);
        assert_eq!(pages(Bursts5, 310.0), Holds);
        assert_eq!(pages(Bursts5, 311.0), Missed);
        assert_eq!(voice_loss(Uniform5, 0.3), Missed);
        assert_eq!(voice_loss(Uniform10, 0.99), Holds);
        assert_eq!(voice_loss(Bursts5, 1.49), Holds);
        assert_eq!(voice_p99(Uniform5, 54.9), Holds);
        assert_eq!(voice_p99(Uniform5, 55.0), Missed);
        assert_eq!(voice_p99(Uniform10, 99.0), Open);
    }
}
