//! The length of headers with their TCP options.

use airlane_base::Size;

use super::config::{ReportKind, TcpConfig};
use super::segment::{Ack, MOST_BLOCKS, sack_option_len};

/// Length of the option that names the segment which caused an acknowledgment, bytes: an experimental option (RFC
/// 6994) with a sequence number.
const SMART: u32 = 8;
/// Length of the option for explicit loss notification, bytes: an experimental option (RFC 6994) without content.
const ELN: u32 = 4;
/// Length of the timestamp option with two bytes of alignment (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;
/// Lengths of the options that only a SYN carries: maximum segment size, and window scale.
const LARGEST_SEGMENT: u32 = 4;
const WINDOW_SCALE: u32 = 3;
/// Length of the SACK-permitted option of a SYN, which precedes its timestamp.
const SACK_PERMITTED: u32 = 2;

/// The options of a connection's acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    report: ReportKind,
    eln: bool,
    timestamps: bool,
}

impl Options {
    /// Bytes of options in this acknowledgment.
    #[inline]
    pub fn len(&self, ack: &Ack) -> u32 {
        let report = match (ack.blocks.len(), self.report) {
            (0, _) => 0,
            (_, ReportKind::Smart) => SMART,
            (blocks, _) => sack_option_len(blocks),
        };
        report + self.always() + if ack.eln { ELN } else { 0 }
    }

    /// Bytes of options in every segment.
    #[inline]
    const fn always(&self) -> u32 {
        if self.timestamps { TIMESTAMPS } else { 0 }
    }

    /// The most bytes of options that an acknowledgment has.
    pub fn longest(&self) -> u32 {
        let report = match self.report {
            ReportKind::Sack => sack_option_len(MOST_BLOCKS),
            ReportKind::Smart => SMART,
            ReportKind::Plain => 0,
        };
        report + self.always() + if self.eln { ELN } else { 0 }
    }
}

impl TcpConfig {
    /// The options of acknowledgments.
    pub fn options(&self) -> Options {
        Options {
            report: self.report(),
            eln: self.loss_memory().is_some(),
            timestamps: self.timestamps.unwrap_or_default(),
        }
    }

    /// Length of a data segment's headers with options, bytes.
    pub fn header_len(&self) -> u32 {
        self.header_size.map_or(0, |size| size.as_bytes() as u32) + self.options().always()
    }

    /// Length of a SYN, bytes.
    pub fn syn_len(&self) -> u32 {
        let sack = match self.report() {
            ReportKind::Sack => SACK_PERMITTED,
            ReportKind::Plain | ReportKind::Smart => 0,
        };
        let stamps = if self.timestamps.unwrap_or_default() {
            TIMESTAMPS - 2
        } else {
            0
        };
        let scale = if self.window_scaling.unwrap_or_default() {
            WINDOW_SCALE
        } else {
            0
        };
        let options = LARGEST_SEGMENT + sack + stamps + scale;
        self.ack_size.as_bytes() as u32 + options.next_multiple_of(4)
    }

    /// Length of an acknowledgment with all the options that it may have.
    pub fn longest_ack(&self) -> Size {
        let options = self.options().longest();
        Size::from_bytes(self.ack_size.as_bytes() + u64::from(options))
    }
}
