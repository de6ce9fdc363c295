//! Retrace analysis: the best that a link layer could have achieved on a trace (Ludwig et al. 1999, section 4).
//!
//! A frame takes `n` blocks and fails if one of them is erased; a failed frame is retransmitted later. The link is never
//! idle, nothing that has arrived is sent again, no window stalls and feedback is free, so the order of retransmissions
//! does not matter and a single pass over the frames suffices:
//!
//! ```text
//! goodput     payload (1 - F) / (n d)          F: share of frames with an erased block; d: duration of a block
//! payload     n b - o(n)                       b: bytes of a block; o: overhead of a frame
//! o(n)        published 6 + n    stated 6, from two blocks on 6 + n    zero 0    end to end 47
//! ```
//! The overhead is 2 bytes of header, 3 of checksum and 1 of status, plus a byte in front of each block by which a
//! receiver finds the next frame. The printed numbers include that byte for a single block, too; the text does not. The
//! cost of a sweep grows with the number of bursts, not of blocks.
//!
//! Left out: delays, the receiver's buffer, end-to-end congestion control.

use super::Blocks;

/// Bytes of TCP, IP and PPP around a packet's data, without a link layer that repairs.
pub const END_TO_END: f64 = 47.0;

/// The overhead of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overhead {
    /// 6 bytes plus one per block, as in the printed numbers.
    Published,
    /// 6 bytes, plus one per block if there are several, as in the text.
    Stated,
    /// A fixed number of bytes per frame.
    Fixed(f64),
}

impl Overhead {
    /// Overhead of a frame of `n` blocks, bytes.
    pub fn bytes(self, n: u32) -> f64 {
        match self {
            Self::Published => 6.0 + f64::from(n),
            Self::Stated if n == 1 => 6.0,
            Self::Stated => 6.0 + f64::from(n),
            Self::Fixed(bytes) => bytes,
        }
    }
}

/// The outcome for frames of one length over a whole trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frames {
    /// Length of a frame, blocks.
    pub blocks: u32,
    /// Frames that fit into the trace.
    pub sent: u32,
    /// Of these, frames with an erased block.
    pub lost: u32,
    /// Goodput, in bytes per second.
    pub goodput: f64,
}

impl Frames {
    /// The share of lost frames, equal to the share of transmissions that are retransmissions.
    pub fn erasure_rate(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.sent)
    }
}

/// The outcome for packets over a byte stream, not aligned to blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packets {
    /// Packets that fit into the trace.
    pub sent: u64,
    /// Of these, packets with an erased block.
    pub lost: u64,
    /// Goodput, in bytes per second.
    pub goodput: f64,
}

impl Packets {
    /// The share of lost packets.
    pub fn erasure_rate(&self) -> f64 {
        self.lost as f64 / self.sent as f64
    }
}

impl Blocks {
    /// Sends frames of `n` blocks over the trace, the first one `phase` blocks after its beginning. `None` if no frame
    /// fits.
    pub fn frames(&self, n: u32, overhead: Overhead, phase: u32) -> Option<Frames> {
        let sent = self.len().checked_sub(phase)?.checked_div(n)?;
        if sent == 0 {
            return None;
        }
        let end = phase + sent * n;
        let (mut lost, mut next) = (0, 0);
        for burst in self.bursts() {
            let [from, to] = [burst.start.max(phase), burst.end().min(end)];
            if from >= to {
                continue;
            }
            // Frames from the first that no earlier burst has hit to the last that this one hits.
            let first = ((from - phase) / n).max(next);
            let last = (to - 1 - phase) / n;
            lost += (last + 1).saturating_sub(first);
            next = next.max(last + 1);
        }
        let payload = f64::from(n) * self.header.size.as_bytes() as f64 - overhead.bytes(n);
        let time = f64::from(n) * self.header.block.as_secs_f64();
        let arrive = f64::from(sent - lost) / f64::from(sent);
        Some(Frames {
            blocks: n,
            sent,
            lost,
            goodput: payload * arrive / time,
        })
    }

    /// Like [`frames`](Self::frames), averaged over all phases, which reduces the noise for long frames.
    pub fn frames_of_all_phases(&self, n: u32, overhead: Overhead) -> Option<Frames> {
        let phases = (0..n).filter_map(|phase| self.frames(n, overhead, phase));
        let (mut sum, mut count) = (0.0, 0u32);
        let mut first = None;
        for frames in phases {
            sum += frames.goodput;
            count += 1;
            first = first.or(Some(frames));
        }
        let goodput = sum / f64::from(count);
        first.map(|frames| Frames { goodput, ..frames })
    }

    /// The frame length with the largest goodput among `lengths`.
    pub fn best_frame(
        &self,
        lengths: impl IntoIterator<Item = u32>,
        overhead: Overhead,
    ) -> Option<Frames> {
        let all = lengths.into_iter();
        let all = all.filter_map(|n| self.frames(n, overhead, 0));
        all.reduce(|best, other| match other.goodput > best.goodput {
            true => other,
            false => best,
        })
    }

    /// The burst error factor: the best length over the best length of the evenly spread trace. Near 1 if errors are not
    /// bursty (Ludwig et al. 1999, section 4.3).
    pub fn burst_error_factor(&self, longest: u32, overhead: Overhead) -> Option<f64> {
        let of = |blocks: &Self| {
            let best = blocks.best_frame(1..=longest, overhead)?;
            Some(f64::from(best.blocks))
        };
        Some(of(self)? / of(&self.even())?)
    }

    /// Sends packets of `len` bytes, of which `data` are application data, back to back over the bytes of the trace. A
    /// packet is lost if any block with one of its bytes is erased. `None` if no packet fits.
    pub fn packets(&self, len: u32, data: u32) -> Option<Packets> {
        let size = self.header.size.as_bytes();
        let len = u64::from(len);
        let sent = (u64::from(self.len()) * size).checked_div(len)?;
        if sent == 0 {
            return None;
        }
        let mut lost = 0;
        self.lost_packets(len, sent, |from, to| lost += to - from);
        let rate = size as f64 / self.header.block.as_secs_f64();
        let arrive = (sent - lost) as f64 / sent as f64;
        Some(Packets {
            sent,
            lost,
            goodput: rate * f64::from(data) / len as f64 * arrive,
        })
    }

    /// Lengths of the runs of lost packets in [`packets`](Self::packets).
    pub fn packet_loss_rows(&self, len: u32) -> super::statistics::Lengths {
        let size = self.header.size.as_bytes();
        let len = u64::from(len);
        let sent = (u64::from(self.len()) * size).checked_div(len).unwrap_or(0);
        let mut rows = super::statistics::Lengths::new();
        let mut row = [0u64, 0];
        let mut close = |[from, to]: [u64; 2]| {
            if let Ok(len @ 1..) = u32::try_from(to - from) {
                *rows.entry(len).or_default() += 1;
            }
        };
        self.lost_packets(len, sent, |from, to| {
            if from == row[1] {
                row[1] = to;
            } else {
                close(row);
                row = [from, to];
            }
        });
        close(row);
        rows
    }

    /// Calls `lost` for each run of consecutive lost packets, each packet once.
    fn lost_packets(&self, len: u64, sent: u64, mut lost: impl FnMut(u64, u64)) {
        let size = self.header.size.as_bytes();
        let mut next = 0;
        for burst in self.bursts() {
            let first = (u64::from(burst.start) * size / len).max(next);
            let last = ((u64::from(burst.end()) * size - 1) / len + 1).min(sent);
            if first < last {
                lost(first, last);
            }
            next = next.max(last);
        }
    }
}
