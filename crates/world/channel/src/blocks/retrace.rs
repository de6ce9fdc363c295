//! Retrace analysis: what a link layer would have made of a trace at best (Ludwig et al. 1999, section 4).
//!
//! A frame takes `n` blocks and fails if one of them is erased; a failed frame is sent again later. The link is never
//! idle, nothing that has arrived is sent again, no window stalls and feedback is free, so the order of repairs does not
//! matter and one pass over the frames tells all:
//!
//! ```text
//! goodput     payload (1 - F) / (n d)          F the share of frames with an erased block, d the time of a block
//! payload     n b - o(n)                       b the bytes of a block, o what a frame has beside user data
//! o(n)        published 6 + n    stated 6, from two blocks on 6 + n    zero 0    end to end 47
//! ```
//! The overhead is 2 bytes of header, 3 of checksum and 1 of status, and a byte in front of each block by which a receiver
//! finds the next frame; the printed numbers have that byte at one block, too, where the text has none. A sweep takes
//! time by the bursts of a trace and not by its blocks.
//!
//! Left out: delays, a receiver's buffer, congestion control end to end.

use super::Blocks;

/// Bytes of TCP, IP and PPP around a packet's data, where nothing below repairs.
pub const END_TO_END: f64 = 47.0;

/// What a frame has beside user data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overhead {
    /// 6 bytes, and one for each block: what the printed numbers have.
    Published,
    /// 6 bytes, and one for each block where there are several.
    Stated,
    /// So many bytes, however long the frame is.
    Fixed(f64),
}

impl Overhead {
    /// Bytes in a frame of `n` blocks.
    pub fn bytes(self, n: u32) -> f64 {
        match self {
            Self::Published => 6.0 + f64::from(n),
            Self::Stated if n == 1 => 6.0,
            Self::Stated => 6.0 + f64::from(n),
            Self::Fixed(bytes) => bytes,
        }
    }
}

/// Frames of one length over a whole trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frames {
    /// Blocks of a frame.
    pub blocks: u32,
    /// Frames that the trace has room for.
    pub sent: u32,
    /// Of these, frames with an erased block.
    pub lost: u32,
    /// Goodput, in bytes per second.
    pub goodput: f64,
}

impl Frames {
    /// The share of frames that are lost, which is that of transmissions that repeat others.
    pub fn erasure_rate(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.sent)
    }
}

/// Packets over a byte stream that frames of whole blocks do not follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packets {
    /// Packets that the trace has room for.
    pub sent: u64,
    /// Of these, packets with an erased block.
    pub lost: u64,
    /// Goodput, in bytes per second.
    pub goodput: f64,
}

impl Packets {
    /// The share of packets that are lost.
    pub fn erasure_rate(&self) -> f64 {
        self.lost as f64 / self.sent as f64
    }
}

impl Blocks {
    /// Sends frames of `n` blocks over the trace, the first one `phase` blocks behind its beginning. None if not one fits.
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
            // Frames from the first that no burst has hit yet to the last that this one hits.
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

    /// [`frames`](Self::frames) with the means over all phases: what is left of chance where frames are long.
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

    /// The length with the largest goodput, of these.
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

    /// The burst error factor: the best length over that of the trace with the same erasures far apart. Near 1 for what is
    /// not bursty (Ludwig et al. 1999, section 4.3).
    pub fn burst_error_factor(&self, longest: u32, overhead: Overhead) -> Option<f64> {
        let of = |blocks: &Self| {
            let best = blocks.best_frame(1..=longest, overhead)?;
            Some(f64::from(best.blocks))
        };
        Some(of(self)? / of(&self.even())?)
    }

    /// Sends packets of `len` bytes, of which `data` are an application's, back to back over the bytes of the trace; one is
    /// lost if any block that it has a byte in is erased. None if not one fits.
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

    /// Lengths of rows of lost packets, as [`packets`](Self::packets) loses them.
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

    /// Packets that are lost, in rows of neighbours and each once.
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
