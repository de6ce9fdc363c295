//! The upper bound of a file's throughput on the impaired link, next to the pages and voice that shared it.
//!
//! ```text
//! file = (rate x survival - pages - voice) x payload share
//! payload share = payload / (payload + headers of IP and TCP on the wire + overhead of a packet)
//! payload       = MTU - headers of IP and TCP
//! pages         = pages fetched per second, with the frames of each
//! voice         = 50 packets per second, with the overhead of each
//! ```
//!
//! Losses are retransmitted until they arrive, at the cost of their bytes alone. Frames that only carry
//! acknowledgments, and any redundancy, are a tool's own costs and are not subtracted.

/// Headers of IPv4 and of TCP with timestamps, bytes.
const TCP_HEADERS: f64 = 20.0 + 32.0;
/// Compressed headers of a file's segment, bytes: head and timestamp (docs/lab/thin-flows.md).
const COMPACT_HEADERS: f64 = 7.0;
/// IPv4 and TCP with the options of a SYN, bytes.
const SYN_HEADERS: f64 = 20.0 + 40.0;
const PAGE: f64 = 20_000.0;
/// A voice packet with IPv4 and UDP, bytes, and the number sent per second.
const VOICE: f64 = 160.0 + 28.0;
const VOICE_RATE: f64 = 50.0;

/// The inputs of the bound.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    /// Rate of the link, bit/s of frames.
    pub rate_bps: f64,
    /// The share of frames that arrives.
    pub survival: f64,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Overhead of an IP packet on the wire, bytes.
    pub overhead: u32,
    /// Whether TCP/IP headers are compressed.
    pub compact_headers: bool,
    /// Pages fetched per second.
    pub pages_per_s: f64,
    /// The share of the voice packets that used the link: 1, or 0 without voice.
    pub voice: f64,
}

impl Ceiling {
    /// The payload of a full segment over its frame.
    fn payload_share(&self) -> f64 {
        let payload = f64::from(self.mtu) - TCP_HEADERS;
        payload / (payload + self.headers() + f64::from(self.overhead))
    }

    /// Header bytes of a segment on the wire.
    const fn headers(&self) -> f64 {
        if self.compact_headers {
            COMPACT_HEADERS
        } else {
            TCP_HEADERS
        }
    }

    /// Bits on the wire of one page from server to client: SYN-ACK, segments, FIN.
    fn page_bits(&self) -> f64 {
        let overhead = f64::from(self.overhead);
        let segments = (PAGE / (f64::from(self.mtu) - TCP_HEADERS)).ceil();
        let packets = PAGE + segments * self.headers() + SYN_HEADERS + TCP_HEADERS;
        (packets + (segments + 2.0) * overhead) * 8.0
    }

    /// The rate used by all other traffic, bit/s on the wire.
    fn beside_bps(&self) -> f64 {
        let pages = self.pages_per_s * self.page_bits();
        pages + self.voice * VOICE_RATE * (VOICE + f64::from(self.overhead)) * 8.0
    }

    /// The bound of the file, bit/s.
    pub fn file_bps(&self) -> f64 {
        let left = self.rate_bps * self.survival - self.beside_bps();
        left.max(0.0) * self.payload_share()
    }

    /// The share of the link's effective capacity that a file of this rate and the other traffic used.
    pub fn used(&self, file_bps: f64) -> f64 {
        let file = file_bps / self.payload_share();
        (file + self.beside_bps()) / (self.rate_bps * self.survival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: Ceiling = Ceiling {
        rate_bps: 20e6,
        survival: 1.0,
        mtu: 1500,
        overhead: 14,
        compact_headers: false,
        pages_per_s: 0.0,
        voice: 1.0,
    };

    #[test]
    fn full_frames_carry_their_payload_share() {
        // 1448 of 1514 B; voice takes 50 x 202 B.
        let expected = (20e6 - 80_800.0) * 1448.0 / 1514.0;
        assert!((RAW.file_bps() - expected).abs() < 1.0);
    }

    #[test]
    fn the_link_is_fully_used_when_the_file_reaches_its_ceiling() {
        let lossy = Ceiling {
            survival: 0.9,
            pages_per_s: 3.0,
            ..RAW
        };
        assert!((lossy.used(lossy.file_bps()) - 1.0).abs() < 1e-9);
        let alone = Ceiling { voice: 0.0, ..RAW };
        assert!((alone.used(alone.file_bps() / 2.0) - 0.5).abs() < 1e-9);
        assert!(alone.file_bps() > RAW.file_bps());
    }

    #[test]
    fn compact_headers_raise_the_ceiling() {
        let compact = Ceiling {
            compact_headers: true,
            ..RAW
        };
        assert!((compact.payload_share() - 1448.0 / (1448.0 + 7.0 + 14.0)).abs() < 1e-9);
        assert!(compact.page_bits() < RAW.page_bits());
    }

    #[test]
    fn a_page_takes_fourteen_segments_and_two_more_frames() {
        let segments = 20_000.0 + 14.0 * (52.0 + 14.0);
        let others = 60.0 + 52.0 + 2.0 * 14.0;
        assert!((RAW.page_bits() - (segments + others) * 8.0).abs() < 1e-6);
        let with = Ceiling {
            pages_per_s: 4.0,
            ..RAW
        };
        let taken = RAW.file_bps() - with.file_bps();
        assert!((taken - 4.0 * RAW.page_bits() * RAW.payload_share()).abs() < 1.0);
    }

    #[test]
    fn losses_and_overhead_lower_the_ceiling_never_below_zero() {
        let lossy = Ceiling {
            survival: 0.9,
            ..RAW
        };
        let tunnel = Ceiling {
            mtu: 1420,
            overhead: 94,
            ..RAW
        };
        assert!(lossy.file_bps() < 0.91 * RAW.file_bps());
        assert!(tunnel.file_bps() < 0.95 * RAW.file_bps());
        let dead = Ceiling {
            survival: 0.0,
            ..RAW
        };
        assert!(dead.file_bps().abs() < f64::EPSILON);
    }
}
