//! The window field of a header: 16 bits, in bytes or in units of a power of two of them (RFC 7323, section 2).
//!
//! The window of a SYN is never scaled, so a peer begins with at most 65,535 bytes. Scaled windows are rounded down,
//! and partial segments are not sent, so an advertised window may be a segment smaller than the buffer.

use super::TcpConfig;

/// The largest value of the field, bytes.
const LARGEST: u64 = 65_535;

/// How a receiver encodes its windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    /// User bytes of a full segment, and the window shift. None without a handshake, when any window can be encoded,
    /// and none if the largest window needs no shift.
    units: Option<(u64, u32)>,
}

impl Scale {
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        let shift = config.window_shift(segment).filter(|shift| *shift > 0);
        Self {
            units: shift.map(|shift| (u64::from(segment.max(1)), shift)),
        }
    }

    /// The window that is advertised when there is room for `window` segments.
    #[inline]
    pub(super) fn advertised(self, window: u64) -> u64 {
        match self.units {
            None => window,
            Some((segment, shift)) => {
                // A window beyond 14 bits of scale is truncated.
                let units = ((window * segment) >> shift).min(LARGEST);
                (units << shift) / segment
            }
        }
    }
}

impl TcpConfig {
    /// The window shift of a connection that negotiates one, for full segments of `segment` user bytes; none if it
    /// does not.
    pub fn window_shift(&self, segment: u32) -> Option<u32> {
        let segment = u64::from(segment.max(1));
        let window = u64::from(self.window_of(segment as u32)) * segment;
        let scales = self.handshake.unwrap_or_default() && self.window_scaling.unwrap_or_default();
        let shift = (0..14).find(|shift| window >> shift <= LARGEST);
        scales.then_some(shift.unwrap_or(14))
    }

    /// The largest window that an unscaled header can encode, segments, for full segments of `segment` user bytes.
    pub(super) fn unscaled(segment: u32) -> u32 {
        (LARGEST / u64::from(segment.max(1))).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_windows_are_rounded_and_never_too_large() {
        let config: TcpConfig = toml::from_str("profile = \"modern\"\nwindow = 4096").unwrap();
        let scale = Scale::new(&config, 1_460);
        // 4096 * 1460 = 5,980,160 needs 7 bits, and is a multiple of 128.
        assert_eq!(scale.units, Some((1_460, 7)));
        assert_eq!(scale.advertised(4_096), 4_096);
        // 146,000 is not a multiple of 128.
        assert_eq!(scale.advertised(100), 99);
        assert_eq!(TcpConfig::unscaled(1_460), 44);
    }
}
