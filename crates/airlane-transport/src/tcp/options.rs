//! How long acknowledgments are with their options.

use airlane_base::Size;

use super::config::{ReportKind, TcpConfig};
use super::segment::{Ack, MOST_BLOCKS, sack_option_len};

/// Bytes of the option that names the segment which caused an acknowledgment: an experimental one (RFC 6994)
/// with a sequence number.
const SMART: u32 = 8;
/// Bytes of the option of an explicit loss notification: an experimental one (RFC 6994) without content.
const ELN: u32 = 4;

/// The options of a connection's acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    report: ReportKind,
    eln: bool,
}

impl Options {
    /// Bytes that they take in this acknowledgment.
    #[inline]
    pub fn len(&self, ack: &Ack) -> u32 {
        let report = match (ack.blocks.len(), self.report) {
            (0, _) => 0,
            (_, ReportKind::Smart) => SMART,
            (blocks, _) => sack_option_len(blocks),
        };
        report + if ack.eln { ELN } else { 0 }
    }

    /// Bytes that they take at most.
    pub fn longest(&self) -> u32 {
        let report = match self.report {
            ReportKind::Sack => sack_option_len(MOST_BLOCKS),
            ReportKind::Smart => SMART,
            ReportKind::Plain => 0,
        };
        report + if self.eln { ELN } else { 0 }
    }
}

impl TcpConfig {
    /// The options of acknowledgments.
    pub fn options(&self) -> Options {
        Options {
            report: self.report(),
            eln: self.loss_memory().is_some(),
        }
    }

    /// Length of an acknowledgment with all options that it may have.
    pub fn longest_ack(&self) -> Size {
        let options = self.options().longest();
        Size::from_bytes(self.ack_size.as_bytes() + u64::from(options))
    }
}
