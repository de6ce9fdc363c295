//! Round trip estimation of RFC 6298, in nanoseconds.

use airlane_base::Duration;

/// Smoothed round trip and its variation (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fine {
    srtt: Option<Duration>,
    rttvar: Duration,
}

impl Fine {
    pub(super) const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Takes a round trip of `rtt`; returns the timeout for a clock of this granularity. Each of `expected` samples
    /// per round trip has a correspondingly smaller weight (RFC 7323, appendix G).
    pub(super) fn sample(
        &mut self,
        rtt: Duration,
        granularity: Duration,
        expected: u64,
    ) -> Duration {
        let srtt = match self.srtt {
            None => {
                self.rttvar = rtt / 2;
                rtt
            }
            Some(srtt) => {
                let deviation = Duration::from_nanos(rtt.as_nanos().abs_diff(srtt.as_nanos()));
                self.rttvar = (self.rttvar * (4 * expected - 1) + deviation) / (4 * expected);
                (srtt * (8 * expected - 1) + rtt) / (8 * expected)
            }
        };
        self.srtt = Some(srtt);
        srtt + granularity.max(self.rttvar * 4)
    }
}
