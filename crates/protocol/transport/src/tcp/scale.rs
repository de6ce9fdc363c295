//! What a header can say of a window: 16 bits, in bytes or in multiples of a power of two of them (RFC 7323,
//! section 2).
//!
//! The window of a SYN is never scaled, so a peer begins with 65,535 bytes at most. Multiples are rounded down,
//! and a part of a segment is not sent, so an advertised window may lack a segment of what is there.

use super::TcpConfig;

/// The most that 16 bits say, bytes.
const LARGEST: u64 = 65_535;

/// How a receiver's windows are said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    /// User bytes of a full segment, and by how many bits windows are shifted; none without handshake, where any window
    /// is known, and where the largest needs no shift.
    units: Option<(u64, u32)>,
}

impl Scale {
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        let shift = config.window_shift(segment).filter(|shift| *shift > 0);
        Self {
            units: shift.map(|shift| (u64::from(segment.max(1)), shift)),
        }
    }

    /// What is said where there is room for `window` segments.
    #[inline]
    pub(super) fn advertised(self, window: u64) -> u64 {
        match self.units {
            None => window,
            Some((segment, shift)) => {
                // What is more than 14 bits of scale can say is not said.
                let units = ((window * segment) >> shift).min(LARGEST);
                (units << shift) / segment
            }
        }
    }
}

impl TcpConfig {
    /// By how many bits headers shift the windows of a connection that agrees on it, where a full segment has
    /// `segment` user bytes; none where it does not.
    pub fn window_shift(&self, segment: u32) -> Option<u32> {
        let segment = u64::from(segment.max(1));
        let window = u64::from(self.window_of(segment as u32)) * segment;
        let scales = self.handshake.unwrap_or_default() && self.window_scaling.unwrap_or_default();
        let shift = (0..14).find(|shift| window >> shift <= LARGEST);
        scales.then_some(shift.unwrap_or(14))
    }

    /// The window that a header without scale can say, where a full segment has `segment` user bytes; segments.
    pub(super) fn unscaled(segment: u32) -> u32 {
        (LARGEST / u64::from(segment.max(1))).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_said_in_powers_of_two_and_never_too_large() {
        let config: TcpConfig = toml::from_str("profile = \"modern\"\nwindow = 4096").unwrap();
        let scale = Scale::new(&config, 1_460);
        // 4096 * 1460 = 5,980,160 needs 7 bits, and is a multiple of 128.
        assert_eq!(scale.units, Some((1_460, 7)));
        assert_eq!(scale.advertised(4_096), 4_096);
        // 146,000 is none.
        assert_eq!(scale.advertised(100), 99);
        assert_eq!(TcpConfig::unscaled(1_460), 44);
    }
}
