//! The two variables that every congestion control sets.

use crate::tcp::TcpConfig;

/// A congestion window and its slow start threshold.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Cwnd {
    /// The window, segments. It grows without bound; the advertised window limits its use.
    pub(super) segments: f64,
    /// The threshold, segments.
    pub(super) ssthresh: u64,
}

impl Cwnd {
    /// `ssthresh` starts at the advertised window, or lower if the settings say so.
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        let window = config.window_of(segment);
        Self {
            segments: f64::from(config.initial_window),
            ssthresh: u64::from(window.min(config.initial_ssthresh.unwrap_or(window))),
        }
    }

    /// Whether the window is below the threshold (slow start).
    #[inline]
    pub(super) const fn in_slow_start(&self) -> bool {
        self.segments < self.ssthresh as f64
    }

    /// Sets the window to `ssthresh`.
    pub(super) const fn resume(&mut self) {
        self.segments = self.ssthresh as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    #[test]
    fn ssthresh_starts_at_the_window_or_the_configured_value() {
        for (stated, ssthresh) in [(None, 100), (Some(64), 64), (Some(200), 100)] {
            let config = TcpConfig {
                window: 100,
                initial_ssthresh: stated,
                ..TcpConfig::profile(Profile::Ns2In1999)
            };
            assert_eq!(Cwnd::new(&config, 1000).ssthresh, ssthresh);
        }
    }
}
